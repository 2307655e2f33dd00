/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The scale on the real kernel: loads of a known pattern give the edges and times they must give.
 */
#include "integration/wake-load.h"

struct fixture {
    struct cp_machine machine;
    struct cp_wake_source *source;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    make_machine(&fixture->machine);
    fixture->source = make_source(&fixture->machine, 16384);
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

static void assert_sample_is_sound(const struct cp_wake_sample *sample)
{
    /* With a full table one half of an edge may be kept and the other dropped. */
    bool is_whole = sample->n_dropped == 0;

    assert_true(sample->end_ns > sample->begin_ns);
    for (size_t i = 1; i < sample->n_tasks; i++)
        assert_true(cp_task_id_compare(sample->tasks[i - 1].id, sample->tasks[i].id) < 0);
    for (size_t i = 0; i < sample->n_edges; i++) {
        const struct cp_wake_edge *edge = &sample->edges[i];
        uint64_t n_level = 0;

        if (i > 0) {
            int order = cp_task_id_compare(edge[-1].waker, edge->waker);

            assert_true(order < 0 ||
                        (order == 0 && cp_task_id_compare(edge[-1].wakee, edge->wakee) < 0));
        }
        for (int level = 0; level < CP_LEVEL_MAX; level++)
            n_level += edge->level[level];
        assert_int_equal(n_level, edge->n_latency);
        assert_true(edge->handoffs > 0);
        assert_true(edge->n_latency <= edge->handoffs || !is_whole);
        assert_true(edge->n_run <= edge->n_latency);
        assert_true(edge->n_tail <= edge->handoffs);
        assert_true(edge->slept <= edge->n_tail);
        assert_non_null(find_task(sample, edge->waker.tid));
        assert_non_null(find_task(sample, edge->wakee.tid));
    }
    for (size_t i = 0; i < sample->n_tasks; i++) {
        const struct cp_wake_task *task = &sample->tasks[i];

        assert_true(task->preempted_ns <= task->wait_ns);
        assert_true(task->partner_ns <= task->wait_ns);
    }
}

static const struct cp_wake_edge *assert_edge(const struct cp_wake_sample *sample, pid_t waker,
                                              pid_t wakee)
{
    const struct cp_wake_edge *edge = find_edge(sample, waker, wakee);

    if (!edge) {
        for (size_t i = 0; i < sample->n_edges; i++)
            printf("%d (%s) -> %d: %llu\n", (int)sample->edges[i].waker.tid,
                   find_task(sample, sample->edges[i].waker.tid)->comm,
                   (int)sample->edges[i].wakee.tid, (unsigned long long)sample->edges[i].handoffs);
        fail_msg("no edge %d -> %d in %zu edges, %llu dropped", (int)waker, (int)wakee,
                 sample->n_edges, (unsigned long long)sample->n_dropped);
    }
    assert_true(edge->n_latency > 0);
    assert_true(edge->n_run > 0);
    assert_true(edge->n_tail > 0);
    assert_true(edge->latency_ns > 0);
    assert_true(edge->run_ns > 0);
    assert_true(edge->tail_ns > 0);
    return edge;
}

static void assert_about_equal(uint64_t a, uint64_t b, uint64_t slack)
{
    assert_true(a <= b + slack && b <= a + slack);
}

static void pair_gives_both_edges(const struct pace *pace, enum cp_level level, void **state)
{
    const struct fixture *fixture = *state;
    struct pair pair = start_pair(pace);
    struct cp_wake_sample sample;
    const struct cp_wake_edge *edges[2];
    const struct cp_wake_task *task;

    nap_us(50000);
    look(fixture->source, 300, &sample);
    assert_sample_is_sound(&sample);
    edges[0] = assert_edge(&sample, pair.pids[0], pair.pids[1]);
    edges[1] = assert_edge(&sample, pair.pids[1], pair.pids[0]);
    assert_true(edges[0]->handoffs >= 50);
    /* On one CPU the wakee may preempt the waker and answer before that one waits: no wake-up. */
    if (level != CP_LEVEL_CPU)
        assert_about_equal(edges[0]->handoffs, edges[1]->handoffs, edges[0]->handoffs / 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(edges[i]->level[level], edges[i]->n_latency);
        assert_true(cp_task_id_equal(edges[i]->waker, task_id(pair.pids[i])));
        assert_about_equal(edges[i]->n_latency, edges[i]->handoffs, 1 + edges[i]->handoffs / 10);
    }
    task = find_task(&sample, pair.pids[0]);
    assert_non_null(task);
    assert_int_equal(task->tgid, pair.pids[0]);
    assert_int_equal(task->uid, getuid());
    assert_string_equal(task->comm, "test-wake-windo");
    assert_true(task->run_ns > 0);
    assert_true(task->run_ns <= sample.end_ns - sample.begin_ns);
    cp_wake_sample_done(&sample);
    stop_pair(pair);
}

static void test_pair_on_two_cpus(void **state)
{
    skip_unless_two_cpus();
    pair_gives_both_edges(&(struct pace){.cpus = {0, 1}, .realtime = true}, CP_LEVEL_LLC, state);
}

static void test_pair_on_one_cpu(void **state)
{
    pair_gives_both_edges(&(struct pace){.cpus = {0, 0}}, CP_LEVEL_CPU, state);
}

static void assert_between(uint64_t value, uint64_t low, uint64_t high)
{
    if (value < low || value > high)
        fail_msg("%llu is not between %llu and %llu", (unsigned long long)value,
                 (unsigned long long)low, (unsigned long long)high);
}

/* 200 us of work between being woken and waking: that is the run. Apart the waker then sleeps at
 * once; on one CPU it may be preempted by its own wakee and find the answer there when it goes on,
 * so its tail has the next turn in it. */
static void serial_work(const struct pace *pace, void **state)
{
    const struct fixture *fixture = *state;
    struct pair pair = start_pair(pace);
    struct cp_wake_sample sample;

    nap_us(50000);
    look(fixture->source, 500, &sample);
    for (int i = 0; i < 2; i++) {
        const struct cp_wake_edge *edge = assert_edge(&sample, pair.pids[i], pair.pids[1 - i]);

        assert_between(edge->run_ns / edge->n_run, 100000, 600000);
        if (pace->cpus[0] == pace->cpus[1])
            continue;
        assert_true(edge->tail_ns / edge->n_tail < 100000);
        assert_true(edge->slept * 10 >= edge->n_tail * 8);
    }
    cp_wake_sample_done(&sample);
    stop_pair(pair);
}

static void test_work_before_the_wake_is_run(void **state)
{
    skip_unless_two_cpus();
    serial_work(&(struct pace){.cpus = {0, 1}, .work_us = 200}, state);
}

static void test_work_before_the_wake_is_run_on_one_cpu(void **state)
{
    serial_work(&(struct pace){.cpus = {0, 0}, .work_us = 200}, state);
}

/* The first task works 200 us after each wake, while the other one answers: that is its tail. On
 * one CPU the wakee may preempt it, so the tail is summed over preemptions. */
static void overlapping_work(int cpu, void **state)
{
    const struct fixture *fixture = *state;
    struct pair pair = start_pair(&(struct pace){.cpus = {0, cpu}, .tail_us = {200, 0}});
    struct cp_wake_sample sample;
    const struct cp_wake_edge *edge;

    nap_us(50000);
    look(fixture->source, 500, &sample);
    edge = assert_edge(&sample, pair.pids[0], pair.pids[1]);
    assert_between(edge->tail_ns / edge->n_tail, 100000, 600000);
    assert_true(edge->run_ns / edge->n_run < 100000);
    cp_wake_sample_done(&sample);
    stop_pair(pair);
}

static void test_work_after_the_wake_is_tail(void **state)
{
    skip_unless_two_cpus();
    overlapping_work(1, state);
}

static void test_work_after_the_wake_is_tail_on_one_cpu(void **state)
{
    overlapping_work(0, state);
}

/* Two tasks on one CPU, the one woken while the other still works: part of its wait is explained.
 */
static void test_partner_explains_a_wait(void **state)
{
    const struct fixture *fixture = *state;
    struct pair pair =
        start_pair(&(struct pace){.cpus = {0, 0}, .work_us = 50, .tail_us = {200, 200}});
    struct cp_wake_sample sample;
    uint64_t partner_ns = 0;

    nap_us(50000);
    look(fixture->source, 500, &sample);
    assert_sample_is_sound(&sample);
    for (int i = 0; i < 2; i++) {
        const struct cp_wake_task *task = find_task(&sample, pair.pids[i]);

        assert_non_null(task);
        partner_ns += task->partner_ns;
    }
    assert_true(partner_ns > 0);
    cp_wake_sample_done(&sample);
    stop_pair(pair);
}

static void test_several_pairs(void **state)
{
    const struct fixture *fixture = *state;
    struct pair pairs[12];
    struct cp_wake_sample sample;

    for (int i = 0; i < 12; i++)
        pairs[i] = start_pair(&(struct pace){.cpus = {ANY_CPU, ANY_CPU}, .work_us = 20});
    nap_us(50000);
    look(fixture->source, 500, &sample);
    assert_sample_is_sound(&sample);
    for (int i = 0; i < 12; i++) {
        assert_edge(&sample, pairs[i].pids[0], pairs[i].pids[1]);
        assert_edge(&sample, pairs[i].pids[1], pairs[i].pids[0]);
        assert_null(find_edge(&sample, pairs[i].pids[0], pairs[(i + 1) % 12].pids[0]));
    }
    assert_int_equal(sample.n_dropped, 0);
    cp_wake_sample_done(&sample);
    for (int i = 0; i < 12; i++)
        stop_pair(pairs[i]);
}

static void test_one_window_at_a_time(void **state)
{
    struct cp_wake_source *source = ((struct fixture *)*state)->source;
    struct cp_wake_sample sample = {0};
    struct cp_error error = {0};

    assert_int_equal(source->ops->window_close(source, &sample, &error), -EINVAL);
    assert_int_equal(source->ops->window_open(source, &error), 0);
    assert_int_equal(source->ops->window_open(source, &error), -EBUSY);
    assert_int_equal(source->ops->window_close(source, &sample, &error), 0);
    cp_wake_sample_done(&sample);
    assert_int_equal(source->ops->window_close(source, &sample, &error), -EINVAL);
}

/* Nothing of one window shows up in the next. */
static void test_many_windows(void **state)
{
    const struct fixture *fixture = *state;
    uint64_t before = fixture->source->counters.n_scale_attaches;
    struct pair pair = start_pair(&(struct pace){.cpus = {0, 0}, .nap_us = 500});
    struct cp_wake_sample sample;

    for (int i = 0; i < 30; i++) {
        look(fixture->source, 20, &sample);
        assert_sample_is_sound(&sample);
        if (i < 29) {
            const struct cp_wake_edge *edge = find_edge(&sample, pair.pids[0], pair.pids[1]);
            uint64_t length_ns = sample.end_ns - sample.begin_ns;

            /* The first task sleeps for 500 us in each round. */
            assert_true(!edge || edge->handoffs <= length_ns / 500000 + 2);
        }
        cp_wake_sample_done(&sample);
    }
    assert_int_equal(fixture->source->counters.n_scale_attaches, before + 30);
    stop_pair(pair);
    look(fixture->source, 20, &sample);
    assert_null(find_task(&sample, pair.pids[0]));
    cp_wake_sample_done(&sample);
}

/* The test process itself passes tokens with a child: neither direction counts. */
static void test_own_wakes_do_not_count(void **state)
{
    struct cp_wake_source *source = ((struct fixture *)*state)->source;
    struct cp_wake_sample sample = {0};
    struct cp_error error = {0};
    uint64_t end;
    int there[2];
    int back[2];
    pid_t child;
    char token = 'x';

    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    if (start_child(&child))
        pass_tokens(there[0], back[1], &(struct pace){.work_us = 0}, 1);
    assert_int_equal(source->ops->window_open(source, &error), 0);
    end = cp_now_ns() + 200 * CP_NS_PER_MS;
    while (cp_now_ns() < end) {
        assert_int_equal(write(there[1], &token, 1), 1);
        assert_int_equal(read(back[0], &token, 1), 1);
    }
    assert_int_equal(source->ops->window_close(source, &sample, &error), 0);
    assert_null(find_edge(&sample, getpid(), child));
    assert_null(find_edge(&sample, child, getpid()));
    assert_null(find_task(&sample, getpid()));
    cp_wake_sample_done(&sample);
    stop_child(child);
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(back[i]);
    }
}

/* 24 tasks that wake a random one of each other: far more edges than the table takes. */
static void test_full_table_drops(void **state)
{
    enum { N = 24 };
    const struct fixture *fixture = *state;
    struct cp_wake_source *source = make_source(&fixture->machine, 64);
    struct cp_wake_sample sample;
    int pipes[N][2];
    pid_t pids[N];

    for (int i = 0; i < N; i++)
        assert_int_equal(pipe(pipes[i]), 0);
    for (int i = 0; i < N; i++)
        if (start_child(&pids[i])) {
            char token;

            srandom((unsigned)i);
            while (read(pipes[i][0], &token, 1) == 1)
                if (write(pipes[random() % N][1], &token, 1) != 1)
                    break;
            _exit(0);
        }
    for (int i = 0; i < N / 2; i++)
        assert_int_equal(write(pipes[i][1], "x", 1), 1);
    nap_us(50000);
    for (int round = 0; round < 3; round++) {
        look(source, 300, &sample);
        assert_sample_is_sound(&sample);
        assert_true(sample.n_edges > 0);
        assert_true(sample.n_edges <= 64);
        assert_true(sample.n_dropped > 0);
        assert_true(source->counters.n_dropped >= sample.n_dropped);
        cp_wake_sample_done(&sample);
    }
    for (int i = 0; i < N; i++) {
        stop_child(pids[i]);
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    cp_wake_source_free(source);
}

/* Two CPUs in different domains of every level: the level follows set_machine. */
static void test_levels_follow_the_machine(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_wake_source *source = fixture->source;
    static const enum cp_level levels[] = {CP_LEVEL_CORE, CP_LEVEL_LLC, CP_LEVEL_NODE,
                                           CP_LEVEL_PACKAGE, CP_LEVEL_MACHINE};
    struct cp_machine machine;
    struct pair pair;

    skip_unless_two_cpus();
    make_machine(&machine);
    pair = start_pair(&(struct pace){.cpus = {0, 1}});
    nap_us(100000);
    for (size_t i = 0; i < CP_ELEMENTS(levels); i++) {
        struct cp_wake_sample sample;
        const struct cp_wake_edge *edge;

        for (uint32_t k = 0; k < machine.n_cpus; k++)
            for (int level = CP_LEVEL_CORE; level < CP_LEVEL_MACHINE; level++)
                machine.cpus[k].domain[level] = level < (int)levels[i] ? k : 7;
        for (uint32_t k = 0; k < machine.n_cpus && levels[i] == CP_LEVEL_MACHINE; k++)
            machine.cpus[k].domain[CP_LEVEL_PACKAGE] = CP_DOMAIN_NONE;
        assert_int_equal(source->ops->set_machine(source, &machine), 0);
        look(source, 300, &sample);
        edge = assert_edge(&sample, pair.pids[0], pair.pids[1]);
        assert_int_equal(edge->level[levels[i]], edge->n_latency);
        cp_wake_sample_done(&sample);
    }
    assert_int_equal(source->ops->set_machine(source, &fixture->machine), 0);
    stop_pair(pair);
    machine_done(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_on_two_cpus),
        cmocka_unit_test(test_pair_on_one_cpu),
        cmocka_unit_test(test_work_before_the_wake_is_run),
        cmocka_unit_test(test_work_before_the_wake_is_run_on_one_cpu),
        cmocka_unit_test(test_work_after_the_wake_is_tail),
        cmocka_unit_test(test_work_after_the_wake_is_tail_on_one_cpu),
        cmocka_unit_test(test_partner_explains_a_wait),
        cmocka_unit_test(test_several_pairs),
        cmocka_unit_test(test_one_window_at_a_time),
        cmocka_unit_test(test_many_windows),
        cmocka_unit_test(test_own_wakes_do_not_count),
        cmocka_unit_test(test_full_table_drops),
        cmocka_unit_test(test_levels_follow_the_machine),
    };

    skip_unless_root();
    return cmocka_run_group_tests(tests, setup, teardown);
}
