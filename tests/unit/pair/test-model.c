/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cost model: totals by level, loss now, gain. */
#include "pair/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The 2-CPU virtual machine of the measurements: one CPU 1.2 us, one LLC 46 us; no other level was
 * measured there. */
static struct cp_costs vm_costs(void)
{
    struct cp_costs costs = {0};
    const uint64_t defaults[CP_LEVEL_MAX] = {1000, 2000, 4000, 9000, 15000, 25000};

    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        costs.level[l] = (struct cp_cost){.ns = defaults[l], .source = CP_COST_DEFAULT};
    costs.level[CP_LEVEL_CPU].ns = 1200;
    costs.level[CP_LEVEL_CPU].source = CP_COST_MEASURED;
    costs.level[CP_LEVEL_LLC].ns = 46000;
    costs.level[CP_LEVEL_LLC].source = CP_COST_MEASURED;
    return costs;
}

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-6 * (1.0 + fabs(expected)))
        fail_msg("%f is not %f", value, expected);
}

static void test_total(void **state)
{
    struct cp_costs costs = vm_costs();
    struct cp_handoff_profile profile = {.rate_hz = 100, .tail_ns = 18000, .run_ns = 22000};

    (void)state;
    assert_near(cp_model_total_ns(&costs, &profile, CP_LEVEL_CPU), 1200 + 18000);
    assert_near(cp_model_total_ns(&costs, &profile, CP_LEVEL_CORE), 2000 + 9000);
    assert_near(cp_model_total_ns(&costs, &profile, CP_LEVEL_LLC), 46000);
    assert_near(cp_model_total_ns(&costs, &profile, CP_LEVEL_MACHINE), 25000);
    profile.run_ns = 5000;
    assert_near(cp_model_total_ns(&costs, &profile, CP_LEVEL_CPU), 1200 + 5000);
}

static void test_now_and_gain(void **state)
{
    struct cp_costs costs = vm_costs();
    struct cp_handoff_profile profile = {.rate_hz = 20000, .tail_ns = 18000, .run_ns = 22000};

    (void)state;
    profile.level[CP_LEVEL_LLC] = 1.0;
    assert_near(cp_model_now_ns(&costs, &profile), 46000);
    assert_near(cp_model_gain(&costs, &profile, CP_LEVEL_CPU), 20000.0 * (46000 - 19200));
    assert_near(cp_model_gain(&costs, &profile, CP_LEVEL_LLC), 0);

    profile.level[CP_LEVEL_LLC] = 0.25;
    profile.level[CP_LEVEL_CPU] = 0.75;
    assert_near(cp_model_now_ns(&costs, &profile), 0.25 * 46000 + 0.75 * 19200);
    assert_true(cp_model_gain(&costs, &profile, CP_LEVEL_CPU) > 0);
    assert_true(cp_model_gain(&costs, &profile, CP_LEVEL_LLC) < 0);
}

/* Stacked by the kernel with work to overlap: nothing to gain on one CPU, something by leaving. */
static void test_stacked_overlapping_gains_by_leaving(void **state)
{
    struct cp_costs costs = vm_costs();
    struct cp_handoff_profile profile = {.rate_hz = 5000, .tail_ns = 120000, .run_ns = 90000};

    (void)state;
    profile.level[CP_LEVEL_CPU] = 1.0;
    assert_near(cp_model_gain(&costs, &profile, CP_LEVEL_CPU), 0);
    assert_near(cp_model_gain(&costs, &profile, CP_LEVEL_LLC), 5000.0 * (91200 - 46000));
}

static void test_unknown_levels(void **state)
{
    struct cp_costs costs = vm_costs();
    struct cp_handoff_profile profile = {.rate_hz = 1000, .tail_ns = 1000, .run_ns = 1000};

    (void)state;
    assert_near(cp_model_now_ns(&costs, &profile), 46000);
    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        costs.level[l].source = CP_COST_DEFAULT;
    costs.level[CP_LEVEL_LLC].ns = 4000;
    assert_near(cp_model_now_ns(&costs, &profile), 25000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_total),
        cmocka_unit_test(test_now_and_gain),
        cmocka_unit_test(test_stacked_overlapping_gains_by_leaving),
        cmocka_unit_test(test_unknown_levels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
