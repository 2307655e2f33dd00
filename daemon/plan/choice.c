/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Levels by predicted gain (design, section 4, "Prediction" and "Plan"). */
#include "plan/choice.h"

#include "pair/model.h"

enum cp_level cp_choice_policy_level(const struct cp_policy *policy)
{
    switch (policy->pairs) {
    case CP_PAIRS_SAME_CPU:
        return CP_LEVEL_CPU;
    case CP_PAIRS_SAME_CORE:
        return CP_LEVEL_CORE;
    case CP_PAIRS_SAME_LLC:
        return CP_LEVEL_LLC;
    case CP_PAIRS_SAME_NODE:
        return CP_LEVEL_NODE;
    default:
        return CP_LEVEL_INVALID;
    }
}

enum cp_level cp_choice_level_now(const struct cp_handoff_profile *profile, enum cp_level otherwise)
{
    enum cp_level most = CP_LEVEL_CPU;

    for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++)
        if (profile->level[l] > profile->level[most])
            most = l;
    return profile->level[most] > 0.0 ? most : otherwise;
}

void cp_choice_weigh(struct cp_plan_finding *finding, const struct cp_costs *costs,
                     enum cp_level asked, const bool present[CP_LEVEL_MAX], double present_ns)
{
    const struct cp_handoff_profile *profile = &finding->verdict.profile;

    for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++) {
        struct cp_plan_candidate *candidate = &finding->candidates[finding->n_candidates];

        if (!present[l] && l != asked)
            continue;
        candidate->level = l;
        candidate->total_ns = cp_model_total_ns(costs, profile, l);
        candidate->gain = profile->rate_hz * (present_ns - candidate->total_ns);
        candidate->possible = false;
        finding->n_candidates++;
    }
}

/* Are the hand-offs, but for a margin of them, within that level already? */
static bool is_there(const struct cp_plan_finding *finding, enum cp_level level, double margin)
{
    const double *share = finding->verdict.profile.level;
    double within = 0.0;
    double all = 0.0;

    for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++) {
        all += share[l];
        within += l <= level ? share[l] : 0.0;
    }
    return all > 0.0 ? within >= (1.0 - margin) * all : finding->level_now <= level;
}

static bool is_worth_it(const struct cp_plan_candidate *candidate, const struct cp_policy *policy,
                        double present_ns)
{
    return candidate->gain >= policy->min_gain_ns_per_s && candidate->gain > 0.0 &&
           candidate->total_ns <= (1.0 - policy->margin) * present_ns;
}

/*
 * Takes the next level from rest[]: the cheapest, or the widest that the cheapest does not beat by
 * the margin. By totals and not by gains, as is_worth_it() compares: else the placement made for
 * one would be moved to the other at the next look.
 */
static enum cp_level take_next(const struct cp_plan_candidate *rest[CP_LEVEL_MAX], double margin)
{
    enum cp_level next = CP_LEVEL_INVALID;
    double cheapest_ns;

    for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++)
        if (rest[l] && (next == CP_LEVEL_INVALID || rest[l]->total_ns < rest[next]->total_ns))
            next = l;
    if (next == CP_LEVEL_INVALID)
        return next;
    cheapest_ns = rest[next]->total_ns;
    for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++)
        if (rest[l] && l > next && cheapest_ns > (1.0 - margin) * rest[l]->total_ns)
            next = l;
    rest[next] = NULL;
    return next;
}

static void choice_add(struct cp_choice *choice, enum cp_level level)
{
    choice->levels[choice->n++] = level;
}

void cp_choice_order(const struct cp_plan_finding *finding, const struct cp_policy *policy,
                     double present_ns, enum cp_level standing, struct cp_choice *ret_choice)
{
    const struct cp_plan_candidate *rest[CP_LEVEL_MAX] = {0};
    enum cp_level asked = cp_choice_policy_level(policy);
    enum cp_level next;

    *ret_choice = (struct cp_choice){0};
    if (asked != CP_LEVEL_INVALID) {
        if (standing != CP_LEVEL_INVALID ? standing != asked
                                         : !is_there(finding, asked, policy->margin))
            choice_add(ret_choice, asked);
        return;
    }
    /* One CPU is the place of a serial pair, whatever the table says of other levels now. */
    if (finding->verdict.relation == CP_RELATION_SERIAL && standing == CP_LEVEL_CPU)
        return;
    for (size_t i = 0; i < finding->n_candidates; i++) {
        const struct cp_plan_candidate *candidate = &finding->candidates[i];

        if (candidate->level != CP_LEVEL_MACHINE && is_worth_it(candidate, policy, present_ns))
            rest[candidate->level] = candidate;
    }
    if (finding->verdict.relation == CP_RELATION_SERIAL && rest[CP_LEVEL_CPU])
        choice_add(ret_choice, CP_LEVEL_CPU);
    rest[CP_LEVEL_CPU] = NULL;
    while ((next = take_next(rest, policy->margin)) != CP_LEVEL_INVALID)
        choice_add(ret_choice, next);
}
