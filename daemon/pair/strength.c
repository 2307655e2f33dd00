/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How strong pairs and tasks are, and so which of them stay. See strength.h.
 */
#include "pair/strength.h"

#include "base/cleanup.h"
#include "pair/judge.h"

/* A rarely looked at table must not lose everything that one window did not show. */
#define MISSED_TO_FORGET 2u

static double total_hz(const struct cp_pair *pair)
{
    return pair->ab.rate_hz + pair->ba.rate_hz;
}

/* Strongest first; the order of ids makes it total. */
static int compare_strength(const struct cp_pair *x, const struct cp_pair *y)
{
    int order;

    if (total_hz(x) != total_hz(y))
        return total_hz(x) > total_hz(y) ? -1 : 1;
    order = cp_task_id_compare(x->a, y->a);
    return order != 0 ? order : cp_task_id_compare(x->b, y->b);
}

static int compare_order(const void *x, const void *y)
{
    return compare_strength(*(const struct cp_pair *const *)x, *(const struct cp_pair *const *)y);
}

void cp_strength_sort(struct cp_pairs *pairs)
{
    if (pairs->is_ordered)
        return;
    for (size_t i = 0; i < pairs->n_pairs; i++)
        pairs->order[i] = &pairs->pairs[i].pair;
    if (pairs->n_pairs > 0)
        qsort(pairs->order, pairs->n_pairs, sizeof(const struct cp_pair *), compare_order);
    pairs->is_ordered = true;
}

/* Adds one direction of a pair to what its waker gives. */
static void add_wakes(struct cp_task_entry *waker, const struct cp_direction *gives,
                      const struct cp_direction *gets)
{
    double on_one_cpu = gives->rate_hz * gives->level[CP_LEVEL_CPU];
    double answers_there = gets->rate_hz * gets->level[CP_LEVEL_CPU];
    double handed_hz = gives->rate_hz + CP_MAX(answers_there - on_one_cpu, 0.0);

    waker->task.wakes_hz += gives->rate_hz;
    if (gets->rate_hz < CP_JUDGE_MIN_BALANCE * gives->rate_hz)
        waker->task.unanswered += gives->rate_hz;
    /* On one CPU a task that preempts its waker gives the CPU back without a wake: that is a
     * hand-off to the waker too, or any rare third wakee would look like a second partner. */
    waker->task.fan_out += handed_hz;
    waker->squares += handed_hz * handed_hz;
}

void cp_strength_relate(struct cp_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n_tasks; i++) {
        struct cp_task_entry *entry = &pairs->tasks[i];

        entry->task.fan_out = entry->task.wakes_hz = entry->task.unanswered = 0.0;
        entry->squares = entry->strength_hz = 0.0;
        entry->strongest = CP_PLACE_NONE;
    }
    for (size_t i = 0; i < pairs->n_pairs; i++) {
        const struct cp_pair *pair = &pairs->pairs[i].pair;
        struct cp_task_entry *ends[] = {&pairs->tasks[cp_pair_table_find_task(pairs, pair->a)],
                                        &pairs->tasks[cp_pair_table_find_task(pairs, pair->b)]};

        add_wakes(ends[0], &pair->ab, &pair->ba);
        add_wakes(ends[1], &pair->ba, &pair->ab);
        for (unsigned k = 0; k < CP_ELEMENTS(ends); k++) {
            ends[k]->strength_hz += total_hz(pair);
            if (ends[k]->strongest == CP_PLACE_NONE ||
                compare_strength(pair, &pairs->pairs[ends[k]->strongest].pair) < 0)
                ends[k]->strongest = (uint32_t)i;
        }
    }
    for (size_t i = 0; i < pairs->n_tasks; i++) {
        struct cp_task_entry *entry = &pairs->tasks[i];
        double handed_hz = entry->task.fan_out;

        entry->task.fan_out = entry->squares > 0.0 ? handed_hz * handed_hz / entry->squares : 0.0;
        entry->task.unanswered =
            entry->task.wakes_hz > 0.0 ? entry->task.unanswered / entry->task.wakes_hz : 0.0;
    }
}

static void forget_unseen(struct cp_pairs *pairs)
{
    uint64_t now_ns = pairs->last_end_ns;
    uint64_t forget_ns = pairs->config.forget_ns;
    bool any = false;

    for (size_t i = 0; i < pairs->n_pairs; i++) {
        struct cp_pair_entry *entry = &pairs->pairs[i];

        entry->drop =
            entry->n_missed >= MISSED_TO_FORGET && now_ns - entry->pair.last_seen_ns > forget_ns;
        any |= entry->drop;
    }
    for (size_t i = 0; i < pairs->n_tasks; i++) {
        struct cp_task_entry *entry = &pairs->tasks[i];

        entry->drop =
            entry->n_missed >= MISSED_TO_FORGET && now_ns - entry->task.last_seen_ns > forget_ns;
        any |= entry->drop;
    }
    if (any)
        (void)cp_pair_table_sweep(pairs);
}

static void evict_pairs(struct cp_pairs *pairs)
{
    size_t excess;

    if (pairs->n_pairs <= pairs->config.max_pairs)
        return;
    excess = pairs->n_pairs - pairs->config.max_pairs;
    cp_strength_sort(pairs);
    for (size_t i = pairs->n_pairs - excess; i < pairs->n_pairs; i++)
        pairs->pairs[cp_pair_table_find_pair(pairs, pairs->order[i]->a, pairs->order[i]->b)].drop =
            true;
    pairs->n_evicted += cp_pair_table_sweep(pairs);
}

/* The strongest first; of equal ones that seen last. */
static int compare_task_places(const void *x, const void *y, void *userdata)
{
    const struct cp_pairs *pairs = userdata;
    const struct cp_task_entry *a = &pairs->tasks[*(const uint32_t *)x];
    const struct cp_task_entry *b = &pairs->tasks[*(const uint32_t *)y];

    if (a->strength_hz != b->strength_hz)
        return a->strength_hz > b->strength_hz ? -1 : 1;
    if (a->task.last_seen_ns != b->task.last_seen_ns)
        return a->task.last_seen_ns > b->task.last_seen_ns ? -1 : 1;
    return cp_task_id_compare(a->task.id, b->task.id);
}

/* true: some went, and what the pairs say of tasks has to be found again. */
static bool evict_tasks(struct cp_pairs *pairs)
{
    if (pairs->n_tasks <= pairs->config.max_tasks)
        return false;
    for (size_t i = 0; i < pairs->n_tasks; i++)
        pairs->task_order[i] = (uint32_t)i;
    qsort_r(pairs->task_order, pairs->n_tasks, sizeof(pairs->task_order[0]), compare_task_places,
            pairs);
    for (size_t i = pairs->config.max_tasks; i < pairs->n_tasks; i++)
        pairs->tasks[pairs->task_order[i]].drop = true;
    pairs->n_evicted += cp_pair_table_sweep(pairs);
    return true;
}

void cp_strength_trim(struct cp_pairs *pairs)
{
    forget_unseen(pairs);
    evict_pairs(pairs);
    cp_strength_relate(pairs);
    if (evict_tasks(pairs))
        cp_strength_relate(pairs);
}
