/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives back what a daemon that is no more left behind, from the journal alone: for
 * "coplaced --restore". Must need neither BPF nor a bus.
 */
#include "act/strays.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_DETAILS 200u

void cp_restore_summary_done(struct cp_restore_summary *summary)
{
    free(summary->details);
    *summary = (struct cp_restore_summary){0};
}

struct restore {
    struct cp_act_context context;
    struct cp_journal *journal;
    struct cp_restore_summary summary;
    FILE *details;
    unsigned n_details;
};

static void note(struct restore *restore, struct cp_task_id task, const char *text)
{
    if (restore->n_details < MAX_DETAILS)
        fprintf(restore->details, "%stask %d: %s", restore->n_details ? "\n" : "", task.tid, text);
    else if (restore->n_details == MAX_DETAILS)
        fprintf(restore->details, "\n(more tasks are not shown)");
    restore->n_details++;
}

static void restore_one(struct restore *restore, const struct cp_journal_entry *entry)
{
    char detail[CP_ACT_DETAIL_SIZE];
    enum cp_act_result result = cp_act_give_back(&restore->context, entry, detail);
    int r;

    switch (result) {
    case CP_ACT_RESTORED:
        restore->summary.n_restored++;
        break;
    case CP_ACT_YIELDED:
        restore->summary.n_yielded++;
        break;
    case CP_ACT_GONE:
        restore->summary.n_gone++;
        break;
    default:
        restore->summary.n_refused++;
        break;
    }
    if (detail[0] && result != CP_ACT_GONE)
        note(restore, entry->task, detail);
    if (result == CP_ACT_REFUSED)
        return;
    r = cp_journal_end(restore->journal, entry->task);
    if (r < 0) {
        cp_act_detail(detail, "its end could not be written to the journal: %s", strerror(-r));
        note(restore, entry->task, detail);
    }
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
        unsigned found = cp_act_free_strays(&scan);
        char detail[CP_ACT_DETAIL_SIZE];

        if (found == 0)
            continue;
        restore->summary.n_strays += found;
        cp_act_detail(detail, "%u threads or children had inherited its mask and got the original",
                      found);
        note(restore, entries[i].task, detail);
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
                   struct cp_restore_summary *ret_summary, struct cp_error *error)
{
    struct restore restore = {.journal = journal};
    struct cp_journal_entry *entries = NULL;
    size_t size = 0;
    size_t n = 0;
    int r = cp_act_context_init(&restore.context, root, error);

    if (r < 0)
        return r;
    restore.details = open_memstream(&restore.summary.details, &size);
    r = restore.details ? copy_due(journal, &entries, &n) : -ENOMEM;
    if (r >= 0) {
        restore.summary.n_due = (unsigned)n;
        restore_entries(&restore, entries, n);
    }
    for (size_t i = 0; i < n; i++)
        cp_journal_entry_done(&entries[i]);
    free(entries);
    cp_act_context_done(&restore.context);
    /* Details that could not be kept are no reason to call what was done a failure. */
    if (restore.details && fclose(restore.details) != 0)
        size = 0;
    if (r < 0 || size == 0) {
        free(restore.summary.details);
        restore.summary.details = NULL;
    }
    if (r < 0)
        return cp_error_set(error, -r, "no memory for restoring");
    *ret_summary = restore.summary;
    return restore.summary.n_refused > 0 ? CP_RESTORE_INCOMPLETE : 0;
}
