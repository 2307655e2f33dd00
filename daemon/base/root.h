/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The root directory as a value: a directory fd that stands for "/".
 *
 * Everything that reads the kernel's files does so below a struct cp_root, so that a recorded
 * machine can be a test. Only here do the names of kernel directories begin with a slash. Paths
 * given to these functions are relative ("proc/self/status", "sys/devices/system/cpu/online").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cp_root {
    int fd;     /* owned, O_PATH | O_DIRECTORY */
    bool live;  /* true: this is the running system's own root */
    char *path; /* owned; as given, for messages */
};

/* Opens path ("/" or NULL: the running system). Negative errno. Does not block on local files. */
int cp_root_open(struct cp_root *root, const char *path);
/* Accepts a root that was never opened if it is zeroed with fd -1. */
void cp_root_done(struct cp_root *root);

/* openat(2) below the root with O_CLOEXEC added; symbolic links of a recorded root are followed as
 * they stand, so records must not hold absolute ones. Returns an fd or negative errno. */
int cp_root_open_file(const struct cp_root *root, const char *path, int flags);

/*
 * Reads a whole file of at most max_size bytes. *ret_text is terminated, belongs to the caller and
 * is set only on success; the length (without the terminator) goes to *ret_size if not NULL.
 * -EFBIG: longer than max_size; otherwise the errno of open or read (-EOPNOTSUPP, -ENODEV and
 * -ESRCH are ordinary answers of kernel files).
 */
int cp_root_read_file(const struct cp_root *root, const char *path, size_t max_size,
                      char **ret_text, size_t *ret_size);
