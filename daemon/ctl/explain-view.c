/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The explanation of a task as a story: who, with whom, how they relate, what was considered, what
 * was decided, what came of it. */
#include "ctl/json.h"
#include "ctl/text.h"
#include "ctl/views.h"

#include <string.h>

#define CELL CP_STYLE_PLAIN

static const struct cp_text_table_column handoff_columns[] = {
    {.title = "HAND-OFF", .min_width = 16},  {.title = "LATENCY", .right = true},
    {.title = "TAIL", .right = true},        {.title = "RUN", .right = true},
    {.title = "WAKER SLEPT", .right = true},
};

static const struct cp_text_table_column candidate_columns[] = {
    {.title = "LEVEL"},
    {.title = "A HAND-OFF COSTS", .right = true},
    {.title = "GAIN", .right = true},
    {.title = "", .min_width = 8},
};

static const struct cp_text_table_column observation_columns[] = {
    {.title = ""},
    {.title = "HAND-OFFS", .right = true},
    {.title = "RATE", .right = true},
    {.title = "LOSS EACH", .right = true},
    {.title = "LATENCY", .right = true},
    {.title = "OUTSIDE DELAY", .right = true},
};

static void show_task(const struct cp_view *view, const json_t *explanation)
{
    const json_t *facts = json_object_get(explanation, "facts");
    const char *former = cp_json_text(explanation, "former_mask");
    uint64_t rss = cp_json_count(facts, "rss_kib");
    char age[CP_TEXT_SIZE];
    char size[CP_TEXT_SIZE];

    cp_view_line(view, CP_STYLE_STRONG, "%s, thread %ju of process %ju, user %ju",
                 cp_json_comm(explanation, "comm"), (uintmax_t)cp_json_tid(explanation, "task"),
                 (uintmax_t)cp_json_count(explanation, "pid"),
                 (uintmax_t)cp_json_count(explanation, "uid"));
    cp_view_line(view, CP_STYLE_PLAIN, "%s", cp_json_text(explanation, "summary"));
    (void)fputc('\n', view->out);
    cp_view_field(view, "Task", "%s old, scheduling %s, last on CPU %ju, %s resident",
                  cp_text_span(age, cp_json_count(facts, "age")), cp_json_text(facts, "sched"),
                  (uintmax_t)cp_json_count(facts, "last_cpu"), cp_text_bytes(size, rss * 1024));
    cp_view_field(view, "Mask", "%s%s%s; cpuset %s; user mask: %s",
                  cp_json_text(explanation, "mask"),
                  former[0] ? ", given by coplaced; before: " : "", former,
                  cp_json_text(facts, "cpuset"), cp_json_text(facts, "user_mask"));
}

static void add_direction(struct cp_text_table *table, const json_t *pair, char waker)
{
    bool ab = waker == 'a';
    char text[CP_TEXT_SIZE];
    const char *keys[][2] = {
        {"latency_ab", "latency_ba"}, {"tail_ab", "tail_ba"}, {"run_ab", "run_ba"}};

    cp_text_table_cell(table, CELL, "%s wakes %s", cp_json_comm(pair, ab ? "comm_a" : "comm_b"),
                       cp_json_comm(pair, ab ? "comm_b" : "comm_a"));
    for (size_t i = 0; i < CP_ELEMENTS(keys); i++)
        cp_text_table_cell(table, CELL, "%s",
                           cp_text_ns(text, cp_json_number(pair, keys[i][ab ? 0 : 1])));
    cp_text_table_cell(table, CELL, "%s",
                       cp_text_share(text, cp_json_number(pair, ab ? "slept_ab" : "slept_ba")));
}

static void show_levels(const struct cp_view *view, json_t *levels)
{
    char text[256] = "";
    size_t length = 0;

    for (void *i = json_object_iter(levels); i; i = json_object_iter_next(levels, i)) {
        double share = json_number_value(json_object_iter_value(i));
        char percent[CP_TEXT_SIZE];
        int r;

        if (share <= 0)
            continue;
        r = snprintf(text + length, sizeof(text) - length, "%s%s %s", length > 0 ? ", " : "",
                     json_object_iter_key(i), cp_text_share(percent, share));
        if (r < 0 || (size_t)r >= sizeof(text) - length)
            break;
        length += (size_t)r;
    }
    if (length > 0)
        cp_view_field(view, "Level", "they share now: %s", text);
}

static int show_pair(const struct cp_view *view, const json_t *explanation, const json_t *pair)
{
    _cleanup_table_ struct cp_text_table table = {0};
    bool is_a = cp_json_tid(pair, "task_a") == cp_json_tid(explanation, "task");
    char rate[CP_TEXT_SIZE];
    char text[CP_TEXT_SIZE];

    cp_view_field(view, "Pair", "with %s, thread %ju of process %ju: %s hand-offs, balance %s",
                  cp_json_comm(pair, is_a ? "comm_b" : "comm_a"),
                  (uintmax_t)cp_json_tid(pair, is_a ? "task_b" : "task_a"),
                  (uintmax_t)cp_json_count(pair, is_a ? "pid_b" : "pid_a"),
                  cp_text_rate(rate, cp_json_number(pair, "rate")),
                  cp_text_share(text, cp_json_number(pair, "balance")));
    cp_view_field(view, "Relation", "%s (%s); on one CPU %s against now",
                  cp_json_text(pair, "relation"), cp_json_text(pair, "reason"),
                  cp_text_gain(text, cp_json_number(pair, "stacking_gain")));
    cp_view_field(view, "Load", "%.2f and %.2f CPUs; wakes %.1f and %.1f different threads",
                  cp_json_number(pair, is_a ? "load_a" : "load_b"),
                  cp_json_number(pair, is_a ? "load_b" : "load_a"),
                  cp_json_number(pair, is_a ? "fan_out_a" : "fan_out_b"),
                  cp_json_number(pair, is_a ? "fan_out_b" : "fan_out_a"));
    show_levels(view, json_object_get(pair, "levels"));
    cp_text_table_init(&table, handoff_columns, CP_ELEMENTS(handoff_columns));
    add_direction(&table, pair, is_a ? 'a' : 'b');
    add_direction(&table, pair, is_a ? 'b' : 'a');
    return cp_text_table_print(&table, view, 2);
}

static void format_note(char note[static 48], bool chosen, bool now, bool possible)
{
    (void)snprintf(note, 48, "%s%s%s%s%s", chosen ? "chosen" : "", chosen && now ? ", " : "",
                   now ? "here now" : "", (chosen || now) && !possible ? ", " : "",
                   possible ? "" : "no room or not allowed");
}

static int show_candidates(const struct cp_view *view, const json_t *candidates,
                           const char *level_now, const char *level_chosen)
{
    _cleanup_table_ struct cp_text_table table = {0};

    if (json_array_size(candidates) == 0)
        return 0;
    cp_view_field(view, "Considered", "what one hand-off would cost, and the gain against now");
    cp_text_table_init(&table, candidate_columns, CP_ELEMENTS(candidate_columns));
    for (size_t i = 0; i < json_array_size(candidates); i++) {
        const json_t *candidate = json_array_get(candidates, i);
        const char *level = cp_json_text(candidate, "level");
        bool chosen = level_chosen[0] && strcmp(level, level_chosen) == 0;
        char text[CP_TEXT_SIZE];
        char note[48];

        cp_text_table_cell(&table, CELL, "%s", level);
        cp_text_table_cell(&table, CELL, "%s",
                           cp_text_ns(text, cp_json_number(candidate, "total")));
        cp_text_table_cell(&table, CELL, "%s",
                           cp_text_gain(text, cp_json_number(candidate, "gain")));
        format_note(note, chosen, strcmp(level, level_now) == 0,
                    cp_json_flag(candidate, "possible"));
        cp_text_table_cell(&table, chosen ? CP_STYLE_GOOD : CP_STYLE_FAINT, "%s", note);
    }
    return cp_text_table_print(&table, view, 2);
}

static void add_observation(struct cp_text_table *table, const char *when,
                            const json_t *observation)
{
    char text[CP_TEXT_SIZE];

    if (!observation)
        return;
    cp_text_table_cell(table, CELL, "%s", when);
    cp_text_table_cell(table, CELL, "%ju", (uintmax_t)cp_json_count(observation, "handoffs"));
    cp_text_table_cell(table, CELL, "%s", cp_text_rate(text, cp_json_number(observation, "rate")));
    cp_text_table_cell(table, CELL, "%s", cp_text_ns(text, cp_json_number(observation, "loss")));
    cp_text_table_cell(table, CELL, "%s", cp_text_ns(text, cp_json_number(observation, "latency")));
    cp_text_table_cell(table, CELL, "%s",
                       cp_text_share(text, cp_json_number(observation, "outside")));
}

/* " 3.2 s ago", or "" for a time that did not happen. */
static const char *ago(const struct cp_view *view, uint64_t at, char text[static 48])
{
    char span[CP_TEXT_SIZE];

    text[0] = '\0';
    if (at > 0)
        (void)snprintf(text, 48, " %s ago",
                       cp_text_span(span, view->now_ns > at ? view->now_ns - at : 0));
    return text;
}

static int show_decision(const struct cp_view *view, const json_t *decision)
{
    const json_t *before = cp_json_filled(decision, "before");
    const json_t *after = cp_json_filled(decision, "after");
    const char *state = cp_json_text(decision, "state");
    _cleanup_table_ struct cp_text_table table = {0};
    char gain[CP_TEXT_SIZE];
    char share[CP_TEXT_SIZE];
    char decided[48];
    char changed[48];

    cp_view_field(view, "Decision", "%ju, %s%s: %s", (uintmax_t)cp_json_count(decision, "id"),
                  state, ago(view, cp_json_count(decision, "changed"), changed),
                  cp_json_text(decision, "why"));
    cp_view_field(view, "", "decided%s: both on CPUs %s (level %s, was %s), rule %s, policy %s",
                  ago(view, cp_json_count(decision, "decided"), decided),
                  cp_json_text(decision, "cpus"), cp_json_text(decision, "level"),
                  cp_json_text(decision, "level_before"), cp_json_text(decision, "rule"),
                  cp_json_text(decision, "policy"));
    cp_view_field(view, "Predicted", "%s (%s of a CPU)",
                  cp_text_gain(gain, cp_json_number(decision, "predicted_gain")),
                  cp_text_share(share, cp_json_number(decision, "predicted_gain") / 1e9));
    cp_view_field(view, "Observed", "%s", after ? "before and after" : "nothing yet since then");
    if (!before && !after)
        return 0;
    cp_text_table_init(&table, observation_columns, CP_ELEMENTS(observation_columns));
    add_observation(&table, "before", before);
    add_observation(&table, "after", after);
    return cp_text_table_print(&table, view, 2);
}

static void show_outcome(const struct cp_view *view, const json_t *explanation)
{
    uint64_t until = cp_json_count(explanation, "outcome_until");
    const char *text = cp_json_text(explanation, "outcome_text");
    char span[CP_TEXT_SIZE];

    if (!text[0])
        return;
    /* Beyond what JSON integers hold: for ever (a veto). */
    if (until > INT64_MAX)
        cp_view_field(view, "Outcome", "%s: %s (until 'coplacectl allow')",
                      cp_json_text(explanation, "outcome"), text);
    else if (until > view->now_ns)
        cp_view_field(view, "Outcome", "%s: %s (looked at again in %s)",
                      cp_json_text(explanation, "outcome"), text,
                      cp_text_span(span, until - view->now_ns));
    else
        cp_view_field(view, "Outcome", "%s: %s", cp_json_text(explanation, "outcome"), text);
}

static int show_process_pairs(const struct cp_view *view, const json_t *pairs)
{
    if (!pairs) {
        cp_view_field(view, "Pair", "none: no thread answers its wake-ups often enough");
        return 0;
    }
    cp_view_field(view, "Pair", "none of its own; the threads of its process have these:");
    return cp_view_pairs(view, pairs);
}

int cp_view_explanation(const struct cp_view *view, const json_t *explanation)
{
    const json_t *decision = cp_json_filled(explanation, "decision");
    const json_t *pair = cp_json_filled(explanation, "pair");
    const json_t *candidates = cp_json_filled(explanation, "candidates");
    int r;

    show_task(view, explanation);
    r = pair ? show_pair(view, explanation, pair)
             : show_process_pairs(view, cp_json_filled(explanation, "process_pairs"));
    if (r < 0)
        return r;
    if (!candidates)
        candidates = cp_json_filled(decision, "candidates");
    r = show_candidates(view, candidates, cp_json_text(explanation, "level_now"),
                        cp_json_text(decision, "level"));
    if (r < 0)
        return r;
    show_outcome(view, explanation);
    if (decision)
        r = show_decision(view, decision);
    else
        cp_view_field(view, "Decision", "none");
    cp_view_policy(view, cp_json_filled(explanation, "policy"));
    return r;
}
