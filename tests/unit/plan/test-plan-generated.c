/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What must hold of every plan, on generated machines, loads and pairs: fixed seeds, machines of 2
 * to 1024 CPUs. The checks count claims and loads by themselves, from the plan alone.
 */
#include "plan-scene.h"

#include <stdio.h>

static const struct {
    const char *name;
    struct scene_shape shape;
    unsigned n_seeds;
} machines[] = {
    {"2 CPUs", {1, 1, 1, 2, 1, 1u << 20}, 400},
    {"16 CPUs, 4 LLCs, 2 nodes", {1, 2, 2, 2, 2, 1u << 20}, 400},
    {"64 CPUs", {1, 2, 4, 4, 2, 1u << 20}, 100},
    {"256 CPUs", {2, 4, 2, 8, 2, 1u << 20}, 25},
    {"1024 CPUs", {2, 4, 8, 8, 2, 1u << 20}, 6},
};

/* What rounding to permille may cost a sum over CPUs. */
#define TOLERANCE 0.02

struct random {
    uint64_t state;
};

static uint32_t draw(struct random *random, uint32_t below)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return (uint32_t)((random->state >> 16) % below);
}

static void draw_outside(struct scene *scene, struct random *random)
{
    for (uint32_t d = 0; d < scene->machine.n_domains[CP_LEVEL_LLC]; d++) {
        /* An idle LLC, one with some load, a busy one, a saturated one. */
        static const uint16_t highest[] = {0, 0, 200, 600, 1000};
        unsigned kind = draw(random, CP_ELEMENTS(highest));

        for (uint32_t i = 0; i < scene->machine.n_cpus; i++)
            if (scene->machine.cpus[i].domain[CP_LEVEL_LLC] == d)
                scene->outside[i] = kind == 4 ? (uint16_t)(960 + draw(random, 40))
                                              : (uint16_t)draw(random, highest[kind] + 1u);
    }
}

/* Some CPUs are isolated, some outside the daemon's cpuset; CPU 0 is usable. */
static void draw_unusable(struct scene *scene, struct random *random)
{
    for (unsigned i = 1; i < scene->machine.n_cpus; i++) {
        unsigned kind = draw(random, 12);

        if (kind == 0)
            scene_isolate(scene, i, i);
        if (kind == 1) {
            scene_mask_set(&scene->machine.disallowed, i, i);
            cp_cpumask_clear(&scene->machine.usable, (struct cp_cpu){i});
        }
    }
}

/* Most tasks may run anywhere (their cpuset names offline CPUs too), some on a part. */
static void draw_cpuset(const struct scene *scene, struct random *random, struct cp_cpumask *cpuset)
{
    unsigned n = scene->machine.n_cpus;
    unsigned kind = draw(random, 6);
    unsigned first = draw(random, n);

    cp_cpumask_done(cpuset);
    if (kind == 0)
        scene_mask_set(cpuset, first, first + draw(random, n - first));
    else if (kind == 1)
        for (unsigned i = first % 3; i < n; i += 3)
            scene_mask_set(cpuset, i, i);
    else
        scene_mask_set(cpuset, 0, n + 64);
}

static unsigned permille_of(const struct scene_pair *pair)
{
    return pair->rate_hz * pair->run_us / 1000;
}

/* Finds a CPU of the machine that can have carried the load. */
static bool draw_cpu(struct scene *scene, struct random *random, unsigned permille,
                     unsigned *ret_cpu)
{
    for (unsigned try = 0; try < 8; try++) {
        unsigned cpu = draw(random, scene->machine.n_cpus);

        if (scene->busy[cpu] + permille > 1000)
            continue;
        scene->busy[cpu] = (uint16_t)(scene->busy[cpu] + permille);
        *ret_cpu = cpu;
        return true;
    }
    return false;
}

static void draw_pair(struct scene *scene, struct random *random, pid_t tid)
{
    static const uid_t uids[] = {0, 1000, 1000, 1001};
    static const unsigned rates[] = {1000, 4000, 4000, 10000};
    uint32_t n_nodes = scene->machine.n_domains[CP_LEVEL_NODE];
    uid_t uid = uids[draw(random, CP_ELEMENTS(uids))];
    struct scene_pair pair = {
        .a = tid,
        .b = tid + 1,
        .rate_hz = rates[draw(random, CP_ELEMENTS(rates))],
        .run_us = 5 + draw(random, 41),
        .tail_us = 1 + draw(random, 10),
        .level = (enum cp_level)draw(random, CP_LEVEL_MAX),
    };

    if (draw(random, 3) == 0) {
        pair.rate_hz = 4000;
        pair.run_us = 60 + draw(random, 60);
        pair.tail_us = 60 + draw(random, 60);
    }
    if (draw(random, 10) == 0)
        pair.rate_hz = 10; /* no relation */
    scene_add_pair(scene, &pair);
    for (unsigned k = 0; k < 2; k++) {
        struct cp_task_facts *facts;
        unsigned cpu = 0;

        if (!draw_cpu(scene, random, permille_of(&pair), &cpu))
            continue; /* without facts */
        facts = scene_add_task(scene, tid + (pid_t)k, cpu);
        facts->uid = draw(random, 20) == 0 ? 7 : uid;
        facts->rss_kib = draw(random, 2048);
        facts->home_node = draw(random, 3) == 0 ? draw(random, n_nodes) : CP_DOMAIN_NONE;
        draw_cpuset(scene, random, &facts->cpuset);
        if (draw(random, 20) == 0)
            facts->pf_flags = CP_PF_KTHREAD;
    }
}

static void draw_scene(struct scene *scene, const struct scene_shape *shape, uint64_t seed)
{
    struct random random = {seed * 0x9e3779b97f4a7c15ull + 1};
    unsigned n_pairs;

    scene_init(scene, shape);
    draw_unusable(scene, &random);
    draw_outside(scene, &random);
    memcpy(scene->busy, scene->outside, scene->machine.n_cpus * sizeof(*scene->busy));
    n_pairs = 1 + draw(&random, scene->machine.n_cpus * 2);
    for (unsigned i = 0; i < n_pairs; i++)
        draw_pair(scene, &random, (pid_t)(100 + 2 * i));
    scene->policy.across = draw(&random, 8) == 0;
    scene->policy.any_node = draw(&random, 8) == 0;
    scene_look(scene);
}

/* Claims and loads as they are with the plan carried out. */
struct account {
    struct scene *scene;
    const struct cp_plan *plan;
    double *outside; /* by CPU: others, and the tasks of pairs that the plan did not want to move */
    double *unplaced;             /* by CPU: the tasks of pairs that found no room */
    double *claims[CP_LEVEL_MAX]; /* by level of the claim and CPU: in even parts */
    unsigned *n_claims;           /* on this one CPU, with the plan carried out */
    unsigned *n_before;           /* the same before the move at hand */
    unsigned *n_left;             /* claims that were replaced in the end */
};

static bool is_replaced(const struct account *account, const struct cp_plan_placement *placement)
{
    return scene_move(account->plan, placement->tasks[0].tid, placement->tasks[1].tid) != NULL;
}

static void account_claim(struct account *account, enum cp_level level,
                          const struct cp_cpumask *target, double load)
{
    double each = load / cp_cpumask_weight(target);
    struct cp_cpu cpu;

    cp_cpumask_foreach (cpu, target) {
        account->claims[level][cpu.os] += each;
        account->n_claims[cpu.os] += level <= CP_LEVEL_CORE;
    }
}

/* It was in the way until its pair's turn came. */
static void account_replaced(struct account *account, const struct cp_plan_placement *placement)
{
    struct cp_cpu cpu;

    cp_cpumask_foreach (cpu, placement->target) {
        account->unplaced[cpu.os] += placement->load / cp_cpumask_weight(placement->target);
        account->n_left[cpu.os] += placement->level <= CP_LEVEL_CORE;
    }
}

/* Each task's load where it ran last, but for those that are placed: their claims count. */
static void account_tasks(struct account *account)
{
    struct scene *scene = account->scene;
    const struct cp_plan *plan = account->plan;
    double *load = scene_alloc(scene->n_facts, sizeof(*load));

    for (size_t i = 0; i < scene->n_facts; i++)
        load[i] = cp_pairs_find_task(scene->pairs, scene->facts[i].id)->load;
    for (size_t i = 0; i < 2 * plan->n_findings; i++) {
        const struct cp_plan_finding *finding = &plan->findings[i / 2];
        struct cp_task_facts *facts = scene_find_facts(scene, finding->tasks[i % 2].tid);

        if (!facts)
            continue;
        if (finding->outcome == CP_OUTCOME_NO_ROOM)
            account->unplaced[facts->last_cpu.os] += load[facts - scene->facts];
        if (finding->outcome == CP_OUTCOME_NO_ROOM || finding->outcome == CP_OUTCOME_PLACE ||
            finding->outcome == CP_OUTCOME_STAND)
            load[facts - scene->facts] = 0.0;
    }
    for (size_t i = 0; i < scene->n_facts; i++)
        account->outside[scene->facts[i].last_cpu.os] += load[i];
    free(load);
}

static void account_init(struct account *account, struct scene *scene, const struct cp_plan *plan)
{
    unsigned n = scene->machine.n_cpus;

    *account = (struct account){.scene = scene,
                                .plan = plan,
                                .outside = scene_alloc(n, sizeof(double)),
                                .unplaced = scene_alloc(n, sizeof(double)),
                                .n_claims = scene_alloc(n, sizeof(unsigned)),
                                .n_before = scene_alloc(n, sizeof(unsigned)),
                                .n_left = scene_alloc(n, sizeof(unsigned))};
    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        account->claims[l] = scene_alloc(n, sizeof(double));
    for (unsigned i = 0; i < n; i++)
        account->outside[i] = scene->outside[i] / 1000.0;
    account_tasks(account);
    for (size_t i = 0; i < scene->n_placements; i++)
        if (!is_replaced(account, &scene->placements[i]))
            account_claim(account, scene->placements[i].level, scene->placements[i].target,
                          scene->placements[i].load);
        else
            account_replaced(account, &scene->placements[i]);
    memcpy(account->n_before, account->n_claims, n * sizeof(unsigned));
    for (size_t i = 0; i < plan->n_moves; i++)
        account_claim(account, plan->moves[i].level, &plan->moves[i].target, plan->moves[i].load);
}

static void account_done(struct account *account)
{
    free(account->outside);
    free(account->unplaced);
    for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
        free(account->claims[l]);
    free(account->n_claims);
    free(account->n_before);
    free(account->n_left);
}

/* The domain of that level around a CPU: outside load, that and the claims of this level and those
 * inside it, load of pairs without room. Returns its number of usable CPUs. */
static unsigned measure(const struct account *account, enum cp_level level, unsigned cpu,
                        double *ret_outside, double *ret_all, double *ret_unplaced)
{
    const struct cp_machine *machine = &account->scene->machine;
    uint32_t domain = machine->cpus[cpu].domain[level];
    unsigned n = 0;

    *ret_outside = *ret_all = *ret_unplaced = 0.0;
    for (unsigned i = 0; i < machine->n_cpus; i++) {
        if (machine->cpus[i].domain[level] != domain ||
            !cp_cpumask_test(&machine->usable, (struct cp_cpu){i}))
            continue;
        n++;
        *ret_outside += account->outside[i];
        *ret_unplaced += account->unplaced[i];
        *ret_all += account->outside[i];
        for (enum cp_level l = CP_LEVEL_CPU; l <= level; l++)
            *ret_all += account->claims[l][i];
    }
    return n;
}

static const struct cp_task_facts *facts_of(const struct account *account,
                                            const struct cp_plan_move *move, unsigned k)
{
    const struct cp_task_facts *facts = scene_find_facts(account->scene, move->tasks[k].tid);

    assert_non_null(facts);
    return facts;
}

/* The node that the move must keep to, CP_DOMAIN_NONE for any. */
static uint32_t node_of(const struct account *account, const struct cp_plan_move *move)
{
    const struct cp_task_facts *a = facts_of(account, move, 0);
    const struct cp_task_facts *b = facts_of(account, move, 1);

    if (account->scene->policy.any_node || account->scene->machine.n_domains[CP_LEVEL_NODE] < 2)
        return CP_DOMAIN_NONE;
    if (a->home_node == CP_DOMAIN_NONE || a->home_node == b->home_node)
        return b->home_node;
    if (b->home_node == CP_DOMAIN_NONE)
        return a->home_node;
    return a->rss_kib >= b->rss_kib ? a->home_node : b->home_node;
}

static bool may_use(const struct account *account, const struct cp_plan_move *move, unsigned cpu)
{
    const struct cp_machine *machine = &account->scene->machine;
    uint32_t node = node_of(account, move);

    return cp_cpumask_test(&machine->usable, (struct cp_cpu){cpu}) &&
           cp_cpumask_test(&facts_of(account, move, 0)->cpuset, (struct cp_cpu){cpu}) &&
           cp_cpumask_test(&facts_of(account, move, 1)->cpuset, (struct cp_cpu){cpu}) &&
           (node == CP_DOMAIN_NONE || machine->cpus[cpu].domain[CP_LEVEL_NODE] == node);
}

/* Nothing outside the allowed set, and what the level says. */
static void check_target(const struct account *account, const struct cp_plan_move *move)
{
    const struct cp_machine *machine = &account->scene->machine;
    struct cp_cpu first;
    struct cp_cpu cpu;

    assert_true(cp_cpumask_next(&move->target, 0, &first));
    cp_cpumask_foreach (cpu, &move->target) {
        assert_true(cpu.os < machine->n_cpus);
        assert_true(may_use(account, move, cpu.os));
        if (move->level > CP_LEVEL_CPU)
            assert_int_equal(machine->cpus[cpu.os].domain[move->level],
                             machine->cpus[first.os].domain[move->level]);
    }
    if (move->level == CP_LEVEL_CPU)
        assert_int_equal(cp_cpumask_weight(&move->target), 1);
    else
        assert_true(cp_cpumask_weight(&move->target) >= 2);
    if (move->relation == CP_RELATION_OVERLAPPING)
        assert_true(move->level > CP_LEVEL_CPU);
    if (!account->scene->policy.across)
        assert_int_equal(facts_of(account, move, 0)->uid, facts_of(account, move, 1)->uid);
}

/* No domain is filled beyond what it has, and a saturated one was not chosen. */
static void check_capacity(const struct account *account, const struct cp_plan_move *move)
{
    struct cp_cpu first;

    assert_true(cp_cpumask_next(&move->target, 0, &first));
    if (move->level == CP_LEVEL_CPU) {
        assert_true(account->outside[first.os] + account->claims[CP_LEVEL_CPU][first.os] <=
                    1.0 + TOLERANCE);
        assert_true(account->outside[first.os] < 0.95 + TOLERANCE);
    }
    for (enum cp_level l = CP_MAX(move->level, CP_LEVEL_CORE); l <= CP_LEVEL_PACKAGE; l++) {
        double outside;
        double all;
        double unplaced;
        unsigned n = measure(account, l, first.os, &outside, &all, &unplaced);

        assert_true(all <= n + TOLERANCE * n);
        assert_true(outside < (0.95 + TOLERANCE) * n);
    }
}

static bool is_suitable(const struct account *account, const struct cp_plan_move *move,
                        unsigned cpu)
{
    const struct cp_machine *machine = &account->scene->machine;

    if (!may_use(account, move, cpu) || account->n_claims[cpu] > 0 ||
        account->outside[cpu] + account->unplaced[cpu] > 0.9 ||
        account->outside[cpu] + account->unplaced[cpu] + move->load > 1.0 - TOLERANCE)
        return false;
    for (unsigned i = 0; i < machine->n_cpus; i++)
        if (account->n_claims[i] + account->n_left[i] > 0 &&
            machine->cpus[i].domain[CP_LEVEL_CORE] == machine->cpus[cpu].domain[CP_LEVEL_CORE])
            return false; /* perhaps another owner's */
    for (enum cp_level l = CP_LEVEL_LLC; l <= CP_LEVEL_PACKAGE; l++) {
        double outside;
        double all;
        double unplaced;
        unsigned n = measure(account, l, cpu, &outside, &all, &unplaced);

        if (all + unplaced + move->load > n - TOLERANCE * n || outside + unplaced > 0.9 * n)
            return false;
    }
    return true;
}

/* No CPU gets two claims while a suitable one is idle: neither before this move nor after all. */
static void check_claims(const struct account *account, const struct cp_plan_move *move)
{
    struct cp_cpu first;
    struct cp_cpu cpu;

    if (move->level > CP_LEVEL_CORE)
        return;
    assert_true(cp_cpumask_next(&move->target, 0, &first));
    if (move->level == CP_LEVEL_CPU && account->n_before[first.os] > 0)
        for (unsigned i = 0; i < account->scene->machine.n_cpus; i++)
            if (is_suitable(account, move, i))
                fail_msg("CPU %u has %u claims while %u is idle", first.os,
                         account->n_claims[first.os], i);
    cp_cpumask_foreach (cpu, &move->target)
        account->n_before[cpu.os]++;
}

/* Adds the owner of a narrow claim to the cores that it is on; each core has one. */
static void check_owner(struct account *account, uid_t *owners, enum cp_level level,
                        const struct cp_cpumask *target, pid_t tid)
{
    uid_t uid = scene_find_facts(account->scene, tid)->uid;
    struct cp_cpu cpu;

    if (level > CP_LEVEL_CORE)
        return;
    cp_cpumask_foreach (cpu, target) {
        uid_t *owner = &owners[account->scene->machine.cpus[cpu.os].domain[CP_LEVEL_CORE]];

        assert_true(*owner == (uid_t)-1 || *owner == uid);
        *owner = uid;
    }
}

static void check_owners(struct account *account)
{
    struct scene *scene = account->scene;
    uint32_t n_cores = scene->machine.n_domains[CP_LEVEL_CORE];
    uid_t *owners = scene_alloc(n_cores, sizeof(*owners));

    memset(owners, 0xff, n_cores * sizeof(*owners));
    for (size_t i = 0; i < scene->n_placements && !scene->policy.across; i++)
        if (!is_replaced(account, &scene->placements[i]))
            check_owner(account, owners, scene->placements[i].level, scene->placements[i].target,
                        scene->placements[i].tasks[0].tid);
    for (size_t i = 0; i < account->plan->n_moves && !scene->policy.across; i++)
        check_owner(account, owners, account->plan->moves[i].level, &account->plan->moves[i].target,
                    account->plan->moves[i].tasks[0].tid);
    free(owners);
}

static void check_plan(struct scene *scene, const struct cp_plan *plan)
{
    struct account account;
    size_t n_place = 0;

    account_init(&account, scene, plan);
    for (size_t i = 0; i < plan->n_moves; i++) {
        check_target(&account, &plan->moves[i]);
        check_capacity(&account, &plan->moves[i]);
        check_claims(&account, &plan->moves[i]);
        assert_true(plan->moves[i].gain >= scene->policy.min_gain_ns_per_s);
    }
    check_owners(&account);
    for (size_t i = 0; i < plan->n_findings; i++)
        n_place += plan->findings[i].outcome == CP_OUTCOME_PLACE;
    assert_int_equal(n_place, plan->n_moves);
    account_done(&account);
}

static void assert_same_plan(const struct cp_plan *a, const struct cp_plan *b)
{
    assert_int_equal(a->n_moves, b->n_moves);
    for (size_t i = 0; i < a->n_moves; i++) {
        assert_true(cp_task_id_equal(a->moves[i].tasks[0], b->moves[i].tasks[0]));
        assert_true(cp_cpumask_equal(&a->moves[i].target, &b->moves[i].target));
        assert_int_equal(a->moves[i].level, b->moves[i].level);
        assert_int_equal(a->moves[i].rule, b->moves[i].rule);
    }
    for (size_t i = 0; i < a->n_findings; i++) {
        assert_int_equal(a->findings[i].outcome, b->findings[i].outcome);
        for (size_t k = 0; k < a->findings[i].n_candidates; k++)
            assert_int_equal(a->findings[i].candidates[k].possible,
                             b->findings[i].candidates[k].possible);
    }
}

typedef void (*check_scene)(struct scene *scene, uint64_t seed);

static void for_each_scene(check_scene check)
{
    for (size_t m = 0; m < CP_ELEMENTS(machines); m++)
        for (unsigned seed = 1; seed <= machines[m].n_seeds; seed++) {
            struct scene scene;

            draw_scene(&scene, &machines[m].shape, seed);
            check(&scene, seed);
            scene_done(&scene);
        }
}

static void check_one(struct scene *scene, uint64_t seed)
{
    struct cp_plan plan = {0};
    struct cp_plan again = {0};

    (void)seed;
    scene_plan(scene, &plan);
    check_plan(scene, &plan);
    scene_plan(scene, &again);
    assert_same_plan(&plan, &again);
    cp_plan_done(&again);
    cp_plan_done(&plan);
}

static void test_invariants(void **state)
{
    (void)state;
    for_each_scene(check_one);
}

/* Scenes of which the CPUs' loads are known after a plan was applied. Where a target has time for
 * all its tasks only in parts of CPUs, what each CPU would show is anybody's guess. */
static unsigned n_settled;

static void check_settled(struct scene *scene, uint64_t seed)
{
    struct cp_plan plan = {0};
    struct cp_plan again = {0};

    scene_plan(scene, &plan);
    scene_apply(scene, &plan);
    scene_plan(scene, &again);
    if (!scene->is_overcommitted) {
        if (again.n_moves != 0)
            fail_msg("seed %llu: %zu moves, then %zu (%d and %d to %s)", (unsigned long long)seed,
                     plan.n_moves, again.n_moves, again.moves[0].tasks[0].tid,
                     again.moves[0].tasks[1].tid, cp_level_to_string(again.moves[0].level));
        for (size_t i = 0; i < plan.n_findings; i++)
            if (plan.findings[i].outcome == CP_OUTCOME_PLACE)
                assert_int_equal(again.findings[i].outcome, CP_OUTCOME_STAND);
        n_settled++;
    }
    cp_plan_done(&again);
    cp_plan_done(&plan);
}

/* A plan applied and planned again is empty. */
static void test_applied_plan_is_empty(void **state)
{
    (void)state;
    n_settled = 0;
    for_each_scene(check_settled);
    assert_true(n_settled > 500);
}

static void shuffle(const struct cp_pair **candidates, size_t n, struct random *random)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = draw(random, (uint32_t)i);
        const struct cp_pair *swap = candidates[i - 1];

        candidates[i - 1] = candidates[k];
        candidates[k] = swap;
    }
}

/* In any order, and beside placements that stand already. */
static void check_in_steps(struct scene *scene, uint64_t seed)
{
    struct random random = {seed + 77};
    size_t n = scene->n_candidates;
    struct cp_plan first = {0};
    struct cp_plan rest = {0};

    shuffle(scene->candidates, n, &random);
    scene->n_candidates = n / 2;
    scene_plan(scene, &first);
    check_plan(scene, &first);
    scene_apply(scene, &first);
    scene->n_candidates = n;
    scene_plan(scene, &rest);
    if (!scene->is_overcommitted) {
        check_plan(scene, &rest);
        n_settled++;
    }
    cp_plan_done(&rest);
    cp_plan_done(&first);
}

static void test_any_order_and_in_steps(void **state)
{
    (void)state;
    n_settled = 0;
    for_each_scene(check_in_steps);
    assert_true(n_settled > 500);
}

/* As many serial pairs as CPUs: every CPU gets one. Unsuitable CPUs get none. */
static void test_full_house(void **state)
{
    (void)state;
    for (size_t m = 0; m < CP_ELEMENTS(machines); m++) {
        struct random random = {m + 1};
        struct scene scene;
        struct cp_plan plan = {0};
        _cleanup_cpumask_ struct cp_cpumask all = {0};
        unsigned n;

        scene_init(&scene, &machines[m].shape);
        if (scene.machine.n_cpus > 2)
            scene_isolate(&scene, 1, 1);
        n = cp_cpumask_weight(&scene.machine.usable);
        for (unsigned i = 0; i < n; i++) {
            const struct scene_pair pair = {
                (pid_t)(100 + 2 * i), (pid_t)(101 + 2 * i), 10000, 5, 45, CP_LEVEL_LLC};
            unsigned cpu;

            do
                cpu = draw(&random, scene.machine.n_cpus);
            while (!cp_cpumask_test(&scene.machine.usable, (struct cp_cpu){cpu}));
            scene_add_tasks_and_pair(&scene, &pair, cpu, cpu);
        }
        scene_plan(&scene, &plan);
        assert_int_equal(plan.n_moves, n);
        for (size_t i = 0; i < plan.n_moves; i++) {
            assert_int_equal(plan.moves[i].level, CP_LEVEL_CPU);
            assert_false(cp_cpumask_intersects(&all, &plan.moves[i].target));
            assert_int_equal(cp_cpumask_or(&all, &all, &plan.moves[i].target), 0);
        }
        assert_true(cp_cpumask_equal(&all, &scene.machine.usable));
        cp_plan_done(&plan);
        scene_done(&scene);
    }
}

/* Overlapping pairs beyond what the machine has: each LLC is filled, none beyond its CPUs. */
static void test_more_pairs_than_room(void **state)
{
    (void)state;
    for (size_t m = 1; m < CP_ELEMENTS(machines); m++) {
        unsigned n_llcs;
        unsigned llc_cpus;
        unsigned *placed;
        struct scene scene;
        struct cp_plan plan = {0};

        scene_init(&scene, &machines[m].shape);
        n_llcs = scene.machine.n_domains[CP_LEVEL_LLC];
        llc_cpus = scene.machine.n_cpus / n_llcs;
        placed = scene_alloc(n_llcs, sizeof(*placed));
        for (unsigned i = 0; i < 2 * scene.machine.n_cpus; i++) {
            const struct scene_pair pair =
                scene_overlapping((pid_t)(100 + 2 * i), (pid_t)(101 + 2 * i), CP_LEVEL_MACHINE);

            scene_add_tasks_and_pair(&scene, &pair, i % scene.machine.n_cpus,
                                     (i + 1) % scene.machine.n_cpus);
        }
        scene.costs.level[CP_LEVEL_NODE].ns = scene.costs.level[CP_LEVEL_PACKAGE].ns = 100000;
        scene_plan(&scene, &plan);
        for (size_t i = 0; i < plan.n_moves; i++) {
            struct cp_cpu cpu;

            assert_true(cp_cpumask_next(&plan.moves[i].target, 0, &cpu));
            placed[scene.machine.cpus[cpu.os].domain[CP_LEVEL_LLC]]++;
        }
        for (unsigned d = 0; d < n_llcs; d++)
            assert_int_equal(placed[d], llc_cpus * 10 / 8);
        free(placed);
        cp_plan_done(&plan);
        scene_done(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invariants),
        cmocka_unit_test(test_applied_plan_is_empty),
        cmocka_unit_test(test_any_order_and_in_steps),
        cmocka_unit_test(test_full_house),
        cmocka_unit_test(test_more_pairs_than_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
