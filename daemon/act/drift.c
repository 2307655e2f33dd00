/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tells the kernel's changes of a mask from other people's. Pure. */
#include "act/drift.h"

#include <stdio.h>

static bool is_whole(const struct cp_drift_view *view, const struct cp_cpumask *allowed)
{
    return cp_cpumask_equal(view->current, allowed) ||
           cp_cpumask_equal(view->current, view->possible);
}

/* Judges by one form of what the cpuset allows. */
static int judge_by(const struct cp_drift_view *view, const struct cp_cpumask *allowed,
                    enum cp_drift *ret_drift)
{
    _cleanup_cpumask_ struct cp_cpumask reachable = {0};
    int r = cp_cpumask_and(&reachable, view->target, allowed);

    if (r < 0)
        return r;
    *ret_drift = CP_DRIFT_FOREIGN;
    if (!cp_cpumask_is_empty(&reachable) && cp_cpumask_equal(view->current, &reachable))
        *ret_drift = CP_DRIFT_SHRUNK;
    else if ((!cp_cpumask_intersects(&reachable, view->online) || !view->user_masks_survive) &&
             is_whole(view, allowed))
        *ret_drift = CP_DRIFT_RESET;
    return 0;
}

int cp_drift_judge(const struct cp_drift_view *view, enum cp_drift *ret_drift)
{
    _cleanup_cpumask_ struct cp_cpumask with_offline = {0};
    enum cp_drift drift;
    int r;

    if (cp_cpumask_equal(view->current, view->target)) {
        *ret_drift = CP_DRIFT_SAME;
        return 0;
    }
    r = judge_by(view, view->cpuset ? view->cpuset : view->possible, &drift);
    if (r >= 0 && drift == CP_DRIFT_FOREIGN && view->cpuset) {
        r = cp_cpumask_andnot(&with_offline, view->possible, view->online);
        if (r >= 0)
            r = cp_cpumask_or(&with_offline, &with_offline, view->cpuset);
        if (r >= 0)
            r = judge_by(view, &with_offline, &drift);
    }
    if (r < 0)
        return r;
    *ret_drift = drift;
    return 0;
}

bool cp_drift_user_masks_survive(const char *kernel_release)
{
    unsigned major;
    unsigned minor;

    if (sscanf(kernel_release, "%u.%u", &major, &minor) != 2)
        return true;
    return major > 6 || (major == 6 && minor >= 2);
}
