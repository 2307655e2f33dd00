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

#define CP_ACT_DETAIL_SIZE 160

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
    char detail[CP_ACT_DETAIL_SIZE]; /* one line for people when the result is not DONE; else "" */
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
     * changed, the results say why: GONE, REFUSED, YIELDED (its mask is not changes[i].original any
     * more: left alone), and RESTORED for those that only had to share the others' fate; negative
     * errno: likewise, *error says what of ours failed (-EINVAL: an empty set or target, a task
     * twice; -E2BIG: more than CP_JOURNAL_MAX_SET).
     * Kernel threads and tasks with PF_NO_SETAFFINITY are refused once more here; whether a task
     * may be moved at all has been decided before. A task that is ours already moves on to the new
     * target and keeps the original of its first placement; changes[i].original and had_user_mask
     * are not looked at then, and if the set fails it goes back to its former target.
     */
    int (*place)(struct cp_actuator *actuator, uint64_t decision, const struct cp_cpumask *target,
                 struct cp_act_change *changes, size_t n_changes, struct cp_error *error);
    /*
     * Gives back one task's mask if it is ours: had none → all possible CPUs; had one → that one,
     * or all with a note in detail if it no longer meets the cpuset. RESTORED, YIELDED, GONE, or
     * REFUSED (stays ours, to be tried again). A task that is not ours: GONE.
     */
    enum cp_act_result (*release)(struct cp_actuator *actuator, struct cp_task_id task,
                                  char detail[static CP_ACT_DETAIL_SIZE]);
    /* Looks whether our mask is still there: DONE, GONE or YIELDED (then no longer ours). A drift
     * explained by a cpuset or hotplug change is the kernel's and counts as DONE. */
    enum cp_act_result (*check)(struct cp_actuator *actuator, struct cp_task_id task,
                                char detail[static CP_ACT_DETAIL_SIZE]);
    /*
     * A new child of a guarded task has inherited our mask: gives it the parent's original, also
     * when the parent was released a moment ago. RESTORED, GONE, YIELDED (its mask is not ours),
     * REFUSED. Also for a placed thread that is not its process's leader and runs a new program: it
     * goes on under the leader's identity (child), and its own (parent) is gone.
     */
    enum cp_act_result (*release_child)(struct cp_actuator *actuator, struct cp_task_id child,
                                        struct cp_task_id parent);
    /*
     * Looks through the processes of placed tasks (and of those released in the last seconds), and
     * through the children of those tasks, for threads that started after the placement, carry
     * exactly its mask though their cpuset is wider, and are not placed: they have inherited it,
     * and get the original. Call it after each placement and when events were lost. Number found.
     */
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
struct cp_journal_entry;

/*
 * The live machine's actuator. Borrows root, wake (NULL: nothing is guarded) and journal; refs
 * machine. What is due in the journal is held from the beginning, so releasing all that is held
 * restores it. -EINVAL with *error if root or machine is not live.
 */
int cp_affinity_actuator_new(const struct cp_root *root, struct cp_machine *machine,
                             struct cp_wake_source *wake, struct cp_journal *journal,
                             struct cp_actuator **ret_actuator, struct cp_error *error);
struct cp_actuator *cp_dry_actuator_new(void);                      /* NULL: no memory */
struct cp_actuator *cp_actuator_free(struct cp_actuator *actuator); /* accepts, returns NULL */

/* What cp_restore_all() did, in tasks. */
struct cp_restore_summary {
    unsigned due;
    unsigned restored;
    unsigned yielded;
    unsigned gone;
    unsigned refused;
    unsigned strays; /* threads and children with an inherited mask that got the original */
};

/* Called for each task that was due; entry is borrowed, detail may be "". */
typedef void (*cp_restore_handler)(const struct cp_journal_entry *entry, enum cp_act_result result,
                                   const char *detail, void *userdata);

/*
 * Gives back everything that is due in the journal, then looks for threads and child processes that
 * inherited a mask while no daemon ran. Needs no wake source and no bus. handler may be NULL.
 * 0: the summary tells; those refused stay due. Negative errno: the machine could not be read or
 * there is no memory; nothing was done.
 */
int cp_restore_all(const struct cp_root *root, struct cp_journal *journal,
                   cp_restore_handler handler, void *userdata,
                   struct cp_restore_summary *ret_summary);
