/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When windows are opened: at once for a new hot pair, ever more rarely while nothing changes. */
#include "base/clock.h"
#include "wake/look.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct cp_look new_look(void)
{
    struct cp_look_config config;
    struct cp_look look;

    cp_look_config_init_default(&config);
    cp_look_init(&look, &config);
    return look;
}

static void test_nothing_is_due_at_first(void **state)
{
    struct cp_look look = new_look();

    (void)state;
    assert_true(look.due_ns == UINT64_MAX);
}

static void test_a_hot_pair_is_looked_at_at_once(void **state)
{
    struct cp_look look = new_look();

    (void)state;
    cp_look_on_hot(&look, 7 * CP_NS_PER_S);
    assert_true(look.due_ns == 7 * CP_NS_PER_S);
}

static void test_a_placement_is_verified_soon(void **state)
{
    struct cp_look look = new_look();

    (void)state;
    cp_look_on_end(&look, CP_NS_PER_S, true, true);
    cp_look_on_placed(&look, CP_NS_PER_S);
    assert_true(look.due_ns == CP_NS_PER_S + look.config.verify_delay_ns);
}

static void test_no_timer_when_there_is_nothing_to_watch(void **state)
{
    struct cp_look look = new_look();

    (void)state;
    cp_look_on_hot(&look, CP_NS_PER_S);
    cp_look_on_end(&look, 2 * CP_NS_PER_S, false, false);
    assert_true(look.due_ns == UINT64_MAX);
}

static void test_quiet_looks_are_at_most_thirty_an_hour(void **state)
{
    struct cp_look look = new_look();
    uint64_t now = CP_NS_PER_S;
    uint64_t hour_from = now + 10 * 60 * CP_NS_PER_S;
    unsigned windows = 0;

    (void)state;
    cp_look_on_end(&look, now, true, true);
    while (look.due_ns < hour_from + 3600 * CP_NS_PER_S) {
        now = look.due_ns + look.config.window_ns;
        if (now >= hour_from)
            windows++;
        cp_look_on_end(&look, now, false, true);
    }
    assert_in_range(windows, 25, 30);
}

static void test_a_change_brings_the_looks_near_again(void **state)
{
    struct cp_look look = new_look();

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        cp_look_on_end(&look, i * CP_NS_PER_S, false, true);
    cp_look_on_end(&look, 100 * CP_NS_PER_S, true, true);
    assert_true(look.due_ns == 100 * CP_NS_PER_S + look.config.min_interval_ns);
}

static void test_what_must_wait_is_judged_as_soon_as_it_may(void **state)
{
    struct cp_look look = new_look();
    uint64_t now = CP_NS_PER_S;
    uint64_t until = now + 200 * CP_NS_PER_MS;

    (void)state;
    cp_look_on_end(&look, now, false, true);
    cp_look_on_wait(&look, now, until);
    assert_true(look.due_ns + look.config.window_ns == until);
    /* What is due at once still leaves a gap between two windows. */
    cp_look_on_wait(&look, now, now);
    assert_true(look.due_ns == now + look.config.min_hot_gap_ns);
    /* A later date does not put off a nearer one. */
    cp_look_on_wait(&look, now, now + 3600 * CP_NS_PER_S);
    assert_true(look.due_ns == now + look.config.min_hot_gap_ns);
}

static void test_a_new_hot_pair_is_looked_at_again_soon(void **state)
{
    struct cp_look look = new_look();

    (void)state;
    for (unsigned i = 1; i < 20; i++)
        cp_look_on_end(&look, i * CP_NS_PER_S, false, true);
    cp_look_on_hot(&look, 100 * CP_NS_PER_S);
    cp_look_on_end(&look, 101 * CP_NS_PER_S, false, true);
    assert_true(look.due_ns == 101 * CP_NS_PER_S + look.config.hot_interval_ns);
}

static void test_useless_hot_pairs_wait_longer_and_longer(void **state)
{
    struct cp_look look = new_look();
    uint64_t now = CP_NS_PER_S;
    uint64_t gap = 0;

    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        cp_look_on_hot(&look, now);
        assert_true(look.due_ns - now >= gap);
        gap = look.due_ns - now;
        now = look.due_ns + look.config.window_ns;
        cp_look_on_end(&look, now, false, false);
    }
    assert_true(gap == look.config.max_hot_gap_ns);
    /* A useful one makes the next reaction quick again. */
    cp_look_on_hot(&look, now);
    now = look.due_ns + look.config.window_ns;
    cp_look_on_end(&look, now, true, true);
    cp_look_on_hot(&look, now);
    assert_true(look.due_ns == now + look.config.min_hot_gap_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_due_at_first),
        cmocka_unit_test(test_a_hot_pair_is_looked_at_at_once),
        cmocka_unit_test(test_a_placement_is_verified_soon),
        cmocka_unit_test(test_no_timer_when_there_is_nothing_to_watch),
        cmocka_unit_test(test_quiet_looks_are_at_most_thirty_an_hour),
        cmocka_unit_test(test_a_change_brings_the_looks_near_again),
        cmocka_unit_test(test_what_must_wait_is_judged_as_soon_as_it_may),
        cmocka_unit_test(test_a_new_hot_pair_is_looked_at_again_soon),
        cmocka_unit_test(test_useless_hot_pairs_wait_longer_and_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
