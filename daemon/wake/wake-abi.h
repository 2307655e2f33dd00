/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the BPF program and the daemon share: events and records. Included by both sides, so only
 * plain types; each side has defined the fixed-width types (__u32 …) before it includes this.
 */
#pragma once

#include "base/level.h"

#define CP_WAKE_ABI_COMM_SIZE 16 /* TASK_COMM_LEN */
#define CP_WAKE_ABI_NS_PER_TICK 10000000ull

enum cp_wake_abi_event_kind {
    CP_WAKE_ABI_HOT,  /* two tasks have become each other's steady partner above the rate */
    CP_WAKE_ABI_FORK, /* a guarded task made a child that inherited its mask */
    CP_WAKE_ABI_EXEC, /* a guarded task runs a new program */
    CP_WAKE_ABI_EXIT, /* a guarded task ended */
};

/* One record of the event ring. */
struct cp_wake_abi_event {
    __u32 kind;
    __u32 tid;         /* HOT: the waker; FORK: the child; EXEC, EXIT: the task */
    __u64 start_ticks; /* of tid */
    __u32 other_tid;   /* HOT: the wakee; FORK: the parent; EXEC: what tid was called before */
    __u32 pad;
    __u64 other_start_ticks;
    __u64 time_ns; /* CLOCK_BOOTTIME of the event */
};

/* Sums over one directed pair in one window. */
struct cp_wake_abi_edge {
    __u64 handoffs;
    __u64 slept; /* wakes after which the waker slept before its next wake */
    __u64 tail_ns;
    __u64 n_tail;
    __u64 latency_ns;
    __u64 n_latency;
    __u64 run_ns;
    __u64 n_run;
    __u64 level[CP_LEVEL_MAX]; /* hand-offs by the level of waker's and wakee's CPU */
};

struct cp_wake_abi_edge_key {
    __u32 waker;
    __u32 wakee;
};

/*
 * Hand-offs of a task to the one it wakes at present, kept with the task until it wakes another
 * one; only then are they added to the table of edges. So two tasks that wake only each other
 * touch no memory that others touch.
 */
struct cp_wake_abi_out {
    __u32 wakee; /* 0: none */
    __u32 handoffs;
    __u32 slept;
    __u32 n_tail;
    __u64 tail_ns;
};

/* The other half of an edge, kept with the wakee. */
struct cp_wake_abi_in {
    __u32 waker; /* 0: none */
    __u32 n_latency;
    __u32 n_run;
    __u32 pad;
    __u64 latency_ns;
    __u64 run_ns;
    __u32 level[CP_LEVEL_MAX];
};

/* What the scale knows of one task. Times are CLOCK_MONOTONIC, 0: not so at the moment. */
struct cp_wake_abi_state {
    __u32 epoch; /* the window to which all the rest belongs */
    __u32 open;  /* CP_WAKE_ABI_OPEN_* */
    /* Written by whoever wakes the task, which is not running then. */
    __u64 wake_ns;    /* woken and not yet on a CPU */
    __u32 wake_waker; /* 0: by something that does not count */
    __u32 wake_cpu;
    /* Written on the task's own CPU. */
    __u64 on_since_ns;     /* on a CPU */
    __u64 preempted_at_ns; /* runnable, was taken off its CPU */
    __u64 run_ns;          /* CPU time of the window up to on_since_ns */
    __u64 wait_ns;         /* as in struct cp_wake_task */
    __u64 preempted_ns;    /* likewise */
    __u64 partner_ns;      /* likewise */
    __u64 tail_base_ns;    /* CPU time at the last wake that it did */
    __u64 run_base_ns;     /* CPU time at the switch-in after it was last woken */
    struct cp_wake_abi_out out;
    struct cp_wake_abi_in in;
};

#define CP_WAKE_ABI_OPEN_TAIL 1u /* it woke out.wakee and did not sleep since */
#define CP_WAKE_ABI_OPEN_RUN 2u  /* it was woken by in.waker and did not sleep since */

/* One task in the dump at the end of a window. */
struct cp_wake_abi_task {
    __u32 tid;
    __u32 tgid;
    __u32 uid; /* real */
    __u32 pad;
    __u64 start_ticks;
    char comm[CP_WAKE_ABI_COMM_SIZE];
    struct cp_wake_abi_state state;
};

/* Sums kept for each CPU. */
struct cp_wake_abi_cpu {
    __u64 n_dropped; /* hand-offs that found no room */
    __u64 idle_latency_ns[CP_LEVEL_MAX];
    __u64 n_idle_latency[CP_LEVEL_MAX];
};

/* Domains of a CPU from core to package, innermost first; CP_WAKE_ABI_NO_DOMAIN where none. */
#define CP_WAKE_ABI_N_DOMAINS (CP_LEVEL_MACHINE - CP_LEVEL_CORE)
#define CP_WAKE_ABI_NO_DOMAIN 0xffffffffu

struct cp_wake_abi_domains {
    __u32 id[CP_WAKE_ABI_N_DOMAINS];
};

/* What only the kernel can tell of one task. */
#define CP_WAKE_ABI_MASK_WORDS 128 /* 8192 CPUs, the most that x86 kernels are built for */

struct cp_wake_abi_facts {
    __u32 tid;
    __u8 user_mask_known;
    __u8 has_user_mask;
    __u8 user_mask_is_everywhere; /* it holds every CPU of everywhere[] */
    __u8 pad;
    __u64 start_ticks;
};
