/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The live actuator on real tasks: placing, giving back, and whom it never touches. */
#include "integration/act-live.h"

#include "base/clock.h"

#include <linux/sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static void test_without_user_mask(void **state)
{
    struct live *live = *state;
    struct worker worker;
    struct cp_act_held held;

    worker_start(&worker);
    expect_mask(worker.pid, &live->all);
    place_ok(live, worker.pid, false, &live->only_a);
    assert_int_equal(count_due(live), 1);
    assert_true(live->actuator->ops->held(live->actuator, 0, &held));
    assert_true(cp_task_id_equal(held.task, task_of(worker.pid)));
    assert_true(cp_cpumask_equal(held.original, &live->all));
    assert_false(live->actuator->ops->held(live->actuator, 1, &held));
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    expect_mask(worker.pid, &live->all);
    assert_int_equal(count_due(live), 0);
    assert_false(live->actuator->ops->held(live->actuator, 0, &held));
    assert_int_equal(release(live, worker.pid), CP_ACT_GONE); /* not ours any more */
    worker_stop(&worker);
}

static void test_with_user_mask(void **state)
{
    struct live *live = *state;
    struct worker worker;

    worker_start(&worker);
    set_mask(worker.pid, &live->only_b);
    place_ok(live, worker.pid, true, &live->only_a);
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    expect_mask(worker.pid, &live->only_b);
    worker_stop(&worker);
}

static void test_thread_that_is_no_leader(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t thread;

    worker_start(&worker);
    thread = worker_thread(&worker);
    place_ok(live, thread, false, &live->only_a);
    expect_mask(worker.pid, &live->all);
    assert_int_equal(release(live, thread), CP_ACT_RESTORED);
    expect_mask(thread, &live->all);
    worker_stop(&worker);
}

static void test_taskset_after_placing(void **state)
{
    struct live *live = *state;
    char detail[CP_ACT_DETAIL_SIZE];
    struct worker worker;

    worker_start(&worker);
    place_ok(live, worker.pid, false, &live->only_a);
    set_mask(worker.pid, &live->only_b);
    assert_int_equal(live->actuator->ops->check(live->actuator, task_of(worker.pid), detail),
                     CP_ACT_YIELDED);
    say_reason("somebody else", detail);
    expect_mask(worker.pid, &live->only_b);
    assert_int_equal(count_due(live), 0);
    assert_int_equal(release(live, worker.pid), CP_ACT_GONE);

    place_ok(live, worker.pid, true, &live->only_a);
    set_mask(worker.pid, &live->all);
    assert_int_equal(release(live, worker.pid), CP_ACT_YIELDED);
    expect_mask(worker.pid, &live->all);
    assert_int_equal(count_due(live), 0);
    worker_stop(&worker);
}

static void test_check_finds_its_mask(void **state)
{
    struct live *live = *state;
    char detail[CP_ACT_DETAIL_SIZE];
    struct worker worker;
    struct cp_task_id task;

    worker_start(&worker);
    task = task_of(worker.pid);
    assert_int_equal(live->actuator->ops->check(live->actuator, task, detail), CP_ACT_GONE);
    place_ok(live, worker.pid, false, &live->only_a);
    assert_int_equal(live->actuator->ops->check(live->actuator, task, detail), CP_ACT_DONE);
    assert_string_equal(detail, "");
    worker_stop(&worker);
    assert_int_equal(live->actuator->ops->check(live->actuator, task, detail), CP_ACT_GONE);
    assert_int_equal(count_due(live), 0);
}

/* Between the look at the facts and the placement somebody uses taskset. */
static void test_taskset_before_placing(void **state)
{
    struct live *live = *state;
    struct cp_act_change change;
    struct cp_error error = {0};
    struct worker worker;

    worker_start(&worker);
    change = change_of(worker.pid, false);
    set_mask(worker.pid, &live->only_b);
    assert_int_equal(
        live->actuator->ops->place(live->actuator, 1, &live->only_a, &change, 1, &error), 1);
    assert_int_equal(change.result, CP_ACT_YIELDED);
    say_reason("somebody else", change.detail);
    expect_mask(worker.pid, &live->only_b);
    assert_int_equal(count_due(live), 0);
    cp_cpumask_done(&change.original);
    worker_stop(&worker);
}

static void test_ended_and_replaced_tasks(void **state)
{
    struct live *live = *state;
    struct cp_act_change change;
    struct cp_error error = {0};
    struct worker worker;

    worker_start(&worker);
    change = change_of(worker.pid, false);
    change.task.start_ticks--;
    assert_int_equal(
        live->actuator->ops->place(live->actuator, 1, &live->only_a, &change, 1, &error), 1);
    assert_int_equal(change.result, CP_ACT_GONE);
    expect_mask(worker.pid, &live->all);
    change.task.start_ticks++;
    worker_stop(&worker);
    assert_int_equal(
        live->actuator->ops->place(live->actuator, 1, &live->only_a, &change, 1, &error), 1);
    assert_int_equal(change.result, CP_ACT_GONE);
    assert_int_equal(count_due(live), 0);
    cp_cpumask_done(&change.original);
}

/* A process with the wanted PID, by clone3(2) with set_tid. -1: the kernel does not let us. */
static pid_t start_stranger(pid_t wanted)
{
    struct clone_args arguments = {
        .exit_signal = SIGCHLD,
        .set_tid = (uint64_t)(uintptr_t)&wanted,
        .set_tid_size = 1,
    };
    long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    return (pid_t)pid;
}

/* The TID really is another task's by the time of the release, with our very mask. */
static void test_tid_used_again(void **state)
{
    struct live *live = *state;
    char detail[CP_ACT_DETAIL_SIZE];
    struct cp_task_id task;
    struct worker worker;
    pid_t pid;

    worker_start(&worker);
    pid = worker.pid;
    task = task_of(pid);
    place_ok(live, pid, false, &live->only_a);
    worker_stop(&worker);
    do
        (void)usleep(20000); /* start times have a resolution of 10 ms */
    while (cp_now_ns() / CP_NS_PER_TICK <= task.start_ticks + 1);
    if (start_stranger(pid) != pid) {
        print_message("clone3() with set_tid: %s\n", strerror(errno));
        skip();
    }
    set_mask(pid, &live->only_a);
    assert_int_equal(live->actuator->ops->release(live->actuator, task, detail), CP_ACT_GONE);
    expect_mask(pid, &live->only_a);
    assert_int_equal(count_due(live), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_all_or_none(void **state)
{
    struct live *live = *state;
    struct cp_act_change changes[3];
    struct cp_error error = {0};
    struct worker workers[3];

    for (unsigned i = 0; i < 3; i++) {
        worker_start(&workers[i]);
        changes[i] = change_of(workers[i].pid, false);
    }
    worker_stop(&workers[1]);
    assert_int_equal(
        live->actuator->ops->place(live->actuator, 1, &live->only_a, changes, 3, &error), 1);
    assert_int_equal(changes[0].result, CP_ACT_RESTORED);
    assert_int_equal(changes[1].result, CP_ACT_GONE);
    assert_int_equal(changes[2].result, CP_ACT_RESTORED);
    say_reason("could not be placed", changes[0].detail);
    expect_mask(workers[0].pid, &live->all);
    expect_mask(workers[2].pid, &live->all);
    assert_int_equal(count_due(live), 0);
    for (unsigned i = 0; i < 3; i++)
        cp_cpumask_done(&changes[i].original);
    worker_stop(&workers[0]);
    worker_stop(&workers[2]);
}

static void test_arguments(void **state)
{
    struct live *live = *state;
    struct cp_act_change changes[2];
    struct cp_cpumask empty = {0};
    struct cp_error error = {0};
    struct worker worker;

    worker_start(&worker);
    changes[0] = changes[1] = change_of(worker.pid, false);
    assert_int_equal(
        live->actuator->ops->place(live->actuator, 1, &live->only_a, changes, 2, &error), -EINVAL);
    assert_int_equal(changes[0].result, CP_ACT_FAILED);
    assert_int_equal(live->actuator->ops->place(live->actuator, 1, &empty, changes, 1, &error),
                     -EINVAL);
    assert_int_equal(
        live->actuator->ops->place(live->actuator, 1, &live->only_a, changes, 0, &error), -EINVAL);
    expect_mask(worker.pid, &live->all);
    cp_cpumask_done(&changes[0].original);
    worker_stop(&worker);
}

/* CPUs that do not exist: the kernel takes the mask, and gives another. */
static void test_half_a_mask_is_refused(void **state)
{
    struct live *live = *state;
    struct cp_cpumask wide = {0};
    struct cp_act_change change;
    struct worker worker;

    assert_int_equal(cp_cpumask_set(&wide, live->a), 0);
    assert_int_equal(cp_cpumask_set(&wide, (struct cp_cpu){5000}), 0);
    worker_start(&worker);
    assert_int_equal(place_one(live, worker.pid, false, &wide, &change), 1);
    assert_int_equal(change.result, CP_ACT_REFUSED);
    say_reason("when asked for", change.detail);
    expect_mask(worker.pid, &live->all);
    assert_int_equal(count_due(live), 0);
    cp_cpumask_done(&wide);
    worker_stop(&worker);
}

static void test_kernel_threads_are_refused(void **state)
{
    struct live *live = *state;
    struct cp_act_change change;
    struct cp_proc_stat stat;

    if (cp_proc_read_stat(&live->root, 2, &stat) != 0 || !(stat.flags & CP_PF_KTHREAD)) {
        print_message("no kernel thread is to be seen here\n");
        skip();
    }
    assert_int_equal(place_one(live, 2, false, &live->only_a, &change), 1);
    assert_int_equal(change.result, CP_ACT_REFUSED);
    assert_int_equal(count_due(live), 0);
}

/* A process of root, and an actuator that may no more. */
static void test_no_permission(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t child;
    int status;

    worker_start(&worker);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct cp_act_change change = change_of(worker.pid, false);
        struct cp_error error = {0};
        int r;

        if (setresuid(65534, 65534, 65534) < 0)
            _exit(2);
        r = live->actuator->ops->place(live->actuator, 1, &live->only_a, &change, 1, &error);
        _exit(r == 1 && change.result == CP_ACT_REFUSED && strstr(change.detail, "CAP_SYS_NICE")
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_mask(worker.pid, &live->all);
    worker_stop(&worker);
}

static void test_no_journal_no_change(void **state)
{
    struct live *live = *state;
    struct cp_act_change change = {0};
    struct rlimit before;
    struct rlimit limit;
    struct worker worker;
    int r;

    worker_start(&worker);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1;
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    r = place_one(live, worker.pid, false, &live->only_a, &change);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(r < 0);
    assert_int_equal(change.result, CP_ACT_FAILED);
    expect_mask(worker.pid, &live->all);
    assert_int_equal(count_due(live), 0);
    worker_stop(&worker);
}

/* A source that notes the order of things and can be full. */
struct noting_source {
    struct cp_wake_source source;
    struct live *live;
    unsigned n_guarded;
    unsigned n_unguarded;
    bool full;
    bool wrong_order;
};

static int note_guard(struct cp_wake_source *source, struct cp_task_id task)
{
    struct noting_source *noting = (struct noting_source *)(void *)source;

    if (noting->full && noting->n_guarded > 0)
        return -ENOSPC;
    noting->n_guarded++;
    /* Journal first, then guard, then the mask. */
    expect_mask(task.tid, &noting->live->all);
    noting->wrong_order |= count_due(noting->live) == 0;
    return 0;
}

static void note_unguard(struct cp_wake_source *source, struct cp_task_id task)
{
    (void)task;
    ((struct noting_source *)(void *)source)->n_unguarded++;
}

static void test_guard(void **state)
{
    static const struct cp_wake_source_ops ops = {
        .name = "noting", .guard = note_guard, .unguard = note_unguard};
    struct live *live = *state;
    struct noting_source noting = {.source = {.ops = &ops}, .live = live, .full = true};
    struct cp_act_change changes[2];
    struct cp_error error = {0};
    struct worker workers[2];

    live_reopen(live, &noting.source);
    for (unsigned i = 0; i < 2; i++) {
        worker_start(&workers[i]);
        changes[i] = change_of(workers[i].pid, false);
    }
    assert_int_equal(
        live->actuator->ops->place(live->actuator, 1, &live->only_a, changes, 2, &error), -ENOSPC);
    say_reason("cannot guard", error.message);
    expect_mask(workers[0].pid, &live->all);
    assert_int_equal(count_due(live), 0);
    assert_true(noting.n_unguarded >= 1);

    noting = (struct noting_source){.source = {.ops = &ops}, .live = live};
    assert_int_equal(
        live->actuator->ops->place(live->actuator, 1, &live->only_a, changes, 2, &error), 0);
    assert_int_equal(noting.n_guarded, 2);
    assert_false(noting.wrong_order);
    assert_int_equal(release(live, workers[0].pid), CP_ACT_RESTORED);
    assert_int_equal(noting.n_unguarded, 1);
    assert_int_equal(release(live, workers[1].pid), CP_ACT_RESTORED);
    assert_int_equal(noting.n_unguarded, 2);
    for (unsigned i = 0; i < 2; i++) {
        cp_cpumask_done(&changes[i].original);
        worker_stop(&workers[i]);
    }
    live_close(live);
}

/* Placed again elsewhere: the first original stays the original. */
static void test_placed_again(void **state)
{
    struct live *live = *state;
    const struct cp_act_held *held;
    struct worker worker;

    worker_start(&worker);
    place_ok(live, worker.pid, false, &live->only_a);
    place_ok(live, worker.pid, true, &live->only_b);
    assert_int_equal(count_due(live), 1);
    held = live->actuator->ops->find(live->actuator, task_of(worker.pid));
    assert_non_null(held);
    assert_true(cp_cpumask_equal(held->original, &live->all));
    assert_true(cp_cpumask_equal(held->target, &live->only_b));
    assert_false(held->had_user_mask);
    assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
    expect_mask(worker.pid, &live->all);
    worker_stop(&worker);
}

/* The second set fails: the held one goes back to where it was, and is still ours. */
static void test_placed_again_fails(void **state)
{
    struct live *live = *state;
    struct cp_act_change changes[2];
    struct cp_error error = {0};
    struct cp_cpumask wide = {0};
    const struct cp_act_held *held;
    struct worker workers[2];

    assert_int_equal(cp_cpumask_set(&wide, live->b), 0);
    assert_int_equal(cp_cpumask_set(&wide, (struct cp_cpu){5000}), 0);
    worker_start(&workers[0]);
    worker_start(&workers[1]);
    place_ok(live, workers[0].pid, false, &live->only_a);
    changes[0] = change_of(workers[0].pid, true);
    changes[1] = change_of(workers[1].pid, false);
    assert_int_equal(live->actuator->ops->place(live->actuator, 2, &wide, changes, 2, &error), 1);
    assert_int_equal(changes[0].result, CP_ACT_REFUSED);
    assert_int_equal(changes[1].result, CP_ACT_RESTORED);
    expect_mask(workers[0].pid, &live->only_a);
    expect_mask(workers[1].pid, &live->all);
    held = live->actuator->ops->find(live->actuator, task_of(workers[0].pid));
    assert_non_null(held);
    assert_int_equal(held->decision, 1);
    assert_true(cp_cpumask_equal(held->target, &live->only_a));
    assert_true(cp_cpumask_equal(held->original, &live->all));
    assert_int_equal(count_due(live), 1);
    assert_int_equal(release(live, workers[0].pid), CP_ACT_RESTORED);
    expect_mask(workers[0].pid, &live->all);
    cp_cpumask_done(&wide);
    for (unsigned i = 0; i < 2; i++) {
        cp_cpumask_done(&changes[i].original);
        worker_stop(&workers[i]);
    }
}

static void test_only_the_live_machine(void **state)
{
    struct live *live = *state;
    struct cp_root copy = live->root;
    struct cp_actuator *actuator = NULL;
    struct cp_error error = {0};

    copy.live = false;
    assert_int_equal(
        cp_affinity_actuator_new(&copy, live->machine, NULL, live->journal, &actuator, &error),
        -EINVAL);
    assert_null(actuator);
    assert_int_equal(live->actuator->ops->set_machine(live->actuator, live->machine), 0);
}

static void test_dry(void **state)
{
    struct live *live = *state;
    struct cp_actuator *dry = cp_dry_actuator_new();
    char detail[CP_ACT_DETAIL_SIZE];
    struct cp_act_change change;
    struct cp_error error = {0};
    struct cp_act_held held;
    struct worker worker;

    assert_non_null(dry);
    worker_start(&worker);
    change = change_of(worker.pid, false);
    assert_int_equal(dry->ops->place(dry, 1, &live->only_a, &change, 1, &error), 0);
    assert_int_equal(change.result, CP_ACT_DRY);
    expect_mask(worker.pid, &live->all);
    assert_int_equal(dry->ops->release(dry, change.task, detail), CP_ACT_DRY);
    assert_false(dry->ops->held(dry, 0, &held));
    assert_null(dry->ops->find(dry, change.task));
    assert_int_equal(dry->ops->scan_strays(dry), 0);
    cp_cpumask_done(&change.original);
    worker_stop(&worker);
    cp_actuator_free(dry);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, live_setup, live_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(test_without_user_mask),
        LIVE(test_with_user_mask),
        LIVE(test_thread_that_is_no_leader),
        LIVE(test_taskset_after_placing),
        LIVE(test_check_finds_its_mask),
        LIVE(test_taskset_before_placing),
        LIVE(test_ended_and_replaced_tasks),
        LIVE(test_tid_used_again),
        LIVE(test_all_or_none),
        LIVE(test_arguments),
        LIVE(test_half_a_mask_is_refused),
        LIVE(test_kernel_threads_are_refused),
        LIVE(test_no_permission),
        LIVE(test_no_journal_no_change),
        LIVE(test_guard),
        LIVE(test_placed_again),
        LIVE(test_placed_again_fails),
        LIVE(test_only_the_live_machine),
        LIVE(test_dry),
    };
    int r = live_check();

    return r != 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
