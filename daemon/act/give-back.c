/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One task's mask: look, set, give back. Every change of another task's mask in the product goes
 * through cp_act_set() here.
 */
#include "act/give-back.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define LIST_MAX_SIZE ((size_t)256 * 1024)

/* ---- the machine ---- */

static int read_list(const struct cp_root *root, const char *path, struct cp_cpumask *ret_mask)
{
    _cleanup_free_ char *text = NULL;
    int r = cp_root_read_file(root, path, LIST_MAX_SIZE, &text, NULL);

    return r < 0 ? r : cp_cpumask_parse_list(text, ret_mask);
}

/* Both files are missing on some kernels, and nohz_full may read "(null)". */
static int read_isolated(const struct cp_root *root, struct cp_cpumask *ret_mask)
{
    static const char *const paths[] = {"sys/devices/system/cpu/isolated",
                                        "sys/devices/system/cpu/nohz_full"};
    _cleanup_cpumask_ struct cp_cpumask all = {0};

    for (size_t i = 0; i < CP_ELEMENTS(paths); i++) {
        _cleanup_cpumask_ struct cp_cpumask mask = {0};

        if (read_list(root, paths[i], &mask) >= 0 && cp_cpumask_or(&all, &all, &mask) < 0)
            return -ENOMEM;
    }
    *ret_mask = all;
    all = (struct cp_cpumask){0};
    return 0;
}

static int read_context(struct cp_act_context *context, struct cp_error *error)
{
    const struct cp_root *root = context->root;
    _cleanup_free_ char *release = NULL;
    int r = read_list(root, "sys/devices/system/cpu/possible", &context->possible);

    if (r >= 0 && cp_cpumask_is_empty(&context->possible))
        r = -EBADMSG;
    if (r < 0)
        return cp_error_set(error, -r,
                            "cannot read the possible CPUs in sys/devices/system/cpu/possible "
                            "below %s: %s",
                            root->path, strerror(-r));
    r = read_isolated(root, &context->isolated);
    if (r < 0)
        return cp_error_set(error, -r, "no memory for CPU masks");
    r = cp_cpuset_find_mount(root, &context->cpuset_mount);
    if (r < 0)
        return cp_error_set(error, -r, "cannot find the cpuset controller: %s", strerror(-r));
    r = cp_root_read_file(root, "proc/sys/kernel/osrelease", 4096, &release, NULL);
    context->user_masks_survive = r < 0 || cp_drift_user_masks_survive(release);
    return 0;
}

int cp_act_context_init(struct cp_act_context *context, const struct cp_root *root,
                        struct cp_error *error)
{
    struct cp_act_context fresh = {.root = root};
    int r = read_context(&fresh, error);

    if (r < 0)
        cp_act_context_done(&fresh);
    else
        *context = fresh;
    return r;
}

void cp_act_context_done(struct cp_act_context *context)
{
    cp_cpumask_done(&context->possible);
    cp_cpumask_done(&context->isolated);
    cp_cpuset_mount_done(&context->cpuset_mount);
    *context = (struct cp_act_context){0};
}

/* ---- texts ---- */

const char *cp_act_mask_text(const struct cp_cpumask *mask,
                             char buffer[static CP_ACT_MASK_TEXT_SIZE])
{
    _cleanup_free_ char *list = cp_cpumask_to_list(mask);

    if (!list)
        (void)snprintf(buffer, CP_ACT_MASK_TEXT_SIZE, "%u CPUs", cp_cpumask_weight(mask));
    else if (strlen(list) < CP_ACT_MASK_TEXT_SIZE)
        memcpy(buffer, list, strlen(list) + 1);
    else
        (void)snprintf(buffer, CP_ACT_MASK_TEXT_SIZE, "%.*s...", CP_ACT_MASK_TEXT_SIZE - 4, list);
    return buffer;
}

/* ---- one task ---- */

static int check_stat(const struct cp_proc_stat *stat, struct cp_task_id task)
{
    bool ended = stat->state == 'Z' || stat->state == 'X' || (stat->flags & CP_PF_EXITING);

    return ended || !cp_task_id_equal(stat->id, task) ? CP_PROC_GONE : 0;
}

int cp_act_identify(const struct cp_root *root, struct cp_task_id task)
{
    struct cp_proc_stat stat;
    int r = cp_proc_read_stat(root, task.tid, &stat);

    return r != 0 ? r : check_stat(&stat, task);
}

int cp_act_look(const struct cp_root *root, struct cp_task_id task, struct cp_cpumask *ret_mask,
                struct cp_proc_stat *ret_stat)
{
    struct cp_proc_status status = {0};
    struct cp_proc_stat stat;
    int r = cp_proc_read_status(root, task.tid, &status);

    if (r != 0)
        return r;
    r = cp_proc_read_stat(root, task.tid, &stat);
    if (r == 0)
        r = check_stat(&stat, task);
    if (r == 0) {
        cp_cpumask_done(ret_mask);
        *ret_mask = status.allowed;
        status.allowed = (struct cp_cpumask){0};
        if (ret_stat)
            *ret_stat = stat;
    }
    cp_proc_status_done(&status);
    return r;
}

int cp_act_set(pid_t tid, const struct cp_cpumask *mask)
{
    /* The kernel takes a mask of any length; glibc passes it on as it is. */
    if (sched_setaffinity(tid, mask->n_words * sizeof(*mask->words),
                          (const cpu_set_t *)(const void *)mask->words) < 0)
        return -errno;
    return 0;
}

void cp_act_free_stranger(const struct cp_act_context *context, struct cp_task_id task,
                          const struct cp_cpumask *set_mask)
{
    uint64_t now_ticks = cp_now_ns() / CP_NS_PER_TICK;
    struct cp_proc_status status = {0};
    struct cp_proc_stat stat;

    if (cp_proc_read_status(context->root, task.tid, &status) != 0)
        return;
    if (cp_proc_read_stat(context->root, task.tid, &stat) == 0 &&
        !cp_task_id_equal(stat.id, task) && stat.id.start_ticks <= now_ticks &&
        cp_cpumask_equal(&status.allowed, set_mask))
        (void)cp_act_set(task.tid, &context->possible);
    cp_proc_status_done(&status);
}

int cp_act_judge(const struct cp_act_context *context, pid_t tid, const struct cp_cpumask *current,
                 const struct cp_cpumask *target, enum cp_drift *ret_drift)
{
    _cleanup_cpumask_ struct cp_cpumask cpuset = {0};
    _cleanup_cpumask_ struct cp_cpumask online = {0};
    struct cp_drift_view view = {
        .current = current,
        .target = target,
        .possible = &context->possible,
        .online = &online,
        .user_masks_survive = context->user_masks_survive,
    };
    int r;

    if (cp_cpumask_equal(current, target)) {
        *ret_drift = CP_DRIFT_SAME;
        return 0;
    }
    r = cp_cpuset_effective(context->root, &context->cpuset_mount, tid, &cpuset);
    if (r < 0 || r == CP_PROC_GONE)
        return r;
    if (r != CP_CPUSET_UNLIMITED)
        view.cpuset = &cpuset;
    r = read_list(context->root, "sys/devices/system/cpu/online", &online);
    return r < 0 ? r : cp_drift_judge(&view, ret_drift);
}

/* ---- giving back ---- */

/* "All": what a task has to which nobody ever gave a mask, so that it follows its cpuset again. */
static int mask_of_all(const struct cp_act_context *context, const struct cp_journal_entry *entry,
                       struct cp_cpumask *ret_mask)
{
    int r;

    if (cp_cpumask_intersects(&entry->original, &context->isolated))
        return cp_cpumask_copy(ret_mask, &context->possible);
    r = cp_cpumask_andnot(ret_mask, &context->possible, &context->isolated);
    if (r >= 0 && cp_cpumask_is_empty(ret_mask))
        r = cp_cpumask_copy(ret_mask, &context->possible);
    return r;
}

/* Sets the wanted mask, or all where the kernel takes no CPU of it. *wanted is what was set. */
static int set_former(const struct cp_act_context *context, const struct cp_journal_entry *entry,
                      struct cp_cpumask *wanted, char detail[static CP_ACT_DETAIL_SIZE])
{
    char text[CP_ACT_MASK_TEXT_SIZE];
    int r = mask_of_all(context, entry, wanted);

    if (r < 0)
        return r;
    if (entry->had_user_mask) {
        r = cp_act_set(entry->task.tid, &entry->original);
        if (r != -EINVAL)
            return r < 0 ? r : cp_cpumask_copy(wanted, &entry->original);
        cp_act_detail(detail,
                      "its former mask %s no longer meets its cpuset: all CPUs were given back",
                      cp_act_mask_text(&entry->original, text));
    }
    r = cp_act_set(entry->task.tid, wanted);
    /* A cpuset of isolated CPUs alone. */
    if (r == -EINVAL && !cp_cpumask_equal(wanted, &context->possible)) {
        r = cp_cpumask_copy(wanted, &context->possible);
        if (r >= 0)
            r = cp_act_set(entry->task.tid, wanted);
    }
    return r;
}

static enum cp_act_result refuse(char detail[static CP_ACT_DETAIL_SIZE], const char *what, int r)
{
    cp_act_detail(detail, "%s: %s%s", what, strerror(-r),
                  r == -EPERM ? " (CAP_SYS_NICE is missing, or a security module)" : "");
    return CP_ACT_REFUSED;
}

/* Reads back what was set. */
static enum cp_act_result verify(const struct cp_act_context *context,
                                 const struct cp_journal_entry *entry,
                                 const struct cp_cpumask *wanted,
                                 char detail[static CP_ACT_DETAIL_SIZE])
{
    _cleanup_cpumask_ struct cp_cpumask current = {0};
    char got[CP_ACT_MASK_TEXT_SIZE];
    char asked[CP_ACT_MASK_TEXT_SIZE];
    enum cp_drift drift = CP_DRIFT_FOREIGN;
    int r = cp_act_look(context->root, entry->task, &current, NULL);

    if (r == CP_PROC_GONE) {
        cp_act_free_stranger(context, entry->task, wanted);
        return CP_ACT_GONE;
    }
    if (r == 0)
        r = cp_act_judge(context, entry->task.tid, &current, wanted, &drift);
    if (r == CP_PROC_GONE)
        return CP_ACT_GONE;
    if (r < 0)
        return refuse(detail, "its mask could not be read back", r);
    if (drift != CP_DRIFT_FOREIGN)
        return CP_ACT_RESTORED;
    (void)cp_act_mask_text(&current, got);
    (void)cp_act_mask_text(wanted, asked);
    if (cp_cpumask_equal(&current, &entry->target)) {
        cp_act_detail(detail, "the kernel left its mask at %s when asked for %s", got, asked);
        return CP_ACT_REFUSED;
    }
    cp_act_detail(detail, "somebody else set its mask to %s at the same moment", got);
    return CP_ACT_YIELDED;
}

int cp_act_judge_entry(const struct cp_act_context *context, const struct cp_journal_entry *entry,
                       const struct cp_cpumask *current, enum cp_drift *ret_drift)
{
    int r = cp_act_judge(context, entry->task.tid, current, &entry->target, ret_drift);

    if (r == 0 && *ret_drift == CP_DRIFT_FOREIGN && !cp_cpumask_is_empty(&entry->former_target))
        r = cp_act_judge(context, entry->task.tid, current, &entry->former_target, ret_drift);
    return r;
}

static enum cp_act_result yield(const struct cp_journal_entry *entry,
                                const struct cp_cpumask *current,
                                char detail[static CP_ACT_DETAIL_SIZE])
{
    char now[CP_ACT_MASK_TEXT_SIZE];
    char ours[CP_ACT_MASK_TEXT_SIZE];

    (void)cp_act_mask_text(current, now);
    if (cp_cpumask_equal(current, &entry->original))
        cp_act_detail(detail, "it has its former mask %s already", now);
    else
        cp_act_detail(detail, "somebody else changed its mask to %s (ours was %s): left alone", now,
                      cp_act_mask_text(&entry->target, ours));
    return CP_ACT_YIELDED;
}

enum cp_act_result cp_act_give_back(const struct cp_act_context *context,
                                    const struct cp_journal_entry *entry,
                                    char detail[static CP_ACT_DETAIL_SIZE])
{
    _cleanup_cpumask_ struct cp_cpumask current = {0};
    _cleanup_cpumask_ struct cp_cpumask wanted = {0};
    enum cp_drift drift = CP_DRIFT_FOREIGN;
    int r = cp_act_look(context->root, entry->task, &current, NULL);

    detail[0] = '\0';
    if (r == 0)
        r = cp_act_judge_entry(context, entry, &current, &drift);
    if (r == CP_PROC_GONE) {
        cp_act_detail(detail, "the task has ended");
        return CP_ACT_GONE;
    }
    if (r < 0)
        return refuse(detail, "its mask or cpuset could not be read", r);
    if (drift == CP_DRIFT_FOREIGN)
        return yield(entry, &current, detail);
    r = set_former(context, entry, &wanted, detail);
    if (r == -ESRCH) {
        cp_act_detail(detail, "the task has ended");
        return CP_ACT_GONE;
    }
    if (r < 0)
        return refuse(detail, "its former mask was refused", r);
    return verify(context, entry, &wanted, detail);
}
