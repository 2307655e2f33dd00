/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Others that place tasks on this machine: a loaded sched_ext scheduler, the kernel's cache-aware
 * scheduling, a kubelet with the static CPU manager policy. Detected below a root directory; what
 * follows from them is the manager's business.
 */
#pragma once

#include "base/root.h"

#include <stdbool.h>

#define CP_NEIGHBOURS_MAX 4

struct cp_neighbours {
    bool sched_ext;          /* places by itself: nothing may be enforced beside it */
    bool cache_aware;        /* keeps each process's threads in one LLC */
    bool kubelet_static;     /* its exclusive CPUs are cpusets, which placement stays inside */
    char sched_ext_name[64]; /* "" unknown */
    unsigned n_texts;
    char texts[CP_NEIGHBOURS_MAX][160]; /* one line each, for people */
};

/* Unreadable files count as absent: none of the neighbours hides its state from root. Blocks for a
 * few small reads. */
void cp_neighbours_detect(const struct cp_root *root, struct cp_neighbours *ret_neighbours);
