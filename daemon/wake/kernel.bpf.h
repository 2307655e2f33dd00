/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The few kernel types that the BPF program reads, by the members that it reads. Offsets are found
 * at load in the running kernel's BTF (CO-RE), so a member's place and order here mean nothing.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wake/wake-abi.h"

#define PF_KTHREAD 0x00200000u /* include/linux/sched.h; idle tasks have it too */

/* include/linux/preempt.h: the bits of hard interrupts and of NMIs. Soft interrupts are not among
 * them: the one that delivers a packet over loopback runs within the sender's own call. */
#define HARDIRQ_AND_NMI_MASK 0x00ff0000u

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kuid {
    __u32 val;
};

struct cred {
    struct kuid uid;
};

/* arm64 keeps the preempt count here (its low half), x86 in a per-CPU variable. */
struct thread_info {
    __u64 preempt_count;
};

struct task_struct {
    struct thread_info thread_info;
    unsigned int flags;
    unsigned int __state;
    int on_cpu;
    int pid;
    int tgid;
    __u64 start_boottime;
    const struct cred *real_cred;
    char comm[16];
    void *user_cpus_ptr;
};

struct linux_binprm;

/* Came in 6.2 with masks that survive changes of the cpuset: user_cpus_ptr itself is older, but
 * until then it was only filled for 32-bit programs on some arm64 machines. */
struct affinity_context {
    unsigned int flags;
};

/* x86 from 6.2 to 6.14. */
struct pcpu_hot {
    int preempt_count;
};

struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
};

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

#pragma clang attribute pop

extern const struct pcpu_hot pcpu_hot __ksym __weak;
extern const int __preempt_count __ksym __weak;

static __always_inline __u64 start_ticks(const struct task_struct *task)
{
    return task->start_boottime / CP_WAKE_ABI_NS_PER_TICK;
}

/* Whether this runs in a hard interrupt or NMI. Kernels exist that know the variable and do not let
 * it be read: loading fails there, and the variants of the programs without this are used. */
static __always_inline bool in_hard_interrupt(const struct task_struct *current)
{
    const int *count = NULL;

    if (bpf_core_field_exists(current->thread_info.preempt_count))
        return current->thread_info.preempt_count & HARDIRQ_AND_NMI_MASK;
    if (bpf_core_type_exists(struct pcpu_hot)) {
        const struct pcpu_hot *hot = bpf_this_cpu_ptr(&pcpu_hot);

        return hot->preempt_count & HARDIRQ_AND_NMI_MASK;
    }
    count = bpf_this_cpu_ptr(&__preempt_count);
    return *count & HARDIRQ_AND_NMI_MASK;
}
