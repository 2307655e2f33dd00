/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ledger: order and bounds, states, back-offs and vetoes, what plan gets from it. */
#include "ledger/ledger.h"

#include "unit/pair/feed.h"

#include <errno.h>

#define SETTLE (10000 * MS)
#define HOUR UINT64_C(3600000000000)

static struct cp_ledger *new_ledger(size_t max)
{
    struct cp_ledger *ledger = cp_ledger_new(max, SETTLE);

    assert_non_null(ledger);
    return ledger;
}

/* A decision about tasks a and b with CPU a as its target. */
static struct cp_decision *add(struct cp_ledger *ledger, uint64_t id, pid_t a, pid_t b,
                               enum cp_decision_state state)
{
    struct cp_decision decision = {
        .id = id,
        .state = state,
        .tasks = {task_id(a), task_id(b)},
        .level = CP_LEVEL_CPU,
        .load = 0.4,
        .applied_ns = state == CP_DECISION_PROPOSED ? 0 : id * 1000 * MS,
    };
    struct cp_decision *added;

    assert_int_equal(cp_cpumask_set(&decision.target, (struct cp_cpu){(unsigned)a}), 0);
    added = cp_ledger_add(ledger, &decision);
    if (added) {
        assert_null(decision.target.words);
        assert_true(cp_cpumask_test(&added->target, (struct cp_cpu){(unsigned)a}));
    } else {
        cp_cpumask_done(&decision.target);
    }
    return added;
}

static void test_find_and_list(void **state)
{
    struct cp_ledger *ledger = new_ledger(100);
    struct cp_decision *list[10];

    (void)state;
    assert_null(cp_ledger_find(ledger, 1));
    assert_int_equal(cp_ledger_list(ledger, 0, 10, list), 0);
    for (uint64_t id = 5; id <= 50; id += 5)
        assert_non_null(add(ledger, id, 1, 2, CP_DECISION_FAILED));
    assert_int_equal(cp_ledger_find(ledger, 25)->id, 25);
    assert_null(cp_ledger_find(ledger, 24));
    assert_null(cp_ledger_find(ledger, 0));
    assert_null(cp_ledger_find(ledger, 51));
    assert_int_equal(cp_ledger_list(ledger, 0, 10, list), 10);
    assert_int_equal(list[0]->id, 5);
    assert_int_equal(list[9]->id, 50);
    assert_int_equal(cp_ledger_list(ledger, 30, 3, list), 3);
    assert_int_equal(list[0]->id, 35);
    assert_int_equal(list[2]->id, 45);
    assert_int_equal(cp_ledger_list(ledger, 49, 10, list), 1);
    assert_int_equal(cp_ledger_list(ledger, 50, 10, list), 0);
    assert_int_equal(cp_ledger_list(ledger, UINT64_MAX, 10, list), 0);
    /* An id comes once; one out of order still finds its place. */
    assert_null(add(ledger, 25, 1, 2, CP_DECISION_APPLIED));
    assert_non_null(add(ledger, 27, 1, 2, CP_DECISION_APPLIED));
    assert_int_equal(cp_ledger_list(ledger, 25, 2, list), 2);
    assert_int_equal(list[0]->id, 27);
    assert_int_equal(cp_ledger_count(ledger, CP_DECISION_FAILED), 10);
    assert_int_equal(cp_ledger_count(ledger, CP_DECISION_APPLIED), 1);
    assert_null(add(ledger, 99, 1, 2, CP_DECISION_STATE_MAX));
    cp_ledger_free(ledger);
    assert_null(cp_ledger_free(NULL));
}

static void test_find_task_prefers_standing(void **state)
{
    struct cp_ledger *ledger = new_ledger(100);

    (void)state;
    add(ledger, 1, 1, 2, CP_DECISION_UNDONE);
    add(ledger, 2, 3, 1, CP_DECISION_KEPT);
    add(ledger, 3, 1, 2, CP_DECISION_FAILED);
    add(ledger, 4, 2, 5, CP_DECISION_PROPOSED);
    assert_int_equal(cp_ledger_find_task(ledger, task_id(1))->id, 2);
    assert_int_equal(cp_ledger_find_task(ledger, task_id(2))->id, 4);
    assert_int_equal(cp_ledger_find_task(ledger, task_id(3))->id, 2);
    assert_null(cp_ledger_find_task(ledger, task_id(4)));
    assert_null(cp_ledger_find_task(ledger, (struct cp_task_id){.tid = 1, .start_ticks = 7}));
    cp_ledger_free(ledger);
}

static void test_bounds_keep_what_stands(void **state)
{
    struct cp_ledger *ledger = new_ledger(3);

    (void)state;
    add(ledger, 1, 1, 2, CP_DECISION_KEPT);
    add(ledger, 2, 3, 4, CP_DECISION_UNDONE);
    add(ledger, 3, 5, 6, CP_DECISION_PROPOSED);
    assert_true(cp_ledger_has_room(ledger));
    assert_non_null(add(ledger, 4, 7, 8, CP_DECISION_APPLIED));
    assert_null(cp_ledger_find(ledger, 2));
    assert_non_null(add(ledger, 5, 9, 10, CP_DECISION_APPLIED));
    assert_null(cp_ledger_find(ledger, 3));
    assert_non_null(cp_ledger_find(ledger, 1));
    assert_false(cp_ledger_has_room(ledger));
    assert_null(add(ledger, 6, 11, 12, CP_DECISION_APPLIED));
    assert_true(
        cp_ledger_set_state(ledger, cp_ledger_find(ledger, 4), CP_DECISION_RESTORED, 1, "quiet"));
    assert_true(cp_ledger_has_room(ledger));
    assert_non_null(add(ledger, 7, 11, 12, CP_DECISION_APPLIED));
    assert_null(cp_ledger_find(ledger, 4));
    cp_ledger_free(ledger);
}

static void test_states(void **state)
{
    /* Rows: from; columns: to, in the order of the enum. */
    static const bool legal[CP_DECISION_STATE_MAX][CP_DECISION_STATE_MAX] = {
        [CP_DECISION_PROPOSED] = {true, true, false, true, true, true, true},
        [CP_DECISION_APPLIED] = {false, true, true, true, true, true, true},
        [CP_DECISION_KEPT] = {false, false, true, true, true, true, true},
    };
    uint64_t id = 1;

    (void)state;
    for (int from = 0; from < CP_DECISION_STATE_MAX; from++) {
        for (int to = 0; to < CP_DECISION_STATE_MAX; to++) {
            struct cp_ledger *ledger = new_ledger(100);
            struct cp_decision *decision = add(ledger, id++, 1, 2, (enum cp_decision_state)from);
            bool changed =
                cp_ledger_set_state(ledger, decision, (enum cp_decision_state)to, 77, "so it is");

            if (changed != legal[from][to])
                fail_msg("%s -> %s", cp_decision_state_to_string((enum cp_decision_state)from),
                         cp_decision_state_to_string((enum cp_decision_state)to));
            assert_int_equal((int)decision->state, changed ? to : from);
            assert_string_equal(decision->why, changed ? "so it is" : "");
            assert_int_equal(decision->changed_ns, changed && to != from ? 77 : 0);
            assert_false(cp_ledger_set_state(ledger, decision, CP_DECISION_STATE_MAX, 78, "never"));
            cp_ledger_free(ledger);
        }
        assert_non_null(cp_decision_state_to_string((enum cp_decision_state)from));
    }
    assert_null(cp_decision_state_to_string(CP_DECISION_STATE_MAX));
}

/* The hold of exactly these tasks, or NULL. b 0: of one task. */
static const struct cp_plan_hold *find_hold(struct cp_ledger *ledger, uint64_t now_ns, pid_t a,
                                            pid_t b)
{
    const struct cp_plan_hold *holds;
    size_t n = cp_ledger_holds(ledger, now_ns, &holds);

    for (size_t i = 0; i < n; i++)
        if (holds[i].tasks[0].tid == a && holds[i].tasks[1].tid == b)
            return &holds[i];
    return NULL;
}

/* A placement of 1 and 2 that is undone at now_ns. Returns when the pair may be tried again. */
static uint64_t undo_at(struct cp_ledger *ledger, uint64_t id, uint64_t now_ns)
{
    struct cp_decision *decision = add(ledger, id, 1, 2, CP_DECISION_APPLIED);
    const struct cp_plan_hold *hold;

    assert_true(cp_ledger_set_state(ledger, decision, CP_DECISION_UNDONE, now_ns, "no use"));
    /* Telling it again must not count twice. */
    cp_ledger_back_off(ledger, decision, now_ns);
    hold = find_hold(ledger, now_ns, 1, 2);
    assert_non_null(hold);
    assert_int_equal(hold->why, CP_OUTCOME_BACKING_OFF);
    assert_null(find_hold(ledger, hold->until_ns, 1, 2));
    return hold->until_ns;
}

static void test_back_off_doubles(void **state)
{
    struct cp_ledger *ledger = new_ledger(100);
    uint64_t now_ns = HOUR;
    uint64_t wait_ns = SETTLE;
    uint64_t id;
    struct cp_decision *decision;

    (void)state;
    for (id = 1; id <= 12; id++) {
        uint64_t until_ns = undo_at(ledger, id, now_ns);

        assert_int_equal(until_ns, now_ns + wait_ns);
        wait_ns = wait_ns * 2 < HOUR ? wait_ns * 2 : HOUR;
        now_ns = until_ns + 1;
    }
    assert_int_equal(wait_ns, HOUR);
    /* It helped once: the next failure starts small. */
    decision = add(ledger, id++, 1, 2, CP_DECISION_APPLIED);
    cp_ledger_set_state(ledger, decision, CP_DECISION_KEPT, now_ns, "helped");
    cp_ledger_set_state(ledger, decision, CP_DECISION_UNDONE, now_ns, "not any more");
    assert_int_equal(find_hold(ledger, now_ns, 1, 2)->until_ns, now_ns + SETTLE);
    /* So does an hour without trouble. */
    assert_int_equal(undo_at(ledger, id++, now_ns + SETTLE + 1), now_ns + 3 * SETTLE + 1);
    now_ns += 3 * SETTLE + 2 * HOUR;
    assert_int_equal(undo_at(ledger, id++, now_ns), now_ns + SETTLE);
    cp_ledger_free(ledger);
}

static void test_which_ends_back_off(void **state)
{
    static const struct {
        enum cp_decision_state end;
        bool waits;
    } rows[] = {
        {CP_DECISION_UNDONE, true},
        {CP_DECISION_FAILED, true},
        {CP_DECISION_YIELDED, true},
        {CP_DECISION_RESTORED, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cp_ledger *ledger = new_ledger(10);
        struct cp_decision *decision = add(ledger, 1, 2, 1, CP_DECISION_APPLIED);

        cp_ledger_set_state(ledger, decision, rows[i].end, 5 * HOUR, "over");
        assert_int_equal(find_hold(ledger, 5 * HOUR, 1, 2) != NULL, rows[i].waits);
        cp_ledger_free(ledger);
    }
}

static void test_vetoes_last_until_lifted(void **state)
{
    struct cp_ledger *ledger = new_ledger(10);
    struct cp_decision *decision = add(ledger, 1, 1, 2, CP_DECISION_APPLIED);
    const struct cp_plan_hold *hold;

    (void)state;
    assert_int_equal(cp_ledger_veto(ledger, task_id(2), task_id(1)), 0);
    cp_ledger_set_state(ledger, decision, CP_DECISION_UNDONE, HOUR, "by hand");
    assert_int_equal(cp_ledger_veto(ledger, task_id(3), task_id(4)), 0);
    assert_int_equal(cp_ledger_veto(ledger, task_id(3), task_id(5)), 0);
    assert_int_equal(cp_ledger_veto(ledger, task_id(3), task_id(5)), 0);
    hold = find_hold(ledger, 500 * HOUR, 1, 2);
    assert_non_null(hold);
    assert_int_equal(hold->why, CP_OUTCOME_VETOED);
    assert_true(hold->until_ns == UINT64_MAX);

    assert_int_equal(cp_ledger_allow(ledger, task_id(2)), 1);
    assert_null(find_hold(ledger, 2 * HOUR, 1, 2));
    assert_non_null(find_hold(ledger, 2 * HOUR, 3, 4));
    cp_ledger_forget_task(ledger, task_id(4));
    assert_null(find_hold(ledger, 2 * HOUR, 3, 4));
    assert_non_null(find_hold(ledger, 2 * HOUR, 3, 5));
    assert_int_equal(cp_ledger_veto(ledger, task_id(6), task_id(7)), 0);
    assert_int_equal(cp_ledger_allow(ledger, (struct cp_task_id){0}), 2);
    assert_int_equal(cp_ledger_allow(ledger, (struct cp_task_id){0}), 0);
    assert_null(find_hold(ledger, 2 * HOUR, 3, 5));
    /* Decisions stay when a task ends. */
    cp_ledger_forget_task(ledger, task_id(1));
    assert_non_null(cp_ledger_find(ledger, 1));
    cp_ledger_free(ledger);
}

/* The table of waits is bounded: back-offs make room, vetoes do not. */
static void test_waits_are_bounded(void **state)
{
    struct cp_ledger *ledger = new_ledger(4);
    struct cp_decision *decision = add(ledger, 1, 20, 21, CP_DECISION_APPLIED);

    (void)state;
    cp_ledger_set_state(ledger, decision, CP_DECISION_UNDONE, HOUR, "no use");
    for (pid_t i = 0; i < 4; i++)
        assert_int_equal(cp_ledger_veto(ledger, task_id(2 * i + 1), task_id(2 * i + 2)), 0);
    assert_null(find_hold(ledger, HOUR, 20, 21));
    assert_int_equal(cp_ledger_veto(ledger, task_id(30), task_id(31)), -ENOSPC);
    assert_int_equal(cp_ledger_veto(ledger, task_id(1), task_id(2)), 0);
    decision = add(ledger, 2, 22, 23, CP_DECISION_APPLIED);
    cp_ledger_set_state(ledger, decision, CP_DECISION_UNDONE, HOUR, "no use");
    assert_null(find_hold(ledger, HOUR, 22, 23));
    assert_non_null(find_hold(ledger, HOUR, 7, 8));
    cp_ledger_free(ledger);
}

static void test_settling(void **state)
{
    struct cp_ledger *ledger = new_ledger(10);
    const struct cp_plan_hold *holds;
    size_t n;

    (void)state;
    assert_int_equal(cp_ledger_holds(ledger, 0, &holds), 0);
    add(ledger, 100, 5, 2, CP_DECISION_APPLIED);  /* applied at 100 s */
    add(ledger, 104, 2, 9, CP_DECISION_RESTORED); /* at 104 s */
    add(ledger, 105, 7, 8, CP_DECISION_PROPOSED); /* never */
    n = cp_ledger_holds(ledger, 106000 * MS, &holds);
    assert_int_equal(n, 3);
    assert_int_equal(holds[0].tasks[0].tid, 2);
    assert_int_equal(holds[0].tasks[1].tid, 0);
    assert_int_equal(holds[0].until_ns, 114000 * MS);
    assert_int_equal(holds[0].why, CP_OUTCOME_SETTLING);
    assert_int_equal(holds[1].tasks[0].tid, 5);
    assert_int_equal(holds[1].until_ns, 110000 * MS);
    assert_int_equal(holds[2].tasks[0].tid, 9);
    assert_int_equal(cp_ledger_holds(ledger, 110000 * MS, &holds), 2);
    assert_int_equal(cp_ledger_holds(ledger, 114000 * MS, &holds), 0);
    cp_ledger_free(ledger);
}

static void test_placements(void **state)
{
    struct cp_ledger *ledger = new_ledger(10);
    struct cp_pairs *pairs = new_pairs();
    const struct cp_plan_placement *placements;
    struct feed feed;

    (void)state;
    assert_int_equal(cp_ledger_placements(ledger, pairs, &placements), 0);
    add(ledger, 1, 1, 2, CP_DECISION_KEPT);
    add(ledger, 2, 3, 4, CP_DECISION_UNDONE);
    add(ledger, 3, 5, 6, CP_DECISION_APPLIED);
    add(ledger, 4, 7, 8, CP_DECISION_PROPOSED);
    feed_begin(&feed, 0, 1000 * MS);
    feed_edge(&feed, task_id(1), task_id(2), 1000, CP_LEVEL_CPU, US, US, US);
    feed_edge(&feed, task_id(5), task_id(6), 1000, CP_LEVEL_CPU, US, US, US);
    feed_task(&feed, task_id(1))->run_ns = 500 * MS;
    feed_task(&feed, task_id(2))->run_ns = 200 * MS;
    feed_into(&feed, pairs);
    cp_pairs_reset_pair(pairs, task_id(5), task_id(6));

    assert_int_equal(cp_ledger_placements(ledger, pairs, &placements), 2);
    assert_int_equal(placements[0].tasks[0].tid, 1);
    assert_int_equal(placements[0].tasks[1].tid, 2);
    assert_int_equal(placements[0].level, CP_LEVEL_CPU);
    assert_int_equal(placements[0].since_ns, 1000 * MS);
    assert_true(placements[0].load > 0.69 && placements[0].load < 0.71);
    assert_ptr_equal(placements[0].target, &cp_ledger_find(ledger, 1)->target);
    /* Fresh: nothing measured since, so the load at the decision. */
    assert_int_equal(placements[1].tasks[0].tid, 5);
    assert_true(placements[1].load == 0.4);
    /* A window that shows one of the two tells nothing of both. */
    for (pid_t seen = 5; seen <= 6; seen++) {
        cp_pairs_reset_pair(pairs, task_id(5), task_id(6));
        feed_begin(&feed, 1000 * MS, 2000 * MS);
        feed_edge(&feed, task_id(seen), task_id(9), 1000, CP_LEVEL_CPU, US, US, US);
        feed_into(&feed, pairs);
        assert_int_equal(cp_ledger_placements(ledger, pairs, &placements), 2);
        assert_true(placements[1].load == 0.4);
    }
    cp_pairs_free(pairs);
    cp_ledger_free(ledger);
}

/* Generated: adds, changes, vetoes and lifts at random; bounds and order hold. */
static void test_random(void **state)
{
    uint64_t seed = UINT64_C(0x2545f4914f6cdd1d);
    struct cp_ledger *ledger = new_ledger(20);
    uint64_t now_ns = HOUR;
    uint64_t id = 0;

    (void)state;
    for (unsigned i = 0; i < 4000; i++) {
        struct cp_decision *list[32];
        const struct cp_plan_hold *holds;
        size_t n;
        pid_t a;
        pid_t b;

        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        a = (pid_t)(1 + (seed >> 8) % 12);
        b = (pid_t)(13 + (seed >> 16) % 12);
        now_ns += (seed >> 24) % (40000 * MS);
        n = cp_ledger_list(ledger, (seed >> 5) % 2 ? 0 : id / 2, 32, list);
        assert_true(n <= 20);
        switch (seed % 8) {
        case 0:
        case 1:
            (void)add(ledger, ++id, a, b, (enum cp_decision_state)((seed >> 32) % 3));
            break;
        case 2:
            assert_true(cp_ledger_veto(ledger, task_id(b), task_id(a)) >= -ENOSPC);
            break;
        case 3:
            (void)cp_ledger_allow(ledger, task_id((seed >> 33) % 4 ? a : 0));
            break;
        default:
            if (n > 0)
                (void)cp_ledger_set_state(
                    ledger, list[(seed >> 40) % n],
                    (enum cp_decision_state)((seed >> 50) % CP_DECISION_STATE_MAX), now_ns, "why");
        }
        n = cp_ledger_list(ledger, 0, 32, list);
        assert_true(n <= 20);
        for (size_t k = 1; k < n; k++)
            assert_true(list[k - 1]->id < list[k]->id);
        n = cp_ledger_holds(ledger, now_ns, &holds);
        assert_true(n <= 60);
        for (size_t k = 0; k < n; k++) {
            assert_true(holds[k].until_ns > now_ns);
            assert_true(holds[k].why == CP_OUTCOME_VETOED || holds[k].until_ns <= now_ns + HOUR);
        }
    }
    assert_true(id > 500);
    cp_ledger_free(ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_and_list),
        cmocka_unit_test(test_find_task_prefers_standing),
        cmocka_unit_test(test_bounds_keep_what_stands),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_back_off_doubles),
        cmocka_unit_test(test_which_ends_back_off),
        cmocka_unit_test(test_vetoes_last_until_lifted),
        cmocka_unit_test(test_waits_are_bounded),
        cmocka_unit_test(test_settling),
        cmocka_unit_test(test_placements),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
