/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Placing and giving back in a cpuset that shrinks and grows meanwhile (kernel 6.2 and later keep a
 * user mask over such a change, older ones reset it). */
#include "integration/act-live.h"

#include "act/drift.h"

/* A worker in a cpuset of CPUs a and b; skips the test where there is none. */
static void start_inside(struct live *live, struct worker *worker)
{
    if (!cpuset_make(live))
        skip();
    worker_start(worker);
    cpuset_put(live, worker->pid);
}

static struct cp_cpumask both_of(const struct live *live)
{
    struct cp_cpumask both = {0};

    assert_int_equal(cp_cpumask_or(&both, &live->only_a, &live->only_b), 0);
    return both;
}

static bool kernel_keeps_user_masks(const struct live *live)
{
    char *release;
    bool keeps;

    assert_int_equal(
        cp_root_read_file(&live->root, "proc/sys/kernel/osrelease", 4096, &release, NULL), 0);
    keeps = cp_drift_user_masks_survive(release);
    free(release);
    return keeps;
}

/* Had no user mask: afterwards it follows its cpuset as if it had never been placed. */
static void test_follows_its_cpuset_again(void **state)
{
    struct live *live = *state;
    struct cp_cpumask both = both_of(live);
    struct worker worker;

    start_inside(live, &worker);
    expect_mask(worker.pid, &both);
    place_ok(live, worker.pid, false, &live->only_b);
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    expect_mask(worker.pid, &both);
    cpuset_set(live, &live->only_a);
    expect_mask(worker.pid, &live->only_a);
    cpuset_set(live, &both);
    expect_mask(worker.pid, &both);
    cp_cpumask_done(&both);
    worker_stop(&worker);
}

/* The cpuset loses our CPU while the task is placed: the kernel's change, not somebody's. */
static void test_cpuset_leaves_the_target(void **state)
{
    struct live *live = *state;
    struct cp_cpumask both = both_of(live);
    char detail[CP_ACT_DETAIL_SIZE];
    struct worker worker;

    start_inside(live, &worker);
    place_ok(live, worker.pid, false, &live->only_b);
    cpuset_set(live, &live->only_a);
    expect_mask(worker.pid, &live->only_a);
    assert_int_equal(live->actuator->ops->check(live->actuator, task_of(worker.pid), detail),
                     CP_ACT_DONE);
    say_reason("cpuset", detail);
    assert_int_equal(count_due(live), 1);
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    cpuset_set(live, &both);
    expect_mask(worker.pid, &both);
    cp_cpumask_done(&both);
    worker_stop(&worker);
}

/* The cpuset shrinks into our mask, and grows again before the release. */
static void test_cpuset_cuts_the_target(void **state)
{
    struct live *live = *state;
    struct cp_cpumask both = both_of(live);
    char detail[CP_ACT_DETAIL_SIZE];
    struct worker worker;

    start_inside(live, &worker);
    place_ok(live, worker.pid, false, &both);
    cpuset_set(live, &live->only_a);
    expect_mask(worker.pid, &live->only_a);
    assert_int_equal(live->actuator->ops->check(live->actuator, task_of(worker.pid), detail),
                     CP_ACT_DONE);
    cpuset_set(live, &both);
    expect_mask(worker.pid, &both);
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    cpuset_set(live, &live->only_b);
    expect_mask(worker.pid, &live->only_b);
    cpuset_set(live, &both);
    expect_mask(worker.pid, &both);
    cp_cpumask_done(&both);
    worker_stop(&worker);
}

/* The mask comes back with the cpuset (6.2), or was reset to it (before): ours in either case. */
static void test_cpuset_comes_back(void **state)
{
    struct live *live = *state;
    struct cp_cpumask both = both_of(live);
    struct worker worker;

    start_inside(live, &worker);
    place_ok(live, worker.pid, false, &live->only_b);
    cpuset_set(live, &live->only_a);
    cpuset_set(live, &both);
    expect_mask(worker.pid, kernel_keeps_user_masks(live) ? &live->only_b : &both);
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    expect_mask(worker.pid, &both);
    cp_cpumask_done(&both);
    worker_stop(&worker);
}

static void test_taskset_in_a_shrunk_cpuset(void **state)
{
    struct live *live = *state;
    struct cp_cpumask both = both_of(live);
    struct worker worker;

    start_inside(live, &worker);
    place_ok(live, worker.pid, false, &live->only_b);
    cpuset_set(live, &live->only_a);
    cpuset_set(live, &both);
    set_mask(worker.pid, &live->only_a);
    assert_int_equal(release(live, worker.pid), CP_ACT_YIELDED);
    expect_mask(worker.pid, &live->only_a);
    cp_cpumask_done(&both);
    worker_stop(&worker);
}

/* It had a user mask that its cpuset does not know any more. */
static void test_former_mask_no_longer_fits(void **state)
{
    struct live *live = *state;
    struct cp_cpumask both = both_of(live);
    char detail[CP_ACT_DETAIL_SIZE];
    struct worker worker;

    start_inside(live, &worker);
    set_mask(worker.pid, &live->only_b);
    place_ok(live, worker.pid, true, &live->only_a);
    cpuset_set(live, &live->only_a);
    assert_int_equal(live->actuator->ops->release(live->actuator, task_of(worker.pid), detail),
                     CP_ACT_RESTORED);
    say_reason("no longer meets its cpuset", detail);
    cpuset_set(live, &both);
    expect_mask(worker.pid, &both);
    cp_cpumask_done(&both);
    worker_stop(&worker);
}

static void test_target_outside_the_cpuset(void **state)
{
    struct live *live = *state;
    struct cp_cpumask both = both_of(live);
    struct cp_act_change change;
    struct worker worker;

    start_inside(live, &worker);
    cpuset_set(live, &live->only_a);
    assert_int_equal(place_one(live, worker.pid, false, &live->only_b, &change), 1);
    assert_int_equal(change.result, CP_ACT_REFUSED);
    say_reason("its cpuset has", change.detail);
    assert_int_equal(count_due(live), 0);
    assert_int_equal(place_one(live, worker.pid, false, &both, &change), 1);
    assert_int_equal(change.result, CP_ACT_REFUSED);
    say_reason("when asked for", change.detail);
    assert_int_equal(count_due(live), 0);
    cpuset_set(live, &both);
    expect_mask(worker.pid, &both);
    cp_cpumask_done(&both);
    worker_stop(&worker);
}

/* A cpuset no wider than the placement: a thread with that mask has not inherited it. */
static void test_whole_cpuset_is_no_stray(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t thread;

    start_inside(live, &worker);
    cpuset_set(live, &live->only_a);
    place_ok(live, worker.pid, false, &live->only_a);
    thread = worker_thread(&worker);
    expect_mask(thread, &live->only_a);
    assert_int_equal(live->actuator->ops->scan_strays(live->actuator), 0);
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    worker_stop(&worker);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, live_setup, live_teardown)

/* 0, or 77 after the reason was printed. */
static int cpuset_check(void)
{
    void *state = NULL;
    bool have;

    (void)live_setup(&state);
    have = cpuset_make(state);
    (void)live_teardown(&state);
    return have ? 0 : 77;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(test_follows_its_cpuset_again),   LIVE(test_cpuset_leaves_the_target),
        LIVE(test_cpuset_cuts_the_target),     LIVE(test_cpuset_comes_back),
        LIVE(test_taskset_in_a_shrunk_cpuset), LIVE(test_former_mask_no_longer_fits),
        LIVE(test_target_outside_the_cpuset),  LIVE(test_whole_cpuset_is_no_stray),
    };
    int r = live_check();

    if (r == 0)
        r = cpuset_check();
    return r != 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
