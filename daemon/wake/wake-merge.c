/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See wake-merge.h. Edges are collected in parts, sorted, and neighbours of one pair added up. */
#include "wake/wake-merge.h"

#include "base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_tasks(const void *a, const void *b)
{
    const struct cp_wake_task *left = a;
    const struct cp_wake_task *right = b;

    return cp_task_id_compare(left->id, right->id);
}

static int compare_edges(const void *a, const void *b)
{
    const struct cp_wake_edge *left = a;
    const struct cp_wake_edge *right = b;
    int r = cp_task_id_compare(left->waker, right->waker);

    return r != 0 ? r : cp_task_id_compare(left->wakee, right->wakee);
}

static int compare_handoffs(const void *a, const void *b)
{
    const struct cp_wake_edge *left = a;
    const struct cp_wake_edge *right = b;

    if (left->handoffs != right->handoffs)
        return left->handoffs > right->handoffs ? -1 : 1;
    return compare_edges(a, b);
}

static uint64_t time_since(uint64_t since_ns, uint64_t end_ns)
{
    return since_ns != 0 && since_ns < end_ns ? end_ns - since_ns : 0;
}

static void convert_task(const struct cp_wake_abi_task *record, uint64_t end_ns,
                         struct cp_wake_task *task)
{
    const struct cp_wake_abi_state *state = &record->state;

    *task = (struct cp_wake_task){
        .id = {.tid = (pid_t)record->tid, .start_ticks = record->start_ticks},
        .tgid = (pid_t)record->tgid,
        .uid = record->uid,
        .run_ns = state->run_ns + time_since(state->on_since_ns, end_ns),
        .wait_ns = state->wait_ns,
        .preempted_ns = state->preempted_ns,
        .partner_ns = state->partner_ns,
    };
    static_assert(sizeof(task->comm) == sizeof(record->comm), "both are TASK_COMM_LEN");
    memcpy(task->comm, record->comm, sizeof(task->comm));
    task->comm[sizeof(task->comm) - 1] = '\0';
    /* A running task may have been woken before it slept: that is no wait. */
    if (state->on_since_ns != 0)
        return;
    if (state->wake_ns != 0) {
        task->wait_ns += time_since(state->wake_ns, end_ns);
    } else {
        task->wait_ns += time_since(state->preempted_at_ns, end_ns);
        task->preempted_ns += time_since(state->preempted_at_ns, end_ns);
    }
}

struct edge_list {
    const struct cp_wake_task *tasks; /* sorted */
    size_t n_tasks;
    struct cp_wake_edge *edges;
    size_t n_edges;
};

/* The task of that TID, or NULL. TIDs are unique at one moment, so sorting by id sorts by TID. */
static const struct cp_wake_task *find_task(const struct edge_list *list, uint32_t tid)
{
    size_t low = 0;
    size_t high = list->n_tasks;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list->tasks[middle].id.tid < (pid_t)tid)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == list->n_tasks || list->tasks[low].id.tid != (pid_t)tid)
        return NULL;
    return &list->tasks[low];
}

/* A new part of the edge of two tasks, NULL if one of them has ended. */
static struct cp_wake_edge *add_part(struct edge_list *list, uint32_t waker, uint32_t wakee)
{
    const struct cp_wake_task *waker_task = find_task(list, waker);
    const struct cp_wake_task *wakee_task = find_task(list, wakee);
    struct cp_wake_edge *edge;

    if (!waker_task || !wakee_task)
        return NULL;
    edge = &list->edges[list->n_edges++];
    *edge = (struct cp_wake_edge){.waker = waker_task->id, .wakee = wakee_task->id};
    return edge;
}

static void add_table_part(struct edge_list *list, const struct cp_wake_abi_edge_key *key,
                           const struct cp_wake_abi_edge *part)
{
    struct cp_wake_edge *edge = add_part(list, key->waker, key->wakee);

    if (!edge)
        return;
    edge->handoffs = part->handoffs;
    edge->slept = part->slept;
    edge->tail_ns = part->tail_ns;
    edge->n_tail = part->n_tail;
    edge->latency_ns = part->latency_ns;
    edge->n_latency = part->n_latency;
    edge->run_ns = part->run_ns;
    edge->n_run = part->n_run;
    for (int i = 0; i < CP_LEVEL_MAX; i++)
        edge->level[i] = part->level[i];
}

static void add_held_parts(struct edge_list *list, const struct cp_wake_abi_task *record)
{
    const struct cp_wake_abi_out *out = &record->state.out;
    const struct cp_wake_abi_in *in = &record->state.in;
    struct cp_wake_edge *edge;

    edge = out->wakee != 0 ? add_part(list, record->tid, out->wakee) : NULL;
    if (edge) {
        edge->handoffs = out->handoffs;
        edge->slept = out->slept;
        edge->tail_ns = out->tail_ns;
        edge->n_tail = out->n_tail;
    }
    edge = in->waker != 0 ? add_part(list, in->waker, record->tid) : NULL;
    if (edge) {
        edge->latency_ns = in->latency_ns;
        edge->n_latency = in->n_latency;
        edge->run_ns = in->run_ns;
        edge->n_run = in->n_run;
        for (int i = 0; i < CP_LEVEL_MAX; i++)
            edge->level[i] = in->level[i];
    }
}

static void add_up(struct cp_wake_edge *sum, const struct cp_wake_edge *part)
{
    sum->handoffs += part->handoffs;
    sum->slept += part->slept;
    sum->tail_ns += part->tail_ns;
    sum->n_tail += part->n_tail;
    sum->latency_ns += part->latency_ns;
    sum->n_latency += part->n_latency;
    sum->run_ns += part->run_ns;
    sum->n_run += part->n_run;
    for (int i = 0; i < CP_LEVEL_MAX; i++)
        sum->level[i] += part->level[i];
}

/* Adds up the parts of each pair and leaves out pairs without a hand-off; gives the number left. */
static size_t unite_parts(struct cp_wake_edge *edges, size_t n_edges)
{
    size_t n = 0;

    if (n_edges > 0)
        qsort(edges, n_edges, sizeof(*edges), compare_edges);
    for (size_t i = 0; i < n_edges;) {
        struct cp_wake_edge sum = edges[i++];

        for (; i < n_edges && compare_edges(&sum, &edges[i]) == 0; i++)
            add_up(&sum, &edges[i]);
        if (sum.handoffs > 0)
            edges[n++] = sum;
    }
    return n;
}

/* Keeps the strongest; gives the number of hand-offs of the others. */
static uint64_t keep_strongest(struct cp_wake_edge *edges, size_t n_edges, size_t max_edges)
{
    uint64_t n_dropped = 0;

    qsort(edges, n_edges, sizeof(*edges), compare_handoffs);
    for (size_t i = max_edges; i < n_edges; i++)
        n_dropped += edges[i].handoffs;
    qsort(edges, max_edges, sizeof(*edges), compare_edges);
    return n_dropped;
}

/* Gives back what the parts took beyond the edges that they became. */
static void shrink(struct cp_wake_edge **edges, size_t n_edges)
{
    struct cp_wake_edge *smaller =
        reallocarray(*edges, CP_MAX(n_edges, (size_t)1), sizeof(**edges));

    if (smaller)
        *edges = smaller;
}

int cp_wake_merge(const struct cp_wake_records *records, size_t max_edges,
                  struct cp_wake_sample *ret_sample)
{
    _cleanup_free_ struct cp_wake_task *tasks = NULL;
    _cleanup_free_ struct cp_wake_edge *edges = NULL;
    size_t max_parts = records->n_edges + 2 * records->n_tasks;
    struct edge_list list;
    uint64_t n_dropped = 0;

    tasks = calloc(CP_MAX(records->n_tasks, (size_t)1), sizeof(*tasks));
    edges = calloc(CP_MAX(max_parts, (size_t)1), sizeof(*edges));
    if (!tasks || !edges)
        return -ENOMEM;
    for (size_t i = 0; i < records->n_tasks; i++)
        convert_task(&records->tasks[i], records->end_ns, &tasks[i]);
    qsort(tasks, records->n_tasks, sizeof(*tasks), compare_tasks);
    list = (struct edge_list){.tasks = tasks, .n_tasks = records->n_tasks, .edges = edges};
    for (size_t i = 0; i < records->n_edges; i++)
        add_table_part(&list, &records->keys[i], &records->edges[i]);
    for (size_t i = 0; i < records->n_tasks; i++)
        add_held_parts(&list, &records->tasks[i]);
    list.n_edges = unite_parts(edges, list.n_edges);
    if (list.n_edges > max_edges) {
        n_dropped = keep_strongest(edges, list.n_edges, max_edges);
        list.n_edges = max_edges;
    }
    shrink(&edges, list.n_edges);
    ret_sample->n_tasks = records->n_tasks;
    ret_sample->tasks = TAKE_PTR(tasks);
    ret_sample->n_edges = list.n_edges;
    ret_sample->edges = TAKE_PTR(edges);
    ret_sample->n_dropped += n_dropped;
    return 0;
}
