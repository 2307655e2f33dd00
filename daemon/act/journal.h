/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The journal: what we changed and not yet gave back, on disk before it is changed.
 *
 * One file in the run directory. Header: magic, format version, boot id. Then records, each with a
 * length and a CRC-32: PLACE (decision, tasks with original and target masks), END (a task's mask
 * is no longer ours) and COUNTER (the last decision id). A torn record at the end is the mark of a
 * crash and is cut; a damaged one in the middle is skipped with a message and everything readable
 * is restored. A journal of another boot is void: its tasks are gone, only the decision counter is
 * carried over. A journal of an unknown (newer) version is kept untouched and refuses enforce.
 * Format: docs at the top of journal-format.h.
 */
#pragma once

#include "base/cpumask.h"
#include "base/error.h"
#include "base/task-id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CP_JOURNAL_NEWER_VERSION 1 /* positive result: the file is of a version we do not know */

#define CP_JOURNAL_MAX_SET 1024u  /* tasks in one PLACE record */
#define CP_JOURNAL_MAX_DUE 16384u /* tasks that may be due at a time */

struct cp_journal_entry {
    uint64_t decision;
    struct cp_task_id task;
    pid_t tgid;
    bool had_user_mask;
    uint64_t placed_ticks;      /* CLOCK_BOOTTIME in ticks before the mask was set */
    struct cp_cpumask original; /* owned */
    struct cp_cpumask target;   /* owned */
    /* Owned: the target before this one, of a task that was placed again: a crash may have come
     * between the record and the change. Kept by the journal; place() does not look at it. Empty:
     * there was none, or the new target is known to have been set. */
    struct cp_cpumask former_target;
};

void cp_journal_entry_done(struct cp_journal_entry *entry);
/* A deep copy. -ENOMEM: *ret_entry is unchanged. */
int cp_journal_entry_copy(const struct cp_journal_entry *entry, struct cp_journal_entry *ret_entry);

struct cp_journal;

/*
 * Opens or creates the journal of run_directory (which must exist) and reads what is still due.
 * Takes an exclusive lock on the file "lock" beside it (-EBUSY: another coplaced has it).
 * 0; CP_JOURNAL_NEWER_VERSION: the journal was left as it is and *ret_journal is not set, *error
 * says what to do; negative errno with *error: -ELOOP or -EINVAL for something that is no regular
 * file, -EPERM for a file of a foreign owner or one that others may write, -EFBIG for one larger
 * than any that we write, and what the file system answers.
 * In *warnings (NULL accepted, a new string of the caller, NULL if none): what was cut, skipped or
 * void, one line each, for the log. boot_id: at most 39 characters. Blocks for disk writes.
 */
int cp_journal_open(const char *run_directory, const char *boot_id, struct cp_journal **ret_journal,
                    char **ret_warnings, struct cp_error *error);
struct cp_journal *cp_journal_close(struct cp_journal *journal); /* accepts, returns NULL */

/* Entries that were placed and not ended, in the order of their placement. Borrowed until the next
 * call. */
size_t cp_journal_due(struct cp_journal *journal, const struct cp_journal_entry **ret_entries);

/*
 * Appends one PLACE record for the whole set, written through to the kernel before it returns. A
 * task that is due already gets the new entry in place of the old one, of which the target is kept
 * as former_target; the same target once more confirms that it has been set. Negative errno: the
 * file and what is due are as before; -EINVAL for an empty set or an empty mask, -E2BIG above
 * CP_JOURNAL_MAX_SET, -ENOSPC above CP_JOURNAL_MAX_DUE or for a full disk. Compacts by itself when
 * the file has doubled.
 */
int cp_journal_place(struct cp_journal *journal, uint64_t decision,
                     const struct cp_journal_entry *entries, size_t n_entries);
/*
 * The task's mask is no longer ours. A task that is not due: 0, nothing is written. Negative errno:
 * the END could not be written; the task is not due any more for this process, and a later one that
 * reads the journal finds by its mask that there is nothing to give back.
 */
int cp_journal_end(struct cp_journal *journal, struct cp_task_id task);

/* A new decision id, above every one given before, over restarts of this boot and, where the run
 * directory outlives it, beyond; reserved in batches. Negative errno: the reservation could not be
 * written. */
int cp_journal_next_decision(struct cp_journal *journal, uint64_t *ret_decision);
