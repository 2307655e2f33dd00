/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run directory for one test, and entries that can be told apart. */
#pragma once

#include "act/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define BOOT_A "11111111-2222-3333-4444-555555555555"
#define BOOT_B "99999999-8888-7777-6666-555555555555"

struct fixture {
    char directory[64];
    char path[96]; /* of the journal */
};

static inline void fixture_path(const struct fixture *fixture, const char *name, char path[96])
{
    (void)snprintf(path, 96, "%.60s/%.30s", fixture->directory, name);
}

static inline int fixture_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    (void)snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/coplace-act-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    fixture_path(fixture, "journal", fixture->path);
    *state = fixture;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    DIR *directory = opendir(fixture->directory);
    struct dirent *entry;

    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        if (unlinkat(dirfd(directory), entry->d_name, 0) < 0)
            (void)unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
    }
    closedir(directory);
    assert_int_equal(rmdir(fixture->directory), 0);
    free(fixture);
    return 0;
}

/* Everything in an entry follows from n, so that any mixture of two is seen. */
static inline struct cp_journal_entry make_entry(unsigned n)
{
    struct cp_journal_entry entry = {
        .task = {.tid = (pid_t)(1000 + n), .start_ticks = 5000 + n},
        .tgid = (pid_t)(900 + n),
        .had_user_mask = n % 2 == 1,
        .placed_ticks = 7000 + n,
    };

    assert_int_equal(
        cp_cpumask_set_range(&entry.original, (struct cp_cpu){0}, (struct cp_cpu){100 + n}), 0);
    assert_int_equal(cp_cpumask_set(&entry.target, (struct cp_cpu){n}), 0);
    return entry;
}

static inline bool entry_is(const struct cp_journal_entry *entry, unsigned n)
{
    struct cp_journal_entry wanted = make_entry(n);
    bool same = cp_task_id_equal(entry->task, wanted.task) && entry->tgid == wanted.tgid &&
                entry->had_user_mask == wanted.had_user_mask &&
                entry->placed_ticks == wanted.placed_ticks &&
                cp_cpumask_equal(&entry->original, &wanted.original) &&
                cp_cpumask_equal(&entry->target, &wanted.target);

    cp_journal_entry_done(&wanted);
    return same;
}

static inline struct cp_journal *open_journal(const struct fixture *fixture, const char *boot_id,
                                              char **ret_warnings)
{
    struct cp_journal *journal = NULL;
    struct cp_error error = {0};
    int r = cp_journal_open(fixture->directory, boot_id, &journal, ret_warnings, &error);

    if (r != 0)
        print_error("%s\n", error.message);
    assert_int_equal(r, 0);
    return journal;
}

static inline void place(struct cp_journal *journal, uint64_t decision, unsigned n)
{
    struct cp_journal_entry entry = make_entry(n);

    assert_int_equal(cp_journal_place(journal, decision, &entry, 1), 0);
    cp_journal_entry_done(&entry);
}

static inline void end(struct cp_journal *journal, unsigned n)
{
    struct cp_journal_entry entry = make_entry(n);

    assert_int_equal(cp_journal_end(journal, entry.task), 0);
    cp_journal_entry_done(&entry);
}

static inline size_t count_due(struct cp_journal *journal)
{
    const struct cp_journal_entry *due;

    return cp_journal_due(journal, &due);
}

static inline size_t read_bytes(const char *path, unsigned char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    assert_true(fd >= 0);
    n = read(fd, buffer, size);
    assert_true(n >= 0);
    close(fd);
    return (size_t)n;
}

static inline void write_bytes(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), (ssize_t)size);
    close(fd);
}
