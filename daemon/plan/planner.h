/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a plan in the making knows: shared by the walk over pairs (plan.c), the checks that need no
 * room (eligible.c, memory.c) and the choice of places (assign.c). Private to plan/. Pure.
 */
#pragma once

#include "plan/choice.h"
#include "plan/holds.h"
#include "plan/plan.h"
#include "plan/room.h"

#define CP_PLACEMENT_NONE SIZE_MAX

/* What the plan keeps of a task beside its facts. */
struct cp_planner_task {
    double load;              /* CPUs */
    uint32_t last;            /* where it ran last: index in machine->cpus, or CP_DOMAIN_NONE */
    size_t placement;         /* in input->placements, or CP_PLACEMENT_NONE */
    bool given;               /* a move of this plan is for it */
    bool lifted;              /* its load is out of the outside load */
    struct cp_room_lift lift; /* valid once it was lifted */
};

struct cp_planner {
    const struct cp_plan_input *input; /* borrowed */
    struct cp_room room;
    struct cp_holds holds;
    struct cp_planner_task *tasks; /* as input->facts */
    bool present[CP_LEVEL_MAX];    /* levels that this machine has */
    struct cp_cpumask allowed;     /* scratch: of the pair at hand */
    struct cp_plan plan;           /* so far */
    size_t max_moves;              /* room in plan.moves */
};

/* A pair as the plan sees it. */
struct cp_planner_pair {
    const struct cp_task_facts *facts[2];     /* NULL: none */
    struct cp_planner_task *tasks[2];         /* NULL: none */
    const struct cp_plan_placement *standing; /* its own placement, or NULL */
    double present_ns;                        /* loss of one hand-off now */
    struct cp_choice choice;
};

/* Index of a task's facts, or SIZE_MAX. */
size_t cp_planner_find_facts(const struct cp_plan_input *input, struct cp_task_id task);

/*
 * First pass: judges a pair by everything but room and fills *finding and *ret_pair. 0:
 * finding->outcome is PLACE where the pair wants a place of ret_pair->choice; else STAND or a
 * reason. -ENOMEM.
 */
int cp_planner_judge(struct cp_planner *planner, const struct cp_pair *pair,
                     struct cp_plan_finding *finding, struct cp_planner_pair *ret_pair);

/* The same look at a finding that was judged before: facts, standing placement and choice. */
void cp_planner_recall(const struct cp_planner *planner, const struct cp_plan_finding *finding,
                       struct cp_planner_pair *ret_pair);

/*
 * Sets planner->allowed to the usable CPUs that both tasks may use. *ret_outcome: PLACE if there
 * are any; NO_COMMON_CPU, or OTHER_NODE where memory keeps them from it. -ENOMEM.
 */
int cp_planner_allow(struct cp_planner *planner, const struct cp_planner_pair *pair,
                     enum cp_plan_outcome *ret_outcome);

/* Second pass, for a finding that is PLACE, NEAR_ENOUGH or STAND: fills the candidates' possible;
 * where the pair wants a place, decides the outcome and, with PLACE, adds the move and its claim.
 * -ENOMEM. */
int cp_planner_assign(struct cp_planner *planner, struct cp_plan_finding *finding);

/* Whose claim a pair's is. */
struct cp_room_owner cp_planner_owner(const struct cp_planner *planner,
                                      const struct cp_task_id tasks[2]);
