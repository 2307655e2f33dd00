/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One task's mask: looking at it, setting it, giving a former one back. Shared by the actuator and
 * by cp_restore_all(). Private to act/; keeps no account of what is ours.
 */
#pragma once

#include "act/act.h"
#include "act/drift.h"
#include "act/journal.h"
#include "base/proc.h"
#include "registry/cpuset-view.h"

#include <stdio.h>

/* What of the machine decides over masks. */
struct cp_act_context {
    const struct cp_root *root; /* borrowed */
    struct cp_cpumask possible; /* owned */
    struct cp_cpumask isolated; /* owned: isolcpus and nohz_full */
    struct cp_cpuset_mount cpuset_mount;
    bool user_masks_survive; /* see cp_drift_judge() */
};

/* Reads the kernel's lists below root. Negative errno with *error. */
int cp_act_context_init(struct cp_act_context *context, const struct cp_root *root,
                        struct cp_error *error);
void cp_act_context_done(struct cp_act_context *context);

/* Fills a detail line from a printf format, cut if it does not fit. */
#define cp_act_detail(detail, ...) ((void)snprintf(detail, CP_ACT_DETAIL_SIZE, __VA_ARGS__))
/* The list form, cut to fit a detail line; returns buffer. */
#define CP_ACT_MASK_TEXT_SIZE 40
const char *cp_act_mask_text(const struct cp_cpumask *mask,
                             char buffer[static CP_ACT_MASK_TEXT_SIZE]);

/*
 * Reads a task's mask and stat. The stat is read last: if it shows the task's start time, the mask
 * was that task's too. CP_PROC_GONE: it ended (a zombie has ended) or the TID is another's now;
 * negative errno.
 */
int cp_act_look(const struct cp_root *root, struct cp_task_id task, struct cp_cpumask *ret_mask,
                struct cp_proc_stat *ret_stat);
/* Is this task still the one with that TID? 0, CP_PROC_GONE, negative errno. */
int cp_act_identify(const struct cp_root *root, struct cp_task_id task);

/* sched_setaffinity(2). Negative errno: -ESRCH, -EPERM, -EINVAL (no CPU of it is in the cpuset). */
int cp_act_set(pid_t tid, const struct cp_cpumask *mask);
/*
 * The task ended between look and set: if a stranger got its TID in that moment, he got the mask
 * meant for it. He is known by another start time not later than now, and that very mask, and gets
 * all possible CPUs: what he had cannot be known any more.
 */
void cp_act_free_stranger(const struct cp_act_context *context, struct cp_task_id task,
                          const struct cp_cpumask *set_mask);

/* What became of a mask that we set: current, compared with target, judged by the task's cpuset.
 * CP_PROC_GONE: the task's cgroup went; negative errno: it cannot be told. */
int cp_act_judge(const struct cp_act_context *context, pid_t tid, const struct cp_cpumask *current,
                 const struct cp_cpumask *target, enum cp_drift *ret_drift);

/* The same for what was recorded of a task: also the target before the last may be in force, if a
 * crash came between the journal's record and the change. */
int cp_act_judge_entry(const struct cp_act_context *context, const struct cp_journal_entry *entry,
                       const struct cp_cpumask *current, enum cp_drift *ret_drift);

/*
 * Gives the mask of entry back (design section 5, "User mask"), if it is still ours. RESTORED (with
 * a note in detail where another mask than the former had to be given), GONE, YIELDED (left alone),
 * REFUSED (the mask is still ours).
 */
enum cp_act_result cp_act_give_back(const struct cp_act_context *context,
                                    const struct cp_journal_entry *entry,
                                    char detail[static CP_ACT_DETAIL_SIZE]);
