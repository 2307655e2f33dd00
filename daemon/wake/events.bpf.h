/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* The event ring, and which tasks count at all. */
#pragma once

#include "wake/kernel.bpf.h"

const volatile __u32 own_tgid = 0; /* the daemon's: it neither watches nor reports itself */
__u64 n_lost_events = 0;

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 256 * 1024);
} events SEC(".maps");

/* Idle tasks are kernel threads; pid 0 is asked for as well since that costs nothing. */
static __always_inline bool task_counts(const struct task_struct *task)
{
    return !(task->flags & PF_KTHREAD) && task->pid && (__u32)task->tgid != own_tgid;
}

static __always_inline void send_event(enum cp_wake_abi_event_kind kind, __u32 tid,
                                       __u64 start_ticks, __u32 other_tid, __u64 other_start_ticks)
{
    struct cp_wake_abi_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

    if (!event) {
        __sync_fetch_and_add(&n_lost_events, 1);
        return;
    }
    event->kind = kind;
    event->tid = tid;
    event->start_ticks = start_ticks;
    event->other_tid = other_tid;
    event->pad = 0;
    event->other_start_ticks = other_start_ticks;
    event->time_ns = bpf_ktime_get_boot_ns();
    bpf_ringbuf_submit(event, 0);
}
