/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The built-in policy and the parsers of its words and quantities. */
#include "base/cleanup.h"
#include "policy/policy.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void builtin_is_as_designed(void **state)
{
    struct cp_policy policy;

    (void)state;
    memset(&policy, 0xff, sizeof(policy));
    cp_policy_init_builtin(&policy);
    assert_string_equal(policy.name, "builtin");
    assert_int_equal(policy.mode, CP_MODE_ENFORCE);
    assert_int_equal(policy.pairs, CP_PAIRS_AUTO);
    assert_int_equal(policy.affinity, CP_AFFINITY_RESPECT);
    assert_int_equal(policy.keep, CP_KEEP_IF_HELPED);
    assert_true(policy.min_rate_hz == 500);
    assert_true(policy.min_gain_ns_per_s == 1e6);
    assert_true(policy.margin == 0.05);
    assert_int_equal(policy.settle_ns, 10000000000);
    assert_int_equal(policy.min_age_ns, 300000000);
    assert_false(policy.across);
    assert_false(policy.any_node);
}

static void words_go_round(void **state)
{
    static const char *const foreign[] = {"",          "Auto",     "auto ",     " auto",
                                          "same-cpux", "same_cpu", "override ", "if-helped,",
                                          "o",         "enforced"};

    (void)state;
    for (int i = 0; i < CP_MODE_MAX; i++)
        assert_int_equal(cp_mode_from_string(cp_mode_to_string((enum cp_mode)i)), i);
    for (int i = 0; i < CP_PAIRS_MAX; i++)
        assert_int_equal(cp_pair_level_from_string(cp_pair_level_to_string((enum cp_pair_level)i)),
                         i);
    for (int i = 0; i < CP_AFFINITY_MAX; i++)
        assert_int_equal(cp_affinity_from_string(cp_affinity_to_string((enum cp_affinity)i)), i);
    for (int i = 0; i < CP_KEEP_MAX; i++)
        assert_int_equal(cp_keep_from_string(cp_keep_to_string((enum cp_keep)i)), i);
    for (size_t i = 0; i < CP_ELEMENTS(foreign); i++) {
        assert_int_equal(cp_mode_from_string(foreign[i]), CP_MODE_INVALID);
        assert_int_equal(cp_pair_level_from_string(foreign[i]), CP_PAIRS_INVALID);
        assert_int_equal(cp_affinity_from_string(foreign[i]), CP_AFFINITY_INVALID);
        assert_int_equal(cp_keep_from_string(foreign[i]), CP_KEEP_INVALID);
    }
    assert_null(cp_mode_to_string(CP_MODE_INVALID));
    assert_null(cp_mode_to_string(CP_MODE_MAX));
    assert_null(cp_pair_level_to_string(CP_PAIRS_INVALID));
    assert_null(cp_affinity_to_string(CP_AFFINITY_MAX));
    assert_null(cp_keep_to_string(CP_KEEP_INVALID));
}

static void rates(void **state)
{
    static const struct {
        const char *text;
        int result;
        double hz;
    } table[] = {
        {"500/s", 0, 500},
        {"500", 0, 500},
        {"0.1/s", 0, 0.1},
        {"10000000", 0, 1e7},
        {"1.25/s", 0, 1.25},
        {"0500/s", 0, 500},
        {"0", -ERANGE, 0},
        {"0.09/s", -ERANGE, 0},
        {"10000000.1/s", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"/s", -EINVAL, 0},
        {"-5/s", -EINVAL, 0},
        {"+5/s", -EINVAL, 0},
        {" 5/s", -EINVAL, 0},
        {"5/s ", -EINVAL, 0},
        {"5 /s", -EINVAL, 0},
        {"5/m", -EINVAL, 0},
        {"5hz", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"nan", -EINVAL, 0},
        {"inf", -EINVAL, 0},
        {"1.", -EINVAL, 0},
        {".5", -EINVAL, 0},
        {"1.2.3", -EINVAL, 0},
        {"1,5/s", -EINVAL, 0},
        {"9999999999999999999", -ERANGE, 0},
        {"0.0000000000000000001", -ERANGE, 0},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct cp_error error = {0};
        double hz = -1;
        int r = cp_parse_rate(table[i].text, &hz, &error);

        if (r != table[i].result)
            print_error("rate \"%s\" gave %d\n", table[i].text, r);
        assert_int_equal(r, table[i].result);
        assert_true(hz == (r == 0 ? table[i].hz : -1));
        assert_int_equal(error.code, -r);
        assert_true((error.message[0] != 0) == (r < 0));
        assert_int_equal(cp_parse_rate(table[i].text, &hz, NULL), r);
    }
}

static void times(void **state)
{
    static const struct {
        const char *text;
        int result;
        uint64_t ns;
    } table[] = {
        {"10s", 0, 10000000000},
        {"300ms", 0, 300000000},
        {"1500us", 0, 1500000},
        {"1ns", 0, 1},
        {"0s", 0, 0},
        {"0.3s", 0, 300000000},
        {"1.0005us", 0, 1001},
        {"0.4ns", 0, 0},
        {"604800s", 0, 604800000000000},
        {"604800.000000001s", -ERANGE, 0},
        {"604801s", -ERANGE, 0},
        {"999999999999999999s", -ERANGE, 0},
        {"1000000000000000000ns", -ERANGE, 0},
        {"10", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"s", -EINVAL, 0},
        {"-1s", -EINVAL, 0},
        {"1 s", -EINVAL, 0},
        {"1m", -EINVAL, 0},
        {"1min", -EINVAL, 0},
        {"1S", -EINVAL, 0},
        {"1sec", -EINVAL, 0},
        {"1e3s", -EINVAL, 0},
        {"infs", -EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct cp_error error = {0};
        uint64_t ns = 77;
        int r = cp_parse_time(table[i].text, &ns, &error);

        if (r != table[i].result || (r == 0 && ns != table[i].ns))
            print_error("time \"%s\" gave %d, %llu\n", table[i].text, r, (unsigned long long)ns);
        assert_int_equal(r, table[i].result);
        assert_int_equal(ns, r == 0 ? table[i].ns : 77);
        assert_int_equal(error.code, -r);
    }
}

static void shares(void **state)
{
    static const struct {
        const char *text;
        int result;
        double share;
    } table[] = {
        {"5%", 0, 0.05},     {"0%", 0, 0},        {"100%", 0, 1},         {"0.1%", 0, 0.001},
        {"5", -EINVAL, 0},   {"", -EINVAL, 0},    {"%", -EINVAL, 0},      {"-5%", -EINVAL, 0},
        {"5 %", -EINVAL, 0}, {"5%%", -EINVAL, 0}, {"100.1%", -ERANGE, 0}, {"1e1%", -EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct cp_error error = {0};
        double share = -1;
        int r = cp_parse_share(table[i].text, &share, &error);

        if (r != table[i].result)
            print_error("share \"%s\" gave %d\n", table[i].text, r);
        assert_int_equal(r, table[i].result);
        if (r == 0)
            assert_true(fabs(share - table[i].share) < 1e-12);
        else
            assert_true(share == -1);
        assert_int_equal(error.code, -r);
    }
}

static void messages_name_the_text_and_what_is_allowed(void **state)
{
    struct cp_error error;
    double value;
    uint64_t ns;

    (void)state;
    (void)cp_parse_rate("fast", &value, &error);
    assert_non_null(strstr(error.message, "\"fast\""));
    assert_non_null(strstr(error.message, "500/s"));
    (void)cp_parse_time("10", &ns, &error);
    assert_non_null(strstr(error.message, "\"10\""));
    assert_non_null(strstr(error.message, "ms"));
    (void)cp_parse_share("101%", &value, &error);
    assert_non_null(strstr(error.message, "101%"));
    assert_non_null(strstr(error.message, "100%"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builtin_is_as_designed),
        cmocka_unit_test(words_go_round),
        cmocka_unit_test(rates),
        cmocka_unit_test(times),
        cmocka_unit_test(shares),
        cmocka_unit_test(messages_name_the_text_and_what_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
