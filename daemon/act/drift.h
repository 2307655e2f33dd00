/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose mask is it? Tells a mask that is still ours from one that the kernel made of it (cpuset or
 * hotplug) and from one that somebody else has set. Private to act/. Pure.
 */
#pragma once

#include "base/cpumask.h"

#include <stdbool.h>

enum cp_drift {
    CP_DRIFT_SAME,    /* exactly our mask */
    CP_DRIFT_SHRUNK,  /* our mask, cut by the kernel to what the cpuset has now */
    CP_DRIFT_RESET,   /* the kernel put the whole cpuset in place of our mask */
    CP_DRIFT_FOREIGN, /* none of these: somebody else's */
    CP_DRIFT_MAX,
};

struct cp_drift_view {
    const struct cp_cpumask *current;
    const struct cp_cpumask *target; /* the mask that we set */
    const struct cp_cpumask *cpuset; /* the task's effective CPUs now; NULL: no cpuset applies */
    const struct cp_cpumask *possible;
    const struct cp_cpumask *online;
    bool user_masks_survive; /* kernel 6.2 and later: a cpuset change does not reset a mask */
};

/*
 * The kernel gives a task target ∩ cpuset; where that is empty or holds no online CPU, the whole
 * cpuset or all possible CPUs (kernel/sched/core.c, select_fallback_rq()). Before 6.2 each change
 * of the cpuset, hotplug included, gives the whole cpuset (kernel/cgroup/cpuset.c,
 * update_tasks_cpumask()). The effective CPUs that cgroup files show are online ones; the mask of
 * a task in the top cpuset holds offline ones too, so both forms are accepted. -ENOMEM.
 */
int cp_drift_judge(const struct cp_drift_view *view, enum cp_drift *ret_drift);

/* "6.18.44-x" and the like: is it 6.2 or later? A text that is no version counts as later: then
 * fewer changes are taken for the kernel's. */
bool cp_drift_user_masks_survive(const char *kernel_release);
