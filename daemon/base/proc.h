/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What /proc says of one task: strict, bounded parsers and readers over a root directory.
 *
 * Decides nothing. A task that has gone is the positive result CP_PROC_GONE, not an error: that is
 * everyday business (ENOENT and ESRCH both mean it).
 */
#pragma once

#include "base/cpumask.h"
#include "base/root.h"
#include "base/task-id.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CP_PROC_GONE 1

#define CP_COMM_SIZE 16 /* TASK_COMM_LEN */

/* /proc/TID/stat, proc(5). Flags are the kernel's PF_* of include/linux/sched.h. */
struct cp_proc_stat {
    struct cp_task_id id;
    char comm[CP_COMM_SIZE * 4]; /* as printed: the kernel may print longer names for kthreads */
    char state;                  /* 'R', 'S', 'D', 'Z', … */
    uint32_t flags;
    int last_cpu;       /* field 39: the CPU it ran on last */
    unsigned policy;    /* field 41: SCHED_OTHER … */
    uint64_t cpu_ticks; /* utime + stime, ticks */
};

#define CP_PF_EXITING 0x00000004u
#define CP_PF_KTHREAD 0x00200000u
#define CP_PF_NO_SETAFFINITY 0x04000000u

/* /proc/TID/status */
struct cp_proc_status {
    pid_t tgid;
    uid_t uid;                 /* real */
    uint64_t rss_kib;          /* VmRSS, 0 for kernel threads */
    struct cp_cpumask allowed; /* Cpus_allowed_list, offline CPUs included */
};

void cp_proc_status_done(struct cp_proc_status *status);

/* Parses the text of a stat file; the comm ends at the last ')', so any name is safe.
 * -EBADMSG: not such a text. *ret_stat is unchanged on failure. */
int cp_proc_parse_stat(const char *text, struct cp_proc_stat *ret_stat);
/* Parses the text of a status file. -EBADMSG, -ENOMEM. */
int cp_proc_parse_status(const char *text, struct cp_proc_status *ret_status);

/* Read and parse; tid may be a thread that is not a leader. CP_PROC_GONE, or negative errno. */
int cp_proc_read_stat(const struct cp_root *root, pid_t tid, struct cp_proc_stat *ret_stat);
int cp_proc_read_status(const struct cp_root *root, pid_t tid, struct cp_proc_status *ret_status);

/* The TIDs of a process (thread group), rising, in a new array that belongs to the caller; at most
 * limit of them (-E2BIG beyond). CP_PROC_GONE, or negative errno. */
int cp_proc_list_threads(const struct cp_root *root, pid_t pid, size_t limit, pid_t **ret_tids,
                         size_t *ret_n_tids);
