/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The running machine, and what loading a machine must leave as it was: masks, environment,
 * standard error, children. */
#include "machine-fixture.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_live_is_this_machine(void **state)
{
    _cleanup_machine_ struct cp_machine *machine = load_machine(CP_MACHINE_LIVE, NULL);
    struct cp_root root;
    cpu_set_t allowed;

    (void)state;
    expect_sound(machine);
    assert_true(machine->live);
    assert_string_equal(machine->source, "live");
    assert_int_equal(machine->n_cpus, sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(strlen(machine->model) > 0);
    assert_int_equal(cp_root_open(&root, NULL), 0);
    assert_int_equal(cp_machine_is_stale(machine, &root), 0);
    cp_root_done(&root);
    /* What we may run on is not disallowed. */
    assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    for (unsigned os = 0; os < CPU_SETSIZE; os++)
        if (CPU_ISSET(os, &allowed))
            assert_false(cp_cpumask_test(&machine->disallowed, (struct cp_cpu){os}));
}

/* hwloc's own variables must not turn "live" into something else. */
static void test_the_environment_does_not_redirect(void **state)
{
    static const char *const variables[][2] = {
        {"HWLOC_SYNTHETIC", "package:7 pu:3"},
        {"HWLOC_XMLFILE", "/nonexistent.xml"},
        {"HWLOC_FSROOT", "/nonexistent"},
        {"HWLOC_COMPONENTS", "stop"},
        {"HWLOC_THISSYSTEM", "1"},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(variables); i++)
        assert_int_equal(setenv(variables[i][0], variables[i][1], 1), 0);
    test_live_is_this_machine(state);
    expect_load_error(CP_MACHINE_SYNTHETIC, "banana", EINVAL, "banana");
    cp_machine_unref(load_machine(CP_MACHINE_SYNTHETIC, "pu:5"));
    for (size_t i = 0; i < CP_ELEMENTS(variables); i++) {
        assert_string_equal(getenv(variables[i][0]), variables[i][1]);
        assert_int_equal(unsetenv(variables[i][0]), 0);
    }
}

static void test_masks_stay(void **state)
{
    cpu_set_t before;
    cpu_set_t after;
    cpu_set_t one;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_ZERO(&one);
    for (unsigned os = 0; os < CPU_SETSIZE && CPU_COUNT(&one) == 0; os++)
        if (CPU_ISSET(os, &before))
            CPU_SET(os, &one);
    /* A narrow mask too: the machine is read whole, and the mask is not widened for that. */
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    test_live_is_this_machine(state);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    assert_true(CPU_EQUAL(&one, &after));
}

/* Loads machines with standard error in a file, and expects the file to stay empty. */
static void test_hwloc_prints_nothing(void **state)
{
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    struct cp_error error = {0};
    struct cp_machine *machine = NULL;
    const struct cp_machine_source broken = {CP_MACHINE_SYNTHETIC, "banana:2"};
    const struct cp_machine_source live = {CP_MACHINE_LIVE, NULL};
    int r;

    (void)state;
    assert_non_null(file);
    assert_int_equal(setenv("HWLOC_SYNTHETIC_VERBOSE", "1", 1), 0);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    r = cp_machine_load(&broken, 1, &machine, &error);
    if (cp_machine_load(&live, 1, &machine, &error) == 0)
        cp_machine_unref(machine);
    (void)dup2(kept, STDERR_FILENO);
    close(kept);
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC_VERBOSE"), 0);
    assert_int_equal(r, -EINVAL);
    assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
    assert_int_equal(fclose(file), 0);
}

static void test_no_child_is_left(void **state)
{
    (void)state;
    cp_machine_unref(load_machine(CP_MACHINE_SYNTHETIC, "pu:2"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_is_this_machine),
        cmocka_unit_test(test_the_environment_does_not_redirect),
        cmocka_unit_test(test_masks_stay),
        cmocka_unit_test(test_hwloc_prints_nothing),
        cmocka_unit_test(test_no_child_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
