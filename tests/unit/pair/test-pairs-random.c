/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Generated windows with fixed seeds: whatever is fed, the table keeps its promises. */
#include "unit/pair/feed.h"

#include <math.h>

#define N_ROUNDS 120u

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static uint64_t below(uint64_t *seed, uint64_t limit)
{
    return next_random(seed) % limit;
}

/* A task out of few, whose TIDs are used again by others. */
static struct cp_task_id random_task(uint64_t *seed)
{
    return (struct cp_task_id){.tid = (pid_t)below(seed, 60), .start_ticks = below(seed, 2)};
}

static uint64_t random_sum(uint64_t *seed)
{
    return below(seed, 4) == 0 ? 0 : below(seed, UINT64_C(1) << below(seed, 50));
}

static void random_edge(struct feed *feed, uint64_t *seed)
{
    struct cp_task_id waker = random_task(seed);
    struct cp_task_id wakee = random_task(seed);
    struct cp_wake_edge *edge;

    for (size_t i = 0; i < feed->sample.n_edges; i++)
        if (cp_task_id_equal(feed->edges[i].waker, waker) &&
            cp_task_id_equal(feed->edges[i].wakee, wakee))
            return;
    edge = feed_edge(feed, waker, wakee, below(seed, 3000), CP_LEVEL_CPU, 1, 1, 1);
    edge->slept = random_sum(seed);
    edge->tail_ns = random_sum(seed);
    edge->n_tail = below(seed, 100);
    edge->latency_ns = random_sum(seed);
    edge->n_latency = below(seed, 100);
    edge->run_ns = random_sum(seed);
    edge->n_run = below(seed, 100);
    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        edge->level[l] = below(seed, 2) ? below(seed, 1000) : 0;
}

static void random_window(struct feed *feed, uint64_t *seed, uint64_t *now_ns)
{
    uint64_t begin_ns = *now_ns + (below(seed, 8) == 0 ? below(seed, 200000) * MS : 0);
    uint64_t n = below(seed, 120);

    *now_ns = begin_ns + below(seed, 300) * MS;
    feed_begin(feed, begin_ns, *now_ns);
    for (uint64_t i = 0; i < n; i++)
        random_edge(feed, seed);
    for (size_t i = 0; i < feed->sample.n_tasks; i++) {
        feed->tasks[i].run_ns = random_sum(seed);
        feed->tasks[i].wait_ns = random_sum(seed);
        feed->tasks[i].partner_ns = random_sum(seed);
    }
}

static void check_direction(const struct cp_direction *direction)
{
    const double values[] = {direction->rate_hz, direction->latency_ns, direction->tail_ns,
                             direction->run_ns, direction->slept_share};
    double shares = 0.0;

    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_true(isfinite(values[i]) && values[i] >= 0.0);
    assert_true(direction->slept_share <= 1.0 + 1e-5);
    for (unsigned l = 0; l < CP_LEVEL_MAX; l++) {
        assert_true(direction->level[l] >= 0.0 && direction->level[l] <= 1.0 + 1e-5);
        shares += direction->level[l];
    }
    assert_true(shares == 0.0 || fabs(shares - 1.0) < 1e-5);
}

static void check_task(const struct cp_pairs *pairs, struct cp_task_id id)
{
    const struct cp_pair_task *task = cp_pairs_find_task(pairs, id);
    const struct cp_pair *strongest = cp_pairs_strongest(pairs, id);

    assert_non_null(task);
    assert_true(cp_task_id_equal(task->id, id));
    assert_true(isfinite(task->fan_out) && (task->fan_out == 0.0 || task->fan_out > 1.0 - 1e-9));
    assert_true(isfinite(task->load) && task->load >= 0.0);
    assert_true(task->unanswered >= 0.0 && task->unanswered <= 1.0 + 1e-9);
    assert_true(task->outside_share >= 0.0 && task->outside_share <= task->wait_share + 1e-9);
    assert_true(task->wait_share <= 1.0);
    assert_non_null(strongest);
    assert_true(cp_task_id_equal(strongest->a, id) || cp_task_id_equal(strongest->b, id));
}

static double total_hz(const struct cp_pair *pair)
{
    return pair->ab.rate_hz + pair->ba.rate_hz;
}

static void check_verdict(const struct cp_pairs *pairs, const struct cp_pair *pair)
{
    struct cp_policy policy = {.min_rate_hz = 500, .margin = 0.05};
    struct cp_costs costs = {0};
    struct cp_pair_verdict verdict;

    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        costs.level[l].ns = 1000 * (l + 1);
    cp_pair_judge(pairs, pair, &policy, &costs, &verdict);
    assert_true(verdict.relation >= 0 && verdict.relation < CP_RELATION_MAX);
    assert_true(verdict.reason >= 0 && verdict.reason < CP_WHY_MAX);
    assert_true(verdict.balance >= 0.0 && verdict.balance <= 1.0);
    assert_true(isfinite(verdict.stacking_gain));
    if (verdict.relation == CP_RELATION_SERIAL || verdict.relation == CP_RELATION_OVERLAPPING) {
        assert_true(verdict.rate_hz >= 500);
        assert_true(verdict.balance >= 0.5);
        assert_true(cp_pairs_find_task(pairs, pair->a)->fan_out < 1.5);
        assert_true(cp_pairs_find_task(pairs, pair->b)->fan_out < 1.5);
    }
}

static void check_table(struct cp_pairs *pairs, const struct cp_pairs_config *config)
{
    const struct cp_pair *const *list;
    size_t n = cp_pairs_list(pairs, &list);

    assert_true(n <= config->max_pairs);
    assert_int_equal(n, cp_pairs_count(pairs));
    for (size_t i = 0; i < n; i++) {
        assert_true(cp_task_id_compare(list[i]->a, list[i]->b) < 0);
        assert_true(list[i]->a.tid != 0);
        assert_ptr_equal(cp_pairs_find(pairs, list[i]->a, list[i]->b), list[i]);
        assert_ptr_equal(cp_pairs_find(pairs, list[i]->b, list[i]->a), list[i]);
        assert_true(i == 0 || total_hz(list[i - 1]) >= total_hz(list[i]));
        assert_true(total_hz(cp_pairs_strongest(pairs, list[i]->a)) >= total_hz(list[i]));
        assert_true(list[i]->handoffs >= 0.0);
        check_direction(&list[i]->ab);
        check_direction(&list[i]->ba);
        check_task(pairs, list[i]->a);
        check_task(pairs, list[i]->b);
        check_verdict(pairs, list[i]);
    }
}

/* Feeds, resets and forgets at random; checks after each step if asked to. */
static struct cp_pairs *play(uint64_t seed, const struct cp_pairs_config *config, bool check)
{
    static struct feed feed;
    struct cp_pairs *pairs = cp_pairs_new(config);
    uint64_t now_ns = 1000 * MS;

    assert_non_null(pairs);
    for (unsigned i = 0; i < N_ROUNDS; i++) {
        uint64_t what = below(&seed, 10);

        if (what == 0) {
            cp_pairs_forget_task(pairs, random_task(&seed));
        } else if (what == 1) {
            struct cp_task_id a = random_task(&seed);

            cp_pairs_reset_pair(pairs, a, random_task(&seed));
        } else {
            random_window(&feed, &seed, &now_ns);
            feed_into(&feed, pairs);
        }
        if (check)
            check_table(pairs, config);
    }
    return pairs;
}

static const struct cp_pairs_config configs[] = {
    {.max_pairs = 8192, .max_tasks = 8192, .half_life_ns = 2000 * MS, .forget_ns = 60000 * MS},
    {.max_pairs = 40, .max_tasks = 1000, .half_life_ns = 500 * MS, .forget_ns = 1000 * MS},
    {.max_pairs = 1000, .max_tasks = 17, .half_life_ns = 0, .forget_ns = 0},
    {.max_pairs = 1, .max_tasks = 2, .half_life_ns = 60000 * MS, .forget_ns = 60000 * MS},
    {.max_pairs = 0, .max_tasks = 0, .half_life_ns = 2000 * MS, .forget_ns = 60000 * MS},
};

static void test_invariants(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(configs) / sizeof(configs[0]); c++)
        for (uint64_t seed = 1; seed <= 8; seed++)
            cp_pairs_free(play(seed * UINT64_C(0x9e3779b97f4a7c15), &configs[c], true));
}

static void test_same_feed_same_table(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(configs) / sizeof(configs[0]); c++) {
        for (uint64_t seed = 100; seed < 104; seed++) {
            struct cp_pairs *one = play(seed, &configs[c], true);
            struct cp_pairs *two = play(seed, &configs[c], false);
            const struct cp_pair *const *of_one;
            const struct cp_pair *const *of_two;
            size_t n = cp_pairs_list(one, &of_one);

            assert_int_equal(cp_pairs_list(two, &of_two), n);
            assert_int_equal(cp_pairs_n_evicted(one), cp_pairs_n_evicted(two));
            for (size_t i = 0; i < n; i++) {
                assert_true(cp_task_id_equal(of_one[i]->a, of_two[i]->a));
                assert_true(cp_task_id_equal(of_one[i]->b, of_two[i]->b));
                assert_memory_equal(&of_one[i]->ab, &of_two[i]->ab, sizeof(of_one[i]->ab));
                assert_memory_equal(&of_one[i]->ba, &of_two[i]->ba, sizeof(of_one[i]->ba));
                assert_true(of_one[i]->handoffs == of_two[i]->handoffs);
            }
            cp_pairs_free(one);
            cp_pairs_free(two);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invariants),
        cmocka_unit_test(test_same_feed_same_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
