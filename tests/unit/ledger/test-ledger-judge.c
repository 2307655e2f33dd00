/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The verdict on a placement: what counts as help, and the numbers in its reason. */
#include "ledger/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct seen {
    double rate_hz;
    double loss_ns;
    uint64_t handoffs;
};

static struct cp_observation observation(struct seen seen)
{
    return (struct cp_observation){
        .rate_hz = seen.rate_hz, .loss_ns = seen.loss_ns, .handoffs = seen.handoffs};
}

static void test_table(void **state)
{
    static const struct {
        struct seen before;
        struct seen after;
        double margin;
        enum cp_judgement judgement;
    } rows[] = {
        /* perf bench sched pipe: 10 000 each way apart, 150 000 on one CPU */
        {{20000, 46000, 3000}, {300000, 2000, 45000}, 0.05, CP_JUDGE_HELPED},
        {{20000, 46000, 3000}, {15000, 46000, 2000}, 0.05, CP_JUDGE_DID_NOT_HELP},
        {{20000, 46000, 3000}, {20000, 46000, 3000}, 0.05, CP_JUDGE_DID_NOT_HELP},
        {{20000, 46000, 3000}, {20000, 46000, 3000}, 0.0, CP_JUDGE_DID_NOT_HELP},
        /* The margin of the rate, both sides of it. */
        {{1000, 5000, 100}, {1051, 5000, 100}, 0.05, CP_JUDGE_HELPED},
        {{1000, 5000, 100}, {1049, 5000, 100}, 0.05, CP_JUDGE_DID_NOT_HELP},
        /* A higher rate helps though each hand-off loses more (it is queued for). */
        {{1000, 5000, 100}, {2000, 9000, 100}, 0.05, CP_JUDGE_HELPED},
        /* Less lost at an unchanged rate: a pair that is paced from outside. */
        {{1000, 5000, 100}, {1000, 4700, 100}, 0.05, CP_JUDGE_HELPED},
        {{1000, 5000, 100}, {1000, 4800, 100}, 0.05, CP_JUDGE_DID_NOT_HELP},
        {{1000, 5000, 100}, {960, 1000, 100}, 0.05, CP_JUDGE_HELPED},
        {{1000, 5000, 100}, {940, 1000, 100}, 0.05, CP_JUDGE_DID_NOT_HELP},
        {{1000, 0, 100}, {1000, 0, 100}, 0.05, CP_JUDGE_DID_NOT_HELP},
        /* Too little was seen. */
        {{1000, 5000, 19}, {9000, 100, 1000}, 0.05, CP_JUDGE_CANNOT_TELL},
        {{1000, 5000, 1000}, {9000, 100, 19}, 0.05, CP_JUDGE_CANNOT_TELL},
        {{1000, 5000, 20}, {9000, 100, 20}, 0.05, CP_JUDGE_HELPED},
        {{0, 0, 0}, {0, 0, 0}, 0.05, CP_JUDGE_CANNOT_TELL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cp_observation before = observation(rows[i].before);
        struct cp_observation after = observation(rows[i].after);
        char why[200] = "";
        enum cp_judgement judgement = cp_judge(&before, &after, rows[i].margin, why);

        if (judgement != rows[i].judgement)
            fail_msg("row %zu: %d (%s)", i, judgement, why);
        assert_true(why[0] != '\0');
    }
}

static void test_numbers(void **state)
{
    struct cp_observation before = observation((struct seen){20000, 46000, 3000});
    struct cp_observation after = observation((struct seen){300000, 2300, 45000});
    char why[200];

    (void)state;
    cp_judge(&before, &after, 0.05, why);
    assert_string_equal(why, "helped, the rate rose: 20000 -> 300000 hand-offs/s (+1400 %), "
                             "46.0 -> 2.3 us lost a hand-off (-95 %), margin 5 %");
    cp_judge(&after, &before, 0.05, why);
    assert_non_null(strstr(why, "did not help: 300000 -> 20000"));
    after.handoffs = 7;
    cp_judge(&before, &after, 0.05, why);
    assert_non_null(strstr(why, "cannot tell: 3000 hand-offs seen before and 7 after"));
    /* Absurd figures are cut, not overrun. */
    before.rate_hz = after.rate_hz = 1e300;
    after.handoffs = 100;
    cp_judge(&before, &after, 0.05, why);
    assert_int_equal(strlen(why), sizeof(why) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
