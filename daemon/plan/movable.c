/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who may be moved at all (design, section 5, "Movable"). Judges one task by its facts; knows
 * nothing of pairs, rooms or gains. Pure.
 */
#include "plan/plan.h"

#include <sched.h>

/* Somebody gave it a mask that keeps it from CPUs of its cpuset. A user mask as wide as the cpuset
 * binds nothing, and a cpuset's own limits are no mask of anybody. */
static bool has_foreign_mask(const struct cp_task_facts *facts)
{
    return facts->user_mask == CP_USER_MASK_SET &&
           !cp_cpumask_is_subset(&facts->cpuset, &facts->allowed);
}

enum cp_plan_outcome cp_plan_movable(const struct cp_task_facts *facts,
                                     const struct cp_policy *policy, uint64_t now_ns,
                                     uint64_t *ret_until_ns)
{
    if (facts->pf_flags & CP_PF_EXITING)
        return CP_OUTCOME_GONE;
    if (facts->pf_flags & CP_PF_KTHREAD)
        return CP_OUTCOME_KERNEL_THREAD;
    if (facts->pf_flags & CP_PF_NO_SETAFFINITY)
        return CP_OUTCOME_NO_SETAFFINITY;
    if (facts->sched_policy != SCHED_OTHER && facts->sched_policy != SCHED_BATCH)
        return CP_OUTCOME_SCHED_CLASS;
    if (policy->affinity == CP_AFFINITY_RESPECT && has_foreign_mask(facts))
        return CP_OUTCOME_FOREIGN_MASK;
    if (facts->age_ns < policy->min_age_ns) {
        if (ret_until_ns)
            *ret_until_ns = now_ns + (policy->min_age_ns - facts->age_ns);
        return CP_OUTCOME_TOO_YOUNG;
    }
    return CP_OUTCOME_PLACE;
}
