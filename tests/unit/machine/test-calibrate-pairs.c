/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which CPU pairs calibration takes, on synthetic machines. Nothing is measured here. */
#include "machine/calibrate.h"

#include "machine-fixture.h"

static void expect_pairs(const struct cp_machine *machine, enum cp_level level, size_t expected)
{
    struct cp_cpu_pair pairs[4];
    size_t n = cp_calibrate_choose(machine, level, pairs, 4);

    if (n != expected)
        print_error("%s: %zu pairs\n", cp_level_to_string(level), n);
    assert_int_equal(n, expected);
    for (size_t i = 0; i < n; i++) {
        assert_true(cp_cpumask_test(&machine->usable, pairs[i].a));
        assert_true(cp_cpumask_test(&machine->usable, pairs[i].b));
        if (level == CP_LEVEL_CPU)
            assert_int_equal(pairs[i].a.os, pairs[i].b.os);
        else
            assert_int_equal(cp_machine_shared_level(machine, pairs[i].a, pairs[i].b), level);
        for (size_t k = 0; k < i; k++) {
            assert_false(pairs[k].a.os == pairs[i].a.os && pairs[k].b.os == pairs[i].b.os);
            assert_false(pairs[k].a.os == pairs[i].b.os && pairs[k].b.os == pairs[i].a.os);
        }
    }
}

static void levels_of_machines(void **state)
{
    static const struct {
        const char *text;
        size_t expected[CP_LEVEL_MAX]; /* pairs by level */
    } table[] = {
        {"package:1 l3:1 core:1 pu:1", {1, 0, 0, 0, 0, 0}},
        {"package:1 l3:1 core:2 pu:1", {2, 0, 1, 0, 0, 0}},
        {"package:1 l3:1 core:1 pu:2", {2, 1, 0, 0, 0, 0}},
        {"package:2 numa:1 l3:4 core:4 pu:2", {4, 4, 4, 4, 0, 4}},
        /* One node over both packages: nearer than the machine. */
        {"package:2 l3:4 core:4 pu:2", {4, 4, 4, 4, 0, 0}},
        {"package:2 numa:4 l3:2 core:4 pu:1", {4, 0, 4, 4, 4, 4}},
        {"package:2 numa:2 l3:8 core:16 pu:2", {4, 4, 4, 4, 4, 4}}, /* 1024 CPUs */
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct cp_machine *machine = load_machine(CP_MACHINE_SYNTHETIC, table[i].text);

        for (unsigned level = 0; level < CP_LEVEL_MAX; level++)
            expect_pairs(machine, (enum cp_level)level, table[i].expected[level]);
        cp_machine_unref(machine);
    }
}

static void pairs_lie_apart(void **state)
{
    struct cp_machine *machine = load_machine(CP_MACHINE_SYNTHETIC, "package:2 l3:4 core:4 pu:2");
    struct cp_cpu_pair pairs[4];

    (void)state;
    assert_int_equal(cp_calibrate_choose(machine, CP_LEVEL_LLC, pairs, 4), 4);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(cp_machine_domain_of(machine, CP_LEVEL_LLC, pairs[i].a),
                                 cp_machine_domain_of(machine, CP_LEVEL_LLC, pairs[k].a));
    cp_machine_unref(machine);
}

/* Snapshots are never changed; a copy of the struct with another set of usable CPUs is. */
static void only_usable_cpus(void **state)
{
    struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "package:2 numa:1 l3:2 core:4 pu:2");
    struct cp_machine narrow = *machine;
    struct cp_cpumask usable = {0};

    (void)state;
    /* Two SMT siblings of one core, and one CPU of the other package. */
    assert_int_equal(cp_cpumask_parse_list("2-3,17", &usable), 0);
    narrow.usable = usable;
    expect_pairs(&narrow, CP_LEVEL_CPU, 3);
    expect_pairs(&narrow, CP_LEVEL_CORE, 1);
    expect_pairs(&narrow, CP_LEVEL_LLC, 0);
    expect_pairs(&narrow, CP_LEVEL_MACHINE, 2);
    cp_cpumask_zero(&narrow.usable);
    expect_pairs(&narrow, CP_LEVEL_CPU, 0);
    expect_pairs(&narrow, CP_LEVEL_MACHINE, 0);
    cp_cpumask_done(&narrow.usable);
    cp_machine_unref(machine);
}

static void other_machines_are_not_measured(void **state)
{
    struct cp_machine *machine = load_machine(CP_MACHINE_SYNTHETIC, "package:1 core:2 pu:1");
    struct cp_costs costs;
    struct cp_costs before;
    struct cp_error error = {0};

    (void)state;
    cp_costs_init_default(&costs);
    before = costs;
    assert_int_equal(cp_calibrate(machine, 1000000000, NULL, &costs, &error), -EINVAL);
    assert_non_null(strstr(error.message, "synthetic"));
    assert_memory_equal(&costs, &before, sizeof(costs));
    cp_machine_unref(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_of_machines),
        cmocka_unit_test(pairs_lie_apart),
        cmocka_unit_test(only_usable_cpus),
        cmocka_unit_test(other_machines_are_not_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
