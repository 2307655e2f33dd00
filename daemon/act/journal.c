/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The journal in use: appending and compacting. Opening is in journal-open.c.
 *
 * Each record is appended with one write() and flushed; a write that fails is cut off again. Must
 * not change any mask.
 */
#include "act/journal.h"

#include "act/journal-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NEW_NAME "journal.new"

struct cp_journal *cp_journal_close(struct cp_journal *journal)
{
    if (!journal)
        return NULL;
    cp_journal_table_done(&journal->due);
    if (journal->fd >= 0)
        close(journal->fd);
    if (journal->directory_fd >= 0)
        close(journal->directory_fd);
    if (journal->lock_fd >= 0) /* last: gives the lock back */
        close(journal->lock_fd);
    free(journal);
    return NULL;
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
    ssize_t n;

    do
        n = write(fd, data, size);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    /* A short write means that the next one would have failed: no room, or a size limit. */
    if ((size_t)n < size)
        return -ENOSPC;
    /* What the kernel has taken survives our death, and after a crash of the machine the journal is
     * void: waiting for a disk would gain nothing, and could stall the daemon for seconds. */
    return 0;
}

/* ---- the file as a whole ---- */

/* A former target is written as the placement that it was: reading both gives the same entry. */
static int build_entry(const struct cp_journal *journal, struct cp_journal_bytes *bytes,
                       const struct cp_journal_entry *entry)
{
    int r = 0;

    if (!cp_cpumask_is_empty(&entry->former_target)) {
        struct cp_journal_entry former = *entry; /* masks borrowed */

        former.target = entry->former_target;
        r = cp_journal_put_place(bytes, journal->boot_id, entry->decision, &former, 1);
    }
    return r < 0 ? r : cp_journal_put_place(bytes, journal->boot_id, entry->decision, entry, 1);
}

static int build_image(const struct cp_journal *journal, struct cp_journal_bytes *bytes)
{
    int r = cp_journal_put_header(bytes, journal->boot_id, journal->reserved_decision);

    /* Once more as a record: it is readable behind a damaged header. */
    if (r >= 0)
        r = cp_journal_put_counter(bytes, journal->boot_id, journal->reserved_decision);
    for (size_t i = 0; r >= 0 && i < journal->due.n_slots; i++) {
        const struct cp_journal_entry *entry = &journal->due.entries[i];

        if (entry->task.tid != 0)
            r = build_entry(journal, bytes, entry);
    }
    return r;
}

int cp_journal_rewrite(struct cp_journal *journal, bool keep_damaged)
{
    _cleanup_journal_bytes_ struct cp_journal_bytes bytes = {0};
    _cleanup_close_ int fd = -1;
    int r = build_image(journal, &bytes);

    if (r < 0)
        return r;
    if (unlinkat(journal->directory_fd, NEW_NAME, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = openat(journal->directory_fd, NEW_NAME,
                O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = write_all(fd, bytes.data, bytes.size);
    if (r >= 0 && keep_damaged) {
        /* For people; if it cannot be kept, restoring matters more. */
        (void)unlinkat(journal->directory_fd, CP_JOURNAL_DAMAGED_NAME, 0);
        (void)linkat(journal->directory_fd, CP_JOURNAL_FILE_NAME, journal->directory_fd,
                     CP_JOURNAL_DAMAGED_NAME, 0);
    }
    if (r >= 0 &&
        renameat(journal->directory_fd, NEW_NAME, journal->directory_fd, CP_JOURNAL_FILE_NAME) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(journal->directory_fd, NEW_NAME, 0);
        return r;
    }
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = TAKE_FD(fd);
    journal->size = bytes.size;
    return 0;
}

/* Compaction is a convenience: what fails today is tried again when the file has grown. */
static void compact_if_large(struct cp_journal *journal)
{
    if (journal->size < journal->compact_at)
        return;
    (void)cp_journal_rewrite(journal, false);
    journal->compact_at = CP_MAX(CP_JOURNAL_COMPACT_MIN_SIZE, 2 * journal->size);
}

static int append(struct cp_journal *journal, const struct cp_journal_bytes *bytes)
{
    int r;

    if (bytes->size > CP_JOURNAL_FILE_MAX_SIZE - CP_MIN(journal->size, CP_JOURNAL_FILE_MAX_SIZE)) {
        (void)cp_journal_rewrite(journal, false);
        if (bytes->size >
            CP_JOURNAL_FILE_MAX_SIZE - CP_MIN(journal->size, CP_JOURNAL_FILE_MAX_SIZE))
            return -ENOSPC;
    }
    r = write_all(journal->fd, bytes->data, bytes->size);
    if (r < 0) {
        /* Where even this fails, the reader skips the torn record. */
        if (ftruncate(journal->fd, (off_t)journal->size) < 0) {
            struct stat status;

            if (fstat(journal->fd, &status) >= 0)
                journal->size = (size_t)status.st_size;
        }
        return r;
    }
    journal->size += bytes->size;
    return 0;
}

/* ---- use ---- */

size_t cp_journal_due(struct cp_journal *journal, const struct cp_journal_entry **ret_entries)
{
    cp_journal_table_squeeze(&journal->due);
    *ret_entries = journal->due.entries;
    return journal->due.n_slots;
}

static void free_entries(struct cp_journal_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cp_journal_entry_done(&entries[i]);
    free(entries);
}

static int copy_entries(const struct cp_journal_entry *entries, size_t n, uint64_t decision,
                        struct cp_journal_entry **ret_copies)
{
    struct cp_journal_entry *copies = calloc(n, sizeof(*copies));

    if (!copies)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int r = cp_journal_entry_copy(&entries[i], &copies[i]);

        if (r < 0) {
            free_entries(copies, n);
            return r;
        }
        copies[i].decision = decision;
    }
    *ret_copies = copies;
    return 0;
}

int cp_journal_place(struct cp_journal *journal, uint64_t decision,
                     const struct cp_journal_entry *entries, size_t n_entries)
{
    _cleanup_journal_bytes_ struct cp_journal_bytes bytes = {0};
    struct cp_journal_entry *copies;
    int r;

    if (n_entries == 0)
        return -EINVAL;
    if (n_entries > CP_JOURNAL_MAX_SET)
        return -E2BIG;
    for (size_t i = 0; i < n_entries; i++)
        if (entries[i].task.tid <= 0 || cp_cpumask_is_empty(&entries[i].original) ||
            cp_cpumask_is_empty(&entries[i].target))
            return -EINVAL;
    /* Everything that can fail comes before the write. */
    r = cp_journal_put_place(&bytes, journal->boot_id, decision, entries, n_entries);
    if (r >= 0)
        r = cp_journal_table_reserve(&journal->due, n_entries);
    if (r >= 0)
        r = copy_entries(entries, n_entries, decision, &copies);
    if (r < 0)
        return r;
    r = append(journal, &bytes);
    for (size_t i = 0; r >= 0 && i < n_entries; i++)
        cp_journal_table_put(&journal->due, &copies[i]);
    free_entries(copies, n_entries);
    if (r < 0)
        return r;
    journal->last_decision = CP_MAX(journal->last_decision, decision);
    journal->reserved_decision = CP_MAX(journal->reserved_decision, decision);
    compact_if_large(journal);
    return 0;
}

int cp_journal_end(struct cp_journal *journal, struct cp_task_id task)
{
    _cleanup_journal_bytes_ struct cp_journal_bytes bytes = {0};
    int r;

    if (!cp_journal_table_remove(&journal->due, task))
        return 0;
    r = cp_journal_put_end(&bytes, journal->boot_id, task);
    if (r >= 0)
        r = append(journal, &bytes);
    if (r >= 0)
        compact_if_large(journal);
    return r;
}

int cp_journal_next_decision(struct cp_journal *journal, uint64_t *ret_decision)
{
    _cleanup_journal_bytes_ struct cp_journal_bytes bytes = {0};
    uint64_t reserved;
    int r;

    if (journal->last_decision < journal->reserved_decision) {
        *ret_decision = ++journal->last_decision;
        return 0;
    }
    if (journal->last_decision > UINT64_MAX - CP_JOURNAL_COUNTER_BATCH)
        return -EOVERFLOW;
    reserved = journal->last_decision + CP_JOURNAL_COUNTER_BATCH;
    r = cp_journal_put_counter(&bytes, journal->boot_id, reserved);
    if (r >= 0)
        r = append(journal, &bytes);
    if (r < 0)
        return r;
    journal->reserved_decision = reserved;
    *ret_decision = ++journal->last_decision;
    compact_if_large(journal);
    return 0;
}
