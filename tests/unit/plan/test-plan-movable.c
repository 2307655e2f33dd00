/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may be moved, and the words for what was found. */
#include "plan-scene.h"

struct movable_case {
    const char *name;
    uint32_t pf_flags;
    unsigned sched_policy;
    uint64_t age_ns;
    enum cp_user_mask user_mask;
    const char *allowed;
    const char *cpuset;
    enum cp_affinity affinity;
    enum cp_plan_outcome outcome;
};

#define OLD 60000000000ull
#define PLAIN 0, SCHED_OTHER, OLD, CP_USER_MASK_NONE, "0-3", "0-3", CP_AFFINITY_RESPECT

static const struct movable_case movable_cases[] = {
    {"an ordinary task", PLAIN, CP_OUTCOME_PLACE},
    {"batch", 0, SCHED_BATCH, OLD, CP_USER_MASK_NONE, "0-3", "0-3", CP_AFFINITY_RESPECT,
     CP_OUTCOME_PLACE},
    {"idle class", 0, SCHED_IDLE, OLD, CP_USER_MASK_NONE, "0-3", "0-3", CP_AFFINITY_RESPECT,
     CP_OUTCOME_SCHED_CLASS},
    {"fifo", 0, SCHED_FIFO, OLD, CP_USER_MASK_NONE, "0-3", "0-3", CP_AFFINITY_RESPECT,
     CP_OUTCOME_SCHED_CLASS},
    {"round robin", 0, SCHED_RR, OLD, CP_USER_MASK_NONE, "0-3", "0-3", CP_AFFINITY_RESPECT,
     CP_OUTCOME_SCHED_CLASS},
    {"sched_ext", 0, 7, OLD, CP_USER_MASK_NONE, "0-3", "0-3", CP_AFFINITY_RESPECT,
     CP_OUTCOME_SCHED_CLASS},
    {"kernel thread", CP_PF_KTHREAD | CP_PF_NO_SETAFFINITY, SCHED_FIFO, OLD, CP_USER_MASK_NONE, "0",
     "0-3", CP_AFFINITY_RESPECT, CP_OUTCOME_KERNEL_THREAD},
    {"kernel thread, override", CP_PF_KTHREAD, SCHED_OTHER, OLD, CP_USER_MASK_NONE, "0-3", "0-3",
     CP_AFFINITY_OVERRIDE, CP_OUTCOME_KERNEL_THREAD},
    {"bound by the kernel", CP_PF_NO_SETAFFINITY, SCHED_OTHER, OLD, CP_USER_MASK_NONE, "0", "0-3",
     CP_AFFINITY_OVERRIDE, CP_OUTCOME_NO_SETAFFINITY},
    {"exiting", CP_PF_EXITING | CP_PF_KTHREAD, SCHED_OTHER, OLD, CP_USER_MASK_NONE, "0-3", "0-3",
     CP_AFFINITY_RESPECT, CP_OUTCOME_GONE},
    {"bound by its user", 0, SCHED_OTHER, OLD, CP_USER_MASK_SET, "1", "0-3", CP_AFFINITY_RESPECT,
     CP_OUTCOME_FOREIGN_MASK},
    {"bound and young: the lasting reason", 0, SCHED_OTHER, 0, CP_USER_MASK_SET, "1", "0-3",
     CP_AFFINITY_RESPECT, CP_OUTCOME_FOREIGN_MASK},
    {"bound by its user, override", 0, SCHED_OTHER, OLD, CP_USER_MASK_SET, "1", "0-3",
     CP_AFFINITY_OVERRIDE, CP_OUTCOME_PLACE},
    {"a user mask as wide as the cpuset", 0, SCHED_OTHER, OLD, CP_USER_MASK_SET, "0-1", "0-1",
     CP_AFFINITY_RESPECT, CP_OUTCOME_PLACE},
    {"a user mask wider than the cpuset", 0, SCHED_OTHER, OLD, CP_USER_MASK_SET, "0-63", "2-3",
     CP_AFFINITY_RESPECT, CP_OUTCOME_PLACE},
    {"a user mask beside the cpuset", 0, SCHED_OTHER, OLD, CP_USER_MASK_SET, "0-2", "2-3",
     CP_AFFINITY_RESPECT, CP_OUTCOME_FOREIGN_MASK},
    {"narrower than the cpuset, by nobody", 0, SCHED_OTHER, OLD, CP_USER_MASK_NONE, "0-1", "0-3",
     CP_AFFINITY_RESPECT, CP_OUTCOME_PLACE},
    {"young", 0, SCHED_OTHER, 299999999, CP_USER_MASK_NONE, "0-3", "0-3", CP_AFFINITY_RESPECT,
     CP_OUTCOME_TOO_YOUNG},
    {"old enough", 0, SCHED_OTHER, 300000000, CP_USER_MASK_NONE, "0-3", "0-3", CP_AFFINITY_RESPECT,
     CP_OUTCOME_PLACE},
};

static void test_movable(void **state)
{
    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(movable_cases); i++) {
        const struct movable_case *c = &movable_cases[i];
        struct cp_task_facts facts = {.pf_flags = c->pf_flags,
                                      .sched_policy = c->sched_policy,
                                      .age_ns = c->age_ns,
                                      .user_mask = c->user_mask};
        struct cp_policy policy;
        uint64_t until_ns = 1;

        cp_policy_init_builtin(&policy);
        policy.affinity = c->affinity;
        scene_mask_parse(&facts.allowed, c->allowed);
        scene_mask_parse(&facts.cpuset, c->cpuset);
        if (cp_plan_movable(&facts, &policy, 5000, &until_ns) != c->outcome)
            fail_msg("%s", c->name);
        assert_int_equal(until_ns, c->outcome == CP_OUTCOME_TOO_YOUNG ? 5001 : 1);
        assert_int_equal(cp_plan_movable(&facts, &policy, 5000, NULL), c->outcome);
        cp_task_facts_done(&facts);
    }
}

static void test_words(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CP_OUTCOME_MAX; i++) {
        const char *name = cp_plan_outcome_to_string((enum cp_plan_outcome)i);
        const char *sentence = cp_plan_outcome_explain((enum cp_plan_outcome)i);

        assert_non_null(name);
        assert_true(strlen(name) > 0);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name));
        assert_int_equal(sentence[strlen(sentence) - 1], '.');
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(name, cp_plan_outcome_to_string((enum cp_plan_outcome)k));
    }
    for (unsigned i = 0; i < CP_RULE_MAX; i++)
        assert_non_null(cp_plan_rule_to_string((enum cp_plan_rule)i));
    assert_string_equal(cp_plan_outcome_to_string(CP_OUTCOME_NO_ROOM), "no-room");
    assert_string_equal(cp_plan_outcome_to_string(CP_OUTCOME_PLACED_OTHERWISE), "placed-otherwise");
    assert_string_equal(cp_plan_rule_to_string(CP_RULE_IDLE_WAKEE), "idle-wakee");
    assert_null(cp_plan_outcome_to_string(CP_OUTCOME_MAX));
    assert_null(cp_plan_outcome_explain((enum cp_plan_outcome) - 1));
    assert_null(cp_plan_rule_to_string(CP_RULE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_movable),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
