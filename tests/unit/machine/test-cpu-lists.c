/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's CPU lists: command lines as kernels accept them, files that are missing or odd. */
#include "machine-fixture.h"
#include "machine/cpu-lists.h"

static const struct {
    const char *cmdline;
    bool isolcpus;
    const char *cpus;
} cmdlines[] = {
    {"quiet isolcpus=2-3", true, "2-3"},
    {"isolcpus=2-3\n", true, "2-3"},
    {"isolcpus=domain,2-3", true, "2-3"},
    {"isolcpus=nohz,domain,managed_irq,2-3", true, "2-3"},
    {"isolcpus=nohz,2", true, "2"},
    /* Interrupts only: tasks run there as elsewhere. */
    {"isolcpus=managed_irq,2-3", true, ""},
    {"isolcpus=domain,managed_irq,1,5", true, "1,5"},
    {"isolcpus=1-N", true, "1-7"},
    {"isolcpus=all", true, "0-7"},
    {"isolcpus=0-7:1/2", true, "0,2,4,6"},
    {"isolcpus=1 isolcpus=3", true, "1,3"},
    {"isolcpus=", true, ""},
    {"isolcpus=x", true, ""},
    {"isolcpus=3-1", true, ""},
    {"isolcpus=99999999999", true, ""},
    {"xisolcpus=1", true, ""},
    {"nohz_full=1", true, ""},
    {"nohz_full=1-3,6", false, "1-3,6"},
    {"isolcpus=1", false, ""},
    {"quiet -- isolcpus=1", true, ""},
    {"", true, ""},
};

static void test_command_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(cmdlines); i++) {
        _cleanup_cpumask_ struct cp_cpumask mask = {0};
        _cleanup_free_ char *list = NULL;

        assert_int_equal(cp_cpu_lists_parse_cmdline(cmdlines[i].cmdline, cmdlines[i].isolcpus,
                                                    (struct cp_cpu){7}, &mask),
                         0);
        list = cp_cpumask_to_list(&mask);
        if (strcmp(list, cmdlines[i].cpus) != 0)
            fail_msg("\"%s\": %s instead of %s", cmdlines[i].cmdline, list, cmdlines[i].cpus);
    }
}

/* Reads the lists of a tree; the caller frees them. */
static int read_tree(const char *tree, struct cp_cpu_lists *ret_lists, struct cp_error *error)
{
    struct cp_root root;
    int r;

    assert_int_equal(cp_root_open(&root, tree), 0);
    r = cp_cpu_lists_read(&root, ret_lists, error);
    cp_root_done(&root);
    return r;
}

static void test_files_win_over_the_command_line(void **state)
{
    _cleanup_cpu_lists_ struct cp_cpu_lists lists = {0};
    char tree[64];

    (void)state;
    make_tree(tree);
    put_lists(tree, "0-3\n", "0-5\n", "0-63\n");
    put_file(tree, CPU_DIRECTORY "isolated", "2\n");
    put_file(tree, CPU_DIRECTORY "nohz_full", "  (null)\n");
    put_file(tree, "proc/cmdline", "isolcpus=1 nohz_full=3\n");
    assert_int_equal(read_tree(tree, &lists, NULL), 0);
    assert_true(lists.online_known);
    expect_cpus(&lists.online, "0-3");
    expect_cpus(&lists.present, "0-5");
    expect_cpus(&lists.possible, "0-63");
    expect_cpus(&lists.isolated, "2");
    remove_tree(tree);
}

static void test_command_line_stands_in_for_missing_files(void **state)
{
    _cleanup_cpu_lists_ struct cp_cpu_lists lists = {0};
    char tree[64];

    (void)state;
    make_tree(tree);
    put_lists(tree, "0-3\n", "0-3\n", "0-3\n");
    put_file(tree, CPU_DIRECTORY "isolated", "\n");
    put_file(tree, "proc/cmdline", "isolcpus=1 nohz_full=2-N\n");
    assert_int_equal(read_tree(tree, &lists, NULL), 0);
    expect_cpus(&lists.isolated, "2-3");
    remove_tree(tree);
}

static void test_everything_may_be_missing(void **state)
{
    _cleanup_cpu_lists_ struct cp_cpu_lists lists = {0};
    char tree[64];

    (void)state;
    make_tree(tree);
    assert_int_equal(read_tree(tree, &lists, NULL), 0);
    assert_false(lists.online_known);
    assert_true(cp_cpumask_is_empty(&lists.possible));
    assert_true(cp_cpumask_is_empty(&lists.isolated));
    remove_tree(tree);
}

static void test_isolated_partitions_count(void **state)
{
    _cleanup_cpu_lists_ struct cp_cpu_lists lists = {0};
    char tree[64];

    (void)state;
    make_tree(tree);
    put_file(tree, CPU_DIRECTORY "isolated", "1\n");
    put_file(tree, "sys/fs/cgroup/cpuset.cpus.isolated", "5-6\n");
    assert_int_equal(read_tree(tree, &lists, NULL), 0);
    expect_cpus(&lists.isolated, "1,5-6");
    remove_tree(tree);
}

static void test_a_malformed_list_is_named(void **state)
{
    static const char *const files[] = {"online", "present", "possible", "isolated", "nohz_full"};

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(files); i++) {
        struct cp_cpu_lists lists = {0};
        struct cp_error error = {0};
        char tree[64];
        char path[64];

        make_tree(tree);
        (void)snprintf(path, sizeof(path), CPU_DIRECTORY "%s", files[i]);
        put_file(tree, path, "0-banana\n");
        assert_int_equal(read_tree(tree, &lists, &error), -EBADMSG);
        assert_non_null(strstr(error.file, path));
        assert_true(cp_cpumask_is_empty(&lists.online));
        remove_tree(tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_lines),
        cmocka_unit_test(test_files_win_over_the_command_line),
        cmocka_unit_test(test_command_line_stands_in_for_missing_files),
        cmocka_unit_test(test_everything_may_be_missing),
        cmocka_unit_test(test_isolated_partitions_count),
        cmocka_unit_test(test_a_malformed_list_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
