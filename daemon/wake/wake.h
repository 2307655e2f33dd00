/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wake source: who wakes whom, as sums per window, and news of tasks that we placed.
 *
 * Two stages (design: "Sampling"). The scout is attached once and stays; it sends HOT when two
 * tasks become each other's steady partner above the rate. The scale is attached for a window only
 * and gives a struct cp_wake_sample. Implementations: wake-bpf (the kernel), wake-none (nothing,
 * and says why); tests feed generated samples. Consumers see this header only.
 *
 * Guarded tasks are those whose mask we changed: the source reports their children (which inherit
 * the mask), their exec and their end.
 */
#pragma once

#include "base/error.h"
#include "base/level.h"
#include "base/proc.h"
#include "base/task-id.h"
#include "machine/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tasks that share a CPU: a wakee that preempts its waker may answer before that one waits, and an
 * answer that nobody waits for is no wake-up. So such a pair can show one direction only. */

/* One directed pair in one window. Sums in ns; each sum has its own count since a window may cut
 * off its end. Fields as in design.md section 3: latency, tail, run. */
struct cp_wake_edge {
    struct cp_task_id waker;
    struct cp_task_id wakee;
    uint64_t handoffs;
    uint64_t slept;
    uint64_t tail_ns;
    uint64_t n_tail;
    uint64_t latency_ns;
    uint64_t n_latency;
    uint64_t run_ns;
    uint64_t n_run;
    uint64_t level[CP_LEVEL_MAX];
};

/* One task seen in one window. */
struct cp_wake_task {
    struct cp_task_id id;
    pid_t tgid;
    uid_t uid; /* real */
    char comm[CP_COMM_SIZE];
    uint64_t run_ns;       /* on a CPU */
    uint64_t wait_ns;      /* runnable, not on a CPU: after a wake (latency) and after preemption */
    uint64_t preempted_ns; /* the part of wait_ns that followed a preemption */
    uint64_t partner_ns;   /* the part of wait_ns during which its partner ran on that CPU */
};

struct cp_wake_sample {
    uint64_t begin_ns; /* CLOCK_BOOTTIME */
    uint64_t end_ns;
    size_t n_edges;
    struct cp_wake_edge *edges; /* owned; sorted by (waker, wakee), no duplicates */
    size_t n_tasks;
    struct cp_wake_task *tasks; /* owned; sorted by id, holds every task of edges */
    uint64_t n_dropped;         /* hand-offs that found no room in a table */
    /* Hand-offs whose target CPU was idle: what refines the cost table. */
    uint64_t idle_latency_ns[CP_LEVEL_MAX];
    uint64_t n_idle_latency[CP_LEVEL_MAX];
};

void cp_wake_sample_done(struct cp_wake_sample *sample);

enum cp_wake_event_kind {
    CP_WAKE_EVENT_HOT,  /* task woke other above the rate, and the other way round */
    CP_WAKE_EVENT_FORK, /* task is a new child of the guarded task other */
    /* The guarded task runs a new program. other: its identity before, which differs from task if a
     * thread that was not the leader called exec (the guard has moved to task). */
    CP_WAKE_EVENT_EXEC,
    CP_WAKE_EVENT_EXIT, /* the guarded task ended */
    CP_WAKE_EVENT_LOST, /* events were lost; n_lost says how many */
};

struct cp_wake_event {
    enum cp_wake_event_kind kind;
    struct cp_task_id task;
    struct cp_task_id other;
    uint64_t time_ns; /* CLOCK_BOOTTIME at which it happened */
    uint64_t n_lost;
};

typedef void (*cp_wake_event_handler)(const struct cp_wake_event *event, void *userdata);

struct cp_wake_counters {
    uint64_t n_scout_attaches;
    uint64_t n_scale_attaches;
    uint64_t n_dropped;     /* hand-offs without room, all windows */
    uint64_t n_lost_events; /* ring full */
};

/* Facts of a task that only the kernel side can tell. */
struct cp_wake_task_facts {
    bool user_mask_known; /* the kernel has user_cpus_ptr (6.2 and later) */
    bool has_user_mask;   /* sched_setaffinity was called on it (or on an ancestor) */
    /* That mask holds every possible CPU, isolated ones aside: it excludes nothing, now or later.
     * So look tasks that were given back after having had none. */
    bool user_mask_is_everywhere;
};

struct cp_wake_source;

struct cp_wake_source_ops {
    const char *name; /* "bpf", "none" */
    /* An fd to poll for input, borrowed; -1 if the source never has events. */
    int (*event_fd)(struct cp_wake_source *source);
    /* Hands every waiting event to the handler; does not block. At most 4096 a call, so that a
     * storm cannot starve the loop. Negative errno. */
    int (*dispatch)(struct cp_wake_source *source, cp_wake_event_handler handler, void *userdata);
    /* Sends HOT again for pairs that are hot now or later, though they were reported before. */
    void (*rearm)(struct cp_wake_source *source);
    /* Attaches the scale and begins a window; -EBUSY if one is open. Takes 0.5-13 ms. */
    int (*window_open)(struct cp_wake_source *source, struct cp_error *error);
    /* Detaches the scale and gives what it saw; the sample belongs to the caller. */
    int (*window_close)(struct cp_wake_source *source, struct cp_wake_sample *ret_sample,
                        struct cp_error *error);
    /* Guards a task from now on (call before its mask is set), and every child that it makes,
     * without further calls; unguard ends it for one task. -ENOSPC: the table is full. */
    int (*guard)(struct cp_wake_source *source, struct cp_task_id task);
    void (*unguard)(struct cp_wake_source *source, struct cp_task_id task);
    /* CP_PROC_GONE if the task is not there; -EOPNOTSUPP where the source cannot tell. */
    int (*task_facts)(struct cp_wake_source *source, struct cp_task_id task,
                      struct cp_wake_task_facts *ret_facts);
    /* The CPU-to-domain tables follow a new snapshot (hotplug). Negative errno. */
    int (*set_machine)(struct cp_wake_source *source, const struct cp_machine *machine);
    void (*free)(struct cp_wake_source *source);
};

struct cp_wake_source {
    const struct cp_wake_source_ops *ops;
    struct cp_wake_counters counters;
    bool sees_hard_interrupts; /* wakes from hard interrupts are told apart and not counted */
    char why[512];             /* wake-none: why there is no source and what to do; else "" */
};

struct cp_wake_config {
    double min_rate_hz; /* hand-offs a second of one direction at which a pair counts as hot; > 0 */
    unsigned max_edges; /* size of the pair table of a window */
};

/*
 * Loads the BPF programs, attaches the scout. Negative errno with *error saying what is missing
 * (BTF, a capability, lockdown, the kernel's version) and what to do. Blocks 20-50 ms.
 * Built without BPF it always gives -EOPNOTSUPP.
 */
int cp_wake_bpf_new(const struct cp_wake_config *config, const struct cp_machine *machine,
                    struct cp_wake_source **ret_source, struct cp_error *error);

/* A source that sees nothing; why is copied. NULL: no memory. */
struct cp_wake_source *cp_wake_none_new(const char *why);

struct cp_wake_source *cp_wake_source_free(struct cp_wake_source *source); /* accepts NULL */
