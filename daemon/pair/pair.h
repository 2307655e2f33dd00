/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From windows of wake-ups to relations: a bounded table of pairs and tasks whose statistics decay,
 * and what each pair is (serial, overlapping, wide, none), with the reason.
 *
 * Pure: no system call, no clock; time is an argument. Fed by the wake source's samples, read by
 * plan. Pairs are undirected here; both directions are kept inside.
 */
#pragma once

#include "base/proc.h"
#include "base/task-id.h"
#include "machine/costs.h"
#include "pair/model.h"
#include "policy/policy.h"
#include "wake/wake.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cp_relation {
    CP_RELATION_NONE,
    CP_RELATION_SERIAL,      /* alternates: one CPU serves it best */
    CP_RELATION_OVERLAPPING, /* mutual, but both have work to do at the same time */
    CP_RELATION_WIDE,        /* one of them wakes many that do not answer 1:1 */
    CP_RELATION_MAX,
};

/* Why the relation is what it is; stable words for people and scripts. */
enum cp_relation_reason {
    CP_WHY_STACKING_GAINS,    /* serial: the model predicts a gain on one CPU */
    CP_WHY_RUNS_IN_PARALLEL,  /* overlapping: serialisation would cost more than the hand-off */
    CP_WHY_TOO_MUCH_RUN_TIME, /* overlapping: the two do not fit one CPU */
    CP_WHY_BELOW_RATE,        /* none: rate below min-rate */
    CP_WHY_ONE_WAY,           /* none: not mutual */
    CP_WHY_NOT_EXCLUSIVE,     /* none: one of them has other partners */
    CP_WHY_FAN_OUT,           /* wide */
    CP_WHY_TOO_FEW_SAMPLES,   /* none: fewer hand-offs than a verdict needs */
    CP_WHY_MAX,
};

const char *cp_relation_to_string(enum cp_relation relation);
/* "stacking-gains", "runs-in-parallel", … */
const char *cp_relation_reason_to_string(enum cp_relation_reason reason);

/* One direction, decayed. Means in ns; a mean without samples is 0. */
struct cp_direction {
    double rate_hz;
    double latency_ns;
    double tail_ns;
    double run_ns;
    double slept_share;         /* 0-1 */
    double level[CP_LEVEL_MAX]; /* shares, sum 1 or all 0 */
};

/*
 * What a pair showed when its hand-offs last went between CPUs; [0] is a wakes b, [1] b wakes a.
 * Only such hand-offs tell how the two depend on each other (judge.c says why), so this outlives
 * cp_pairs_reset_pair() and the time that the pair spends on one CPU.
 */
struct cp_pair_apart {
    float rate_hz[2];
    float tail_ns[2];
    float run_ns[2];
    float load;       /* of the two together, CPUs */
    uint64_t seen_ns; /* 0: never seen apart */
};

struct cp_pair {
    struct cp_task_id a; /* a < b by cp_task_id_compare() */
    struct cp_task_id b;
    struct cp_direction ab; /* a wakes b */
    struct cp_direction ba;
    struct cp_pair_apart apart;
    uint64_t first_seen_ns;
    uint64_t last_seen_ns;
    unsigned n_windows; /* windows in which it was seen since the last reset, saturating */
    double handoffs;    /* decayed number of hand-offs behind the means */
};

struct cp_pair_task {
    struct cp_task_id id;
    pid_t tgid;
    uid_t uid;
    char comm[CP_COMM_SIZE];
    double fan_out;       /* inverse Simpson index over its wakees; 0: wakes nobody */
    double wakes_hz;      /* hand-offs it gives, a second, all partners in the table */
    double unanswered;    /* share of wakes_hz to partners that answer less than every second one */
    double load;          /* run time, CPUs (1.0 = one CPU) */
    double wait_share;    /* of the time it was runnable or running, the part spent waiting */
    double outside_share; /* of that same time, waiting that its partner's run does not explain */
    unsigned n_windows;   /* behind load and shares since the last reset; 0: they are unknown */
    uint64_t last_seen_ns;
};

struct cp_pair_verdict {
    enum cp_relation relation;
    enum cp_relation_reason reason;
    double rate_hz;                    /* both directions */
    double balance;                    /* min/max of the two rates, 0-1 */
    double stacking_gain;              /* ns a second on one CPU against now; 0 if it is there */
    struct cp_handoff_profile profile; /* both directions, weighted by rate */
};

struct cp_pairs;

struct cp_pairs_config {
    size_t max_pairs;      /* beyond: the weakest are evicted and counted */
    size_t max_tasks;      /* likewise, with their pairs */
    uint64_t half_life_ns; /* of the statistics: 2 s by default; windows weigh by their hand-offs */
    uint64_t forget_ns;    /* unseen for so long, and in two windows: dropped */
};

void cp_pairs_config_init_default(struct cp_pairs_config *config); /* 8192, 8192, 2 s, 60 s */

struct cp_pairs *cp_pairs_new(const struct cp_pairs_config *config); /* NULL: no memory */
struct cp_pairs *cp_pairs_free(struct cp_pairs *pairs);              /* accepts, returns NULL */

/*
 * Tells between which levels this machine's CPUs can stand apart (cp_machine_levels_present()):
 * judging compares one CPU with these alone. Until then the levels are guessed from the cost table
 * (those whose cost is no default) and from where the pair was seen.
 */
void cp_pairs_set_levels(struct cp_pairs *pairs, const bool present[CP_LEVEL_MAX]);

/*
 * Takes a window in: rates of pairs seen before but not in this window decay towards 0. The newest
 * window dominates after a change of placement: see cp_pairs_reset_pair(). A window that does not
 * end after it begins is ignored; so are wakes of oneself, wakes by the idle task (TID 0) and edges
 * whose tasks are not in the sample. -ENOMEM: the table is as before. Cost: O((pairs + edges) log).
 */
int cp_pairs_feed(struct cp_pairs *pairs, const struct cp_wake_sample *sample);

/* Forgets the statistics of one pair and its tasks (their placement changed: the old means do not
 * hold any more); the next window starts them anew. What it showed apart (struct cp_pair_apart)
 * stays. Unknown pairs are accepted. */
void cp_pairs_reset_pair(struct cp_pairs *pairs, struct cp_task_id a, struct cp_task_id b);

/* Drops a task and its pairs (it ended). */
void cp_pairs_forget_task(struct cp_pairs *pairs, struct cp_task_id task);

/* All pairs, strongest total rate first, of equal ones those of the lower ids first. Borrowed until
 * the next feed, reset or forget. */
size_t cp_pairs_list(struct cp_pairs *pairs, const struct cp_pair *const **ret_pairs);
/* The pair of two tasks in either order, or NULL. Borrowed as above. */
const struct cp_pair *cp_pairs_find(const struct cp_pairs *pairs, struct cp_task_id a,
                                    struct cp_task_id b);
/* The strongest pair of a task, or NULL. */
const struct cp_pair *cp_pairs_strongest(const struct cp_pairs *pairs, struct cp_task_id task);
const struct cp_pair_task *cp_pairs_find_task(const struct cp_pairs *pairs, struct cp_task_id task);
size_t cp_pairs_count(const struct cp_pairs *pairs);
/* Pairs and tasks that found no room, since the beginning; forgotten ones do not count. */
uint64_t cp_pairs_n_evicted(const struct cp_pairs *pairs);

/*
 * Relation of a pair under a policy and a cost table (design, section 4, "Relation"): mutual
 * (min/max of the rates ≥ 0.5), exclusive (fan-out < 1.5 on both), total rate ≥ min-rate; then
 * serial if one CPU is predicted to be cheaper than the cheapest level apart and the run time of
 * both fits one CPU (sum of loads ≤ 1.0), else overlapping. wide: fan-out ≥ 4 of either towards
 * partners that do not answer 1:1.
 * The relation does not depend on where the two are: of a pair that runs on one CPU, balance, tail
 * and run (also in the profile) are those last seen apart, where they are known. judge.c has the
 * reasons.
 */
void cp_pair_judge(const struct cp_pairs *pairs, const struct cp_pair *pair,
                   const struct cp_policy *policy, const struct cp_costs *costs,
                   struct cp_pair_verdict *ret_verdict);
