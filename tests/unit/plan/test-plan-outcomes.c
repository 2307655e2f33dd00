/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each outcome of a plan and each reason for one, by a pair of the tasks 10 and 11. */
#include "plan-scene.h"

/* 16 CPUs: LLC 0 = 0,1,8,9 (cores 0,8 and 1,9), LLC 1 = 2,3,10,11 on node 0; LLC 2 and 3 on node 1.
 */
static const struct scene_shape two_nodes = {1, 2, 2, 2, 2, 1u << 20};
/* Two CPUs, one LLC. */
static const struct scene_shape tiny = {1, 1, 1, 2, 1, 1u << 20};

struct outcome_case {
    const char *name;
    void (*arrange)(struct scene *scene);
    enum cp_plan_outcome outcome;
    unsigned blocked_by;
    uint64_t until_ns;
};

static void serial_in(struct scene *scene, const struct scene_shape *shape, enum cp_level level,
                      unsigned cpu_a, unsigned cpu_b)
{
    const struct scene_pair pair = scene_serial(10, 11, level);

    scene_init(scene, shape);
    scene_add_tasks_and_pair(scene, &pair, cpu_a, cpu_b);
}

static void overlapping_in(struct scene *scene, const struct scene_shape *shape,
                           enum cp_level level, unsigned cpu_a, unsigned cpu_b)
{
    const struct scene_pair pair = scene_overlapping(10, 11, level);

    scene_init(scene, shape);
    scene_add_tasks_and_pair(scene, &pair, cpu_a, cpu_b);
}

static void serial(struct scene *scene)
{
    serial_in(scene, &two_nodes, CP_LEVEL_LLC, 0, 1);
}

static void overlapping(struct scene *scene)
{
    overlapping_in(scene, &two_nodes, CP_LEVEL_NODE, 0, 2);
}

static void slow(struct scene *scene)
{
    const struct scene_pair pair = {10, 11, 100, 5, 20, CP_LEVEL_LLC};

    scene_init(scene, &two_nodes);
    scene_add_tasks_and_pair(scene, &pair, 0, 1);
}

static void pairs_off(struct scene *scene)
{
    serial(scene);
    scene->policy.pairs = CP_PAIRS_OFF;
}

static void on_one_cpu_already(struct scene *scene)
{
    serial_in(scene, &two_nodes, CP_LEVEL_CPU, 0, 0);
}

static void below_min_gain(struct scene *scene)
{
    overlapping(scene);
    scene->policy.min_gain_ns_per_s = 8000 * 20000.0 + 1;
}

static void at_min_gain(struct scene *scene)
{
    overlapping(scene);
    scene->policy.min_gain_ns_per_s = 8000 * 20000.0 - 1;
}

static void below_margin(struct scene *scene)
{
    overlapping(scene);
    scene->costs.level[CP_LEVEL_LLC].ns = 58000;
}

static void kernel_thread(struct scene *scene)
{
    serial(scene);
    scene_find_facts(scene, 11)->pf_flags = CP_PF_KTHREAD;
}

static void kernel_thread_and_young(struct scene *scene)
{
    kernel_thread(scene);
    scene_find_facts(scene, 10)->age_ns = 0;
}

static void bound_by_kernel(struct scene *scene)
{
    serial(scene);
    scene_find_facts(scene, 10)->pf_flags = CP_PF_NO_SETAFFINITY;
}

static void real_time(struct scene *scene)
{
    serial(scene);
    scene_find_facts(scene, 10)->sched_policy = SCHED_FIFO;
    scene_find_facts(scene, 11)->sched_policy = SCHED_RR;
}

static void young(struct scene *scene)
{
    serial(scene);
    scene_find_facts(scene, 10)->age_ns = 100000000;
    scene_find_facts(scene, 11)->age_ns = 50000000;
}

static void bound_by_user(struct scene *scene)
{
    struct cp_task_facts *facts;

    serial(scene);
    facts = scene_find_facts(scene, 10);
    facts->user_mask = CP_USER_MASK_SET;
    scene_mask_parse(&facts->allowed, "0");
}

static void bound_by_user_and_young(struct scene *scene)
{
    bound_by_user(scene);
    scene_find_facts(scene, 11)->age_ns = 0;
}

static void bound_by_user_override(struct scene *scene)
{
    bound_by_user(scene);
    scene->policy.affinity = CP_AFFINITY_OVERRIDE;
}

static void other_owner(struct scene *scene)
{
    serial(scene);
    scene_find_facts(scene, 11)->uid = 0;
}

static void other_owner_across(struct scene *scene)
{
    other_owner(scene);
    scene->policy.across = true;
}

static void homes(struct scene *scene, uint32_t home_a, uint32_t home_b)
{
    scene_find_facts(scene, 10)->home_node = home_a;
    scene_find_facts(scene, 11)->home_node = home_b;
}

/* Their memory is on node 1, their cpuset is node 0. */
static void memory_elsewhere(struct scene *scene)
{
    serial(scene);
    homes(scene, 1, 1);
    scene_mask_parse(&scene_find_facts(scene, 10)->cpuset, "0-3,8-11");
}

static void memory_elsewhere_any_node(struct scene *scene)
{
    memory_elsewhere(scene);
    scene->policy.any_node = true;
}

static void both_too_big(struct scene *scene)
{
    overlapping_in(scene, &two_nodes, CP_LEVEL_PACKAGE, 0, 4);
    homes(scene, 0, 1);
    scene_find_facts(scene, 10)->rss_kib = 1025;
    scene_find_facts(scene, 11)->rss_kib = 1025;
}

static void both_too_big_any_node(struct scene *scene)
{
    both_too_big(scene);
    scene->policy.any_node = true;
}

static void one_too_big(struct scene *scene)
{
    both_too_big(scene);
    scene_find_facts(scene, 11)->rss_kib = 1024;
}

static void too_big_at_home(struct scene *scene)
{
    both_too_big(scene);
    homes(scene, 0, 0);
}

static void no_common_cpu(struct scene *scene)
{
    serial(scene);
    scene_mask_parse(&scene_find_facts(scene, 10)->cpuset, "0,8");
    scene_mask_parse(&scene_find_facts(scene, 11)->cpuset, "1,9");
}

static void common_cpus_isolated(struct scene *scene)
{
    serial(scene);
    scene_mask_parse(&scene_find_facts(scene, 10)->cpuset, "0,2,8");
    scene_mask_parse(&scene_find_facts(scene, 11)->cpuset, "1-2,9");
    scene_isolate(scene, 2, 2);
}

static void fill(struct scene *scene, unsigned first, unsigned last, uint16_t permille)
{
    for (unsigned i = first; i <= last; i++)
        scene->outside[i] = permille;
}

static void machine_is_busy(struct scene *scene)
{
    serial_in(scene, &tiny, CP_LEVEL_LLC, 0, 1);
    fill(scene, 0, 1, 650);
}

static void machine_is_less_busy(struct scene *scene)
{
    serial_in(scene, &tiny, CP_LEVEL_LLC, 0, 1);
    fill(scene, 0, 1, 550);
}

/* The pair would fit by the sum, but the LLC that its cpuset leaves is saturated by others. */
static void llc_is_saturated(struct scene *scene)
{
    const struct scene_pair pair = {10, 11, 1000, 50, 10, CP_LEVEL_NODE};

    scene_init(scene, &two_nodes);
    scene_add_tasks_and_pair(scene, &pair, 2, 4);
    scene_mask_parse(&scene_find_facts(scene, 10)->cpuset, "0-1,8-9");
    fill(scene, 0, 1, 970);
    fill(scene, 8, 9, 970);
}

/* The LLC has room, the two CPUs of it that the cpuset leaves have none. */
static void cpuset_is_busy(struct scene *scene)
{
    overlapping(scene);
    scene_mask_parse(&scene_find_facts(scene, 10)->cpuset, "0-1");
    fill(scene, 0, 1, 700);
}

static void cpuset_is_less_busy(struct scene *scene)
{
    cpuset_is_busy(scene);
    fill(scene, 0, 1, 500);
}

static void overlapping_with_one_common_cpu(struct scene *scene)
{
    overlapping(scene);
    scene_mask_parse(&scene_find_facts(scene, 10)->cpuset, "0,2");
    scene_mask_parse(&scene_find_facts(scene, 11)->cpuset, "2,4");
}

static void settling(struct scene *scene)
{
    serial(scene);
    scene_add_hold(scene, 11, 0, CP_OUTCOME_SETTLING, SCENE_NOW_NS + 5);
    scene_add_hold(scene, 99, 0, CP_OUTCOME_SETTLING, SCENE_NOW_NS + 50);
}

static void backing_off(struct scene *scene)
{
    settling(scene);
    scene_add_hold(scene, 11, 10, CP_OUTCOME_BACKING_OFF, SCENE_NOW_NS + 9);
    scene_add_hold(scene, 11, 12, CP_OUTCOME_VETOED, UINT64_MAX);
}

static void vetoed(struct scene *scene)
{
    backing_off(scene);
    scene_add_hold(scene, 10, 11, CP_OUTCOME_VETOED, UINT64_MAX);
}

static void hold_is_over(struct scene *scene)
{
    serial(scene);
    scene_add_hold(scene, 10, 11, CP_OUTCOME_BACKING_OFF, SCENE_NOW_NS);
}

static void exiting(struct scene *scene)
{
    serial(scene);
    scene_find_facts(scene, 10)->pf_flags = CP_PF_EXITING;
}

static void facts_of_one(struct scene *scene)
{
    const struct scene_pair pair = scene_serial(10, 11, CP_LEVEL_LLC);

    scene_init(scene, &two_nodes);
    scene_add_pair(scene, &pair);
    scene_add_task(scene, 11, 0);
}

static void no_facts(struct scene *scene)
{
    const struct scene_pair pair = scene_serial(10, 11, CP_LEVEL_LLC);

    scene_init(scene, &two_nodes);
    scene_add_pair(scene, &pair);
}

static void placed_with_another(struct scene *scene)
{
    serial(scene);
    scene_add_task(scene, 12, 0);
    scene_add_placement(scene, 11, 12, CP_LEVEL_CPU, "0", 0.4);
}

static void stands(struct scene *scene)
{
    serial(scene);
    scene_add_placement(scene, 11, 10, CP_LEVEL_CPU, "0", 0.4);
}

static void stood_on_a_cpu_that_went(struct scene *scene)
{
    stands(scene);
    scene_isolate(scene, 0, 0);
}

/* What would stop a move does not make a good placement a bad one. */
static void stands_while_settling(struct scene *scene)
{
    stands(scene);
    scene_add_hold(scene, 10, 0, CP_OUTCOME_SETTLING, SCENE_NOW_NS + 5);
}

static void stands_wider(struct scene *scene)
{
    serial(scene);
    scene_add_placement(scene, 10, 11, CP_LEVEL_LLC, "0-1,8-9", 0.4);
}

static void stands_wider_while_settling(struct scene *scene)
{
    stands_wider(scene);
    scene_add_hold(scene, 10, 0, CP_OUTCOME_SETTLING, SCENE_NOW_NS + 5);
}

static void stands_wider_without_room(struct scene *scene)
{
    stands_wider(scene);
    fill(scene, 0, 15, 850);
}

/* The core would be a little cheaper than the LLC where they stand: not by the margin. */
static void stands_within_margin(struct scene *scene)
{
    overlapping(scene);
    scene->costs.level[CP_LEVEL_CORE].ns = 1000;
    scene->costs.level[CP_LEVEL_LLC].ns = 52000;
    scene_add_placement(scene, 10, 11, CP_LEVEL_LLC, "0-1,8-9", 0.8);
}

static void same_llc_already(struct scene *scene)
{
    overlapping_in(scene, &two_nodes, CP_LEVEL_LLC, 0, 1);
    scene->policy.pairs = CP_PAIRS_SAME_LLC;
}

static const struct outcome_case outcome_cases[] = {
    {"serial", serial, CP_OUTCOME_PLACE, 2, 0},
    {"overlapping", overlapping, CP_OUTCOME_PLACE, 2, 0},
    {"below min-rate", slow, CP_OUTCOME_NO_RELATION, 2, 0},
    {"pairs: off", pairs_off, CP_OUTCOME_PAIRS_OFF, 2, 0},
    {"on one CPU already", on_one_cpu_already, CP_OUTCOME_NEAR_ENOUGH, 2, 0},
    {"below min-gain", below_min_gain, CP_OUTCOME_NEAR_ENOUGH, 2, 0},
    {"at min-gain", at_min_gain, CP_OUTCOME_PLACE, 2, 0},
    {"below the margin", below_margin, CP_OUTCOME_NEAR_ENOUGH, 2, 0},
    {"kernel thread", kernel_thread, CP_OUTCOME_KERNEL_THREAD, 1, 0},
    {"kernel thread and young", kernel_thread_and_young, CP_OUTCOME_KERNEL_THREAD, 1, 0},
    {"bound by the kernel", bound_by_kernel, CP_OUTCOME_NO_SETAFFINITY, 0, 0},
    {"real time", real_time, CP_OUTCOME_SCHED_CLASS, 2, 0},
    {"young", young, CP_OUTCOME_TOO_YOUNG, 2, SCENE_NOW_NS + 250000000},
    {"bound by its user", bound_by_user, CP_OUTCOME_FOREIGN_MASK, 0, 0},
    {"bound by its user and young", bound_by_user_and_young, CP_OUTCOME_FOREIGN_MASK, 0, 0},
    {"bound by its user, override", bound_by_user_override, CP_OUTCOME_PLACE, 2, 0},
    {"other owner", other_owner, CP_OUTCOME_OTHER_OWNER, 2, 0},
    {"other owner, across", other_owner_across, CP_OUTCOME_PLACE, 2, 0},
    {"memory elsewhere", memory_elsewhere, CP_OUTCOME_OTHER_NODE, 2, 0},
    {"memory elsewhere, nodes: any", memory_elsewhere_any_node, CP_OUTCOME_PLACE, 2, 0},
    {"both exceed an LLC", both_too_big, CP_OUTCOME_OTHER_NODE, 2, 0},
    {"both exceed an LLC, nodes: any", both_too_big_any_node, CP_OUTCOME_PLACE, 2, 0},
    {"one exceeds an LLC", one_too_big, CP_OUTCOME_PLACE, 2, 0},
    {"both exceed an LLC on one node", too_big_at_home, CP_OUTCOME_PLACE, 2, 0},
    {"no common CPU", no_common_cpu, CP_OUTCOME_NO_COMMON_CPU, 2, 0},
    {"common CPUs isolated", common_cpus_isolated, CP_OUTCOME_NO_COMMON_CPU, 2, 0},
    {"busy machine", machine_is_busy, CP_OUTCOME_NO_ROOM, 2, 0},
    {"less busy machine", machine_is_less_busy, CP_OUTCOME_PLACE, 2, 0},
    {"saturated LLC", llc_is_saturated, CP_OUTCOME_NO_ROOM, 2, 0},
    {"busy CPUs in a free LLC", cpuset_is_busy, CP_OUTCOME_NO_ROOM, 2, 0},
    {"less busy CPUs in a free LLC", cpuset_is_less_busy, CP_OUTCOME_PLACE, 2, 0},
    {"one common CPU", overlapping_with_one_common_cpu, CP_OUTCOME_NO_ROOM, 2, 0},
    {"settling", settling, CP_OUTCOME_SETTLING, 1, SCENE_NOW_NS + 5},
    {"backing off", backing_off, CP_OUTCOME_BACKING_OFF, 2, SCENE_NOW_NS + 9},
    {"vetoed", vetoed, CP_OUTCOME_VETOED, 2, UINT64_MAX},
    {"a hold that is over", hold_is_over, CP_OUTCOME_PLACE, 2, 0},
    {"exiting", exiting, CP_OUTCOME_GONE, 0, 0},
    {"facts of one", facts_of_one, CP_OUTCOME_UNKNOWN_FACTS, 0, 0},
    {"no facts", no_facts, CP_OUTCOME_UNKNOWN_FACTS, 2, 0},
    {"placed with another", placed_with_another, CP_OUTCOME_PLACED_OTHERWISE, 1, 0},
    {"stands", stands, CP_OUTCOME_STAND, 2, 0},
    {"stood on a CPU that went", stood_on_a_cpu_that_went, CP_OUTCOME_PLACE, 2, 0},
    {"stands while settling", stands_while_settling, CP_OUTCOME_STAND, 2, 0},
    {"stands wider than need be", stands_wider, CP_OUTCOME_PLACE, 2, 0},
    {"stands wider, settling", stands_wider_while_settling, CP_OUTCOME_SETTLING, 0,
     SCENE_NOW_NS + 5},
    {"stands wider, no room", stands_wider_without_room, CP_OUTCOME_STAND, 2, 0},
    {"stands within the margin", stands_within_margin, CP_OUTCOME_STAND, 2, 0},
    {"same-llc already", same_llc_already, CP_OUTCOME_NEAR_ENOUGH, 2, 0},
};

static void test_outcomes(void **state)
{
    bool seen[CP_OUTCOME_MAX] = {0};

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(outcome_cases); i++) {
        const struct outcome_case *c = &outcome_cases[i];
        const struct cp_plan_finding *finding;
        struct scene scene;
        struct cp_plan plan = {0};

        c->arrange(&scene);
        scene_plan(&scene, &plan);
        finding = scene_finding(&plan, 10, 11);
        if (finding->outcome != c->outcome)
            fail_msg("%s: %s", c->name, cp_plan_outcome_to_string(finding->outcome));
        if (finding->blocked_by != c->blocked_by || finding->until_ns != c->until_ns)
            fail_msg("%s: blocked by %u until %llu", c->name, finding->blocked_by,
                     (unsigned long long)finding->until_ns);
        assert_int_equal(plan.n_moves, c->outcome == CP_OUTCOME_PLACE);
        seen[finding->outcome] = true;
        cp_plan_done(&plan);
        scene_done(&scene);
    }
    for (unsigned i = 0; i < CP_OUTCOME_MAX; i++)
        if (!seen[i])
            fail_msg("no case for %s", cp_plan_outcome_to_string((enum cp_plan_outcome)i));
}

/* Candidates: each level of the machine, its cost there and whether it could be had. */
static void test_candidates(void **state)
{
    static const struct {
        enum cp_level level;
        double total_ns;
    } wanted[] = {
        {CP_LEVEL_CPU, 101000}, {CP_LEVEL_CORE, 80000},    {CP_LEVEL_LLC, 40000},
        {CP_LEVEL_NODE, 60000}, {CP_LEVEL_PACKAGE, 80000},
    };
    const struct cp_plan_finding *finding;
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    overlapping(&scene);
    scene_plan(&scene, &plan);
    finding = scene_finding(&plan, 10, 11);
    assert_int_equal(finding->level_now, CP_LEVEL_NODE);
    assert_int_equal(finding->n_candidates, CP_ELEMENTS(wanted));
    for (size_t i = 0; i < CP_ELEMENTS(wanted); i++) {
        const struct cp_plan_candidate *candidate = &finding->candidates[i];

        assert_int_equal(candidate->level, wanted[i].level);
        scene_assert_near(candidate->total_ns, wanted[i].total_ns, 1.0);
        scene_assert_near(candidate->gain, 8000 * (60000 - wanted[i].total_ns), 8000.0);
        assert_true(candidate->possible);
    }
    scene_assert_near(plan.moves[0].gain, 8000 * 20000.0, 8000.0);
    scene_assert_near(plan.moves[0].load, 0.8, 0.01);
    cp_plan_done(&plan);
    scene_done(&scene);
}

/* What else would be possible is told of placements that stand, too. */
static void test_candidates_of_a_standing_pair(void **state)
{
    const struct cp_plan_finding *finding;
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    stands(&scene);
    scene_mask_parse(&scene_find_facts(&scene, 10)->cpuset, "8-9");
    scene_plan(&scene, &plan);
    finding = scene_finding(&plan, 10, 11);
    assert_int_equal(finding->outcome, CP_OUTCOME_STAND);
    assert_true(finding->candidates[0].possible);
    assert_false(finding->candidates[1].possible);
    assert_true(finding->candidates[2].possible);
    cp_plan_done(&plan);
    scene_done(&scene);
}

/* Without a level in the statistics the CPUs on which they ran last tell. */
static void test_level_now_from_facts(void **state)
{
    struct scene scene;
    struct cp_plan plan = {0};

    (void)state;
    overlapping_in(&scene, &two_nodes, CP_LEVEL_NODE, 0, 8);
    for (size_t i = 0; i < scene.sample.n_edges; i++)
        memset(scene.sample.edges[i].level, 0, sizeof(scene.sample.edges[i].level));
    scene_plan(&scene, &plan);
    assert_int_equal(scene_finding(&plan, 10, 11)->level_now, CP_LEVEL_CORE);
    cp_plan_done(&plan);
    scene_done(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_candidates_of_a_standing_pair),
        cmocka_unit_test(test_level_now_from_facts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
