/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How busy each CPU was between two readings of /proc/stat. Decides nothing. */
#pragma once

#include "base/root.h"
#include "machine/machine.h"

#include <stdint.h>

struct cp_load {
    uint32_t n_cpus; /* as machine->n_cpus of the snapshot it was read for */
    uint64_t *busy;  /* ticks (USER_HZ) not idle and not iowait since boot, by index in cpus */
    uint64_t *total; /* all ticks */
};

void cp_load_done(struct cp_load *load);

/* Reads the counters. A CPU that the file does not list keeps zeros. -EBADMSG, -ENOMEM, errno. */
int cp_load_read(const struct cp_root *root, const struct cp_machine *machine,
                 struct cp_load *ret_load);

/* Busy share of each CPU between two readings for the same snapshot, in permille (0-1000), written
 * to permille[n_cpus]. CPUs whose counters did not advance give 0. */
void cp_load_between(const struct cp_load *earlier, const struct cp_load *later,
                     uint16_t *permille);
