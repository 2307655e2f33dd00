/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Placing a set of tasks: all or none. The order is what makes it safe: look, journal, guard, look
 * again, set, read back, identify again; and back the same way when one fails.
 */
#include "act/affinity.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

struct placing {
    struct cp_affinity *affinity;
    uint64_t decision;
    const struct cp_cpumask *target;
    struct cp_act_change *changes;
    size_t n;
    struct cp_journal_entry **entries; /* owned: what is going to be held, by change */
};

static void placing_done(struct placing *placing)
{
    for (size_t i = 0; placing->entries && i < placing->n; i++)
        cp_held_entry_free(placing->entries[i]);
    free(placing->entries);
    placing->entries = NULL;
}

static const struct cp_journal_entry *held_before(const struct placing *placing, size_t i)
{
    return cp_held_set_find(&placing->affinity->held, placing->changes[i].task);
}

/* ---- before anything is written ---- */

static int check_arguments(const struct placing *placing, struct cp_error *error)
{
    if (placing->n == 0 || cp_cpumask_is_empty(placing->target))
        return cp_error_set(error, EINVAL, "a placement needs a task and a CPU");
    if (placing->n > CP_JOURNAL_MAX_SET)
        return cp_error_set(error, E2BIG, "%zu tasks in one placement, at most %u can be",
                            placing->n, CP_JOURNAL_MAX_SET);
    for (size_t i = 0; i < placing->n; i++)
        for (size_t k = i + 1; k < placing->n; k++)
            if (cp_task_id_equal(placing->changes[i].task, placing->changes[k].task))
                return cp_error_set(error, EINVAL, "task %d is twice in one placement",
                                    placing->changes[i].task.tid);
    return 0;
}

static int make_entry(const struct placing *placing, size_t i, uint64_t now_ticks)
{
    const struct cp_act_change *change = &placing->changes[i];
    const struct cp_journal_entry *before = held_before(placing, i);
    struct cp_journal_entry *entry = calloc(1, sizeof(*entry));
    int r;

    if (!entry)
        return -ENOMEM;
    placing->entries[i] = entry;
    entry->decision = placing->decision;
    entry->task = change->task;
    entry->tgid = change->tgid;
    entry->had_user_mask = before ? before->had_user_mask : change->had_user_mask;
    entry->placed_ticks = now_ticks;
    r = cp_cpumask_copy(&entry->original, before ? &before->original : &change->original);
    return r < 0 ? r : cp_cpumask_copy(&entry->target, placing->target);
}

/* All memory is there before the first mask is changed. */
static int make_entries(struct placing *placing)
{
    uint64_t now_ticks = cp_now_ns() / CP_NS_PER_TICK;
    int r = cp_held_set_reserve(&placing->affinity->held, placing->n);

    if (r < 0)
        return r;
    placing->entries = calloc(CP_MAX(placing->n, 1), sizeof(struct cp_journal_entry *));
    if (!placing->entries)
        return -ENOMEM;
    for (size_t i = 0; r >= 0 && i < placing->n; i++)
        r = make_entry(placing, i, now_ticks);
    return r;
}

static enum cp_act_result gone(struct cp_act_change *change)
{
    cp_act_detail(change->detail, "the task has ended");
    return CP_ACT_GONE;
}

static enum cp_act_result refused(struct cp_act_change *change, const char *what, int r)
{
    cp_act_detail(change->detail, "%s: %s%s", what, strerror(-r),
                  r == -EPERM ? " (CAP_SYS_NICE is missing, or a security module)" : "");
    return CP_ACT_REFUSED;
}

/* Is it still the task that was looked at, with the mask that it had then (or our own)? */
static enum cp_act_result inspect(const struct placing *placing, size_t i)
{
    struct cp_act_change *change = &placing->changes[i];
    const struct cp_journal_entry *before = held_before(placing, i);
    const struct cp_cpumask *expected = before ? &before->target : &change->original;
    _cleanup_cpumask_ struct cp_cpumask current = {0};
    enum cp_drift drift = CP_DRIFT_FOREIGN;
    struct cp_proc_stat stat;
    char now[CP_ACT_MASK_TEXT_SIZE];
    char then[CP_ACT_MASK_TEXT_SIZE];
    int r = cp_act_look(placing->affinity->context.root, change->task, &current, &stat);

    if (r == 0 && (stat.flags & (CP_PF_KTHREAD | CP_PF_NO_SETAFFINITY))) {
        cp_act_detail(change->detail, "a task of the kernel, or one that the kernel keeps bound");
        return CP_ACT_REFUSED;
    }
    if (r == 0 && before)
        r = cp_act_judge_entry(&placing->affinity->context, before, &current, &drift);
    else if (r == 0 && cp_cpumask_equal(&current, expected))
        drift = CP_DRIFT_SAME;
    if (r == CP_PROC_GONE)
        return gone(change);
    if (r < 0)
        return refused(change, "its mask or cpuset could not be read", r);
    if (drift != CP_DRIFT_FOREIGN)
        return CP_ACT_DONE;
    cp_act_detail(change->detail, "somebody else changed its mask from %s to %s: left alone",
                  cp_act_mask_text(expected, then), cp_act_mask_text(&current, now));
    return CP_ACT_YIELDED;
}

/* ---- one task ---- */

static enum cp_act_result explain_einval(const struct placing *placing, size_t i)
{
    struct cp_act_change *change = &placing->changes[i];
    _cleanup_cpumask_ struct cp_cpumask cpuset = {0};
    char wanted[CP_ACT_MASK_TEXT_SIZE];
    char allowed[CP_ACT_MASK_TEXT_SIZE];
    int r =
        cp_cpuset_effective(placing->affinity->context.root,
                            &placing->affinity->context.cpuset_mount, change->task.tid, &cpuset);

    if (r != 0)
        return refused(change, "the kernel refused the mask", -EINVAL);
    cp_act_detail(change->detail, "the kernel refused the mask %s: its cpuset has %s",
                  cp_act_mask_text(placing->target, wanted), cp_act_mask_text(&cpuset, allowed));
    return CP_ACT_REFUSED;
}

/* What the kernel made of it. *changed: there is something of ours to give back. */
static enum cp_act_result read_back(const struct placing *placing, size_t i, bool *changed)
{
    struct cp_act_change *change = &placing->changes[i];
    const struct cp_act_context *context = &placing->affinity->context;
    _cleanup_cpumask_ struct cp_cpumask current = {0};
    enum cp_drift drift = CP_DRIFT_FOREIGN;
    char got[CP_ACT_MASK_TEXT_SIZE];
    char asked[CP_ACT_MASK_TEXT_SIZE];
    int r = cp_act_look(context->root, change->task, &current, NULL);

    *changed = true;
    if (r == CP_PROC_GONE)
        cp_act_free_stranger(context, change->task, placing->target);
    if (r == 0)
        r = cp_act_judge(context, change->task.tid, &current, placing->target, &drift);
    if (r == CP_PROC_GONE) {
        *changed = false;
        return gone(change);
    }
    if (r < 0)
        return refused(change, "its mask could not be read back", r);
    if (drift == CP_DRIFT_SAME)
        return CP_ACT_DONE;
    (void)cp_act_mask_text(&current, got);
    (void)cp_act_mask_text(placing->target, asked);
    if (drift == CP_DRIFT_FOREIGN) {
        *changed = false;
        cp_act_detail(change->detail, "somebody else set its mask to %s at the same moment", got);
        return CP_ACT_YIELDED;
    }
    cp_act_detail(change->detail, "the kernel gave it %s when asked for %s", got, asked);
    return CP_ACT_REFUSED;
}

static enum cp_act_result set_one(const struct placing *placing, size_t i, bool *changed)
{
    struct cp_act_change *change = &placing->changes[i];
    enum cp_act_result result = inspect(placing, i);
    int r;

    *changed = false;
    if (result != CP_ACT_DONE)
        return result;
    r = cp_act_set(change->task.tid, placing->target);
    if (r == -ESRCH)
        return gone(change);
    if (r == -EINVAL)
        return explain_einval(placing, i);
    if (r < 0)
        return refused(change, "the kernel refused the mask", r);
    return read_back(placing, i, changed);
}

/* ---- journal and guard ---- */

static int write_journal(const struct placing *placing)
{
    struct cp_journal_entry *flat = calloc(CP_MAX(placing->n, 1), sizeof(*flat));
    int r;

    if (!flat)
        return -ENOMEM;
    for (size_t i = 0; i < placing->n; i++)
        flat[i] = *placing->entries[i]; /* masks borrowed */
    r = cp_journal_place(placing->affinity->journal, placing->decision, flat, placing->n);
    free(flat);
    return r;
}

/* The task is not (or no longer) placed by this set: the journal and the guard are as before. */
static void unwind(const struct placing *placing, size_t i)
{
    const struct cp_journal_entry *before = held_before(placing, i);

    /* Where the journal cannot be written, it names a target that the task does not have: a later
     * reader then leaves that task alone. */
    if (before) {
        (void)cp_journal_place(placing->affinity->journal, before->decision, before, 1);
        return;
    }
    (void)cp_journal_end(placing->affinity->journal, placing->changes[i].task);
    cp_affinity_unguard(placing->affinity, placing->changes[i].task);
}

static int guard_all(const struct placing *placing)
{
    for (size_t i = 0; i < placing->n; i++) {
        int r = held_before(placing, i)
                    ? 0
                    : cp_affinity_guard(placing->affinity, placing->changes[i].task);

        /* One that has ended is found again when its mask is to be set. */
        if (r < 0)
            return r;
    }
    return 0;
}

static void keep(struct placing *placing, size_t i)
{
    cp_held_set_insert(&placing->affinity->held, placing->entries[i], cp_now_ns() / CP_NS_PER_TICK);
    placing->entries[i] = NULL;
}

/* ---- when one fails ---- */

/* Gives one task what it had before this set: its own mask, or our former target. */
static enum cp_act_result take_back(struct placing *placing, size_t i,
                                    char detail[static CP_ACT_DETAIL_SIZE])
{
    const struct cp_journal_entry *before = held_before(placing, i);
    struct cp_journal_entry former = *placing->entries[i]; /* masks borrowed */
    enum cp_act_result result;

    if (before) {
        former.original = before->target;
        former.had_user_mask = true;
    }
    result = cp_act_give_back(&placing->affinity->context, &former, detail);
    if (result == CP_ACT_REFUSED) {
        keep(placing, i);
        return result;
    }
    if (before && result != CP_ACT_RESTORED)
        cp_affinity_drop(placing->affinity, placing->changes[i].task);
    else
        unwind(placing, i);
    /* A child forked in between has the mask, and is reported after this. */
    cp_held_set_remember(&placing->affinity->held, placing->entries[i],
                         cp_now_ns() / CP_NS_PER_TICK, false);
    placing->entries[i] = NULL;
    return result;
}

/* The tasks before the failing one have our mask, those behind it were never touched. */
static void roll_back(struct placing *placing, size_t failing, bool failing_changed)
{
    for (size_t i = 0; i < placing->n; i++) {
        struct cp_act_change *change = &placing->changes[i];
        char detail[CP_ACT_DETAIL_SIZE] = "";
        enum cp_act_result result = CP_ACT_RESTORED;

        if (i < failing || (i == failing && failing_changed))
            result = take_back(placing, i, detail);
        else if (i == failing && held_before(placing, i) && change->result != CP_ACT_REFUSED)
            /* Gone, or somebody else's: not ours any more. */
            cp_affinity_drop(placing->affinity, change->task);
        else
            unwind(placing, i);
        if (i == failing && result == CP_ACT_RESTORED)
            continue; /* the result says why it failed */
        change->result = result;
        if (detail[0])
            memcpy(change->detail, detail, sizeof(detail));
        else
            cp_act_detail(change->detail, "as it was before, since task %d could not be placed",
                          placing->changes[failing].task.tid);
    }
}

/* ---- the whole ---- */

/* Looks at all before anything is written. 1: one of them cannot be placed. */
static int inspect_all(const struct placing *placing)
{
    size_t failing = placing->n;

    for (size_t i = 0; i < placing->n; i++) {
        struct cp_act_change *change = &placing->changes[i];

        change->result = inspect(placing, i);
        if (change->result == CP_ACT_DONE)
            continue;
        failing = i;
        if (change->result != CP_ACT_REFUSED && held_before(placing, i))
            cp_affinity_drop(placing->affinity, change->task);
    }
    if (failing == placing->n)
        return 0;
    for (size_t i = 0; i < placing->n; i++) {
        if (placing->changes[i].result != CP_ACT_DONE)
            continue;
        placing->changes[i].result = CP_ACT_RESTORED;
        cp_act_detail(placing->changes[i].detail,
                      "as it was before, since task %d could not be placed",
                      placing->changes[failing].task.tid);
    }
    return 1;
}

static int set_all(struct placing *placing)
{
    for (size_t i = 0; i < placing->n; i++) {
        bool changed;

        placing->changes[i].result = set_one(placing, i, &changed);
        if (placing->changes[i].result != CP_ACT_DONE) {
            roll_back(placing, i, changed);
            return 1;
        }
    }
    for (size_t i = 0; i < placing->n; i++) {
        /* Tells the journal that the former target is history. If that cannot be written, a
         * crash after which somebody had chosen just that mask would be misread. */
        if (held_before(placing, i))
            (void)cp_journal_place(placing->affinity->journal, placing->decision,
                                   placing->entries[i], 1);
        keep(placing, i);
    }
    return 0;
}

static int prepare_and_set(struct placing *placing, struct cp_error *error)
{
    int r = make_entries(placing);

    if (r < 0)
        return cp_error_set(error, -r, "no memory for a placement");
    r = write_journal(placing);
    if (r < 0)
        return cp_error_set(error, -r,
                            "the journal cannot be written (%s): no mask is changed without it",
                            strerror(-r));
    r = guard_all(placing);
    if (r < 0) {
        for (size_t i = 0; i < placing->n; i++)
            unwind(placing, i);
        return cp_error_set(error, -r, "the wake source cannot guard more tasks: %s", strerror(-r));
    }
    return set_all(placing);
}

int cp_affinity_place(struct cp_actuator *actuator, uint64_t decision,
                      const struct cp_cpumask *target, struct cp_act_change *changes,
                      size_t n_changes, struct cp_error *error)
{
    struct placing placing = {
        .affinity = cp_affinity_of(actuator),
        .decision = decision,
        .target = target,
        .changes = changes,
        .n = n_changes,
    };
    int r;

    for (size_t i = 0; i < n_changes; i++) {
        changes[i].result = CP_ACT_FAILED;
        changes[i].detail[0] = '\0';
    }
    r = check_arguments(&placing, error);
    if (r >= 0)
        r = inspect_all(&placing);
    if (r == 0)
        r = prepare_and_set(&placing, error);
    for (size_t i = 0; r < 0 && i < n_changes; i++)
        changes[i].result = CP_ACT_FAILED;
    placing_done(&placing);
    return r;
}
