/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The journal as a file: opening whatever is there, appending, compacting.
 *
 * Each record is appended with one write() and flushed; a write that fails is cut off again. The
 * lock is a file of its own, as compaction replaces the journal by a new file. What a damaged
 * journal held stays beside it as "journal.damaged". Must not change any mask.
 */
#include "act/journal.h"

#include "act/journal-format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define FILE_NAME "journal"
#define NEW_NAME "journal.new"
#define DAMAGED_NAME "journal.damaged"
#define LOCK_NAME "lock"
#define FILE_MAX_SIZE (64u * 1024u * 1024u)
#define COMPACT_MIN_SIZE (16u * 1024u)

struct cp_journal {
    char boot_id[CP_JOURNAL_BOOT_ID_SIZE];
    int directory_fd;
    int lock_fd;
    int fd;
    size_t size;       /* of the file */
    size_t compact_at; /* when the file has this size, it is written anew */
    uint64_t last_decision;
    uint64_t reserved_decision; /* ids up to this one are noted as used in the file */
    struct cp_journal_table due;
};

CP_DEFINE_CLEANUP(struct cp_journal, cp_journal_close)
#define _cleanup_journal_ _cleanup_(cp_journal_closep)

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

/* Warnings are collected in a stream, NULL if nobody wants them. */
static void warn(FILE *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void warn(FILE *warnings, const char *format, ...)
{
    va_list arguments;

    if (!warnings)
        return;
    va_start(arguments, format);
    if (ftell(warnings) > 0)
        (void)fputc('\n', warnings);
    (void)vfprintf(warnings, format, arguments);
    va_end(arguments);
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
    return fdatasync(fd) < 0 ? -errno : 0;
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

/* Writes the file anew with what is due and puts it in place of the old one. On failure the old
 * one stays in use. */
static int rewrite(struct cp_journal *journal, bool keep_damaged)
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
        (void)unlinkat(journal->directory_fd, DAMAGED_NAME, 0);
        (void)linkat(journal->directory_fd, FILE_NAME, journal->directory_fd, DAMAGED_NAME, 0);
    }
    if (r >= 0 && renameat(journal->directory_fd, NEW_NAME, journal->directory_fd, FILE_NAME) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(journal->directory_fd, NEW_NAME, 0);
        return r;
    }
    (void)fsync(journal->directory_fd);
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
    (void)rewrite(journal, false);
    journal->compact_at = CP_MAX(COMPACT_MIN_SIZE, 2 * journal->size);
}

static int append(struct cp_journal *journal, const struct cp_journal_bytes *bytes)
{
    int r;

    if (bytes->size > FILE_MAX_SIZE - CP_MIN(journal->size, FILE_MAX_SIZE)) {
        (void)rewrite(journal, false);
        if (bytes->size > FILE_MAX_SIZE - CP_MIN(journal->size, FILE_MAX_SIZE))
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

/* ---- opening ---- */

/* Refuses what somebody else could have put there or could write to. */
static int check_file(int fd, const char *directory, const char *name, size_t *ret_size,
                      struct cp_error *error)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return cp_error_set(error, errno, "%s/%s: %s", directory, name, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return cp_error_set(error, EINVAL, "%s/%s is not a regular file; remove it", directory,
                            name);
    if (status.st_uid != 0 && status.st_uid != geteuid())
        return cp_error_set(error, EPERM,
                            "%s/%s belongs to uid %u, not to root; it is not believed: remove it",
                            directory, name, (unsigned)status.st_uid);
    if (status.st_mode & (S_IWGRP | S_IWOTH))
        return cp_error_set(error, EPERM,
                            "%s/%s may be written by others (mode %04o); it is not believed: "
                            "remove it",
                            directory, name, (unsigned)status.st_mode & 07777u);
    *ret_size = (size_t)status.st_size;
    return 0;
}

static int explain_open_failure(int code, const char *directory, const char *name,
                                struct cp_error *error)
{
    switch (code) {
    case ELOOP:
        return cp_error_set(error, code, "%s/%s is a symbolic link; remove it", directory, name);
    case EISDIR:
        return cp_error_set(error, code, "%s/%s is a directory; remove it", directory, name);
    case EROFS:
    case EACCES:
        return cp_error_set(error, code,
                            "cannot write %s/%s (%s); no mask is changed without a journal",
                            directory, name, strerror(code));
    default:
        return cp_error_set(error, code, "cannot open %s/%s: %s", directory, name, strerror(code));
    }
}

static int take_lock(struct cp_journal *journal, const char *directory, struct cp_error *error)
{
    size_t size;
    int r;

    journal->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (journal->directory_fd < 0)
        return cp_error_set(error, errno, "cannot open the run directory %s: %s", directory,
                            strerror(errno));
    journal->lock_fd = openat(journal->directory_fd, LOCK_NAME,
                              O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (journal->lock_fd < 0)
        return explain_open_failure(errno, directory, LOCK_NAME, error);
    r = check_file(journal->lock_fd, directory, LOCK_NAME, &size, error);
    if (r < 0)
        return r;
    if (flock(journal->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return cp_error_set(error, EBUSY, "%s is in use by another coplaced", directory);
        return cp_error_set(error, errno, "cannot lock %s/%s: %s", directory, LOCK_NAME,
                            strerror(errno));
    }
    return 0;
}

static int read_file(int fd, size_t size, uint8_t **ret_data, size_t *ret_size)
{
    _cleanup_free_ uint8_t *data = malloc(size + 1);
    size_t done = 0;

    if (!data)
        return -ENOMEM;
    while (done < size) {
        ssize_t n = pread(fd, data + done, size - done, (off_t)done);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        if (n > 0)
            done += (size_t)n;
    }
    *ret_data = TAKE_PTR(data);
    *ret_size = done;
    return 0;
}

static void warn_of_image(FILE *warnings, const char *directory,
                          const struct cp_journal_image *image, size_t size)
{
    const char *file = FILE_NAME;

    if (image->other_boot)
        warn(warnings, "%s/%s is of another boot: %zu placements in it are void", directory, file,
             image->n_void);
    if (size == 0)
        warn(warnings, "%s/%s was empty: a crash hit its creation", directory, file);
    else if (image->header_damaged)
        warn(warnings,
             "%s/%s has a damaged header; %zu records of this boot could be read, the old file is "
             "kept as %s",
             directory, file, image->n_records, DAMAGED_NAME);
    if (image->damaged_bytes > 0 && image->n_records > 0)
        warn(warnings, "%s/%s: %zu damaged bytes were skipped, the old file is kept as %s",
             directory, file, image->damaged_bytes, DAMAGED_NAME);
    if (image->tail_bytes > 0 && !image->header_damaged)
        warn(warnings, "%s/%s: a torn record of %zu bytes at the end was cut", directory, file,
             image->tail_bytes);
}

/* Each counter that was lost took at least so many bytes, and reserved one batch. */
static uint64_t skip_lost_decisions(uint64_t counter, size_t lost_bytes)
{
    uint64_t skip =
        (lost_bytes / (CP_JOURNAL_RECORD_HEADER_SIZE + 8) + 1) * CP_JOURNAL_COUNTER_BATCH;

    return counter > UINT64_MAX - skip ? UINT64_MAX : counter + skip;
}

/* Takes over what the image holds and brings the file into order. */
static int adopt(struct cp_journal *journal, struct cp_journal_image *image, size_t size,
                 const char *directory, FILE *warnings, struct cp_error *error)
{
    size_t lost = image->damaged_bytes + image->tail_bytes;
    bool damaged = image->damaged_bytes > 0 || (image->header_damaged && size > 0);
    int r = 0;

    journal->due = image->due;
    image->due = (struct cp_journal_table){0};
    journal->size = size;
    journal->last_decision = image->counter;
    if (lost > 0)
        journal->last_decision = skip_lost_decisions(image->counter, lost);
    journal->reserved_decision = journal->last_decision;

    if (image->tail_bytes > 0 && !image->header_damaged &&
        ftruncate(journal->fd, (off_t)image->tail_offset) >= 0)
        journal->size = image->tail_offset;
    if (lost > 0 || image->header_damaged || image->other_boot || size > COMPACT_MIN_SIZE)
        r = rewrite(journal, damaged);
    /* A file of this boot can be used as it is, since the reader gets along with it; that matters
     * when the disk is full and masks are to be given back. */
    if (r < 0 && image->other_boot)
        return cp_error_set(error, -r, "cannot write %s/%s anew: %s", directory, FILE_NAME,
                            strerror(-r));
    if (r < 0)
        warn(warnings, "%s/%s could not be written anew: %s", directory, FILE_NAME, strerror(-r));
    return 0;
}

static int read_existing(struct cp_journal *journal, const char *directory, FILE *warnings,
                         struct cp_error *error)
{
    struct cp_journal_image image = {0};
    _cleanup_free_ uint8_t *data = NULL;
    size_t size;
    int r = check_file(journal->fd, directory, FILE_NAME, &size, error);

    if (r < 0)
        return r;
    if (size > FILE_MAX_SIZE)
        return cp_error_set(
            error, EFBIG, "%s/%s has %zu bytes, more than any journal; look at it, then remove it",
            directory, FILE_NAME, size);
    r = read_file(journal->fd, size, &data, &size);
    if (r >= 0)
        r = cp_journal_parse(data, size, journal->boot_id, &image);
    if (r < 0)
        return cp_error_set(error, -r, "cannot read %s/%s: %s", directory, FILE_NAME, strerror(-r));
    if (image.newer) {
        (void)cp_error_set(error, EPROTONOSUPPORT,
                           "%s/%s is of format version %" PRIu32
                           ", this coplaced knows only %u: it was left as it is and no mask will "
                           "be changed; run \"coplaced --restore\" of the newer version first",
                           directory, FILE_NAME, image.version, CP_JOURNAL_VERSION);
        return CP_JOURNAL_NEWER_VERSION;
    }
    warn_of_image(warnings, directory, &image, size);
    r = adopt(journal, &image, size, directory, warnings, error);
    cp_journal_image_done(&image);
    return r;
}

static int open_file(struct cp_journal *journal, const char *directory, FILE *warnings,
                     struct cp_error *error)
{
    int r;

    journal->fd = openat(journal->directory_fd, FILE_NAME,
                         O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (journal->fd >= 0)
        return read_existing(journal, directory, warnings, error);
    if (errno != ENOENT)
        return explain_open_failure(errno, directory, FILE_NAME, error);
    r = rewrite(journal, false);
    if (r < 0)
        return explain_open_failure(-r, directory, FILE_NAME, error);
    return 0;
}

int cp_journal_open(const char *run_directory, const char *boot_id, struct cp_journal **ret_journal,
                    char **ret_warnings, struct cp_error *error)
{
    _cleanup_journal_ struct cp_journal *journal = NULL;
    _cleanup_free_ char *text = NULL;
    size_t text_size = 0;
    FILE *warnings = NULL;
    int r;

    if (boot_id[0] == '\0' || strlen(boot_id) >= CP_JOURNAL_BOOT_ID_SIZE)
        return cp_error_set(error, EINVAL, "\"%.64s\" is not a boot id", boot_id);
    journal = calloc(1, sizeof(*journal));
    if (!journal)
        return cp_error_set(error, ENOMEM, "no memory for the journal");
    journal->directory_fd = journal->lock_fd = journal->fd = -1;
    memcpy(journal->boot_id, boot_id, strlen(boot_id));
    r = take_lock(journal, run_directory, error);
    if (r < 0)
        return r;
    if (ret_warnings) {
        warnings = open_memstream(&text, &text_size);
        if (!warnings)
            return cp_error_set(error, ENOMEM, "no memory for the journal");
    }
    r = open_file(journal, run_directory, warnings, error);
    if (warnings && fclose(warnings) != 0 && r >= 0)
        r = cp_error_set(error, ENOMEM, "no memory for the journal");
    if (r != 0)
        return r;
    journal->compact_at = CP_MAX(COMPACT_MIN_SIZE, 2 * journal->size);
    if (ret_warnings)
        *ret_warnings = text_size > 0 ? TAKE_PTR(text) : NULL;
    *ret_journal = TAKE_PTR(journal);
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
