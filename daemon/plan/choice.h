/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which levels are worth a move for a pair, and in which order: costs and gains only, no room.
 * Private to plan/. Pure.
 */
#pragma once

#include "plan/plan.h"

/* The levels to try, best first. */
struct cp_choice {
    size_t n;
    enum cp_level levels[CP_LEVEL_MAX];
};

/* The level that the policy asks for, CP_LEVEL_INVALID for auto and off. */
enum cp_level cp_choice_policy_level(const struct cp_policy *policy);

/* The level of most hand-offs; where none was seen, otherwise. */
enum cp_level cp_choice_level_now(const struct cp_handoff_profile *profile,
                                  enum cp_level otherwise);

/*
 * Fills candidates[] of a finding whose verdict and level_now are set: each level that this machine
 * has (present[]), and the one that the policy asks for. Gains are against present_ns, the loss of
 * one hand-off now.
 */
void cp_choice_weigh(struct cp_plan_finding *finding, const struct cp_costs *costs,
                     enum cp_level asked, const bool present[CP_LEVEL_MAX], double present_ns);

/*
 * Orders the levels of a weighed finding that are worth a move. Under pairs: auto those that gain
 * min-gain and beat present_ns by the margin: for a serial pair one CPU first, then by gain; for an
 * overlapping one by gain, never one CPU. Of levels that do not beat each other by the margin the
 * widest comes first: the loosest mask that gets the gain. Under pairs: same-… that level alone,
 * unless the pair is there already. standing: the level of the pair's placement, or
 * CP_LEVEL_INVALID.
 */
void cp_choice_order(const struct cp_plan_finding *finding, const struct cp_policy *policy,
                     double present_ns, enum cp_level standing, struct cp_choice *ret_choice);
