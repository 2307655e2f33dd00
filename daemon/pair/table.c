/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays of pairs and tasks with their indices. See table.h. */
#include "pair/table.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

#define MIN_SLOTS 16u

/* splitmix64's finaliser (Steele, Lea, Flood 2014): every bit of the input reaches every bit of the
 * result, so that the low bits can be the slot. No secret seed: the same feed gives the same table.
 */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t hash_task(struct cp_task_id task)
{
    return mix((uint64_t)task.tid << 40 ^ task.start_ticks);
}

static uint64_t hash_pair(struct cp_task_id a, struct cp_task_id b)
{
    return mix(hash_task(a) ^ hash_task(b) * 3);
}

/* Puts a place into a free slot; the table of slots is never more than half full. */
static void index_add(struct cp_index *index, uint64_t hash, size_t place)
{
    size_t mask = index->n_slots - 1;
    size_t i = (size_t)hash & mask;

    while (index->slots[i] != 0)
        i = (i + 1) & mask;
    index->slots[i] = (uint32_t)place + 1;
}

/* Makes room for n places. 1: the index is new and empty, add everything again; 0: it fits. */
static int index_reserve(struct cp_index *index, size_t n)
{
    size_t n_slots = CP_MAX(index->n_slots, MIN_SLOTS);
    uint32_t *slots;

    while (n_slots < 2 * n)
        n_slots *= 2;
    if (n_slots == index->n_slots)
        return 0;
    slots = calloc(n_slots, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    free(index->slots);
    *index = (struct cp_index){slots, n_slots};
    return 1;
}

static void fill_pair_index(struct cp_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n_pairs; i++)
        index_add(&pairs->pair_index, hash_pair(pairs->pairs[i].pair.a, pairs->pairs[i].pair.b), i);
}

static void fill_task_index(struct cp_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n_tasks; i++)
        index_add(&pairs->task_index, hash_task(pairs->tasks[i].task.id), i);
}

static void index_clear(struct cp_index *index)
{
    if (index->n_slots > 0)
        memset(index->slots, 0, index->n_slots * sizeof(*index->slots));
}

/* Grows an array to at least n elements, by a half at least. */
static int grow(void **array, size_t capacity, size_t n, size_t size)
{
    void *grown = reallocarray(*array, CP_MAX(n, capacity + capacity / 2), size);

    if (!grown)
        return -ENOMEM;
    *array = grown;
    return 0;
}

static int reserve_pairs(struct cp_pairs *pairs, size_t n)
{
    void *entries = pairs->pairs;
    void *order = pairs->order;
    size_t capacity = pairs->pairs_capacity;
    int r;

    if (n > capacity) {
        /* Both must be as large as pairs_capacity says, whichever of them fails. */
        r = grow(&order, capacity, n, sizeof(const struct cp_pair *));
        pairs->order = order;
        pairs->is_ordered = false;
        if (r < 0)
            return r;
        r = grow(&entries, capacity, n, sizeof(*pairs->pairs));
        pairs->pairs = entries;
        if (r < 0)
            return r;
        pairs->pairs_capacity = CP_MAX(n, capacity + capacity / 2);
    }
    r = index_reserve(&pairs->pair_index, n);
    if (r > 0)
        fill_pair_index(pairs);
    return CP_MIN(r, 0);
}

static int reserve_tasks(struct cp_pairs *pairs, size_t n)
{
    void *entries = pairs->tasks;
    void *order = pairs->task_order;
    size_t capacity = pairs->tasks_capacity;
    int r;

    if (n > capacity) {
        r = grow(&order, capacity, n, sizeof(*pairs->task_order));
        pairs->task_order = order;
        if (r < 0)
            return r;
        r = grow(&entries, capacity, n, sizeof(*pairs->tasks));
        pairs->tasks = entries;
        if (r < 0)
            return r;
        pairs->tasks_capacity = CP_MAX(n, capacity + capacity / 2);
    }
    r = index_reserve(&pairs->task_index, n);
    if (r > 0)
        fill_task_index(pairs);
    return CP_MIN(r, 0);
}

int cp_pair_table_reserve(struct cp_pairs *pairs, size_t n_more_pairs, size_t n_more_tasks)
{
    int r;

    /* Places must fit their 32 bits, and twice their number the slots. */
    if (n_more_pairs > UINT32_MAX / 4 - pairs->n_pairs ||
        n_more_tasks > UINT32_MAX / 4 - pairs->n_tasks)
        return -ENOMEM;
    r = reserve_pairs(pairs, pairs->n_pairs + n_more_pairs);
    if (r < 0)
        return r;
    return reserve_tasks(pairs, pairs->n_tasks + n_more_tasks);
}

uint32_t cp_pair_table_find_pair(const struct cp_pairs *pairs, struct cp_task_id a,
                                 struct cp_task_id b)
{
    const struct cp_index *index = &pairs->pair_index;
    size_t mask = index->n_slots - 1;

    if (index->n_slots == 0)
        return CP_PLACE_NONE;
    if (cp_task_id_compare(a, b) > 0) {
        struct cp_task_id swapped = a;

        a = b;
        b = swapped;
    }
    for (size_t i = (size_t)hash_pair(a, b) & mask; index->slots[i] != 0; i = (i + 1) & mask) {
        const struct cp_pair *pair = &pairs->pairs[index->slots[i] - 1].pair;

        if (cp_task_id_equal(pair->a, a) && cp_task_id_equal(pair->b, b))
            return index->slots[i] - 1;
    }
    return CP_PLACE_NONE;
}

uint32_t cp_pair_table_find_task(const struct cp_pairs *pairs, struct cp_task_id task)
{
    const struct cp_index *index = &pairs->task_index;
    size_t mask = index->n_slots - 1;

    if (index->n_slots == 0)
        return CP_PLACE_NONE;
    for (size_t i = (size_t)hash_task(task) & mask; index->slots[i] != 0; i = (i + 1) & mask)
        if (cp_task_id_equal(pairs->tasks[index->slots[i] - 1].task.id, task))
            return index->slots[i] - 1;
    return CP_PLACE_NONE;
}

struct cp_pair_entry *cp_pair_table_add_pair(struct cp_pairs *pairs, struct cp_task_id a,
                                             struct cp_task_id b)
{
    struct cp_pair_entry *entry = &pairs->pairs[pairs->n_pairs];
    bool rising = cp_task_id_compare(a, b) < 0;

    *entry = (struct cp_pair_entry){.pair = {.a = rising ? a : b, .b = rising ? b : a}};
    index_add(&pairs->pair_index, hash_pair(entry->pair.a, entry->pair.b), pairs->n_pairs);
    pairs->n_pairs++;
    pairs->is_ordered = false;
    return entry;
}

struct cp_task_entry *cp_pair_table_add_task(struct cp_pairs *pairs, struct cp_task_id task)
{
    struct cp_task_entry *entry = &pairs->tasks[pairs->n_tasks];

    *entry = (struct cp_task_entry){.task = {.id = task}, .strongest = CP_PLACE_NONE};
    index_add(&pairs->task_index, hash_task(task), pairs->n_tasks);
    pairs->n_tasks++;
    return entry;
}

size_t cp_pair_table_sweep(struct cp_pairs *pairs)
{
    size_t n_before = pairs->n_pairs + pairs->n_tasks;
    size_t kept = 0;

    for (size_t i = 0; i < pairs->n_tasks; i++)
        if (!pairs->tasks[i].drop)
            pairs->tasks[kept++] = pairs->tasks[i];
    pairs->n_tasks = kept;
    index_clear(&pairs->task_index);
    fill_task_index(pairs);

    kept = 0;
    for (size_t i = 0; i < pairs->n_pairs; i++) {
        const struct cp_pair_entry *entry = &pairs->pairs[i];

        if (!entry->drop && cp_pair_table_find_task(pairs, entry->pair.a) != CP_PLACE_NONE &&
            cp_pair_table_find_task(pairs, entry->pair.b) != CP_PLACE_NONE)
            pairs->pairs[kept++] = *entry;
    }
    pairs->n_pairs = kept;
    index_clear(&pairs->pair_index);
    fill_pair_index(pairs);
    pairs->is_ordered = false;
    return n_before - pairs->n_pairs - pairs->n_tasks;
}

void cp_pair_table_done(struct cp_pairs *pairs)
{
    free(pairs->pairs);
    free(pairs->tasks);
    free(pairs->pair_index.slots);
    free(pairs->task_index.slots);
    free(pairs->order);
    free(pairs->task_order);
}
