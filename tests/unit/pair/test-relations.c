/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Relations: the workloads that were measured on a 2-CPU virtual machine (one CPU 1.2 us a
 * hand-off, across its one LLC 46 us), where the truth is known, and the rules one by one.
 */
#include "unit/pair/feed.h"

#include <math.h>

static struct cp_costs vm_costs(void)
{
    struct cp_costs costs = {0};
    const uint64_t defaults[CP_LEVEL_MAX] = {1000, 2000, 4000, 9000, 15000, 25000};

    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        costs.level[l] = (struct cp_cost){.ns = defaults[l], .source = CP_COST_DEFAULT};
    costs.level[CP_LEVEL_CPU] = (struct cp_cost){.ns = 1200, .source = CP_COST_MEASURED};
    costs.level[CP_LEVEL_LLC] = (struct cp_cost){.ns = 46000, .source = CP_COST_MEASURED};
    return costs;
}

/* A machine with SMT: what cpu 1, core 2, LLC 4, node 9 us were measured. */
static struct cp_costs metal_costs(void)
{
    struct cp_costs costs = vm_costs();
    const uint64_t measured[] = {1000, 2000, 4000, 9000};

    for (unsigned l = 0; l < sizeof(measured) / sizeof(measured[0]); l++)
        costs.level[l] = (struct cp_cost){.ns = measured[l], .source = CP_COST_MEASURED};
    return costs;
}

static struct cp_policy default_policy(void)
{
    return (struct cp_policy){
        .name = "builtin",
        .mode = CP_MODE_ENFORCE,
        .min_rate_hz = 500,
        .min_gain_ns_per_s = 1e6,
        .margin = 0.05,
        .settle_ns = 10000 * MS,
    };
}

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-4 * (1.0 + fabs(expected)))
        fail_msg("%f is not %f", value, expected);
}

static void judge(const struct cp_pairs *pairs, pid_t a, pid_t b, const struct cp_costs *costs,
                  struct cp_pair_verdict *ret)
{
    struct cp_policy policy = default_policy();
    const struct cp_pair *pair = cp_pairs_find(pairs, task_id(a), task_id(b));

    assert_non_null(pair);
    cp_pair_judge(pairs, pair, &policy, costs, ret);
}

static void expect(const char *what, const struct cp_pair_verdict *verdict,
                   enum cp_relation relation, enum cp_relation_reason reason)
{
    if (verdict->relation != relation || verdict->reason != reason)
        fail_msg("%s: %s (%s), not %s (%s); balance %.2f tail %.0f run %.0f", what,
                 cp_relation_to_string(verdict->relation),
                 cp_relation_reason_to_string(verdict->reason), cp_relation_to_string(relation),
                 cp_relation_reason_to_string(reason), verdict->balance, verdict->profile.tail_ns,
                 verdict->profile.run_ns);
}

/* One direction of a workload: hand-offs a second, means in us, share followed by a sleep. */
struct way {
    unsigned rate;
    unsigned latency_us;
    double tail_us;
    double run_us;
    unsigned slept_percent;
};

/* A window of 1 s with both directions between tasks 1 and 2 at a level. */
static void feed_ways(struct cp_pairs *pairs, uint64_t end_ns, const struct way ways[2],
                      enum cp_level level)
{
    struct feed feed;

    feed_begin(&feed, end_ns - 1000 * MS, end_ns);
    for (unsigned i = 0; i < 2; i++) {
        const struct way *way = &ways[i];
        struct cp_wake_edge *edge;

        if (way->rate == 0)
            continue;
        edge = feed_edge(&feed, task_id(i == 0 ? 1 : 2), task_id(i == 0 ? 2 : 1), way->rate, level,
                         way->latency_us * US, (uint64_t)(way->tail_us * 1000),
                         (uint64_t)(way->run_us * 1000));
        edge->slept = way->rate * way->slept_percent / 100;
    }
    feed_into(&feed, pairs);
}

static void test_measured_workloads(void **state)
{
    static const struct {
        const char *name;
        struct way ways[2];
        enum cp_relation relation;
        enum cp_relation_reason reason;
        double stacking_gain_us; /* of one hand-off */
    } rows[] = {
        {"perf bench sched pipe, apart",
         {{10000, 46, 18, 22, 99}, {10000, 46, 18, 22, 99}},
         CP_RELATION_SERIAL,
         CP_WHY_STACKING_GAINS,
         46 - 1.2 - 18},
        {"redis -c 1",
         {{8200, 45, 25, 40, 99}, {8200, 45, 25, 40, 99}},
         CP_RELATION_SERIAL,
         CP_WHY_STACKING_GAINS,
         46 - 1.2 - 25},
        {"stress-ng --switch",
         {{11000, 44, 17, 19, 98}, {11000, 44, 17, 19, 98}},
         CP_RELATION_SERIAL,
         CP_WHY_STACKING_GAINS,
         46 - 1.2 - 17},
        {"redis -c 50",
         {{6000, 34, 127, 91, 1}, {0}},
         CP_RELATION_NONE,
         CP_WHY_ONE_WAY,
         46 - 1.2 - 91},
        {"stress-ng --sock",
         {{8700, 34, 88, 62, 7}, {725, 34, 88, 62, 7}},
         CP_RELATION_NONE,
         CP_WHY_ONE_WAY,
         46 - 1.2 - 62},
        {"stress-ng --pipe",
         {{12600, 27, 35, 24, 67}, {9300, 34, 20, 56, 100}},
         CP_RELATION_SERIAL,
         CP_WHY_STACKING_GAINS,
         46 - 1.2 - 28.63},
        {"head | md5sum",
         {{10700, 45, 92, 18, 0}, {0}},
         CP_RELATION_NONE,
         CP_WHY_ONE_WAY,
         46 - 1.2 - 18},
        {"as stress-ng --sock, but answered",
         {{8700, 34, 88, 62, 7}, {7000, 34, 88, 62, 7}},
         CP_RELATION_OVERLAPPING,
         CP_WHY_RUNS_IN_PARALLEL,
         46 - 1.2 - 62},
    };
    struct cp_costs costs = vm_costs();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cp_pairs *pairs = new_pairs();
        struct cp_pair_verdict verdict;

        feed_ways(pairs, 5000 * MS, rows[i].ways, CP_LEVEL_LLC);
        judge(pairs, 1, 2, &costs, &verdict);
        expect(rows[i].name, &verdict, rows[i].relation, rows[i].reason);
        assert_near(verdict.rate_hz, rows[i].ways[0].rate + rows[i].ways[1].rate);
        assert_true(
            fabs(verdict.stacking_gain / verdict.rate_hz / 1000 - rows[i].stacking_gain_us) < 0.05);
        cp_pairs_free(pairs);
    }
}

/*
 * The same workloads on one CPU as they were counted there (wakes by direction over 2 s): apart,
 * then moved by us. What they were apart must still hold, though few answers show.
 */
static void test_stacked_after_apart(void **state)
{
    static const struct {
        const char *name;
        struct way apart[2];
        struct way stacked[2];
        enum cp_relation relation;
        enum cp_relation_reason reason;
    } rows[] = {
        {"perf bench sched pipe",
         {{10000, 46, 18, 22, 99}, {10000, 46, 18, 22, 99}},
         {{153000, 1, 1.7, 3.3, 9}, {192000, 1, 1.7, 3.3, 9}},
         CP_RELATION_SERIAL,
         CP_WHY_STACKING_GAINS},
        {"redis -c 1: 149 277 wakes and 10 250 answers",
         {{8200, 45, 25, 40, 99}, {8200, 45, 25, 40, 99}},
         {{74600, 1, 6, 6, 7}, {5100, 1, 3, 90, 90}},
         CP_RELATION_SERIAL,
         CP_WHY_STACKING_GAINS},
        {"stress-ng --pipe: 603 675 and 26 361",
         {{12600, 27, 35, 24, 67}, {9300, 34, 20, 56, 100}},
         {{301000, 1, 2, 1, 2}, {13000, 1, 2, 60, 99}},
         CP_RELATION_SERIAL,
         CP_WHY_STACKING_GAINS},
        {"redis -c 50",
         {{6000, 34, 127, 91, 1}, {0}},
         {{16800, 1, 30, 25, 5}, {1980, 1, 30, 25, 5}},
         CP_RELATION_NONE,
         CP_WHY_ONE_WAY},
        {"overlapping",
         {{5000, 40, 80, 60, 7}, {4000, 40, 80, 60, 7}},
         {{5000, 1, 80, 60, 7}, {1000, 1, 80, 60, 7}},
         CP_RELATION_OVERLAPPING,
         CP_WHY_RUNS_IN_PARALLEL},
    };
    struct cp_costs costs = vm_costs();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cp_pairs *pairs = new_pairs();
        struct cp_pair_verdict verdict;

        feed_ways(pairs, 5000 * MS, rows[i].apart, CP_LEVEL_LLC);
        /* Placed by us: reset, a window, and many more of them. */
        cp_pairs_reset_pair(pairs, task_id(1), task_id(2));
        for (unsigned k = 0; k < 20; k++) {
            feed_ways(pairs, (7000 + 2000 * k) * MS, rows[i].stacked, CP_LEVEL_CPU);
            judge(pairs, 1, 2, &costs, &verdict);
            expect(rows[i].name, &verdict, rows[i].relation, rows[i].reason);
            assert_near(verdict.stacking_gain, 0);
            assert_near(verdict.rate_hz, rows[i].stacked[0].rate + rows[i].stacked[1].rate);
        }
        /* Moved by the kernel, with windows in between that show both. */
        feed_ways(pairs, 50000 * MS, rows[i].apart, CP_LEVEL_LLC);
        judge(pairs, 1, 2, &costs, &verdict);
        expect(rows[i].name, &verdict, rows[i].relation, rows[i].reason);
        cp_pairs_free(pairs);
    }
}

/* On bare metal a hand-off is cheap, and the tail of a stacked waker, which goes on through its
 * next round, would make every stacked serial pair look overlapping. */
static void test_relation_does_not_depend_on_the_place(void **state)
{
    static const struct way apart[] = {{60000, 4, 0.8, 5, 99}, {60000, 4, 0.8, 3, 99}};
    static const struct way stacked[] = {{75000, 1, 7, 5, 3}, {4000, 1, 1, 60, 90}};
    struct cp_costs costs = metal_costs();
    struct cp_pairs *pairs = new_pairs();
    struct cp_pair_verdict verdict;

    (void)state;
    feed_ways(pairs, 5000 * MS, apart, CP_LEVEL_LLC);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("apart", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
    assert_true(verdict.stacking_gain > 0);
    cp_pairs_reset_pair(pairs, task_id(1), task_id(2));
    for (unsigned i = 0; i < 10; i++) {
        feed_ways(pairs, (7000 + 100000 * i) * MS, stacked, CP_LEVEL_CPU);
        judge(pairs, 1, 2, &costs, &verdict);
        expect("stacked", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
        /* Nothing is gained by leaving either. */
        assert_true(cp_model_gain(&costs, &verdict.profile, CP_LEVEL_LLC) < 0);
        assert_true(cp_model_gain(&costs, &verdict.profile, CP_LEVEL_CORE) < 0);
    }
    cp_pairs_free(pairs);
}

/* The program does something else now: what it was before, apart, does not hold any more. */
static void test_a_changed_program_is_seen(void **state)
{
    static const struct way apart[] = {{10000, 46, 18, 22, 99}, {10000, 46, 18, 22, 99}};
    static const struct way changed[] = {{5000, 1, 120, 90, 7}, {4000, 1, 120, 90, 7}};
    struct cp_costs costs = vm_costs();
    struct cp_pairs *pairs = new_pairs();
    struct cp_pair_verdict verdict;

    (void)state;
    feed_ways(pairs, 5000 * MS, apart, CP_LEVEL_LLC);
    cp_pairs_reset_pair(pairs, task_id(1), task_id(2));
    feed_ways(pairs, 7000 * MS, changed, CP_LEVEL_CPU);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("changed", &verdict, CP_RELATION_OVERLAPPING, CP_WHY_RUNS_IN_PARALLEL);
    assert_true(cp_model_gain(&costs, &verdict.profile, CP_LEVEL_LLC) > 0);
    cp_pairs_free(pairs);
}

/* Stacked by the kernel from its beginning: taken as it shows itself. */
static void test_stacked_and_never_apart(void **state)
{
    static const struct way serial[] = {{150000, 1, 1.7, 3.3, 9}, {150000, 1, 1.7, 3.3, 9}};
    static const struct way overlapping[] = {{5000, 1, 120, 90, 7}, {4000, 1, 120, 90, 7}};
    static const struct way unanswered[] = {{75000, 1, 6, 6, 7}, {5100, 1, 3, 90, 90}};
    struct cp_costs costs = vm_costs();
    const struct way *rows[] = {serial, overlapping, unanswered};
    const enum cp_relation relations[] = {CP_RELATION_SERIAL, CP_RELATION_OVERLAPPING,
                                          CP_RELATION_NONE};
    const enum cp_relation_reason reasons[] = {CP_WHY_STACKING_GAINS, CP_WHY_RUNS_IN_PARALLEL,
                                               CP_WHY_ONE_WAY};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct cp_pairs *pairs = new_pairs();
        struct cp_pair_verdict verdict;

        feed_ways(pairs, 5000 * MS, rows[i], CP_LEVEL_CPU);
        judge(pairs, 1, 2, &costs, &verdict);
        expect("never apart", &verdict, relations[i], reasons[i]);
        assert_near(verdict.stacking_gain, 0);
        assert_int_equal(cp_pairs_find(pairs, task_id(1), task_id(2))->apart.seen_ns, 0);
        cp_pairs_free(pairs);
    }
}

/* Stacking hides answers and makes none: two who answer each other there are mutual, whatever they
 * were apart. */
static void test_mutual_while_stacked(void **state)
{
    static const struct way apart[] = {{8000, 45, 25, 40, 99}, {800, 45, 25, 40, 99}};
    static const struct way stacked[] = {{70000, 1, 3, 6, 99}, {69000, 1, 3, 6, 99}};
    struct cp_costs costs = vm_costs();
    struct cp_pairs *pairs = new_pairs();
    struct cp_pair_verdict verdict;

    (void)state;
    feed_ways(pairs, 5000 * MS, apart, CP_LEVEL_LLC);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("apart", &verdict, CP_RELATION_NONE, CP_WHY_ONE_WAY);
    cp_pairs_reset_pair(pairs, task_id(1), task_id(2));
    feed_ways(pairs, 7000 * MS, stacked, CP_LEVEL_CPU);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("stacked", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
    cp_pairs_free(pairs);
}

/* The kernel had the two on one CPU, then parts them: one window apart is enough, though the means
 * are still those of the far more frequent hand-offs of before. */
static void test_first_window_apart_counts_at_once(void **state)
{
    static const struct way stacked[] = {{75000, 1, 6, 6, 7}, {5100, 1, 3, 90, 90}};
    static const struct way apart[] = {{8200, 45, 25, 40, 99}, {8200, 45, 25, 40, 99}};
    struct cp_costs costs = vm_costs();
    struct cp_pairs *pairs = new_pairs();
    struct cp_pair_verdict verdict;

    (void)state;
    feed_ways(pairs, 5000 * MS, stacked, CP_LEVEL_CPU);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("stacked", &verdict, CP_RELATION_NONE, CP_WHY_ONE_WAY);
    feed_ways(pairs, 6000 * MS, apart, CP_LEVEL_LLC);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("apart", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
    assert_true(verdict.profile.level[CP_LEVEL_CPU] > 0.2);
    assert_true(verdict.stacking_gain > 0);
    cp_pairs_free(pairs);
}

/* 20 senders × 20 receivers, each pair weak, some answers: never a pair to place. */
static void test_hackbench(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    struct cp_costs costs = vm_costs();
    struct cp_policy policy = default_policy();
    const struct cp_pair *const *list;
    struct feed feed;
    size_t n;
    unsigned wide = 0;

    (void)state;
    feed_begin(&feed, 0, 1000 * MS);
    for (pid_t s = 1; s <= 20; s++)
        for (pid_t r = 101; r <= 120; r++)
            feed_edge(&feed, task_id(s), task_id(r), 70 + (uint64_t)((s * r) % 20), CP_LEVEL_LLC,
                      814 * US, 24 * US, 63 * US);
    for (pid_t s = 1; s <= 20; s++)
        for (pid_t r = 101; r <= 105; r++)
            feed_edge(&feed, task_id(r), task_id(s), 20, CP_LEVEL_CPU, 814 * US, 24 * US, 63 * US);
    feed_into(&feed, pairs);
    n = cp_pairs_list(pairs, &list);
    assert_int_equal(n, 400);
    for (size_t i = 0; i < n; i++) {
        struct cp_pair_verdict verdict;

        cp_pair_judge(pairs, list[i], &policy, &costs, &verdict);
        assert_true(verdict.relation == CP_RELATION_WIDE || verdict.relation == CP_RELATION_NONE);
        wide += verdict.relation == CP_RELATION_WIDE;
    }
    assert_true(wide > 300);
    assert_true(cp_pairs_find_task(pairs, task_id(1))->fan_out > 19);
    cp_pairs_free(pairs);
}

/* One hub and n partners, each answering every answer_percent of its wakes. */
static void judge_hub(unsigned n, uint64_t handoffs, unsigned answer_percent,
                      struct cp_pair_verdict *ret)
{
    struct cp_pairs *pairs = new_pairs();
    struct cp_costs costs = vm_costs();
    struct feed feed;

    feed_begin(&feed, 0, 1000 * MS);
    for (unsigned i = 0; i < n; i++) {
        pid_t other = (pid_t)i + 2;

        feed_edge(&feed, task_id(1), task_id(other), handoffs, CP_LEVEL_LLC, 40 * US, 5 * US,
                  5 * US);
        if (answer_percent > 0)
            feed_edge(&feed, task_id(other), task_id(1), handoffs * answer_percent / 100,
                      CP_LEVEL_LLC, 40 * US, 5 * US, 5 * US);
    }
    feed_into(&feed, pairs);
    judge(pairs, 1, 2, &costs, ret);
    cp_pairs_free(pairs);
}

static void test_hubs(void **state)
{
    struct cp_pair_verdict verdict;

    (void)state;
    judge_hub(16, 200, 0, &verdict);
    expect("1:16 without answers", &verdict, CP_RELATION_WIDE, CP_WHY_FAN_OUT);
    judge_hub(16, 200, 40, &verdict);
    expect("1:16, few answers", &verdict, CP_RELATION_WIDE, CP_WHY_FAN_OUT);
    judge_hub(16, 800, 100, &verdict);
    expect("a server with 16 clients", &verdict, CP_RELATION_NONE, CP_WHY_NOT_EXCLUSIVE);
    judge_hub(2, 800, 100, &verdict);
    expect("two partners", &verdict, CP_RELATION_NONE, CP_WHY_NOT_EXCLUSIVE);
    judge_hub(16, 10, 0, &verdict);
    expect("a rare 1:16", &verdict, CP_RELATION_NONE, CP_WHY_BELOW_RATE);
    judge_hub(1, 800, 100, &verdict);
    expect("one partner", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
    judge_hub(1, 240, 100, &verdict);
    expect("below the rate", &verdict, CP_RELATION_NONE, CP_WHY_BELOW_RATE);
    judge_hub(1, 800, 49, &verdict);
    expect("answers below a half", &verdict, CP_RELATION_NONE, CP_WHY_ONE_WAY);
    judge_hub(1, 800, 50, &verdict);
    expect("answers just a half", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
}

/* A logger woken now and then breaks no pair, apart or stacked. */
static void test_a_rare_third_partner(void **state)
{
    struct cp_costs costs = vm_costs();

    (void)state;
    for (unsigned stacked = 0; stacked < 2; stacked++) {
        struct cp_pairs *pairs = new_pairs();
        static const struct way apart[] = {{8200, 45, 25, 40, 99}, {8200, 45, 25, 40, 99}};
        struct cp_pair_verdict verdict;
        struct feed feed;

        feed_ways(pairs, 1000 * MS, apart, CP_LEVEL_LLC);
        cp_pairs_reset_pair(pairs, task_id(1), task_id(2));
        feed_begin(&feed, 1000 * MS, 2000 * MS);
        if (stacked) {
            feed_edge(&feed, task_id(1), task_id(2), 75000, CP_LEVEL_CPU, US, 6 * US, 6 * US);
            feed_edge(&feed, task_id(2), task_id(1), 300, CP_LEVEL_CPU, US, 6 * US, 6 * US);
        } else {
            feed_edge(&feed, task_id(1), task_id(2), 8200, CP_LEVEL_LLC, US, 25 * US, 40 * US);
            feed_edge(&feed, task_id(2), task_id(1), 8200, CP_LEVEL_LLC, US, 25 * US, 40 * US);
        }
        feed_edge(&feed, task_id(2), task_id(9), 250, CP_LEVEL_LLC, US, US, US);
        feed_into(&feed, pairs);
        judge(pairs, 1, 2, &costs, &verdict);
        expect(stacked ? "stacked" : "apart", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
        cp_pairs_free(pairs);
    }
}

static void test_run_time_of_one_cpu(void **state)
{
    static const struct way ways[] = {{10000, 46, 10, 20, 50}, {10000, 46, 10, 20, 50}};
    static const struct way stacked[] = {{12000, 1, 10, 20, 50}, {9000, 1, 10, 20, 50}};
    struct cp_costs costs = vm_costs();
    struct cp_pairs *pairs = new_pairs();
    struct cp_pair_verdict verdict;
    struct feed feed;

    (void)state;
    feed_begin(&feed, 0, 1000 * MS);
    feed_edge(&feed, task_id(1), task_id(2), 10000, CP_LEVEL_LLC, 46 * US, 10 * US, 20 * US);
    feed_edge(&feed, task_id(2), task_id(1), 10000, CP_LEVEL_LLC, 46 * US, 10 * US, 20 * US);
    feed_task(&feed, task_id(1))->run_ns = 700 * MS;
    feed_task(&feed, task_id(2))->run_ns = 500 * MS;
    feed_into(&feed, pairs);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("1.2 CPUs", &verdict, CP_RELATION_OVERLAPPING, CP_WHY_TOO_MUCH_RUN_TIME);
    /* On one CPU they show one CPU of load at most; that does not make them fit. */
    cp_pairs_reset_pair(pairs, task_id(1), task_id(2));
    feed_ways(pairs, 2000 * MS, stacked, CP_LEVEL_CPU);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("1.2 CPUs, stacked", &verdict, CP_RELATION_OVERLAPPING, CP_WHY_TOO_MUCH_RUN_TIME);
    cp_pairs_reset_pair(pairs, task_id(1), task_id(2));
    feed_ways(pairs, 3000 * MS, ways, CP_LEVEL_LLC);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("0.4 CPUs", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
    cp_pairs_free(pairs);
}

static void test_too_few(void **state)
{
    static const struct way ways[] = {{9, 46, 10, 20, 50}, {9, 46, 10, 20, 50}};
    struct cp_costs costs = vm_costs();
    struct cp_policy policy = default_policy();
    struct cp_pairs *pairs = new_pairs();
    struct cp_pair_verdict verdict;
    struct feed feed;

    (void)state;
    policy.min_rate_hz = 1;
    feed_ways(pairs, 1000 * MS, ways, CP_LEVEL_LLC);
    cp_pair_judge(pairs, cp_pairs_find(pairs, task_id(1), task_id(2)), &policy, &costs, &verdict);
    expect("18 hand-offs", &verdict, CP_RELATION_NONE, CP_WHY_TOO_FEW_SAMPLES);

    /* No tail was seen to its end: nothing is known of what would be serialised. */
    feed_begin(&feed, 1000 * MS, 2000 * MS);
    feed_edge(&feed, task_id(3), task_id(4), 900, CP_LEVEL_LLC, US, 0, 20 * US)->n_tail = 0;
    feed_edge(&feed, task_id(4), task_id(3), 900, CP_LEVEL_LLC, US, 0, 20 * US)->n_tail = 0;
    feed_into(&feed, pairs);
    judge(pairs, 3, 4, &costs, &verdict);
    expect("no tail", &verdict, CP_RELATION_NONE, CP_WHY_TOO_FEW_SAMPLES);
    cp_pairs_free(pairs);
}

/* One CPU is compared with the levels that the machine has, wherever the pair is. */
static void test_cheapest_level_apart(void **state)
{
    static const struct way ways[] = {{10000, 4, 2.5, 9, 90}, {10000, 4, 2.5, 9, 90}};
    bool no_smt[CP_LEVEL_MAX] = {[CP_LEVEL_CPU] = true, [CP_LEVEL_LLC] = true};
    bool smt[CP_LEVEL_MAX] = {[CP_LEVEL_CPU] = true, [CP_LEVEL_CORE] = true, [CP_LEVEL_LLC] = true};
    struct cp_costs costs = metal_costs();
    struct cp_pairs *pairs = new_pairs();
    struct cp_pair_verdict verdict;

    (void)state;
    /* cpu 1 + 2.5; core 2 + 1.25; LLC 4. */
    feed_ways(pairs, 1000 * MS, ways, CP_LEVEL_LLC);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("core measured", &verdict, CP_RELATION_OVERLAPPING, CP_WHY_RUNS_IN_PARALLEL);
    cp_pairs_set_levels(pairs, no_smt);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("no SMT", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
    cp_pairs_set_levels(pairs, smt);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("SMT", &verdict, CP_RELATION_OVERLAPPING, CP_WHY_RUNS_IN_PARALLEL);
    assert_true(cp_model_gain(&costs, &verdict.profile, CP_LEVEL_CORE) > verdict.stacking_gain);
    cp_pairs_free(pairs);

    /* No cost is known: one LLC is what every machine has. */
    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        costs.level[l].source = CP_COST_DEFAULT;
    pairs = new_pairs();
    feed_ways(pairs, 1000 * MS, ways, CP_LEVEL_CPU);
    judge(pairs, 1, 2, &costs, &verdict);
    expect("defaults", &verdict, CP_RELATION_SERIAL, CP_WHY_STACKING_GAINS);
    cp_pairs_free(pairs);

    /* Far apart: one LLC beats one CPU, so the relation is not serial though stacking gains. */
    costs = metal_costs();
    pairs = new_pairs();
    {
        static const struct way far[] = {{10000, 9, 6, 9, 90}, {10000, 9, 6, 9, 90}};

        feed_ways(pairs, 1000 * MS, far, CP_LEVEL_NODE);
    }
    judge(pairs, 1, 2, &costs, &verdict);
    expect("far", &verdict, CP_RELATION_OVERLAPPING, CP_WHY_RUNS_IN_PARALLEL);
    assert_true(verdict.stacking_gain > 0);
    assert_true(cp_model_gain(&costs, &verdict.profile, CP_LEVEL_LLC) > verdict.stacking_gain);
    cp_pairs_free(pairs);
}

static void test_words(void **state)
{
    (void)state;
    for (int i = 0; i < CP_RELATION_MAX; i++)
        assert_non_null(cp_relation_to_string((enum cp_relation)i));
    for (int i = 0; i < CP_WHY_MAX; i++)
        assert_non_null(cp_relation_reason_to_string((enum cp_relation_reason)i));
    assert_null(cp_relation_to_string(CP_RELATION_MAX));
    assert_null(cp_relation_reason_to_string(CP_WHY_MAX));
    assert_string_equal(cp_relation_to_string(CP_RELATION_SERIAL), "serial");
    assert_string_equal(cp_relation_reason_to_string(CP_WHY_STACKING_GAINS), "stacking-gains");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_workloads),
        cmocka_unit_test(test_stacked_after_apart),
        cmocka_unit_test(test_relation_does_not_depend_on_the_place),
        cmocka_unit_test(test_a_changed_program_is_seen),
        cmocka_unit_test(test_stacked_and_never_apart),
        cmocka_unit_test(test_mutual_while_stacked),
        cmocka_unit_test(test_first_window_apart_counts_at_once),
        cmocka_unit_test(test_hackbench),
        cmocka_unit_test(test_hubs),
        cmocka_unit_test(test_a_rare_third_partner),
        cmocka_unit_test(test_run_time_of_one_cpu),
        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_cheapest_level_apart),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
