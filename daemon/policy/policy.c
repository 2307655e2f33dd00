/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The built-in policy, and the words and quantities of which policies are made. Pure: no system
 * call, no global, no log. Must not decide anything about tasks.
 */
#include "policy/policy.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MIN_RATE_HZ 0.1
#define MAX_RATE_HZ 1e7
/* A week: longer than any sensible settle time, and far from overflowing sums of times. */
#define MAX_TIME_NS (7ull * 24 * 3600 * CP_NS_PER_S)

static const char *const mode_names[CP_MODE_MAX] = {
    [CP_MODE_OFF] = "off",
    [CP_MODE_OBSERVE] = "observe",
    [CP_MODE_ENFORCE] = "enforce",
};

static const char *const pair_level_names[CP_PAIRS_MAX] = {
    [CP_PAIRS_AUTO] = "auto",           [CP_PAIRS_SAME_CPU] = "same-cpu",
    [CP_PAIRS_SAME_CORE] = "same-core", [CP_PAIRS_SAME_LLC] = "same-llc",
    [CP_PAIRS_SAME_NODE] = "same-node", [CP_PAIRS_OFF] = "off",
};

static const char *const affinity_names[CP_AFFINITY_MAX] = {
    [CP_AFFINITY_RESPECT] = "respect",
    [CP_AFFINITY_OVERRIDE] = "override",
};

static const char *const keep_names[CP_KEEP_MAX] = {
    [CP_KEEP_IF_HELPED] = "if-helped",
    [CP_KEEP_ALWAYS] = "always",
};

void cp_policy_init_builtin(struct cp_policy *policy)
{
    *policy = (struct cp_policy){
        .name = "builtin",
        .mode = CP_MODE_ENFORCE,
        .pairs = CP_PAIRS_AUTO,
        .affinity = CP_AFFINITY_RESPECT,
        .keep = CP_KEEP_IF_HELPED,
        .min_rate_hz = 500,
        .min_gain_ns_per_s = 0.001 * 1e9,
        .margin = 0.05,
        .settle_ns = 10 * CP_NS_PER_S,
        .min_age_ns = 300 * CP_NS_PER_MS,
    };
}

/* The index of text among n names, or -1. */
static int find_name(const char *const *names, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0)
            return (int)i;
    return -1;
}

const char *cp_mode_to_string(enum cp_mode mode)
{
    return (unsigned)mode < CP_MODE_MAX ? mode_names[mode] : NULL;
}

enum cp_mode cp_mode_from_string(const char *text)
{
    return (enum cp_mode)find_name(mode_names, CP_MODE_MAX, text);
}

const char *cp_pair_level_to_string(enum cp_pair_level pairs)
{
    return (unsigned)pairs < CP_PAIRS_MAX ? pair_level_names[pairs] : NULL;
}

enum cp_pair_level cp_pair_level_from_string(const char *text)
{
    return (enum cp_pair_level)find_name(pair_level_names, CP_PAIRS_MAX, text);
}

const char *cp_affinity_to_string(enum cp_affinity affinity)
{
    return (unsigned)affinity < CP_AFFINITY_MAX ? affinity_names[affinity] : NULL;
}

enum cp_affinity cp_affinity_from_string(const char *text)
{
    return (enum cp_affinity)find_name(affinity_names, CP_AFFINITY_MAX, text);
}

const char *cp_keep_to_string(enum cp_keep keep)
{
    return (unsigned)keep < CP_KEEP_MAX ? keep_names[keep] : NULL;
}

enum cp_keep cp_keep_from_string(const char *text)
{
    return (enum cp_keep)find_name(keep_names, CP_KEEP_MAX, text);
}

int cp_parse_rate(const char *text, double *ret_hz, struct cp_error *error)
{
    const char *unit;
    double value;
    int r = cp_quantity_split(text, &value, &unit);

    if (r == -EINVAL || (r == 0 && *unit && strcmp(unit, "/s") != 0))
        return cp_error_set(error, EINVAL,
                            "\"%.64s\" is no rate: write hand-offs a second as 500/s", text);
    if (r < 0 || value < MIN_RATE_HZ || value > MAX_RATE_HZ)
        return cp_error_set(error, ERANGE, "rate %.64s is out of range: 0.1/s to 10000000/s", text);
    *ret_hz = value;
    return 0;
}

int cp_parse_time(const char *text, uint64_t *ret_ns, struct cp_error *error)
{
    int r = cp_quantity_parse_ns(text, MAX_TIME_NS, ret_ns);

    if (r == -ERANGE)
        return cp_error_set(error, ERANGE, "time %.64s is out of range: at most 604800s (a week)",
                            text);
    if (r < 0)
        return cp_error_set(
            error, EINVAL, "\"%.64s\" is no time: write a number with ns, us, ms or s, as in 300ms",
            text);
    return 0;
}

int cp_parse_share(const char *text, double *ret_share, struct cp_error *error)
{
    const char *unit;
    double value;
    int r = cp_quantity_split(text, &value, &unit);

    if (r == -EINVAL || (r == 0 && strcmp(unit, "%") != 0))
        return cp_error_set(error, EINVAL, "\"%.64s\" is no share: write a percentage, as in 5%%",
                            text);
    if (r < 0 || value > 100)
        return cp_error_set(error, ERANGE, "share %.64s is out of range: 0%% to 100%%", text);
    *ret_share = value / 100;
    return 0;
}
