/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The views: what people must find in them, and that no answer of a daemon breaks them. */
#include "ctl/json.h"
#include "ctl/views.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define NOW 5000000000000ull

typedef int (*view_function)(const struct cp_view *view, const json_t *value);

static char *show_json(view_function function, const json_t *value, unsigned width)
{
    struct cp_view view = {.now_ns = NOW, .width = width};
    char *text = NULL;
    size_t size;

    view.out = open_memstream(&text, &size);
    assert_non_null(view.out);
    assert_int_equal(function(&view, value), 0);
    (void)fclose(view.out);
    return text;
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *value = json_loads(text, 0, &error);

    if (!value)
        print_message("%d: %s\n", error.position, error.text);
    assert_non_null(value);
    return value;
}

static char *show(view_function function, const char *json)
{
    _cleanup_json_ json_t *value = parse(json);

    return show_json(function, value, 0);
}

static void assert_shows(const char *text, const char *part)
{
    if (!strstr(text, part))
        print_message("'%s' is not in:\n%s\n", part, text);
    assert_non_null(strstr(text, part));
}

#define PAIR                                                                                       \
    "{\"task_a\":{\"tid\":100,\"start\":5},\"task_b\":{\"tid\":222,\"start\":6},"                  \
    "\"comm_a\":\"server\",\"comm_b\":\"cli\\u001b[2Jent\",\"pid_a\":100,\"pid_b\":220,"           \
    "\"relation\":\"serial\",\"reason\":\"stacking-gains\",\"rate\":31234.0,\"balance\":0.98,"     \
    "\"stacking_gain\":420000000.0,\"latency_ab\":4000.0,\"latency_ba\":6000.0,"                   \
    "\"tail_ab\":1200.0,\"tail_ba\":900.0,\"run_ab\":3000.0,\"run_ba\":2000.0,\"slept_ab\":0.98,"  \
    "\"slept_ba\":0.5,\"levels\":{\"cpu\":0.02,\"llc\":0.98,\"node\":0.0},\"load_a\":0.31,"        \
    "\"load_b\":0.4,\"fan_out_a\":1.0,\"fan_out_b\":1.1,\"outcome\":\"stand\",\"decision\":12}"

#define CANDIDATES                                                                                 \
    "[{\"level\":\"cpu\",\"total\":1200.0,\"gain\":420000000.0,\"possible\":true},"                \
    "{\"level\":\"llc\",\"total\":4000.0,\"gain\":0.0,\"possible\":true},"                         \
    "{\"level\":\"node\",\"total\":9000.0,\"gain\":-100000000.0,\"possible\":false}]"

#define DECISION                                                                                   \
    "{\"id\":12,\"state\":\"kept\",\"why\":\"31.2k/s after 12.0k/s\","                             \
    "\"task_a\":{\"tid\":100,\"start\":5},\"task_b\":{\"tid\":222,\"start\":6},"                   \
    "\"comm_a\":\"server\",\"comm_b\":\"client\",\"cpus\":\"1\",\"level\":\"cpu\","                \
    "\"level_before\":\"llc\",\"rule\":\"handoff\",\"policy\":\"builtin\","                        \
    "\"predicted_gain\":420000000.0,\"candidates\":" CANDIDATES ","                                \
    "\"before\":{\"rate\":12000.0,\"loss\":41000.0,\"latency\":40000.0,\"outside\":0.01,"          \
    "\"handoffs\":1234},\"after\":{\"rate\":31200.0,\"loss\":3000.0,\"latency\":2500.0,"           \
    "\"outside\":0.0,\"handoffs\":5678},\"decided\":4991000000000,\"applied\":4991000000000,"      \
    "\"changed\":4996800000000}"

#define FACTS                                                                                      \
    "{\"age\":11523000000000,\"sched\":\"other\",\"cpuset\":\"0-1\",\"user_mask\":\"none\","       \
    "\"last_cpu\":1,\"rss_kib\":4096}"

static void pairs(void **state)
{
    _cleanup_free_ char *text = show(cp_view_pairs, "[" PAIR "]");
    _cleanup_free_ char *none = show(cp_view_pairs, "[]");

    (void)state;
    assert_shows(text, "31.2k/s");
    assert_shows(text, "100 server");
    assert_shows(text, "222 cli\\x1b[2Jent");
    assert_shows(text, "llc");
    assert_shows(text, "5.00 us");
    assert_shows(text, "+420 ms/s");
    assert_null(strchr(text, '\033'));
    assert_shows(none, "No pair");
}

static void decisions(void **state)
{
    _cleanup_free_ char *text = show(cp_view_decisions, "[" DECISION "]");
    _cleanup_free_ char *line = show(cp_view_decision_line, DECISION);
    _cleanup_free_ char *none = show(cp_view_decisions, "[]");

    (void)state;
    assert_shows(text, "12  kept   3.2 s");
    assert_shows(text, "llc>cpu");
    assert_shows(line, "12 kept: server 100 and client 222 on CPUs 1 (cpu, was llc), handoff, "
                       "predicted +420 ms/s: 31.2k/s after 12.0k/s\n");
    assert_shows(none, "No decisions");
}

/* The whole story of a placed thread; told from the side of the one that was asked for. */
static void explain_placed(void **state)
{
    static const char *const parts[] = {
        "client, thread 222 of process 220, user 1000",
        "Because.",
        "3 h 12 min old",
        "4 MiB resident",
        "1, given by coplaced; before: 0-1; cpuset 0-1; user mask: none",
        "with server, thread 100 of process 100: 31.2k/s hand-offs, balance 98%",
        "serial (stacking-gains); on one CPU +420 ms/s",
        "0.40 and 0.31 CPUs",
        "cpu 2%, llc 98%",
        "1.20 us  +420 ms/s  chosen, here now",
        "no room or not allowed",
        "stand: it stands",
        "12, kept 3.2 s ago: 31.2k/s after 12.0k/s",
        "decided 9.0 s ago: both on CPUs 1 (level cpu, was llc), rule handoff, policy builtin",
        "+420 ms/s (42% of a CPU)",
        "before       1234  12.0k/s    41.0 us",
        "after        5678  31.2k/s    3.00 us",
    };
    _cleanup_free_ char *text =
        show(cp_view_explanation,
             "{\"task\":{\"tid\":222,\"start\":6},\"comm\":\"client\",\"pid\":220,\"uid\":1000,"
             "\"mask\":\"1\",\"former_mask\":\"0-1\",\"summary\":\"Because.\","
             "\"outcome\":\"stand\",\"outcome_text\":\"it stands\",\"outcome_until\":0,"
             "\"level_now\":\"cpu\",\"pair\":" PAIR ",\"candidates\":" CANDIDATES
             ",\"decision\":" DECISION ",\"facts\":" FACTS "}");

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(parts); i++)
        assert_shows(text, parts[i]);
    /* The asked thread's own direction comes first. */
    assert_true(strstr(text, "wakes server") < strstr(text, "server wakes"));
    assert_null(strchr(text, '\033'));
}

static void explain_nothing(void **state)
{
    static const struct {
        const char *until;
        const char *shown;
    } cases[] = {
        {"0", "vetoed: undone by hand\n"},
        {"5003200000000", "vetoed: undone by hand (looked at again in 3.2 s)\n"},
        {"4000000000000", "vetoed: undone by hand\n"},
        {"1.8446744073709552e19", "vetoed: undone by hand (until 'coplacectl allow')\n"},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(cases); i++) {
        _cleanup_free_ char *json = NULL;
        _cleanup_free_ char *text = NULL;

        assert_true(asprintf(&json,
                             "{\"task\":{\"tid\":222,\"start\":6},\"comm\":\"client\","
                             "\"outcome\":\"vetoed\",\"outcome_text\":\"undone by hand\","
                             "\"outcome_until\":%s,\"pair\":" PAIR ",\"decision\":{}}",
                             cases[i].until) > 0);
        text = show(cp_view_explanation, json);
        assert_shows(text, cases[i].shown);
        assert_shows(text, "Decision      none");
    }
}

static void explain_process(void **state)
{
    _cleanup_free_ char *others =
        show(cp_view_explanation, "{\"pair\":{},\"process_pairs\":[" PAIR "]}");
    _cleanup_free_ char *none = show(cp_view_explanation, "{\"pair\":{},\"process_pairs\":[]}");

    (void)state;
    assert_shows(others, "none of its own; the threads of its process have these:");
    assert_shows(others, "100 server");
    assert_shows(none, "none: no thread answers its wake-ups often enough");
}

static void status(void **state)
{
    _cleanup_free_ char *text =
        show(cp_view_status,
             "{\"Version\":\"1.2.3\",\"Mode\":\"observe\",\"WakeSource\":\"none\","
             "\"WakeSourceDetail\":\"no BTF: boot another kernel\",\"StartedAt\":4995000000000,"
             "\"ScaleAttaches\":17,\"ScoutAttaches\":1,\"DroppedHandoffs\":3,\"LostEvents\":4,"
             "\"Placements\":2,\"DecisionCounts\":{\"kept\":3,\"failed\":0,\"undone\":1},"
             "\"Neighbours\":[\"scx: observe only\",\"another\"],\"TopologyGeneration\":9,"
             "\"Policy\":{\"name\":\"builtin\",\"mode\":\"enforce\",\"pairs\":\"auto\","
             "\"min_gain\":1000000.0,\"min_rate\":500.0,\"settle\":10000000000}}");

    (void)state;
    assert_shows(text, "coplaced 1.2.3, mode observe");
    assert_shows(text, "for 5.0 s");
    assert_shows(text, "none: no BTF: boot another kernel");
    assert_shows(text, "17 opened");
    assert_shows(text, "3 hand-offs");
    assert_shows(text, "4 events");
    assert_shows(text, "3 kept, 1 undone\n");
    assert_shows(text, "scx: observe only\n              another\n");
    assert_shows(text, "generation 9");
    assert_shows(text, "from 500/s and 0.10% of a CPU");
}

static void costs(void **state)
{
    _cleanup_free_ char *text =
        show(cp_view_costs,
             "[{\"level\":\"cpu\",\"ns\":950.0,\"raw\":950.0,\"spread\":120.0,\"samples\":2000,"
             "\"source\":\"measured\",\"doubtful\":false,\"present\":true},"
             "{\"level\":\"llc\",\"ns\":41500.0,\"raw\":50000.0,\"spread\":0.0,\"samples\":7,"
             "\"source\":\"measured\",\"doubtful\":true,\"present\":true},"
             "{\"level\":\"node\",\"ns\":9000.0,\"source\":\"default\",\"present\":false}]");

    (void)state;
    assert_shows(text, "cpu      950 ns  120 ns     2000  measured\n");
    assert_shows(text, "doubtful: 50.0 us before it was smoothed");
    assert_shows(text, "not on this machine");
}

/* Answers of other versions and of a daemon gone mad: anything but a crash, at any width. */
static void odd_answers(void **state)
{
    static const view_function functions[] = {
        cp_view_pairs,       cp_view_decisions, cp_view_decision_line,
        cp_view_explanation, cp_view_status,    cp_view_costs,
    };
    static const char *const answers[] = {
        "{}",
        "[]",
        "[{}]",
        "[[],7,\"x\",null]",
        "{\"pair\":7,\"decision\":[],\"candidates\":\"x\",\"facts\":null,\"levels\":[1]}",
        "{\"pair\":{\"x\":1},\"decision\":{\"x\":1},\"candidates\":[7,{}],\"process_pairs\":[7]}",
        "{\"Policy\":[1],\"Neighbours\":[7,{}],\"DecisionCounts\":{\"kept\":\"x\"}}",
        "[{\"levels\":{\"cpu\":\"x\"},\"rate\":\"x\",\"task_a\":7,\"comm_a\":9}]",
    };
    static const unsigned column_counts[] = {0, 1, 7, 40, 80};

    (void)state;
    for (size_t a = 0; a < CP_ELEMENTS(answers); a++) {
        _cleanup_json_ json_t *value = parse(answers[a]);

        for (size_t f = 0; f < CP_ELEMENTS(functions); f++) {
            for (size_t w = 0; w < CP_ELEMENTS(column_counts); w++) {
                _cleanup_free_ char *text = show_json(functions[f], value, column_counts[w]);

                assert_true(strlen(text) > 0);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs),           cmocka_unit_test(decisions),
        cmocka_unit_test(explain_placed),  cmocka_unit_test(explain_nothing),
        cmocka_unit_test(explain_process), cmocka_unit_test(status),
        cmocka_unit_test(costs),           cmocka_unit_test(odd_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
