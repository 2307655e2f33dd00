/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks for tasks that inherited a mask of ours and gives them the original. */
#include "act/strays.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_PROCESSES 4096u /* descendants looked at in one scan */
#define MAX_THREADS 65536u  /* of one process */
#define CHILDREN_MAX_SIZE ((size_t)1024 * 1024)

/* Processes to look at; the first is the entry's own. */
struct queue {
    pid_t *pids; /* owned */
    size_t n;
    size_t capacity;
};

static void queue_add(struct queue *queue, pid_t pid)
{
    if (queue->n == MAX_PROCESSES)
        return;
    if (queue->n == queue->capacity) {
        size_t wanted = queue->capacity ? queue->capacity * 2 : 16;
        pid_t *larger = reallocarray(queue->pids, wanted, sizeof(*larger));

        /* Without memory fewer are looked at; the next scan looks again. */
        if (!larger)
            return;
        queue->pids = larger;
        queue->capacity = wanted;
    }
    queue->pids[queue->n++] = pid;
}

/* The children that this very thread forked; nothing without CONFIG_PROC_CHILDREN. */
static void queue_add_children(struct queue *queue, const struct cp_root *root, pid_t pid,
                               pid_t tid)
{
    _cleanup_free_ char *text = NULL;
    char path[96];
    char *next;

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/children", pid, tid);
    if (cp_root_read_file(root, path, CHILDREN_MAX_SIZE, &text, NULL) < 0)
        return;
    for (next = text;;) {
        char *end;
        long child = strtol(next, &end, 10);

        if (end == next || child <= 0 || child > INT_MAX)
            return;
        queue_add(queue, (pid_t)child);
        next = end;
    }
}

/* Does the mask say anything, or is it just all that the cpuset has? */
static bool is_whole_cpuset(const struct cp_act_context *context, pid_t tid,
                            const struct cp_cpumask *mask)
{
    _cleanup_cpumask_ struct cp_cpumask cpuset = {0};
    int r = cp_cpuset_effective(context->root, &context->cpuset_mount, tid, &cpuset);

    return r != 0 ? r != CP_CPUSET_UNLIMITED : cp_cpumask_equal(mask, &cpuset);
}

static bool is_stray(const struct cp_act_stray_scan *scan, pid_t tid, struct cp_task_id *ret_task)
{
    _cleanup_cpumask_ struct cp_cpumask mask = {0};
    struct cp_proc_stat stat;

    /* Most threads are older than the placement: one read settles them. */
    if (cp_proc_read_stat(scan->context->root, tid, &stat) != 0 ||
        stat.id.start_ticks < scan->entry->placed_ticks ||
        stat.id.start_ticks > scan->until_ticks || scan->is_placed(stat.id, scan->userdata))
        return false;
    if (cp_act_look(scan->context->root, stat.id, &mask, NULL) != 0 ||
        !cp_cpumask_equal(&mask, &scan->entry->target) ||
        is_whole_cpuset(scan->context, tid, &mask))
        return false;
    *ret_task = stat.id;
    return true;
}

static unsigned look_through(const struct cp_act_stray_scan *scan, struct queue *queue, pid_t pid,
                             bool descendant)
{
    _cleanup_free_ pid_t *tids = NULL;
    size_t n_tids = 0;
    unsigned n_found = 0;

    if (cp_proc_list_threads(scan->context->root, pid, MAX_THREADS, &tids, &n_tids) != 0)
        return 0;
    for (size_t i = 0; i < n_tids; i++) {
        char detail[CP_ACT_DETAIL_SIZE];
        struct cp_journal_entry stray = *scan->entry; /* masks borrowed */
        bool found = is_stray(scan, tids[i], &stray.task);

        if (found && cp_act_give_back(scan->context, &stray, detail) == CP_ACT_RESTORED)
            n_found++;
        /* After its own mask is back: children forked until now are seen. */
        if (found || descendant)
            queue_add_children(queue, scan->context->root, pid, tids[i]);
    }
    return n_found;
}

unsigned cp_act_free_strays(const struct cp_act_stray_scan *scan)
{
    const struct cp_journal_entry *entry = scan->entry;
    struct cp_proc_stat leader;
    struct queue queue = {0};
    unsigned n_found = 0;

    /* A leader that is younger than the placed task is another process. */
    if (cp_proc_read_stat(scan->context->root, entry->tgid, &leader) != 0 ||
        leader.id.start_ticks > entry->task.start_ticks)
        return 0;
    queue_add(&queue, entry->tgid);
    if (cp_act_identify(scan->context->root, entry->task) == 0)
        queue_add_children(&queue, scan->context->root, entry->tgid, entry->task.tid);
    for (size_t i = 0; i < queue.n; i++)
        n_found += look_through(scan, &queue, queue.pids[i], i > 0);
    free(queue.pids);
    return n_found;
}
