/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which pairs want a place: relation, policy, who may be moved, owners, holds, memory and gain.
 * Everything that does not depend on the room that other pairs leave.
 */
#include "plan/planner.h"

#include "base/cleanup.h"
#include "pair/model.h"

size_t cp_planner_find_facts(const struct cp_plan_input *input, struct cp_task_id task)
{
    size_t low = 0;
    size_t high = input->n_facts;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = cp_task_id_compare(input->facts[middle].id, task);

        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

static bool is_of_pair(const struct cp_plan_placement *placement, const struct cp_task_id tasks[2])
{
    return (cp_task_id_equal(placement->tasks[0], tasks[0]) &&
            cp_task_id_equal(placement->tasks[1], tasks[1])) ||
           (cp_task_id_equal(placement->tasks[0], tasks[1]) &&
            cp_task_id_equal(placement->tasks[1], tasks[0]));
}

/* The pair's own placement, where it stands. */
static const struct cp_plan_placement *find_standing(const struct cp_planner *planner,
                                                     const struct cp_plan_finding *finding,
                                                     const struct cp_planner_pair *pair)
{
    const struct cp_plan_placement *placement;

    if (!pair->tasks[0] || pair->tasks[0]->placement == CP_PLACEMENT_NONE)
        return NULL;
    placement = &planner->input->placements[pair->tasks[0]->placement];
    return is_of_pair(placement, finding->tasks) ? placement : NULL;
}

/* The loss of one hand-off now. A placement that has only just been made is not yet in the
 * statistics, and one that is may do better than its level promises: a change must beat both. */
static double find_present(const struct cp_planner *planner, const struct cp_plan_finding *finding,
                           const struct cp_plan_placement *standing)
{
    const struct cp_costs *costs = planner->input->costs;
    double now_ns = cp_model_now_ns(costs, &finding->verdict.profile);

    if (!standing)
        return now_ns;
    return CP_MIN(now_ns, cp_model_total_ns(costs, &finding->verdict.profile, standing->level));
}

/* All of *ret_pair but the choice. */
static void look_up(const struct cp_planner *planner, const struct cp_plan_finding *finding,
                    struct cp_planner_pair *ret_pair)
{
    struct cp_planner_pair pair = {0};

    for (unsigned i = 0; i < 2; i++) {
        size_t index = cp_planner_find_facts(planner->input, finding->tasks[i]);

        if (index == SIZE_MAX)
            continue;
        pair.facts[i] = &planner->input->facts[index];
        pair.tasks[i] = &planner->tasks[index];
    }
    pair.standing = find_standing(planner, finding, &pair);
    pair.present_ns = find_present(planner, finding, pair.standing);
    *ret_pair = pair;
}

static void order_choice(const struct cp_planner *planner, const struct cp_plan_finding *finding,
                         struct cp_planner_pair *pair)
{
    cp_choice_order(finding, planner->input->policy, pair->present_ns,
                    pair->standing ? pair->standing->level : CP_LEVEL_INVALID, &pair->choice);
}

void cp_planner_recall(const struct cp_planner *planner, const struct cp_plan_finding *finding,
                       struct cp_planner_pair *ret_pair)
{
    look_up(planner, finding, ret_pair);
    order_choice(planner, finding, ret_pair);
}

static void set_outcome(struct cp_plan_finding *finding, enum cp_plan_outcome outcome,
                        unsigned blocked_by)
{
    finding->outcome = outcome;
    finding->blocked_by = blocked_by;
}

/* The more lasting reason is the more useful one: GONE, then in the order of the enumeration, but
 * TOO_YOUNG, which passes by itself, last. */
static unsigned lasting(enum cp_plan_outcome outcome)
{
    if (outcome == CP_OUTCOME_GONE)
        return CP_OUTCOME_MAX + 1;
    if (outcome == CP_OUTCOME_PLACE)
        return 0;
    if (outcome == CP_OUTCOME_TOO_YOUNG)
        return 1;
    return CP_OUTCOME_MAX - (unsigned)outcome;
}

/* May both be moved? */
static bool check_movable(const struct cp_plan_input *input, const struct cp_planner_pair *pair,
                          struct cp_plan_finding *finding)
{
    enum cp_plan_outcome outcomes[2];
    uint64_t until_ns[2] = {0};

    for (unsigned i = 0; i < 2; i++)
        outcomes[i] = cp_plan_movable(pair->facts[i], input->policy, input->now_ns, &until_ns[i]);
    if (outcomes[0] == outcomes[1])
        set_outcome(finding, outcomes[0], 2);
    else if (lasting(outcomes[0]) > lasting(outcomes[1]))
        set_outcome(finding, outcomes[0], 0);
    else
        set_outcome(finding, outcomes[1], 1);
    if (finding->outcome == CP_OUTCOME_TOO_YOUNG)
        finding->until_ns = CP_MAX(until_ns[0], until_ns[1]);
    return finding->outcome == CP_OUTCOME_PLACE;
}

/* Is neither of them placed with somebody else? */
static bool check_free(const struct cp_planner_pair *pair, struct cp_plan_finding *finding)
{
    bool taken[2];

    if (pair->standing)
        return true;
    for (unsigned i = 0; i < 2; i++)
        taken[i] = pair->tasks[i]->placement != CP_PLACEMENT_NONE;
    if (!taken[0] && !taken[1])
        return true;
    set_outcome(finding, CP_OUTCOME_PLACED_OTHERWISE, taken[0] && taken[1] ? 2 : taken[1]);
    return false;
}

static bool check_facts(const struct cp_planner_pair *pair, struct cp_plan_finding *finding)
{
    if (pair->facts[0] && pair->facts[1])
        return true;
    set_outcome(finding, CP_OUTCOME_UNKNOWN_FACTS, pair->facts[0] ? 1 : (pair->facts[1] ? 0 : 2));
    return false;
}

static bool check_holds(const struct cp_planner *planner, struct cp_plan_finding *finding)
{
    unsigned blocked_by;
    const struct cp_plan_hold *hold =
        cp_holds_find(&planner->holds, finding->tasks, planner->input->now_ns, &blocked_by);

    if (!hold)
        return true;
    set_outcome(finding, hold->why, blocked_by);
    finding->until_ns = hold->until_ns;
    return false;
}

/* The level of the CPUs on which the two ran last. */
static enum cp_level last_level(const struct cp_planner *planner,
                                const struct cp_planner_pair *pair)
{
    if (!pair->facts[0] || !pair->facts[1])
        return CP_LEVEL_MACHINE;
    return cp_machine_shared_level(planner->input->machine, pair->facts[0]->last_cpu,
                                   pair->facts[1]->last_cpu);
}

static bool is_related(const struct cp_pair_verdict *verdict)
{
    return verdict->relation == CP_RELATION_SERIAL || verdict->relation == CP_RELATION_OVERLAPPING;
}

/* Looks for a reason to do nothing that does not need the common CPUs: true if there is one. */
static bool find_reason(const struct cp_planner *planner, const struct cp_planner_pair *pair,
                        struct cp_plan_finding *finding)
{
    const struct cp_policy *policy = planner->input->policy;

    if (policy->pairs == CP_PAIRS_OFF) {
        set_outcome(finding, CP_OUTCOME_PAIRS_OFF, 2);
        return true;
    }
    if (!is_related(&finding->verdict)) {
        set_outcome(finding, CP_OUTCOME_NO_RELATION, 2);
        return true;
    }
    if (!check_facts(pair, finding))
        return true;
    if (pair->standing && pair->choice.n == 0) {
        set_outcome(finding, CP_OUTCOME_STAND, 2);
        return true;
    }
    if (!check_free(pair, finding) || !check_movable(planner->input, pair, finding))
        return true;
    if (pair->facts[0]->uid != pair->facts[1]->uid && !policy->across) {
        set_outcome(finding, CP_OUTCOME_OTHER_OWNER, 2);
        return true;
    }
    return !check_holds(planner, finding);
}

int cp_planner_judge(struct cp_planner *planner, const struct cp_pair *candidate,
                     struct cp_plan_finding *finding, struct cp_planner_pair *ret_pair)
{
    const struct cp_plan_input *input = planner->input;
    struct cp_planner_pair pair;
    enum cp_plan_outcome outcome;
    int r;

    *finding = (struct cp_plan_finding){.tasks = {candidate->a, candidate->b}};
    cp_pair_judge(input->pairs, candidate, input->policy, input->costs, &finding->verdict);
    look_up(planner, finding, &pair);
    finding->level_now = cp_choice_level_now(&finding->verdict.profile, last_level(planner, &pair));
    cp_choice_weigh(finding, input->costs, cp_choice_policy_level(input->policy), planner->present,
                    pair.present_ns);
    order_choice(planner, finding, &pair);
    *ret_pair = pair;
    if (find_reason(planner, &pair, finding))
        return 0;
    r = cp_planner_allow(planner, &pair, &outcome);
    if (r < 0)
        return r;
    if (outcome == CP_OUTCOME_PLACE && pair.choice.n == 0)
        outcome = CP_OUTCOME_NEAR_ENOUGH;
    set_outcome(finding, outcome, 2);
    return 0;
}
