/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads and children inherit a mask of ours, and get the original. */
#include "integration/act-live.h"

static enum cp_act_result release_child(struct live *live, pid_t child, struct cp_task_id parent)
{
    return live->actuator->ops->release_child(live->actuator, task_of(child), parent);
}

static void test_child_of_a_placed_task(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t child;

    worker_start(&worker);
    set_mask(worker.pid, &live->only_b);
    place_ok(live, worker.pid, true, &live->only_a);
    child = worker_child(&worker);
    expect_mask(child, &live->only_a);
    assert_int_equal(release_child(live, child, task_of(worker.pid)), CP_ACT_RESTORED);
    expect_mask(child, &live->only_b);
    expect_mask(worker.pid, &live->only_a);
    assert_int_equal(count_due(live), 1);
    /* A second report of the same child, now with a mask that is not ours. */
    assert_int_equal(release_child(live, child, task_of(worker.pid)), CP_ACT_YIELDED);
    expect_mask(child, &live->only_b);
    worker_stop(&worker);
}

/* The report comes after the parent was released, or has ended. */
static void test_child_of_a_released_task(void **state)
{
    struct live *live = *state;
    char detail[CP_ACT_DETAIL_SIZE];
    struct cp_task_id parent;
    struct worker worker;
    pid_t first;

    worker_start(&worker);
    parent = task_of(worker.pid);
    place_ok(live, worker.pid, false, &live->only_a);
    first = worker_child(&worker);
    assert_int_equal(live->actuator->ops->release(live->actuator, parent, detail), CP_ACT_RESTORED);
    assert_int_equal(release_child(live, first, parent), CP_ACT_RESTORED);
    expect_mask(first, &live->all);
    /* What the child was given by somebody after that is not touched. */
    set_mask(first, &live->only_b);
    assert_int_equal(release_child(live, first, parent), CP_ACT_YIELDED);
    expect_mask(first, &live->only_b);
    worker_stop(&worker);
}

/* A child that forked before its mask was back: the grandchild is reported as the child's. */
static void test_grandchild(void **state)
{
    struct live *live = *state;
    struct cp_task_id parent;
    struct worker worker;
    pid_t child;
    pid_t grandchild;

    worker_start(&worker);
    parent = task_of(worker.pid);
    place_ok(live, worker.pid, false, &live->only_a);
    /* Threads of the placed thread stand for children; a child of the process stands for one of
     * the thread, which is all the same to the actuator. */
    child = worker_thread(&worker);
    grandchild = worker_child(&worker);
    assert_int_equal(release_child(live, child, parent), CP_ACT_RESTORED);
    expect_mask(child, &live->all);
    assert_int_equal(release_child(live, grandchild, task_of(child)), CP_ACT_RESTORED);
    expect_mask(grandchild, &live->all);
    worker_stop(&worker);
}

static void test_children_of_strangers(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t child;

    worker_start(&worker);
    set_mask(worker.pid, &live->only_a);
    child = worker_child(&worker);
    assert_int_equal(release_child(live, child, task_of(worker.pid)), CP_ACT_YIELDED);
    expect_mask(child, &live->only_a);
    worker_stop(&worker);
}

static void test_ended_child(void **state)
{
    struct live *live = *state;
    struct worker worker;
    struct worker child;
    struct cp_task_id id;

    worker_start(&worker);
    worker_start(&child);
    place_ok(live, worker.pid, false, &live->only_a);
    id = task_of(child.pid);
    worker_stop(&child);
    assert_int_equal(live->actuator->ops->release_child(live->actuator, id, task_of(worker.pid)),
                     CP_ACT_GONE);
    worker_stop(&worker);
}

static void wait_for_exec(const struct live *live, pid_t pid)
{
    struct cp_proc_stat stat;

    for (unsigned i = 0; i < 10000; i++) {
        assert_int_equal(cp_proc_read_stat(&live->root, pid, &stat), 0);
        if (strcmp(stat.comm, "sleep") == 0)
            return;
        (void)usleep(1000);
    }
    fail_msg("no new program after 10 s");
}

/* exec(3) in a thread that is not the leader: it goes on with the leader's identity. */
static void test_exec_in_a_thread(void **state)
{
    struct live *live = *state;

    for (unsigned released = 0; released < 2; released++) {
        struct worker worker;
        struct cp_task_id thread;
        char detail[CP_ACT_DETAIL_SIZE];

        worker_start(&worker);
        thread = task_of(worker_execing_thread(&worker));
        place_ok(live, thread.tid, false, &live->only_a);
        assert_int_equal(tgkill(worker.pid, thread.tid, SIGUSR1), 0);
        wait_for_exec(live, worker.pid);
        expect_mask(worker.pid, &live->only_a);
        if (released)
            assert_int_equal(live->actuator->ops->release(live->actuator, thread, detail),
                             CP_ACT_GONE);
        assert_int_equal(release_child(live, worker.pid, thread), CP_ACT_RESTORED);
        expect_mask(worker.pid, &live->all);
        worker_stop(&worker);
    }
}

/* Start times have a resolution of 10 ms; a thread that is to be older must be so visibly. */
static void let_a_tick_pass(void)
{
    (void)usleep(30000);
}

static void test_strays(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t older;
    pid_t thread;
    pid_t child;
    pid_t pinned;

    worker_start(&worker);
    older = worker_thread(&worker);
    set_mask(older, &live->only_a); /* its own wish, from before */
    let_a_tick_pass();
    place_ok(live, worker.pid, false, &live->only_a);
    thread = worker_thread(&worker);
    child = worker_child(&worker);
    pinned = worker_thread(&worker);
    set_mask(pinned, &live->only_b);
    assert_int_equal(live->actuator->ops->scan_strays(live->actuator), 2);
    expect_mask(thread, &live->all);
    expect_mask(child, &live->all);
    expect_mask(older, &live->only_a);
    expect_mask(pinned, &live->only_b);
    expect_mask(worker.pid, &live->only_a);
    assert_int_equal(live->actuator->ops->scan_strays(live->actuator), 0);
    worker_stop(&worker);
}

/* Two threads of a process are placed: neither is the other's stray. */
static void test_placed_threads_are_no_strays(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t thread;

    worker_start(&worker);
    place_ok(live, worker.pid, false, &live->only_b);
    thread = worker_thread(&worker);
    set_mask(thread, &live->all);
    place_ok(live, thread, false, &live->only_b);
    assert_int_equal(live->actuator->ops->scan_strays(live->actuator), 0);
    expect_mask(thread, &live->only_b);
    assert_int_equal(release(live, thread), CP_ACT_RESTORED);
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    worker_stop(&worker);
}

/* Just released: what it left behind is still looked for. */
static void test_strays_of_a_released_task(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t thread;

    worker_start(&worker);
    place_ok(live, worker.pid, false, &live->only_a);
    thread = worker_thread(&worker);
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    expect_mask(thread, &live->only_a);
    assert_int_equal(live->actuator->ops->scan_strays(live->actuator), 1);
    expect_mask(thread, &live->all);
    worker_stop(&worker);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, live_setup, live_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(test_child_of_a_placed_task),
        LIVE(test_child_of_a_released_task),
        LIVE(test_grandchild),
        LIVE(test_children_of_strangers),
        LIVE(test_ended_child),
        LIVE(test_exec_in_a_thread),
        LIVE(test_strays),
        LIVE(test_placed_threads_are_no_strays),
        LIVE(test_strays_of_a_released_task),
    };
    int r = live_check();

    return r != 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
