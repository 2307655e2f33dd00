/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gives a pair the best place that has room, makes the move and its claim. */
#include "plan/planner.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

struct cp_room_owner cp_planner_owner(const struct cp_planner *planner,
                                      const struct cp_task_id tasks[2])
{
    struct cp_room_owner owner = {0};

    for (unsigned i = 0; i < 2; i++) {
        size_t index = cp_planner_find_facts(planner->input, tasks[i]);
        const struct cp_pair_task *known;
        uid_t uid = 0;

        if (index != SIZE_MAX) {
            uid = planner->input->facts[index].uid;
        } else {
            known = cp_pairs_find_task(planner->input->pairs, tasks[i]);
            if (known)
                uid = known->uid;
            else
                owner.mixed = true;
        }
        if (i == 0)
            owner.uid = uid;
        else if (owner.uid != uid)
            owner.mixed = true;
    }
    return owner;
}

static struct cp_plan_candidate *find_candidate(struct cp_plan_finding *finding,
                                                enum cp_level level)
{
    for (size_t i = 0; i < finding->n_candidates; i++)
        if (finding->candidates[i].level == level)
            return &finding->candidates[i];
    return NULL;
}

/* Where the pair would go at each level that is a candidate. */
static void find_places(struct cp_planner *planner, const struct cp_planner_pair *pair,
                        struct cp_plan_finding *finding, uint32_t places[CP_LEVEL_MAX])
{
    const struct cp_policy *policy = planner->input->policy;
    struct cp_room_request request = {
        .allowed = &planner->allowed,
        .load = pair->tasks[0]->load + pair->tasks[1]->load,
        .owner = cp_planner_owner(planner, finding->tasks),
        .across = policy->across,
        .last = {pair->tasks[0]->last, pair->tasks[1]->last},
        /* A domain of which only one CPU may be used would stack the two unasked. */
        .min_cpus = policy->pairs == CP_PAIRS_AUTO ? 2 : 1,
    };

    for (size_t i = 0; i < finding->n_candidates; i++) {
        struct cp_plan_candidate *candidate = &finding->candidates[i];

        places[candidate->level] = cp_room_find(&planner->room, candidate->level, &request);
        candidate->possible = places[candidate->level] != CP_DOMAIN_NONE;
    }
}

static enum cp_plan_rule find_rule(const struct cp_planner *planner,
                                   const struct cp_planner_pair *pair,
                                   const struct cp_plan_finding *finding, enum cp_level level)
{
    if (cp_choice_policy_level(planner->input->policy) != CP_LEVEL_INVALID)
        return CP_RULE_POLICY;
    if (level == CP_LEVEL_CPU)
        return CP_RULE_HANDOFF;
    if (finding->level_now == CP_LEVEL_CPU ||
        (pair->standing && pair->standing->level == CP_LEVEL_CPU))
        return CP_RULE_IDLE_SIBLING;
    return CP_RULE_IDLE_WAKEE;
}

/* One CPU, or what the pair may use of the domain. */
static int make_target(const struct cp_planner *planner, enum cp_level level, uint32_t place,
                       struct cp_cpumask *ret_target)
{
    const struct cp_machine *machine = planner->input->machine;

    if (level == CP_LEVEL_CPU)
        return cp_cpumask_set(ret_target, machine->cpus[place].cpu);
    return cp_cpumask_and(ret_target, &planner->allowed, &machine->domains[level][place].cpus);
}

static int grow_moves(struct cp_planner *planner)
{
    struct cp_plan *plan = &planner->plan;
    size_t max = CP_MAX(planner->max_moves * 2, 16u);
    struct cp_plan_move *moves;

    if (plan->n_moves < planner->max_moves)
        return 0;
    moves = reallocarray(plan->moves, max, sizeof(*moves));
    if (!moves)
        return -ENOMEM;
    plan->moves = moves;
    planner->max_moves = max;
    return 0;
}

static int add_move(struct cp_planner *planner, const struct cp_planner_pair *pair,
                    const struct cp_plan_finding *finding,
                    const struct cp_plan_candidate *candidate, uint32_t place)
{
    enum cp_level level = candidate->level;
    struct cp_plan_move move = {
        .tasks = {finding->tasks[0], finding->tasks[1]},
        .level = level,
        .rule = find_rule(planner, pair, finding, level),
        .relation = finding->verdict.relation,
        .gain = candidate->gain,
        .load = pair->tasks[0]->load + pair->tasks[1]->load,
    };
    int r = grow_moves(planner);

    if (r < 0)
        return r;
    r = make_target(planner, level, place, &move.target);
    if (r < 0) {
        cp_cpumask_done(&move.target);
        return r;
    }
    planner->plan.moves[planner->plan.n_moves++] = move;
    cp_room_claim(&planner->room, level, &move.target, move.load,
                  cp_planner_owner(planner, finding->tasks));
    pair->tasks[0]->given = pair->tasks[1]->given = true;
    return 0;
}

/* Takes the pair's load out of the outside load, as far as it is not. */
static void lift_pair(struct cp_planner *planner, const struct cp_planner_pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        struct cp_planner_task *task = pair->tasks[i];

        if (task->lifted)
            continue;
        if (task->lift.cpu == CP_DOMAIN_NONE)
            cp_room_measure_lift(&planner->room, task->last, task->load, &task->lift);
        cp_room_lift_again(&planner->room, &task->lift);
        task->lifted = true;
    }
}

/* Puts it back for those of the two that stay unplaced. */
static void put_back_pair(struct cp_planner *planner, const struct cp_planner_pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        struct cp_planner_task *task = pair->tasks[i];

        if (!task->lifted || task->given || task->placement != CP_PLACEMENT_NONE)
            continue;
        cp_room_put_back(&planner->room, &task->lift);
        task->lifted = false;
    }
}

static int assign(struct cp_planner *planner, const struct cp_planner_pair *pair,
                  struct cp_plan_finding *finding)
{
    uint32_t places[CP_LEVEL_MAX];

    for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++)
        places[l] = CP_DOMAIN_NONE;
    find_places(planner, pair, finding, places);
    if (pair->choice.n == 0) /* only what is possible was asked */
        return 0;
    for (size_t i = 0; i < pair->choice.n; i++) {
        struct cp_plan_candidate *candidate = find_candidate(finding, pair->choice.levels[i]);

        if (!candidate || !candidate->possible)
            continue;
        finding->outcome = CP_OUTCOME_PLACE;
        return add_move(planner, pair, finding, candidate, places[candidate->level]);
    }
    finding->outcome = pair->standing ? CP_OUTCOME_STAND : CP_OUTCOME_NO_ROOM;
    return 0;
}

/* A standing pair looks at the room that it would leave. */
static int assign_standing(struct cp_planner *planner, const struct cp_planner_pair *pair,
                           struct cp_plan_finding *finding)
{
    const struct cp_plan_placement *standing = pair->standing;
    int r;

    cp_room_release(&planner->room, standing->level, standing->target, standing->load);
    r = assign(planner, pair, finding);
    if (finding->outcome != CP_OUTCOME_PLACE)
        cp_room_claim(&planner->room, standing->level, standing->target, standing->load,
                      cp_planner_owner(planner, standing->tasks));
    return r;
}

int cp_planner_assign(struct cp_planner *planner, struct cp_plan_finding *finding)
{
    enum cp_plan_outcome outcome;
    struct cp_planner_pair pair;
    int r;

    cp_planner_recall(planner, finding, &pair);
    if (pair.tasks[0]->given || pair.tasks[1]->given) {
        finding->outcome = CP_OUTCOME_PLACED_OTHERWISE;
        finding->blocked_by =
            pair.tasks[0]->given && pair.tasks[1]->given ? 2 : pair.tasks[1]->given;
        put_back_pair(planner, &pair);
        return 0;
    }
    r = cp_planner_allow(planner, &pair, &outcome);
    if (r < 0 || outcome != CP_OUTCOME_PLACE)
        return r;
    if (pair.standing)
        return assign_standing(planner, &pair, finding);
    lift_pair(planner, &pair);
    r = assign(planner, &pair, finding);
    put_back_pair(planner, &pair);
    return r;
}
