/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which CPUs both tasks of a pair may use: cpusets, what is usable, and the node that holds their
 * memory (design, section 4, "Memory"). Knows neither load nor gain.
 */
#include "plan/planner.h"

#include "base/cleanup.h"

/* Does the task hold more than the LLC that it ran on last? Unknown sizes do not count. */
static bool exceeds_llc(const struct cp_machine *machine, const struct cp_task_facts *facts)
{
    const struct cp_domain *llc = cp_machine_domain_of(machine, CP_LEVEL_LLC, facts->last_cpu);

    return llc && llc->cache_bytes > 0 && facts->rss_kib > llc->cache_bytes / 1024;
}

static const struct cp_domain *home_of(const struct cp_machine *machine,
                                       const struct cp_task_facts *facts)
{
    if (facts->home_node >= machine->n_domains[CP_LEVEL_NODE])
        return NULL;
    return &machine->domains[CP_LEVEL_NODE][facts->home_node];
}

/* The node to which memory binds the pair, NULL for none. false: it must not be brought together.
 */
static bool find_node(const struct cp_plan_input *input, const struct cp_planner_pair *pair,
                      const struct cp_domain **ret_node)
{
    const struct cp_machine *machine = input->machine;
    const struct cp_domain *homes[2];

    *ret_node = NULL;
    if (input->policy->any_node || machine->n_domains[CP_LEVEL_NODE] < 2)
        return true;
    for (unsigned i = 0; i < 2; i++)
        homes[i] = home_of(machine, pair->facts[i]);
    if (!homes[0] || !homes[1] || homes[0] == homes[1]) {
        *ret_node = homes[0] ? homes[0] : homes[1];
        return true;
    }
    if (exceeds_llc(machine, pair->facts[0]) && exceeds_llc(machine, pair->facts[1]))
        return false;
    /* The one with the smaller resident set goes to the other. */
    *ret_node = pair->facts[0]->rss_kib >= pair->facts[1]->rss_kib ? homes[0] : homes[1];
    return true;
}

int cp_planner_allow(struct cp_planner *planner, const struct cp_planner_pair *pair,
                     enum cp_plan_outcome *ret_outcome)
{
    const struct cp_plan_input *input = planner->input;
    struct cp_cpumask *allowed = &planner->allowed;
    const struct cp_domain *node;
    int r;

    r = cp_cpumask_and(allowed, &pair->facts[0]->cpuset, &pair->facts[1]->cpuset);
    if (r < 0)
        return r;
    r = cp_cpumask_and(allowed, allowed, &input->machine->usable);
    if (r < 0)
        return r;
    *ret_outcome = CP_OUTCOME_NO_COMMON_CPU;
    if (cp_cpumask_is_empty(allowed))
        return 0;
    *ret_outcome = CP_OUTCOME_OTHER_NODE;
    if (!find_node(input, pair, &node))
        return 0;
    if (node) {
        r = cp_cpumask_and(allowed, allowed, &node->cpus);
        if (r < 0)
            return r;
    }
    if (!cp_cpumask_is_empty(allowed))
        *ret_outcome = CP_OUTCOME_PLACE;
    return 0;
}
