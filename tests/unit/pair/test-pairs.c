/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of pairs: rates and means over windows, decay, bounds, order, identity. */
#include "unit/pair/feed.h"

#include <math.h>

static const enum cp_level LLC = CP_LEVEL_LLC;

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-4 * (1.0 + fabs(expected)))
        fail_msg("%f is not %f", value, expected);
}

/* A window of 100 ms ending at end_ns with n hand-offs each way. */
static void feed_pair(struct cp_pairs *pairs, pid_t a, pid_t b, uint64_t end_ns, uint64_t n,
                      uint64_t latency_ns)
{
    struct feed feed;

    feed_begin(&feed, end_ns - 100 * MS, end_ns);
    if (n > 0) {
        feed_edge(&feed, task_id(a), task_id(b), n, LLC, latency_ns, 18 * US, 22 * US);
        feed_edge(&feed, task_id(b), task_id(a), n, LLC, latency_ns, 18 * US, 22 * US);
    }
    feed_into(&feed, pairs);
}

static void test_first_window_sets(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    const struct cp_pair *pair;
    const struct cp_pair_task *task;

    (void)state;
    feed_pair(pairs, 7, 3, 1000 * MS, 1000, 46 * US);
    pair = cp_pairs_find(pairs, task_id(7), task_id(3));
    assert_non_null(pair);
    assert_ptr_equal(pair, cp_pairs_find(pairs, task_id(3), task_id(7)));
    assert_int_equal(pair->a.tid, 3);
    assert_int_equal(pair->b.tid, 7);
    assert_near(pair->ab.rate_hz, 10000);
    assert_near(pair->ba.rate_hz, 10000);
    assert_near(pair->ab.latency_ns, 46000);
    assert_near(pair->ab.tail_ns, 18000);
    assert_near(pair->ab.run_ns, 22000);
    assert_near(pair->ab.slept_share, 1);
    assert_near(pair->ab.level[CP_LEVEL_LLC], 1);
    assert_near(pair->handoffs, 2000);
    assert_int_equal(pair->n_windows, 1);
    assert_int_equal(pair->first_seen_ns, 900 * MS);
    assert_int_equal(pair->last_seen_ns, 1000 * MS);

    task = cp_pairs_find_task(pairs, task_id(7));
    assert_non_null(task);
    assert_string_equal(task->comm, "task-7");
    assert_int_equal(task->uid, 1000);
    assert_near(task->load, 0.22);
    assert_near(task->fan_out, 1);
    assert_near(task->wakes_hz, 10000);
    assert_null(cp_pairs_find(pairs, task_id(7), task_id(4)));
    assert_null(cp_pairs_find_task(pairs, task_id(4)));
    assert_null(cp_pairs_strongest(pairs, task_id(4)));
    cp_pairs_free(pairs);
}

static void test_directions_are_told_apart(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    const struct cp_pair *pair;
    struct feed feed;

    (void)state;
    feed_begin(&feed, 0, 1000 * MS);
    feed_edge(&feed, task_id(9), task_id(2), 600, LLC, 10 * US, 1 * US, 2 * US);
    feed_edge(&feed, task_id(2), task_id(9), 300, CP_LEVEL_CPU, 20 * US, 3 * US, 4 * US)->slept = 3;
    feed_into(&feed, pairs);
    pair = cp_pairs_find(pairs, task_id(2), task_id(9));
    assert_near(pair->ab.rate_hz, 300);
    assert_near(pair->ab.run_ns, 4000);
    assert_near(pair->ab.slept_share, 0.01);
    assert_near(pair->ab.level[CP_LEVEL_CPU], 1);
    assert_near(pair->ba.rate_hz, 600);
    assert_near(pair->ba.run_ns, 2000);
    assert_near(pair->ba.level[CP_LEVEL_LLC], 1);
    cp_pairs_free(pairs);
}

/* Windows weigh by what they hold; half of the weight is gone after a half-life (2 s). */
static void test_means_and_decay(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    const struct cp_pair *pair;

    (void)state;
    feed_pair(pairs, 1, 2, 1000 * MS, 1000, 40 * US);
    feed_pair(pairs, 1, 2, 3000 * MS, 10, 100 * US);
    pair = cp_pairs_find(pairs, task_id(1), task_id(2));
    assert_near(pair->ab.latency_ns, (500 * 40000.0 + 10 * 100000.0) / 510);
    assert_near(pair->ab.rate_hz, 510 / 0.15);
    assert_near(pair->handoffs, 1020);
    assert_int_equal(pair->n_windows, 2);

    /* Not in this window: the rate falls, the means stay. */
    feed_pair(pairs, 3, 4, 3100 * MS, 10, 100 * US);
    pair = cp_pairs_find(pairs, task_id(1), task_id(2));
    assert_true(pair->ab.rate_hz < 510 / 0.24);
    assert_near(pair->ab.latency_ns, (500 * 40000.0 + 10 * 100000.0) / 510);
    assert_int_equal(pair->n_windows, 2);

    /* After a long pause the newest window stands alone. */
    feed_pair(pairs, 1, 2, 60000 * MS, 50, 7 * US);
    pair = cp_pairs_find(pairs, task_id(1), task_id(2));
    assert_near(pair->ab.rate_hz, 500);
    assert_near(pair->ab.latency_ns, 7000);
    assert_near(pair->handoffs, 100);
    cp_pairs_free(pairs);
}

/* Every mean fades by its own number of samples. */
static void test_each_mean_decays(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    const struct cp_pair *pair;
    struct feed feed;

    (void)state;
    feed_begin(&feed, 0, 1000 * MS);
    feed_edge(&feed, task_id(1), task_id(2), 400, LLC, 10 * US, 20 * US, 30 * US);
    feed_into(&feed, pairs);
    feed_begin(&feed, 4000 * MS, 5000 * MS);
    feed_edge(&feed, task_id(1), task_id(2), 100, CP_LEVEL_CPU, 40 * US, 50 * US, 60 * US)->slept =
        0;
    feed_into(&feed, pairs);
    /* Two half-lives: 100 of either kind. */
    pair = cp_pairs_find(pairs, task_id(1), task_id(2));
    assert_near(pair->ab.latency_ns, 25000);
    assert_near(pair->ab.tail_ns, 35000);
    assert_near(pair->ab.run_ns, 45000);
    assert_near(pair->ab.slept_share, 0.5);
    assert_near(pair->ab.level[CP_LEVEL_LLC], 0.5);
    assert_near(pair->ab.level[CP_LEVEL_CPU], 0.5);
    assert_near(pair->ab.rate_hz, 200 / 1.25);
    assert_near(cp_pairs_find_task(pairs, task_id(2))->load, (0.012 / 4 + 0.006) / 1.25);
    cp_pairs_free(pairs);
}

static void test_unseen_fades_and_is_forgotten(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    const struct cp_pair *pair;

    (void)state;
    feed_pair(pairs, 1, 2, 1000 * MS, 1000, 40 * US);
    feed_pair(pairs, 1, 2, 50000 * MS, 0, 0);
    pair = cp_pairs_find(pairs, task_id(1), task_id(2));
    assert_non_null(pair);
    assert_true(pair->ab.rate_hz < 1);
    assert_true(pair->ab.latency_ns == 0 || pair->handoffs > 0);
    feed_pair(pairs, 1, 2, 61001 * MS, 0, 0);
    assert_null(cp_pairs_find(pairs, task_id(1), task_id(2)));
    assert_null(cp_pairs_find_task(pairs, task_id(1)));
    assert_int_equal(cp_pairs_count(pairs), 0);
    assert_int_equal(cp_pairs_n_evicted(pairs), 0);
    cp_pairs_free(pairs);
}

/* Settled machines are looked at every two minutes: one quiet window must not lose a pair. */
static void test_one_missed_window_forgets_nothing(void **state)
{
    struct cp_pairs *pairs = new_pairs();

    (void)state;
    feed_pair(pairs, 1, 2, 1000 * MS, 1000, 40 * US);
    feed_pair(pairs, 1, 2, 121000 * MS, 0, 0);
    assert_non_null(cp_pairs_find(pairs, task_id(1), task_id(2)));
    feed_pair(pairs, 1, 2, 241000 * MS, 0, 0);
    assert_null(cp_pairs_find(pairs, task_id(1), task_id(2)));
    cp_pairs_free(pairs);
}

static void test_reset_starts_anew(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    const struct cp_pair *pair;

    (void)state;
    feed_pair(pairs, 1, 2, 1000 * MS, 1000, 40 * US);
    cp_pairs_reset_pair(pairs, task_id(2), task_id(1));
    pair = cp_pairs_find(pairs, task_id(1), task_id(2));
    assert_non_null(pair);
    assert_near(pair->ab.rate_hz, 0);
    assert_near(pair->handoffs, 0);
    assert_int_equal(pair->n_windows, 0);
    assert_int_equal(cp_pairs_find_task(pairs, task_id(1))->n_windows, 0);
    assert_near(cp_pairs_find_task(pairs, task_id(1))->load, 0);
    /* What it was apart is remembered. */
    assert_int_equal(pair->apart.seen_ns, 1000 * MS);
    assert_near((double)pair->apart.tail_ns[0], 18000);

    feed_pair(pairs, 1, 2, 1200 * MS, 300, 5 * US);
    pair = cp_pairs_find(pairs, task_id(1), task_id(2));
    assert_near(pair->ab.rate_hz, 3000);
    assert_near(pair->ab.latency_ns, 5000);
    assert_int_equal(pair->first_seen_ns, 900 * MS);
    cp_pairs_reset_pair(pairs, task_id(8), task_id(9));
    assert_int_equal(cp_pairs_count(pairs), 1);
    cp_pairs_free(pairs);
}

static void test_order_and_strongest(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    const struct cp_pair *const *list;
    struct feed feed;

    (void)state;
    assert_int_equal(cp_pairs_list(pairs, &list), 0);
    feed_begin(&feed, 0, 1000 * MS);
    feed_edge(&feed, task_id(5), task_id(6), 100, LLC, 1, 1, 1);
    feed_edge(&feed, task_id(1), task_id(6), 100, LLC, 1, 1, 1);
    feed_edge(&feed, task_id(1), task_id(2), 70, LLC, 1, 1, 1);
    feed_edge(&feed, task_id(2), task_id(1), 80, LLC, 1, 1, 1);
    feed_edge(&feed, task_id(1), task_id(5), 100, LLC, 1, 1, 1);
    feed_into(&feed, pairs);
    assert_int_equal(cp_pairs_list(pairs, &list), 4);
    assert_int_equal(list[0]->b.tid, 2);
    assert_int_equal(list[1]->b.tid, 5);
    assert_int_equal(list[2]->a.tid, 1);
    assert_int_equal(list[2]->b.tid, 6);
    assert_int_equal(list[3]->a.tid, 5);
    assert_ptr_equal(cp_pairs_strongest(pairs, task_id(1)), list[0]);
    assert_ptr_equal(cp_pairs_strongest(pairs, task_id(5)), list[1]);
    assert_ptr_equal(cp_pairs_strongest(pairs, task_id(6)), list[2]);
    cp_pairs_free(pairs);
}

static void test_forget_task(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    struct feed feed;

    (void)state;
    feed_begin(&feed, 0, 1000 * MS);
    feed_edge(&feed, task_id(1), task_id(2), 1000, LLC, 1, 1, 1);
    feed_edge(&feed, task_id(1), task_id(3), 1000, LLC, 1, 1, 1);
    feed_edge(&feed, task_id(3), task_id(4), 10, LLC, 1, 1, 1);
    feed_into(&feed, pairs);
    assert_near(cp_pairs_find_task(pairs, task_id(1))->fan_out, 2);
    cp_pairs_forget_task(pairs, task_id(2));
    cp_pairs_forget_task(pairs, task_id(77));
    assert_int_equal(cp_pairs_count(pairs), 2);
    assert_null(cp_pairs_find(pairs, task_id(1), task_id(2)));
    assert_null(cp_pairs_find_task(pairs, task_id(2)));
    assert_non_null(cp_pairs_find(pairs, task_id(3), task_id(4)));
    assert_near(cp_pairs_find_task(pairs, task_id(1))->fan_out, 1);
    assert_int_equal(cp_pairs_strongest(pairs, task_id(1))->b.tid, 3);
    cp_pairs_free(pairs);
}

static void test_a_tid_used_again_is_another_task(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    struct cp_task_id former = {.tid = 5, .start_ticks = 100};
    struct cp_task_id later = {.tid = 5, .start_ticks = 900};
    struct feed feed;

    (void)state;
    feed_begin(&feed, 0, 1000 * MS);
    feed_edge(&feed, former, task_id(6), 1000, LLC, 1, 1, 1);
    feed_into(&feed, pairs);
    feed_begin(&feed, 1000 * MS, 2000 * MS);
    feed_edge(&feed, later, task_id(6), 10, LLC, 1, 1, 1);
    feed_into(&feed, pairs);
    assert_int_equal(cp_pairs_count(pairs), 2);
    assert_near(cp_pairs_find(pairs, later, task_id(6))->ab.rate_hz, 10);
    assert_true(cp_pairs_find(pairs, former, task_id(6))->ab.rate_hz > 300);
    cp_pairs_forget_task(pairs, former);
    assert_non_null(cp_pairs_find(pairs, later, task_id(6)));
    assert_null(cp_pairs_find(pairs, former, task_id(6)));
    cp_pairs_free(pairs);
}

static void test_what_does_not_count(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    struct feed feed;

    (void)state;
    /* Idle tasks, oneself, nothing, and an edge whose task the window does not describe. */
    feed_begin(&feed, 0, 1000 * MS);
    feed_edge(&feed, (struct cp_task_id){0}, task_id(1), 500, LLC, 1, 1, 1);
    feed_edge(&feed, task_id(2), task_id(2), 500, LLC, 1, 1, 1);
    feed_edge(&feed, task_id(2), task_id(3), 0, LLC, 1, 1, 1);
    feed_into(&feed, pairs);
    assert_int_equal(cp_pairs_count(pairs), 0);
    assert_null(cp_pairs_find_task(pairs, (struct cp_task_id){0}));
    feed_begin(&feed, 1000 * MS, 2000 * MS);
    feed_edge(&feed, task_id(8), task_id(9), 5, LLC, 1, 1, 1);
    feed.sample.n_tasks = 1;
    feed_into(&feed, pairs);
    assert_int_equal(cp_pairs_count(pairs), 0);
    /* A window without length. */
    feed_begin(&feed, 2000 * MS, 2000 * MS);
    feed_edge(&feed, task_id(1), task_id(2), 5, LLC, 1, 1, 1);
    feed_into(&feed, pairs);
    assert_int_equal(cp_pairs_count(pairs), 0);
    cp_pairs_free(pairs);
}

static void test_waiting(void **state)
{
    struct cp_pairs *pairs = new_pairs();
    struct feed feed;
    struct cp_wake_task *task;

    (void)state;
    feed_begin(&feed, 0, 1000 * MS);
    feed_edge(&feed, task_id(1), task_id(2), 100, LLC, 1, 1, 1);
    task = feed_task(&feed, task_id(1));
    task->run_ns = 300 * MS;
    task->wait_ns = 200 * MS;
    task->partner_ns = 150 * MS;
    task = feed_task(&feed, task_id(2));
    task->run_ns = 0;
    task->wait_ns = 100 * MS;
    task->partner_ns = 120 * MS;
    feed_into(&feed, pairs);
    assert_near(cp_pairs_find_task(pairs, task_id(1))->load, 0.3);
    assert_near(cp_pairs_find_task(pairs, task_id(1))->wait_share, 0.4);
    assert_near(cp_pairs_find_task(pairs, task_id(1))->outside_share, 0.1);
    assert_near(cp_pairs_find_task(pairs, task_id(2))->wait_share, 1);
    assert_near(cp_pairs_find_task(pairs, task_id(2))->outside_share, 0);
    cp_pairs_free(pairs);
}

static void test_fan_out_is_inverse_simpson(void **state)
{
    static const struct {
        unsigned n;
        uint64_t handoffs[8];
        double fan_out;
    } rows[] = {
        {1, {500}, 1.0},      {2, {500, 500}, 2.0},           {2, {1000, 50}, 1.0998},
        {2, {900, 300}, 1.6}, {4, {100, 100, 100, 100}, 4.0}, {3, {10000, 20, 30}, 1.01},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cp_pairs *pairs = new_pairs();
        struct feed feed;
        double fan_out;

        feed_begin(&feed, 0, 1000 * MS);
        for (unsigned k = 0; k < rows[i].n; k++)
            feed_edge(&feed, task_id(1), task_id((pid_t)k + 2), rows[i].handoffs[k], LLC, 1, 1, 1);
        feed_into(&feed, pairs);
        fan_out = cp_pairs_find_task(pairs, task_id(1))->fan_out;
        if (fabs(fan_out - rows[i].fan_out) > 0.001)
            fail_msg("row %zu: %f is not %f", i, fan_out, rows[i].fan_out);
        assert_true(cp_pairs_find_task(pairs, task_id(2))->fan_out == 0);
        assert_near(cp_pairs_find_task(pairs, task_id(1))->unanswered, 1);
        cp_pairs_free(pairs);
    }
}

static void test_bounds_evict_the_weakest(void **state)
{
    struct cp_pairs_config config;
    struct cp_pairs *pairs;
    const struct cp_pair *const *list;
    struct feed feed;

    (void)state;
    cp_pairs_config_init_default(&config);
    config.max_pairs = 10;
    config.max_tasks = 15;
    pairs = cp_pairs_new(&config);
    feed_begin(&feed, 0, 1000 * MS);
    for (pid_t i = 0; i < 30; i++)
        feed_edge(&feed, task_id(2 * i + 1), task_id(2 * i + 2), 100 + (uint64_t)i, LLC, 1, 1, 1);
    feed_into(&feed, pairs);
    /* 20 pairs had no room; of the 60 tasks 15 may stay, which leaves 7 whole pairs. */
    assert_int_equal(cp_pairs_list(pairs, &list), 7);
    assert_int_equal(cp_pairs_n_evicted(pairs), 20 + 45 + 3);
    for (pid_t i = 0; i < 7; i++)
        assert_int_equal(list[i]->a.tid, 2 * (29 - i) + 1);
    assert_non_null(cp_pairs_find_task(pairs, task_id(59)));
    assert_null(cp_pairs_find_task(pairs, task_id(1)));
    cp_pairs_free(pairs);
    assert_null(cp_pairs_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_window_sets),
        cmocka_unit_test(test_directions_are_told_apart),
        cmocka_unit_test(test_means_and_decay),
        cmocka_unit_test(test_each_mean_decays),
        cmocka_unit_test(test_unseen_fades_and_is_forgotten),
        cmocka_unit_test(test_one_missed_window_forgets_nothing),
        cmocka_unit_test(test_reset_starts_anew),
        cmocka_unit_test(test_order_and_strongest),
        cmocka_unit_test(test_forget_task),
        cmocka_unit_test(test_a_tid_used_again_is_another_task),
        cmocka_unit_test(test_what_does_not_count),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_fan_out_is_inverse_simpson),
        cmocka_unit_test(test_bounds_evict_the_weakest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
