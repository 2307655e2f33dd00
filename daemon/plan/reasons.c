/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names and sentences for what the plan found. The names are an interface (D-Bus, JSON): they are
 * added to, never changed.
 */
#include "plan/plan.h"

#include "base/cleanup.h"

static const struct {
    const char *name;
    const char *sentence;
} outcomes[] = {
    [CP_OUTCOME_PLACE] = {"place", "The two are to be placed."},
    [CP_OUTCOME_STAND] = {"stand", "The placement that the two have is right and stays."},
    [CP_OUTCOME_NO_RELATION] = {"no-relation",
                                "The two do not hand work to each other one to one."},
    [CP_OUTCOME_PAIRS_OFF] = {"pairs-off", "The policy says pairs: off."},
    [CP_OUTCOME_NEAR_ENOUGH] = {"near-enough",
                                "No other place is predicted to gain enough to be worth a move."},
    [CP_OUTCOME_KERNEL_THREAD] = {"kernel-thread", "Kernel threads are never moved."},
    [CP_OUTCOME_NO_SETAFFINITY] = {"no-setaffinity",
                                   "The kernel forbids a change of this task's CPUs."},
    [CP_OUTCOME_SCHED_CLASS] = {"sched-class",
                                "Only tasks of SCHED_OTHER and SCHED_BATCH are moved."},
    [CP_OUTCOME_TOO_YOUNG] = {"too-young", "The task is younger than the policy's min-age."},
    [CP_OUTCOME_FOREIGN_MASK] = {"foreign-mask",
                                 "Somebody else bound the task to some of its CPUs, and the policy "
                                 "says affinity: respect."},
    [CP_OUTCOME_OTHER_OWNER] = {"other-owner",
                                "The two belong to different users, and the policy says across: "
                                "false."},
    [CP_OUTCOME_OTHER_NODE] = {"other-node",
                               "It would take a task away from the NUMA node that holds its "
                               "memory."},
    [CP_OUTCOME_NO_COMMON_CPU] = {"no-common-cpu",
                                  "There is no usable CPU that both of them may use."},
    [CP_OUTCOME_NO_ROOM] = {"no-room",
                            "Every place that would gain is full, or kept for other placements."},
    [CP_OUTCOME_SETTLING] = {"settling",
                             "A task is moved at most once in the policy's settle time."},
    [CP_OUTCOME_BACKING_OFF] = {"backing-off",
                                "An earlier placement of the two did not pay; it waits before the "
                                "next try."},
    [CP_OUTCOME_VETOED] = {"vetoed",
                           "Undone by hand: it stays so until coplacectl allow or the end of a "
                           "task."},
    [CP_OUTCOME_GONE] = {"gone", "One of the two has ended."},
    [CP_OUTCOME_UNKNOWN_FACTS] = {"unknown-facts",
                                  "What must be known of the task before it may be moved could not "
                                  "be read."},
    [CP_OUTCOME_PLACED_OTHERWISE] = {"placed-otherwise",
                                     "One of the two is placed with another partner."},
};
_Static_assert(CP_ELEMENTS(outcomes) == CP_OUTCOME_MAX, "every outcome has its words");

static const char *const rule_names[] = {
    [CP_RULE_HANDOFF] = "handoff",
    [CP_RULE_IDLE_WAKEE] = "idle-wakee",
    [CP_RULE_IDLE_SIBLING] = "idle-sibling",
    [CP_RULE_POLICY] = "policy",
};
_Static_assert(CP_ELEMENTS(rule_names) == CP_RULE_MAX, "every rule has its name");

const char *cp_plan_outcome_to_string(enum cp_plan_outcome outcome)
{
    return (unsigned)outcome < CP_OUTCOME_MAX ? outcomes[outcome].name : NULL;
}

const char *cp_plan_outcome_explain(enum cp_plan_outcome outcome)
{
    return (unsigned)outcome < CP_OUTCOME_MAX ? outcomes[outcome].sentence : NULL;
}

const char *cp_plan_rule_to_string(enum cp_plan_rule rule)
{
    return (unsigned)rule < CP_RULE_MAX ? rule_names[rule] : NULL;
}
