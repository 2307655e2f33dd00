/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The methods: who may call which, what a caller may see, and the wishes handed to the manager.
 *
 * What is not the caller's looks as if it did not exist: same error, same text, no gap in a list.
 */
#include "base/cleanup.h"
#include "bus/bus-internal.h"
#include "bus/filter.h"
#include "bus/interface.h"
#include "bus/reply.h"
#include "bus/text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* One call, while it is served. All borrowed. */
struct call {
    struct cp_bus *bus;
    sd_bus_message *message;
    const struct cp_bus_identity *identity;
};

/* Serves a call: answers it and returns 0 or more, or returns a negative errno without answering.
 */
typedef int (*method_handler)(const struct call *call);

static struct cp_bus_view view_of(const struct call *call)
{
    struct cp_bus_view view = {0};

    call->bus->ops->view(call->bus->userdata, &view);
    return view;
}

static bool may_see_uid(const struct call *call, uid_t uid)
{
    return call->identity->privileged || call->identity->uid == uid;
}

static bool may_see_pair(const struct call *call, const struct cp_pair_task *a,
                         const struct cp_pair_task *b)
{
    if (call->identity->privileged)
        return true;
    return a && b && may_see_uid(call, a->uid) && may_see_uid(call, b->uid);
}

static bool may_see_decision(const struct call *call, const struct cp_decision *decision)
{
    return may_see_uid(call, decision->uid[0]) && may_see_uid(call, decision->uid[1]);
}

static size_t list_limit(uint32_t limit)
{
    return limit == 0 || limit > CP_BUS_LIST_LIMIT ? CP_BUS_LIST_LIMIT : limit;
}

static int no_such_task(const struct call *call, uint32_t tid)
{
    return sd_bus_reply_method_errorf(call->message, CP_BUS_ERROR_NO_SUCH_TASK,
                                      "there is no task %" PRIu32, tid);
}

void cp_bus_reply_failure(sd_bus_message *message, const char *name, const char *text)
{
    char clean[sizeof(((struct cp_error *)NULL)->message)];

    (void)snprintf(clean, sizeof(clean), "%s", text);
    cp_bus_text_clean(clean);
    (void)sd_bus_reply_method_errorf(message, name, "%s", clean);
}

/* Answers with what the manager gave back other than 0. */
static int reply_result(const struct call *call, int result, const struct cp_error *error)
{
    static const struct {
        const char *name;
        const char *text;
    } answers[] = {
        [CP_BUS_NO_SUCH_TASK] = {CP_BUS_ERROR_NO_SUCH_TASK, "there is no such task"},
        [CP_BUS_NO_SUCH_DECISION] = {CP_BUS_ERROR_NO_SUCH_DECISION,
                                     "there is no such decision; ListDecisions shows which are"},
        [CP_BUS_NOT_IN_EFFECT] = {CP_BUS_ERROR_NOT_IN_EFFECT,
                                  "the decision is not in effect: nothing is to be undone"},
        [CP_BUS_BUSY] = {CP_BUS_ERROR_BUSY, "one is under way already; try again when it is done"},
    };
    const char *name = CP_BUS_ERROR_FAILED;
    const char *text = result < 0 ? strerror(-result) : "";

    if (result > 0 && (size_t)result < CP_ELEMENTS(answers)) {
        name = answers[result].name;
        text = answers[result].text;
    }
    if (error->message[0])
        text = error->message;
    cp_bus_reply_failure(call->message, name, text);
    return 0;
}

static int append_pair(const struct call *call, const struct cp_bus_view *view,
                       const struct cp_pair *pair, const struct cp_pair_task *a,
                       const struct cp_pair_task *b, sd_bus_message *reply)
{
    const struct cp_decision *decision = NULL;
    struct cp_pair_verdict verdict;
    struct cp_bus_pair shown = {.pair = pair, .a = a, .b = b, .verdict = &verdict};

    cp_pair_judge(view->pairs, pair, view->policy, view->costs, &verdict);
    call->bus->ops->pair_outcome(call->bus->userdata, pair, &shown.outcome, &decision);
    if (decision && may_see_decision(call, decision))
        shown.decision = decision->id;
    return cp_bus_write_pair(reply, &shown);
}

static int list_pairs(const struct call *call)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    struct cp_bus_view view = view_of(call);
    const struct cp_pair *const *pairs = NULL;
    size_t n_pairs = cp_pairs_list(view.pairs, &pairs);
    size_t n_shown = 0;
    uint32_t limit;
    int r = sd_bus_message_read_basic(call->message, 'u', &limit);

    if (r >= 0)
        r = sd_bus_message_new_method_return(call->message, &reply);
    if (r >= 0)
        r = sd_bus_message_open_container(reply, 'a', "a{sv}");
    for (size_t i = 0; r >= 0 && i < n_pairs && n_shown < list_limit(limit); i++) {
        const struct cp_pair_task *a = cp_pairs_find_task(view.pairs, pairs[i]->a);
        const struct cp_pair_task *b = cp_pairs_find_task(view.pairs, pairs[i]->b);

        if (!may_see_pair(call, a, b))
            continue;
        r = append_pair(call, &view, pairs[i], a, b, reply);
        n_shown++;
    }
    if (r >= 0)
        r = sd_bus_message_close_container(reply);
    return r < 0 ? r : sd_bus_send(call->bus->connection, reply, NULL);
}

/* Appends decisions above *cursor until the ledger or the limit ends; *cursor becomes the last id
 * that was given out. Ids of others' decisions do not show in it. */
static int append_decisions(const struct call *call, struct cp_ledger *ledger,
                            const struct cp_bus_filter *filter, size_t limit, uint64_t *cursor,
                            sd_bus_message *reply)
{
    struct cp_decision *chunk[128];
    uint64_t at = *cursor;
    size_t n_shown = 0;
    size_t n;

    do {
        n = cp_ledger_list(ledger, at, CP_ELEMENTS(chunk), chunk);
        for (size_t i = 0; i < n && n_shown < limit; i++) {
            int r;

            at = chunk[i]->id;
            if (!may_see_decision(call, chunk[i]) || !cp_bus_filter_matches(filter, chunk[i]))
                continue;
            r = cp_bus_write_decision(reply, chunk[i]);
            if (r < 0)
                return r;
            *cursor = at;
            n_shown++;
        }
    } while (n == CP_ELEMENTS(chunk) && n_shown < limit);
    return 0;
}

static int list_decisions(const struct call *call)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    struct cp_bus_view view = view_of(call);
    struct cp_bus_filter filter;
    struct cp_error error = {0};
    uint64_t cursor;
    uint32_t limit;
    int r = cp_bus_filter_read(call->message, &filter, &error);

    if (error.code)
        return sd_bus_reply_method_errorf(call->message, CP_BUS_ERROR_INVALID_ARGUMENT, "%s",
                                          error.message);
    if (r >= 0)
        r = sd_bus_message_read(call->message, "tu", &cursor, &limit);
    if (r >= 0)
        r = sd_bus_message_new_method_return(call->message, &reply);
    if (r >= 0)
        r = sd_bus_message_open_container(reply, 'a', "a{sv}");
    if (r >= 0)
        r = append_decisions(call, view.ledger, &filter, list_limit(limit), &cursor, reply);
    if (r >= 0)
        r = sd_bus_message_close_container(reply);
    if (r >= 0)
        r = sd_bus_message_append_basic(reply, 't', &cursor);
    return r < 0 ? r : sd_bus_send(call->bus->connection, reply, NULL);
}

/* Takes out of an explanation what the caller may not see: a partner of another owner, and all
 * that follows from there being one. */
static void hide_others(const struct call *call, const struct cp_bus_view *view,
                        struct cp_bus_explanation *explanation)
{
    bool hidden = false;

    if (explanation->decision && !may_see_decision(call, explanation->decision)) {
        explanation->decision = NULL;
        hidden = true;
    }
    if (explanation->have_pair &&
        !may_see_pair(call, cp_pairs_find_task(view->pairs, explanation->pair.a),
                      cp_pairs_find_task(view->pairs, explanation->pair.b))) {
        explanation->have_pair = false;
        hidden = true;
    }
    if (!hidden)
        return;
    if (!explanation->have_pair)
        explanation->finding = (struct cp_plan_finding){0};
    if (explanation->summary_alone[0])
        memcpy(explanation->summary, explanation->summary_alone, sizeof(explanation->summary));
    else
        (void)snprintf(explanation->summary, sizeof(explanation->summary), "%s",
                       "Left alone: no partner of it was seen.");
}

static int explain_task(const struct call *call)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_(cp_bus_explanation_done) struct cp_bus_explanation explanation = {0};
    struct cp_bus_view view = view_of(call);
    uint64_t start_ticks;
    uint32_t tid;
    int r = sd_bus_message_read(call->message, "(ut)", &tid, &start_ticks);

    if (r < 0)
        return r;
    if (tid == 0 || tid > INT_MAX)
        return no_such_task(call, tid);
    r = call->bus->ops->explain(call->bus->userdata,
                                (struct cp_task_id){.tid = (pid_t)tid, .start_ticks = start_ticks},
                                &explanation);
    if (r < 0)
        return r;
    if (r > 0 || !may_see_uid(call, explanation.facts.uid))
        return no_such_task(call, tid);
    hide_others(call, &view, &explanation);
    r = sd_bus_message_new_method_return(call->message, &reply);
    if (r >= 0)
        r = cp_bus_write_explanation(reply, &view, &explanation);
    return r < 0 ? r : sd_bus_send(call->bus->connection, reply, NULL);
}

static int undo(const struct call *call)
{
    struct cp_error error = {0};
    uint64_t decision;
    int r = sd_bus_message_read_basic(call->message, 't', &decision);

    if (r < 0)
        return r;
    r = call->bus->ops->undo(call->bus->userdata, decision, &error);
    return r ? reply_result(call, r, &error) : sd_bus_reply_method_return(call->message, NULL);
}

static int reply_count(const struct call *call, unsigned count)
{
    return sd_bus_reply_method_return(call->message, "u", (uint32_t)count);
}

static int undo_all(const struct call *call)
{
    struct cp_error error = {0};
    unsigned undone = 0;
    int r = call->bus->ops->undo_all(call->bus->userdata, &undone, &error);

    return r ? reply_result(call, r, &error) : reply_count(call, undone);
}

static int allow(const struct call *call)
{
    struct cp_error error = {0};
    unsigned lifted = 0;
    uint64_t start_ticks;
    uint32_t tid;
    int r = sd_bus_message_read(call->message, "(ut)", &tid, &start_ticks);

    if (r < 0)
        return r;
    if (tid > INT_MAX)
        return no_such_task(call, tid);
    r = call->bus->ops->allow(call->bus->userdata,
                              (struct cp_task_id){.tid = (pid_t)tid, .start_ticks = start_ticks},
                              &lifted);
    return r ? reply_result(call, r, &error) : reply_count(call, lifted);
}

static int set_mode(const struct call *call)
{
    struct cp_error error = {0};
    enum cp_mode mode;
    const char *text;
    int persist;
    int r = sd_bus_message_read(call->message, "sb", &text, &persist);

    if (r < 0)
        return r;
    mode = cp_mode_from_string(text);
    if (mode == CP_MODE_INVALID)
        return sd_bus_reply_method_errorf(call->message, CP_BUS_ERROR_INVALID_ARGUMENT,
                                          "there is no mode '%s'; the modes are off, observe and "
                                          "enforce",
                                          text);
    r = call->bus->ops->set_mode(call->bus->userdata, mode, persist != 0, &error);
    return r ? reply_result(call, r, &error) : sd_bus_reply_method_return(call->message, NULL);
}

/* The call is kept first, as the manager may have the answer before its calibrate() returns. */
static int calibrate(const struct call *call)
{
    struct cp_bus *bus = call->bus;
    struct cp_error error = {0};
    int r;

    if (bus->n_calibrations == CP_ELEMENTS(bus->calibrations))
        return reply_result(call, CP_BUS_BUSY, &error);
    bus->calibrations[bus->n_calibrations++] = sd_bus_message_ref(call->message);
    r = bus->ops->calibrate(bus->userdata, &error);
    if (r == 0)
        return 0;
    sd_bus_message_unref(bus->calibrations[--bus->n_calibrations]);
    return reply_result(call, r, &error);
}

static int get_topology(const struct call *call)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    struct cp_bus_view view = view_of(call);
    int r = sd_bus_message_new_method_return(call->message, &reply);

    if (r >= 0)
        r = cp_bus_write_topology(reply, view.machine, view.costs);
    return r < 0 ? r : sd_bus_send(call->bus->connection, reply, NULL);
}

/* Who may call what. A method that is not in here is refused to everyone. */
static const struct {
    const char *name;
    bool privileged; /* only root and the group; else anyone, for what is theirs */
    method_handler handle;
} methods[] = {
    {"ListPairs", false, list_pairs},
    {"ListDecisions", false, list_decisions},
    {"ExplainTask", false, explain_task},
    {"GetTopology", false, get_topology},
    {"Undo", true, undo},
    {"UndoAll", true, undo_all},
    {"Allow", true, allow},
    {"SetMode", true, set_mode},
    {"Calibrate", true, calibrate},
};

void cp_bus_run_method(sd_bus_message *message, const struct cp_bus_identity *identity,
                       void *userdata)
{
    struct call call = {.bus = userdata, .message = message, .identity = identity};
    const char *name = sd_bus_message_get_member(message);
    size_t i = 0;
    int r;

    while (i < CP_ELEMENTS(methods) && strcmp(methods[i].name, name) != 0)
        i++;
    if (i == CP_ELEMENTS(methods) || (methods[i].privileged && !identity->privileged)) {
        (void)sd_bus_reply_method_errorf(
            message, CP_BUS_ERROR_NOT_PERMITTED,
            "%s is for root and members of group " CP_BUS_GROUP " only", name);
        return;
    }
    r = methods[i].handle(&call);
    if (r < 0)
        (void)sd_bus_reply_method_errorf(message, CP_BUS_ERROR_FAILED, "%s failed: %s", name,
                                         strerror(-r));
}

int cp_bus_on_method(sd_bus_message *message, void *userdata, sd_bus_error *ret_error)
{
    struct cp_bus *bus = userdata;

    (void)ret_error;
    cp_bus_callers_handle(&bus->callers, message);
    return 1;
}
