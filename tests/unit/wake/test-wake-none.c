/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The source that sees nothing: says why, and lets the daemon run on. */
#include "wake/wake.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_says_why(void **state)
{
    struct cp_wake_source *source = cp_wake_none_new("CAP_BPF is missing");
    struct cp_wake_sample sample = {0};
    struct cp_error error = {0};

    (void)state;
    assert_non_null(source);
    assert_string_equal(source->ops->name, "none");
    assert_string_equal(source->why, "CAP_BPF is missing");
    assert_int_equal(source->ops->window_open(source, &error), -EOPNOTSUPP);
    assert_non_null(strstr(error.message, "CAP_BPF is missing"));
    memset(&error, 0, sizeof(error));
    assert_int_equal(source->ops->window_close(source, &sample, &error), -EOPNOTSUPP);
    assert_non_null(strstr(error.message, "CAP_BPF is missing"));
    assert_null(cp_wake_source_free(source));
}

static void on_event(const struct cp_wake_event *event, void *userdata)
{
    (void)event;
    (void)userdata;
    fail();
}

static void test_does_nothing(void **state)
{
    struct cp_wake_source *source = cp_wake_none_new("switched off");
    struct cp_machine machine = {0};
    struct cp_wake_task_facts facts;
    struct cp_task_id task = {.tid = 1, .start_ticks = 1};

    (void)state;
    assert_non_null(source);
    assert_int_equal(source->ops->event_fd(source), -1);
    assert_int_equal(source->ops->dispatch(source, on_event, NULL), 0);
    source->ops->rearm(source);
    assert_int_equal(source->ops->guard(source, task), 0);
    source->ops->unguard(source, task);
    assert_int_equal(source->ops->task_facts(source, task, &facts), -EOPNOTSUPP);
    assert_int_equal(source->ops->set_machine(source, &machine), 0);
    assert_false(source->sees_hard_interrupts);
    assert_int_equal(source->counters.n_scout_attaches, 0);
    cp_wake_source_free(source);
}

static void test_long_reason_is_cut(void **state)
{
    char why[2000];
    struct cp_wake_source *source;

    (void)state;
    memset(why, 'x', sizeof(why));
    why[sizeof(why) - 1] = '\0';
    source = cp_wake_none_new(why);
    assert_non_null(source);
    assert_int_equal(strlen(source->why), sizeof(source->why) - 1);
    cp_wake_source_free(source);
}

static void test_free_accepts_null(void **state)
{
    struct cp_wake_sample sample = {0};

    (void)state;
    assert_null(cp_wake_source_free(NULL));
    cp_wake_sample_done(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_why),
        cmocka_unit_test(test_does_nothing),
        cmocka_unit_test(test_long_reason_is_cut),
        cmocka_unit_test(test_free_accepts_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
