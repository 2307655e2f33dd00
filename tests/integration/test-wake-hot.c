/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The scout on the real kernel: which loads are reported hot, and how often. */
#include "integration/wake-load.h"

struct fixture {
    struct cp_machine machine;
    struct cp_wake_source *source;
    struct events events;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    make_machine(&fixture->machine);
    fixture->source = make_source(&fixture->machine, 1024);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    cp_wake_source_free(fixture->source);
    machine_done(&fixture->machine);
    free(fixture);
    return 0;
}

static void assert_hot(struct fixture *fixture, struct pair pair)
{
    uint64_t begin_ns = cp_now_ns();
    const struct cp_wake_event *event;

    fixture->events.n = 0;
    event = wait_event(fixture->source, &fixture->events, CP_WAKE_EVENT_HOT, pair.pids[0]);
    assert_non_null(event);
    assert_true(event->task.tid == pair.pids[0] || event->other.tid == pair.pids[0]);
    assert_true(event->task.tid == pair.pids[1] || event->other.tid == pair.pids[1]);
    assert_true(cp_task_id_equal(event->task, task_id(event->task.tid)));
    assert_true(cp_task_id_equal(event->other, task_id(event->other.tid)));
    assert_true(event->time_ns <= cp_now_ns());
    assert_true(event->time_ns + CP_NS_PER_S >= begin_ns);
}

static void test_pair_on_two_cpus_is_hot(void **state)
{
    struct pair pair;

    skip_unless_two_cpus();
    pair = start_pair(&(struct pace){.cpus = {0, 1}});
    assert_hot(*state, pair);
    stop_pair(pair);
}

static void test_pair_on_one_cpu_is_hot(void **state)
{
    struct pair pair = start_pair(&(struct pace){.cpus = {0, 0}});

    assert_hot(*state, pair);
    stop_pair(pair);
}

/* Some 900 hand-offs a second in each direction: not far above the rate. */
static void test_slow_pair_is_hot(void **state)
{
    struct pair pair = start_pair(&(struct pace){.cpus = {0, 0}, .nap_us = 1000, .realtime = true});

    assert_hot(*state, pair);
    stop_pair(pair);
}

/* Takes events for a while. */
static void listen_ms(struct fixture *fixture, unsigned ms)
{
    uint64_t end_ns = cp_now_ns() + ms * CP_NS_PER_MS;

    while (cp_now_ns() < end_ns)
        take_events(fixture->source, &fixture->events, 20);
}

static void test_pair_below_the_rate_is_not_hot(void **state)
{
    struct fixture *fixture = *state;
    struct pair pair = start_pair(&(struct pace){.cpus = {0, 0}, .nap_us = 5000});

    fixture->events.n = 0;
    listen_ms(fixture, 1500);
    assert_int_equal(count_events(&fixture->events, CP_WAKE_EVENT_HOT, pair.pids[0]), 0);
    stop_pair(pair);
}

/* One report for a pair until rearm asks for it again. */
static void test_reported_once_until_rearm(void **state)
{
    struct fixture *fixture = *state;
    struct pair pair = start_pair(&(struct pace){.cpus = {0, 0}});

    assert_hot(fixture, pair);
    listen_ms(fixture, 1000);
    assert_int_equal(count_events(&fixture->events, CP_WAKE_EVENT_HOT, pair.pids[0]), 1);
    for (int i = 0; i < 3; i++) {
        fixture->source->ops->rearm(fixture->source);
        assert_hot(fixture, pair);
    }
    stop_pair(pair);
}

/* A pair that paused is news when it starts again. */
static void test_reported_again_after_a_pause(void **state)
{
    struct fixture *fixture = *state;
    struct pair pair = start_pair(&(struct pace){.cpus = {0, 0}});

    assert_hot(fixture, pair);
    assert_int_equal(kill(pair.pids[0], SIGSTOP), 0);
    listen_ms(fixture, 1000);
    assert_int_equal(kill(pair.pids[0], SIGCONT), 0);
    assert_hot(fixture, pair);
    stop_pair(pair);
}

/* One process hands a token to each of N in turn and waits for the answer. */
static void test_fan_out_is_not_hot(void **state)
{
    enum { N = 4 };
    struct fixture *fixture = *state;
    int there[N][2];
    int back[2];
    pid_t wakees[N];
    pid_t waker;

    assert_int_equal(pipe(back), 0);
    for (int i = 0; i < N; i++)
        assert_int_equal(pipe(there[i]), 0);
    for (int i = 0; i < N; i++)
        if (start_child(&wakees[i]))
            pass_tokens(there[i][0], back[1], &(struct pace){.work_us = 0}, 1);
    if (start_child(&waker)) {
        char token = 'x';

        for (int i = 0;; i = (i + 1) % N)
            if (write(there[i][1], &token, 1) != 1 || read(back[0], &token, 1) != 1)
                _exit(0);
    }
    fixture->events.n = 0;
    listen_ms(fixture, 1500);
    assert_int_equal(count_events(&fixture->events, CP_WAKE_EVENT_HOT, waker), 0);
    stop_child(waker);
    for (int i = 0; i < N; i++) {
        assert_int_equal(count_events(&fixture->events, CP_WAKE_EVENT_HOT, wakees[i]), 0);
        stop_child(wakees[i]);
        close(there[i][0]);
        close(there[i][1]);
    }
    close(back[0]);
    close(back[1]);
}

/* One-way traffic: the writer never waits for the reader. */
static void test_stream_is_not_hot(void **state)
{
    struct fixture *fixture = *state;
    pid_t reader;
    pid_t writer;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    if (start_child(&reader)) {
        char token;

        while (read(fds[0], &token, 1) == 1)
            ;
        _exit(0);
    }
    if (start_child(&writer))
        for (;;) {
            nap_us(200);
            if (write(fds[1], "x", 1) != 1)
                _exit(0);
        }
    fixture->events.n = 0;
    listen_ms(fixture, 1500);
    assert_int_equal(count_events(&fixture->events, CP_WAKE_EVENT_HOT, writer), 0);
    stop_child(writer);
    stop_child(reader);
    close(fds[0]);
    close(fds[1]);
}

static void test_counters(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(fixture->source->counters.n_scout_attaches, 1);
    assert_int_equal(fixture->source->counters.n_scale_attaches, 0);
    assert_int_equal(fixture->source->counters.n_lost_events, 0);
    assert_string_equal(fixture->source->ops->name, "bpf");
    assert_string_equal(fixture->source->why, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_on_two_cpus_is_hot),
        cmocka_unit_test(test_pair_on_one_cpu_is_hot),
        cmocka_unit_test(test_slow_pair_is_hot),
        cmocka_unit_test(test_pair_below_the_rate_is_not_hot),
        cmocka_unit_test(test_reported_once_until_rearm),
        cmocka_unit_test(test_reported_again_after_a_pause),
        cmocka_unit_test(test_fan_out_is_not_hot),
        cmocka_unit_test(test_stream_is_not_hot),
        cmocka_unit_test(test_counters),
    };

    skip_unless_root();
    return cmocka_run_group_tests(tests, setup, teardown);
}
