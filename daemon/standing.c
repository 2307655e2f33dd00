/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What becomes of placements: verified, kept, given back.
 *
 * Every end of a placement goes through cp_manager_end_decision(), so that masks and the ledger
 * cannot tell different stories.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "manager-internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Windows without enough hand-offs for a verdict before an unproven placement is given back. */
#define MAX_UNCLEAR_WINDOWS 5u
/* Windows in a row that show no pair any more before a proven placement is given back. One could be
 * a pause of the program. */
#define MAX_STRANGE_WINDOWS 2u
#define MAX_STANDING 4096u

void cp_manager_set_state(struct cp_manager *manager, struct cp_decision *decision,
                          enum cp_decision_state state, const char *why)
{
    cp_ledger_set_state(manager->ledger, decision, state, cp_now_ns(), why);
    cp_log_info("decision %" PRIu64 ": %s (%s %d, %s %d): %s", decision->id,
                cp_decision_state_to_string(state), decision->comm[0], decision->tasks[0].tid,
                decision->comm[1], decision->tasks[1].tid, why);
    cp_bus_emit_decision_changed(manager->bus, decision->id, state);
}

void cp_manager_end_decision(struct cp_manager *manager, struct cp_decision *decision,
                             enum cp_decision_state state, const char *why)
{
    char text[sizeof(decision->why)];
    char detail[CP_ACT_DETAIL_SIZE] = "";

    (void)snprintf(text, sizeof(text), "%s", why);
    for (unsigned i = 0; i < 2; i++) {
        enum cp_act_result result =
            manager->actuator->ops->release(manager->actuator, decision->tasks[i], detail);

        if (result == CP_ACT_REFUSED || result == CP_ACT_FAILED) {
            cp_log_warning("task %d keeps the mask of decision %" PRIu64 " for now: %s",
                           decision->tasks[i].tid, decision->id, detail);
            (void)snprintf(text, sizeof(text), "%.90s; task %d could not be given back: %.60s", why,
                           decision->tasks[i].tid, detail);
        } else if (detail[0]) {
            cp_log_info("task %d: %s", decision->tasks[i].tid, detail);
        }
    }
    cp_pairs_reset_pair(manager->pairs, decision->tasks[0], decision->tasks[1]);
    cp_manager_set_state(manager, decision, state, text);
}

/* The standing decisions, as ids: a decision that ends may move others in the ledger. */
static size_t standing_ids(struct cp_manager *manager, uint64_t *ids, size_t max)
{
    struct cp_decision *page[64];
    uint64_t cursor = 0;
    size_t n = 0;
    size_t found;

    while ((found = cp_ledger_list(manager->ledger, cursor, CP_ELEMENTS(page), page)) > 0) {
        for (size_t i = 0; i < found; i++) {
            cursor = page[i]->id;
            if (cp_decision_state_is_standing(page[i]->state) && n < max)
                ids[n++] = page[i]->id;
        }
    }
    return n;
}

unsigned cp_manager_end_all(struct cp_manager *manager, enum cp_decision_state state,
                            const char *why)
{
    uint64_t ids[MAX_STANDING];
    unsigned ended = 0;
    size_t n;

    while ((n = standing_ids(manager, ids, CP_ELEMENTS(ids))) > 0) {
        for (size_t i = 0; i < n; i++) {
            struct cp_decision *decision = cp_ledger_find(manager->ledger, ids[i]);

            if (state == CP_DECISION_UNDONE)
                cp_ledger_veto(manager->ledger, decision->tasks[0], decision->tasks[1]);
            cp_manager_end_decision(manager, decision, state, why);
            ended++;
        }
    }
    return ended;
}

/* Has somebody else changed a mask, or has a task gone? true: the decision has ended by that. */
static bool end_if_lost(struct cp_manager *manager, struct cp_decision *decision)
{
    char detail[CP_ACT_DETAIL_SIZE] = "";

    for (unsigned i = 0; i < 2; i++) {
        enum cp_act_result result =
            manager->actuator->ops->check(manager->actuator, decision->tasks[i], detail);

        if (result == CP_ACT_YIELDED) {
            char why[sizeof(decision->why)];

            (void)snprintf(why, sizeof(why), "%s",
                           detail[0] ? detail : "somebody else changed a mask");
            cp_manager_end_decision(manager, decision, CP_DECISION_YIELDED, why);
            return true;
        }
        if (result == CP_ACT_GONE) {
            cp_manager_end_decision(manager, decision, CP_DECISION_RESTORED,
                                    "one of the two tasks ended");
            return true;
        }
    }
    return false;
}

/* An applied decision: did it help? */
static bool judge_applied(struct cp_manager *manager, struct cp_decision *decision,
                          const struct cp_observation *seen)
{
    enum cp_judgement judgement;
    char why[sizeof(decision->why)] = "";

    /* A window that began before the placement shows both states mixed. */
    if (seen->begin_ns < decision->applied_ns)
        return false;
    if (manager->policy.keep == CP_KEEP_ALWAYS) {
        decision->after = *seen;
        cp_manager_set_state(manager, decision, CP_DECISION_KEPT, "policy keep: always");
        return true;
    }
    judgement = cp_judge(&decision->before, seen, manager->policy.margin, why);
    if (judgement == CP_JUDGE_CANNOT_TELL) {
        if (++decision->n_unclear < MAX_UNCLEAR_WINDOWS)
            return false;
        decision->after = *seen;
        cp_manager_end_decision(manager, decision, CP_DECISION_UNDONE,
                                "too few hand-offs to tell whether it helped");
        return true;
    }
    decision->after = *seen;
    if (judgement == CP_JUDGE_HELPED)
        cp_manager_set_state(manager, decision, CP_DECISION_KEPT, why);
    else
        cp_manager_end_decision(manager, decision, CP_DECISION_UNDONE, why);
    return true;
}

/* A kept decision: are the two still a pair? */
static bool review_kept(struct cp_manager *manager, struct cp_decision *decision,
                        const struct cp_observation *seen)
{
    const struct cp_pair *pair =
        cp_pairs_find(manager->pairs, decision->tasks[0], decision->tasks[1]);
    struct cp_pair_verdict verdict = {.relation = CP_RELATION_NONE, .reason = CP_WHY_BELOW_RATE};
    char why[sizeof(decision->why)];

    if (manager->policy.keep == CP_KEEP_ALWAYS)
        return false;
    if (pair && seen->rate_hz >= manager->policy.min_rate_hz / 2)
        cp_pair_judge(manager->pairs, pair, &manager->policy, &manager->costs, &verdict);
    if (verdict.relation == CP_RELATION_SERIAL || verdict.relation == CP_RELATION_OVERLAPPING) {
        decision->n_strange = 0;
        decision->after = *seen;
        return false;
    }
    if (++decision->n_strange < MAX_STRANGE_WINDOWS)
        return false;
    (void)snprintf(why, sizeof(why), "the two are a pair no longer (%s)",
                   cp_relation_reason_to_string(verdict.reason));
    cp_manager_end_decision(manager, decision, CP_DECISION_RESTORED, why);
    return true;
}

bool cp_manager_verify(struct cp_manager *manager, const struct cp_wake_sample *sample)
{
    uint64_t ids[MAX_STANDING];
    size_t n = standing_ids(manager, ids, CP_ELEMENTS(ids));
    bool changed = false;

    for (size_t i = 0; i < n; i++) {
        struct cp_decision *decision = cp_ledger_find(manager->ledger, ids[i]);
        struct cp_observation seen;

        if (end_if_lost(manager, decision)) {
            changed = true;
            continue;
        }
        cp_manager_observe(sample, decision->tasks[0], decision->tasks[1], &seen);
        if (decision->state == CP_DECISION_APPLIED)
            changed |= judge_applied(manager, decision, &seen);
        else
            changed |= review_kept(manager, decision, &seen);
    }
    return changed;
}

/* The standing decision of a task, or NULL. */
static struct cp_decision *standing_of(struct cp_manager *manager, struct cp_task_id task)
{
    struct cp_decision *decision = cp_ledger_find_task(manager->ledger, task);

    return decision && cp_decision_state_is_standing(decision->state) ? decision : NULL;
}

static void on_fork(struct cp_manager *manager, const struct cp_wake_event *event)
{
    enum cp_act_result result =
        manager->actuator->ops->release_child(manager->actuator, event->task, event->other);

    cp_log_debug("child %d of placed task %d: %s after %" PRIu64 " us", event->task.tid,
                 event->other.tid, cp_act_result_to_string(result),
                 (uint64_t)((cp_now_ns() - event->time_ns) / CP_NS_PER_US));
    manager->wake->ops->unguard(manager->wake, event->task);
}

/* A thread that is not the leader goes on under the leader's identity after exec. */
static void on_exec(struct cp_manager *manager, const struct cp_wake_event *event)
{
    struct cp_decision *decision = standing_of(manager, event->other);

    if (!decision)
        decision = standing_of(manager, event->task);
    if (decision)
        cp_manager_end_decision(manager, decision, CP_DECISION_RESTORED,
                                "a task runs a new program");
    if (!cp_task_id_equal(event->task, event->other))
        (void)manager->actuator->ops->release_child(manager->actuator, event->task, event->other);
}

static void on_exit_of(struct cp_manager *manager, struct cp_task_id task)
{
    struct cp_decision *decision = standing_of(manager, task);

    if (decision)
        cp_manager_end_decision(manager, decision, CP_DECISION_RESTORED,
                                "one of the two tasks ended");
    cp_pairs_forget_task(manager->pairs, task);
    cp_ledger_forget_task(manager->ledger, task);
}

void cp_manager_on_guarded(struct cp_manager *manager, const struct cp_wake_event *event)
{
    if (event->kind == CP_WAKE_EVENT_FORK)
        on_fork(manager, event);
    else if (event->kind == CP_WAKE_EVENT_EXEC)
        on_exec(manager, event);
    else
        on_exit_of(manager, event->task);
}

void cp_manager_release_orphans(struct cp_manager *manager)
{
    struct cp_act_held held;
    unsigned restored = 0;
    unsigned others = 0;

    /* Those that cannot be given back stay in the list: step over them. */
    for (size_t i = 0; manager->actuator->ops->held(manager->actuator, i, &held);) {
        char detail[CP_ACT_DETAIL_SIZE] = "";
        struct cp_task_id task = held.task;
        enum cp_act_result result;

        if (standing_of(manager, task)) {
            i++;
            continue;
        }
        result = manager->actuator->ops->release(manager->actuator, task, detail);
        if (result == CP_ACT_RESTORED)
            restored++;
        else
            others++;
        if (detail[0])
            cp_log_info("task %d: %s", task.tid, detail);
        if (result == CP_ACT_REFUSED || result == CP_ACT_FAILED)
            i++;
    }
    if (restored || others)
        cp_log_notice("gave back %u masks of an earlier run; %u were gone, changed or refused",
                      restored, others);
}
