/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ledger: each decision with its reason, what was predicted, what was observed before and
 * after, and its state; and what must wait because of it (settling, backing off, vetoes).
 *
 * Pure but for memory: time is an argument. Bounded: the oldest decisions that are not in effect go
 * first. Decides nothing about masks: who changes a state has changed the masks before.
 *
 * States. A decision begins as PROPOSED, APPLIED or FAILED. From there:
 *     PROPOSED -> APPLIED, or any end;  APPLIED -> KEPT, or any end;  KEPT -> any end
 * where the ends are UNDONE, YIELDED, FAILED and RESTORED, which nothing leaves.
 */
#pragma once

#include "base/cpumask.h"
#include "base/task-id.h"
#include "pair/pair.h"
#include "plan/plan.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cp_decision_state {
    CP_DECISION_PROPOSED, /* observe mode: would be applied */
    CP_DECISION_APPLIED,  /* in effect, not yet judged */
    CP_DECISION_KEPT,     /* in effect, and it helped */
    CP_DECISION_UNDONE,   /* did not pay, or undone by hand; masks given back */
    CP_DECISION_YIELDED,  /* somebody else changed a mask after us */
    CP_DECISION_FAILED,   /* the kernel refused, or an error of ours */
    CP_DECISION_RESTORED, /* given back since it had served: a task ended, exec, quiet, stop */
    CP_DECISION_STATE_MAX,
};

const char *cp_decision_state_to_string(enum cp_decision_state state);
static inline bool cp_decision_state_is_standing(enum cp_decision_state state)
{
    return state == CP_DECISION_APPLIED || state == CP_DECISION_KEPT;
}

/* What one or more windows showed of a pair. */
struct cp_observation {
    uint64_t begin_ns;
    uint64_t end_ns;
    double rate_hz;       /* hand-offs a second, both directions */
    double loss_ns;       /* per hand-off: mean latency and waiting after preemption */
    double latency_ns;    /* mean */
    double outside_share; /* largest of the two tasks: waiting that the partner does not explain */
    uint64_t handoffs;    /* behind the figures; 0: nothing was seen */
};

struct cp_decision {
    uint64_t id;
    enum cp_decision_state state;
    struct cp_task_id tasks[2];
    char comm[2][CP_COMM_SIZE];
    pid_t tgid[2];
    uid_t uid[2];
    struct cp_cpumask target; /* owned */
    enum cp_level level;
    enum cp_level level_before;
    enum cp_plan_rule rule;
    enum cp_relation relation;
    char policy[64];
    double predicted_gain; /* ns a second */
    double load;           /* of the two together at the decision, CPUs */
    size_t n_candidates;
    struct cp_plan_candidate candidates[CP_LEVEL_MAX];
    struct cp_observation before;
    struct cp_observation after; /* handoffs 0: not yet observed */
    uint64_t hot_ns;             /* when the pair was reported hot; 0 unknown */
    uint64_t decided_ns;
    uint64_t applied_ns; /* 0: not */
    uint64_t changed_ns; /* last change of state */
    unsigned n_unclear;  /* kept by who verifies: windows without a verdict */
    unsigned n_strange;  /* likewise: windows in a row in which the two were no pair */
    bool backed_off;     /* its failure has lengthened the pair's back-off already */
    char why[200];       /* reason of the present state, for people */
};

/* Outcome of comparing before and after. */
enum cp_judgement {
    CP_JUDGE_HELPED,
    CP_JUDGE_DID_NOT_HELP,
    CP_JUDGE_CANNOT_TELL, /* too few hand-offs in a window: look again */
};

/*
 * Did a placement help? Rate up by the margin: helped. Else loss per hand-off down by the margin
 * while the rate did not fall by the margin: helped. Everything else with ≥ 20 hand-offs in both
 * observations: it did not. why gets the numbers, for people.
 */
enum cp_judgement cp_judge(const struct cp_observation *before, const struct cp_observation *after,
                           double margin, char why[static 200]);

struct cp_ledger;

struct cp_ledger *cp_ledger_new(size_t max_decisions, uint64_t settle_ns); /* NULL: no memory */
struct cp_ledger *cp_ledger_free(struct cp_ledger *ledger);                /* accepts NULL */

/*
 * Takes a copy of *decision over (its target is moved and becomes empty). Ids come from the
 * journal and rise; one that is in the ledger already is refused. Borrowed result, valid until a
 * later add evicts the decision, which never happens while it stands. NULL: no memory, an id or
 * state that cannot be, or no room (every decision stands); *decision is then as before.
 */
struct cp_decision *cp_ledger_add(struct cp_ledger *ledger, struct cp_decision *decision);
/* false: every decision stands and there are as many as may be; do not place more. */
bool cp_ledger_has_room(const struct cp_ledger *ledger);
struct cp_decision *cp_ledger_find(struct cp_ledger *ledger, uint64_t id);
/* The newest decision of a task (standing ones first), or NULL. */
struct cp_decision *cp_ledger_find_task(struct cp_ledger *ledger, struct cp_task_id task);
/* Decisions with an id above cursor, rising; fills at most limit. Borrowed. */
size_t cp_ledger_list(struct cp_ledger *ledger, uint64_t cursor, size_t limit,
                      struct cp_decision **ret_decisions);
size_t cp_ledger_count(const struct cp_ledger *ledger, enum cp_decision_state state);

/*
 * Changes the state with its reason (cut to fit). Setting the state that it has, unless it is an
 * end, gives the reason anew and leaves changed_ns. false: there is no such change (see above);
 * nothing is done.
 * Entering UNDONE, YIELDED or FAILED lengthens the pair's back-off as cp_ledger_back_off() does:
 * whether it did not pay, the kernel refused, or somebody else wanted it otherwise, the same must
 * not be tried again at once. Entering KEPT ends the back-off and forgets its length.
 */
bool cp_ledger_set_state(struct cp_ledger *ledger, struct cp_decision *decision,
                         enum cp_decision_state state, uint64_t now_ns, const char *why);
/* Lets the pair wait: settle (at least 100 ms), 2 × settle, … at most 1 h from now_ns. Once for
 * each decision, further calls do nothing. A pair that stays quiet for 1 h after its wait begins
 * anew. Without memory the pair does not wait. */
void cp_ledger_back_off(struct cp_ledger *ledger, struct cp_decision *decision, uint64_t now_ns);
/* A manual undo: until cp_ledger_allow() or the end of a task. -ENOMEM; -ENOSPC: there are as many
 * vetoes as may be. */
int cp_ledger_veto(struct cp_ledger *ledger, struct cp_task_id a, struct cp_task_id b);
/* Lifts vetoes and back-offs of a task, or all if task.tid is 0. Number of pairs lifted. */
unsigned cp_ledger_allow(struct cp_ledger *ledger, struct cp_task_id task);
/* A task ended: its vetoes and back-offs go, its decisions stay. */
void cp_ledger_forget_task(struct cp_ledger *ledger, struct cp_task_id task);

/*
 * What must wait at now_ns, as plan wants it: tasks whose placement was applied less than settle
 * ago, pairs that back off, vetoed pairs (until UINT64_MAX). Sorted by tasks, each once. Borrowed
 * until the next call.
 */
size_t cp_ledger_holds(struct cp_ledger *ledger, uint64_t now_ns,
                       const struct cp_plan_hold **ret_holds);
/*
 * The standing placements as plan wants them, rising by decision; targets are borrowed from the
 * decisions. Load is that of the two tasks in the pair table where a window has shown both since
 * they were placed, else the load at the decision. Borrowed until the next call.
 */
size_t cp_ledger_placements(struct cp_ledger *ledger, const struct cp_pairs *pairs,
                            const struct cp_plan_placement **ret_placements);
