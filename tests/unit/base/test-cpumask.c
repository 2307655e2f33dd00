/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPU sets against a plain array, and their list form: tables and generated round trips. */
#include "base/cpumask.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MODEL_SIZE 700u

/* xorshift64*: the same cases on every machine. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static struct cp_cpu cpu_of(unsigned os)
{
    return (struct cp_cpu){os};
}

static void accepted_lists(void **state)
{
    static const struct {
        const char *text;
        const char *canonical;
        unsigned weight;
    } table[] = {
        {"", "", 0},
        {" \n", "", 0},
        {"0", "0", 1},
        {"0\n", "0", 1},
        {"  3 \n", "3", 1},
        {"0-3,8", "0-3,8", 5},
        {"8,0-3", "0-3,8", 5},
        {"0-3,2-5", "0-5", 6},
        {"1,2,3", "1-3", 3},
        {"5-5", "5", 1},
        {"007", "7", 1},
        {"63,64", "63-64", 2},
        {"0-31:2/16", "0-1,16-17", 4},
        {"0-10:3/4", "0-2,4-6,8-10", 9},
        {"0-8:4/4", "0-8", 9},
        {"16-31:16/31", "16-31", 16},
        {"7:1/3", "7", 1},
        {"1023-1025", "1023-1025", 3},
        {"0-65535", "0-65535", 65536},
        {"65535", "65535", 1},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        _cleanup_cpumask_ struct cp_cpumask mask = {0};
        _cleanup_free_ char *list = NULL;

        assert_int_equal(cp_cpumask_parse_list(table[i].text, &mask), 0);
        assert_int_equal(cp_cpumask_weight(&mask), table[i].weight);
        assert_int_equal(cp_cpumask_is_empty(&mask), table[i].weight == 0);
        list = cp_cpumask_to_list(&mask);
        assert_non_null(list);
        assert_string_equal(list, table[i].canonical);
    }
}

static void refused_lists(void **state)
{
    static const struct {
        const char *text;
        int result;
    } table[] = {
        {"-1", -EINVAL},          {"+1", -EINVAL},      {"1-", -EINVAL},
        {"3-1", -EINVAL},         {"1,", -EINVAL},      {",1", -EINVAL},
        {"1,,2", -EINVAL},        {",", -EINVAL},       {"1 2", -EINVAL},
        {"1, 2", -EINVAL},        {"1 ,2", -EINVAL},    {"1-2-3", -EINVAL},
        {"a", -EINVAL},           {"1a", -EINVAL},      {"0x1", -EINVAL},
        {"all", -EINVAL},         {"1.5", -EINVAL},     {"0-3:", -EINVAL},
        {"0-3:1", -EINVAL},       {"0-3:1/", -EINVAL},  {"0-3:0/2", -EINVAL},
        {"0-3:3/2", -EINVAL},     {"0-3:1/0", -EINVAL}, {"0-3:/2", -EINVAL},
        {"0-3:-1/2", -EINVAL},    {"1\x01", -EINVAL},   {"1\xff", -EINVAL},
        {"65536", -ERANGE},       {"0-65536", -ERANGE}, {"99999999999999999999", -ERANGE},
        {"0-3:1/70000", -ERANGE},
    };
    _cleanup_cpumask_ struct cp_cpumask mask = {0};

    (void)state;
    assert_int_equal(cp_cpumask_set(&mask, cpu_of(5)), 0);
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        int r = cp_cpumask_parse_list(table[i].text, &mask);

        if (r != table[i].result)
            print_error("list \"%s\" gave %d\n", table[i].text, r);
        assert_int_equal(r, table[i].result);
        assert_int_equal(cp_cpumask_weight(&mask), 1);
        assert_true(cp_cpumask_test(&mask, cpu_of(5)));
    }
}

static void fill(uint64_t *random, bool *model, struct cp_cpumask *mask)
{
    unsigned n = (unsigned)(next_random(random) % 40);

    for (unsigned i = 0; i < n; i++) {
        unsigned first = (unsigned)(next_random(random) % MODEL_SIZE);
        unsigned last = first + (unsigned)(next_random(random) % 70);

        if (last >= MODEL_SIZE)
            last = MODEL_SIZE - 1;
        assert_int_equal(cp_cpumask_set_range(mask, cpu_of(first), cpu_of(last)), 0);
        for (unsigned os = first; os <= last; os++)
            model[os] = true;
        if (next_random(random) % 3 == 0) {
            cp_cpumask_clear(mask, cpu_of(first));
            model[first] = false;
        }
    }
}

static void assert_is_model(const struct cp_cpumask *mask, const bool *model)
{
    unsigned weight = 0;
    struct cp_cpu cpu;
    unsigned expected = 0;

    for (unsigned os = 0; os < MODEL_SIZE; os++) {
        assert_int_equal(cp_cpumask_test(mask, cpu_of(os)), model[os]);
        weight += model[os];
    }
    assert_int_equal(cp_cpumask_weight(mask), weight);
    cp_cpumask_foreach (cpu, mask) {
        while (!model[expected])
            expected++;
        assert_int_equal(cpu.os, expected);
        expected++;
        weight--;
    }
    assert_int_equal(weight, 0);
}

static void generated_sets_match_a_plain_array(void **state)
{
    uint64_t random = 20240601;

    (void)state;
    for (unsigned round = 0; round < 400; round++) {
        _cleanup_cpumask_ struct cp_cpumask a = {0};
        _cleanup_cpumask_ struct cp_cpumask b = {0};
        _cleanup_cpumask_ struct cp_cpumask again = {0};
        _cleanup_free_ char *list = NULL;
        bool in_a[MODEL_SIZE] = {false};
        bool in_b[MODEL_SIZE] = {false};
        bool want[3][MODEL_SIZE];
        bool intersects = false;
        bool subset = true;

        fill(&random, in_a, &a);
        fill(&random, in_b, &b);
        assert_is_model(&a, in_a);
        for (unsigned os = 0; os < MODEL_SIZE; os++) {
            want[0][os] = in_a[os] && in_b[os];
            want[1][os] = in_a[os] || in_b[os];
            want[2][os] = in_a[os] && !in_b[os];
            intersects |= want[0][os];
            subset &= !want[2][os];
        }
        assert_int_equal(cp_cpumask_intersects(&a, &b), intersects);
        assert_int_equal(cp_cpumask_is_subset(&a, &b), subset);
        assert_int_equal(cp_cpumask_equal(&a, &b), memcmp(in_a, in_b, sizeof(in_a)) == 0);
        list = cp_cpumask_to_list(&a);
        assert_int_equal(cp_cpumask_parse_list(list, &again), 0);
        assert_true(cp_cpumask_equal(&a, &again));
        /* The result may lie over either operand. */
        assert_int_equal(cp_cpumask_and(&again, &again, &b), 0);
        assert_is_model(&again, want[0]);
        assert_int_equal(cp_cpumask_or(&again, &a, &b), 0);
        assert_is_model(&again, want[1]);
        assert_int_equal(cp_cpumask_andnot(&b, &a, &b), 0);
        assert_is_model(&b, want[2]);
        assert_int_equal(cp_cpumask_copy(&a, &b), 0);
        assert_is_model(&a, want[2]);
        cp_cpumask_zero(&a);
        assert_true(cp_cpumask_is_empty(&a));
    }
}

/* Texts of the list alphabet: whatever is accepted must survive its own canonical form. */
static void generated_texts_are_refused_or_go_round(void **state)
{
    static const char alphabet[] = "0123456789999-,:/ \n";
    uint64_t random = 77;
    unsigned n_accepted = 0;

    (void)state;
    for (unsigned round = 0; round < 60000; round++) {
        _cleanup_cpumask_ struct cp_cpumask mask = {0};
        _cleanup_cpumask_ struct cp_cpumask again = {0};
        _cleanup_free_ char *list = NULL;
        char text[13];
        size_t length = next_random(&random) % (sizeof(text) - 1);

        for (size_t i = 0; i < length; i++)
            text[i] = alphabet[next_random(&random) % (sizeof(alphabet) - 1)];
        text[length] = '\0';
        if (cp_cpumask_parse_list(text, &mask) < 0) {
            assert_true(cp_cpumask_is_empty(&mask));
            continue;
        }
        n_accepted++;
        list = cp_cpumask_to_list(&mask);
        assert_int_equal(cp_cpumask_parse_list(list, &again), 0);
        assert_true(cp_cpumask_equal(&mask, &again));
    }
    assert_true(n_accepted > 1000);
}

static void limits(void **state)
{
    _cleanup_cpumask_ struct cp_cpumask mask = {0};
    struct cp_cpu cpu = {7};

    (void)state;
    assert_int_equal(cp_cpumask_set(&mask, cpu_of(CP_CPU_LIMIT)), -ERANGE);
    assert_int_equal(cp_cpumask_set(&mask, cpu_of(UINT32_MAX)), -ERANGE);
    assert_int_equal(cp_cpumask_set_range(&mask, cpu_of(4), cpu_of(3)), -ERANGE);
    assert_true(cp_cpumask_is_empty(&mask));
    assert_false(cp_cpumask_test(&mask, cpu_of(UINT32_MAX)));
    cp_cpumask_clear(&mask, cpu_of(UINT32_MAX));
    assert_false(cp_cpumask_next(&mask, 0, &cpu));
    assert_false(cp_cpumask_next(&mask, UINT32_MAX, &cpu));
    assert_int_equal(cpu.os, 7);
    assert_int_equal(cp_cpumask_set(&mask, cpu_of(CP_CPU_LIMIT - 1)), 0);
    assert_true(cp_cpumask_next(&mask, 1, &cpu));
    assert_int_equal(cpu.os, CP_CPU_LIMIT - 1);
    assert_false(cp_cpumask_next(&mask, CP_CPU_LIMIT, &cpu));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted_lists),
        cmocka_unit_test(refused_lists),
        cmocka_unit_test(generated_sets_match_a_plain_array),
        cmocka_unit_test(generated_texts_are_refused_or_go_round),
        cmocka_unit_test(limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
