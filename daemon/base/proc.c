/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Strict, bounded readers of /proc/TID. Decides nothing, never logs. */
#include "base/proc.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define STAT_MAX_SIZE 4096u
#define STATUS_MAX_SIZE ((size_t)256 * 1024) /* masks of large machines make long lines */

void cp_proc_status_done(struct cp_proc_status *status)
{
    cp_cpumask_done(&status->allowed);
    *status = (struct cp_proc_status){0};
}

/* Reads one decimal field and the space before it. false: not a number, or out of range. */
static bool next_number(const char **text, int64_t *ret)
{
    char *end;

    if (**text != ' ' || (!isdigit((unsigned char)(*text)[1]) && (*text)[1] != '-'))
        return false;
    errno = 0;
    *ret = strtoll(*text + 1, &end, 10);
    if (errno != 0 || end == *text + 1 || (*end != ' ' && *end != '\n' && *end != '\0'))
        return false;
    *text = end;
    return true;
}

/* Unsigned fields may use all 64 bits (RSS limits do). */
static bool skip_field(const char **text)
{
    if (**text != ' ')
        return false;
    (*text)++;
    while (**text && **text != ' ' && **text != '\n')
        (*text)++;
    return true;
}

int cp_proc_parse_stat(const char *text, struct cp_proc_stat *ret_stat)
{
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    struct cp_proc_stat stat = {0};
    int64_t field[53] = {0}; /* by the numbers of proc(5) */
    char *end;
    long tid;

    if (!open || !close || close < open || !isdigit((unsigned char)*text))
        return -EBADMSG;
    errno = 0;
    tid = strtol(text, &end, 10);
    if (errno != 0 || tid <= 0 || tid > INT_MAX || end + 1 != open || *end != ' ')
        return -EBADMSG;
    (void)snprintf(stat.comm, sizeof(stat.comm), "%.*s", (int)CP_MIN(close - open - 1, INT_MAX),
                   open + 1);
    text = close + 1;
    if (text[0] != ' ' || text[1] == '\0')
        return -EBADMSG;
    stat.state = text[1];
    text += 2;
    for (unsigned i = 4; i <= 41; i++) {
        bool wanted = i == 9 || i == 14 || i == 15 || i == 22 || i == 39 || i == 41;

        if (wanted ? !next_number(&text, &field[i]) : !skip_field(&text))
            return -EBADMSG;
    }
    if (field[22] < 0 || field[39] < 0 || field[39] >= (int64_t)CP_CPU_LIMIT || field[9] < 0 ||
        field[9] > UINT32_MAX || field[14] < 0 || field[15] < 0 || field[41] < 0 ||
        field[41] > INT_MAX)
        return -EBADMSG;
    stat.id = (struct cp_task_id){.tid = (pid_t)tid, .start_ticks = (uint64_t)field[22]};
    stat.flags = (uint32_t)field[9];
    stat.last_cpu = (int)field[39];
    stat.policy = (unsigned)field[41];
    stat.cpu_ticks = (uint64_t)field[14] + (uint64_t)field[15];
    *ret_stat = stat;
    return 0;
}

/* The value behind "Key:" at the start of a line, or NULL. */
static const char *find_value(const char *text, const char *key)
{
    size_t length = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            return line + length + 1;
    }
    return NULL;
}

static bool read_unsigned(const char *value, uint64_t limit, uint64_t *ret)
{
    char *end;

    if (!value)
        return false;
    value += strspn(value, " \t");
    if (!isdigit((unsigned char)*value))
        return false;
    errno = 0;
    *ret = strtoull(value, &end, 10);
    return errno == 0 && end != value && *ret <= limit;
}

int cp_proc_parse_status(const char *text, struct cp_proc_status *ret_status)
{
    struct cp_proc_status status = {0};
    const char *allowed = find_value(text, "Cpus_allowed_list");
    uint64_t tgid;
    uint64_t uid;
    char *list;
    int r;

    if (!read_unsigned(find_value(text, "Tgid"), INT_MAX, &tgid) ||
        !read_unsigned(find_value(text, "Uid"), UINT32_MAX, &uid) || !allowed)
        return -EBADMSG;
    if (!read_unsigned(find_value(text, "VmRSS"), UINT64_MAX, &status.rss_kib))
        status.rss_kib = 0;
    list = strndup(allowed, strcspn(allowed, "\n"));
    if (!list)
        return -ENOMEM;
    r = cp_cpumask_parse_list(list, &status.allowed);
    free(list);
    if (r < 0)
        return r == -ENOMEM ? r : -EBADMSG;
    status.tgid = (pid_t)tgid;
    status.uid = (uid_t)uid;
    *ret_status = status;
    return 0;
}

/* Reads a file of one task. A task that went is CP_PROC_GONE. */
static int read_task_file(const struct cp_root *root, pid_t tid, const char *name, size_t max_size,
                          char **ret_text)
{
    char path[64];
    int r;

    (void)snprintf(path, sizeof(path), "proc/%d/%s", tid, name);
    r = cp_root_read_file(root, path, max_size, ret_text, NULL);
    return r == -ENOENT || r == -ESRCH ? CP_PROC_GONE : r;
}

int cp_proc_read_stat(const struct cp_root *root, pid_t tid, struct cp_proc_stat *ret_stat)
{
    _cleanup_free_ char *text = NULL;
    int r = read_task_file(root, tid, "stat", STAT_MAX_SIZE, &text);

    return r != 0 ? r : cp_proc_parse_stat(text, ret_stat);
}

int cp_proc_read_status(const struct cp_root *root, pid_t tid, struct cp_proc_status *ret_status)
{
    _cleanup_free_ char *text = NULL;
    int r = read_task_file(root, tid, "status", STATUS_MAX_SIZE, &text);

    return r != 0 ? r : cp_proc_parse_status(text, ret_status);
}

static void cleanup_closedir(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

static int compare_tids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a;
    pid_t right = *(const pid_t *)b;

    return (left > right) - (left < right);
}

static int grow_tids(pid_t **tids, size_t *capacity)
{
    size_t wanted = *capacity ? *capacity * 2 : 16;
    pid_t *larger = reallocarray(*tids, wanted, sizeof(*larger));

    if (!larger)
        return -ENOMEM;
    *tids = larger;
    *capacity = wanted;
    return 0;
}

int cp_proc_list_threads(const struct cp_root *root, pid_t pid, size_t limit, pid_t **ret_tids,
                         size_t *ret_n_tids)
{
    _cleanup_(cleanup_closedir) DIR *directory = NULL;
    _cleanup_free_ pid_t *tids = NULL;
    size_t n = 0;
    size_t capacity = 0;
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "proc/%d/task", pid);
    fd = cp_root_open_file(root, path, O_RDONLY | O_DIRECTORY);
    if (fd == -ENOENT || fd == -ESRCH)
        return CP_PROC_GONE;
    if (fd < 0)
        return fd;
    directory = fdopendir(fd);
    if (!directory) {
        int error = errno;

        close(fd);
        return -error;
    }
    for (;;) {
        struct dirent *entry;
        long tid;

        errno = 0;
        entry = readdir(directory);
        if (!entry) {
            /* ENOENT: the process ended while we read. */
            if (errno != 0 && errno != ENOENT && errno != ESRCH)
                return -errno;
            break;
        }
        tid = strtol(entry->d_name, NULL, 10);
        if (tid <= 0 || tid > INT_MAX)
            continue;
        if (n == limit)
            return -E2BIG;
        if (n == capacity && grow_tids(&tids, &capacity) < 0)
            return -ENOMEM;
        tids[n++] = (pid_t)tid;
    }
    if (n == 0)
        return CP_PROC_GONE;
    qsort(tids, n, sizeof(*tids), compare_tids);
    *ret_tids = TAKE_PTR(tids);
    *ret_n_tids = n;
    return 0;
}
