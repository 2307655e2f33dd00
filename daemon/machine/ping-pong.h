/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hand-offs between two threads of ours on two CPUs (or on one), each timed. Live, blocking; known
 * to calibrate.c alone.
 */
#pragma once

#include "base/cpumask.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct cp_cpu_pair {
    struct cp_cpu a;
    struct cp_cpu b; /* may be a */
};

/*
 * Lets two new threads, bound to the CPUs of pair, wake each other in turn until max_samples
 * hand-offs were timed, budget_ns have passed or *cancel (NULL accepted) is true. Timed is each
 * hand-off whose wakee slept when it was woken: from just before the wake-up to the wakee's return
 * from its sleep. The first few are not counted.
 *
 * Stores the latencies in ns, in no order, into samples[max_samples], their number into
 * *ret_n_samples (0 where a CPU went away meanwhile). 0, or the negative errno of starting threads.
 * The caller sleeps meanwhile; its affinity and signals are not touched. Returns within some
 * 0.2 s of the budget even if other tasks keep a CPU busy.
 */
int cp_ping_pong(struct cp_cpu_pair pair, uint64_t budget_ns, const atomic_bool *cancel,
                 uint32_t *samples, size_t max_samples, size_t *ret_n_samples);
