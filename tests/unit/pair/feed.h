/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Windows of wake-ups made by hand, for the tests of pair/ and ledger/. */
#pragma once

#include "pair/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)
#define FEED_MAX_EDGES 512u
#define FEED_MAX_TASKS 512u

struct feed {
    struct cp_wake_sample sample;
    struct cp_wake_edge edges[FEED_MAX_EDGES];
    struct cp_wake_task tasks[FEED_MAX_TASKS];
};

static inline struct cp_task_id task_id(pid_t tid)
{
    return (struct cp_task_id){.tid = tid, .start_ticks = 1000 + (uint64_t)tid};
}

static inline void feed_begin(struct feed *feed, uint64_t begin_ns, uint64_t end_ns)
{
    memset(feed, 0, sizeof(*feed));
    feed->sample.begin_ns = begin_ns;
    feed->sample.end_ns = end_ns;
    feed->sample.edges = feed->edges;
    feed->sample.tasks = feed->tasks;
}

/* The record of a task in the window, new or there already. */
static inline struct cp_wake_task *feed_task(struct feed *feed, struct cp_task_id id)
{
    struct cp_wake_task *task;

    for (size_t i = 0; i < feed->sample.n_tasks; i++)
        if (cp_task_id_equal(feed->tasks[i].id, id))
            return &feed->tasks[i];
    assert_true(feed->sample.n_tasks < FEED_MAX_TASKS);
    task = &feed->tasks[feed->sample.n_tasks++];
    task->id = id;
    task->tgid = id.tid;
    task->uid = 1000;
    (void)snprintf(task->comm, sizeof(task->comm), "task-%d", id.tid);
    return task;
}

/* One direction: n hand-offs at a level, each with these means. Adds run to the wakee's run time.
 */
static inline struct cp_wake_edge *feed_edge(struct feed *feed, struct cp_task_id waker,
                                             struct cp_task_id wakee, uint64_t n,
                                             enum cp_level level, uint64_t latency_ns,
                                             uint64_t tail_ns, uint64_t run_ns)
{
    struct cp_wake_edge *edge;

    assert_true(feed->sample.n_edges < FEED_MAX_EDGES);
    edge = &feed->edges[feed->sample.n_edges++];
    *edge = (struct cp_wake_edge){
        .waker = waker,
        .wakee = wakee,
        .handoffs = n,
        .slept = n,
        .tail_ns = n * tail_ns,
        .n_tail = n,
        .latency_ns = n * latency_ns,
        .n_latency = n,
        .run_ns = n * run_ns,
        .n_run = n,
    };
    edge->level[level] = n;
    (void)feed_task(feed, waker);
    feed_task(feed, wakee)->run_ns += n * run_ns;
    return edge;
}

static inline int feed_compare_edges(const void *x, const void *y)
{
    const struct cp_wake_edge *a = x;
    const struct cp_wake_edge *b = y;
    int order = cp_task_id_compare(a->waker, b->waker);

    return order != 0 ? order : cp_task_id_compare(a->wakee, b->wakee);
}

static inline int feed_compare_tasks(const void *x, const void *y)
{
    return cp_task_id_compare(((const struct cp_wake_task *)x)->id,
                              ((const struct cp_wake_task *)y)->id);
}

/* Sorts as the wake source does, and hands the window over. */
static inline void feed_into(struct feed *feed, struct cp_pairs *pairs)
{
    if (feed->sample.n_edges > 0)
        qsort(feed->edges, feed->sample.n_edges, sizeof(feed->edges[0]), feed_compare_edges);
    if (feed->sample.n_tasks > 0)
        qsort(feed->tasks, feed->sample.n_tasks, sizeof(feed->tasks[0]), feed_compare_tasks);
    assert_int_equal(cp_pairs_feed(pairs, &feed->sample), 0);
}

static inline struct cp_pairs *new_pairs(void)
{
    struct cp_pairs_config config;
    struct cp_pairs *pairs;

    cp_pairs_config_init_default(&config);
    pairs = cp_pairs_new(&config);
    assert_non_null(pairs);
    return pairs;
}
