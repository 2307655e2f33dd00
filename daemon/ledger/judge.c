/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Did a placement help? Compares two observations; knows nothing of states or masks. */
#include "ledger/ledger.h"

#include <inttypes.h>
#include <stdio.h>

/* Below, chance decides. */
#define MIN_HANDOFFS 20u
#define WHY_SIZE 200u

static bool rose(double before, double after, double margin)
{
    return after > before && after >= before * (1.0 + margin);
}

static bool fell(double before, double after, double margin)
{
    return after < before && after <= before * (1.0 - margin);
}

static double percent(double before, double after)
{
    return before > 0.0 ? 100.0 * (after - before) / before : 0.0;
}

static void write_numbers(const struct cp_observation *before, const struct cp_observation *after,
                          double margin, const char *verdict, char *why)
{
    (void)snprintf(why, WHY_SIZE,
                   "%s: %.0f -> %.0f hand-offs/s (%+.0f %%), %.1f -> %.1f us lost a hand-off "
                   "(%+.0f %%), margin %.3g %%",
                   verdict, before->rate_hz, after->rate_hz,
                   percent(before->rate_hz, after->rate_hz), before->loss_ns / 1000.0,
                   after->loss_ns / 1000.0, percent(before->loss_ns, after->loss_ns),
                   100.0 * margin);
}

enum cp_judgement cp_judge(const struct cp_observation *before, const struct cp_observation *after,
                           double margin, char why[static WHY_SIZE])
{
    if (before->handoffs < MIN_HANDOFFS || after->handoffs < MIN_HANDOFFS) {
        (void)snprintf(why, WHY_SIZE,
                       "cannot tell: %" PRIu64 " hand-offs seen before and %" PRIu64
                       " after, %u of each needed",
                       before->handoffs, after->handoffs, MIN_HANDOFFS);
        return CP_JUDGE_CANNOT_TELL;
    }
    if (rose(before->rate_hz, after->rate_hz, margin)) {
        write_numbers(before, after, margin, "helped, the rate rose", why);
        return CP_JUDGE_HELPED;
    }
    if (fell(before->loss_ns, after->loss_ns, margin) &&
        !fell(before->rate_hz, after->rate_hz, margin)) {
        write_numbers(before, after, margin, "helped, less is lost", why);
        return CP_JUDGE_HELPED;
    }
    write_numbers(before, after, margin, "did not help", why);
    return CP_JUDGE_DID_NOT_HELP;
}
