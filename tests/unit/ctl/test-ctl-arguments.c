/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line of coplacectl, and that its words are those of the daemon. */
#include "ctl/arguments.h"
#include "ctl/ctl.h"
#include "ledger/ledger.h"
#include "policy/policy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#define MOST 8

/* Splits a copy of line at blanks. */
static int split(char *line, char *argv[MOST + 1])
{
    int argc = 0;

    for (char *word = strtok(line, " "); word && argc < MOST; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return argc;
}

static const struct cp_verb verb = {
    .name = "verb",
    .synopsis = "ID|--all",
    .summary = "",
    .description = "text\n",
    .example = "coplacectl verb 1",
    .min_operands = 0,
    .max_operands = 1,
    .options = {{"all", NULL, "all of them"}, {"limit", "N", "so many"}},
};

struct parse_case {
    const char *line;
    const char *error; /* NULL: parses */
    const char *all;
    const char *limit;
    const char *operand; /* NULL: none */
    bool json;
};

static void check_case(const struct parse_case *expected)
{
    struct cp_global_options options = {0};
    struct cp_arguments arguments = {0};
    struct cp_error error = {0};
    char line[100];
    char *argv[MOST + 1];
    int argc;
    int r;

    (void)snprintf(line, sizeof(line), "%s", expected->line);
    argc = split(line, argv);
    r = cp_arguments_parse_verb(&verb, argc, argv, &options, &arguments, &error);
    if (expected->error) {
        assert_int_equal(r, -EINVAL);
        assert_string_equal(error.message, expected->error);
        return;
    }
    assert_int_equal(r, 0);
    assert_int_equal(options.json, expected->json);
    assert_int_equal(arguments.options[0] != NULL, expected->all != NULL);
    assert_int_equal(arguments.options[1] != NULL, expected->limit != NULL);
    if (expected->limit)
        assert_string_equal(arguments.options[1], expected->limit);
    assert_int_equal(arguments.n_operands, expected->operand ? 1 : 0);
    if (expected->operand)
        assert_string_equal(arguments.operands[0], expected->operand);
}

static void verbs(void **state)
{
    static const struct parse_case cases[] = {
        {.line = "verb"},
        {.line = "verb 12", .operand = "12"},
        {.line = "verb 12 --json", .operand = "12", .json = true},
        {.line = "verb --json 12 --limit 3", .operand = "12", .limit = "3", .json = true},
        {.line = "verb --limit=3 --all", .limit = "3", .all = ""},
        {.line = "verb -- --all", .operand = "--all"},
        {.line = "verb 1 2", .error = "unexpected argument '2'"},
        {.line = "verb --limit", .error = "option '--limit' needs a value"},
        {.line = "verb --all=x", .error = "option '--all' takes no value"},
        {.line = "verb --json=x", .error = "option '--json' takes no value"},
        {.line = "verb --other", .error = "unknown option '--other'"},
        {.line = "verb --other=1", .error = "unknown option '--other=1'"},
        {.line = "verb -x", .error = "unknown option '-x'"},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(cases); i++)
        check_case(&cases[i]);
}

static void help_wins_over_operands(void **state)
{
    struct cp_global_options options = {0};
    struct cp_arguments arguments = {0};
    struct cp_error error = {0};
    char line[] = "verb 1 2 --help";
    char *argv[MOST + 1];
    int argc = split(line, argv);

    (void)state;
    assert_int_equal(cp_arguments_parse_verb(&verb, argc, argv, &options, &arguments, &error), 0);
    assert_true(options.help);
}

static void missing_operand(void **state)
{
    struct cp_global_options options = {0};
    struct cp_arguments arguments = {0};
    struct cp_error error = {0};
    char line[] = "explain";
    char *argv[MOST + 1];
    int argc = split(line, argv);

    (void)state;
    assert_int_equal(
        cp_arguments_parse_verb(&cp_verb_explain, argc, argv, &options, &arguments, &error),
        -EINVAL);
    assert_string_equal(error.message, "PID|TID is missing");
}

/* What stands before the verb, and that the verb's own options are left to it. */
static void global(void **state)
{
    struct cp_global_options options = {0};
    struct cp_error error = {0};
    char line[] = "coplacectl --bus-address=unix:path=/x --json verb --all";
    char *argv[MOST + 1];
    int argc = split(line, argv);
    int used = 0;

    (void)state;
    assert_int_equal(cp_arguments_parse_global(argc, argv, &options, &used, &error), 0);
    assert_int_equal(used, 3);
    assert_string_equal(argv[used], "verb");
    assert_string_equal(options.bus_address, "unix:path=/x");
    assert_true(options.json);
    assert_false(options.help);
}

static void numbers(void **state)
{
    static const struct {
        const char *text;
        bool good;
        unsigned long long number;
    } cases[] = {
        {"1", true, 1},
        {"18446744073709551615", true, UINT64_MAX},
        {"007", true, 7},
        {"0", false, 0},
        {"18446744073709551616", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"0x10", false, 0},
        {"1k", false, 0},
        {"", false, 0},
        {"abc", false, 0},
    };
    unsigned long long number;

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(cases); i++) {
        assert_int_equal(cp_arguments_number(cases[i].text, 1, UINT64_MAX, &number), cases[i].good);
        if (cases[i].good)
            assert_true(number == cases[i].number);
    }
    assert_false(cp_arguments_number("11", 1, 10, &number));
}

static size_t count_words(const char *const *words)
{
    size_t n = 0;

    while (words[n])
        n++;
    return n;
}

static void words_of_the_daemon(void **state)
{
    (void)state;
    assert_int_equal(count_words(cp_ctl_modes), CP_MODE_MAX);
    for (int mode = 0; mode < CP_MODE_MAX; mode++)
        assert_string_equal(cp_ctl_modes[mode], cp_mode_to_string((enum cp_mode)mode));
    assert_int_equal(count_words(cp_ctl_states), CP_DECISION_STATE_MAX);
    for (int s = 0; s < CP_DECISION_STATE_MAX; s++)
        assert_string_equal(cp_ctl_states[s],
                            cp_decision_state_to_string((enum cp_decision_state)s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs),           cmocka_unit_test(help_wins_over_operands),
        cmocka_unit_test(missing_operand), cmocka_unit_test(global),
        cmocka_unit_test(numbers),         cmocka_unit_test(words_of_the_daemon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
