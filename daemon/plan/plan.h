/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The plan: from relations to moves with reasons.
 *
 * A pure function of (machine, costs, policy, pairs, facts, load, standing placements, holds, now):
 * the same input gives the same plan, and a plan applied and planned again is empty. No system
 * call, no clock, no global, no log. The rules are those of design section 4 ("Plan"): the loosest
 * mask that gets the gain, capacity first, claims count at once, owners, memory, hysteresis.
 *
 * A plan carries ids and domains, never pointers into tables that may change.
 */
#pragma once

#include "base/cpumask.h"
#include "base/task-id.h"
#include "machine/costs.h"
#include "machine/machine.h"
#include "pair/pair.h"
#include "policy/policy.h"
#include "registry/task-facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was found for a pair. Stable words for people and scripts; every value but PLACE and STAND
 * is a reason for doing nothing. */
enum cp_plan_outcome {
    CP_OUTCOME_PLACE,       /* a move is in the plan */
    CP_OUTCOME_STAND,       /* its placement stands and is right */
    CP_OUTCOME_NO_RELATION, /* relation none or wide; see the verdict's reason */
    CP_OUTCOME_PAIRS_OFF,   /* policy pairs: off */
    CP_OUTCOME_NEAR_ENOUGH, /* no level is predicted to gain (≥ min-gain and the margin) */
    CP_OUTCOME_KERNEL_THREAD,
    CP_OUTCOME_NO_SETAFFINITY,   /* PF_NO_SETAFFINITY */
    CP_OUTCOME_SCHED_CLASS,      /* not SCHED_OTHER or SCHED_BATCH */
    CP_OUTCOME_TOO_YOUNG,        /* below min-age */
    CP_OUTCOME_FOREIGN_MASK,     /* somebody else narrowed its mask, affinity: respect */
    CP_OUTCOME_OTHER_OWNER,      /* real uids differ and across is false */
    CP_OUTCOME_OTHER_NODE,       /* would leave the node that holds its memory */
    CP_OUTCOME_NO_COMMON_CPU,    /* the two share no usable CPU (cpusets, offline, isolated) */
    CP_OUTCOME_NO_ROOM,          /* every candidate is full, saturated or claimed */
    CP_OUTCOME_SETTLING,         /* moved less than settle ago */
    CP_OUTCOME_BACKING_OFF,      /* was undone; waits */
    CP_OUTCOME_VETOED,           /* undone by hand; until allow */
    CP_OUTCOME_GONE,             /* one of the two has ended */
    CP_OUTCOME_UNKNOWN_FACTS,    /* facts could not be read */
    CP_OUTCOME_PLACED_OTHERWISE, /* one of the two has a placement with another partner */
    CP_OUTCOME_MAX,
};

const char *cp_plan_outcome_to_string(enum cp_plan_outcome outcome); /* "place", "no-room", … */
/* One sentence for people. */
const char *cp_plan_outcome_explain(enum cp_plan_outcome outcome);

/* The rule by which a move was chosen (design, section 2). */
enum cp_plan_rule {
    CP_RULE_HANDOFF,      /* serial pair, stacked on one CPU */
    CP_RULE_IDLE_WAKEE,   /* overlapping pair, brought into one LLC (or core, node) */
    CP_RULE_IDLE_SIBLING, /* overlapping pair that shared a CPU, moved apart inside the LLC */
    CP_RULE_POLICY,       /* the level was set by the policy (pairs: same-…) */
    CP_RULE_MAX,
};

const char *cp_plan_rule_to_string(enum cp_plan_rule rule);

/* One level that was considered for a pair. */
struct cp_plan_candidate {
    enum cp_level level;
    double total_ns; /* predicted loss of one hand-off there */
    double gain;     /* ns a second against now; 0 for where it is */
    bool possible;   /* a domain of that level had room and was allowed. Looked at only for pairs
                        that nothing else stops (PLACE, STAND, NEAR_ENOUGH, NO_ROOM); false else,
                        and for the machine as a whole, which is never a target. */
};

struct cp_plan_move {
    struct cp_task_id tasks[2]; /* the pair; both get the mask */
    enum cp_level level;        /* what the two will share */
    struct cp_cpumask target;   /* owned: one CPU, or the usable CPUs of the domain */
    enum cp_plan_rule rule;
    enum cp_relation relation;
    double gain; /* predicted, ns a second */
    double load; /* CPUs that the two used when it was decided: the claim, until it is measured */
};

/* What was found for each pair that was looked at. */
struct cp_plan_finding {
    struct cp_task_id tasks[2];
    struct cp_pair_verdict verdict;
    enum cp_plan_outcome outcome;
    unsigned blocked_by;     /* 0 or 1: the task of tasks[] that the outcome speaks of; 2: both */
    enum cp_level level_now; /* the level of most of its hand-offs; where no level was seen, that of
                                the CPUs on which the two ran last */
    size_t n_candidates;
    struct cp_plan_candidate candidates[CP_LEVEL_MAX];
    uint64_t until_ns; /* SETTLING, BACKING_OFF, TOO_YOUNG: when it may be looked at again */
};

/*
 * A placement that stands. Also a claim: its CPUs count as taken by load. A task has at most one.
 * One of which no CPU is usable any more does not count: its pair is planned anew.
 */
struct cp_plan_placement {
    struct cp_task_id tasks[2];
    enum cp_level level;
    const struct cp_cpumask *target; /* borrowed */
    double load;                     /* CPUs; for a fresh placement cp_plan_move.load */
    uint64_t since_ns;
};

/* A pair or task that must wait. */
struct cp_plan_hold {
    struct cp_task_id tasks[2]; /* a hold of one task has tasks[1].tid = 0 */
    uint64_t until_ns;          /* UINT64_MAX: vetoed */
    enum cp_plan_outcome why;   /* SETTLING, BACKING_OFF or VETOED */
};

struct cp_plan_input {
    const struct cp_machine *machine;
    const struct cp_costs *costs;
    const struct cp_policy *policy;
    const struct cp_pairs *pairs;
    size_t n_candidates;                     /* pairs to look at, strongest first */
    const struct cp_pair *const *candidates; /* borrowed from pairs */
    size_t n_facts;
    /*
     * Sorted by id; a task without facts: UNKNOWN_FACTS. For a task whose mask is ours at present,
     * allowed and user_mask must be what they were before we changed them: else our own mask would
     * be taken for somebody else's. Facts of standing placements' tasks are wanted as well: where
     * they ran last tells which CPU's load is theirs.
     */
    const struct cp_task_facts *facts;
    const uint16_t *busy_permille; /* by index in machine->cpus; NULL: unknown, taken as idle */
    size_t n_placements;
    const struct cp_plan_placement *placements;
    size_t n_holds;
    const struct cp_plan_hold *holds;
    uint64_t now_ns;
};

struct cp_plan {
    uint64_t machine_generation;
    size_t n_moves;
    struct cp_plan_move *moves;       /* owned */
    size_t n_findings;                /* one for each candidate, in the same order */
    struct cp_plan_finding *findings; /* owned */
};

void cp_plan_done(struct cp_plan *plan);

/* Makes the plan. -ENOMEM: nothing was made. */
int cp_plan_make(const struct cp_plan_input *input, struct cp_plan *ret_plan);

/*
 * May this task be moved at all (design, section 5, "Movable")? PLACE if so, else the reason, the
 * lasting ones first: GONE (it is exiting), KERNEL_THREAD, NO_SETAFFINITY, SCHED_CLASS,
 * FOREIGN_MASK, TOO_YOUNG. Also asked by the actuator immediately before it changes a mask. For
 * TOO_YOUNG *ret_until_ns (NULL accepted) is when it will be old enough; else it is unchanged.
 * As in the plan's input, the masks of a task that we hold must be those it had before us.
 */
enum cp_plan_outcome cp_plan_movable(const struct cp_task_facts *facts,
                                     const struct cp_policy *policy, uint64_t now_ns,
                                     uint64_t *ret_until_ns);
