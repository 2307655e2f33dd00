/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The guard: news of tasks whose mask was changed, and of the children that inherit it. Attached
 * always; a machine without guarded tasks pays one comparison for each fork, exec and exit.
 *
 * Also the facts of a single task that only the kernel can tell.
 */
#pragma once

#include "wake/events.bpf.h"

/* Entries of the table; both sides count what they add and take. */
__u32 n_guarded = 0;

/* TID to start time in ticks. Not task storage: that is filled from outside by pidfd, which single
 * threads have since 6.9 only. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, __u32);
    __type(value, __u64);
} guarded SEC(".maps");

static __always_inline bool is_guarded(__u32 tid, __u64 ticks)
{
    const __u64 *known = bpf_map_lookup_elem(&guarded, &tid);

    return known && *known == ticks;
}

static __always_inline void guard_add(__u32 tid, __u64 ticks)
{
    if (bpf_map_update_elem(&guarded, &tid, &ticks, BPF_NOEXIST) == 0)
        __sync_fetch_and_add(&n_guarded, 1);
    else if (bpf_map_update_elem(&guarded, &tid, &ticks, BPF_EXIST) != 0)
        /* No room: what this task does later goes unseen, which is a lost event. */
        __sync_fetch_and_add(&n_lost_events, 1);
}

static __always_inline void guard_remove(__u32 tid)
{
    if (bpf_map_delete_elem(&guarded, &tid) == 0)
        __sync_fetch_and_sub(&n_guarded, 1);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(guard_fork, struct task_struct *parent, struct task_struct *child)
{
    if (!n_guarded || !is_guarded((__u32)parent->pid, start_ticks(parent)))
        return 0;
    guard_add((__u32)child->pid, start_ticks(child));
    send_event(CP_WAKE_ABI_FORK, (__u32)child->pid, start_ticks(child), (__u32)parent->pid,
               start_ticks(parent));
    return 0;
}

/* A thread that is not the leader takes over the leader's TID and start time when it calls exec; it
 * is still the task with the changed mask. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(guard_exec, struct task_struct *task, int old_pid)
{
    __u32 tid = (__u32)task->pid;
    __u32 old_tid = (__u32)old_pid;
    __u64 ticks = start_ticks(task);
    __u64 old_ticks = ticks;
    const __u64 *known;

    if (!n_guarded)
        return 0;
    known = bpf_map_lookup_elem(&guarded, &old_tid);
    if (!known)
        return 0;
    old_ticks = *known;
    if (old_tid != tid) {
        guard_remove(old_tid);
        guard_add(tid, ticks);
    } else if (old_ticks != ticks) {
        return 0;
    }
    send_event(CP_WAKE_ABI_EXEC, tid, ticks, old_tid, old_ticks);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(guard_exit, struct task_struct *task)
{
    __u32 tid = (__u32)task->pid;
    __u64 ticks = start_ticks(task);

    if (!n_guarded || !is_guarded(tid, ticks))
        return 0;
    guard_remove(tid);
    send_event(CP_WAKE_ABI_EXIT, tid, ticks, 0, 0);
    return 0;
}

__u32 facts_tid = 0;
/* The CPUs that a task without a mask of its own may use; all 0: unknown. */
__u64 everywhere[CP_WAKE_ABI_MASK_WORDS];

static __always_inline bool is_everywhere(const void *mask)
{
    bool is_known = false;

    for (int i = 0; i < CP_WAKE_ABI_MASK_WORDS; i++) {
        __u64 wanted = everywhere[i];
        __u64 word = 0;

        /* Where no CPU is wanted the kernel's mask may have ended. */
        if (!wanted)
            continue;
        if (bpf_probe_read_kernel(&word, sizeof(word), (const __u64 *)mask + i) || (wanted & ~word))
            return false;
        is_known = true;
    }
    return is_known;
}

SEC("iter/task")
int facts_dump(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct cp_wake_abi_facts facts = {};

    if (!task || (__u32)task->pid != facts_tid)
        return 0;
    facts.tid = facts_tid;
    facts.start_ticks = start_ticks(task);
    if (bpf_core_type_exists(struct affinity_context) &&
        bpf_core_field_exists(task->user_cpus_ptr)) {
        facts.user_mask_known = 1;
        facts.has_user_mask = task->user_cpus_ptr != NULL;
        facts.user_mask_is_everywhere = facts.has_user_mask && is_everywhere(task->user_cpus_ptr);
    }
    bpf_seq_write(ctx->meta->seq, &facts, sizeof(facts));
    return 0;
}
