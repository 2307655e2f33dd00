/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The journal: what we changed and not yet gave back, on disk before it is changed.
 *
 * One file in the run directory. Header: magic, format version, boot id. Then records, each with a
 * length and a CRC-32: PLACE (decision, tasks with original and target masks), END (a task's mask
 * is no longer ours) and COUNTER (the last decision id). A torn record at the end is the mark of a
 * crash and is cut; a damaged one in the middle is skipped with a message and everything readable
 * is restored. A journal of another boot is void: its tasks are gone. A journal of an unknown
 * (newer) version is kept untouched and refuses enforce. Format: docs at the top of journal.c.
 */
#pragma once

#include "base/cpumask.h"
#include "base/error.h"
#include "base/task-id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CP_JOURNAL_NEWER_VERSION 1 /* positive result: the file is of a version we do not know */

struct cp_journal_entry {
    uint64_t decision;
    struct cp_task_id task;
    pid_t tgid;
    bool had_user_mask;
    struct cp_cpumask original; /* owned */
    struct cp_cpumask target;   /* owned */
};

void cp_journal_entry_done(struct cp_journal_entry *entry);

struct cp_journal;

/*
 * Opens or creates the journal of run_directory (which must exist) and reads what is still due.
 * Takes an exclusive lock (-EBUSY: another coplaced has it). 0; CP_JOURNAL_NEWER_VERSION: nothing
 * was opened or changed; negative errno. In *warnings (NULL accepted, a new string of the caller,
 * NULL if none): what was cut, skipped or void, for the log.
 */
int cp_journal_open(const char *run_directory, const char *boot_id, struct cp_journal **ret_journal,
                    char **ret_warnings, struct cp_error *error);
struct cp_journal *cp_journal_close(struct cp_journal *journal); /* accepts, returns NULL */

/* Entries that were placed and not ended, oldest first. Borrowed until the next call. */
size_t cp_journal_due(struct cp_journal *journal, const struct cp_journal_entry **ret_entries);

/* Appends one PLACE record for the whole set, written through to the kernel before it returns.
 * Negative errno: the file is as before. Compacts by itself when most of it is ended. */
int cp_journal_place(struct cp_journal *journal, uint64_t decision,
                     const struct cp_journal_entry *entries, size_t n_entries);
int cp_journal_end(struct cp_journal *journal, struct cp_task_id task);

/* A new decision id, unique over restarts of this boot and beyond; reserved in batches. */
int cp_journal_next_decision(struct cp_journal *journal, uint64_t *ret_decision);
