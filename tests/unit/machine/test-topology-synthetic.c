/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Synthetic machines up to 1 024 CPUs: domains, levels, questions to a snapshot. */
#include "machine-fixture.h"

static const struct {
    const char *text;
    uint32_t n_cpus, n_cores, n_llcs, n_nodes, n_packages;
    bool real;
    unsigned cache_level;
} machines[] = {
    {"package:2 l3:4 core:2 pu:2", 32, 16, 8, 1, 2, true, 3},
    {"package:2 [numa] l3:8 core:8 pu:2", 256, 128, 16, 2, 2, true, 3},
    {"package:4 [numa] l3:16 core:8 pu:2", 1024, 512, 64, 4, 4, true, 3},
    /* Chiplets with several nodes in a package. */
    {"package:2 numa:4 l3:2 core:4 pu:2", 128, 64, 16, 8, 2, true, 3},
    /* L3 over several nodes (sub-NUMA clusters); over several packages (virtual machines). */
    {"package:1 l3:1 numa:2 core:4 pu:1", 8, 8, 1, 2, 1, true, 3},
    {"l3:1 package:8 core:1 pu:1", 8, 8, 1, 1, 8, true, 3},
    /* L2 only; L1 only; an L4 above L3s. */
    {"package:1 core:61 l2:1 pu:4", 244, 61, 61, 1, 1, true, 2},
    {"core:4 l1d:1 pu:1", 4, 4, 4, 1, 0, true, 1},
    {"package:1 l4:1 l3:2 core:4 pu:1", 8, 8, 1, 1, 1, true, 4},
    /* Instruction caches are none. */
    {"package:1 core:4 l1i:1 pu:2", 8, 4, 1, 1, 1, false, 0},
    /* No cache: each node stands for one. */
    {"package:2 [numa] core:4 pu:2", 16, 8, 2, 2, 2, false, 0},
    /* No core: each CPU is one. No package at all. */
    {"numa:2 pu:3", 6, 6, 2, 2, 0, false, 0},
    {"pu:1", 1, 1, 1, 1, 0, false, 0},
};

static void test_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(machines); i++) {
        _cleanup_machine_ struct cp_machine *machine =
            load_machine(CP_MACHINE_SYNTHETIC, machines[i].text);
        const struct cp_domain *llc = &machine->domains[CP_LEVEL_LLC][0];

        print_message("%s\n", machines[i].text);
        expect_sound(machine);
        assert_false(machine->live);
        assert_string_equal(machine->source + strlen("synthetic "), machines[i].text);
        assert_string_equal(machine->model, "unknown");
        assert_int_equal(machine->n_cpus, machines[i].n_cpus);
        assert_int_equal(machine->n_domains[CP_LEVEL_CORE], machines[i].n_cores);
        assert_int_equal(machine->n_domains[CP_LEVEL_LLC], machines[i].n_llcs);
        assert_int_equal(machine->n_domains[CP_LEVEL_NODE], machines[i].n_nodes);
        assert_int_equal(machine->n_domains[CP_LEVEL_PACKAGE], machines[i].n_packages);
        assert_int_equal(llc->real, machines[i].real);
        assert_int_equal(llc->cache_level, machines[i].cache_level);
        assert_true(cp_cpumask_equal(&machine->usable, &machine->online));
        assert_true(cp_cpumask_is_empty(&machine->offline));
    }
}

static void test_domains_follow_their_lowest_cpu(void **state)
{
    /* hwloc orders by position, with CPU 0 last here. */
    _cleanup_machine_ struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "package:2 l3:2 core:2 pu:1(indexes=7,5,3,6,4,1,2,0)");

    (void)state;
    expect_sound(machine);
    expect_domain(machine, CP_LEVEL_LLC, 0, "0,2");
    expect_domain(machine, CP_LEVEL_LLC, 1, "1,4");
    expect_domain(machine, CP_LEVEL_LLC, 2, "3,6");
    expect_domain(machine, CP_LEVEL_LLC, 3, "5,7");
    expect_domain(machine, CP_LEVEL_PACKAGE, 0, "0-2,4");
    assert_int_equal(machine->domains[CP_LEVEL_PACKAGE][0].os_index, 1);
    assert_int_equal(machine->cpus[7].domain[CP_LEVEL_LLC], 3);
}

static void test_high_numbers_without_cpu_0(void **state)
{
    _cleanup_machine_ struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "l2:2 core:1 pu:2(indexes=9000,17,1024,65535)");

    (void)state;
    expect_sound(machine);
    expect_cpus(&machine->online, "17,1024,9000,65535");
    expect_domain(machine, CP_LEVEL_LLC, 0, "17,9000");
    expect_domain(machine, CP_LEVEL_LLC, 1, "1024,65535");
    assert_null(cp_machine_find_cpu(machine, (struct cp_cpu){0}));
    assert_null(cp_machine_find_cpu(machine, (struct cp_cpu){1025}));
    assert_null(cp_machine_find_cpu(machine, (struct cp_cpu){UINT32_MAX}));
}

static void test_shared_levels(void **state)
{
    static const struct {
        unsigned a, b;
        enum cp_level level;
    } pairs[] = {
        {0, 0, CP_LEVEL_CPU},       {0, 1, CP_LEVEL_CORE},        {0, 2, CP_LEVEL_LLC},
        {0, 4, CP_LEVEL_NODE},      {3, 15, CP_LEVEL_PACKAGE},    {0, 16, CP_LEVEL_MACHINE},
        {9, 999, CP_LEVEL_MACHINE}, {999, 999, CP_LEVEL_MACHINE},
    };
    _cleanup_machine_ struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "package:2 numa:2 l3:2 core:2 pu:2");

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(pairs); i++) {
        const struct cp_cpu a = {pairs[i].a};
        const struct cp_cpu b = {pairs[i].b};

        assert_int_equal(cp_machine_shared_level(machine, a, b), pairs[i].level);
        assert_int_equal(cp_machine_shared_level(machine, b, a), pairs[i].level);
    }
    assert_ptr_equal(cp_machine_domain_of(machine, CP_LEVEL_NODE, (struct cp_cpu){9}),
                     &machine->domains[CP_LEVEL_NODE][1]);
    assert_null(cp_machine_domain_of(machine, CP_LEVEL_CPU, (struct cp_cpu){9}));
    assert_null(cp_machine_domain_of(machine, CP_LEVEL_MACHINE, (struct cp_cpu){9}));
    assert_null(cp_machine_domain_of(machine, CP_LEVEL_NODE, (struct cp_cpu){999}));
}

/* The quick answer against every pair of CPUs. */
static void test_levels_present(void **state)
{
    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(machines); i++) {
        _cleanup_machine_ struct cp_machine *machine =
            load_machine(CP_MACHINE_SYNTHETIC, machines[i].text);
        bool expected[CP_LEVEL_MAX] = {[CP_LEVEL_CPU] = true};
        bool present[CP_LEVEL_MAX];

        for (uint32_t a = 0; a < machine->n_cpus; a++)
            for (uint32_t b = a + 1; b < machine->n_cpus; b++)
                expected[cp_machine_shared_level(machine, machine->cpus[a].cpu,
                                                 machine->cpus[b].cpu)] = true;
        cp_machine_levels_present(machine, present);
        for (unsigned level = 0; level < CP_LEVEL_MAX; level++)
            if (present[level] != expected[level])
                fail_msg("%s: level %s", machines[i].text,
                         cp_level_to_string((enum cp_level)level));
    }
}

static void fingerprint_of(const char *text, const char *release, char ret[17])
{
    _cleanup_machine_ struct cp_machine *machine = load_machine(CP_MACHINE_SYNTHETIC, text);

    cp_machine_fingerprint(machine, release, ret);
    assert_int_equal(strlen(ret), 16);
    assert_int_equal(strspn(ret, "0123456789abcdef"), 16);
}

static void test_fingerprint(void **state)
{
    static const char *const others[] = {
        "package:2 l3:2 core:2 pu:1",
        "package:1 l3:4 core:2 pu:1",
        "package:2 l3:2 core:1 pu:2",
        "package:2 l2:2 core:2 pu:1",
        "package:2 [numa] l3:2 core:2 pu:1",
        "package:2 l3:2(size=1000000) core:2 pu:1",
        "package:2 l3:2 core:2 pu:1(indexes=0,1,2,3,4,5,6,8)",
    };
    char first[17];
    char again[17];

    (void)state;
    fingerprint_of(others[0], "6.1.0", first);
    fingerprint_of(others[0], "6.1.0", again);
    assert_string_equal(first, again);
    fingerprint_of(others[0], "6.1.1", again);
    assert_string_not_equal(first, again);
    for (size_t i = 1; i < CP_ELEMENTS(others); i++) {
        fingerprint_of(others[i], "6.1.0", again);
        assert_string_not_equal(first, again);
    }
}

static void test_references(void **state)
{
    struct cp_machine *machine = load_machine(CP_MACHINE_SYNTHETIC, "pu:2");

    (void)state;
    assert_int_equal(machine->generation, 7);
    assert_ptr_equal(cp_machine_ref(machine), machine);
    assert_null(cp_machine_unref(machine));
    assert_int_equal(machine->n_cpus, 2);
    assert_null(cp_machine_unref(machine));
    assert_null(cp_machine_unref(NULL));
}

static void test_what_is_no_description(void **state)
{
    char longest[6000];

    (void)state;
    memset(longest, ' ', sizeof(longest));
    (void)snprintf(longest + 5000, sizeof(longest) - 5000, "pu:1");
    expect_load_error(CP_MACHINE_SYNTHETIC, "", EINVAL, "no description");
    expect_load_error(CP_MACHINE_SYNTHETIC, "  ", EINVAL, "no description");
    expect_load_error(CP_MACHINE_SYNTHETIC, "banana:2 pu:2", EINVAL, "banana:2");
    expect_load_error(CP_MACHINE_SYNTHETIC, "package:2 pu:0", EINVAL, "pu:0");
    expect_load_error(CP_MACHINE_SYNTHETIC, "pu:99999999999999999999", E2BIG, "more than");
    expect_load_error(CP_MACHINE_SYNTHETIC, "package:1000 core:1000 pu:1000", E2BIG, "more than");
    expect_load_error(CP_MACHINE_SYNTHETIC, "2000 2000 2000", E2BIG, "more than");
    expect_load_error(CP_MACHINE_SYNTHETIC, "pu:2(indexes=1,65536)", ERANGE, "65536");
    expect_load_error(CP_MACHINE_SYNTHETIC, longest, E2BIG, "longer than");
}

static void test_the_largest_machine(void **state)
{
    _cleanup_machine_ struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "package:16 l3:16 core:32 pu:2");

    (void)state;
    assert_int_equal(machine->n_cpus, CP_MACHINE_CPUS_MAX);
    assert_int_equal(machine->n_domains[CP_LEVEL_LLC], 256);
    assert_int_equal(machine->n_domains[CP_LEVEL_CORE], 8192);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_domains_follow_their_lowest_cpu),
        cmocka_unit_test(test_high_numbers_without_cpu_0),
        cmocka_unit_test(test_shared_levels),
        cmocka_unit_test(test_levels_present),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_what_is_no_description),
        cmocka_unit_test(test_the_largest_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
