/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recorded machines of odd shapes, made here as directories with sys/ and sometimes proc/. */
#include "machine-fixture.h"

static void put_cpus(const char *tree, const struct recorded_cpu *cpus, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_cpu(tree, &cpus[i]);
}

static void test_no_cpu_0_offline_and_isolated(void **state)
{
    static const struct recorded_cpu cpus[] = {
        {2, "2-3", "2-5", {{3, "Unified", "8192K", "2-5"}}},
        {3, "2-3", "2-5", {{3, "Unified", "8192K", "2-5"}}},
        {4, "4-5", "2-5", {{3, "Unified", "8192K", "2-5"}}},
        {5, "4-5", "2-5", {{3, "Unified", "8192K", "2-5"}}},
    };
    struct cp_machine *machine;
    char tree[64];

    (void)state;
    make_tree(tree);
    put_cpus(tree, cpus, CP_ELEMENTS(cpus));
    put_lists(tree, "2-5\n", "0-7\n", "0-15\n");
    put_file(tree, CPU_DIRECTORY "isolated", "4,7\n");
    put_file(tree, CPU_DIRECTORY "nohz_full", "5\n");
    /* Directories of offline CPUs stay without topology. */
    put_file(tree, CPU_DIRECTORY "cpu0/online", "0\n");
    machine = load_machine(CP_MACHINE_ROOT, tree);
    expect_sound(machine);
    assert_false(machine->live);
    expect_cpus(&machine->online, "2-5");
    expect_cpus(&machine->offline, "0-1,6-7");
    expect_cpus(&machine->possible, "0-15");
    expect_cpus(&machine->isolated, "4-5,7");
    expect_cpus(&machine->disallowed, "");
    expect_cpus(&machine->usable, "2-3");
    expect_domain(machine, CP_LEVEL_CORE, 0, "2-3");
    expect_domain(machine, CP_LEVEL_CORE, 1, "4-5");
    expect_domain(machine, CP_LEVEL_LLC, 0, "2-5");
    assert_int_equal(machine->domains[CP_LEVEL_LLC][0].cache_level, 3);
    assert_int_equal(machine->domains[CP_LEVEL_LLC][0].cache_bytes, 8192 * 1024);
    assert_null(cp_machine_find_cpu(machine, (struct cp_cpu){0}));
    cp_machine_unref(machine);
    remove_tree(tree);
}

static void test_no_cache_and_no_lists(void **state)
{
    static const struct recorded_cpu cpus[] = {
        {0, "0", "0-1", {{0}}},
        {1, "1", "0-1", {{0}}},
        {2, "2", "2-3", {{0}}},
        {3, "3", "2-3", {{0}}},
    };
    struct cp_machine *machine;
    char tree[64];

    (void)state;
    make_tree(tree);
    put_cpus(tree, cpus, CP_ELEMENTS(cpus));
    machine = load_machine(CP_MACHINE_ROOT, tree);
    expect_sound(machine);
    assert_int_equal(machine->n_cpus, 4);
    /* The one node stands for the cache. */
    assert_int_equal(machine->n_domains[CP_LEVEL_LLC], 1);
    expect_domain(machine, CP_LEVEL_LLC, 0, "0-3");
    assert_false(machine->domains[CP_LEVEL_LLC][0].real);
    assert_int_equal(machine->domains[CP_LEVEL_LLC][0].cache_level, 0);
    assert_int_equal(cp_machine_shared_level(machine, (struct cp_cpu){0}, (struct cp_cpu){3}),
                     CP_LEVEL_LLC);
    cp_machine_unref(machine);
    remove_tree(tree);
}

static void test_ids_above_1023(void **state)
{
    static const struct recorded_cpu cpus[] = {
        {3, "3,1500", "3,1500", {{2, "Unified", "1024K", "3,1500"}}},
        {1500, "3,1500", "3,1500", {{2, "Unified", "1024K", "3,1500"}}},
        {2000, "2000", "2000", {{2, "Unified", "1024K", "2000"}}},
    };
    struct cp_machine *machine;
    char tree[64];

    (void)state;
    make_tree(tree);
    put_cpus(tree, cpus, CP_ELEMENTS(cpus));
    put_lists(tree, "3,1500,2000\n", "3,1500,2000\n", "0-2047\n");
    put_file(tree, CPU_DIRECTORY "isolated", "1500-2000\n");
    machine = load_machine(CP_MACHINE_ROOT, tree);
    expect_sound(machine);
    expect_domain(machine, CP_LEVEL_CORE, 0, "3,1500");
    expect_domain(machine, CP_LEVEL_CORE, 1, "2000");
    expect_cpus(&machine->usable, "3");
    assert_int_equal(cp_machine_shared_level(machine, (struct cp_cpu){3}, (struct cp_cpu){1500}),
                     CP_LEVEL_CORE);
    cp_machine_unref(machine);
    remove_tree(tree);
}

/* One L3 over two packages, as some virtual machines show it; the L3's CPUs differ in node. */
static void test_llc_wider_than_package_and_node(void **state)
{
    static const struct recorded_cpu cpus[] = {
        {0, "0", "0-1", {{1, "Data", "32K", "0"}, {3, "Unified", "16384K", "0-3"}}},
        {1, "1", "0-1", {{1, "Data", "32K", "1"}, {3, "Unified", "16384K", "0-3"}}},
        {2, "2", "2-3", {{1, "Data", "32K", "2"}, {3, "Unified", "16384K", "0-3"}}},
        {3, "3", "2-3", {{1, "Data", "32K", "3"}, {3, "Unified", "16384K", "0-3"}}},
    };
    struct cp_machine *machine;
    char tree[64];

    (void)state;
    make_tree(tree);
    put_cpus(tree, cpus, CP_ELEMENTS(cpus));
    put_lists(tree, "0-3\n", "0-3\n", "0-3\n");
    put_file(tree, "sys/devices/system/node/online", "0-1\n");
    put_node(tree, 0, "0-1");
    put_node(tree, 1, "2-3");
    machine = load_machine(CP_MACHINE_ROOT, tree);
    expect_sound(machine);
    assert_int_equal(machine->n_domains[CP_LEVEL_PACKAGE], 2);
    assert_int_equal(machine->n_domains[CP_LEVEL_NODE], 2);
    assert_int_equal(machine->n_domains[CP_LEVEL_LLC], 1);
    expect_domain(machine, CP_LEVEL_LLC, 0, "0-3");
    assert_int_equal(cp_machine_shared_level(machine, (struct cp_cpu){0}, (struct cp_cpu){3}),
                     CP_LEVEL_LLC);
    cp_machine_unref(machine);
    remove_tree(tree);
}

/* Efficient cores whose outermost cache is an L2 beside others with an L3; an instruction cache
 * is never one. */
static void test_llcs_of_several_kinds(void **state)
{
    static const struct recorded_cpu cpus[] = {
        {0, "0", "0-4", {{2, "Unified", "2048K", "0"}, {3, "Unified", "12288K", "0-1"}}},
        {1, "1", "0-4", {{2, "Unified", "2048K", "1"}, {3, "Unified", "12288K", "0-1"}}},
        {2, "2", "0-4", {{1, "Data", "32K", "2"}, {2, "Unified", "1024K", "2-3"}}},
        {3, "3", "0-4", {{1, "Data", "32K", "3"}, {2, "Unified", "1024K", "2-3"}}},
        {4, "4", "0-4", {{1, "Instruction", "32K", "4"}}},
    };
    struct cp_machine *machine;
    char tree[64];

    (void)state;
    make_tree(tree);
    put_cpus(tree, cpus, CP_ELEMENTS(cpus));
    put_lists(tree, "0-4\n", "0-4\n", "0-4\n");
    machine = load_machine(CP_MACHINE_ROOT, tree);
    expect_sound(machine);
    assert_int_equal(machine->n_domains[CP_LEVEL_LLC], 3);
    expect_domain(machine, CP_LEVEL_LLC, 0, "0-1");
    expect_domain(machine, CP_LEVEL_LLC, 1, "2-3");
    expect_domain(machine, CP_LEVEL_LLC, 2, "4");
    assert_int_equal(machine->domains[CP_LEVEL_LLC][0].cache_level, 3);
    assert_int_equal(machine->domains[CP_LEVEL_LLC][1].cache_level, 2);
    assert_true(machine->domains[CP_LEVEL_LLC][1].real);
    assert_false(machine->domains[CP_LEVEL_LLC][2].real);
    cp_machine_unref(machine);
    remove_tree(tree);
}

/* Node 1 has memory only; CPUs 2-3 belong to no node (a die without memory). */
static void test_nodes_without_cpus_and_cpus_without_node(void **state)
{
    static const struct recorded_cpu cpus[] = {
        {0, "0", "0-3", {{3, "Unified", "8192K", "0-1"}}},
        {1, "1", "0-3", {{3, "Unified", "8192K", "0-1"}}},
        {2, "2", "0-3", {{0}}},
        {3, "3", "0-3", {{0}}},
    };
    struct cp_machine *machine;
    char tree[64];

    (void)state;
    make_tree(tree);
    put_cpus(tree, cpus, CP_ELEMENTS(cpus));
    put_lists(tree, "0-3\n", "0-3\n", "0-3\n");
    put_file(tree, "sys/devices/system/node/online", "0-1\n");
    put_node(tree, 0, "0-1");
    put_node(tree, 1, "");
    put_file(tree, "sys/devices/system/node/node1/cpumap", "00000000\n");
    machine = load_machine(CP_MACHINE_ROOT, tree);
    expect_sound(machine);
    assert_int_equal(machine->n_domains[CP_LEVEL_NODE], 1);
    expect_domain(machine, CP_LEVEL_NODE, 0, "0-1");
    assert_int_equal(machine->n_memory_nodes, 1);
    assert_int_equal(machine->memory_nodes[0], 1);
    assert_null(cp_machine_domain_of(machine, CP_LEVEL_NODE, (struct cp_cpu){2}));
    /* Neither cache nor node: the package stands in, for these two only. */
    expect_domain(machine, CP_LEVEL_LLC, 1, "2-3");
    assert_false(machine->domains[CP_LEVEL_LLC][1].real);
    cp_machine_unref(machine);
    remove_tree(tree);
}

/* The recorded process's own cpuset (cgroup v1). */
static void test_disallowed_cpus_are_shown_and_not_usable(void **state)
{
    static const struct recorded_cpu cpus[] = {
        {0, "0", "0-3", {{3, "Unified", "8192K", "0-3"}}},
        {1, "1", "0-3", {{3, "Unified", "8192K", "0-3"}}},
        {2, "2", "0-3", {{3, "Unified", "8192K", "0-3"}}},
        {3, "3", "0-3", {{3, "Unified", "8192K", "0-3"}}},
    };
    struct cp_machine *machine;
    char tree[64];

    (void)state;
    make_tree(tree);
    put_cpus(tree, cpus, CP_ELEMENTS(cpus));
    put_lists(tree, "0-3\n", "0-3\n", "0-3\n");
    put_file(tree, "proc/mounts",
             "cgroup /sys/fs/cgroup/cpuset cgroup rw,nosuid,nodev,noexec,relatime,cpuset 0 0\n");
    put_file(tree, "proc/self/cgroup", "3:cpuset:/part\n");
    put_file(tree, "sys/fs/cgroup/cpuset/part/cpuset.cpus", "1-2\n");
    put_file(tree, "sys/fs/cgroup/cpuset/part/cpuset.mems", "0\n");
    machine = load_machine(CP_MACHINE_ROOT, tree);
    expect_sound(machine);
    expect_cpus(&machine->online, "0-3");
    expect_cpus(&machine->disallowed, "0,3");
    expect_cpus(&machine->usable, "1-2");
    expect_domain(machine, CP_LEVEL_LLC, 0, "0-3");
    cp_machine_unref(machine);
    remove_tree(tree);
}

static void test_stale_after_hotplug(void **state)
{
    static const struct recorded_cpu cpus[] = {
        {0, "0", "0-1", {{0}}},
        {1, "1", "0-1", {{0}}},
    };
    struct cp_machine *machine;
    struct cp_root root;
    char tree[64];

    (void)state;
    make_tree(tree);
    put_cpus(tree, cpus, CP_ELEMENTS(cpus));
    put_lists(tree, "0-1\n", "0-1\n", "0-1\n");
    assert_int_equal(cp_root_open(&root, tree), 0);
    machine = load_machine(CP_MACHINE_ROOT, tree);
    assert_int_equal(machine->generation, 7);
    assert_int_equal(cp_machine_is_stale(machine, &root), 0);
    put_file(tree, CPU_DIRECTORY "online", "0\n");
    assert_int_equal(cp_machine_is_stale(machine, &root), 1);
    cp_machine_unref(machine);
    machine = load_machine(CP_MACHINE_ROOT, tree);
    expect_cpus(&machine->online, "0");
    expect_cpus(&machine->offline, "1");
    assert_int_equal(cp_machine_is_stale(machine, &root), 0);
    put_file(tree, CPU_DIRECTORY "online", "x\n");
    assert_int_equal(cp_machine_is_stale(machine, &root), -EBADMSG);
    cp_machine_unref(machine);
    cp_root_done(&root);
    remove_tree(tree);
}

static void test_what_is_no_recorded_machine(void **state)
{
    char tree[64];

    (void)state;
    make_tree(tree);
    expect_load_error(CP_MACHINE_ROOT, tree, ENOENT, "no recorded machine");
    expect_load_error(CP_MACHINE_ROOT, "/nonexistent/machine", ENOENT, "/nonexistent/machine");
    put_file(tree, CPU_DIRECTORY "online", "a mess\n");
    expect_load_error(CP_MACHINE_ROOT, tree, EBADMSG, "online: this is no list of CPUs");
    remove_tree(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_cpu_0_offline_and_isolated),
        cmocka_unit_test(test_no_cache_and_no_lists),
        cmocka_unit_test(test_ids_above_1023),
        cmocka_unit_test(test_llc_wider_than_package_and_node),
        cmocka_unit_test(test_llcs_of_several_kinds),
        cmocka_unit_test(test_nodes_without_cpus_and_cpus_without_node),
        cmocka_unit_test(test_disallowed_cpus_are_shown_and_not_usable),
        cmocka_unit_test(test_stale_after_hotplug),
        cmocka_unit_test(test_what_is_no_recorded_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
