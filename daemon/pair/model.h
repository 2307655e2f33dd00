/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cost model: what a hand-off of a pair costs at each level, in nanoseconds (design, section
 * 4, "Prediction"). Pure.
 *
 *     total(level) = cost[level] + serialisation(level)
 *     serialisation(level) = min(tail, run)      on the same CPU: what could have run in parallel
 *                          = min(tail, run) / 2  on SMT siblings, which share one core
 *                          = 0                   further out
 *     gain = rate × (Σ share[level now] × total(level now) − total(target))
 *
 * The tail of a pair that is apart contains the waker's own cost of sending the wake-up across
 * CPUs, so it is an upper bound; the rule told ten workloads right (serial from overlapping).
 */
#pragma once

#include "base/level.h"
#include "machine/costs.h"

#include <stdint.h>

/* One direction of a pair, or both directions weighted by their rates. */
struct cp_handoff_profile {
    double rate_hz;             /* hand-offs a second */
    double tail_ns;             /* mean */
    double run_ns;              /* mean */
    double level[CP_LEVEL_MAX]; /* share of the hand-offs at each level; sums to 1, or all 0 */
};

/* Mean loss of one hand-off if waker and wakee shared this level, ns. */
double cp_model_total_ns(const struct cp_costs *costs, const struct cp_handoff_profile *profile,
                         enum cp_level level);

/* Mean loss of one hand-off where the two are now. Levels unknown (all shares 0): as the costliest
 * level whose cost is known from this machine or its configuration, or of all where none is. */
double cp_model_now_ns(const struct cp_costs *costs, const struct cp_handoff_profile *profile);

/* Gain of moving the hand-offs of this profile to a level, ns per second; negative: a loss. */
double cp_model_gain(const struct cp_costs *costs, const struct cp_handoff_profile *profile,
                     enum cp_level target);
