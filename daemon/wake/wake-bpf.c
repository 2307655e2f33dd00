/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wake source over eBPF: attaches the programs, runs windows, hands events on. What the
 * programs count is described in scout.bpf.h, scale.bpf.h and guard.bpf.h, which share wake-abi.h
 * with this side. Decides nothing and changes no task.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "wake/wake-bpf-internal.h"

#include <linux/types.h>

#include "wake/wake-abi.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_EVENTS_A_DISPATCH 4096

/* Events. */

static int bpf_event_fd(struct cp_wake_source *source)
{
    return ring_buffer__epoll_fd(cp_wake_bpf(source)->ring);
}

static int on_record(void *userdata, void *data, size_t size)
{
    static const enum cp_wake_event_kind kinds[] = {
        [CP_WAKE_ABI_HOT] = CP_WAKE_EVENT_HOT,
        [CP_WAKE_ABI_FORK] = CP_WAKE_EVENT_FORK,
        [CP_WAKE_ABI_EXEC] = CP_WAKE_EVENT_EXEC,
        [CP_WAKE_ABI_EXIT] = CP_WAKE_EVENT_EXIT,
    };
    struct cp_wake_bpf *source = userdata;
    const struct cp_wake_abi_event *record = data;

    if (size >= sizeof(*record) && record->kind < CP_ELEMENTS(kinds)) {
        const struct cp_wake_event event = {
            .kind = kinds[record->kind],
            .task = {.tid = (pid_t)record->tid, .start_ticks = record->start_ticks},
            .other = {.tid = (pid_t)record->other_tid, .start_ticks = record->other_start_ticks},
            .time_ns = record->time_ns,
        };

        source->handler(&event, source->userdata);
    }
    /* A negative result ends the round after this record. */
    return ++source->n_handled < MAX_EVENTS_A_DISPATCH ? 0 : -EXFULL;
}

static void report_lost(struct cp_wake_bpf *source)
{
    uint64_t n_lost = __atomic_load_n(&source->skeleton->bss->n_lost_events, __ATOMIC_RELAXED);
    const struct cp_wake_event event = {
        .kind = CP_WAKE_EVENT_LOST,
        .time_ns = cp_now_ns(),
        .n_lost = n_lost - source->n_lost_reported,
    };

    if (n_lost == source->n_lost_reported)
        return;
    source->n_lost_reported = n_lost;
    source->source.counters.n_lost_events = n_lost;
    source->handler(&event, source->userdata);
}

static int bpf_dispatch(struct cp_wake_source *base, cp_wake_event_handler handler, void *userdata)
{
    struct cp_wake_bpf *source = cp_wake_bpf(base);
    int r;

    source->handler = handler;
    source->userdata = userdata;
    source->n_handled = 0;
    r = ring_buffer__consume(source->ring);
    report_lost(source);
    return r < 0 && r != -EXFULL ? r : 0;
}

static void bpf_rearm(struct cp_wake_source *base)
{
    __atomic_add_fetch(&cp_wake_bpf(base)->skeleton->data->scout_generation, 1, __ATOMIC_RELAXED);
}

/* Guarded tasks, facts, the machine. */

static int bpf_guard(struct cp_wake_source *base, struct cp_task_id task)
{
    struct wake_bpf *skeleton = cp_wake_bpf(base)->skeleton;
    int fd = bpf_map__fd(skeleton->maps.guarded);
    const uint32_t tid = (uint32_t)task.tid;
    const uint64_t ticks = task.start_ticks;
    int r = bpf_map_update_elem(fd, &tid, &ticks, BPF_NOEXIST);

    if (r == 0)
        __atomic_add_fetch(&skeleton->bss->n_guarded, 1, __ATOMIC_RELAXED);
    else if (r == -EEXIST)
        r = bpf_map_update_elem(fd, &tid, &ticks, BPF_ANY);
    return r == -E2BIG ? -ENOSPC : r;
}

static void bpf_unguard(struct cp_wake_source *base, struct cp_task_id task)
{
    struct wake_bpf *skeleton = cp_wake_bpf(base)->skeleton;
    int fd = bpf_map__fd(skeleton->maps.guarded);
    const uint32_t tid = (uint32_t)task.tid;
    uint64_t ticks = 0;

    if (bpf_map_lookup_elem(fd, &tid, &ticks) == 0 && ticks == task.start_ticks &&
        bpf_map_delete_elem(fd, &tid) == 0)
        __atomic_sub_fetch(&skeleton->bss->n_guarded, 1, __ATOMIC_RELAXED);
}

static struct bpf_link *attach_facts(struct cp_wake_bpf *source, pid_t tid)
{
    union bpf_iter_link_info info;
    struct bpf_iter_attach_opts options;
    struct bpf_link *link;

    /* The kernel and libbpf want everything beyond the known members zeroed. */
    memset(&info, 0, sizeof(info));
    info.task.tid = (uint32_t)tid;
    memset(&options, 0, sizeof(options));
    options.sz = sizeof(options);
    options.link_info = &info;
    options.link_info_len = sizeof(info);
    link = bpf_program__attach_iter(source->skeleton->progs.facts_dump, &options);
    /* Before 6.1 the iterator cannot be limited; the program skips the other tasks itself. */
    return link ? link : bpf_program__attach_iter(source->skeleton->progs.facts_dump, NULL);
}

/* 0, CP_PROC_GONE, negative errno. */
static int read_facts(struct cp_wake_bpf *source, pid_t tid, struct cp_wake_abi_facts *ret_facts)
{
    _cleanup_close_ int fd = -1;
    struct bpf_link *link;
    ssize_t n;

    source->skeleton->bss->facts_tid = (uint32_t)tid;
    link = attach_facts(source, tid);
    if (!link)
        return -errno;
    fd = bpf_iter_create(bpf_link__fd(link));
    (void)bpf_link__destroy(link);
    if (fd < 0)
        return fd;
    n = cp_wake_bpf_read(fd, ret_facts, sizeof(*ret_facts));
    if (n < 0)
        return (int)n;
    return (size_t)n < sizeof(*ret_facts) ? CP_PROC_GONE : 0;
}

static int bpf_task_facts(struct cp_wake_source *base, struct cp_task_id task,
                          struct cp_wake_task_facts *ret_facts)
{
    struct cp_wake_abi_facts facts = {0};
    int r;

    if (task.tid <= 0)
        return CP_PROC_GONE;
    r = read_facts(cp_wake_bpf(base), task.tid, &facts);
    if (r != 0)
        return r;
    if (facts.start_ticks != task.start_ticks)
        return CP_PROC_GONE;
    ret_facts->user_mask_known = facts.user_mask_known;
    ret_facts->has_user_mask = facts.has_user_mask;
    ret_facts->user_mask_is_everywhere = facts.user_mask_is_everywhere;
    return 0;
}

/* A machine with CPUs beyond the table leaves it empty: then no mask counts as everywhere. */
static void set_everywhere(struct wake_bpf *skeleton, const struct cp_machine *machine)
{
    uint64_t words[CP_WAKE_ABI_MASK_WORDS] = {0};
    struct cp_cpu cpu;

    cp_cpumask_foreach (cpu, &machine->possible) {
        if (cpu.os >= CP_WAKE_ABI_MASK_WORDS * 64) {
            memset(words, 0, sizeof(words));
            break;
        }
        if (!cp_cpumask_test(&machine->isolated, cpu))
            words[cpu.os / 64] |= UINT64_C(1) << (cpu.os % 64);
    }
    memcpy(skeleton->bss->everywhere, words, sizeof(words));
}

static int bpf_set_machine(struct cp_wake_source *base, const struct cp_machine *machine)
{
    struct cp_wake_bpf *source = cp_wake_bpf(base);
    int fd = bpf_map__fd(source->skeleton->maps.scale_domains);
    int result = 0;

    set_everywhere(source->skeleton, machine);
    for (uint32_t os = 0, i = 0; os < source->n_domains; os++) {
        struct cp_wake_abi_domains domains;
        int r;

        while (i < machine->n_cpus && machine->cpus[i].cpu.os < os)
            i++;
        for (unsigned k = 0; k < CP_WAKE_ABI_N_DOMAINS; k++)
            domains.id[k] = i < machine->n_cpus && machine->cpus[i].cpu.os == os
                                ? machine->cpus[i].domain[CP_LEVEL_CORE + k]
                                : CP_WAKE_ABI_NO_DOMAIN;
        r = bpf_map_update_elem(fd, &os, &domains, BPF_ANY);
        if (r < 0)
            return r;
    }
    if (machine->n_cpus > 0 && machine->cpus[machine->n_cpus - 1].cpu.os >= source->n_domains)
        result = -ERANGE;
    return result;
}

/* Making and ending. */

static void bpf_free(struct cp_wake_source *base)
{
    struct cp_wake_bpf *source = cp_wake_bpf(base);

    cp_wake_bpf_detach_scale(source);
    for (int i = 0; i < CP_WAKE_BPF_LINK_MAX; i++)
        (void)bpf_link__destroy(source->links[i]);
    ring_buffer__free(source->ring);
    wake_bpf__destroy(source->skeleton);
    free(source);
}

static int attach_always(struct cp_wake_bpf *source, struct cp_error *error)
{
    const struct wake_bpf *skeleton = source->skeleton;
    const struct bpf_program *programs[] = {
        [CP_WAKE_BPF_SCOUT] = source->source.sees_hard_interrupts
                                  ? skeleton->progs.scout_waking_asking
                                  : skeleton->progs.scout_waking,
        [CP_WAKE_BPF_FORK] = skeleton->progs.guard_fork,
        [CP_WAKE_BPF_EXEC] = skeleton->progs.guard_exec,
        [CP_WAKE_BPF_EXIT] = skeleton->progs.guard_exit,
        [CP_WAKE_BPF_DUMP] = skeleton->progs.scale_dump,
    };

    static_assert(CP_ELEMENTS(programs) == CP_WAKE_BPF_LINK_MAX, "one program for each link");
    for (int i = 0; i < CP_WAKE_BPF_LINK_MAX; i++) {
        source->links[i] = i == CP_WAKE_BPF_DUMP ? bpf_program__attach_iter(programs[i], NULL)
                                                 : bpf_program__attach(programs[i]);
        if (!source->links[i])
            return cp_wake_bpf_explain(errno, "cannot attach to the scheduler's tracepoints", NULL,
                                       error);
    }
    source->source.counters.n_scout_attaches++;
    return 0;
}

/* The kernel side knows tasks by their TIDs in the initial PID namespace. */
static int check_namespace(struct cp_wake_bpf *source, struct cp_error *error)
{
    struct cp_wake_abi_facts facts;
    int r = read_facts(source, getpid(), &facts);

    if (r == CP_PROC_GONE)
        return cp_error_set(error, EOPNOTSUPP,
                            "this process is in a PID namespace of its own, where TIDs mean other "
                            "tasks than the kernel reports; run coplaced in the host's (podman: "
                            "--pid=host)");
    return r < 0 ? cp_wake_bpf_explain(-r, "cannot read tasks through BPF", NULL, error) : 0;
}

/* Everything after loading. */
static int start(struct cp_wake_bpf *source, const struct cp_machine *machine,
                 struct cp_error *error)
{
    int r;

    source->ring =
        ring_buffer__new(bpf_map__fd(source->skeleton->maps.events), on_record, source, NULL);
    if (!source->ring)
        return cp_wake_bpf_explain(errno, "cannot map the ring of events", NULL, error);
    r = bpf_set_machine(&source->source, machine);
    if (r < 0)
        return cp_error_set(error, -r, "cannot tell the BPF programs the machine: %s",
                            strerror(-r));
    r = check_namespace(source, error);
    return r < 0 ? r : attach_always(source, error);
}

/* CPU numbers that can come up: possible CPUs, and whatever the snapshot knows. */
static int count_domains(const struct cp_machine *machine, uint32_t *ret_n_domains)
{
    int n_possible = libbpf_num_possible_cpus();
    uint32_t n;
    struct cp_cpu cpu;

    if (n_possible < 0)
        return n_possible;
    n = (uint32_t)n_possible;
    cp_cpumask_foreach (cpu, &machine->online)
        n = CP_MAX(n, cpu.os + 1);
    cp_cpumask_foreach (cpu, &machine->offline)
        n = CP_MAX(n, cpu.os + 1);
    *ret_n_domains = n;
    return 0;
}

int cp_wake_bpf_new(const struct cp_wake_config *config, const struct cp_machine *machine,
                    struct cp_wake_source **ret_source, struct cp_error *error)
{
    static const struct cp_wake_source_ops ops = {
        .name = "bpf",
        .event_fd = bpf_event_fd,
        .dispatch = bpf_dispatch,
        .rearm = bpf_rearm,
        .window_open = cp_wake_bpf_window_open,
        .window_close = cp_wake_bpf_window_close,
        .guard = bpf_guard,
        .unguard = bpf_unguard,
        .task_facts = bpf_task_facts,
        .set_machine = bpf_set_machine,
        .free = bpf_free,
    };
    struct cp_wake_bpf *source;
    int r;

    if (!(config->min_rate_hz > 0) || config->max_edges == 0)
        return cp_error_set(error, EINVAL, "the rate and the size of the table must be above 0");
    source = calloc(1, sizeof(*source));
    if (!source)
        return cp_error_set(error, ENOMEM, "no memory");
    source->source.ops = &ops;
    source->max_edges = config->max_edges;
    r = count_domains(machine, &source->n_domains);
    if (r < 0)
        (void)cp_error_set(error, -r, "cannot tell how many CPUs are possible: %s", strerror(-r));
    else
        r = cp_wake_bpf_load(config, source->n_domains, &source->skeleton,
                             &source->source.sees_hard_interrupts, error);
    if (r == 0)
        r = start(source, machine, error);
    if (r < 0) {
        bpf_free(&source->source);
        return r;
    }
    *ret_source = &source->source;
    return 0;
}
