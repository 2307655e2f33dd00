/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A scene for tests of plan: a machine built by hand, pairs fed through the real pair room, facts,
 * loads, placements and holds; and a plan over them.
 */
#pragma once

#include "base/cleanup.h"
#include "machine/machine.h"
#include "plan/plan.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The machine as nested counts. */
struct scene_shape {
    unsigned n_packages;
    unsigned n_nodes; /* in a package */
    unsigned n_llcs;  /* in a node */
    unsigned n_cores; /* in an LLC */
    unsigned n_threads;
    uint64_t cache_bytes;
};

struct scene {
    struct cp_machine machine;
    struct cp_costs costs;
    struct cp_policy policy;
    struct cp_pairs *pairs;
    struct cp_wake_sample sample;
    size_t n_facts;
    struct cp_task_facts *facts;
    uint16_t *outside; /* permille that other tasks use of each CPU */
    uint16_t *busy;    /* that and the tasks of the scene */
    size_t n_placements;
    struct cp_plan_placement *placements;
    struct cp_cpumask *targets; /* of the placements */
    size_t n_holds;
    struct cp_plan_hold *holds;
    size_t n_candidates;
    const struct cp_pair **candidates;
    uint64_t now_ns;
    bool is_overcommitted; /* scene_apply() found no CPU with time for a task */
};

/* Timing of a pair: a serial one gains on one CPU with the scene's costs, an overlapping one does
 * not. Each direction has the rate; each task's load is rate × run. */
struct scene_pair {
    pid_t a;
    pid_t b;
    unsigned rate_hz;
    unsigned tail_us;
    unsigned run_us;
    enum cp_level level;
};

#define SCENE_WINDOW_NS 1000000000ull
#define SCENE_NOW_NS 100000000000ull

static inline struct cp_task_id scene_id(pid_t tid)
{
    return (struct cp_task_id){tid, (uint64_t)tid + 1000};
}

static inline void *scene_alloc(size_t n, size_t size)
{
    void *p = calloc(n > 0 ? n : 1, size);

    assert_non_null(p);
    return p;
}

static inline void scene_assert_near(double value, double wanted, double tolerance)
{
    if (!(value >= wanted - tolerance && value <= wanted + tolerance))
        fail_msg("%f is not near %f", value, wanted);
}

static inline void scene_mask_set(struct cp_cpumask *mask, unsigned first, unsigned last)
{
    assert_int_equal(cp_cpumask_set_range(mask, (struct cp_cpu){first}, (struct cp_cpu){last}), 0);
}

static inline void scene_mask_parse(struct cp_cpumask *mask, const char *list)
{
    assert_int_equal(cp_cpumask_parse_list(list, mask), 0);
}

/* CPUs are numbered as on most x86 machines: thread t of core c is CPU c + t × cores. */
static inline void scene_build_machine(struct cp_machine *machine, const struct scene_shape *shape)
{
    unsigned nodes = shape->n_packages * shape->n_nodes;
    unsigned llcs = nodes * shape->n_llcs;
    unsigned cores = llcs * shape->n_cores;
    unsigned n_cpus = cores * shape->n_threads;
    const unsigned n_domains[CP_LEVEL_MAX] = {[CP_LEVEL_CORE] = cores,
                                              [CP_LEVEL_LLC] = llcs,
                                              [CP_LEVEL_NODE] = nodes,
                                              [CP_LEVEL_PACKAGE] = shape->n_packages};

    *machine = (struct cp_machine){.n_references = 1, .generation = 7, .n_cpus = n_cpus};
    machine->cpus = scene_alloc(n_cpus, sizeof(*machine->cpus));
    for (enum cp_level l = CP_LEVEL_CORE; l <= CP_LEVEL_PACKAGE; l++) {
        machine->n_domains[l] = n_domains[l];
        machine->domains[l] = scene_alloc(n_domains[l], sizeof(struct cp_domain));
        for (uint32_t d = 0; d < n_domains[l]; d++) {
            machine->domains[l][d] =
                (struct cp_domain){.level = l, .index = d, .os_index = d, .real = true};
            if (l == CP_LEVEL_LLC) {
                machine->domains[l][d].cache_level = 3;
                machine->domains[l][d].cache_bytes = shape->cache_bytes;
            }
        }
    }
    for (unsigned i = 0; i < n_cpus; i++) {
        struct cp_machine_cpu *cpu = &machine->cpus[i];
        unsigned core = i % cores;

        cpu->cpu = (struct cp_cpu){i};
        cpu->kind = -1;
        cpu->domain[CP_LEVEL_CPU] = cpu->domain[CP_LEVEL_MACHINE] = CP_DOMAIN_NONE;
        cpu->domain[CP_LEVEL_CORE] = core;
        cpu->domain[CP_LEVEL_LLC] = core / shape->n_cores;
        cpu->domain[CP_LEVEL_NODE] = core / shape->n_cores / shape->n_llcs;
        cpu->domain[CP_LEVEL_PACKAGE] = cpu->domain[CP_LEVEL_NODE] / shape->n_nodes;
        for (enum cp_level l = CP_LEVEL_CORE; l <= CP_LEVEL_PACKAGE; l++)
            scene_mask_set(&machine->domains[l][cpu->domain[l]].cpus, i, i);
    }
    scene_mask_set(&machine->online, 0, n_cpus - 1);
    scene_mask_set(&machine->usable, 0, n_cpus - 1);
}

static inline void scene_init(struct scene *scene, const struct scene_shape *shape)
{
    static const unsigned cost_us[CP_LEVEL_MAX] = {1, 30, 40, 60, 80, 100};
    struct cp_pairs_config config;

    *scene = (struct scene){.now_ns = SCENE_NOW_NS};
    scene_build_machine(&scene->machine, shape);
    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        scene->costs.level[l] =
            (struct cp_cost){.ns = cost_us[l] * 1000u, .source = CP_COST_CONFIGURED};
    cp_policy_init_builtin(&scene->policy);
    cp_pairs_config_init_default(&config);
    config.max_pairs = config.max_tasks = 1u << 18;
    scene->pairs = cp_pairs_new(&config);
    assert_non_null(scene->pairs);
    scene->outside = scene_alloc(scene->machine.n_cpus, sizeof(*scene->outside));
    scene->busy = scene_alloc(scene->machine.n_cpus, sizeof(*scene->busy));
}

/* Takes CPUs out of those that may be used, as isolated ones are. */
static inline void scene_isolate(struct scene *scene, unsigned first, unsigned last)
{
    scene_mask_set(&scene->machine.isolated, first, last);
    for (unsigned i = first; i <= last; i++)
        cp_cpumask_clear(&scene->machine.usable, (struct cp_cpu){i});
}

/* Facts are sorted, and one task has each TID. */
static inline struct cp_task_facts *scene_find_facts(struct scene *scene, pid_t tid)
{
    size_t low = 0;
    size_t high = scene->n_facts;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (scene->facts[middle].id.tid == tid)
            return &scene->facts[middle];
        if (scene->facts[middle].id.tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static inline int scene_compare_facts(const void *a, const void *b)
{
    return cp_task_id_compare(((const struct cp_task_facts *)a)->id,
                              ((const struct cp_task_facts *)b)->id);
}

/* An ordinary task: SCHED_OTHER, old, unbound, of uid 1000, at home on no node. */
static inline struct cp_task_facts *scene_add_task(struct scene *scene, pid_t tid,
                                                   unsigned last_cpu)
{
    struct cp_task_facts facts = {
        .id = scene_id(tid),
        .tgid = tid,
        .uid = 1000,
        .sched_policy = SCHED_OTHER,
        .age_ns = 60 * SCENE_WINDOW_NS,
        .last_cpu = {last_cpu},
        .rss_kib = 1024,
        .user_mask = CP_USER_MASK_NONE,
        .home_node = CP_DOMAIN_NONE,
    };

    assert_int_equal(cp_cpumask_copy(&facts.allowed, &scene->machine.online), 0);
    assert_int_equal(cp_cpumask_copy(&facts.cpuset, &scene->machine.online), 0);
    scene->facts = reallocarray(scene->facts, scene->n_facts + 1, sizeof(facts));
    assert_non_null(scene->facts);
    scene->facts[scene->n_facts++] = facts;
    if (scene->n_facts > 1 && cp_task_id_compare(scene->facts[scene->n_facts - 2].id, facts.id) > 0)
        qsort(scene->facts, scene->n_facts, sizeof(facts), scene_compare_facts);
    return scene_find_facts(scene, tid);
}

static inline void scene_add_edge(struct scene *scene, pid_t waker, pid_t wakee,
                                  const struct scene_pair *pair)
{
    struct cp_wake_sample *sample = &scene->sample;
    uint64_t n = pair->rate_hz;
    struct cp_wake_edge edge = {
        .waker = scene_id(waker),
        .wakee = scene_id(wakee),
        .handoffs = n,
        .slept = n,
        .tail_ns = n * pair->tail_us * 1000,
        .n_tail = n,
        .latency_ns = n * scene->costs.level[pair->level].ns,
        .n_latency = n,
        .run_ns = n * pair->run_us * 1000,
        .n_run = n,
    };
    struct cp_wake_task task = {
        .id = scene_id(waker),
        .tgid = waker,
        .uid = 1000,
        .run_ns = n * pair->run_us * 1000,
    };

    edge.level[pair->level] = n;
    sample->edges = reallocarray(sample->edges, sample->n_edges + 1, sizeof(edge));
    assert_non_null(sample->edges);
    sample->edges[sample->n_edges++] = edge;
    for (size_t i = 0; i < sample->n_tasks; i++)
        if (cp_task_id_equal(sample->tasks[i].id, task.id)) {
            sample->tasks[i].run_ns += task.run_ns;
            return;
        }
    sample->tasks = reallocarray(sample->tasks, sample->n_tasks + 1, sizeof(task));
    assert_non_null(sample->tasks);
    sample->tasks[sample->n_tasks++] = task;
}

/* Both directions of a pair into the window; facts are the caller's to add. */
static inline void scene_add_pair(struct scene *scene, const struct scene_pair *pair)
{
    scene_add_edge(scene, pair->a, pair->b, pair);
    scene_add_edge(scene, pair->b, pair->a, pair);
}

/* A pair with ordinary tasks that ran last on those CPUs. */
static inline void scene_add_tasks_and_pair(struct scene *scene, const struct scene_pair *pair,
                                            unsigned cpu_a, unsigned cpu_b)
{
    scene_add_pair(scene, pair);
    scene_add_task(scene, pair->a, cpu_a);
    scene_add_task(scene, pair->b, cpu_b);
}

/* 20 % of a CPU each, 6 us lost on one CPU against 40 us in an LLC. */
static inline struct scene_pair scene_serial(pid_t a, pid_t b, enum cp_level level)
{
    return (struct scene_pair){a, b, 10000, 5, 20, level};
}

/* 40 % of a CPU each, 91 us lost on one CPU: more than anywhere but on far nodes. */
static inline struct scene_pair scene_overlapping(pid_t a, pid_t b, enum cp_level level)
{
    return (struct scene_pair){a, b, 4000, 100, 100, level};
}

static inline void scene_add_placement(struct scene *scene, pid_t a, pid_t b, enum cp_level level,
                                       const char *cpus, double load)
{
    size_t n = scene->n_placements++;

    scene->placements = reallocarray(scene->placements, n + 1, sizeof(struct cp_plan_placement));
    scene->targets = reallocarray(scene->targets, n + 1, sizeof(struct cp_cpumask));
    assert_non_null(scene->placements);
    assert_non_null(scene->targets);
    scene->targets[n] = (struct cp_cpumask){0};
    scene_mask_parse(&scene->targets[n], cpus);
    scene->placements[n] = (struct cp_plan_placement){
        .tasks = {scene_id(a), scene_id(b)}, .level = level, .load = load};
    for (size_t i = 0; i <= n; i++)
        scene->placements[i].target = &scene->targets[i];
}

static inline void scene_add_hold(struct scene *scene, pid_t a, pid_t b, enum cp_plan_outcome why,
                                  uint64_t until_ns)
{
    size_t n = scene->n_holds++;

    scene->holds = reallocarray(scene->holds, n + 1, sizeof(struct cp_plan_hold));
    assert_non_null(scene->holds);
    scene->holds[n] = (struct cp_plan_hold){.why = why, .until_ns = until_ns};
    scene->holds[n].tasks[0] = scene_id(a);
    if (b != 0)
        scene->holds[n].tasks[1] = scene_id(b);
}

static inline int scene_compare_edges(const void *a, const void *b)
{
    const struct cp_wake_edge *x = a;
    const struct cp_wake_edge *y = b;
    int order = cp_task_id_compare(x->waker, y->waker);

    return order != 0 ? order : cp_task_id_compare(x->wakee, y->wakee);
}

static inline int scene_compare_tasks(const void *a, const void *b)
{
    return cp_task_id_compare(((const struct cp_wake_task *)a)->id,
                              ((const struct cp_wake_task *)b)->id);
}

/* Feeds the window to the pair room and takes all its pairs as candidates. */
static inline void scene_look(struct scene *scene)
{
    struct cp_wake_sample *sample = &scene->sample;
    const struct cp_pair *const *list;

    sample->end_ns = scene->now_ns;
    sample->begin_ns = scene->now_ns - SCENE_WINDOW_NS;
    if (sample->n_edges > 0) {
        qsort(sample->edges, sample->n_edges, sizeof(*sample->edges), scene_compare_edges);
        qsort(sample->tasks, sample->n_tasks, sizeof(*sample->tasks), scene_compare_tasks);
    }
    assert_int_equal(cp_pairs_feed(scene->pairs, sample), 0);
    scene->n_candidates = cp_pairs_list(scene->pairs, &list);
    scene->candidates = scene_alloc(scene->n_candidates, sizeof(*scene->candidates));
    for (size_t i = 0; i < scene->n_candidates; i++)
        scene->candidates[i] = list[i];
}

/* What /proc/stat would show: each task's load where it ran last. */
static inline void scene_fill_busy(struct scene *scene)
{
    memcpy(scene->busy, scene->outside, scene->machine.n_cpus * sizeof(*scene->busy));
    for (size_t i = 0; i < scene->n_facts; i++) {
        const struct cp_pair_task *task = cp_pairs_find_task(scene->pairs, scene->facts[i].id);
        unsigned cpu = scene->facts[i].last_cpu.os;
        double busy = task ? scene->busy[cpu] + task->load * 1000.0 : scene->busy[cpu];

        scene->busy[cpu] = (uint16_t)CP_MIN(busy, 1000.0);
    }
}

static inline void scene_plan(struct scene *scene, struct cp_plan *ret_plan)
{
    struct cp_plan_input input = {
        .machine = &scene->machine,
        .costs = &scene->costs,
        .policy = &scene->policy,
        .pairs = scene->pairs,
        .n_facts = scene->n_facts,
        .facts = scene->facts,
        .busy_permille = scene->busy,
        .n_placements = scene->n_placements,
        .placements = scene->placements,
        .n_holds = scene->n_holds,
        .holds = scene->holds,
        .now_ns = scene->now_ns,
    };

    if (!scene->candidates)
        scene_look(scene);
    scene_fill_busy(scene);
    input.n_candidates = scene->n_candidates;
    input.candidates = scene->candidates;
    assert_int_equal(cp_plan_make(&input, ret_plan), 0);
    assert_int_equal(ret_plan->n_findings, scene->n_candidates);
    assert_int_equal(ret_plan->machine_generation, 7);
}

static inline const struct cp_plan_finding *scene_finding(const struct cp_plan *plan, pid_t a,
                                                          pid_t b)
{
    for (size_t i = 0; i < plan->n_findings; i++)
        if (plan->findings[i].tasks[0].tid == a && plan->findings[i].tasks[1].tid == b)
            return &plan->findings[i];
    fail_msg("no finding for %d and %d", a, b);
    return NULL;
}

static inline const struct cp_plan_move *scene_move(const struct cp_plan *plan, pid_t a, pid_t b)
{
    for (size_t i = 0; i < plan->n_moves; i++)
        if (plan->moves[i].tasks[0].tid == a && plan->moves[i].tasks[1].tid == b)
            return &plan->moves[i];
    return NULL;
}

static inline void scene_assert_target(const struct cp_plan_move *move, const char *cpus)
{
    _cleanup_cpumask_ struct cp_cpumask wanted = {0};
    _cleanup_free_ char *list = NULL;

    assert_non_null(move);
    scene_mask_parse(&wanted, cpus);
    list = cp_cpumask_to_list(&move->target);
    if (!cp_cpumask_equal(&move->target, &wanted))
        fail_msg("target is %s, not %s", list, cpus);
}

/* The CPU of the mask that is least busy by what scene_fill_busy() found, and its load there. */
static inline void scene_run_on(struct scene *scene, pid_t tid, const struct cp_cpumask *mask)
{
    struct cp_task_facts *facts = scene_find_facts(scene, tid);
    const struct cp_pair_task *task = cp_pairs_find_task(scene->pairs, facts->id);
    struct cp_cpu cpu;
    struct cp_cpu best;

    assert_true(cp_cpumask_next(mask, 0, &best));
    cp_cpumask_foreach (cpu, mask)
        if (scene->busy[cpu.os] < scene->busy[best.os])
            best = cpu;
    facts->last_cpu = best;
    if (scene->busy[best.os] + task->load * 1000.0 > 1000.0)
        scene->is_overcommitted = true;
    scene->busy[best.os] = (uint16_t)CP_MIN(scene->busy[best.os] + task->load * 1000.0, 1000.0);
}

/* Makes the moves of a plan standing placements: the tasks run where the plan put them. */
static inline void scene_apply(struct scene *scene, const struct cp_plan *plan)
{
    for (size_t i = 0; i < plan->n_moves; i++) {
        const struct cp_plan_move *move = &plan->moves[i];
        _cleanup_free_ char *list = cp_cpumask_to_list(&move->target);

        assert_non_null(list);
        for (size_t p = 0; p < scene->n_placements; p++)
            if (cp_task_id_equal(scene->placements[p].tasks[0], move->tasks[0])) {
                cp_cpumask_done(&scene->targets[p]);
                scene->n_placements--;
                scene->placements[p] = scene->placements[scene->n_placements];
                scene->targets[p] = scene->targets[scene->n_placements];
                break;
            }
        scene_add_placement(scene, move->tasks[0].tid, move->tasks[1].tid, move->level, list,
                            move->load);
    }
    /* First all leave, then they settle, those on one CPU first. */
    scene_fill_busy(scene);
    for (size_t i = 0; i < 2 * plan->n_moves; i++) {
        const struct cp_task_facts *facts =
            scene_find_facts(scene, plan->moves[i / 2].tasks[i % 2].tid);
        const struct cp_pair_task *task = cp_pairs_find_task(scene->pairs, facts->id);
        unsigned cpu = facts->last_cpu.os;

        scene->busy[cpu] = (uint16_t)CP_MAX(scene->busy[cpu] - (int)(task->load * 1000.0), 0);
    }
    for (unsigned wide = 0; wide < 2; wide++)
        for (size_t i = 0; i < plan->n_moves; i++)
            for (unsigned k = 0; k < 2; k++)
                if ((plan->moves[i].level > CP_LEVEL_CPU) == wide)
                    scene_run_on(scene, plan->moves[i].tasks[k].tid, &plan->moves[i].target);
}

static inline void scene_done(struct scene *scene)
{
    for (enum cp_level l = CP_LEVEL_CORE; l <= CP_LEVEL_PACKAGE; l++) {
        for (uint32_t d = 0; d < scene->machine.n_domains[l]; d++)
            cp_cpumask_done(&scene->machine.domains[l][d].cpus);
        free(scene->machine.domains[l]);
    }
    free(scene->machine.cpus);
    cp_cpumask_done(&scene->machine.online);
    cp_cpumask_done(&scene->machine.offline);
    cp_cpumask_done(&scene->machine.isolated);
    cp_cpumask_done(&scene->machine.disallowed);
    cp_cpumask_done(&scene->machine.usable);
    for (size_t i = 0; i < scene->n_facts; i++)
        cp_task_facts_done(&scene->facts[i]);
    for (size_t i = 0; i < scene->n_placements; i++)
        cp_cpumask_done(&scene->targets[i]);
    free(scene->facts);
    free(scene->outside);
    free(scene->busy);
    free(scene->placements);
    free(scene->targets);
    free(scene->holds);
    free(scene->candidates);
    free(scene->sample.edges);
    free(scene->sample.tasks);
    cp_pairs_free(scene->pairs);
    *scene = (struct scene){0};
}
