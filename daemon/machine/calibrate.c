/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which CPUs to measure, for how long, and what the samples say. The threads are ping-pong.c's. */
#include "machine/calibrate.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PAIRS 4u
/* Enough for a median within a percent or two; more would only take time. */
#define SAMPLES_PER_LEVEL 2000u
#define MIN_SAMPLES 20u

/* The usable CPUs that the snapshot knows, in a new array of *ret_n. NULL: no memory. */
static struct cp_cpu *list_usable(const struct cp_machine *machine, size_t *ret_n)
{
    struct cp_cpu *cpus = calloc(machine->n_cpus + 1, sizeof(*cpus));
    size_t n = 0;

    if (!cpus)
        return NULL;
    for (uint32_t i = 0; i < machine->n_cpus; i++)
        if (cp_cpumask_test(&machine->usable, machine->cpus[i].cpu))
            cpus[n++] = machine->cpus[i].cpu;
    *ret_n = n;
    return cpus;
}

static bool is_chosen(const struct cp_cpu_pair *pairs, size_t n_pairs, struct cp_cpu a,
                      struct cp_cpu b)
{
    for (size_t i = 0; i < n_pairs; i++)
        if ((pairs[i].a.os == a.os && pairs[i].b.os == b.os) ||
            (pairs[i].a.os == b.os && pairs[i].b.os == a.os))
            return true;
    return false;
}

/* The partner of cpus[a] at that level, looked for from its neighbours on, around the list. */
static bool find_partner(const struct cp_machine *machine, enum cp_level level,
                         const struct cp_cpu *cpus, size_t n_cpus, size_t a, size_t *ret_b)
{
    for (size_t step = level == CP_LEVEL_CPU ? 0 : 1; step < n_cpus; step++) {
        size_t b = (a + step) % n_cpus;
        enum cp_level shared =
            a == b ? CP_LEVEL_CPU : cp_machine_shared_level(machine, cpus[a], cpus[b]);

        if (shared == level) {
            *ret_b = b;
            return true;
        }
        if (level == CP_LEVEL_CPU)
            return false;
    }
    return false;
}

size_t cp_calibrate_choose(const struct cp_machine *machine, enum cp_level level,
                           struct cp_cpu_pair *pairs, size_t max_pairs)
{
    size_t n_cpus = 0;
    _cleanup_free_ struct cp_cpu *cpus = list_usable(machine, &n_cpus);
    size_t n = 0;

    if (!cpus)
        return 0;
    /* One pair from each stretch of the list, so that they lie apart. */
    for (size_t stretch = 0; stretch < max_pairs; stretch++) {
        size_t end = (stretch + 1) * n_cpus / max_pairs;

        for (size_t a = stretch * n_cpus / max_pairs; a < end; a++) {
            size_t b;

            if (!find_partner(machine, level, cpus, n_cpus, a, &b) ||
                is_chosen(pairs, n, cpus[a], cpus[b]))
                continue;
            pairs[n++] = (struct cp_cpu_pair){cpus[a], cpus[b]};
            break;
        }
    }
    return n;
}

static int compare_samples(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

/* Measures one level within budget_ns. 1: it has a new value; 0: too few hand-offs; negative errno.
 */
static int measure_level(const struct cp_machine *machine, enum cp_level level, uint64_t budget_ns,
                         const atomic_bool *cancel, struct cp_costs *costs)
{
    struct cp_cpu_pair pairs[MAX_PAIRS];
    size_t n_pairs = cp_calibrate_choose(machine, level, pairs, MAX_PAIRS);
    uint64_t end_ns = cp_now_ns() + budget_ns;
    uint32_t samples[SAMPLES_PER_LEVEL];
    size_t n = 0;

    for (size_t i = 0; i < n_pairs; i++) {
        uint64_t now_ns = cp_now_ns();
        size_t n_pairs_left = n_pairs - i;
        size_t n_new = 0;
        int r;

        if (now_ns >= end_ns)
            break;
        r = cp_ping_pong(pairs[i], (end_ns - now_ns) / n_pairs_left, cancel, samples + n,
                         (SAMPLES_PER_LEVEL - n) / n_pairs_left, &n_new);
        if (r < 0)
            return r;
        n += n_new;
    }
    if (n < MIN_SAMPLES)
        return 0;
    qsort(samples, n, sizeof(*samples), compare_samples);
    cp_costs_set_measured(costs, level, samples[n / 2], samples[n * 3 / 4] - samples[n / 4], n);
    return 1;
}

/* Which levels to measure; returns their number. */
static unsigned wanted_levels(const struct cp_machine *machine, const struct cp_costs *costs,
                              bool wanted[CP_LEVEL_MAX])
{
    bool present[CP_LEVEL_MAX];
    unsigned n = 0;

    cp_machine_levels_present(machine, present);
    for (unsigned level = 0; level < CP_LEVEL_MAX; level++) {
        wanted[level] = present[level] && costs->level[level].source != CP_COST_CONFIGURED;
        n += wanted[level];
    }
    return n;
}

int cp_calibrate(const struct cp_machine *machine, uint64_t budget_ns, const atomic_bool *cancel,
                 struct cp_costs *costs, struct cp_error *error)
{
    struct cp_costs measured = *costs;
    bool wanted[CP_LEVEL_MAX];
    uint64_t end_ns = cp_now_ns() + budget_ns;
    unsigned n_left = wanted_levels(machine, costs, wanted);
    unsigned n_measured = 0;

    if (!machine->live)
        return cp_error_set(error, EINVAL, "only the running machine can be measured, not %s",
                            machine->source);
    if (n_left == 0)
        return 0;
    for (unsigned level = 0; level < CP_LEVEL_MAX; level++) {
        uint64_t now_ns = cp_now_ns();
        int r;

        if (!wanted[level])
            continue;
        r = now_ns >= end_ns ? 0
                             : measure_level(machine, (enum cp_level)level,
                                             (end_ns - now_ns) / n_left, cancel, &measured);
        if (cancel && atomic_load(cancel))
            return cp_error_set(error, ECANCELED, "the calibration was cancelled");
        if (r < 0)
            return cp_error_set(error, -r, "cannot start threads to measure hand-offs: %s",
                                strerror(-r));
        n_measured += (unsigned)r;
        n_left--;
    }
    if (n_measured == 0)
        return cp_error_set(error, ENODATA,
                            "no level could be measured: too few hand-offs within the time, or no "
                            "usable CPU");
    cp_costs_smooth(&measured);
    *costs = measured;
    return 0;
}
