/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The live machine's actuator: keeps the account of what is ours, and releases it. Placing is in
 * affinity-place.c, the calls that change a mask are in give-back.c.
 */
#include "act/affinity.h"

#include "act/strays.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* Strays of a released placement are looked for as long as their parent's last moments may still be
 * news; later a thread with that mask more likely has chosen it. */
#define RECENT_TICKS (5 * CP_NS_PER_S / CP_NS_PER_TICK)

static uint64_t now_ticks(void)
{
    return cp_now_ns() / CP_NS_PER_TICK;
}

int cp_affinity_guard(struct cp_affinity *affinity, struct cp_task_id task)
{
    int r = affinity->wake ? affinity->wake->ops->guard(affinity->wake, task) : 0;

    if (r == -ESRCH)
        return CP_PROC_GONE;
    return r == -EOPNOTSUPP ? 0 : r;
}

void cp_affinity_unguard(struct cp_affinity *affinity, struct cp_task_id task)
{
    if (affinity->wake)
        affinity->wake->ops->unguard(affinity->wake, task);
}

void cp_affinity_drop(struct cp_affinity *affinity, struct cp_task_id task)
{
    /* If the END cannot be written, a later reader of the journal finds by the mask that there is
     * nothing to give back. */
    (void)cp_journal_end(affinity->journal, task);
    cp_affinity_unguard(affinity, task);
    cp_held_set_drop(&affinity->held, task, now_ticks());
}

static enum cp_act_result affinity_release(struct cp_actuator *actuator, struct cp_task_id task,
                                           char detail[static CP_ACT_DETAIL_SIZE])
{
    struct cp_affinity *affinity = cp_affinity_of(actuator);
    const struct cp_journal_entry *entry = cp_held_set_find(&affinity->held, task);
    enum cp_act_result result;

    if (!entry) {
        cp_act_detail(detail, "its mask is not ours");
        return CP_ACT_GONE;
    }
    result = cp_act_give_back(&affinity->context, entry, detail);
    if (result != CP_ACT_REFUSED)
        cp_affinity_drop(affinity, task);
    return result;
}

/* A mask that the kernel cut or reset is still ours to give back. */
static enum cp_act_result describe_drift(const struct cp_journal_entry *entry,
                                         const struct cp_cpumask *current, enum cp_drift drift,
                                         char detail[static CP_ACT_DETAIL_SIZE])
{
    char now[CP_ACT_MASK_TEXT_SIZE];
    char ours[CP_ACT_MASK_TEXT_SIZE];

    (void)cp_act_mask_text(current, now);
    (void)cp_act_mask_text(&entry->target, ours);
    if (drift == CP_DRIFT_FOREIGN) {
        cp_act_detail(detail, "somebody else changed its mask to %s (ours was %s): left alone", now,
                      ours);
        return CP_ACT_YIELDED;
    }
    if (drift != CP_DRIFT_SAME)
        cp_act_detail(detail,
                      "a change of its cpuset or of the online CPUs made its mask %s (ours is %s)",
                      now, ours);
    return CP_ACT_DONE;
}

static enum cp_act_result affinity_check(struct cp_actuator *actuator, struct cp_task_id task,
                                         char detail[static CP_ACT_DETAIL_SIZE])
{
    struct cp_affinity *affinity = cp_affinity_of(actuator);
    const struct cp_journal_entry *entry = cp_held_set_find(&affinity->held, task);
    _cleanup_cpumask_ struct cp_cpumask current = {0};
    enum cp_act_result result;
    enum cp_drift drift = CP_DRIFT_FOREIGN;
    int r;

    detail[0] = '\0';
    if (!entry) {
        cp_act_detail(detail, "its mask is not ours");
        return CP_ACT_GONE;
    }
    r = cp_act_look(affinity->context.root, task, &current, NULL);
    if (r == 0)
        r = cp_act_judge_entry(&affinity->context, entry, &current, &drift);
    if (r == CP_PROC_GONE) {
        cp_act_detail(detail, "the task has ended");
        result = CP_ACT_GONE;
    } else if (r < 0) {
        /* Nobody is known to have changed it. */
        cp_act_detail(detail, "its mask or cpuset could not be read: %s", strerror(-r));
        result = CP_ACT_DONE;
    } else {
        result = describe_drift(entry, &current, drift, detail);
    }
    if (result != CP_ACT_DONE)
        cp_affinity_drop(affinity, task);
    return result;
}

/* A child that had the mask may have forked before it lost it: its own children are reported as
 * its, not as the placed task's. Without memory they keep the mask until the next scan. */
static void remember_child(struct cp_affinity *affinity, const struct cp_journal_entry *inherited)
{
    struct cp_journal_entry *copy = calloc(1, sizeof(*copy));

    if (copy && cp_journal_entry_copy(inherited, copy) >= 0)
        cp_held_set_remember(&affinity->held, copy, now_ticks(), true);
    else
        free(copy);
}

/* The child of this entry's task: has it its mask? Then it gets its original. */
static enum cp_act_result release_inherited(struct cp_affinity *affinity,
                                            const struct cp_journal_entry *entry,
                                            struct cp_task_id child)
{
    _cleanup_cpumask_ struct cp_cpumask current = {0};
    struct cp_journal_entry inherited = *entry; /* masks borrowed */
    char detail[CP_ACT_DETAIL_SIZE];
    enum cp_act_result result = CP_ACT_REFUSED;
    enum cp_drift drift = CP_DRIFT_FOREIGN;
    int r = cp_act_look(affinity->context.root, child, &current, NULL);

    if (r == 0)
        r = cp_act_judge(&affinity->context, child.tid, &current, &entry->target, &drift);
    if (r == 0 && drift != CP_DRIFT_SAME && drift != CP_DRIFT_SHRUNK)
        return CP_ACT_YIELDED;
    inherited.task = child;
    if (r == CP_PROC_GONE)
        result = CP_ACT_GONE;
    else if (r == 0)
        result = cp_act_give_back(&affinity->context, &inherited, detail);
    remember_child(affinity, &inherited);
    return result;
}

/* Could this task have got its mask from that one? Either it was born while the mask was ours, or a
 * thread that runs a new program has taken over the identity of its process's leader. */
static bool may_be_heir(const struct cp_held_recent *recent, struct cp_task_id task)
{
    if (task.tid == recent->entry->tgid)
        return task.start_ticks <= recent->entry->task.start_ticks;
    return task.start_ticks >= recent->entry->placed_ticks &&
           task.start_ticks <= recent->until_ticks;
}

static enum cp_act_result affinity_release_child(struct cp_actuator *actuator,
                                                 struct cp_task_id child, struct cp_task_id parent)
{
    struct cp_affinity *affinity = cp_affinity_of(actuator);
    const struct cp_journal_entry *entry = cp_held_set_find(&affinity->held, parent);
    enum cp_act_result result = CP_ACT_YIELDED;

    /* Placed itself in the meantime: its mask is meant. */
    if (cp_held_set_find(&affinity->held, child))
        return CP_ACT_YIELDED;
    if (entry)
        result = release_inherited(affinity, entry, child);
    for (size_t i = 0; result == CP_ACT_YIELDED && i < CP_HELD_RECENT; i++) {
        const struct cp_held_recent *recent = &affinity->held.recent[i];

        if (recent->entry && cp_task_id_equal(recent->entry->task, parent) &&
            may_be_heir(recent, child))
            result = release_inherited(affinity, recent->entry, child);
    }
    return result;
}

static bool is_held(struct cp_task_id task, void *userdata)
{
    return cp_held_set_find(userdata, task) != NULL;
}

static unsigned affinity_scan_strays(struct cp_actuator *actuator)
{
    struct cp_affinity *affinity = cp_affinity_of(actuator);
    struct cp_act_stray_scan scan = {
        .context = &affinity->context,
        .until_ticks = UINT64_MAX,
        .is_placed = is_held,
        .userdata = &affinity->held,
    };
    uint64_t now = now_ticks();
    unsigned n_found = 0;

    for (size_t i = 0; i < affinity->held.n; i++) {
        scan.entry = affinity->held.entries[i];
        n_found += cp_act_free_strays(&scan);
    }
    for (size_t i = 0; i < CP_HELD_RECENT; i++) {
        const struct cp_held_recent *recent = &affinity->held.recent[i];

        if (!recent->entry || recent->inherited || now - recent->until_ticks > RECENT_TICKS)
            continue;
        scan.entry = recent->entry;
        scan.until_ticks = recent->until_ticks;
        n_found += cp_act_free_strays(&scan);
    }
    return n_found;
}

static void describe_held(const struct cp_journal_entry *entry, struct cp_act_held *ret_held)
{
    *ret_held = (struct cp_act_held){
        .task = entry->task,
        .decision = entry->decision,
        .original = &entry->original,
        .target = &entry->target,
        .had_user_mask = entry->had_user_mask,
    };
}

static bool affinity_held(struct cp_actuator *actuator, size_t i, struct cp_act_held *ret_held)
{
    struct cp_affinity *affinity = cp_affinity_of(actuator);

    if (i >= affinity->held.n)
        return false;
    describe_held(affinity->held.entries[i], ret_held);
    return true;
}

static const struct cp_act_held *affinity_find(struct cp_actuator *actuator, struct cp_task_id task)
{
    struct cp_affinity *affinity = cp_affinity_of(actuator);
    const struct cp_journal_entry *entry = cp_held_set_find(&affinity->held, task);

    if (!entry)
        return NULL;
    describe_held(entry, &affinity->found);
    return &affinity->found;
}

/* Whether a CPU is online is read anew where it matters; the snapshot only says what machine it
 * is. */
static int affinity_set_machine(struct cp_actuator *actuator, struct cp_machine *machine)
{
    struct cp_affinity *affinity = cp_affinity_of(actuator);

    if (!machine->live)
        return -EINVAL;
    (void)cp_machine_ref(machine);
    cp_machine_unref(affinity->machine);
    affinity->machine = machine;
    return 0;
}

static void affinity_free(struct cp_actuator *actuator)
{
    struct cp_affinity *affinity = cp_affinity_of(actuator);

    cp_held_set_done(&affinity->held);
    cp_act_context_done(&affinity->context);
    cp_machine_unref(affinity->machine);
    free(affinity);
}

static const struct cp_actuator_ops affinity_ops = {
    .name = "affinity",
    .place = cp_affinity_place,
    .release = affinity_release,
    .check = affinity_check,
    .release_child = affinity_release_child,
    .scan_strays = affinity_scan_strays,
    .held = affinity_held,
    .find = affinity_find,
    .set_machine = affinity_set_machine,
    .free = affinity_free,
};

/* What a former daemon left in the journal is ours again. */
static int take_over(struct cp_affinity *affinity)
{
    const struct cp_journal_entry *due;
    size_t n_due = cp_journal_due(affinity->journal, &due);
    int r = cp_held_set_reserve(&affinity->held, n_due);

    for (size_t i = 0; r >= 0 && i < n_due; i++) {
        struct cp_journal_entry *entry = calloc(1, sizeof(*entry));

        if (!entry)
            return -ENOMEM;
        r = cp_journal_entry_copy(&due[i], entry);
        if (r < 0) {
            free(entry);
            return r;
        }
        cp_held_set_insert(&affinity->held, entry, now_ticks());
        /* If it cannot be guarded any more, scan_strays() finds what inherits its mask. */
        (void)cp_affinity_guard(affinity, due[i].task);
    }
    return r;
}

int cp_affinity_actuator_new(const struct cp_root *root, struct cp_machine *machine,
                             struct cp_wake_source *wake, struct cp_journal *journal,
                             struct cp_actuator **ret_actuator, struct cp_error *error)
{
    struct cp_affinity *affinity;
    int r;

    if (!root->live || !machine->live)
        return cp_error_set(error, EINVAL,
                            "masks are changed on the running machine only, not on %s",
                            root->live ? machine->source : root->path);
    affinity = calloc(1, sizeof(*affinity));
    if (!affinity)
        return cp_error_set(error, ENOMEM, "no memory for the actuator");
    r = cp_act_context_init(&affinity->context, root, error);
    if (r < 0) {
        free(affinity);
        return r;
    }
    affinity->actuator.ops = &affinity_ops;
    affinity->machine = cp_machine_ref(machine);
    affinity->wake = wake;
    affinity->journal = journal;
    r = take_over(affinity);
    if (r < 0) {
        affinity_free(&affinity->actuator);
        return cp_error_set(error, -r, "no memory for what is due in the journal");
    }
    *ret_actuator = &affinity->actuator;
    return 0;
}
