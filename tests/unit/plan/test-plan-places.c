/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the plan puts a pair, and by which rule: one case or more for each rule of the plan. */
#include "plan-scene.h"

/* 16 CPUs: LLC 0 = 0,1,8,9 (cores 0,8 and 1,9), LLC 1 = 2,3,10,11 on node 0; LLC 2 and 3 on node 1.
 */
static const struct scene_shape two_nodes = {1, 2, 2, 2, 2, 1u << 20};
static const struct scene_shape tiny = {1, 1, 1, 2, 1, 1u << 20};

static void add(struct scene *scene, const struct scene_pair pair, unsigned cpu_a, unsigned cpu_b)
{
    scene_add_tasks_and_pair(scene, &pair, cpu_a, cpu_b);
}

static void bind_cpusets(struct scene *scene, const char *cpus)
{
    for (size_t i = 0; i < scene->n_facts; i++)
        scene_mask_parse(&scene->facts[i].cpuset, cpus);
}

static void assert_move(const struct cp_plan *plan, pid_t a, pid_t b, enum cp_level level,
                        enum cp_plan_rule rule, const char *cpus)
{
    const struct cp_plan_move *move = scene_move(plan, a, b);

    if (!move) {
        fail_msg("%d and %d: %s", a, b,
                 cp_plan_outcome_to_string(scene_finding(plan, a, b)->outcome));
        return;
    }
    scene_assert_target(move, cpus);
    assert_int_equal(move->level, level);
    assert_int_equal(move->rule, rule);
    assert_true(cp_task_id_equal(move->tasks[0], scene_id(a)));
    assert_true(cp_task_id_equal(move->tasks[1], scene_id(b)));
}

static void end(struct scene *scene, struct cp_plan *plan)
{
    cp_plan_done(plan);
    scene_done(scene);
}

static void test_handoff(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 0, 1);
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "0");
    assert_int_equal(plan.moves[0].relation, CP_RELATION_SERIAL);
    end(&scene, &plan);
}

/* The whole LLC, not two CPUs of it: the kernel keeps balancing inside. */
static void test_idle_wakee(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_overlapping(10, 11, CP_LEVEL_NODE), 2, 0);
    scene.outside[2] = 500;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_LLC, CP_RULE_IDLE_WAKEE, "0-1,8-9");
    assert_int_equal(plan.moves[0].relation, CP_RELATION_OVERLAPPING);
    end(&scene, &plan);
}

static void test_idle_sibling(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, scene_overlapping(10, 11, CP_LEVEL_CPU), 1, 1);
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_LLC, CP_RULE_IDLE_SIBLING, "0-1");
    end(&scene, &plan);
}

/* Between an LLC and a core that is cheaper by less than the margin: the LLC. */
static void test_loosest_mask(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_overlapping(10, 11, CP_LEVEL_PACKAGE), 0, 4);
    scene.costs.level[CP_LEVEL_CORE].ns = 1000; /* 51 us with half of the overlap */
    scene.costs.level[CP_LEVEL_LLC].ns = 53000;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_LLC, CP_RULE_IDLE_WAKEE, "0-1,8-9");
    cp_plan_done(&plan);
    scene.costs.level[CP_LEVEL_LLC].ns = 54000;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CORE, CP_RULE_IDLE_WAKEE, "0,8");
    end(&scene, &plan);
}

/* Never both on one CPU: a domain of which they may use one CPU only is no place for them. */
static void test_overlapping_is_not_stacked_by_its_cpuset(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_overlapping(10, 11, CP_LEVEL_PACKAGE), 0, 4);
    bind_cpusets(&scene, "0,4-5");
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_LLC, CP_RULE_IDLE_WAKEE, "4-5");
    end(&scene, &plan);
}

static void test_serial_falls_back(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_serial(10, 11, CP_LEVEL_NODE), 0, 2);
    for (unsigned i = 0; i < 16; i++)
        scene.outside[i] = 850; /* 0.4 more fit an LLC, but neither a CPU nor a core */
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_LLC, CP_RULE_IDLE_WAKEE, "0-1,8-9");
    assert_false(scene_finding(&plan, 10, 11)->candidates[0].possible);
    end(&scene, &plan);
}

static void test_policy_levels(void **state)
{
    static const struct {
        enum cp_pair_level pairs;
        enum cp_level level;
        const char *cpus;
    } cases[] = {
        {CP_PAIRS_SAME_CPU, CP_LEVEL_CPU, "0"},
        {CP_PAIRS_SAME_CORE, CP_LEVEL_CORE, "0,8"},
        {CP_PAIRS_SAME_LLC, CP_LEVEL_LLC, "0-1,8-9"},
        {CP_PAIRS_SAME_NODE, CP_LEVEL_NODE, "0-3,8-11"},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(cases); i++) {
        struct scene scene;
        struct cp_plan plan = {0};

        /* Whatever the gain, and whatever min-gain. */
        scene_init(&scene, &two_nodes);
        add(&scene, scene_overlapping(10, 11, CP_LEVEL_PACKAGE), 0, 4);
        scene.policy.pairs = cases[i].pairs;
        scene.policy.min_gain_ns_per_s = 1e12;
        scene_plan(&scene, &plan);
        assert_move(&plan, 10, 11, cases[i].level, CP_RULE_POLICY, cases[i].cpus);
        end(&scene, &plan);
    }
}

/* A placement of another level than the policy asks for now is replaced. */
static void test_policy_changes_a_standing_level(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_serial(10, 11, CP_LEVEL_CPU), 8, 8);
    scene_add_placement(&scene, 10, 11, CP_LEVEL_CPU, "8", 0.4);
    scene.policy.pairs = CP_PAIRS_SAME_LLC;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_LLC, CP_RULE_POLICY, "0-1,8-9");
    end(&scene, &plan);
}

/* Row pending-claim: a CPU that was given is taken, however idle it looks. */
static void test_claim_counts_at_once(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 0, 0);
    scene_add_placement(&scene, 20, 21, CP_LEVEL_CPU, "0", 0.0);
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "1");
    end(&scene, &plan);
}

static void test_two_pairs_two_cpus(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 0, 1);
    add(&scene, scene_serial(12, 13, CP_LEVEL_LLC), 0, 1);
    scene_plan(&scene, &plan);
    assert_int_equal(plan.n_moves, 2);
    assert_false(cp_cpumask_intersects(&plan.moves[0].target, &plan.moves[1].target));
    end(&scene, &plan);
}

/* A second claim on a CPU only where no other may be used, and only as far as it fits. */
static void test_second_claim(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 0, 1);
    scene_add_task(&scene, 20, 0);
    scene_add_task(&scene, 21, 0);
    bind_cpusets(&scene, "0");
    scene_add_placement(&scene, 20, 21, CP_LEVEL_CPU, "0", 0.59);
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "0");
    cp_plan_done(&plan);
    scene.placements[0].load = 0.61;
    scene_plan(&scene, &plan);
    assert_int_equal(scene_finding(&plan, 10, 11)->outcome, CP_OUTCOME_NO_ROOM);
    end(&scene, &plan);
}

/* Their own load does not crowd them out where they are. */
static void test_own_load_is_not_in_the_way(void **state)
{
    const struct scene_pair pair = {10, 11, 10000, 5, 48, CP_LEVEL_LLC};
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, pair, 0, 0);
    scene_plan(&scene, &plan);
    assert_int_equal(scene.busy[0], 960);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "0");
    end(&scene, &plan);
}

/* A pair that fills a CPU shows 1.0 or what windows make of it; a little other work is no reason to
 * refuse it one. */
static void test_full_pair(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, (struct scene_pair){10, 11, 10000, 5, 51, CP_LEVEL_LLC}, 0, 1);
    add(&scene, (struct scene_pair){12, 13, 9000, 5, 55, CP_LEVEL_LLC}, 0, 1);
    scene_look(&scene);
    scene.outside[0] = scene.outside[1] = 40;
    scene_plan(&scene, &plan);
    assert_int_equal(plan.n_moves, 2);
    assert_false(cp_cpumask_intersects(&plan.moves[0].target, &plan.moves[1].target));
    end(&scene, &plan);
}

/* The kernel has moved them about: what they used is seen on both CPUs, though both ran last on
 * CPU 0. */
static void test_own_load_roams(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, (struct scene_pair){10, 11, 10000, 5, 45, CP_LEVEL_LLC}, 0, 0);
    add(&scene, (struct scene_pair){12, 13, 10000, 5, 45, CP_LEVEL_LLC}, 0, 0);
    scene_look(&scene);
    scene.outside[1] = 900;
    scene_plan(&scene, &plan);
    assert_int_equal(scene.busy[0], 1000);
    assert_int_equal(plan.n_moves, 2);
    end(&scene, &plan);
}

static void test_stays_where_it_ran(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 3, 2);
    scene.outside[2] = 50;
    scene.outside[3] = 90;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "2");
    cp_plan_done(&plan);
    /* Beyond the tolerance it goes to another core of the same LLC (the siblings are half busy
     * with what runs on 2 and 3). */
    scene.outside[2] = 500;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "3");
    end(&scene, &plan);
}

/* Another pair's claim on the SMT sibling: a core of its own is better, for the same owner too. */
static void test_idle_core_first(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 8, 8);
    scene_add_task(&scene, 20, 0);
    scene_add_task(&scene, 21, 0);
    bind_cpusets(&scene, "0-1,8-9");
    scene_add_placement(&scene, 20, 21, CP_LEVEL_CPU, "0", 0.4);
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "1");
    end(&scene, &plan);
}

/* On one core the CPU without a claim, however idle the other. */
static void test_idle_sibling_of_a_claim(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 0, 0);
    scene_add_task(&scene, 20, 0);
    scene_add_task(&scene, 21, 0);
    bind_cpusets(&scene, "0,8");
    scene.outside[8] = 300;
    scene_add_placement(&scene, 20, 21, CP_LEVEL_CPU, "0", 0.02);
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "8");
    end(&scene, &plan);
}

/* The same for cores. */
static void test_core_without_claims(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_overlapping(10, 11, CP_LEVEL_LLC), 0, 0);
    scene_add_task(&scene, 20, 0);
    scene_add_task(&scene, 21, 0);
    scene.policy.pairs = CP_PAIRS_SAME_CORE;
    bind_cpusets(&scene, "0-1,8-9");
    scene_add_placement(&scene, 20, 21, CP_LEVEL_CPU, "8", 0.02);
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CORE, CP_RULE_POLICY, "1,9");
    end(&scene, &plan);
}

/* Between LLCs that are as busy as each other the one where they are. */
static void test_stays_in_its_llc(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_overlapping(10, 11, CP_LEVEL_NODE), 4, 6);
    scene_find_facts(&scene, 10)->last_cpu.os = 7; /* since then */
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_LLC, CP_RULE_IDLE_WAKEE, "6-7,14-15");
    end(&scene, &plan);
}

/* Different owners never share a core; with across: true they may. */
static void test_owners_on_cores(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 8, 8);
    scene_add_task(&scene, 20, 0)->uid = 0;
    scene_add_task(&scene, 21, 0)->uid = 0;
    bind_cpusets(&scene, "0,8");
    scene_add_placement(&scene, 20, 21, CP_LEVEL_CPU, "0", 0.4);
    scene_plan(&scene, &plan);
    assert_int_equal(scene_finding(&plan, 10, 11)->outcome, CP_OUTCOME_NO_ROOM);
    cp_plan_done(&plan);
    scene.policy.across = true;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "8");
    cp_plan_done(&plan);
    /* A placement that was made across owners belongs to neither. */
    scene.policy.across = false;
    scene_find_facts(&scene, 20)->uid = 1000;
    scene_plan(&scene, &plan);
    assert_int_equal(scene_finding(&plan, 10, 11)->outcome, CP_OUTCOME_NO_ROOM);
    cp_plan_done(&plan);
    /* Nor do two placements of two owners, made while that was allowed, make either welcome. */
    scene_find_facts(&scene, 21)->uid = 1000;
    scene_add_task(&scene, 30, 8)->uid = 0;
    scene_add_task(&scene, 31, 8)->uid = 0;
    scene_add_placement(&scene, 30, 31, CP_LEVEL_CPU, "8", 0.4);
    scene_plan(&scene, &plan);
    assert_int_equal(scene_finding(&plan, 10, 11)->outcome, CP_OUTCOME_NO_ROOM);
    end(&scene, &plan);
}

static void test_llc_is_not_overfilled(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    /* 0.8 each: four fit LLC 0 and its fifth goes to LLC 1, though it ran in LLC 0. */
    for (pid_t i = 0; i < 5; i++)
        add(&scene, scene_overlapping(10 + 2 * i, 11 + 2 * i, CP_LEVEL_NODE), 0, 1);
    for (size_t i = 0; i < scene.n_facts; i++)
        scene_mask_parse(&scene.facts[i].cpuset, i < 8 ? "0-1,8-9" : "0-3,8-11");
    scene.outside[9] = 790;
    scene_plan(&scene, &plan);
    assert_int_equal(plan.n_moves, 5);
    for (pid_t i = 0; i < 4; i++)
        assert_move(&plan, 10 + 2 * i, 11 + 2 * i, CP_LEVEL_LLC, CP_RULE_IDLE_WAKEE, "0-1,8-9");
    assert_move(&plan, 18, 19, CP_LEVEL_LLC, CP_RULE_IDLE_WAKEE, "2-3,10-11");
    end(&scene, &plan);
}

/* One CPU of a full LLC is no place either: the wide claims in it need all of it. */
static void test_cpu_of_a_full_llc(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 0, 1);
    scene_add_placement(&scene, 20, 21, CP_LEVEL_LLC, "0-1,8-9", 1.9);
    scene_add_placement(&scene, 22, 23, CP_LEVEL_LLC, "0-1,8-9", 1.8);
    scene_plan(&scene, &plan);
    assert_int_equal(plan.n_moves, 1);
    assert_false(cp_cpumask_intersects(&plan.moves[0].target, &scene.targets[0]));
    end(&scene, &plan);
}

static void test_memory(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    /* Both at home on node 1, found on node 0. */
    scene_init(&scene, &two_nodes);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 0, 1);
    scene_find_facts(&scene, 10)->home_node = 1;
    scene_find_facts(&scene, 11)->home_node = 1;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "4");
    cp_plan_done(&plan);
    /* One of them at home nowhere: the other decides. */
    scene_find_facts(&scene, 10)->home_node = CP_DOMAIN_NONE;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "4");
    cp_plan_done(&plan);
    /* Split: the smaller one moves. */
    scene_find_facts(&scene, 10)->home_node = 0;
    scene_find_facts(&scene, 11)->rss_kib = 2048;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "4");
    cp_plan_done(&plan);
    scene_find_facts(&scene, 10)->rss_kib = 4096;
    scene_find_facts(&scene, 11)->rss_kib = 1024;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "0");
    end(&scene, &plan);
}

/* The home node is kept by wide masks too. */
static void test_memory_of_wide_masks(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_overlapping(10, 11, CP_LEVEL_PACKAGE), 0, 4);
    scene_find_facts(&scene, 10)->home_node = 1;
    scene_find_facts(&scene, 11)->home_node = 1;
    for (unsigned i = 0; i < 16; i++) /* LLC 0 and 1 are idle, 2 and 3 are not */
        scene.outside[i] = i % 8 >= 4 ? 300 : 0;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_LLC, CP_RULE_IDLE_WAKEE, "4-5,12-13");
    end(&scene, &plan);
}

static void test_targets_are_allowed(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_overlapping(10, 11, CP_LEVEL_PACKAGE), 0, 4);
    scene_mask_parse(&scene_find_facts(&scene, 10)->cpuset, "0-3,8-9");
    scene_mask_parse(&scene_find_facts(&scene, 11)->cpuset, "1-15");
    scene_isolate(&scene, 8, 8);
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_LLC, CP_RULE_IDLE_WAKEE, "1,9");
    end(&scene, &plan);
}

/* A task of two pairs: the stronger one places it, the other is told so. */
static void test_one_placement_a_task(void **state)
{
    const struct scene_pair weak = {11, 12, 1000, 5, 20, CP_LEVEL_LLC};
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &two_nodes);
    add(&scene, scene_serial(10, 11, CP_LEVEL_LLC), 0, 1);
    scene_add_pair(&scene, &weak);
    scene_add_task(&scene, 12, 2);
    scene_plan(&scene, &plan);
    assert_int_equal(plan.n_moves, 1);
    assert_non_null(scene_move(&plan, 10, 11));
    assert_int_equal(scene_finding(&plan, 11, 12)->outcome, CP_OUTCOME_PLACED_OTHERWISE);
    assert_int_equal(scene_finding(&plan, 11, 12)->blocked_by, 0);
    end(&scene, &plan);
}

/* A pair that is placed wide gets its CPU when there is one, and its wide claim does not stand in
 * its own way. */
static void test_standing_pair_is_tightened(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, (struct scene_pair){10, 11, 10000, 5, 48, CP_LEVEL_LLC}, 0, 1);
    scene_add_placement(&scene, 10, 11, CP_LEVEL_LLC, "0-1", 0.96);
    scene.outside[1] = 800;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "0");
    end(&scene, &plan);
}

/* A fresh placement has no statistics yet: its load on the CPU must not count twice. */
static void test_fresh_placement_counts_once(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, (struct scene_pair){10, 11, 10000, 5, 45, CP_LEVEL_LLC}, 1, 1);
    scene_add_task(&scene, 20, 0);
    scene_add_task(&scene, 21, 0);
    scene_add_placement(&scene, 20, 21, CP_LEVEL_CPU, "0", 0.9);
    scene.outside[0] = 900;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "1");
    end(&scene, &plan);
}

/* The same without facts of the placed tasks. */
static void test_placement_without_facts_counts_once(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    add(&scene, (struct scene_pair){10, 11, 10000, 5, 45, CP_LEVEL_LLC}, 1, 1);
    scene_add_placement(&scene, 20, 21, CP_LEVEL_CPU, "0", 0.9);
    scene.outside[0] = 900;
    scene_plan(&scene, &plan);
    assert_move(&plan, 10, 11, CP_LEVEL_CPU, CP_RULE_HANDOFF, "1");
    end(&scene, &plan);
}

/* A pair that found no room stays a load for those after it. */
static void test_unplaced_pair_is_load(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    /* Bound to the busy CPU 0 by its cpuset: no room. */
    add(&scene, (struct scene_pair){10, 11, 11000, 5, 32, CP_LEVEL_LLC}, 1, 1);
    add(&scene, (struct scene_pair){12, 13, 10000, 5, 30, CP_LEVEL_LLC}, 0, 0);
    scene_mask_parse(&scene_find_facts(&scene, 10)->cpuset, "0");
    scene_mask_parse(&scene_find_facts(&scene, 12)->cpuset, "1");
    scene.outside[0] = 400;
    scene_plan(&scene, &plan);
    assert_int_equal(scene_finding(&plan, 10, 11)->outcome, CP_OUTCOME_NO_ROOM);
    assert_int_equal(scene_finding(&plan, 12, 13)->outcome, CP_OUTCOME_NO_ROOM);
    end(&scene, &plan);
}

static void test_nothing(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    scene_init(&scene, &tiny);
    scene_plan(&scene, &plan);
    assert_int_equal(plan.n_moves, 0);
    assert_int_equal(plan.n_findings, 0);
    end(&scene, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handoff),
        cmocka_unit_test(test_idle_wakee),
        cmocka_unit_test(test_idle_sibling),
        cmocka_unit_test(test_loosest_mask),
        cmocka_unit_test(test_overlapping_is_not_stacked_by_its_cpuset),
        cmocka_unit_test(test_serial_falls_back),
        cmocka_unit_test(test_policy_levels),
        cmocka_unit_test(test_policy_changes_a_standing_level),
        cmocka_unit_test(test_claim_counts_at_once),
        cmocka_unit_test(test_two_pairs_two_cpus),
        cmocka_unit_test(test_second_claim),
        cmocka_unit_test(test_own_load_is_not_in_the_way),
        cmocka_unit_test(test_full_pair),
        cmocka_unit_test(test_own_load_roams),
        cmocka_unit_test(test_stays_where_it_ran),
        cmocka_unit_test(test_idle_core_first),
        cmocka_unit_test(test_idle_sibling_of_a_claim),
        cmocka_unit_test(test_core_without_claims),
        cmocka_unit_test(test_stays_in_its_llc),
        cmocka_unit_test(test_owners_on_cores),
        cmocka_unit_test(test_llc_is_not_overfilled),
        cmocka_unit_test(test_cpu_of_a_full_llc),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_of_wide_masks),
        cmocka_unit_test(test_targets_are_allowed),
        cmocka_unit_test(test_one_placement_a_task),
        cmocka_unit_test(test_standing_pair_is_tightened),
        cmocka_unit_test(test_fresh_placement_counts_once),
        cmocka_unit_test(test_placement_without_facts_counts_once),
        cmocka_unit_test(test_unplaced_pair_is_load),
        cmocka_unit_test(test_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
