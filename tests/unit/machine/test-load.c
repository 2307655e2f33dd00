/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPU load from /proc/stat: what kernels print, what they do not, and counters that go back. */
#include "machine-fixture.h"
#include "machine/load.h"

#define SUM "cpu  100 0 100 1000 0 0 0 0 0 0\n"
#define REST "intr 5 0 0\nctxt 1\nbtime 1\n"

/* Reads a stat text for the machine. */
static int read_text(const struct cp_machine *machine, const char *text, struct cp_load *ret_load)
{
    struct cp_root root;
    char tree[64];
    int r;

    make_tree(tree);
    put_file(tree, "proc/stat", text);
    assert_int_equal(cp_root_open(&root, tree), 0);
    r = cp_load_read(&root, machine, ret_load);
    cp_root_done(&root);
    remove_tree(tree);
    return r;
}

static void test_reading(void **state)
{
    _cleanup_machine_ struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "pu:3(indexes=1,5,9)");
    struct cp_load load = {0};

    (void)state;
    /* CPU 0 is not of this machine; CPU 5 is not listed. Guest time is part of user time. */
    assert_int_equal(read_text(machine,
                               SUM "cpu0 9 9 9 9 9 9 9 9 9 9\n"
                                   "cpu1 10 1 20 500 50 2 3 4 8 1\n"
                                   "cpu9 1 0 2 30\n" REST,
                               &load),
                     0);
    assert_int_equal(load.n_cpus, 3);
    assert_int_equal(load.total[0], 590);
    assert_int_equal(load.busy[0], 40);
    assert_int_equal(load.total[1], 0);
    assert_int_equal(load.busy[1], 0);
    assert_int_equal(load.total[2], 33);
    assert_int_equal(load.busy[2], 3);
    cp_load_done(&load);
    assert_null(load.busy);
}

static void test_malformed(void **state)
{
    static const char *const texts[] = {
        "",
        "garbage\n",
        SUM REST,
        SUM "cpu0 1 2 3\n",
        SUM "cpu0\n",
        SUM "cpu0 \n",
        SUM "cpux 1 2 3 4\n",
        SUM "cpu0 1 2 x 4\n",
        SUM "cpu0 1 2 3 4x\n",
        SUM "cpu0 -1 2 3 4\n",
        SUM "cpu0 99999999999999999999999 2 3 4\n",
        SUM "cpu70000 1 2 3 4\n",
    };
    _cleanup_machine_ struct cp_machine *machine = load_machine(CP_MACHINE_SYNTHETIC, "pu:1");

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(texts); i++) {
        struct cp_load load = {0};

        if (read_text(machine, texts[i], &load) != -EBADMSG)
            fail_msg("case %zu was accepted: %s", i, texts[i]);
        assert_null(load.busy);
    }
}

static void test_missing_file(void **state)
{
    _cleanup_machine_ struct cp_machine *machine = load_machine(CP_MACHINE_SYNTHETIC, "pu:1");
    struct cp_load load = {0};
    struct cp_root root;
    char tree[64];

    (void)state;
    make_tree(tree);
    assert_int_equal(cp_root_open(&root, tree), 0);
    assert_int_equal(cp_load_read(&root, machine, &load), -ENOENT);
    cp_root_done(&root);
    remove_tree(tree);
}

static void test_between(void **state)
{
    static const struct {
        uint64_t busy_before, total_before, busy_after, total_after;
        uint16_t permille;
    } cases[] = {
        {0, 0, 0, 0, 0},           /* never listed */
        {100, 1000, 100, 1000, 0}, /* no time passed */
        {100, 1000, 100, 1100, 0}, /* idle */
        {100, 1000, 150, 1100, 500},
        {100, 1000, 200, 1100, 1000},
        {100, 1000, 133, 1100, 330},
        {100, 1000, 90, 1100, 0},     /* busy went back */
        {100, 1000, 150, 900, 0},     /* total went back: the CPU was away */
        {100, 1000, 300, 1100, 1000}, /* idle went back */
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(cases); i++) {
        uint64_t busy[2] = {cases[i].busy_before, cases[i].busy_after};
        uint64_t total[2] = {cases[i].total_before, cases[i].total_after};
        const struct cp_load earlier = {1, &busy[0], &total[0]};
        const struct cp_load later = {1, &busy[1], &total[1]};
        uint16_t permille = 7777;

        cp_load_between(&earlier, &later, &permille);
        if (permille != cases[i].permille)
            fail_msg("case %zu: %u instead of %u", i, permille, cases[i].permille);
    }
}

static void test_this_machine(void **state)
{
    _cleanup_machine_ struct cp_machine *machine = load_machine(CP_MACHINE_LIVE, NULL);
    struct cp_load load = {0};
    struct cp_root root;

    (void)state;
    assert_int_equal(cp_root_open(&root, NULL), 0);
    assert_int_equal(cp_load_read(&root, machine, &load), 0);
    for (uint32_t i = 0; i < load.n_cpus; i++) {
        assert_true(load.total[i] > 0);
        assert_true(load.busy[i] <= load.total[i]);
    }
    cp_load_done(&load);
    cp_root_done(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading),      cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_missing_file), cmocka_unit_test(test_between),
        cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
