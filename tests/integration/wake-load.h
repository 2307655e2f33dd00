/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads and helpers of the live tests of the wake source: child processes with a known pattern of
 * wake-ups, a machine made by hand, events collected with a deadline.
 *
 * Loads run in processes of their own: the source does not count its own process.
 */
#pragma once

#include "base/clock.h"
#include "base/proc.h"
#include "base/root.h"
#include "wake/wake.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TEST_MIN_RATE_HZ 500
#define DEADLINE_NS (20 * CP_NS_PER_S)
#define ANY_CPU (-1)

/* Skips the whole program where the kernel side cannot be used at all. */
static inline void skip_unless_root(void)
{
    if (geteuid() != 0) {
        printf("SKIP: needs root\n");
        exit(77);
    }
}

/* The machine: every CPU a core of its own, all in one LLC, one node, one package. */
static inline void make_machine(struct cp_machine *machine)
{
    cpu_set_t set;

    memset(machine, 0, sizeof(*machine));
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    machine->cpus = calloc((size_t)CPU_COUNT(&set), sizeof(*machine->cpus));
    assert_non_null(machine->cpus);
    for (unsigned os = 0; os < CPU_SETSIZE; os++) {
        struct cp_machine_cpu *cpu = &machine->cpus[machine->n_cpus];

        if (!CPU_ISSET(os, &set))
            continue;
        *cpu = (struct cp_machine_cpu){.cpu = {os}, .kind = -1};
        cpu->domain[CP_LEVEL_CORE] = machine->n_cpus++;
        assert_int_equal(cp_cpumask_set(&machine->online, cpu->cpu), 0);
        assert_int_equal(cp_cpumask_set(&machine->possible, cpu->cpu), 0);
    }
}

static inline void machine_done(struct cp_machine *machine)
{
    free(machine->cpus);
    cp_cpumask_done(&machine->online);
    cp_cpumask_done(&machine->possible);
}

static inline struct cp_wake_source *make_source(const struct cp_machine *machine,
                                                 unsigned max_edges)
{
    const struct cp_wake_config config = {.min_rate_hz = TEST_MIN_RATE_HZ, .max_edges = max_edges};
    struct cp_wake_source *source = NULL;
    struct cp_error error = {0};
    int r = cp_wake_bpf_new(&config, machine, &source, &error);

    if (r == -EOPNOTSUPP) {
        printf("SKIP: %s\n", error.message);
        exit(77);
    }
    if (r < 0)
        fail_msg("cp_wake_bpf_new: %s", error.message);
    return source;
}

static inline struct cp_task_id task_id(pid_t tid)
{
    struct cp_root root;
    struct cp_proc_stat stat;

    assert_int_equal(cp_root_open(&root, NULL), 0);
    assert_int_equal(cp_proc_read_stat(&root, tid, &stat), 0);
    cp_root_done(&root);
    return stat.id;
}

static inline void pin(int cpu)
{
    cpu_set_t set;

    if (cpu == ANY_CPU)
        return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0) {
        perror("load: sched_setaffinity");
        _exit(1);
    }
}

/* Uses this much CPU time of the calling thread. */
static inline void burn_us(unsigned us)
{
    struct timespec now;
    uint64_t begin;
    uint64_t spent;

    if (us == 0)
        return;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    begin = (uint64_t)now.tv_sec * CP_NS_PER_S + (uint64_t)now.tv_nsec;
    do {
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        spent = (uint64_t)now.tv_sec * CP_NS_PER_S + (uint64_t)now.tv_nsec - begin;
    } while (spent < us * CP_NS_PER_US);
}

static inline void nap_us(unsigned us)
{
    const struct timespec nap = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

    if (us > 0)
        (void)nanosleep(&nap, NULL);
}

/* Forks a child that dies with this process; true in the child. */
static inline bool start_child(pid_t *ret_pid)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    *ret_pid = pid;
    if (pid != 0)
        return false;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return true;
}

static inline void stop_child(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

struct pair {
    pid_t pids[2];
};

struct pace {
    int cpus[2];
    unsigned work_us;    /* CPU time of each side between getting a token and passing it on */
    unsigned nap_us;     /* sleep of the first side before it passes it on: slows the pair down */
    unsigned tail_us[2]; /* CPU time of each side after it has passed it on */
    bool realtime;       /* keeps its rate whatever else the machine does */
};

static inline void pass_tokens(int from, int to, const struct pace *pace, int side)
{
    char token;

    while (read(from, &token, 1) == 1) {
        burn_us(pace->work_us);
        nap_us(side == 0 ? pace->nap_us : 0);
        if (write(to, &token, 1) != 1)
            break;
        burn_us(pace->tail_us[side]);
    }
    _exit(0);
}

/* Two processes that pass a token to and fro over pipes. */
static inline struct pair start_pair(const struct pace *pace)
{
    struct pair pair;
    int ab[2];
    int ba[2];

    assert_int_equal(pipe(ab), 0);
    assert_int_equal(pipe(ba), 0);
    for (int side = 0; side < 2; side++)
        if (start_child(&pair.pids[side])) {
            const struct sched_param priority = {.sched_priority = 1};

            pin(pace->cpus[side]);
            if (pace->realtime && sched_setscheduler(0, SCHED_FIFO, &priority) < 0) {
                perror("load: sched_setscheduler");
                _exit(1);
            }
            pass_tokens(side == 0 ? ba[0] : ab[0], side == 0 ? ab[1] : ba[1], pace, side);
        }
    assert_int_equal(write(ba[1], "x", 1), 1);
    for (int i = 0; i < 2; i++) {
        close(ab[i]);
        close(ba[i]);
    }
    return pair;
}

static inline void stop_pair(struct pair pair)
{
    stop_child(pair.pids[0]);
    stop_child(pair.pids[1]);
}

/* Events. */

#define MAX_EVENTS 16384

struct events {
    struct cp_wake_event list[MAX_EVENTS];
    size_t n;
};

static inline void collect_event(const struct cp_wake_event *event, void *userdata)
{
    struct events *events = userdata;

    assert_true(events->n < MAX_EVENTS);
    events->list[events->n++] = *event;
}

/* Waits once for input, at most timeout_ms, and takes what there is. */
static inline void take_events(struct cp_wake_source *source, struct events *events, int timeout_ms)
{
    struct pollfd pollfd = {.fd = source->ops->event_fd(source), .events = POLLIN};

    (void)poll(&pollfd, 1, timeout_ms);
    assert_int_equal(source->ops->dispatch(source, collect_event, events), 0);
}

static inline size_t count_events(const struct events *events, enum cp_wake_event_kind kind,
                                  pid_t tid)
{
    size_t n = 0;

    for (size_t i = 0; i < events->n; i++)
        n += events->list[i].kind == kind &&
             (events->list[i].task.tid == tid || events->list[i].other.tid == tid);
    return n;
}

/* The first event of that kind about that task (as task or other), or NULL after the deadline. */
static inline const struct cp_wake_event *wait_event(struct cp_wake_source *source,
                                                     struct events *events,
                                                     enum cp_wake_event_kind kind, pid_t tid)
{
    uint64_t deadline = cp_now_ns() + DEADLINE_NS;

    for (size_t i = 0;;) {
        for (; i < events->n; i++)
            if (events->list[i].kind == kind &&
                (events->list[i].task.tid == tid || events->list[i].other.tid == tid))
                return &events->list[i];
        if (cp_now_ns() > deadline)
            return NULL;
        take_events(source, events, 100);
    }
}

/* Windows. */

static inline void look(struct cp_wake_source *source, unsigned ms, struct cp_wake_sample *sample)
{
    struct cp_error error = {0};

    memset(sample, 0, sizeof(*sample));
    if (source->ops->window_open(source, &error) < 0)
        fail_msg("window_open: %s", error.message);
    nap_us(ms * 1000);
    if (source->ops->window_close(source, sample, &error) < 0)
        fail_msg("window_close: %s", error.message);
}

static inline const struct cp_wake_edge *find_edge(const struct cp_wake_sample *sample, pid_t waker,
                                                   pid_t wakee)
{
    for (size_t i = 0; i < sample->n_edges; i++)
        if (sample->edges[i].waker.tid == waker && sample->edges[i].wakee.tid == wakee)
            return &sample->edges[i];
    return NULL;
}

static inline const struct cp_wake_task *find_task(const struct cp_wake_sample *sample, pid_t tid)
{
    for (size_t i = 0; i < sample->n_tasks; i++)
        if (sample->tasks[i].id.tid == tid)
            return &sample->tasks[i];
    return NULL;
}

static inline unsigned n_cpus(void)
{
    return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

static inline void skip_unless_two_cpus(void)
{
    if (n_cpus() < 2) {
        printf("SKIP: needs two CPUs\n");
        skip();
    }
}
