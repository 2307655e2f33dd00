/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel's files say of its CPUs as a whole. Internal to machine/. */
#pragma once

#include "base/cpumask.h"
#include "base/error.h"
#include "base/root.h"

#include <stdbool.h>

struct cp_cpu_lists {
    bool online_known; /* the file was there (some recorded machines lack it) */
    struct cp_cpumask online;
    struct cp_cpumask present;  /* there, online or not; possible where the file is missing */
    struct cp_cpumask possible; /* present ones and empty slots for more */
    struct cp_cpumask isolated; /* not yet intersected with possible */
};

void cp_cpu_lists_done(struct cp_cpu_lists *lists);
#define _cleanup_cpu_lists_ _cleanup_(cp_cpu_lists_done)

/*
 * Reads the lists below root. Missing files are empty lists. Isolated are the CPUs of the files
 * isolated and nohz_full, of the parameters isolcpus= and nohz_full= of the kernel's command line
 * where such a file is missing (older kernels, sparse records), and of cpuset partitions of type
 * isolated. -EBADMSG with *error naming the file: malformed; -ENOMEM.
 */
int cp_cpu_lists_read(const struct cp_root *root, struct cp_cpu_lists *ret_lists,
                      struct cp_error *error);

/* Reads sys/devices/system/cpu/online. Negative errno; -EBADMSG: malformed. */
int cp_cpu_lists_read_online(const struct cp_root *root, struct cp_cpumask *ret_online);

/*
 * Adds the CPUs that a kernel command line isolates by isolcpus= (isolcpus true; flags "domain" and
 * "nohz" count, "managed_irq" alone does not keep tasks away) or by nohz_full= (isolcpus false).
 * last: the highest CPU, for "N" and "all". What the kernel itself would refuse is passed over,
 * since it then isolates nothing. -ENOMEM.
 */
int cp_cpu_lists_parse_cmdline(const char *cmdline, bool isolcpus, struct cp_cpu last,
                               struct cp_cpumask *mask);
