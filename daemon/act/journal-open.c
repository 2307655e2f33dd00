/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens whatever is there as a journal and brings it into order.
 *
 * The lock is a file of its own, as compaction replaces the journal by a new file. What a damaged
 * journal held stays beside it as "journal.damaged". Nothing that could be somebody else's is
 * believed. Must not change any mask.
 */
#include "act/journal-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LOCK_NAME "lock"

/* Warnings are collected in a stream, a line each; NULL if nobody wants them. */
static void begin_warning(FILE *warnings)
{
    if (ftell(warnings) > 0)
        (void)fputc('\n', warnings);
}

#define warn(warnings, ...)                                                                        \
    do {                                                                                           \
        if (warnings) {                                                                            \
            begin_warning(warnings);                                                               \
            (void)fprintf(warnings, __VA_ARGS__);                                                  \
        }                                                                                          \
    } while (false)

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
    const char *file = CP_JOURNAL_FILE_NAME;

    if (image->other_boot)
        warn(warnings, "%s/%s is of another boot: %zu placements in it are void", directory, file,
             image->n_void);
    if (size == 0)
        warn(warnings, "%s/%s was empty: a crash hit its creation", directory, file);
    else if (image->header_damaged)
        warn(warnings,
             "%s/%s has a damaged header; %zu records of this boot could be read, the old file is "
             "kept as %s",
             directory, file, image->n_records, CP_JOURNAL_DAMAGED_NAME);
    if (image->damaged_bytes > 0 && image->n_records > 0)
        warn(warnings, "%s/%s: %zu damaged bytes were skipped, the old file is kept as %s",
             directory, file, image->damaged_bytes, CP_JOURNAL_DAMAGED_NAME);
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
    if (lost > 0 || image->header_damaged || image->other_boot ||
        size > CP_JOURNAL_COMPACT_MIN_SIZE)
        r = cp_journal_rewrite(journal, damaged);
    /* A file of this boot can be used as it is, since the reader gets along with it; that matters
     * when the disk is full and masks are to be given back. */
    if (r < 0 && image->other_boot)
        return cp_error_set(error, -r, "cannot write %s/%s anew: %s", directory,
                            CP_JOURNAL_FILE_NAME, strerror(-r));
    if (r < 0)
        warn(warnings, "%s/%s could not be written anew: %s", directory, CP_JOURNAL_FILE_NAME,
             strerror(-r));
    return 0;
}

/* Reads and parses the opened file. */
static int read_image(struct cp_journal *journal, const char *directory, size_t *size,
                      struct cp_journal_image *ret_image, struct cp_error *error)
{
    uint8_t *data = NULL;
    int r = read_file(journal->fd, *size, &data, size);

    if (r >= 0)
        r = cp_journal_parse(data, *size, journal->boot_id, ret_image);
    free(data);
    if (r < 0)
        return cp_error_set(error, -r, "cannot read %s/%s: %s", directory, CP_JOURNAL_FILE_NAME,
                            strerror(-r));
    return 0;
}

static int read_existing(struct cp_journal *journal, const char *directory, FILE *warnings,
                         struct cp_error *error)
{
    struct cp_journal_image image = {0};
    size_t size = 0;
    int r = check_file(journal->fd, directory, CP_JOURNAL_FILE_NAME, &size, error);

    if (r < 0)
        return r;
    if (size > CP_JOURNAL_FILE_MAX_SIZE)
        return cp_error_set(
            error, EFBIG, "%s/%s has %zu bytes, more than any journal; look at it, then remove it",
            directory, CP_JOURNAL_FILE_NAME, size);
    r = read_image(journal, directory, &size, &image, error);
    if (r < 0)
        return r;
    if (image.newer) {
        (void)cp_error_set(error, EPROTONOSUPPORT,
                           "%s/%s is of format version %" PRIu32
                           ", this coplaced knows only %u: it was left as it is and no mask will "
                           "be changed; run \"coplaced --restore\" of the newer version first",
                           directory, CP_JOURNAL_FILE_NAME, image.version, CP_JOURNAL_VERSION);
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

    journal->fd = openat(journal->directory_fd, CP_JOURNAL_FILE_NAME,
                         O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (journal->fd >= 0)
        return read_existing(journal, directory, warnings, error);
    if (errno != ENOENT)
        return explain_open_failure(errno, directory, CP_JOURNAL_FILE_NAME, error);
    r = cp_journal_rewrite(journal, false);
    if (r < 0)
        return explain_open_failure(-r, directory, CP_JOURNAL_FILE_NAME, error);
    return 0;
}

static int open_all(struct cp_journal *journal, const char *directory, FILE *warnings,
                    struct cp_error *error)
{
    int r = take_lock(journal, directory, error);

    if (r >= 0)
        r = open_file(journal, directory, warnings, error);
    if (r == 0)
        journal->compact_at = CP_MAX(CP_JOURNAL_COMPACT_MIN_SIZE, 2 * journal->size);
    return r;
}

static struct cp_journal *journal_new(const char *boot_id)
{
    struct cp_journal *journal = calloc(1, sizeof(*journal));

    if (journal) {
        journal->directory_fd = journal->lock_fd = journal->fd = -1;
        memcpy(journal->boot_id, boot_id, strnlen(boot_id, sizeof(journal->boot_id) - 1));
    }
    return journal;
}

int cp_journal_open(const char *run_directory, const char *boot_id, struct cp_journal **ret_journal,
                    char **ret_warnings, struct cp_error *error)
{
    struct cp_journal *journal;
    char *text = NULL;
    size_t text_size = 0;
    FILE *warnings = NULL;
    int r;

    if (boot_id[0] == '\0' || strlen(boot_id) >= CP_JOURNAL_BOOT_ID_SIZE)
        return cp_error_set(error, EINVAL, "\"%.64s\" is not a boot id", boot_id);
    journal = journal_new(boot_id);
    if (!journal)
        return cp_error_set(error, ENOMEM, "no memory for the journal");
    if (ret_warnings)
        warnings = open_memstream(&text, &text_size); /* without memory none are kept */
    r = open_all(journal, run_directory, warnings, error);
    if (warnings && fclose(warnings) != 0)
        text_size = 0;
    if (r != 0 || text_size == 0) {
        free(text);
        text = NULL;
    }
    if (r != 0) {
        cp_journal_close(journal);
        return r;
    }
    if (ret_warnings)
        *ret_warnings = text;
    *ret_journal = journal;
    return 0;
}
