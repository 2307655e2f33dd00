/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cost table: what one hand-off costs at each level, in nanoseconds.
 *
 * cost[level] is the median hand-off latency between two otherwise idle CPUs whose innermost
 * shared thing is that level. A value comes from the configuration, from calibration on this
 * machine, from observed hand-offs to idle CPUs, or from published defaults, in this order of
 * trust. A table in which a nearer level costs more than a farther one is marked doubtful and
 * smoothed. Measuring is calibrate.h; here is only the table: pure but for load and save.
 */
#pragma once

#include "base/error.h"
#include "base/level.h"

#include <stdbool.h>
#include <stdint.h>

enum cp_cost_source {
    CP_COST_DEFAULT,
    CP_COST_OBSERVED, /* a default or measured value refined by observed hand-offs */
    CP_COST_MEASURED,
    CP_COST_CONFIGURED,
    CP_COST_SOURCE_MAX,
};

struct cp_cost {
    uint64_t ns;        /* what the model uses; > 0 */
    uint64_t raw_ns;    /* before smoothing */
    uint64_t anchor_ns; /* what calibration or the default gave: observation stays near it */
    uint64_t spread_ns; /* interquartile range of what was measured; 0 unknown */
    uint64_t n_samples; /* hand-offs behind the value; 0 for defaults and configured ones */
    enum cp_cost_source source;
    bool doubtful; /* was dearer than a farther level (or less dear than a nearer one): smoothed */
};

struct cp_costs {
    struct cp_cost level[CP_LEVEL_MAX];
    bool doubtful; /* any level is */
};

/* The published defaults: cpu 1 us, core 2 us, llc 4 us, node 9 us, package 15 us, machine 25 us.
 */
void cp_costs_init_default(struct cp_costs *costs);

const char *cp_cost_source_to_string(enum cp_cost_source source);

/*
 * Parses "cpu=1us,core=2us,llc=4us" (units ns, us, ms, s; each level at most once; 1 ns … 1 s) and
 * sets those levels as configured, which nothing else overrides; then smooths. -EINVAL with *error
 * naming the place and what is allowed; *costs is unchanged on failure.
 */
int cp_costs_configure(struct cp_costs *costs, const char *text, struct cp_error *error);

/* Stores what calibration measured at a level (median, interquartile range, hand-offs); ignored
 * where the level is configured. Then call cp_costs_smooth(). */
void cp_costs_set_measured(struct cp_costs *costs, enum cp_level level, uint64_t median_ns,
                           uint64_t spread_ns, uint64_t n_samples);

/*
 * Refines a level by hand-offs that were observed to reach an idle CPU: an exponential average
 * that never moves a value by more than a factor of 2 from what calibration or the default gave.
 * Ignored where the level is configured or n is 0. Then call cp_costs_smooth().
 */
void cp_costs_observe(struct cp_costs *costs, enum cp_level level, uint64_t mean_ns, uint64_t n);

/*
 * Makes ns rise (not fall) from level to level. Among levels with samples behind them, one that is
 * dearer than a farther one is pooled with it (pool-adjacent-violators, weighted by samples) and
 * marked doubtful. Configured values stand; the measured ones beside them are moved and marked
 * where they contradict, and of two configured ones that contradict each other the nearer is
 * marked. A published default contradicts nobody: it is moved between its neighbours unmarked.
 */
void cp_costs_smooth(struct cp_costs *costs);

/*
 * Reads a table kept by cp_costs_save() if its fingerprint matches, over *costs: levels that the
 * file lacks, or that are configured, stay. Smooths. 0: loaded; CP_COSTS_FOREIGN: there is none or
 * it is of another machine, topology or kernel; negative errno with *error: unreadable or
 * malformed (the caller measures again). *costs is unchanged unless 0.
 */
#define CP_COSTS_FOREIGN 1
int cp_costs_load(struct cp_costs *costs, const char *path, const char *fingerprint,
                  struct cp_error *error);

/* Writes what was measured and observed (YAML, replaced atomically, mode 0644): neither configured
 * levels nor published defaults. The directory must exist. Negative errno with *error; the old file
 * then stays. Blocks for the disk. */
int cp_costs_save(const struct cp_costs *costs, const char *path, const char *fingerprint,
                  struct cp_error *error);
