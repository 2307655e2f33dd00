/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Units, escaping of hostile names, and tables of the CLI. */
#include "ctl/table.h"
#include "ctl/text.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

static void units(void **state)
{
    static const struct {
        const char *(*format)(char *, double);
        double value;
        const char *text;
    } cases[] = {
        {cp_text_ns, 0, "0 ns"},
        {cp_text_ns, 412, "412 ns"},
        {cp_text_ns, 412.4, "412 ns"},
        {cp_text_ns, 41.25, "41.2 ns"},
        {cp_text_ns, 999.4, "999 ns"},
        {cp_text_ns, 999.6, "1.00 us"},
        {cp_text_ns, 3200, "3.20 us"},
        {cp_text_ns, 999600, "1.00 ms"},
        {cp_text_ns, 1.5e9, "1.50 s"},
        {cp_text_ns, 4e12, "4000 s"},
        {cp_text_ns, NAN, "-"},
        {cp_text_ns, INFINITY, "-"},
        {cp_text_rate, 450, "450/s"},
        {cp_text_rate, 31234, "31.2k/s"},
        {cp_text_rate, 1.2e6, "1.20M/s"},
        {cp_text_gain, 4.2e8, "+420 ms/s"},
        {cp_text_gain, -1200, "-1.20 us/s"},
        {cp_text_gain, -0.001, "0"},
        {cp_text_gain, 0, "0"},
        {cp_text_share, 0.98, "98%"},
        {cp_text_share, 1, "100%"},
        {cp_text_share, 0, "0%"},
        {cp_text_share, 0.001, "0.10%"},
        {cp_text_share, 0.953, "95%"},
    };
    char buffer[CP_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(cases); i++)
        assert_string_equal(cases[i].format(buffer, cases[i].value), cases[i].text);
}

/* The largest values of each kind must not run over the buffer. */
static void extremes(void **state)
{
    static const double values[] = {1.7e308, -1.7e308, 1e300, 5e-324, -5e-324, 0x1p64};
    char buffer[CP_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(values); i++) {
        assert_true(strlen(cp_text_ns(buffer, values[i])) < CP_TEXT_SIZE);
        assert_true(strlen(cp_text_rate(buffer, values[i])) < CP_TEXT_SIZE);
        assert_true(strlen(cp_text_gain(buffer, values[i])) < CP_TEXT_SIZE);
        assert_true(strlen(cp_text_share(buffer, values[i])) < CP_TEXT_SIZE);
    }
    assert_true(strlen(cp_text_span(buffer, UINT64_MAX)) < CP_TEXT_SIZE);
    assert_true(strlen(cp_text_bytes(buffer, UINT64_MAX)) < CP_TEXT_SIZE);
}

static void spans_and_bytes(void **state)
{
    static const struct {
        const char *(*format)(char *, uint64_t);
        uint64_t value;
        const char *text;
    } cases[] = {
        {cp_text_span, 0, "0 ms"},
        {cp_text_span, 12999999, "12 ms"},
        {cp_text_span, 5300000000, "5.3 s"},
        {cp_text_span, 59999999999, "59.9 s"},
        {cp_text_span, 725000000000, "12 min 5 s"},
        {cp_text_span, 11523000000000, "3 h 12 min"},
        {cp_text_span, 273600000000000, "3 d 4 h"},
        {cp_text_bytes, 0, "0 B"},
        {cp_text_bytes, 512, "512 B"},
        {cp_text_bytes, 33554432, "32 MiB"},
        {cp_text_bytes, 1610612736, "1.5 GiB"},
    };
    char buffer[CP_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(cases); i++)
        assert_string_equal(cases[i].format(buffer, cases[i].value), cases[i].text);
}

struct escape_case {
    const char *raw;
    const char *escaped;
};

static void check_escapes(const struct escape_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        _cleanup_free_ char *escaped = cp_text_escape(cases[i].raw);

        assert_non_null(escaped);
        assert_string_equal(escaped, cases[i].escaped);
    }
}

static void escapes(void **state)
{
    static const struct escape_case everywhere[] = {
        {"", ""},
        {"redis-server", "redis-server"},
        {"a b", "a b"},
        {"\033[2J", "\\x1b[2J"},
        {"a\nb\tc\r", "a\\x0ab\\x09c\\x0d"},
        {"\177", "\\x7f"},
        {"back\\slash", "back\\\\slash"},
        {"\\x1b", "\\\\x1b"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"cut\xc3", "cut\\xc3"},
        {"\xc2\x9b", "\\xc2\\x9b"},          /* C1: CSI */
        {"\xe2\x80\xae", "\\xe2\\x80\\xae"}, /* right-to-left override */
        {"e\xcc\x81", "e\\xcc\\x81"},        /* combining accent */
    };
    static const struct escape_case ascii[] = {{"\xc3\xa4", "\\xc3\\xa4"}};
    static const struct escape_case utf8[] = {{"\xc3\xa4", "\xc3\xa4"}};

    (void)state;
    assert_non_null(setlocale(LC_CTYPE, "C"));
    check_escapes(ascii, CP_ELEMENTS(ascii));
    check_escapes(everywhere, CP_ELEMENTS(everywhere));
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    check_escapes(utf8, CP_ELEMENTS(utf8));
    check_escapes(everywhere, CP_ELEMENTS(everywhere));
}

static void widths(void **state)
{
    (void)state;
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    assert_int_equal(cp_text_width(""), 0);
    assert_int_equal(cp_text_width("abc"), 3);
    assert_int_equal(cp_text_width("\xc3\xa4"), 1);
    assert_int_equal(cp_text_width("\xe6\xbc\xa2"), 2); /* a wide character */
    assert_int_equal(cp_text_fit("abc", 2), 2);
    assert_int_equal(cp_text_fit("abc", 9), 3);
    assert_int_equal(cp_text_fit("a\xc3\xa4"
                                 "b",
                                 2),
                     3);
    assert_int_equal(cp_text_fit("\xe6\xbc\xa2", 1), 0);
}

static void colour(void **state)
{
    (void)state;
    assert_true(cp_view_wants_colour(true, NULL, "xterm"));
    assert_true(cp_view_wants_colour(true, "", "xterm"));
    assert_false(cp_view_wants_colour(true, "1", "xterm"));
    assert_false(cp_view_wants_colour(true, NULL, "dumb"));
    assert_false(cp_view_wants_colour(true, NULL, NULL));
    assert_false(cp_view_wants_colour(false, NULL, "xterm"));
}

static const struct cp_text_table_column columns[] = {
    {.title = "ID", .right = true},
    {.title = "NAME", .min_width = 6},
    {.title = "EXTRA", .optional = true},
    {.title = "WHY", .min_width = 5},
};

/* What a table of two rows looks like at a width. */
static char *print_table(unsigned width, bool colour_on)
{
    _cleanup_table_ struct cp_text_table table = {0};
    struct cp_view view = {.width = width, .colour = colour_on};
    char *text = NULL;
    size_t size;

    cp_text_table_init(&table, columns, CP_ELEMENTS(columns));
    cp_text_table_cell(&table, CP_STYLE_PLAIN, "%d", 7);
    cp_text_table_cell(&table, CP_STYLE_GOOD, "%s", "redis-server");
    cp_text_table_cell(&table, CP_STYLE_PLAIN, "%s", "x");
    cp_text_table_cell(&table, CP_STYLE_PLAIN, "%s", "because of it");
    cp_text_table_cell(&table, CP_STYLE_PLAIN, "%d", 123);
    cp_text_table_cell(&table, CP_STYLE_PLAIN, "%s", "a\033b");
    cp_text_table_cell(&table, CP_STYLE_PLAIN, "%s", "y");
    cp_text_table_cell(&table, CP_STYLE_PLAIN, "%s", "");
    view.out = open_memstream(&text, &size);
    assert_non_null(view.out);
    assert_int_equal(cp_text_table_print(&table, &view, 0), 0);
    (void)fclose(view.out);
    return text;
}

static void table_fits(void **state)
{
    static const struct {
        unsigned width;
        const char *text;
    } cases[] = {
        {0, " ID  NAME          EXTRA  WHY\n"
            "  7  redis-server  x      because of it\n"
            "123  a\\x1bb        y\n"},
        {100, " ID  NAME          EXTRA  WHY\n"
              "  7  redis-server  x      because of it\n"
              "123  a\\x1bb        y\n"},
        {34, " ID  NAME        EXTRA  WHY\n"
             "  7  redis-ser~  x      because o~\n"
             "123  a\\x1bb      y\n"},
        {20, " ID  NAME    WHY\n"
             "  7  redis~  becaus~\n"
             "123  a\\x1bb\n"},
        {5, " ID  NAME    WHY\n"
            "  7  redis~  beca~\n"
            "123  a\\x1bb\n"},
    };

    (void)state;
    assert_non_null(setlocale(LC_CTYPE, "C"));
    for (size_t i = 0; i < CP_ELEMENTS(cases); i++) {
        _cleanup_free_ char *text = print_table(cases[i].width, false);

        assert_string_equal(text, cases[i].text);
    }
}

static void table_colours(void **state)
{
    _cleanup_free_ char *coloured = print_table(0, true);
    _cleanup_free_ char *plain = print_table(0, false);

    (void)state;
    assert_non_null(strstr(coloured, "\033[32mredis-server\033[0m"));
    assert_null(strchr(plain, '\033'));
}

static void fields_fold(void **state)
{
    struct cp_view view = {.width = 40};
    char *text = NULL;
    size_t size;

    (void)state;
    view.out = open_memstream(&text, &size);
    assert_non_null(view.out);
    cp_view_field(&view, "Label", "%s", "one two three four five six seven");
    cp_view_field(&view, "Long", "%s", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    cp_view_field(&view, "Bad", "%s", "\033]0;x\007");
    (void)fclose(view.out);
    assert_string_equal(text, "Label         one two three four five\n"
                              "              six seven\n"
                              "Long          aaaaaaaaaaaaaaaaaaaaaaaaaa\n"
                              "              aaaaaaaaaaaaaa\n"
                              "Bad           \\x1b]0;x\\x07\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units),           cmocka_unit_test(extremes),
        cmocka_unit_test(spans_and_bytes), cmocka_unit_test(escapes),
        cmocka_unit_test(widths),          cmocka_unit_test(colour),
        cmocka_unit_test(table_fits),      cmocka_unit_test(table_colours),
        cmocka_unit_test(fields_fold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
