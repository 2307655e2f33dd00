/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's CPU lists below a root directory. Must not know hwloc. */
#include "machine/cpu-lists.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CPU_DIRECTORY "sys/devices/system/cpu/"
/* Isolated partitions of cgroup v2 (Linux 6.7 and later), at the usual mount only: CPUs of a
 * partition elsewhere are missing from every other task's cpuset anyway. */
#define PARTITIONS_FILE "sys/fs/cgroup/cpuset.cpus.isolated"

/* A list of 65 536 single numbers has less than 400 KB. */
#define LIST_SIZE_MAX (512u << 10)
#define CMDLINE_SIZE_MAX (64u << 10)

void cp_cpu_lists_done(struct cp_cpu_lists *lists)
{
    cp_cpumask_done(&lists->online);
    cp_cpumask_done(&lists->present);
    cp_cpumask_done(&lists->possible);
    cp_cpumask_done(&lists->isolated);
    *lists = (struct cp_cpu_lists){0};
}

/* Adds the list in a file to *mask. Negative errno: -EBADMSG malformed. */
static int add_file(const struct cp_root *root, const char *path, struct cp_cpumask *mask)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_cpumask_ struct cp_cpumask more = {0};
    int r = cp_root_read_file(root, path, LIST_SIZE_MAX, &text, NULL);

    if (r < 0)
        return r;
    /* How nohz_full reads where the parameter was not given (the kernel pads it with blanks). */
    if (strncmp(text + strspn(text, " "), "(null)", 6) == 0)
        return 0;
    r = cp_cpumask_parse_list(text, &more);
    if (r == -EINVAL || r == -ERANGE)
        return -EBADMSG;
    if (r < 0)
        return r;
    return cp_cpumask_or(mask, mask, &more);
}

/* As add_file(). 0; 1: there is no such file, or we may not read it; negative errno with *error. */
static int add_optional_file(const struct cp_root *root, const char *path, struct cp_cpumask *mask,
                             struct cp_error *error)
{
    int r = add_file(root, path, mask);

    if (r == -ENOMEM)
        return cp_error_set(error, ENOMEM, "no memory for a list of CPUs");
    if (r == -EBADMSG || r == -EFBIG) {
        char name[512];

        (void)snprintf(name, sizeof(name), "%s/%s", root->path, path);
        return cp_error_set_at(error, EBADMSG, name, 0, 0, "this is no list of CPUs");
    }
    return r < 0 ? 1 : 0;
}

/* Expands what only the command line may hold: "N" (the last CPU) and "all". NULL: no memory. */
static char *expand_names(const char *list, size_t length, struct cp_cpu last)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    for (size_t i = 0; i < length; i++)
        if (list[i] == 'N') {
            fprintf(stream, "%u", last.os);
        } else if (length - i >= 3 && strncmp(list + i, "all", 3) == 0) {
            fprintf(stream, "0-%u", last.os);
            i += 2;
        } else {
            fputc(list[i], stream);
        }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/*
 * Moves *list behind the flags of isolcpus=, as housekeeping_isolcpus_setup() of
 * kernel/sched/isolation.c reads them. true if tasks are kept off the CPUs.
 */
static bool skip_isolcpus_flags(const char **list, size_t *length)
{
    bool any = false;
    bool keeps_tasks_off = false;

    while (*length && islower((unsigned char)**list)) {
        size_t n = strspn(*list, "abcdefghijklmnopqrstuvwxyz_");

        if (n >= *length || (*list)[n] != ',')
            break;
        any = true;
        if ((n == 6 && strncmp(*list, "domain", n) == 0) ||
            (n == 4 && strncmp(*list, "nohz", n) == 0))
            keeps_tasks_off = true;
        *list += n + 1;
        *length -= n + 1;
    }
    return keeps_tasks_off || !any;
}

static int add_parameter(const char *list, size_t length, bool isolcpus, struct cp_cpu last,
                         struct cp_cpumask *mask)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_cpumask_ struct cp_cpumask more = {0};
    int r;

    if (isolcpus && !skip_isolcpus_flags(&list, &length))
        return 0;
    text = expand_names(list, length, last);
    if (!text)
        return -ENOMEM;
    r = cp_cpumask_parse_list(text, &more);
    if (r == -ENOMEM)
        return r;
    return r < 0 ? 0 : cp_cpumask_or(mask, mask, &more);
}

int cp_cpu_lists_parse_cmdline(const char *cmdline, bool isolcpus, struct cp_cpu last,
                               struct cp_cpumask *mask)
{
    const char *name = isolcpus ? "isolcpus=" : "nohz_full=";
    size_t name_length = strlen(name);

    for (const char *word = cmdline; *word;) {
        size_t length;

        word += strspn(word, " \t\n");
        length = strcspn(word, " \t\n");
        /* What follows belongs to init. */
        if (length == 2 && strncmp(word, "--", 2) == 0)
            break;
        if (length > name_length && strncmp(word, name, name_length) == 0) {
            int r = add_parameter(word + name_length, length - name_length, isolcpus, last, mask);

            if (r < 0)
                return r;
        }
        word += length;
    }
    return 0;
}

static struct cp_cpu highest(const struct cp_cpumask *mask)
{
    struct cp_cpu last = {0};

    for (struct cp_cpu cpu; cp_cpumask_next(mask, last.os + 1, &cpu);)
        last = cpu;
    return last;
}

static int read_isolated(const struct cp_root *root, struct cp_cpu_lists *lists,
                         struct cp_error *error)
{
    static const struct {
        const char *path;
        bool isolcpus;
    } sources[] = {{CPU_DIRECTORY "isolated", true}, {CPU_DIRECTORY "nohz_full", false}};
    _cleanup_free_ char *cmdline = NULL;
    int r;

    (void)cp_root_read_file(root, "proc/cmdline", CMDLINE_SIZE_MAX, &cmdline, NULL);
    for (size_t i = 0; i < CP_ELEMENTS(sources); i++) {
        r = add_optional_file(root, sources[i].path, &lists->isolated, error);
        if (r == 1 && cmdline) {
            r = cp_cpu_lists_parse_cmdline(cmdline, sources[i].isolcpus, highest(&lists->possible),
                                           &lists->isolated);
            if (r < 0)
                return cp_error_set(error, -r, "no memory for a list of CPUs");
        }
        if (r < 0)
            return r;
    }
    r = add_optional_file(root, PARTITIONS_FILE, &lists->isolated, error);
    return r < 0 ? r : 0;
}

/* Makes the sets hold each other: records may lack a file. */
static int join_lists(struct cp_cpu_lists *lists)
{
    int r = 0;

    if (cp_cpumask_is_empty(&lists->present))
        r = cp_cpumask_copy(&lists->present, &lists->possible);
    if (r == 0)
        r = cp_cpumask_or(&lists->present, &lists->present, &lists->online);
    if (r == 0)
        r = cp_cpumask_or(&lists->possible, &lists->possible, &lists->present);
    return r;
}

int cp_cpu_lists_read(const struct cp_root *root, struct cp_cpu_lists *ret_lists,
                      struct cp_error *error)
{
    _cleanup_cpu_lists_ struct cp_cpu_lists lists = {0};
    int r = add_optional_file(root, CPU_DIRECTORY "online", &lists.online, error);

    if (r < 0)
        return r;
    lists.online_known = r == 0;
    r = add_optional_file(root, CPU_DIRECTORY "present", &lists.present, error);
    if (r >= 0)
        r = add_optional_file(root, CPU_DIRECTORY "possible", &lists.possible, error);
    if (r >= 0 && join_lists(&lists) < 0)
        r = cp_error_set(error, ENOMEM, "no memory for a list of CPUs");
    if (r >= 0)
        r = read_isolated(root, &lists, error);
    if (r < 0)
        return r;
    *ret_lists = lists;
    lists = (struct cp_cpu_lists){0};
    return 0;
}

int cp_cpu_lists_read_online(const struct cp_root *root, struct cp_cpumask *ret_online)
{
    _cleanup_cpumask_ struct cp_cpumask online = {0};
    int r = add_file(root, CPU_DIRECTORY "online", &online);

    if (r < 0)
        return r;
    cp_cpumask_done(ret_online);
    *ret_online = online;
    online = (struct cp_cpumask){0};
    return 0;
}
