/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calibration on the running machine: results, bounds, cancelling, a CPU that is not yielded. */
#include "base/clock.h"
#include "machine/calibrate.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BUDGET_NS (1500 * CP_NS_PER_MS)
/* Far beyond the budget: for what must end at all, on a machine that may be busy. */
#define PATIENCE_NS (20 * CP_NS_PER_S)

static struct cp_machine *machine;

static void every_level_is_measured(void **state)
{
    bool present[CP_LEVEL_MAX];
    struct cp_costs costs;
    struct cp_error error = {0};
    cpu_set_t before;
    cpu_set_t after;
    int r;

    (void)state;
    cp_costs_init_default(&costs);
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    r = cp_calibrate(machine, BUDGET_NS, NULL, &costs, &error);
    if (r != 0)
        print_error("%s\n", error.message);
    assert_int_equal(r, 0);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_memory_equal(&before, &after, sizeof(before));
    cp_machine_levels_present(machine, present);
    for (unsigned level = 0; level < CP_LEVEL_MAX; level++) {
        const struct cp_cost *cost = &costs.level[level];
        struct cp_cpu_pair pair;
        bool measurable =
            present[level] && cp_calibrate_choose(machine, (enum cp_level)level, &pair, 1) > 0;

        assert_int_equal(cost->source, measurable ? CP_COST_MEASURED : CP_COST_DEFAULT);
        if (!measurable)
            continue;
        print_message("%s: %llu ns, spread %llu, %llu hand-offs%s\n",
                      cp_level_to_string((enum cp_level)level), (unsigned long long)cost->raw_ns,
                      (unsigned long long)cost->spread_ns, (unsigned long long)cost->n_samples,
                      cost->doubtful ? ", doubtful" : "");
        /* Nothing that wakes a sleeping thread takes less than this, or as long as that. */
        assert_in_range(cost->raw_ns, 100, CP_NS_PER_S / 10);
        assert_in_range(cost->n_samples, 20, 2000);
    }
}

static void configured_levels_are_left_alone(void **state)
{
    struct cp_costs costs;
    struct cp_error error = {0};

    (void)state;
    cp_costs_init_default(&costs);
    assert_int_equal(cp_costs_configure(&costs, "cpu=7us,core=8us,llc=9us", &error), 0);
    assert_int_equal(cp_costs_configure(&costs, "node=10us,package=11us,machine=12us", &error), 0);
    assert_int_equal(cp_calibrate(machine, BUDGET_NS, NULL, &costs, &error), 0);
    assert_int_equal(costs.level[CP_LEVEL_CPU].ns, 7000);
    assert_int_equal(costs.level[CP_LEVEL_LLC].source, CP_COST_CONFIGURED);
}

static void without_time_nothing_is_measured(void **state)
{
    struct cp_costs costs;
    struct cp_costs before;
    struct cp_error error = {0};

    (void)state;
    cp_costs_init_default(&costs);
    before = costs;
    assert_int_equal(cp_calibrate(machine, 0, NULL, &costs, &error), -ENODATA);
    assert_non_null(strstr(error.message, "no level"));
    assert_memory_equal(&costs, &before, sizeof(costs));
}

static void *cancel_soon(void *flag)
{
    usleep(50000);
    atomic_store((atomic_bool *)flag, true);
    return NULL;
}

static void it_can_be_cancelled(void **state)
{
    struct cp_costs costs;
    struct cp_costs before;
    struct cp_error error = {0};
    atomic_bool cancel = true;
    uint64_t begin_ns = cp_now_ns();
    pthread_t thread;

    (void)state;
    cp_costs_init_default(&costs);
    before = costs;
    assert_int_equal(cp_calibrate(machine, 3600 * CP_NS_PER_S, &cancel, &costs, &error),
                     -ECANCELED);
    /* In the middle of a game that would go on for an hour. */
    atomic_store(&cancel, false);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
    {
        static uint32_t samples[40 * 1000 * 1000];
        struct cp_cpu_pair pair;
        size_t n;

        assert_int_equal(cp_calibrate_choose(machine, CP_LEVEL_CPU, &pair, 1), 1);
        assert_int_equal(cp_ping_pong(pair, 3600 * CP_NS_PER_S, &cancel, samples,
                                      sizeof(samples) / sizeof(samples[0]), &n),
                         0);
        assert_true(n > 0);
    }
    pthread_join(thread, NULL);
    assert_true(cp_now_ns() - begin_ns < PATIENCE_NS);
    assert_memory_equal(&costs, &before, sizeof(costs));
}

static void impossible_cpus_give_nothing(void **state)
{
    struct cp_cpu_pair pair = {{CP_CPU_LIMIT - 1}, {CP_CPU_LIMIT - 1}};
    uint32_t samples[10];
    size_t n = 77;

    (void)state;
    assert_int_equal(cp_ping_pong(pair, BUDGET_NS, NULL, samples, 10, &n), 0);
    assert_int_equal(n, 0);
}

static atomic_bool hog_ends;

/* Keeps the CPU that it is bound to at real-time priority. */
static void *hog(void *unused)
{
    (void)unused;
    while (!atomic_load(&hog_ends))
        ;
    return NULL;
}

static void a_cpu_that_is_not_yielded(void **state)
{
    const struct sched_param priority = {.sched_priority = 1};
    struct cp_cpu_pair pair;
    pthread_attr_t attributes;
    pthread_t thread;
    uint32_t samples[2000];
    uint64_t begin_ns;
    cpu_set_t mask;
    size_t n = 0;
    int r;

    (void)state;
    if (cp_calibrate_choose(machine, CP_LEVEL_CPU, &pair, 1) == 0 ||
        cp_cpumask_weight(&machine->usable) < 2) {
        print_message("only one CPU: nothing to help a thread to\n");
        return;
    }
    CPU_ZERO(&mask);
    CPU_SET(pair.b.os, &mask);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof(mask), &mask);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &priority);
    /* This thread must not share the CPU of the hog, which it is to stop. */
    CPU_ZERO(&mask);
    for (unsigned os = 0; os < CPU_SETSIZE; os++)
        if (os != pair.b.os && cp_cpumask_test(&machine->usable, (struct cp_cpu){os}))
            CPU_SET(os, &mask);
    assert_int_equal(sched_setaffinity(0, sizeof(mask), &mask), 0);
    r = pthread_create(&thread, &attributes, hog, NULL);
    pthread_attr_destroy(&attributes);
    if (r == EPERM) {
        print_message("not allowed to run at real-time priority\n");
        return;
    }
    assert_int_equal(r, 0);
    begin_ns = cp_now_ns();
    r = cp_ping_pong(pair, 100 * CP_NS_PER_MS, NULL, samples, 2000, &n);
    atomic_store(&hog_ends, true);
    pthread_join(thread, NULL);
    assert_int_equal(r, 0);
    assert_true(cp_now_ns() - begin_ns < PATIENCE_NS);
    print_message("beside a real-time hog: %zu hand-offs, back after %llu ms\n", n,
                  (unsigned long long)((cp_now_ns() - begin_ns) / CP_NS_PER_MS));
}

int main(void)
{
    const struct cp_machine_source source = {.kind = CP_MACHINE_LIVE};
    struct cp_error error = {0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_is_measured),
        cmocka_unit_test(configured_levels_are_left_alone),
        cmocka_unit_test(without_time_nothing_is_measured),
        cmocka_unit_test(it_can_be_cancelled),
        cmocka_unit_test(impossible_cpus_give_nothing),
        cmocka_unit_test(a_cpu_that_is_not_yielded),
    };
    int n_failed;

    /* Nothing here may hang; if something does, say so. */
    alarm(200);
    if (cp_machine_load(&source, 1, &machine, &error) < 0) {
        printf("cannot look at this machine: %s\n", error.message);
        return 1;
    }
    n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    cp_machine_unref(machine);
    return n_failed;
}
