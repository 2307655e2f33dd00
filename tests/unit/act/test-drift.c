/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose mask is it: a table of what kernels, cpusets, hotplug and people make of a mask. */
#include "act/drift.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct row {
    const char *what;
    const char *current;
    const char *target;
    const char *cpuset; /* NULL: none applies */
    const char *possible;
    const char *online;
    bool old_kernel;
    enum cp_drift verdict;
};

static const struct row rows[] = {
    {"untouched", "2", "2", "0-7", "0-7", "0-7", false, CP_DRIFT_SAME},
    {"untouched, no cpuset", "2", "2", NULL, "0-7", "0-7", false, CP_DRIFT_SAME},
    {"untouched, its CPU is offline", "2-3", "2-3", "0-2", "0-3", "0-2", false, CP_DRIFT_SAME},
    {"cpuset shrank into the mask", "0", "0-1", "0", "0-1", "0-1", false, CP_DRIFT_SHRUNK},
    {"cpuset cut the mask", "3", "2-3", "3-7", "0-7", "0-7", false, CP_DRIFT_SHRUNK},
    {"cpuset left the mask", "4-7", "2", "4-7", "0-7", "0-7", false, CP_DRIFT_RESET},
    {"its only CPU went offline", "0-2", "3", "0-2", "0-3", "0-2", false, CP_DRIFT_RESET},
    {"offline, fallback to all", "0-3", "3", "0-2", "0-3", "0-2", false, CP_DRIFT_RESET},
    {"offline, no cpuset", "0-3", "3", NULL, "0-3", "0-2", false, CP_DRIFT_RESET},
    {"top cpuset with a partition, one CPU offline", "2-3", "2-4", "0-2,5", "0-5", "0-2,4-5", false,
     CP_DRIFT_SHRUNK},
    {"taskset to another CPU", "3", "2", "0-7", "0-7", "0-7", false, CP_DRIFT_FOREIGN},
    {"taskset to part of ours", "2", "2-3", "0-7", "0-7", "0-7", false, CP_DRIFT_FOREIGN},
    {"taskset to part of ours, no cpuset", "2", "2-3", NULL, "0-3", "0-2", false, CP_DRIFT_FOREIGN},
    {"taskset to all", "0-7", "2", "0-7", "0-7", "0-7", false, CP_DRIFT_FOREIGN},
    {"taskset to more than ours", "2-4", "2-3", "0-7", "0-7", "0-7", false, CP_DRIFT_FOREIGN},
    {"taskset inside a moved cpuset", "5", "2", "4-7", "0-7", "0-7", false, CP_DRIFT_FOREIGN},
    {"before 6.2: reset by a cpuset change", "0-3,5-15", "2-5", "0-3,5-15", "0-15", "0-3,5-15",
     true, CP_DRIFT_RESET},
    {"before 6.2: the same on a newer kernel", "0-3,5-15", "2-5", "0-3,5-15", "0-15", "0-3,5-15",
     false, CP_DRIFT_FOREIGN},
    {"before 6.2: taskset is taskset", "3", "2", "0-7", "0-7", "0-7", true, CP_DRIFT_FOREIGN},
    {"wide machine", "1500", "1500-1501", "0-1500", "0-2047", "0-2047", false, CP_DRIFT_SHRUNK},
};

static struct cp_cpumask mask_of(const char *list)
{
    struct cp_cpumask mask = {0};

    assert_int_equal(cp_cpumask_parse_list(list, &mask), 0);
    return mask;
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(rows); i++) {
        const struct row *row = &rows[i];
        _cleanup_cpumask_ struct cp_cpumask current = mask_of(row->current);
        _cleanup_cpumask_ struct cp_cpumask target = mask_of(row->target);
        _cleanup_cpumask_ struct cp_cpumask cpuset = mask_of(row->cpuset ? row->cpuset : "");
        _cleanup_cpumask_ struct cp_cpumask possible = mask_of(row->possible);
        _cleanup_cpumask_ struct cp_cpumask online = mask_of(row->online);
        const struct cp_drift_view view = {
            .current = &current,
            .target = &target,
            .cpuset = row->cpuset ? &cpuset : NULL,
            .possible = &possible,
            .online = &online,
            .user_masks_survive = !row->old_kernel,
        };
        enum cp_drift verdict = CP_DRIFT_MAX;

        assert_int_equal(cp_drift_judge(&view, &verdict), 0);
        if (verdict != row->verdict)
            fail_msg("%s: %d, not %d", row->what, verdict, row->verdict);
    }
}

static void test_kernel_releases(void **state)
{
    static const struct {
        const char *release;
        bool survive;
    } releases[] = {
        {"6.18.44-fc", true}, {"6.2.0\n", true},   {"6.1.0-13-amd64", false},
        {"5.10.0", false},    {"7.0-rc1", true},   {"10.1.2", true},
        {"6.12", true},       {"4.19.300", false}, {"", true},
        {"unknown", true},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(releases); i++)
        assert_int_equal(cp_drift_user_masks_survive(releases[i].release), releases[i].survive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_kernel_releases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
