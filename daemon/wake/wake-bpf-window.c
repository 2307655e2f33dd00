/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Windows of the eBPF wake source: the scale is attached, counts for a while, is detached, and what
 * it counted is read and merged. Memory is taken by what was seen, not by what the tables could
 * hold.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "wake/wake-bpf-internal.h"
#include "wake/wake-merge.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EDGES_A_BATCH 512u
#define FIRST_TASKS ((size_t)256)
#define EPOCH_BUSY 0xffffffffu /* see scale.bpf.h */

/* Arrays of what was read; both owned. */
struct edge_table {
    struct cp_wake_abi_edge_key *keys;
    struct cp_wake_abi_edge *edges;
    size_t n_edges;
    size_t capacity;
};

static void edge_table_done(struct edge_table *table)
{
    free(table->keys);
    free(table->edges);
}

static int edge_table_reserve(struct edge_table *table, size_t capacity)
{
    struct cp_wake_abi_edge_key *keys;
    struct cp_wake_abi_edge *edges;

    if (capacity <= table->capacity)
        return 0;
    keys = reallocarray(table->keys, capacity, sizeof(*keys));
    if (!keys)
        return -ENOMEM;
    table->keys = keys;
    edges = reallocarray(table->edges, capacity, sizeof(*edges));
    if (!edges)
        return -ENOMEM;
    table->edges = edges;
    table->capacity = capacity;
    return 0;
}

/* Reads the table of edges and leaves it empty. */
static int take_edges(struct cp_wake_bpf *source, struct edge_table *table)
{
    int fd = bpf_map__fd(source->skeleton->maps.scale_edges);
    uint32_t batch = EDGES_A_BATCH;
    uint32_t position = 0;
    bool is_first = true;

    for (;;) {
        uint32_t next = 0;
        uint32_t n = batch;
        int r = edge_table_reserve(table, table->n_edges + batch);

        if (r < 0)
            return r;
        r = bpf_map_lookup_and_delete_batch(fd, is_first ? NULL : &position, &next,
                                            table->keys + table->n_edges,
                                            table->edges + table->n_edges, &n, NULL);
        if (r == -ENOSPC && batch < source->max_edges) {
            /* One bucket of the hash table holds more than a batch. */
            batch *= 2;
            continue;
        }
        if (r < 0 && r != -ENOENT)
            return r;
        table->n_edges += n;
        if (r == -ENOENT)
            return 0;
        position = next;
        is_first = false;
    }
}

ssize_t cp_wake_bpf_read(int fd, void *buffer, size_t size)
{
    ssize_t n;

    do
        n = read(fd, buffer, size);
    while (n < 0 && (errno == EINTR || errno == EAGAIN));
    return n < 0 ? -errno : n;
}

/* Reads the rest of the dump for its hand-offs alone: there is no room for these tasks. */
static int count_rest(int fd, uint64_t *n_dropped)
{
    struct cp_wake_abi_task record;
    size_t used = 0;

    for (;;) {
        ssize_t n = cp_wake_bpf_read(fd, (char *)&record + used, sizeof(record) - used);

        if (n <= 0)
            return (int)n;
        used += (size_t)n;
        if (used < sizeof(record))
            continue;
        *n_dropped += record.state.out.handoffs;
        used = 0;
    }
}

static int read_tasks(struct cp_wake_bpf *source, struct cp_wake_abi_task **ret_tasks,
                      size_t *ret_n_tasks, uint64_t *n_dropped)
{
    _cleanup_free_ struct cp_wake_abi_task *tasks = NULL;
    _cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(source->links[CP_WAKE_BPF_DUMP]));
    const size_t max_tasks = CP_MAX(2 * source->max_edges, FIRST_TASKS);
    size_t capacity = 0;
    size_t used = 0; /* bytes: a read may end within a record */
    ssize_t n;

    if (fd < 0)
        return fd;
    for (;;) {
        if (used == capacity * sizeof(*tasks)) {
            struct cp_wake_abi_task *grown;

            if (capacity == max_tasks) {
                int r = count_rest(fd, n_dropped);

                if (r < 0)
                    return r;
                break;
            }
            capacity = capacity == 0 ? FIRST_TASKS : CP_MIN(2 * capacity, max_tasks);
            grown = reallocarray(tasks, capacity, sizeof(*tasks));
            if (!grown)
                return -ENOMEM;
            tasks = grown;
        }
        n = cp_wake_bpf_read(fd, (char *)tasks + used, capacity * sizeof(*tasks) - used);
        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    *ret_n_tasks = used / sizeof(*tasks);
    *ret_tasks = TAKE_PTR(tasks);
    return 0;
}

/* The per-CPU sums as an array with one element for each possible CPU. */
static int cpu_sums_alloc(struct cp_wake_abi_cpu **ret_sums, size_t *ret_n_cpus)
{
    int n_cpus = libbpf_num_possible_cpus();

    static_assert(sizeof(**ret_sums) % 8 == 0, "elements of per-CPU maps are rounded up to 8");
    if (n_cpus < 0)
        return n_cpus;
    *ret_sums = calloc((size_t)n_cpus, sizeof(**ret_sums));
    *ret_n_cpus = (size_t)n_cpus;
    return *ret_sums ? 0 : -ENOMEM;
}

static int read_cpu_sums(struct cp_wake_bpf *source, struct cp_wake_sample *sample)
{
    _cleanup_free_ struct cp_wake_abi_cpu *sums = NULL;
    const uint32_t zero = 0;
    size_t n_cpus = 0;
    int r = cpu_sums_alloc(&sums, &n_cpus);

    if (r == 0)
        r = bpf_map_lookup_elem(bpf_map__fd(source->skeleton->maps.scale_cpus), &zero, sums);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n_cpus; i++) {
        sample->n_dropped += sums[i].n_dropped;
        for (int level = 0; level < CP_LEVEL_MAX; level++) {
            sample->idle_latency_ns[level] += sums[i].idle_latency_ns[level];
            sample->n_idle_latency[level] += sums[i].n_idle_latency[level];
        }
    }
    return 0;
}

/* What an earlier window may have left behind. */
static int clear_tables(struct cp_wake_bpf *source)
{
    _cleanup_(edge_table_done) struct edge_table left = {0};
    _cleanup_free_ struct cp_wake_abi_cpu *sums = NULL;
    const uint32_t zero = 0;
    size_t n_cpus = 0;
    int r = take_edges(source, &left);

    if (r == 0)
        r = cpu_sums_alloc(&sums, &n_cpus);
    if (r == 0)
        r = bpf_map_update_elem(bpf_map__fd(source->skeleton->maps.scale_cpus), &zero, sums,
                                BPF_ANY);
    return r;
}

void cp_wake_bpf_detach_scale(struct cp_wake_bpf *source)
{
    (void)bpf_link__destroy(source->scale_waking);
    (void)bpf_link__destroy(source->scale_switch);
    source->scale_waking = NULL;
    source->scale_switch = NULL;
}

static int attach_scale(struct cp_wake_bpf *source)
{
    const struct wake_bpf *skeleton = source->skeleton;
    const struct bpf_program *on_switch = bpf_program__autoload(skeleton->progs.scale_switch)
                                              ? skeleton->progs.scale_switch
                                              : skeleton->progs.scale_switch_3;
    const struct bpf_program *on_waking = source->source.sees_hard_interrupts
                                              ? skeleton->progs.scale_waking_asking
                                              : skeleton->progs.scale_waking;
    int r = 0;

    source->scale_switch = bpf_program__attach(on_switch);
    if (source->scale_switch)
        source->scale_waking = bpf_program__attach(on_waking);
    if (!source->scale_waking) {
        r = -errno;
        cp_wake_bpf_detach_scale(source);
    }
    return r;
}

int cp_wake_bpf_window_open(struct cp_wake_source *base, struct cp_error *error)
{
    struct cp_wake_bpf *source = cp_wake_bpf(base);
    struct wake_bpf *skeleton = source->skeleton;
    int r;

    if (source->scale_waking)
        return cp_error_set(error, EBUSY, "a window is open already");
    r = clear_tables(source);
    if (r < 0)
        return cp_error_set(error, -r, "cannot clear the BPF tables: %s", strerror(-r));
    r = attach_scale(source);
    if (r < 0)
        return cp_wake_bpf_explain(-r, "cannot attach to the scheduler's tracepoints", NULL, error);
    if (++source->epoch == EPOCH_BUSY)
        source->epoch = 1;
    base->counters.n_scale_attaches++;
    skeleton->bss->scale_edges_full = 0;
    source->begin_ns = cp_now_ns();
    /* From here on both programs count, so no task is seen by one of them only. */
    __atomic_store_n(&skeleton->bss->scale_epoch, source->epoch, __ATOMIC_RELEASE);
    return 0;
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * CP_NS_PER_S + (uint64_t)now.tv_nsec;
}

static int collect(struct cp_wake_bpf *source, uint64_t end_monotonic_ns,
                   struct cp_wake_sample *sample)
{
    _cleanup_(edge_table_done) struct edge_table table = {0};
    _cleanup_free_ struct cp_wake_abi_task *tasks = NULL;
    struct cp_wake_records records = {.end_ns = end_monotonic_ns};
    int r = read_cpu_sums(source, sample);

    if (r == 0)
        r = take_edges(source, &table);
    if (r == 0)
        r = read_tasks(source, &tasks, &records.n_tasks, &sample->n_dropped);
    if (r < 0)
        return r;
    records.tasks = tasks;
    records.keys = table.keys;
    records.edges = table.edges;
    records.n_edges = table.n_edges;
    return cp_wake_merge(&records, source->max_edges, sample);
}

int cp_wake_bpf_window_close(struct cp_wake_source *base, struct cp_wake_sample *ret_sample,
                             struct cp_error *error)
{
    struct cp_wake_bpf *source = cp_wake_bpf(base);
    struct cp_wake_sample sample = {.begin_ns = source->begin_ns, .end_ns = cp_now_ns()};
    uint64_t end_monotonic_ns = monotonic_ns();
    int r;

    if (!source->scale_waking)
        return cp_error_set(error, EINVAL, "no window is open");
    __atomic_store_n(&source->skeleton->bss->scale_epoch, 0, __ATOMIC_RELEASE);
    cp_wake_bpf_detach_scale(source);
    source->skeleton->bss->dump_epoch = source->epoch;
    r = collect(source, end_monotonic_ns, &sample);
    if (r < 0)
        return cp_error_set(error, -r, "cannot read the BPF tables: %s", strerror(-r));
    base->counters.n_dropped += sample.n_dropped;
    *ret_sample = sample;
    return 0;
}
