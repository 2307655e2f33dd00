/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cost model (design, section 4, "Prediction"). Arithmetic only: knows no pair and no task. */
#include "pair/model.h"

#include "base/cleanup.h"

/* SMT siblings share one core's units: two that compute at once lose about half of what one CPU
 * would cost them. */
#define SMT_SERIALISATION 0.5

static double serialisation_ns(const struct cp_handoff_profile *profile, enum cp_level level)
{
    double parallel_ns = CP_MIN(profile->tail_ns, profile->run_ns);

    switch (level) {
    case CP_LEVEL_CPU:
        return parallel_ns;
    case CP_LEVEL_CORE:
        return SMT_SERIALISATION * parallel_ns;
    default:
        return 0.0;
    }
}

double cp_model_total_ns(const struct cp_costs *costs, const struct cp_handoff_profile *profile,
                         enum cp_level level)
{
    return (double)costs->level[level].ns + serialisation_ns(profile, level);
}

static enum cp_level costliest_level(const struct cp_costs *costs)
{
    enum cp_level known = CP_LEVEL_INVALID;
    enum cp_level any = CP_LEVEL_CPU;

    for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++) {
        uint64_t ns = costs->level[l].ns;

        if (ns >= costs->level[any].ns)
            any = l;
        if (costs->level[l].source != CP_COST_DEFAULT &&
            (known == CP_LEVEL_INVALID || ns >= costs->level[known].ns))
            known = l;
    }
    return known != CP_LEVEL_INVALID ? known : any;
}

double cp_model_now_ns(const struct cp_costs *costs, const struct cp_handoff_profile *profile)
{
    double total_ns = 0.0;
    double shares = 0.0;

    for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++) {
        if (profile->level[l] <= 0.0)
            continue;
        total_ns += profile->level[l] * cp_model_total_ns(costs, profile, l);
        shares += profile->level[l];
    }
    if (shares <= 0.0)
        return cp_model_total_ns(costs, profile, costliest_level(costs));
    return total_ns / shares;
}

double cp_model_gain(const struct cp_costs *costs, const struct cp_handoff_profile *profile,
                     enum cp_level target)
{
    return profile->rate_hz *
           (cp_model_now_ns(costs, profile) - cp_model_total_ns(costs, profile, target));
}
