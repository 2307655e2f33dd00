/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * What the BPF program and the daemon share: events and records. Included by both sides, so only
 * plain types; the BPF side has defined the fixed-width types before it includes this.
 */
#pragma once

#include "base/level.h"

enum cp_wake_abi_event_kind {
    CP_WAKE_ABI_HOT,  /* two tasks have become each other's steady partner above the rate */
    CP_WAKE_ABI_FORK, /* a guarded task made a child that inherited its mask */
    CP_WAKE_ABI_EXEC, /* a guarded task runs a new program */
    CP_WAKE_ABI_EXIT, /* a guarded task ended */
};

/* One record of the event ring. Start times are task_struct.start_boottime, in ns. */
struct cp_wake_abi_event {
    __u32 kind;
    __u32 tid;       /* HOT: the waker; FORK: the child; EXEC, EXIT: the task */
    __u64 start_ns;  /* of tid */
    __u32 other_tid; /* HOT: the wakee; FORK: the parent; else 0 */
    __u32 pad;
    __u64 other_start_ns;
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
