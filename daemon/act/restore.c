/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives back what a daemon that is no more left behind, from the journal alone: for
 * "coplaced --restore". Must need neither BPF nor a bus.
 */
#include "act/strays.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

struct restore {
    struct cp_act_context context;
    struct cp_journal *journal;
    cp_restore_handler handler;
    void *userdata;
    struct cp_restore_summary summary;
};

static void count(struct cp_restore_summary *summary, enum cp_act_result result)
{
    switch (result) {
    case CP_ACT_RESTORED:
        summary->restored++;
        break;
    case CP_ACT_YIELDED:
        summary->yielded++;
        break;
    case CP_ACT_GONE:
        summary->gone++;
        break;
    default:
        summary->refused++;
        break;
    }
}

static void restore_one(struct restore *restore, const struct cp_journal_entry *entry)
{
    char detail[CP_ACT_DETAIL_SIZE];
    enum cp_act_result result = cp_act_give_back(&restore->context, entry, detail);

    count(&restore->summary, result);
    /* If the END cannot be written, a later reader of the journal finds by the mask that there is
     * nothing to give back. */
    if (result != CP_ACT_REFUSED)
        (void)cp_journal_end(restore->journal, entry->task);
    if (restore->handler)
        restore->handler(entry, result, detail, restore->userdata);
}

static bool is_due(struct cp_task_id task, void *userdata)
{
    const struct cp_journal_entry *entries;
    size_t n = cp_journal_due(userdata, &entries);

    for (size_t i = 0; i < n; i++)
        if (cp_task_id_equal(entries[i].task, task))
            return true;
    return false;
}

static void restore_entries(struct restore *restore, struct cp_journal_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        restore_one(restore, &entries[i]);
    for (size_t i = 0; i < n; i++) {
        struct cp_act_stray_scan scan = {
            .context = &restore->context,
            .entry = &entries[i],
            .until_ticks = cp_now_ns() / CP_NS_PER_TICK,
            .is_placed = is_due,
            .userdata = restore->journal,
        };

        restore->summary.strays += cp_act_free_strays(&scan);
    }
}

/* The journal's table changes while it is worked off. */
static int copy_due(struct cp_journal *journal, struct cp_journal_entry **ret_entries,
                    size_t *ret_n)
{
    const struct cp_journal_entry *due;
    size_t n_due = cp_journal_due(journal, &due);
    struct cp_journal_entry *copies = calloc(n_due + 1, sizeof(*copies));

    if (!copies)
        return -ENOMEM;
    for (size_t i = 0; i < n_due; i++) {
        int r = cp_journal_entry_copy(&due[i], &copies[i]);

        if (r < 0) {
            while (i > 0)
                cp_journal_entry_done(&copies[--i]);
            free(copies);
            return r;
        }
    }
    *ret_entries = copies;
    *ret_n = n_due;
    return 0;
}

int cp_restore_all(const struct cp_root *root, struct cp_journal *journal,
                   cp_restore_handler handler, void *userdata,
                   struct cp_restore_summary *ret_summary)
{
    struct restore restore = {.journal = journal, .handler = handler, .userdata = userdata};
    struct cp_journal_entry *entries;
    size_t n;
    int r = cp_act_context_init(&restore.context, root, NULL);

    if (r < 0)
        return r;
    r = copy_due(journal, &entries, &n);
    if (r >= 0) {
        restore.summary.due = (unsigned)n;
        restore_entries(&restore, entries, n);
        for (size_t i = 0; i < n; i++)
            cp_journal_entry_done(&entries[i]);
        free(entries);
        *ret_summary = restore.summary;
    }
    cp_act_context_done(&restore.context);
    return r;
}
