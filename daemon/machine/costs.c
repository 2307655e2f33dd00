/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cost table. Pure: no system call, no clock, no log; files are costs-file.c's. */
#include "machine/costs.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/quantity.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_COST_NS CP_NS_PER_S
/* Hand-offs after which an observation weighs as much as what was known before. */
#define OBSERVE_HALF_WEIGHT 1000.0
/* How far observation may move a value from calibration. */
#define OBSERVE_FACTOR 2
#define MAX_SAMPLES UINT64_C(1000000000)

static const uint64_t default_ns[CP_LEVEL_MAX] = {
    [CP_LEVEL_CPU] = 1000,  [CP_LEVEL_CORE] = 2000,     [CP_LEVEL_LLC] = 4000,
    [CP_LEVEL_NODE] = 9000, [CP_LEVEL_PACKAGE] = 15000, [CP_LEVEL_MACHINE] = 25000,
};

static const char *const source_names[CP_COST_SOURCE_MAX] = {
    [CP_COST_DEFAULT] = "default",
    [CP_COST_OBSERVED] = "observed",
    [CP_COST_MEASURED] = "measured",
    [CP_COST_CONFIGURED] = "configured",
};

void cp_costs_init_default(struct cp_costs *costs)
{
    *costs = (struct cp_costs){0};
    for (unsigned i = 0; i < CP_LEVEL_MAX; i++)
        costs->level[i] = (struct cp_cost){
            .ns = default_ns[i],
            .raw_ns = default_ns[i],
            .anchor_ns = default_ns[i],
            .source = CP_COST_DEFAULT,
        };
}

const char *cp_cost_source_to_string(enum cp_cost_source source)
{
    return (unsigned)source < CP_COST_SOURCE_MAX ? source_names[source] : NULL;
}

/* One "level=time" of a list, at *text; moves *text behind it. */
static int configure_level(struct cp_costs *costs, const char **text, unsigned *seen,
                           struct cp_error *error)
{
    size_t length = strcspn(*text, ",");
    char item[64];
    char *value;
    enum cp_level level;
    uint64_t ns;

    (void)snprintf(item, sizeof(item), "%.*s", (int)CP_MIN(length, sizeof(item) - 1), *text);
    value = strchr(item, '=');
    if (!value || length >= sizeof(item))
        return cp_error_set(error, EINVAL,
                            "\"%s\" is no cost: write LEVEL=TIME, as in cpu=1us,llc=4us", item);
    *value++ = '\0';
    level = cp_level_from_string(item);
    if (level == CP_LEVEL_INVALID)
        return cp_error_set(error, EINVAL,
                            "\"%s\" is no level: use cpu, core, llc, node, package or machine",
                            item);
    if (*seen & 1u << level)
        return cp_error_set(error, EINVAL, "the cost of %s is given twice", item);
    if (cp_quantity_parse_ns(value, MAX_COST_NS, &ns) < 0 || ns == 0)
        return cp_error_set(
            error, EINVAL,
            "\"%s\" is no cost of %s: write a time from 1ns to 1000ms with ns, us or ms", value,
            item);
    *seen |= 1u << level;
    costs->level[level] =
        (struct cp_cost){.ns = ns, .raw_ns = ns, .anchor_ns = ns, .source = CP_COST_CONFIGURED};
    *text += length;
    return 0;
}

int cp_costs_configure(struct cp_costs *costs, const char *text, struct cp_error *error)
{
    struct cp_costs configured = *costs;
    unsigned seen = 0;

    for (;;) {
        int r = configure_level(&configured, &text, &seen, error);

        if (r < 0)
            return r;
        if (!*text)
            break;
        text++;
    }
    cp_costs_smooth(&configured);
    *costs = configured;
    return 0;
}

void cp_costs_set_measured(struct cp_costs *costs, enum cp_level level, uint64_t median_ns,
                           uint64_t spread_ns, uint64_t n_samples)
{
    uint64_t ns = CP_MIN(CP_MAX(median_ns, 1), MAX_COST_NS);

    if (costs->level[level].source == CP_COST_CONFIGURED || n_samples == 0)
        return;
    costs->level[level] = (struct cp_cost){
        .ns = ns,
        .raw_ns = ns,
        .anchor_ns = ns,
        .spread_ns = CP_MIN(spread_ns, MAX_COST_NS),
        .n_samples = CP_MIN(n_samples, MAX_SAMPLES),
        .source = CP_COST_MEASURED,
    };
}

void cp_costs_observe(struct cp_costs *costs, enum cp_level level, uint64_t mean_ns, uint64_t n)
{
    struct cp_cost *cost = &costs->level[level];
    double weight = (double)n / ((double)n + OBSERVE_HALF_WEIGHT);
    double value = (double)cost->raw_ns;
    double low = (double)cost->anchor_ns / OBSERVE_FACTOR;
    double high = (double)cost->anchor_ns * OBSERVE_FACTOR;

    if (cost->source == CP_COST_CONFIGURED || n == 0)
        return;
    value += ((double)mean_ns - value) * weight;
    cost->raw_ns = CP_MAX((uint64_t)llround(fmin(fmax(value, low), high)), 1);
    cost->ns = cost->raw_ns;
    cost->n_samples = CP_MIN(cost->n_samples + CP_MIN(n, MAX_SAMPLES), MAX_SAMPLES);
    cost->source = CP_COST_OBSERVED;
}

/* Neighbouring levels that share one value, in the course of pooling. */
struct block {
    unsigned n_levels;
    double weight;
    double mean;
};

/* Whether a value was seen on this machine; defaults were not. */
static bool is_evidence(const struct cp_cost *cost)
{
    return cost->source == CP_COST_MEASURED || cost->source == CP_COST_OBSERVED;
}

/* Pool-adjacent-violators (Ayer and others, 1955) over the levels with evidence: their values
 * become the rising ones nearest to the raw ones in weighted squares. Configured levels part the
 * others into runs that do not touch each other. */
static void pool(struct cp_costs *costs)
{
    struct block blocks[CP_LEVEL_MAX];
    unsigned n = 0;
    unsigned run_begin = 0;
    unsigned left = 0;
    unsigned b = 0;

    for (unsigned i = 0; i < CP_LEVEL_MAX; i++) {
        const struct cp_cost *cost = &costs->level[i];

        if (cost->source == CP_COST_CONFIGURED)
            run_begin = n;
        if (!is_evidence(cost))
            continue;
        blocks[n++] = (struct block){1, (double)cost->n_samples, (double)cost->raw_ns};
        while (n > run_begin + 1 && blocks[n - 2].mean > blocks[n - 1].mean) {
            struct block *into = &blocks[n - 2];
            const struct block *from = &blocks[n - 1];
            double weight = into->weight + from->weight;

            into->mean = (into->mean * into->weight + from->mean * from->weight) / weight;
            into->weight = weight;
            into->n_levels += from->n_levels;
            n--;
        }
    }
    for (unsigned i = 0; i < CP_LEVEL_MAX; i++) {
        struct cp_cost *cost = &costs->level[i];

        if (!is_evidence(cost))
            continue;
        if (left == 0)
            left = blocks[b++].n_levels;
        cost->ns = (uint64_t)llround(blocks[b - 1].mean);
        cost->doubtful = blocks[b - 1].n_levels > 1;
        left--;
    }
}

/* Keeps the others between the configured values: bounds of a rising fit may be applied after it.
 * Where configured values contradict each other, the nearest configured level below rules. */
static void respect_configured(struct cp_costs *costs)
{
    for (unsigned i = 0; i < CP_LEVEL_MAX; i++) {
        struct cp_cost *cost = &costs->level[i];
        uint64_t low = 0;
        uint64_t high = UINT64_MAX;

        for (unsigned k = 0; k < CP_LEVEL_MAX; k++) {
            const struct cp_cost *other = &costs->level[k];

            if (other->source != CP_COST_CONFIGURED)
                continue;
            if (k < i)
                low = CP_MAX(low, other->ns);
            else if (k > i)
                high = CP_MIN(high, other->ns);
        }
        if (cost->source == CP_COST_CONFIGURED) {
            cost->doubtful = cost->ns > high;
        } else if (is_evidence(cost) && (cost->ns > high || cost->ns < low)) {
            cost->ns = CP_MAX(CP_MIN(cost->ns, high), low);
            cost->doubtful = true;
        }
    }
}

/* Moves each default between the nearest better known levels. */
static void fit_defaults(struct cp_costs *costs)
{
    uint64_t low = 0;
    uint64_t high = UINT64_MAX;

    for (unsigned i = CP_LEVEL_MAX; i-- > 0;) {
        struct cp_cost *cost = &costs->level[i];

        if (cost->source == CP_COST_DEFAULT)
            cost->ns = CP_MIN(cost->raw_ns, high);
        else
            high = CP_MIN(high, cost->ns);
    }
    for (unsigned i = 0; i < CP_LEVEL_MAX; i++) {
        struct cp_cost *cost = &costs->level[i];

        if (cost->source == CP_COST_DEFAULT)
            cost->ns = CP_MAX(cost->ns, low);
        low = CP_MAX(low, cost->ns);
    }
}

void cp_costs_smooth(struct cp_costs *costs)
{
    for (unsigned i = 0; i < CP_LEVEL_MAX; i++) {
        costs->level[i].ns = costs->level[i].raw_ns;
        costs->level[i].doubtful = false;
    }
    pool(costs);
    respect_configured(costs);
    fit_defaults(costs);
    costs->doubtful = false;
    for (unsigned i = 0; i < CP_LEVEL_MAX; i++) {
        struct cp_cost *cost = &costs->level[i];

        cost->doubtful |= cost->source != CP_COST_CONFIGURED && cost->spread_ns > cost->ns;
        costs->doubtful |= cost->doubtful;
    }
}
