/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records of the kernel side become a sample: what is held is added, what is gone is left out. */
#include "wake/wake-merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define END_NS 1000000ull

static struct cp_wake_abi_task record(uint32_t tid)
{
    struct cp_wake_abi_task task = {
        .tid = tid, .tgid = tid / 10 * 10, .uid = 1000 + tid, .start_ticks = 7 * tid};

    (void)snprintf(task.comm, sizeof(task.comm), "task-%u", tid);
    return task;
}

static const struct cp_wake_edge *find(const struct cp_wake_sample *sample, pid_t waker,
                                       pid_t wakee)
{
    for (size_t i = 0; i < sample->n_edges; i++)
        if (sample->edges[i].waker.tid == waker && sample->edges[i].wakee.tid == wakee)
            return &sample->edges[i];
    return NULL;
}

static void test_nothing(void **state)
{
    const struct cp_wake_records records = {.end_ns = END_NS};
    struct cp_wake_sample sample = {0};

    (void)state;
    assert_int_equal(cp_wake_merge(&records, 10, &sample), 0);
    assert_int_equal(sample.n_edges, 0);
    assert_int_equal(sample.n_tasks, 0);
    cp_wake_sample_done(&sample);
}

/* The three parts of one edge: in the table, with the waker, with the wakee. */
static void test_parts_are_added(void **state)
{
    struct cp_wake_abi_task tasks[] = {record(21), record(20)};
    const struct cp_wake_abi_edge_key keys[] = {{.waker = 20, .wakee = 21}};
    const struct cp_wake_abi_edge edges[] = {{.handoffs = 100,
                                              .slept = 90,
                                              .tail_ns = 1000,
                                              .n_tail = 95,
                                              .latency_ns = 2000,
                                              .n_latency = 99,
                                              .run_ns = 3000,
                                              .n_run = 98,
                                              .level = {1, 2, 3, 4, 5, 6}}};
    const struct cp_wake_records records = {
        .tasks = tasks, .n_tasks = 2, .keys = keys, .edges = edges, .n_edges = 1, .end_ns = END_NS};
    struct cp_wake_sample sample = {.n_dropped = 5};
    const struct cp_wake_edge *edge;

    (void)state;
    tasks[1].state.out = (struct cp_wake_abi_out){
        .wakee = 21, .handoffs = 10, .slept = 9, .n_tail = 8, .tail_ns = 70};
    tasks[0].state.in = (struct cp_wake_abi_in){.waker = 20,
                                                .n_latency = 6,
                                                .n_run = 5,
                                                .latency_ns = 40,
                                                .run_ns = 30,
                                                .level = {10, 20, 30, 40, 50, 60}};
    assert_int_equal(cp_wake_merge(&records, 10, &sample), 0);
    assert_int_equal(sample.n_edges, 1);
    assert_int_equal(sample.n_dropped, 5);
    edge = &sample.edges[0];
    assert_int_equal(edge->waker.tid, 20);
    assert_int_equal(edge->waker.start_ticks, 140);
    assert_int_equal(edge->wakee.tid, 21);
    assert_int_equal(edge->wakee.start_ticks, 147);
    assert_int_equal(edge->handoffs, 110);
    assert_int_equal(edge->slept, 99);
    assert_int_equal(edge->tail_ns, 1070);
    assert_int_equal(edge->n_tail, 103);
    assert_int_equal(edge->latency_ns, 2040);
    assert_int_equal(edge->n_latency, 105);
    assert_int_equal(edge->run_ns, 3030);
    assert_int_equal(edge->n_run, 103);
    for (unsigned i = 0; i < CP_LEVEL_MAX; i++)
        assert_int_equal(edge->level[i], 11 * (i + 1));
    assert_int_equal(sample.n_tasks, 2);
    assert_int_equal(sample.tasks[0].id.tid, 20);
    assert_int_equal(sample.tasks[0].tgid, 20);
    assert_int_equal(sample.tasks[0].uid, 1020);
    assert_string_equal(sample.tasks[0].comm, "task-20");
    cp_wake_sample_done(&sample);
}

static void test_gone_tasks_and_empty_edges_are_left_out(void **state)
{
    struct cp_wake_abi_task tasks[] = {record(1), record(2), record(3)};
    const struct cp_wake_abi_edge_key keys[] = {
        {.waker = 1, .wakee = 2}, {.waker = 1, .wakee = 9}, {.waker = 9, .wakee = 1}};
    const struct cp_wake_abi_edge edges[] = {{.handoffs = 0}, {.handoffs = 5}, {.handoffs = 5}};
    const struct cp_wake_records records = {
        .tasks = tasks, .n_tasks = 3, .keys = keys, .edges = edges, .n_edges = 3, .end_ns = END_NS};
    struct cp_wake_sample sample = {0};

    (void)state;
    /* Its waker's half found no room in the table: no hand-off is known. */
    tasks[2].state.in = (struct cp_wake_abi_in){.waker = 1, .n_latency = 4, .latency_ns = 4};
    /* Its last wakee ended. */
    tasks[1].state.out = (struct cp_wake_abi_out){.wakee = 8, .handoffs = 3};
    assert_int_equal(cp_wake_merge(&records, 10, &sample), 0);
    assert_int_equal(sample.n_edges, 0);
    assert_int_equal(sample.n_tasks, 3);
    cp_wake_sample_done(&sample);
}

static void test_open_times_count_to_the_end(void **state)
{
    static const struct {
        const char *name;
        struct cp_wake_abi_state state;
        uint64_t run_ns;
        uint64_t wait_ns;
        uint64_t preempted_ns;
    } cases[] = {
        {"sleeping", {.run_ns = 10, .wait_ns = 20, .preempted_ns = 5}, 10, 20, 5},
        {"running", {.run_ns = 10, .on_since_ns = END_NS - 100}, 110, 0, 0},
        {"woken", {.wait_ns = 20, .wake_ns = END_NS - 100}, 0, 120, 0},
        {"woken, then preempted before",
         {.wake_ns = END_NS - 100, .preempted_at_ns = END_NS - 500},
         0,
         100,
         0},
        {"preempted",
         {.wait_ns = 20, .preempted_ns = 5, .preempted_at_ns = END_NS - 100},
         0,
         120,
         105},
        {"woken while it runs", {.on_since_ns = END_NS - 100, .wake_ns = END_NS - 50}, 100, 0, 0},
        {"since after the end", {.on_since_ns = END_NS + 100}, 0, 0, 0},
        {"woken after the end", {.wake_ns = END_NS + 100}, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cp_wake_abi_task task = record(5);
        const struct cp_wake_records records = {.tasks = &task, .n_tasks = 1, .end_ns = END_NS};
        struct cp_wake_sample sample = {0};

        task.state = cases[i].state;
        assert_int_equal(cp_wake_merge(&records, 10, &sample), 0);
        if (sample.tasks[0].run_ns != cases[i].run_ns ||
            sample.tasks[0].wait_ns != cases[i].wait_ns ||
            sample.tasks[0].preempted_ns != cases[i].preempted_ns)
            fail_msg("%s", cases[i].name);
        cp_wake_sample_done(&sample);
    }
}

static void test_unterminated_comm(void **state)
{
    struct cp_wake_abi_task task = record(5);
    const struct cp_wake_records records = {.tasks = &task, .n_tasks = 1, .end_ns = END_NS};
    struct cp_wake_sample sample = {0};

    (void)state;
    memset(task.comm, 'x', sizeof(task.comm));
    assert_int_equal(cp_wake_merge(&records, 10, &sample), 0);
    assert_int_equal(strlen(sample.tasks[0].comm), sizeof(task.comm) - 1);
    cp_wake_sample_done(&sample);
}

static void test_beyond_the_limit_the_weakest_go(void **state)
{
    struct cp_wake_abi_task tasks[] = {record(1), record(2), record(3), record(4)};
    const struct cp_wake_abi_edge_key keys[] = {{1, 2}, {1, 3}, {1, 4}, {2, 1}, {3, 1}};
    const struct cp_wake_abi_edge edges[] = {
        {.handoffs = 7}, {.handoffs = 50}, {.handoffs = 3}, {.handoffs = 60}, {.handoffs = 8}};
    const struct cp_wake_records records = {
        .tasks = tasks, .n_tasks = 4, .keys = keys, .edges = edges, .n_edges = 5, .end_ns = END_NS};
    struct cp_wake_sample sample = {.n_dropped = 100};

    (void)state;
    assert_int_equal(cp_wake_merge(&records, 3, &sample), 0);
    assert_int_equal(sample.n_edges, 3);
    assert_int_equal(sample.n_dropped, 110);
    assert_int_equal(sample.edges[0].wakee.tid, 3);
    assert_int_equal(sample.edges[1].waker.tid, 2);
    assert_int_equal(sample.edges[2].waker.tid, 3);
    cp_wake_sample_done(&sample);
}

/* Generated records against sums kept in a plain matrix. */
static void test_generated(void **state)
{
    enum { N = 40 };
    static uint64_t handoffs[N + 1][N + 1];
    static uint64_t latency[N + 1][N + 1];

    (void)state;
    srandom(1);
    for (int round = 0; round < 50; round++) {
        struct cp_wake_abi_task tasks[N];
        struct cp_wake_abi_edge_key keys[200];
        struct cp_wake_abi_edge edges[200];
        struct cp_wake_records records = {
            .tasks = tasks, .n_tasks = N, .keys = keys, .edges = edges, .end_ns = END_NS};
        struct cp_wake_sample sample = {0};
        size_t n_expected = 0;

        memset(handoffs, 0, sizeof(handoffs));
        memset(latency, 0, sizeof(latency));
        for (uint32_t i = 0; i < N; i++) {
            uint32_t tid = N - i;
            uint32_t other = 1 + (uint32_t)random() % N;

            tasks[i] = record(tid);
            tasks[i].state.out.wakee = other;
            tasks[i].state.out.handoffs = (uint32_t)random() % 100;
            handoffs[tid][other] += tasks[i].state.out.handoffs;
            other = 1 + (uint32_t)random() % N;
            tasks[i].state.in.waker = other;
            tasks[i].state.in.latency_ns = (uint64_t)random() % 1000;
            latency[other][tid] += tasks[i].state.in.latency_ns;
        }
        for (size_t i = 0; i < 200; i++) {
            uint32_t waker = 1 + (uint32_t)(i % N);
            uint32_t wakee = 1 + (uint32_t)((i / N * 7 + i) % N);

            keys[records.n_edges] = (struct cp_wake_abi_edge_key){waker, wakee};
            memset(&edges[i], 0, sizeof(edges[i]));
            edges[i].handoffs = (uint64_t)random() % 100;
            edges[i].latency_ns = (uint64_t)random() % 1000;
            handoffs[waker][wakee] += edges[i].handoffs;
            latency[waker][wakee] += edges[i].latency_ns;
            records.n_edges++;
        }
        assert_int_equal(cp_wake_merge(&records, 10000, &sample), 0);
        for (int a = 1; a <= N; a++)
            for (int b = 1; b <= N; b++) {
                const struct cp_wake_edge *edge = find(&sample, a, b);

                n_expected += handoffs[a][b] > 0;
                assert_int_equal(edge ? edge->handoffs : 0, handoffs[a][b]);
                if (edge)
                    assert_int_equal(edge->latency_ns, latency[a][b]);
            }
        assert_int_equal(sample.n_edges, n_expected);
        for (size_t i = 1; i < sample.n_edges; i++)
            assert_true(sample.edges[i - 1].waker.tid < sample.edges[i].waker.tid ||
                        sample.edges[i - 1].wakee.tid < sample.edges[i].wakee.tid);
        cp_wake_sample_done(&sample);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_parts_are_added),
        cmocka_unit_test(test_gone_tasks_and_empty_edges_are_left_out),
        cmocka_unit_test(test_open_times_count_to_the_end),
        cmocka_unit_test(test_unterminated_comm),
        cmocka_unit_test(test_beyond_the_limit_the_weakest_go),
        cmocka_unit_test(test_generated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
