/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is due: a table of entries in the order of their placement. Pure. */
#include "act/journal-format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void cp_journal_entry_done(struct cp_journal_entry *entry)
{
    cp_cpumask_done(&entry->original);
    cp_cpumask_done(&entry->target);
    cp_cpumask_done(&entry->former_target);
    *entry = (struct cp_journal_entry){0};
}

int cp_journal_entry_copy(const struct cp_journal_entry *entry, struct cp_journal_entry *ret_entry)
{
    struct cp_journal_entry copy = *entry;
    int r;

    copy.original = (struct cp_cpumask){0};
    copy.target = (struct cp_cpumask){0};
    copy.former_target = (struct cp_cpumask){0};
    r = cp_cpumask_copy(&copy.original, &entry->original);
    if (r >= 0)
        r = cp_cpumask_copy(&copy.target, &entry->target);
    if (r >= 0)
        r = cp_cpumask_copy(&copy.former_target, &entry->former_target);
    if (r < 0) {
        cp_journal_entry_done(&copy);
        return r;
    }
    *ret_entry = copy;
    return 0;
}

void cp_journal_table_done(struct cp_journal_table *table)
{
    for (size_t i = 0; i < table->n_slots; i++)
        cp_journal_entry_done(&table->entries[i]);
    free(table->entries);
    *table = (struct cp_journal_table){0};
}

void cp_journal_table_squeeze(struct cp_journal_table *table)
{
    size_t n = 0;

    for (size_t i = 0; i < table->n_slots; i++)
        if (table->entries[i].task.tid != 0)
            table->entries[n++] = table->entries[i];
    table->n_slots = n;
}

int cp_journal_table_reserve(struct cp_journal_table *table, size_t n)
{
    struct cp_journal_entry *larger;
    size_t wanted;

    if (n > CP_JOURNAL_MAX_DUE || table->n_live + n > CP_JOURNAL_MAX_DUE)
        return -ENOSPC;
    if (table->n_slots + n <= table->capacity)
        return 0;
    cp_journal_table_squeeze(table);
    if (table->n_slots + n <= table->capacity)
        return 0;
    /* Twice as large as what lives, so that squeezing stays rare. */
    wanted = CP_MAX(2 * (table->n_slots + n), 16);
    larger = reallocarray(table->entries, wanted, sizeof(*larger));
    if (!larger)
        return -ENOMEM;
    table->entries = larger;
    table->capacity = wanted;
    return 0;
}

static size_t find_slot(const struct cp_journal_table *table, struct cp_task_id task)
{
    size_t i = 0;

    while (i < table->n_slots && !cp_task_id_equal(table->entries[i].task, task))
        i++;
    return i;
}

void cp_journal_table_put(struct cp_journal_table *table, struct cp_journal_entry *entry)
{
    size_t i = find_slot(table, entry->task);

    cp_cpumask_done(&entry->former_target);
    if (i < table->n_slots) {
        struct cp_journal_entry *old = &table->entries[i];

        if (!cp_cpumask_equal(&old->target, &entry->target)) {
            entry->former_target = old->target;
            old->target = (struct cp_cpumask){0};
        }
        cp_journal_entry_done(old);
        table->n_live--;
    }
    table->entries[table->n_slots++] = *entry;
    table->n_live++;
    *entry = (struct cp_journal_entry){0};
}

bool cp_journal_table_remove(struct cp_journal_table *table, struct cp_task_id task)
{
    size_t i = find_slot(table, task);

    if (i == table->n_slots || task.tid == 0)
        return false;
    cp_journal_entry_done(&table->entries[i]);
    table->n_live--;
    return true;
}

const struct cp_journal_entry *cp_journal_table_find(const struct cp_journal_table *table,
                                                     struct cp_task_id task)
{
    size_t i = find_slot(table, task);

    return i == table->n_slots || task.tid == 0 ? NULL : &table->entries[i];
}
