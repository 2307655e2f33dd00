/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* coplacectl pairs: who hands work to whom. */
#include "bus/client.h"
#include "ctl/ctl.h"
#include "ctl/text.h"
#include "ctl/views.h"

#include <string.h>

#define DEFAULT_LIMIT 50

enum { OPTION_LIMIT };

static const struct cp_text_table_column columns[] = {
    {.title = "RATE", .right = true},
    {.title = "RELATION"},
    {.title = "TASK", .min_width = 10},
    {.title = "PARTNER", .min_width = 10},
    {.title = "LEVEL"},
    {.title = "LATENCY", .right = true, .optional = true},
    {.title = "STACKING", .right = true, .optional = true},
    {.title = "OUTCOME", .min_width = 8},
    {.title = "DECISION", .right = true},
};

/* The mean over both directions; a direction without hand-offs has none. */
static double mean_latency(const json_t *pair)
{
    double ab = cp_json_number(pair, "latency_ab");
    double ba = cp_json_number(pair, "latency_ba");

    return ab > 0 && ba > 0 ? (ab + ba) / 2 : ab + ba;
}

static void add_pair(struct cp_text_table *table, const json_t *pair)
{
    const char *level = cp_json_main_level(json_object_get(pair, "levels"));
    uint64_t decision = cp_json_count(pair, "decision");
    double latency = mean_latency(pair);
    char text[CP_TEXT_SIZE];

    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s",
                       cp_text_rate(text, cp_json_number(pair, "rate")));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", cp_json_text(pair, "relation"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%ju %s", (uintmax_t)cp_json_tid(pair, "task_a"),
                       cp_json_comm(pair, "comm_a"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%ju %s", (uintmax_t)cp_json_tid(pair, "task_b"),
                       cp_json_comm(pair, "comm_b"));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", level[0] ? level : "-");
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", latency > 0 ? cp_text_ns(text, latency) : "-");
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s",
                       cp_text_gain(text, cp_json_number(pair, "stacking_gain")));
    cp_text_table_cell(table, CP_STYLE_PLAIN, "%s", cp_json_text(pair, "outcome"));
    if (decision > 0)
        cp_text_table_cell(table, CP_STYLE_PLAIN, "%ju", (uintmax_t)decision);
    else
        cp_text_table_cell(table, CP_STYLE_FAINT, "-");
}

int cp_view_pairs(const struct cp_view *view, const json_t *pairs)
{
    _cleanup_table_ struct cp_text_table table = {0};

    if (json_array_size(pairs) == 0) {
        cp_view_line(view, CP_STYLE_PLAIN, "No pair hands work to each other often enough.");
        return 0;
    }
    cp_text_table_init(&table, columns, CP_ELEMENTS(columns));
    for (size_t i = 0; i < json_array_size(pairs); i++)
        add_pair(&table, json_array_get(pairs, i));
    return cp_text_table_print(&table, view, 0);
}

static int run_pairs(const struct cp_ctl *ctl, const struct cp_arguments *arguments)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    _cleanup_json_ json_t *pairs = NULL;
    unsigned long long limit = ctl->json ? CP_CTL_LIMIT_MAX : DEFAULT_LIMIT;
    int r = 0;

    if (arguments->options[OPTION_LIMIT])
        r = cp_ctl_number(&cp_verb_pairs, arguments->options[OPTION_LIMIT], "a number of pairs", 1,
                          CP_CTL_LIMIT_MAX, &limit);
    if (r == 0)
        r = cp_ctl_open(ctl, &bus);
    if (r == 0)
        r = cp_ctl_fetch_pairs(bus, (uint32_t)limit, &pairs);
    if (r != 0)
        return r;
    if (ctl->json)
        return cp_ctl_put_json(cp_ctl_wrap("pairs", TAKE_PTR(pairs)), false);
    return cp_ctl_viewed(cp_view_pairs(&ctl->view, pairs));
}

const struct cp_verb cp_verb_pairs = {
    .name = "pairs",
    .synopsis = "[--limit=N]",
    .summary = "who hands work to whom",
    .description =
        "Lists the pairs of threads that wake each other, the strongest first: hand-offs a second\n"
        "of both directions, their relation, the level they share now, mean latency, what\n"
        "stacking them on one CPU is predicted to gain, and what became of it.\n",
    .example = "coplacectl pairs --limit=10",
    .options = {[OPTION_LIMIT] = {"limit", "N", "show N pairs at most (50; with --json all)"}},
    .run = run_pairs,
};
