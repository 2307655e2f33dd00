/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Identity of a task (a thread) within one boot: TIDs are used again, a TID with its start time is
 * not. The start time is field 22 of /proc/TID/stat, in ticks of USER_HZ (100 a second) since
 * boot, as proc(5) has it; the kernel computes it from task_struct.start_boottime.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CP_NS_PER_TICK 10000000ull

struct cp_task_id {
    pid_t tid;
    uint64_t start_ticks;
};

static inline bool cp_task_id_equal(struct cp_task_id a, struct cp_task_id b)
{
    return a.tid == b.tid && a.start_ticks == b.start_ticks;
}

/* An order for sorting: by TID, then by start time. Negative, 0 or positive as for qsort(3). */
static inline int cp_task_id_compare(struct cp_task_id a, struct cp_task_id b)
{
    if (a.tid != b.tid)
        return a.tid < b.tid ? -1 : 1;
    if (a.start_ticks != b.start_ticks)
        return a.start_ticks < b.start_ticks ? -1 : 1;
    return 0;
}
