/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the records of the kernel side to a sample: what tasks still hold of their present edges is
 * added to the table of edges. Pure.
 */
#pragma once

#include <linux/types.h>

#include "wake/wake-abi.h"
#include "wake/wake.h"

#include <stddef.h>
#include <stdint.h>

struct cp_wake_records {
    const struct cp_wake_abi_task *tasks; /* each TID once, any order */
    size_t n_tasks;
    const struct cp_wake_abi_edge_key *keys; /* of edges, each once, any order */
    const struct cp_wake_abi_edge *edges;
    size_t n_edges;
    uint64_t end_ns; /* CLOCK_MONOTONIC: the end of the window on the kernel side's clock */
};

/*
 * Fills edges and tasks of *ret_sample, which is else zeroed by the caller, and adds to its
 * n_dropped: beyond max_edges the edges of the fewest hand-offs are dropped. Edges of tasks that
 * are not among the records (they ended) are left out, as are edges without a hand-off. A wait that
 * goes on at the end of the window counts up to there. -ENOMEM: *ret_sample is unchanged.
 */
int cp_wake_merge(const struct cp_wake_records *records, size_t max_edges,
                  struct cp_wake_sample *ret_sample);
