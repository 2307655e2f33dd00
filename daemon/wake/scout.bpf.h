/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The scout: watches every wake-up of the machine, always, and reports pairs of tasks that have
 * become each other's steady partner above the rate. Must stay as cheap as it can be: one lookup
 * and a few additions a wake-up; the clock is read for one wake-up in SCOUT_BATCH.
 *
 * A batch is SCOUT_BATCH wake-ups of one task. It is fast if it took no longer than the rate allows
 * (with a quarter to spare: the scale measures exactly, this only calls for a look) and steady if
 * three quarters went to one partner. Two tasks whose latest batches are fast and steady towards
 * each other are hot. At 500 wake-ups a second a batch takes 64 ms, so a pair is reported at most
 * two batches, 128 ms, after it became hot, whatever happened before.
 */
#pragma once

#include "wake/events.bpf.h"

#define SCOUT_BATCH 32
/* A task reports at most one pair in this time. */
#define SCOUT_MIN_EVENT_DISTANCE_NS 50000000ull

const volatile __u64 scout_batch_limit_ns = 80000000ull;
/* Pairs reported in an earlier generation are reported again. */
__u32 scout_generation = 1;

struct scout_task {
    __u32 partner; /* the one it mostly wakes */
    __u32 n;       /* wake-ups in this batch */
    __u32 same;    /* those to the partner */
    __u32 other;   /* those to others */
    __u64 batch_ns;
    __u64 event_ns;
    __u32 steady; /* the partner if the last batch was fast and steady, else 0 */
    __u32 pad;
    __u64 reported; /* generation << 32 | partner; kept with the task of the lower TID */
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct scout_task);
} scout_tasks SEC(".maps");

/* Marks the pair as reported; false if it was already. Both tasks may be here at once. */
static __always_inline bool scout_claim(struct scout_task *mine, __u32 me,
                                        struct scout_task *theirs, __u32 them)
{
    struct scout_task *keeper = me < them ? mine : theirs;
    __u64 mark = (__u64)scout_generation << 32 | (me < them ? them : me);
    __u64 seen = keeper->reported;

    return seen != mark && __sync_val_compare_and_swap(&keeper->reported, seen, mark) == seen;
}

static __always_inline void scout_end_batch(struct task_struct *current, struct task_struct *wakee,
                                            struct scout_task *mine)
{
    __u64 now = bpf_ktime_get_ns();
    __u64 elapsed = now - mine->batch_ns;
    __u32 partner = mine->partner;
    bool steady = mine->same * 4 >= mine->n * 3;
    struct scout_task *theirs;

    mine->steady = steady && elapsed <= scout_batch_limit_ns ? partner : 0;
    mine->batch_ns = now;
    mine->n = 0;
    mine->same = 0;
    mine->other = 0;
    /* Cooled down for good, not just a little below the rate: its next rise is news. */
    if (!steady || elapsed > 4 * scout_batch_limit_ns)
        mine->reported = 0;
    if (!mine->steady || (__u32)wakee->pid != partner ||
        now - mine->event_ns < SCOUT_MIN_EVENT_DISTANCE_NS)
        return;
    theirs = bpf_task_storage_get(&scout_tasks, wakee, NULL, 0);
    if (!theirs || theirs->steady != (__u32)current->pid ||
        now - theirs->batch_ns > 2 * scout_batch_limit_ns ||
        !scout_claim(mine, (__u32)current->pid, theirs, partner))
        return;
    mine->event_ns = now;
    send_event(CP_WAKE_ABI_HOT, (__u32)current->pid, start_ticks(current), partner,
               start_ticks(wakee));
}

static __always_inline int scout(struct task_struct *wakee, bool asks_interrupts)
{
    struct task_struct *current = bpf_get_current_task_btf();
    __u32 pid = (__u32)wakee->pid;
    struct scout_task *mine;

    if (!task_counts(current) || !task_counts(wakee) || (__u32)current->pid == pid)
        return 0;
    if (asks_interrupts && in_hard_interrupt(current))
        return 0;
    mine = bpf_task_storage_get(&scout_tasks, current, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!mine)
        return 0;
    if (mine->n == 0 && mine->batch_ns == 0)
        mine->batch_ns = bpf_ktime_get_ns();
    mine->n++;
    if (mine->partner == pid) {
        mine->same++;
    } else if (++mine->other > mine->same) {
        mine->partner = pid;
        mine->same = 1;
        mine->other = 0;
    }
    if (mine->n >= SCOUT_BATCH)
        scout_end_batch(current, wakee, mine);
    return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(scout_waking, struct task_struct *wakee)
{
    return scout(wakee, false);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(scout_waking_asking, struct task_struct *wakee)
{
    return scout(wakee, true);
}
