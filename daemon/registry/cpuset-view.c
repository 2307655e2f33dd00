/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds a task's cpuset and reads its effective CPUs. Writes nothing, decides nothing. */
#include "registry/cpuset-view.h"

#include "base/cleanup.h"
#include "base/proc.h"
#include "registry/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A host of thousands of containers has as many mounts, some 300 bytes each. */
#define MOUNTINFO_MAX_SIZE ((size_t)16 * 1024 * 1024)
/* A path of PATH_MAX for each of a dozen hierarchies. */
#define TASK_CGROUP_MAX_SIZE ((size_t)64 * 1024)
#define CONTROLLERS_MAX_SIZE 4096u
#define CPUS_MAX_SIZE ((size_t)512 * 1024)

void cp_cpuset_mount_done(struct cp_cpuset_mount *mount)
{
    free(mount->mount_point);
    free(mount->mount_root);
    *mount = (struct cp_cpuset_mount){0};
}

/* true if list, whose words are separated by separator, has the word. */
static bool has_word(const char *list, size_t list_length, char separator, const char *word)
{
    size_t length = strlen(word);
    const char *end = list + list_length;

    while (list < end) {
        const char *stop = memchr(list, separator, (size_t)(end - list));
        size_t n = (size_t)((stop ? stop : end) - list);

        if (n == length && memcmp(list, word, n) == 0)
            return true;
        list += n + 1;
    }
    return false;
}

__attribute__((format(printf, 2, 3))) static int format_path(char **ret_path, const char *format,
                                                             ...)
{
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vasprintf(ret_path, format, arguments);
    va_end(arguments);
    if (n < 0) {
        *ret_path = NULL;
        return -ENOMEM;
    }
    return 0;
}

/* 1: directory/name is there; 0: it is not, or cannot be reached; -ENOMEM. */
static int file_exists(const struct cp_root *root, const char *directory, const char *name)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_close_ int fd = -1;
    int r = format_path(&path, "%s/%s", directory, name);

    if (r < 0)
        return r;
    fd = cp_root_open_file(root, path, O_PATH);
    return fd >= 0;
}

/* Looks whether a mount point shows what mountinfo says (something else may be mounted over it):
 * only v2 has cgroup.controllers, and a cpuset of v1 has cpus under one of two names. 1, 0,
 * -ENOMEM. */
static int is_visible(const struct cp_root *root, enum cp_cpuset_kind kind, const char *mount_point)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_free_ char *controllers = NULL;
    size_t size;
    int r;

    if (kind == CP_CPUSET_V1) {
        r = file_exists(root, mount_point, "cgroup.controllers");
        if (r != 0)
            return r < 0 ? r : 0;
        r = file_exists(root, mount_point, "cpuset.cpus");
        return r != 0 ? r : file_exists(root, mount_point, "cpus");
    }
    r = format_path(&path, "%s/cgroup.controllers", mount_point);
    if (r < 0)
        return r;
    r = cp_root_read_file(root, path, CONTROLLERS_MAX_SIZE, &controllers, &size);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    size = strcspn(controllers, "\n");
    return has_word(controllers, size, ' ', "cpuset");
}

static enum cp_cpuset_kind kind_of(const struct cp_mountinfo_entry *entry)
{
    if (strcmp(entry->fs_type, "cgroup2") == 0)
        return CP_CPUSET_V2;
    if (strcmp(entry->fs_type, "cgroup") == 0 &&
        has_word(entry->options, strlen(entry->options), ',', "cpuset"))
        return CP_CPUSET_V1;
    return CP_CPUSET_ABSENT;
}

/* Higher is better; equal ones: the first. */
static unsigned rank_of(enum cp_cpuset_kind kind, const char *mount_root)
{
    if (kind == CP_CPUSET_ABSENT)
        return 0;
    return (kind == CP_CPUSET_V1 ? 3u : 1u) + (strcmp(mount_root, "/") == 0 ? 1u : 0u);
}

/* Replaces what *mount holds. -ENOMEM: it is empty then. */
static int set_mount(struct cp_cpuset_mount *mount, enum cp_cpuset_kind kind,
                     const char *mount_point, const char *mount_root)
{
    cp_cpuset_mount_done(mount);
    mount->mount_point = strdup(mount_point);
    mount->mount_root = strdup(mount_root);
    if (!mount->mount_point || !mount->mount_root) {
        cp_cpuset_mount_done(mount);
        return -ENOMEM;
    }
    mount->kind = kind;
    return 0;
}

/* Looks through a mountinfo text, which it changes, for the best mount. */
static int choose_mount(const struct cp_root *root, char *text, struct cp_cpuset_mount *best)
{
    struct cp_mountinfo_entry entry;
    int r;

    while ((r = cp_mountinfo_next(&text, &entry)) == 0) {
        enum cp_cpuset_kind kind = kind_of(&entry);
        const char *mount_point = entry.mount_point + strspn(entry.mount_point, "/");

        if (rank_of(kind, entry.root) <= rank_of(best->kind, best->mount_root))
            continue;
        /* A cgroup file system mounted as "/" has the empty path below the root. */
        if (!*mount_point)
            mount_point = ".";
        r = is_visible(root, kind, mount_point);
        if (r > 0)
            r = set_mount(best, kind, mount_point, entry.root);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : 0;
}

int cp_cpuset_find_mount(const struct cp_root *root, struct cp_cpuset_mount *ret_mount)
{
    _cleanup_free_ char *text = NULL;
    struct cp_cpuset_mount best = {0};
    int r = cp_root_read_file(root, "proc/self/mountinfo", MOUNTINFO_MAX_SIZE, &text, NULL);

    if (r < 0)
        return r;
    r = choose_mount(root, text, &best);
    if (r < 0) {
        cp_cpuset_mount_done(&best);
        return r;
    }
    *ret_mount = best;
    return 0;
}

/*
 * The path of the task's cgroup in a /proc/TID/cgroup text (cgroups(7)), whose lines are
 * "id:controllers:path"; a path may hold colons, but no newline. v2 is the line "0::". NULL: the
 * task is in no such hierarchy. Changes text.
 */
static const char *find_cgroup(char *text, enum cp_cpuset_kind kind)
{
    for (char *line; (line = strsep(&text, "\n"));) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!path)
            continue;
        controllers++;
        if (kind == CP_CPUSET_V2
                ? strncmp(line, "0::", 3) == 0
                : has_word(controllers, (size_t)(path - controllers), ',', "cpuset"))
            return path + 1;
    }
    return NULL;
}

/* What of path lies below the cgroup that the mount shows: "" or "/a/b". NULL: it lies outside.
 * Paths outside of our cgroup namespace begin with "/..", which must never climb out of a mount. */
static const char *below_mount(const char *path, const char *mount_root)
{
    size_t length = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);

    if (strncmp(path, mount_root, length) != 0 || (path[length] && path[length] != '/'))
        return NULL;
    path += length;
    if (strcmp(path, "/") == 0)
        return "";
    for (const char *part = path; (part = strstr(part, "/..")); part += 3)
        if (part[3] == '/' || part[3] == '\0')
            return NULL;
    return path;
}

static bool is_gone(int error)
{
    return error == -ENOENT || error == -ENODEV || error == -ESRCH;
}

/* Reads directory/name as a list. 0, -ENOENT: no such file; CP_PROC_GONE: went while being read. */
static int read_cpus(const struct cp_root *root, const char *directory, const char *name,
                     struct cp_cpumask *ret_cpus)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_free_ char *text = NULL;
    int r = format_path(&path, "%s/%s", directory, name);

    if (r < 0)
        return r;
    r = cp_root_read_file(root, path, CPUS_MAX_SIZE, &text, NULL);
    if (r == -ENODEV || r == -ESRCH)
        return CP_PROC_GONE;
    if (r < 0)
        return r;
    r = cp_cpumask_parse_list(text, ret_cpus);
    return r == -EINVAL || r == -ERANGE ? -EBADMSG : r;
}

/* The names with "cpuset." are the usual ones; mounts with noprefix lack it. */
static int read_v1(const struct cp_root *root, const char *directory, struct cp_cpumask *ret_cpus)
{
    static const char *const names[] = {"cpuset.effective_cpus", "effective_cpus", "cpuset.cpus",
                                        "cpus"};

    for (size_t i = 0; i < CP_ELEMENTS(names); i++) {
        int r = read_cpus(root, directory, names[i], ret_cpus);

        if (r != -ENOENT)
            return r;
    }
    return CP_PROC_GONE;
}

/* Where a cgroup has no cpuset of its own (the controller is not enabled there), the nearest one
 * upwards rules. keep: how much of directory is the mount point. */
static int read_v2(const struct cp_root *root, char *directory, size_t keep,
                   struct cp_cpumask *ret_cpus)
{
    for (;;) {
        int r = read_cpus(root, directory, "cpuset.cpus.effective", ret_cpus);
        char *slash;

        if (r != -ENOENT)
            return r;
        slash = strrchr(directory + keep, '/');
        if (!slash)
            return CP_CPUSET_UNLIMITED;
        *slash = '\0';
    }
}

int cp_cpuset_effective(const struct cp_root *root, const struct cp_cpuset_mount *mount, pid_t tid,
                        struct cp_cpumask *ret_cpus)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ char *directory = NULL;
    _cleanup_close_ int fd = -1;
    char proc_path[64];
    const char *path;
    int r;

    if (mount->kind == CP_CPUSET_ABSENT)
        return CP_CPUSET_UNLIMITED;
    (void)snprintf(proc_path, sizeof(proc_path), "proc/%d/cgroup", tid);
    r = cp_root_read_file(root, proc_path, TASK_CGROUP_MAX_SIZE, &text, NULL);
    if (r < 0)
        return is_gone(r) ? CP_PROC_GONE : r;
    path = find_cgroup(text, mount->kind);
    if (!path)
        return CP_CPUSET_UNLIMITED;
    path = below_mount(path, mount->mount_root);
    if (!path)
        return -EXDEV;
    r = format_path(&directory, "%s%s", mount->mount_point, path);
    if (r < 0)
        return r;
    /* Only a cgroup that is there may be looked for upwards. */
    fd = cp_root_open_file(root, directory, O_PATH | O_DIRECTORY);
    if (fd < 0)
        return is_gone(fd) ? CP_PROC_GONE : fd;
    return mount->kind == CP_CPUSET_V1
               ? read_v1(root, directory, ret_cpus)
               : read_v2(root, directory, strlen(mount->mount_point), ret_cpus);
}
