/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The storage of pairs and tasks: dense arrays that grow on demand, each with an open-addressing
 * index from ids to places. Knows nothing of windows, decay or relations (pair.c, judge.c).
 * Private to pair/.
 *
 * What can fail is kept apart: cp_pair_table_reserve() allocates, everything else cannot fail.
 * Places and pointers hold until the next cp_pair_table_reserve() or cp_pair_table_sweep().
 */
#pragma once

#include "pair/pair.h"

#define CP_PLACE_NONE UINT32_MAX

/* Decayed numbers of samples behind the means of one direction. Floats: there are many of them and
 * they only weigh. */
struct cp_direction_weights {
    float handoffs;
    float n_latency;
    float n_tail;
    float n_run;
    float n_level;
};

struct cp_pair_entry {
    struct cp_pair pair;
    struct cp_direction_weights weights[2]; /* of pair.ab, pair.ba */
    double window_s;                        /* decayed time looked at since it is known */
    unsigned n_missed;                      /* windows since it was last seen */
    bool drop;                              /* the next sweep removes it */
};

struct cp_task_entry {
    struct cp_pair_task task;
    double run_s; /* decayed, as are the next three */
    double wait_s;
    double partner_s;
    double window_s;
    double squares;     /* sum of the squared rates of what it wakes */
    double strength_hz; /* total rate of its pairs */
    uint32_t strongest; /* place of its strongest pair, or CP_PLACE_NONE */
    unsigned n_missed;
    bool drop;
};

/* Slots hold place + 1; 0 is free. The number of slots is a power of two. */
struct cp_index {
    uint32_t *slots;
    size_t n_slots;
};

struct cp_pairs {
    struct cp_pairs_config config;
    struct cp_pair_entry *pairs;
    size_t n_pairs;
    size_t pairs_capacity;
    struct cp_task_entry *tasks;
    size_t n_tasks;
    size_t tasks_capacity;
    struct cp_index pair_index;
    struct cp_index task_index;
    const struct cp_pair **order; /* pairs_capacity pointers: pairs, strongest first */
    bool is_ordered;
    uint32_t *task_order; /* tasks_capacity places; scratch of eviction */
    uint64_t last_end_ns; /* of the windows taken in; 0: none yet */
    uint64_t n_evicted;
    bool levels_known;
    bool levels[CP_LEVEL_MAX];
};

/* Rooms for so many pairs and tasks more, beyond the bounds too: a window is taken in first, then
 * the weakest go. -ENOMEM: nothing is lost. */
int cp_pair_table_reserve(struct cp_pairs *pairs, size_t n_more_pairs, size_t n_more_tasks);

/* Place of a pair (in either order of its tasks) or task, CP_PLACE_NONE if unknown. */
uint32_t cp_pair_table_find_pair(const struct cp_pairs *pairs, struct cp_task_id a,
                                 struct cp_task_id b);
uint32_t cp_pair_table_find_task(const struct cp_pairs *pairs, struct cp_task_id task);

/* Adds an unknown pair or task, zeroed but for its ids; room must be reserved. */
struct cp_pair_entry *cp_pair_table_add_pair(struct cp_pairs *pairs, struct cp_task_id a,
                                             struct cp_task_id b);
struct cp_task_entry *cp_pair_table_add_task(struct cp_pairs *pairs, struct cp_task_id task);

/* Removes entries marked drop, and pairs of which a task is not in the table. Returns how many
 * pairs and tasks went. */
size_t cp_pair_table_sweep(struct cp_pairs *pairs);

void cp_pair_table_done(struct cp_pairs *pairs);
