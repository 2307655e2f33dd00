/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What several views share. */
#include "ctl/views.h"

#include "ctl/json.h"
#include "ctl/text.h"

#include <string.h>

uint64_t cp_json_tid(const json_t *object, const char *key)
{
    return cp_json_count(json_object_get(object, key), "tid");
}

const char *cp_json_comm(const json_t *object, const char *key)
{
    const char *comm = cp_json_text(object, key);

    return comm[0] ? comm : "?";
}

const char *cp_json_main_level(const json_t *levels)
{
    /* jansson iterates over objects that it does not change, but takes no const ones. */
    json_t *object = (json_t *)levels;
    const char *best = "";
    double most = 0;

    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        double share = json_number_value(json_object_iter_value(i));

        if (share > most) {
            most = share;
            best = json_object_iter_key(i);
        }
    }
    return best;
}

enum cp_style cp_view_state_style(const char *state)
{
    static const struct {
        const char *state;
        enum cp_style style;
    } styles[] = {
        {"applied", CP_STYLE_STRONG}, {"kept", CP_STYLE_GOOD},      {"failed", CP_STYLE_BAD},
        {"undone", CP_STYLE_BAD},     {"restored", CP_STYLE_FAINT},
    };

    for (size_t i = 0; i < CP_ELEMENTS(styles); i++)
        if (strcmp(styles[i].state, state) == 0)
            return styles[i].style;
    return CP_STYLE_PLAIN;
}

void cp_view_policy(const struct cp_view *view, const json_t *policy)
{
    char rate[CP_TEXT_SIZE];
    char settle[CP_TEXT_SIZE];
    char age[CP_TEXT_SIZE];
    char gain[CP_TEXT_SIZE];

    if (!policy)
        return;
    cp_view_field(view, "Policy", "%s: %s, pairs %s, affinity %s, keep %s, nodes %s%s",
                  cp_json_text(policy, "name"), cp_json_text(policy, "mode"),
                  cp_json_text(policy, "pairs"), cp_json_text(policy, "affinity"),
                  cp_json_text(policy, "keep"), cp_json_text(policy, "nodes"),
                  cp_json_flag(policy, "across") ? ", across owners" : "");
    cp_view_field(view, "", "from %s and %s of a CPU to be gained, tasks older than %s, settle %s",
                  cp_text_rate(rate, cp_json_number(policy, "min_rate")),
                  cp_text_share(gain, cp_json_number(policy, "min_gain") / 1e9),
                  cp_text_span(age, cp_json_count(policy, "min_age")),
                  cp_text_span(settle, cp_json_count(policy, "settle")));
}

static const struct cp_text_table_column cost_columns[] = {
    {.title = "LEVEL"},
    {.title = "HAND-OFF", .right = true},
    {.title = "SPREAD", .right = true},
    {.title = "SAMPLES", .right = true},
    {.title = "SOURCE"},
    {.title = "NOTE", .min_width = 8},
};

static void add_cost(struct cp_text_table *table, const json_t *cost)
{
    bool doubtful = cp_json_flag(cost, "doubtful");
    double spread = cp_json_number(cost, "spread");
    char text[CP_TEXT_SIZE];

    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", cp_json_text(cost, "level"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", cp_text_ns(text, cp_json_number(cost, "ns")));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", spread > 0 ? cp_text_ns(text, spread) : "-");
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%ju", (uintmax_t)cp_json_count(cost, "samples"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", cp_json_text(cost, "source"));
    if (doubtful)
        cp_text_table_cell(table, CP_STYLE_BAD, "doubtful: %s before it was smoothed",
                           cp_text_ns(text, cp_json_number(cost, "raw")));
    else
        cp_text_table_cell(table, CP_STYLE_FAINT, "%s",
                           cp_json_flag(cost, "present") ? "" : "not on this machine");
}

int cp_view_costs(const struct cp_view *view, const json_t *costs)
{
    _cleanup_table_ struct cp_text_table table = {0};

    cp_text_table_init(&table, cost_columns, CP_ELEMENTS(cost_columns));
    for (size_t i = 0; i < json_array_size(costs); i++)
        add_cost(&table, json_array_get(costs, i));
    return cp_text_table_print(&table, view, 0);
}
