/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The scale: weighs hand-offs during a window. Two programs, on sched_waking and on sched_switch.
 *
 * Words (design, section 3): latency, from the wake-up to the wakee's switch-in; tail, the CPU time
 * that the waker uses from the wake-up to its next sleep or its next wake-up, in CPU time since on
 * one CPU the wakee often preempts the waker; run, the CPU time that the wakee uses from that
 * switch-in to its next sleep.
 *
 * Who writes what. A task's state is written on the CPU that it runs on, with interrupts off; only
 * wake_* is written by its waker, under the kernel's pi_lock of the task. An edge's first half is
 * written by the waker, its second half by the wakee, so plain additions do. Memory (task storage,
 * entries of the table of edges) is taken under sched_waking only, never under sched_switch, which
 * holds the run queue's lock.
 *
 * A wake-up may hit a task that has announced its sleep and still runs. Whether it will sleep first
 * cannot be told at that moment, so the wake-up is noted; it is forgotten if the task is then
 * preempted, replaced by the next wake-up if it slept later, and right if it was switched out at
 * that very moment.
 */
#pragma once

#include "wake/events.bpf.h"

/* Number of the open window; 0: none. State of other windows is stale and is reset when touched. */
__u32 scale_epoch = 0;
/* No more entries are tried for in this window. */
__u32 scale_edges_full = 0;

#define EPOCH_BUSY 0xffffffffu /* somebody resets this state right now */

static const struct cp_wake_abi_edge empty_edge;

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct cp_wake_abi_state);
} scale_tasks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct cp_wake_abi_edge_key);
    __type(value, struct cp_wake_abi_edge);
} scale_edges SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct cp_wake_abi_cpu);
} scale_cpus SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct cp_wake_abi_domains);
} scale_domains SEC(".maps");

static __always_inline struct cp_wake_abi_cpu *scale_this_cpu(void)
{
    __u32 zero = 0;

    return bpf_map_lookup_elem(&scale_cpus, &zero);
}

static __always_inline void count_dropped(__u64 n)
{
    struct cp_wake_abi_cpu *sums = scale_this_cpu();

    if (sums)
        sums->n_dropped += n;
}

static __always_inline enum cp_level shared_level(__u32 a, __u32 b)
{
    const struct cp_wake_abi_domains *domains_a;
    const struct cp_wake_abi_domains *domains_b;

    if (a == b)
        return CP_LEVEL_CPU;
    domains_a = bpf_map_lookup_elem(&scale_domains, &a);
    domains_b = bpf_map_lookup_elem(&scale_domains, &b);
    if (!domains_a || !domains_b)
        return CP_LEVEL_MACHINE;
#pragma unroll
    for (int i = 0; i < CP_WAKE_ABI_N_DOMAINS; i++)
        if (domains_a->id[i] == domains_b->id[i] && domains_a->id[i] != CP_WAKE_ABI_NO_DOMAIN)
            return CP_LEVEL_CORE + i;
    return CP_LEVEL_MACHINE;
}

/* Makes the state belong to this window. False while another CPU does the same. */
static __always_inline bool state_begin(struct cp_wake_abi_state *state, __u32 epoch,
                                        bool is_running, __u64 now)
{
    __u32 seen = state->epoch;

    if (seen == epoch)
        return true;
    if (seen == EPOCH_BUSY || __sync_val_compare_and_swap(&state->epoch, seen, EPOCH_BUSY) != seen)
        return false;
    __builtin_memset(&state->open, 0, sizeof(*state) - sizeof(state->epoch));
    state->on_since_ns = is_running ? now : 0;
    __sync_val_compare_and_swap(&state->epoch, EPOCH_BUSY, epoch);
    return true;
}

static __always_inline __u64 cpu_time(const struct cp_wake_abi_state *state, __u64 now)
{
    return state->run_ns + (state->on_since_ns ? now - state->on_since_ns : 0);
}

static __always_inline void close_tail(struct cp_wake_abi_state *state, __u64 cpu_ns)
{
    state->out.tail_ns += cpu_ns - state->tail_base_ns;
    state->out.n_tail++;
    state->open &= ~CP_WAKE_ABI_OPEN_TAIL;
}

/* An edge exists from its first hand-off on, so that what is flushed later finds it. */
static __always_inline void ensure_edge(const struct cp_wake_abi_edge_key *key)
{
    if (scale_edges_full || bpf_map_lookup_elem(&scale_edges, key))
        return;
    if (bpf_map_update_elem(&scale_edges, key, &empty_edge, BPF_NOEXIST) != 0 &&
        !bpf_map_lookup_elem(&scale_edges, key))
        scale_edges_full = 1;
}

static __always_inline void flush_out(const struct cp_wake_abi_state *state, __u32 waker)
{
    struct cp_wake_abi_edge_key key = {.waker = waker, .wakee = state->out.wakee};
    struct cp_wake_abi_edge *edge = bpf_map_lookup_elem(&scale_edges, &key);

    if (!edge) {
        count_dropped(state->out.handoffs);
        return;
    }
    edge->handoffs += state->out.handoffs;
    edge->slept += state->out.slept;
    edge->tail_ns += state->out.tail_ns;
    edge->n_tail += state->out.n_tail;
}

/* Without an entry there is nothing to count: the waker's half counts the hand-offs dropped. */
static __always_inline void flush_in(const struct cp_wake_abi_state *state, __u32 wakee)
{
    struct cp_wake_abi_edge_key key = {.waker = state->in.waker, .wakee = wakee};
    struct cp_wake_abi_edge *edge = bpf_map_lookup_elem(&scale_edges, &key);

    if (!edge)
        return;
    edge->latency_ns += state->in.latency_ns;
    edge->n_latency += state->in.n_latency;
    edge->run_ns += state->in.run_ns;
    edge->n_run += state->in.n_run;
#pragma unroll
    for (int i = 0; i < CP_LEVEL_MAX; i++)
        edge->level[i] += state->in.level[i];
}

/* Woken by the idle task, an interrupt, a kernel thread or the daemon: no hand-off, yet the task
 * waits for a CPU from now on. */
static __always_inline void uncounted_wake(struct task_struct *wakee, __u32 epoch)
{
    struct cp_wake_abi_state *state = bpf_task_storage_get(&scale_tasks, wakee, NULL, 0);

    if (!state || state->epoch != epoch)
        return;
    state->wake_waker = 0;
    state->wake_ns = bpf_ktime_get_ns();
}

static __always_inline void counted_wake(struct task_struct *current, struct task_struct *wakee,
                                         __u32 epoch)
{
    struct cp_wake_abi_edge_key key = {.waker = (__u32)current->pid, .wakee = (__u32)wakee->pid};
    struct cp_wake_abi_state *waker;
    struct cp_wake_abi_state *woken;
    __u64 now;
    __u64 cpu_ns;

    waker = bpf_task_storage_get(&scale_tasks, current, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    woken = bpf_task_storage_get(&scale_tasks, wakee, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    now = bpf_ktime_get_ns();
    if (!waker || !woken || !state_begin(waker, epoch, true, now) ||
        !state_begin(woken, epoch, wakee->on_cpu, now)) {
        count_dropped(1);
        return;
    }
    cpu_ns = cpu_time(waker, now);
    if (waker->open & CP_WAKE_ABI_OPEN_TAIL)
        close_tail(waker, cpu_ns);
    if (waker->out.wakee != key.wakee) {
        if (waker->out.wakee)
            flush_out(waker, key.waker);
        __builtin_memset(&waker->out, 0, sizeof(waker->out));
        waker->out.wakee = key.wakee;
        ensure_edge(&key);
    }
    waker->out.handoffs++;
    waker->tail_base_ns = cpu_ns;
    waker->open |= CP_WAKE_ABI_OPEN_TAIL;
    woken->wake_waker = key.waker;
    woken->wake_cpu = bpf_get_smp_processor_id();
    woken->wake_ns = now;
}

static __always_inline int scale_on_waking(struct task_struct *wakee, bool asks_interrupts)
{
    struct task_struct *current = bpf_get_current_task_btf();
    __u32 epoch = scale_epoch;

    if (!epoch || !task_counts(wakee) || current->pid == wakee->pid)
        return 0;
    if (!task_counts(current) || (asks_interrupts && in_hard_interrupt(current)))
        uncounted_wake(wakee, epoch);
    else
        counted_wake(current, wakee, epoch);
    return 0;
}

static __always_inline void switch_out(struct cp_wake_abi_state *state, bool is_runnable, __u64 now)
{
    if (state->on_since_ns)
        state->run_ns += now - state->on_since_ns;
    state->on_since_ns = 0;
    if (is_runnable) {
        state->preempted_at_ns = now;
        state->wake_ns = 0;
        return;
    }
    if (state->open & CP_WAKE_ABI_OPEN_TAIL) {
        close_tail(state, state->run_ns);
        state->out.slept++;
    }
    if (state->open & CP_WAKE_ABI_OPEN_RUN) {
        state->in.run_ns += state->run_ns - state->run_base_ns;
        state->in.n_run++;
        state->open &= ~CP_WAKE_ABI_OPEN_RUN;
    }
}

/* The wakee of a counted wake-up got its CPU: the hand-off is done. */
static __always_inline void finish_handoff(struct cp_wake_abi_state *state, __u32 tid,
                                           bool was_idle, __u64 latency_ns)
{
    enum cp_level level = shared_level(state->wake_cpu, bpf_get_smp_processor_id());
    struct cp_wake_abi_cpu *sums;

    if (level < 0 || level >= CP_LEVEL_MAX)
        return;
    if (state->in.waker != state->wake_waker) {
        if (state->in.waker)
            flush_in(state, tid);
        __builtin_memset(&state->in, 0, sizeof(state->in));
        state->in.waker = state->wake_waker;
    }
    state->in.latency_ns += latency_ns;
    state->in.n_latency++;
    state->in.level[level]++;
    state->run_base_ns = state->run_ns;
    state->open |= CP_WAKE_ABI_OPEN_RUN;
    if (!was_idle)
        return;
    sums = scale_this_cpu();
    if (!sums)
        return;
    sums->idle_latency_ns[level] += latency_ns;
    sums->n_idle_latency[level]++;
}

/* prev_on_ns: since when the task that leaves the CPU had it, 0 unknown. */
static __always_inline void switch_in(struct cp_wake_abi_state *state, __u32 tid, __u32 prev_tid,
                                      __u64 prev_on_ns, __u64 now)
{
    __u64 since = state->wake_ns ? state->wake_ns : state->preempted_at_ns;
    __u32 waker = state->wake_ns ? state->wake_waker : state->in.waker;

    if (since && since < now) {
        state->wait_ns += now - since;
        if (!state->wake_ns)
            state->preempted_ns += now - since;
        if (prev_on_ns && prev_tid && (prev_tid == waker || prev_tid == state->out.wakee))
            state->partner_ns += now - (prev_on_ns > since ? prev_on_ns : since);
        if (state->wake_ns && state->wake_waker)
            finish_handoff(state, tid, prev_tid == 0, now - since);
    }
    state->wake_ns = 0;
    state->preempted_at_ns = 0;
    state->on_since_ns = now;
}

static __always_inline int scale_on_switch(struct task_struct *prev, struct task_struct *next,
                                           bool is_runnable)
{
    __u32 epoch = scale_epoch;
    struct cp_wake_abi_state *state;
    __u64 prev_on_ns = 0;
    __u64 now;

    if (!epoch)
        return 0;
    now = bpf_ktime_get_ns();
    /* Tasks that do not count have no state: asking for kernel threads saves the lookup. */
    if (!(prev->flags & PF_KTHREAD)) {
        state = bpf_task_storage_get(&scale_tasks, prev, NULL, 0);
        if (state && state->epoch == epoch) {
            prev_on_ns = state->on_since_ns;
            switch_out(state, is_runnable, now);
        }
    }
    if (!(next->flags & PF_KTHREAD)) {
        state = bpf_task_storage_get(&scale_tasks, next, NULL, 0);
        if (state && state->epoch == epoch)
            switch_in(state, (__u32)next->pid, (__u32)prev->pid, prev_on_ns, now);
    }
    return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(scale_waking, struct task_struct *wakee)
{
    return scale_on_waking(wakee, false);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(scale_waking_asking, struct task_struct *wakee)
{
    return scale_on_waking(wakee, true);
}

/* From 5.18 on the state that the task had when it gave up the CPU comes as an argument. */
SEC("tp_btf/sched_switch")
int BPF_PROG(scale_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
             unsigned int prev_state)
{
    return scale_on_switch(prev, next, preempt || prev_state == 0);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(scale_switch_3, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    return scale_on_switch(prev, next, preempt || prev->__state == 0);
}

/* Writes every task that the last window saw. The window is closed, so nothing changes any more. */
__u32 dump_epoch = 0;

SEC("iter/task")
int scale_dump(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct cp_wake_abi_task record = {};
    struct cp_wake_abi_state *state;

    if (!task)
        return 0;
    state = bpf_task_storage_get(&scale_tasks, task, NULL, 0);
    if (!state || state->epoch != dump_epoch)
        return 0;
    record.tid = (__u32)task->pid;
    record.tgid = (__u32)task->tgid;
    record.uid = task->real_cred->uid.val;
    record.start_ticks = start_ticks(task);
    __builtin_memcpy(record.comm, task->comm, sizeof(record.comm));
    record.state = *state;
    bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
    return 0;
}
