/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A root directory made by a test: files below a temporary directory, removed at the end.
 * Include after cmocka.h; every failure fails the test.
 */
#pragma once

#include "base/root.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct recorded_root {
    struct cp_root root;
    char path[64];
};

static inline void recorded_root_make(struct recorded_root *recorded)
{
    (void)snprintf(recorded->path, sizeof(recorded->path), "/tmp/coplace-test-root-XXXXXX");
    assert_non_null(mkdtemp(recorded->path));
    assert_int_equal(cp_root_open(&recorded->root, recorded->path), 0);
}

static inline int recorded_root_unlink(const char *path, const struct stat *status, int type,
                                       struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void recorded_root_remove(struct recorded_root *recorded)
{
    cp_root_done(&recorded->root);
    assert_int_equal(nftw(recorded->path, recorded_root_unlink, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Makes a directory and those above it. */
static inline void recorded_root_mkdir(const struct recorded_root *recorded, const char *path)
{
    char copy[512];

    assert_true(strlen(path) < sizeof(copy));
    (void)snprintf(copy, sizeof(copy), "%s", path);
    for (char *slash = copy; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        (void)mkdirat(recorded->root.fd, copy, 0755);
    }
    (void)mkdirat(recorded->root.fd, copy, 0755);
}

/* Writes a whole file, making the directories above it. */
static inline void recorded_root_write(const struct recorded_root *recorded, const char *path,
                                       const char *text)
{
    char directory[512];
    char *slash;
    size_t done = 0;
    int fd;

    assert_true(strlen(path) < sizeof(directory));
    (void)snprintf(directory, sizeof(directory), "%s", path);
    slash = strrchr(directory, '/');
    if (slash) {
        *slash = '\0';
        recorded_root_mkdir(recorded, directory);
    }
    fd = openat(recorded->root.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    while (done < strlen(text)) {
        ssize_t n = write(fd, text + done, strlen(text) - done);

        assert_true(n > 0);
        done += (size_t)n;
    }
    close(fd);
}
