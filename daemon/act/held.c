/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The account of what is ours. */
#include "act/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cp_journal_entry *cp_held_entry_free(struct cp_journal_entry *entry)
{
    if (entry)
        cp_journal_entry_done(entry);
    free(entry);
    return NULL;
}

void cp_held_set_done(struct cp_held_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        cp_held_entry_free(set->entries[i]);
    for (size_t i = 0; i < CP_HELD_RECENT; i++)
        cp_held_entry_free(set->recent[i].entry);
    free(set->entries);
    *set = (struct cp_held_set){0};
}

int cp_held_set_reserve(struct cp_held_set *set, size_t n)
{
    size_t wanted = CP_MAX(set->n + n, set->capacity * 2);
    struct cp_journal_entry **larger;

    if (set->n + n <= set->capacity)
        return 0;
    larger = reallocarray(set->entries, wanted, sizeof(struct cp_journal_entry *));
    if (!larger)
        return -ENOMEM;
    set->entries = larger;
    set->capacity = wanted;
    return 0;
}

/* Where the task is or belongs. */
static size_t find_place(const struct cp_held_set *set, struct cp_task_id task)
{
    size_t low = 0;
    size_t high = set->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (cp_task_id_compare(set->entries[middle]->task, task) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct cp_held_set *set, size_t i, struct cp_task_id task)
{
    return i < set->n && cp_task_id_equal(set->entries[i]->task, task);
}

void cp_held_set_remember(struct cp_held_set *set, struct cp_journal_entry *entry,
                          uint64_t now_ticks, bool inherited)
{
    struct cp_held_recent *slot = &set->recent[set->next_recent];

    cp_held_entry_free(slot->entry);
    *slot =
        (struct cp_held_recent){.entry = entry, .until_ticks = now_ticks, .inherited = inherited};
    set->next_recent = (set->next_recent + 1) % CP_HELD_RECENT;
}

void cp_held_set_insert(struct cp_held_set *set, struct cp_journal_entry *entry, uint64_t now_ticks)
{
    size_t i = find_place(set, entry->task);

    if (is_at(set, i, entry->task)) {
        cp_held_set_remember(set, set->entries[i], now_ticks, false);
    } else {
        memmove(set->entries + i + 1, set->entries + i,
                (set->n - i) * sizeof(struct cp_journal_entry *));
        set->n++;
    }
    set->entries[i] = entry;
}

void cp_held_set_drop(struct cp_held_set *set, struct cp_task_id task, uint64_t now_ticks)
{
    size_t i = find_place(set, task);

    if (!is_at(set, i, task))
        return;
    cp_held_set_remember(set, set->entries[i], now_ticks, false);
    set->n--;
    memmove(set->entries + i, set->entries + i + 1,
            (set->n - i) * sizeof(struct cp_journal_entry *));
}

struct cp_journal_entry *cp_held_set_find(const struct cp_held_set *set, struct cp_task_id task)
{
    size_t i = find_place(set, task);

    return is_at(set, i, task) ? set->entries[i] : NULL;
}
