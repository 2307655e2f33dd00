/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes masks and gives them back. The only room that calls sched_setaffinity() on others.
 *
 * The actuator owns the set of masks that are ours: for each task its identity, the mask it had,
 * whether that was a user mask, and the mask we gave. Each change is in the journal before it is
 * made, and the wake source guards the task before that (children inherit masks). Implementations:
 * affinity (the live machine) and dry (observe mode, recorded machines: changes nothing, remembers
 * nothing). Rules: design section 5.
 */
#pragma once

#include "base/cpumask.h"
#include "base/error.h"
#include "base/root.h"
#include "base/task-id.h"
#include "machine/machine.h"
#include "registry/task-facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What became of one task. */
enum cp_act_result {
    CP_ACT_DONE,     /* the mask is as wanted, read back */
    CP_ACT_GONE,     /* the task ended (or the TID is another task now) */
    CP_ACT_REFUSED,  /* the kernel said no (EPERM, EINVAL) or gave another mask than asked */
    CP_ACT_YIELDED,  /* somebody else changed the mask after us: left alone, no longer ours */
    CP_ACT_RESTORED, /* the former mask is back */
    CP_ACT_DRY,      /* nothing was changed, as the actuator is dry */
    CP_ACT_FAILED,   /* an error of ours (journal, memory): nothing was changed */
    CP_ACT_RESULT_MAX,
};

const char *cp_act_result_to_string(enum cp_act_result result);

struct cp_act_change {
    struct cp_task_id task;
    pid_t tgid;
    struct cp_cpumask original; /* owned: /proc/TID/status before the change */
    bool had_user_mask;
    /* Filled by place(): */
    enum cp_act_result result;
    char detail[160]; /* one line for people when the result is not DONE; else "" */
};

/* A mask that is ours now. Borrowed from the actuator until its next call. */
struct cp_act_held {
    struct cp_task_id task;
    uint64_t decision;
    const struct cp_cpumask *original;
    const struct cp_cpumask *target;
    bool had_user_mask;
};

struct cp_actuator;

struct cp_actuator_ops {
    const char *name; /* "affinity", "dry" */
    /*
     * Gives every task of the set the target mask, or none: journal first, then guard, then for
     * each: identity and mask as in the facts, set, read back, identity again. If one fails, those
     * already changed are given back. 0: each changes[i].result is DONE (or DRY); 1: nothing is
     * changed, the results say why; negative errno: likewise, *error says what of ours failed.
     */
    int (*place)(struct cp_actuator *actuator, uint64_t decision, const struct cp_cpumask *target,
                 struct cp_act_change *changes, size_t n_changes, struct cp_error *error);
    /*
     * Gives back one task's mask if it is ours: had none → all possible CPUs; had one → that one,
     * or all with a note in detail if it no longer meets the cpuset. RESTORED, YIELDED, GONE, or
     * REFUSED (stays ours, to be tried again). A task that is not ours: GONE.
     */
    enum cp_act_result (*release)(struct cp_actuator *actuator, struct cp_task_id task,
                                  char detail[static 160]);
    /* Looks whether our mask is still there: DONE, GONE or YIELDED (then no longer ours). A drift
     * explained by a cpuset or hotplug change is the kernel's and counts as DONE. */
    enum cp_act_result (*check)(struct cp_actuator *actuator, struct cp_task_id task,
                                char detail[static 160]);
    /* A new child of a guarded task has inherited our mask: gives it the parent's original.
     * RESTORED, GONE, YIELDED (its mask is not ours), REFUSED. */
    enum cp_act_result (*release_child)(struct cp_actuator *actuator, struct cp_task_id child,
                                        struct cp_task_id parent);
    /* Looks through the processes of placed tasks for threads that carry a mask of ours without
     * being placed (started between flag and mask), and gives them their original. Number found. */
    unsigned (*scan_strays)(struct cp_actuator *actuator);
    /* The i-th held mask, or false behind the last. */
    bool (*held)(struct cp_actuator *actuator, size_t i, struct cp_act_held *ret_held);
    const struct cp_act_held *(*find)(struct cp_actuator *actuator, struct cp_task_id task);
    int (*set_machine)(struct cp_actuator *actuator, struct cp_machine *machine);
    void (*free)(struct cp_actuator *actuator); /* gives nothing back: release first */
};

struct cp_actuator {
    const struct cp_actuator_ops *ops;
};

struct cp_journal;

/* Borrows root, wake and journal; refs machine. */
int cp_affinity_actuator_new(const struct cp_root *root, struct cp_machine *machine,
                             struct cp_wake_source *wake, struct cp_journal *journal,
                             struct cp_actuator **ret_actuator, struct cp_error *error);
struct cp_actuator *cp_dry_actuator_new(void);                      /* NULL: no memory */
struct cp_actuator *cp_actuator_free(struct cp_actuator *actuator); /* accepts, returns NULL */
