/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* coplacectl decisions: what coplaced decided, with its reason and what came of it. */
#include "ctl/decisions.h"
#include "bus/client.h"
#include "ctl/ctl.h"
#include "ctl/text.h"
#include "ctl/views.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_LIMIT 50

enum { OPTION_FOLLOW, OPTION_STATE, OPTION_LIMIT };

static const struct cp_text_table_column columns[] = {
    {.title = "ID", .right = true},
    {.title = "STATE"},
    {.title = "AGE", .right = true, .optional = true},
    {.title = "TASK", .min_width = 10},
    {.title = "PARTNER", .min_width = 10},
    {.title = "CPUS", .min_width = 6},
    {.title = "LEVEL", .optional = true},
    {.title = "RULE", .optional = true},
    {.title = "PREDICTED", .right = true, .optional = true},
    {.title = "WHY", .min_width = 12},
};

static uint64_t age_of(const struct cp_view *view, const json_t *decision)
{
    uint64_t changed = cp_json_count(decision, "changed");

    return view->now_ns > changed ? view->now_ns - changed : 0;
}

static void add_decision(struct cp_text_table *table, const struct cp_view *view,
                         const json_t *decision)
{
    const char *state = cp_json_text(decision, "state");
    char text[CP_TEXT_SIZE];

    cp_text_table_cell(table, CP_STYLE_PLAIN, "%ju", (uintmax_t)cp_json_count(decision, "id"));
    cp_text_table_cell(table, cp_view_state_style(state), "%s", state);
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", cp_text_span(text, age_of(view, decision)));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%ju %s", (uintmax_t)cp_json_tid(decision, "task_a"),
                       cp_json_comm(decision, "comm_a"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%ju %s", (uintmax_t)cp_json_tid(decision, "task_b"),
                       cp_json_comm(decision, "comm_b"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", cp_json_text(decision, "cpus"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s>%s", cp_json_text(decision, "level_before"),
                       cp_json_text(decision, "level"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", cp_json_text(decision, "rule"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s",
                       cp_text_gain(text, cp_json_number(decision, "predicted_gain")));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", cp_json_text(decision, "why"));
}

int cp_view_decisions(const struct cp_view *view, const json_t *decisions)
{
    _cleanup_table_ struct cp_text_table table = {0};

    if (json_array_size(decisions) == 0) {
        cp_view_line(view, CP_STYLE_PLAIN, "No decisions.");
        return 0;
    }
    cp_text_table_init(&table, columns, CP_ELEMENTS(columns));
    for (size_t i = 0; i < json_array_size(decisions); i++)
        add_decision(&table, view, json_array_get(decisions, i));
    return cp_text_table_print(&table, view, 0);
}

int cp_view_decision_line(const struct cp_view *view, const json_t *decision)
{
    const char *why = cp_json_text(decision, "why");
    const char *state = cp_json_text(decision, "state");
    char gain[CP_TEXT_SIZE];

    cp_view_line(view, cp_view_state_style(state),
                 "%ju %s: %s %ju and %s %ju on CPUs %s (%s, was %s), %s, predicted %s%s%s",
                 (uintmax_t)cp_json_count(decision, "id"), state, cp_json_comm(decision, "comm_a"),
                 (uintmax_t)cp_json_tid(decision, "task_a"), cp_json_comm(decision, "comm_b"),
                 (uintmax_t)cp_json_tid(decision, "task_b"), cp_json_text(decision, "cpus"),
                 cp_json_text(decision, "level"), cp_json_text(decision, "level_before"),
                 cp_json_text(decision, "rule"),
                 cp_text_gain(gain, cp_json_number(decision, "predicted_gain")), why[0] ? ": " : "",
                 why);
    return 0;
}

int cp_ctl_fetch_decisions(sd_bus *bus, const char *state, uint64_t cursor, uint32_t limit,
                           json_t **ret_decisions, uint64_t *ret_cursor)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_json_ json_t *decisions = NULL;
    struct cp_error error = {0};
    uint64_t next;
    int r;

    if (state)
        r = cp_client_call(bus, "ListDecisions", 0, &reply, &error, "a{sv}tu", 1, "state", "s",
                           state, cursor, limit);
    else
        r = cp_client_call(bus, "ListDecisions", 0, &reply, &error, "a{sv}tu", 0, cursor, limit);
    if (r != 0)
        return cp_ctl_failed(r, &error);
    r = cp_ctl_read(reply, &decisions);
    if (r != 0)
        return r;
    r = sd_bus_message_read(reply, "t", &next);
    if (r < 0)
        return cp_ctl_failed(r, &error);
    *ret_decisions = TAKE_PTR(decisions);
    *ret_cursor = next;
    return 0;
}

int cp_ctl_fetch_newest(sd_bus *bus, const char *state, size_t limit, json_t **ret_decisions)
{
    _cleanup_json_ json_t *newest = json_array();
    uint64_t cursor = 0;

    for (;;) {
        _cleanup_json_ json_t *page = NULL;
        uint64_t next = 0;
        int r = cp_ctl_fetch_decisions(bus, state, cursor, CP_CTL_PAGE, &page, &next);

        if (r != 0)
            return r;
        if (json_array_extend(newest, page) < 0)
            return cp_ctl_viewed(-ENOMEM);
        while (json_array_size(newest) > limit)
            (void)json_array_remove(newest, 0);
        /* The end, or a daemon that would make us go in circles. */
        if (json_array_size(page) == 0 || next <= cursor)
            break;
        cursor = next;
    }
    *ret_decisions = TAKE_PTR(newest);
    return 0;
}

static int show(const struct cp_ctl *ctl, sd_bus *bus, const char *state, size_t limit)
{
    _cleanup_json_ json_t *decisions = NULL;
    int r = cp_ctl_fetch_newest(bus, state, limit, &decisions);

    if (r != 0)
        return r;
    if (ctl->json)
        return cp_ctl_put_json(cp_ctl_wrap("decisions", TAKE_PTR(decisions)), false);
    return cp_ctl_viewed(cp_view_decisions(&ctl->view, decisions));
}

static int run_decisions(const struct cp_ctl *ctl, const struct cp_arguments *arguments)
{
    const char *state = arguments->options[OPTION_STATE];
    const char *limit_text = arguments->options[OPTION_LIMIT];
    bool follow = arguments->options[OPTION_FOLLOW] != NULL;
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    unsigned long long limit = ctl->json ? CP_CTL_LIMIT_MAX : DEFAULT_LIMIT;
    int r = 0;

    if (state)
        r = cp_ctl_word(&cp_verb_decisions, state, "a state", cp_ctl_states);
    if (r == 0 && limit_text)
        r = cp_ctl_number(&cp_verb_decisions, limit_text, "a number of decisions", 1,
                          CP_CTL_LIMIT_MAX, &limit);
    if (r == 0)
        r = cp_ctl_open(ctl, &bus);
    if (r != 0)
        return r;
    if (follow)
        return cp_ctl_follow(ctl, bus, state, limit_text ? (size_t)limit : 0);
    return show(ctl, bus, state, (size_t)limit);
}

const struct cp_verb cp_verb_decisions = {
    .name = "decisions",
    .synopsis = "[--follow] [--state=STATE] [--limit=N]",
    .summary = "what was decided, why, and what came of it",
    .description = "Lists the newest decisions in rising order of their ids. With --follow prints\n"
                   "each decision as it is made or changes, one line each, until interrupted.\n"
                   "States: proposed, applied, kept, undone, yielded, failed, restored.\n",
    .example = "coplacectl decisions --follow --json | jq .why",
    .options =
        {
            [OPTION_FOLLOW] = {"follow", NULL,
                               "print what changes from now on (--limit: first those)"},
            [OPTION_STATE] = {"state", "STATE", "only decisions in this state"},
            [OPTION_LIMIT] = {"limit", "N", "show the newest N at most (50; with --json all)"},
        },
    .run = run_decisions,
};
