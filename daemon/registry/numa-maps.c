/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of numa_maps. Knows nothing of machines and domains. */
#include "registry/numa-maps.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define READ_MAX_SIZE ((size_t)4 * 1024 * 1024)
#define CHUNK_SIZE ((size_t)64 * 1024)
/* 4 EiB in pages of 4 KiB; pages of at most 1 GiB. */
#define PAGES_LIMIT (UINT64_C(1) << 50)
#define PAGE_KIB_LIMIT (UINT64_C(1) << 20)

/* Reads decimal digits and returns what follows them; NULL: no digits, or above limit. */
static const char *read_count(const char *text, uint64_t limit, uint64_t *ret)
{
    uint64_t value = 0;

    if (*text < '0' || *text > '9')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > limit)
            return NULL;
    }
    *ret = value;
    return text;
}

/* The page size of a line stands at its end. */
static uint64_t page_kib(const char *line, const char *end)
{
    static const char key[] = " kernelpagesize_kB=";
    const char *at = memmem(line, (size_t)(end - line), key, sizeof(key) - 1);
    uint64_t kib;

    return at && read_count(at + sizeof(key) - 1, PAGE_KIB_LIMIT, &kib) ? kib : 4;
}

/* Words "N<node>=<pages>". Blanks within file names are escaped, so none is part of a name. */
static void add_line(const char *line, const char *end, uint64_t kib[static CP_NUMA_NODE_LIMIT])
{
    uint64_t page = page_kib(line, end);

    for (const char *at = line; (at = memmem(at, (size_t)(end - at), " N", 2));) {
        uint64_t node;
        uint64_t pages;
        const char *stop;

        at += 2;
        stop = read_count(at, CP_NUMA_NODE_LIMIT - 1, &node);
        if (!stop || *stop != '=')
            continue;
        stop = read_count(stop + 1, PAGES_LIMIT, &pages);
        if (stop && (*stop == ' ' || *stop == '\n'))
            kib[node] += pages * page;
    }
}

void cp_numa_maps_add(const char *text, uint64_t kib[static CP_NUMA_NODE_LIMIT])
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        add_line(text, end, kib);
}

/* Reads to the end or to the limit, a chunk at a time. */
static int add_file(int fd, char buffer[static CHUNK_SIZE], uint64_t kib[static CP_NUMA_NODE_LIMIT])
{
    size_t total = 0;
    size_t kept = 0;

    while (total < READ_MAX_SIZE) {
        ssize_t n = read(fd, buffer + kept, CHUNK_SIZE - 1 - kept);
        char *last;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        total += (size_t)n;
        kept += (size_t)n;
        buffer[kept] = '\0';
        cp_numa_maps_add(buffer, kib);
        /* Keep the line that is not whole yet; one that fills the buffer is none of the kernel's.
         */
        last = memrchr(buffer, '\n', kept);
        if (!last && kept == CHUNK_SIZE - 1)
            return -EBADMSG;
        if (last) {
            kept -= (size_t)(last + 1 - buffer);
            memmove(buffer, last + 1, kept);
        }
    }
    return 0;
}

int cp_numa_maps_read(const struct cp_root *root, pid_t pid,
                      uint64_t kib[static CP_NUMA_NODE_LIMIT])
{
    _cleanup_close_ int fd = -1;
    char path[64];
    char *buffer;
    int r;

    (void)snprintf(path, sizeof(path), "proc/%d/numa_maps", pid);
    fd = cp_root_open_file(root, path, O_RDONLY);
    if (fd < 0)
        return fd;
    buffer = malloc(CHUNK_SIZE);
    if (!buffer)
        return -ENOMEM;
    memset(kib, 0, CP_NUMA_NODE_LIMIT * sizeof(*kib));
    r = add_file(fd, buffer, kib);
    free(buffer);
    return r;
}
