/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The root directory as a value. Must know nothing of what the files mean. */
#include "base/root.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int cp_root_open(struct cp_root *root, const char *path)
{
    bool live = !path || strcmp(path, "/") == 0;
    _cleanup_close_ int fd = open(live ? "/" : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *copy;

    if (fd < 0)
        return -errno;
    copy = strdup(live ? "/" : path);
    if (!copy)
        return -ENOMEM;
    *root = (struct cp_root){.fd = TAKE_FD(fd), .live = live, .path = copy};
    return 0;
}

void cp_root_done(struct cp_root *root)
{
    if (root->fd >= 0)
        close(root->fd);
    free(root->path);
    *root = (struct cp_root){.fd = -1};
}

int cp_root_open_file(const struct cp_root *root, const char *path, int flags)
{
    int fd = openat(root->fd, path, flags | O_CLOEXEC | O_NOCTTY);

    return fd < 0 ? -errno : fd;
}

int cp_root_read_file(const struct cp_root *root, const char *path, size_t max_size,
                      char **ret_text, size_t *ret_size)
{
    _cleanup_close_ int fd = cp_root_open_file(root, path, O_RDONLY);
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    size_t capacity = 0;

    if (fd < 0)
        return fd;
    for (;;) {
        ssize_t n;

        if (size + 1 >= capacity) {
            size_t wanted = CP_MIN(CP_MAX(capacity * 2, 4096), max_size + 2);
            char *larger = realloc(text, wanted);

            if (!larger)
                return -ENOMEM;
            text = larger;
            capacity = wanted;
        }
        n = read(fd, text + size, capacity - size - 1);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        if (n == 0)
            break;
        size += (size_t)n;
        if (size > max_size)
            return -EFBIG;
    }
    text[size] = '\0';
    *ret_text = TAKE_PTR(text);
    if (ret_size)
        *ret_size = size;
    return 0;
}
