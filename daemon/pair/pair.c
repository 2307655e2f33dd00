/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Windows of wake-ups to decayed statistics of pairs and tasks. Storage is table.c; what a pair is,
 * judge.c decides.
 *
 * Each record keeps decayed sums since it is known: hand-offs, the numbers of samples behind its
 * means, and the time looked at. A rate is hand-offs by time looked at, a mean is weighed by its
 * samples; so the first window sets both, a window of few hand-offs weighs little, and a window
 * that does not show the pair lowers its rate alone. Between the ends of two windows everything is
 * halved once every half-life: after a long pause the newest window stands alone.
 */
#include "pair/pair.h"

#include "base/cleanup.h"
#include "pair/judge.h"
#include "pair/strength.h"
#include "pair/table.h"

#include <math.h>
#include <string.h>

#define NS_PER_S 1e9
/* Below this decayed number of hand-offs the means of a direction say nothing any more. */
#define LEAST_HANDOFFS 1e-3f

void cp_pairs_config_init_default(struct cp_pairs_config *config)
{
    *config = (struct cp_pairs_config){
        .max_pairs = 8192,
        .max_tasks = 8192,
        .half_life_ns = UINT64_C(2000000000),
        .forget_ns = UINT64_C(60000000000),
    };
}

struct cp_pairs *cp_pairs_new(const struct cp_pairs_config *config)
{
    struct cp_pairs *pairs = calloc(1, sizeof(*pairs));

    if (pairs)
        pairs->config = *config;
    return pairs;
}

struct cp_pairs *cp_pairs_free(struct cp_pairs *pairs)
{
    if (pairs) {
        cp_pair_table_done(pairs);
        free(pairs);
    }
    return NULL;
}

void cp_pairs_set_levels(struct cp_pairs *pairs, const bool present[CP_LEVEL_MAX])
{
    memcpy(pairs->levels, present, sizeof(pairs->levels));
    pairs->levels_known = true;
}

/* Is this an edge between two tasks, with something in it? */
static bool edge_counts(const struct cp_wake_edge *edge)
{
    return edge->handoffs > 0 && edge->waker.tid != 0 && edge->wakee.tid != 0 &&
           !cp_task_id_equal(edge->waker, edge->wakee);
}

/* Makes room for everything in the sample that is new. */
static int reserve_for(struct cp_pairs *pairs, const struct cp_wake_sample *sample)
{
    size_t n_new_pairs = 0;
    size_t n_new_tasks = 0;

    for (size_t i = 0; i < sample->n_edges; i++)
        if (cp_pair_table_find_pair(pairs, sample->edges[i].waker, sample->edges[i].wakee) ==
            CP_PLACE_NONE)
            n_new_pairs++;
    for (size_t i = 0; i < sample->n_tasks; i++)
        if (cp_pair_table_find_task(pairs, sample->tasks[i].id) == CP_PLACE_NONE)
            n_new_tasks++;
    return cp_pair_table_reserve(pairs, n_new_pairs, n_new_tasks);
}

static void decay_direction(struct cp_direction *direction, struct cp_direction_weights *weights,
                            float factor)
{
    weights->handoffs *= factor;
    weights->n_latency *= factor;
    weights->n_tail *= factor;
    weights->n_run *= factor;
    weights->n_level *= factor;
    if (weights->handoffs < LEAST_HANDOFFS) {
        *weights = (struct cp_direction_weights){0};
        *direction = (struct cp_direction){0};
    }
}

/* Time goes on to the end of a window: all that is known fades, and is as old as it is. */
static void age(struct cp_pairs *pairs, double factor, double window_s)
{
    for (size_t i = 0; i < pairs->n_pairs; i++) {
        struct cp_pair_entry *entry = &pairs->pairs[i];

        decay_direction(&entry->pair.ab, &entry->weights[0], (float)factor);
        decay_direction(&entry->pair.ba, &entry->weights[1], (float)factor);
        entry->window_s = entry->window_s * factor + window_s;
        entry->n_missed++;
    }
    for (size_t i = 0; i < pairs->n_tasks; i++) {
        struct cp_task_entry *entry = &pairs->tasks[i];

        entry->run_s *= factor;
        entry->wait_s *= factor;
        entry->partner_s *= factor;
        entry->window_s = entry->window_s * factor + window_s;
        entry->n_missed++;
    }
}

static void add_to_mean(double *mean, float *weight, double sum, double n)
{
    double total = (double)*weight + n;

    if (n <= 0.0)
        return;
    *mean = (*mean * (double)*weight + sum) / total;
    *weight = (float)total;
}

static void add_levels(struct cp_direction *direction, float *weight, const uint64_t *level)
{
    double n = 0.0;
    double total;

    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        n += (double)level[l];
    if (n <= 0.0)
        return;
    total = (double)*weight + n;
    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        direction->level[l] = (direction->level[l] * (double)*weight + (double)level[l]) / total;
    *weight = (float)total;
}

static void add_edge(struct cp_direction *direction, struct cp_direction_weights *weights,
                     const struct cp_wake_edge *edge)
{
    float n_slept_of = weights->handoffs;

    add_to_mean(&direction->latency_ns, &weights->n_latency, (double)edge->latency_ns,
                (double)edge->n_latency);
    add_to_mean(&direction->tail_ns, &weights->n_tail, (double)edge->tail_ns, (double)edge->n_tail);
    add_to_mean(&direction->run_ns, &weights->n_run, (double)edge->run_ns, (double)edge->n_run);
    add_to_mean(&direction->slept_share, &n_slept_of, (double)CP_MIN(edge->slept, edge->handoffs),
                (double)edge->handoffs);
    add_levels(direction, &weights->n_level, edge->level);
    weights->handoffs += (float)edge->handoffs;
}

static void merge_tasks(struct cp_pairs *pairs, const struct cp_wake_sample *sample,
                        double window_s)
{
    for (size_t i = 0; i < sample->n_tasks; i++) {
        const struct cp_wake_task *seen = &sample->tasks[i];
        uint32_t place = cp_pair_table_find_task(pairs, seen->id);
        struct cp_task_entry *entry;

        if (seen->id.tid == 0)
            continue;
        if (place != CP_PLACE_NONE) {
            entry = &pairs->tasks[place];
        } else {
            entry = cp_pair_table_add_task(pairs, seen->id);
            entry->window_s = window_s;
        }
        entry->task.tgid = seen->tgid;
        entry->task.uid = seen->uid;
        memcpy(entry->task.comm, seen->comm, sizeof(entry->task.comm));
        entry->task.comm[sizeof(entry->task.comm) - 1] = '\0';
        entry->task.last_seen_ns = sample->end_ns;
        if (entry->task.n_windows < UINT32_MAX)
            entry->task.n_windows++;
        entry->n_missed = 0;
        entry->run_s += (double)seen->run_ns / NS_PER_S;
        entry->wait_s += (double)seen->wait_ns / NS_PER_S;
        entry->partner_s += (double)seen->partner_ns / NS_PER_S;
    }
}

static void merge_edges(struct cp_pairs *pairs, const struct cp_wake_sample *sample,
                        double window_s)
{
    for (size_t i = 0; i < sample->n_edges; i++) {
        const struct cp_wake_edge *edge = &sample->edges[i];
        uint32_t place = cp_pair_table_find_pair(pairs, edge->waker, edge->wakee);
        struct cp_pair_entry *entry;
        bool forward;

        if (!edge_counts(edge) || cp_pair_table_find_task(pairs, edge->waker) == CP_PLACE_NONE ||
            cp_pair_table_find_task(pairs, edge->wakee) == CP_PLACE_NONE)
            continue;
        if (place != CP_PLACE_NONE) {
            entry = &pairs->pairs[place];
        } else {
            entry = cp_pair_table_add_pair(pairs, edge->waker, edge->wakee);
            entry->window_s = window_s;
            entry->pair.first_seen_ns = sample->begin_ns;
        }
        /* Both directions come in one window, which counts once. */
        if (entry->pair.last_seen_ns != sample->end_ns && entry->pair.n_windows < UINT32_MAX)
            entry->pair.n_windows++;
        entry->pair.last_seen_ns = sample->end_ns;
        entry->n_missed = 0;
        forward = cp_task_id_equal(edge->waker, entry->pair.a);
        add_edge(forward ? &entry->pair.ab : &entry->pair.ba, &entry->weights[forward ? 0 : 1],
                 edge);
    }
}

/* Figures of the records from their sums. */
static void derive(struct cp_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n_pairs; i++) {
        struct cp_pair_entry *entry = &pairs->pairs[i];
        double n_ab = (double)entry->weights[0].handoffs;
        double n_ba = (double)entry->weights[1].handoffs;

        entry->pair.handoffs = n_ab + n_ba;
        entry->pair.ab.rate_hz = entry->window_s > 0.0 ? n_ab / entry->window_s : 0.0;
        entry->pair.ba.rate_hz = entry->window_s > 0.0 ? n_ba / entry->window_s : 0.0;
    }
    for (size_t i = 0; i < pairs->n_tasks; i++) {
        struct cp_task_entry *entry = &pairs->tasks[i];
        double awake_s = entry->run_s + entry->wait_s;
        double outside_s = CP_MAX(entry->wait_s - entry->partner_s, 0.0);

        entry->task.load = entry->window_s > 0.0 ? entry->run_s / entry->window_s : 0.0;
        entry->task.wait_share = awake_s > 0.0 ? entry->wait_s / awake_s : 0.0;
        entry->task.outside_share = awake_s > 0.0 ? outside_s / awake_s : 0.0;
    }
    pairs->is_ordered = false;
}

static int compare_edges(const void *x, const void *y)
{
    const struct cp_wake_edge *a = x;
    const struct cp_wake_edge *b = y;
    int order = cp_task_id_compare(a->waker, b->waker);

    return order != 0 ? order : cp_task_id_compare(a->wakee, b->wakee);
}

static const struct cp_wake_edge *find_edge(const struct cp_wake_sample *sample,
                                            struct cp_task_id waker, struct cp_task_id wakee)
{
    const struct cp_wake_edge key = {.waker = waker, .wakee = wakee};

    return bsearch(&key, sample->edges, sample->n_edges, sizeof(key), compare_edges);
}

static int compare_tasks(const void *x, const void *y)
{
    const struct cp_wake_task *a = x;
    const struct cp_wake_task *b = y;

    return cp_task_id_compare(a->id, b->id);
}

static double load_in(const struct cp_wake_sample *sample, struct cp_task_id task, double window_s)
{
    const struct cp_wake_task key = {.id = task};
    const struct cp_wake_task *found =
        bsearch(&key, sample->tasks, sample->n_tasks, sizeof(key), compare_tasks);

    return found ? (double)found->run_ns / NS_PER_S / window_s : 0.0;
}

/* If this window shows the pair of an edge apart: remembers what it is like there. */
static void note_apart(struct cp_pair *pair, const struct cp_wake_sample *sample, double window_s)
{
    const struct cp_wake_edge *edges[] = {find_edge(sample, pair->a, pair->b),
                                          find_edge(sample, pair->b, pair->a)};
    struct cp_pair_apart apart = {.seen_ns = sample->end_ns};
    double n = 0.0; /* hand-offs whose level is known: windows cut off the last ones */
    double n_apart = 0.0;

    for (unsigned i = 0; i < CP_ELEMENTS(edges); i++) {
        const struct cp_wake_edge *edge = edges[i];

        if (!edge)
            continue;
        for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++) {
            n += (double)edge->level[l];
            n_apart += l != CP_LEVEL_CPU ? (double)edge->level[l] : 0.0;
        }
        apart.rate_hz[i] = (float)((double)edge->handoffs / window_s);
        if (edge->n_tail > 0)
            apart.tail_ns[i] = (float)((double)edge->tail_ns / (double)edge->n_tail);
        if (edge->n_run > 0)
            apart.run_ns[i] = (float)((double)edge->run_ns / (double)edge->n_run);
    }
    if (n < CP_JUDGE_MIN_HANDOFFS || n_apart < (1.0 - CP_JUDGE_MAX_STACKED_SHARE) * n)
        return;
    apart.load = (float)(load_in(sample, pair->a, window_s) + load_in(sample, pair->b, window_s));
    pair->apart = apart;
}

/* Of each pair of the sample, whether by one edge or by two. */
static void note_all_apart(struct cp_pairs *pairs, const struct cp_wake_sample *sample,
                           double window_s)
{
    for (size_t i = 0; i < sample->n_edges; i++) {
        const struct cp_wake_edge *edge = &sample->edges[i];
        uint32_t place = cp_pair_table_find_pair(pairs, edge->waker, edge->wakee);

        if (place != CP_PLACE_NONE && pairs->pairs[place].pair.apart.seen_ns != sample->end_ns)
            note_apart(&pairs->pairs[place].pair, sample, window_s);
    }
}

int cp_pairs_feed(struct cp_pairs *pairs, const struct cp_wake_sample *sample)
{
    uint64_t since_ns;
    double window_s;
    double factor = 0.0;
    int r;

    if (sample->end_ns <= sample->begin_ns)
        return 0;
    r = reserve_for(pairs, sample);
    if (r < 0)
        return r;
    window_s = (double)(sample->end_ns - sample->begin_ns) / NS_PER_S;
    since_ns = sample->end_ns > pairs->last_end_ns ? sample->end_ns - pairs->last_end_ns : 0;
    if (pairs->config.half_life_ns > 0)
        factor = exp2(-(double)since_ns / (double)pairs->config.half_life_ns);
    pairs->last_end_ns = CP_MAX(pairs->last_end_ns, sample->end_ns);

    age(pairs, factor, window_s);
    merge_tasks(pairs, sample, window_s);
    merge_edges(pairs, sample, window_s);
    derive(pairs);
    note_all_apart(pairs, sample, window_s);
    cp_strength_trim(pairs);
    return 0;
}

static void reset_task(struct cp_pairs *pairs, struct cp_task_id task)
{
    uint32_t place = cp_pair_table_find_task(pairs, task);

    if (place != CP_PLACE_NONE) {
        struct cp_task_entry *entry = &pairs->tasks[place];

        entry->run_s = entry->wait_s = entry->partner_s = entry->window_s = 0.0;
        entry->task.n_windows = 0;
    }
}

void cp_pairs_reset_pair(struct cp_pairs *pairs, struct cp_task_id a, struct cp_task_id b)
{
    uint32_t place = cp_pair_table_find_pair(pairs, a, b);

    if (place != CP_PLACE_NONE) {
        struct cp_pair_entry *entry = &pairs->pairs[place];

        entry->pair.ab = entry->pair.ba = (struct cp_direction){0};
        memset(entry->weights, 0, sizeof(entry->weights));
        entry->window_s = 0.0;
        entry->pair.n_windows = 0;
    }
    reset_task(pairs, a);
    reset_task(pairs, b);
    derive(pairs);
    cp_strength_relate(pairs);
}

void cp_pairs_forget_task(struct cp_pairs *pairs, struct cp_task_id task)
{
    uint32_t place = cp_pair_table_find_task(pairs, task);

    if (place == CP_PLACE_NONE)
        return;
    pairs->tasks[place].drop = true;
    (void)cp_pair_table_sweep(pairs);
    cp_strength_relate(pairs);
}

size_t cp_pairs_list(struct cp_pairs *pairs, const struct cp_pair *const **ret_pairs)
{
    cp_strength_sort(pairs);
    *ret_pairs = pairs->order;
    return pairs->n_pairs;
}

const struct cp_pair *cp_pairs_find(const struct cp_pairs *pairs, struct cp_task_id a,
                                    struct cp_task_id b)
{
    uint32_t place = cp_pair_table_find_pair(pairs, a, b);

    return place != CP_PLACE_NONE ? &pairs->pairs[place].pair : NULL;
}

const struct cp_pair *cp_pairs_strongest(const struct cp_pairs *pairs, struct cp_task_id task)
{
    uint32_t place = cp_pair_table_find_task(pairs, task);

    if (place == CP_PLACE_NONE || pairs->tasks[place].strongest == CP_PLACE_NONE)
        return NULL;
    return &pairs->pairs[pairs->tasks[place].strongest].pair;
}

const struct cp_pair_task *cp_pairs_find_task(const struct cp_pairs *pairs, struct cp_task_id task)
{
    uint32_t place = cp_pair_table_find_task(pairs, task);

    return place != CP_PLACE_NONE ? &pairs->tasks[place].task : NULL;
}

size_t cp_pairs_count(const struct cp_pairs *pairs)
{
    return pairs->n_pairs;
}

uint64_t cp_pairs_n_evicted(const struct cp_pairs *pairs)
{
    return pairs->n_evicted;
}
