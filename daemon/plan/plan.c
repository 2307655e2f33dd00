/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a plan: the walk over the candidates.
 *
 * Twice over all pairs, strongest first. The first pass judges each by everything but room; the
 * load of those that want a place is then taken out of what the CPUs did, since it will go where
 * the plan puts it. The second pass gives them places, each claim counting at once. A pair that
 * finds none is outside load for those after it.
 */
#include "plan/plan.h"

#include "base/cleanup.h"
#include "plan/planner.h"

#include <errno.h>
#include <stdlib.h>

void cp_plan_done(struct cp_plan *plan)
{
    for (size_t i = 0; i < plan->n_moves; i++)
        cp_cpumask_done(&plan->moves[i].target);
    free(plan->moves);
    free(plan->findings);
    *plan = (struct cp_plan){0};
}

static void planner_done(struct cp_planner *planner)
{
    cp_room_done(&planner->room);
    cp_holds_done(&planner->holds);
    cp_cpumask_done(&planner->allowed);
    cp_plan_done(&planner->plan);
    free(planner->tasks);
}

/* Index of an online CPU in machine->cpus, or CP_DOMAIN_NONE. */
static uint32_t cpu_index(const struct cp_machine *machine, struct cp_cpu cpu)
{
    const struct cp_machine_cpu *record = cp_machine_find_cpu(machine, cpu);

    return record ? (uint32_t)(record - machine->cpus) : CP_DOMAIN_NONE;
}

static double task_load(const struct cp_pairs *pairs, struct cp_task_id task)
{
    const struct cp_pair_task *known = cp_pairs_find_task(pairs, task);

    return known ? known->load : 0.0;
}

static int planner_init(struct cp_planner *planner, const struct cp_plan_input *input)
{
    int r;

    *planner = (struct cp_planner){.input = input};
    planner->plan.machine_generation = input->machine->generation;
    cp_machine_levels_present(input->machine, planner->present);
    planner->tasks = calloc(CP_MAX(input->n_facts, 1u), sizeof(*planner->tasks));
    planner->plan.findings =
        calloc(CP_MAX(input->n_candidates, 1u), sizeof(*planner->plan.findings));
    if (!planner->tasks || !planner->plan.findings)
        return -ENOMEM;
    for (size_t i = 0; i < input->n_facts; i++) {
        planner->tasks[i].load = task_load(input->pairs, input->facts[i].id);
        planner->tasks[i].last = cpu_index(input->machine, input->facts[i].last_cpu);
        planner->tasks[i].placement = CP_PLACEMENT_NONE;
        planner->tasks[i].lift.cpu = CP_DOMAIN_NONE;
    }
    r = cp_holds_init(&planner->holds, input->holds, input->n_holds);
    if (r < 0)
        return r;
    return cp_room_init(&planner->room, input->machine, input->busy_permille);
}

static void lift_task(struct cp_planner *planner, struct cp_planner_task *task)
{
    if (task->lifted)
        return;
    cp_room_lift(&planner->room, task->last, task->load, &task->lift);
    task->lifted = true;
}

/* The load of a placed task is its claim's: out of the outside load with it, wherever it ran. */
static void lift_placement(struct cp_planner *planner, size_t index)
{
    const struct cp_plan_placement *placement = &planner->input->placements[index];

    /* Its CPUs went offline: the kernel has let the tasks go anywhere. */
    if (!cp_cpumask_intersects(placement->target, &planner->input->machine->usable))
        return;
    for (unsigned i = 0; i < 2; i++) {
        size_t fact = cp_planner_find_facts(planner->input, placement->tasks[i]);
        struct cp_room_lift lift;
        struct cp_cpu first;

        if (fact != SIZE_MAX) {
            struct cp_planner_task *task = &planner->tasks[fact];

            /* Its statistics begin anew with the placement. */
            if (task->load <= 0.0)
                task->load = placement->load / 2.0;
            task->placement = index;
            lift_task(planner, task);
        } else if (cp_cpumask_next(placement->target, 0, &first)) {
            /* Without facts: it is where it was put. */
            cp_room_lift(&planner->room, cpu_index(planner->input->machine, first),
                         placement->load / 2.0, &lift);
        }
    }
}

/* First pass: every finding but for what room decides. */
static int judge_all(struct cp_planner *planner)
{
    const struct cp_plan_input *input = planner->input;

    for (size_t i = 0; i < input->n_candidates; i++) {
        struct cp_plan_finding *finding = &planner->plan.findings[i];
        struct cp_planner_pair pair;
        int r = cp_planner_judge(planner, input->candidates[i], finding, &pair);

        if (r < 0)
            return r;
        planner->plan.n_findings++;
        if (finding->outcome == CP_OUTCOME_PLACE)
            for (unsigned k = 0; k < 2; k++)
                lift_task(planner, pair.tasks[k]);
    }
    return 0;
}

static void claim_standing(struct cp_planner *planner)
{
    const struct cp_plan_input *input = planner->input;

    cp_room_settle(&planner->room);
    for (size_t i = 0; i < input->n_placements; i++)
        cp_room_claim(&planner->room, input->placements[i].level, input->placements[i].target,
                      input->placements[i].load,
                      cp_planner_owner(planner, input->placements[i].tasks));
}

static bool is_for_second_pass(enum cp_plan_outcome outcome)
{
    return outcome == CP_OUTCOME_PLACE || outcome == CP_OUTCOME_NEAR_ENOUGH ||
           outcome == CP_OUTCOME_STAND;
}

/* Second pass: places for those that want one; for the others what would be possible. */
static int assign_all(struct cp_planner *planner)
{
    for (size_t i = 0; i < planner->plan.n_findings; i++) {
        struct cp_plan_finding *finding = &planner->plan.findings[i];
        int r = 0;

        if (is_for_second_pass(finding->outcome))
            r = cp_planner_assign(planner, finding);
        if (r < 0)
            return r;
    }
    return 0;
}

int cp_plan_make(const struct cp_plan_input *input, struct cp_plan *ret_plan)
{
    _cleanup_(planner_done) struct cp_planner planner;
    int r = planner_init(&planner, input);

    if (r < 0)
        return r;
    for (size_t i = 0; i < input->n_placements; i++)
        lift_placement(&planner, i);
    r = judge_all(&planner);
    if (r < 0)
        return r;
    claim_standing(&planner);
    r = assign_all(&planner);
    if (r < 0)
        return r;
    *ret_plan = planner.plan;
    planner.plan = (struct cp_plan){0};
    return 0;
}
