/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Facts of tasks on a recorded machine of two nodes, with a wake source that answers as told. */
#include "registry/task-facts.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "recorded-root.h"

/* CPUs 0-3 online, 4-5 offline; nodes with the kernel's numbers 0 (CPUs 0-1) and 2 (CPUs 2-3). */
struct test_machine {
    struct cp_machine machine;
    struct cp_machine_cpu cpus[4];
    struct cp_domain nodes[2];
};

static void test_machine_init(struct test_machine *m, const char *isolated)
{
    *m = (struct test_machine){.machine = {.n_cpus = 4, .cpus = m->cpus}};
    m->machine.n_domains[CP_LEVEL_NODE] = 2;
    m->machine.domains[CP_LEVEL_NODE] = m->nodes;
    for (unsigned i = 0; i < 4; i++) {
        m->cpus[i].cpu.os = i;
        m->cpus[i].domain[CP_LEVEL_NODE] = i / 2;
    }
    for (unsigned i = 0; i < 2; i++)
        m->nodes[i] = (struct cp_domain){.level = CP_LEVEL_NODE, .index = i, .os_index = 2 * i};
    assert_int_equal(cp_cpumask_parse_list("0-3", &m->machine.online), 0);
    assert_int_equal(cp_cpumask_parse_list("4-5", &m->machine.offline), 0);
    assert_int_equal(cp_cpumask_parse_list(isolated, &m->machine.isolated), 0);
}

static void test_machine_done(struct test_machine *m)
{
    cp_cpumask_done(&m->machine.online);
    cp_cpumask_done(&m->machine.offline);
    cp_cpumask_done(&m->machine.isolated);
}

struct test_wake {
    struct cp_wake_source source;
    int result;
    struct cp_wake_task_facts facts;
};

static int test_wake_task_facts(struct cp_wake_source *source, struct cp_task_id task,
                                struct cp_wake_task_facts *ret_facts)
{
    struct test_wake *wake = (struct test_wake *)source;

    assert_int_equal(task.tid, 9);
    *ret_facts = wake->facts;
    return wake->result;
}

static const struct cp_wake_source_ops test_wake_ops = {.name = "test",
                                                        .task_facts = test_wake_task_facts};

static void write_stat(const struct recorded_root *recorded, unsigned flags, unsigned long start,
                       unsigned cpu)
{
    char text[512];

    (void)snprintf(text, sizeof(text),
                   "9 (a name of 20 chars.) S 1 9 9 0 -1 %u 0 0 0 0 5 6 0 0 20 0 1 0 %lu 1 2 3 1 1 "
                   "0 0 0 0 0 0 0 0 0 0 17 %u 0 3 0 0 0\n",
                   flags, start, cpu);
    recorded_root_write(recorded, "proc/9/stat", text);
}

static void write_task(const struct recorded_root *recorded, const char *allowed,
                       const char *cpuset)
{
    char text[512];

    write_stat(recorded, 4194304, 200, 1);
    (void)snprintf(text, sizeof(text),
                   "Name:\tx\nTgid:\t8\nPid:\t9\nUid:\t1000\t0\t0\t0\nVmRSS:\t 123 kB\n"
                   "Cpus_allowed_list:\t%s\n",
                   allowed);
    recorded_root_write(recorded, "proc/9/status", text);
    recorded_root_write(recorded, "proc/9/cgroup", "3:cpuset:/j\n0::/\n");
    recorded_root_write(recorded, "proc/self/mountinfo",
                        "30 20 0:9 / /cs rw - cgroup x rw,cpuset\n");
    recorded_root_write(recorded, "cs/cpuset.cpus", "0-5\n");
    recorded_root_write(recorded, "cs/j/cpuset.effective_cpus", cpuset);
}

static const struct cp_task_id task = {.tid = 9, .start_ticks = 200};

static void everything_is_filled(void **state)
{
    struct recorded_root recorded;
    struct test_machine m;
    struct test_wake wake = {.source.ops = &test_wake_ops,
                             .facts = {.user_mask_known = true, .has_user_mask = true}};
    struct cp_task_facts facts = {0};
    struct cp_error error = {0};

    (void)state;
    test_machine_init(&m, "");
    recorded_root_make(&recorded);
    write_task(&recorded, "0-5", "0-3\n");
    assert_int_equal(cp_task_facts_read(&recorded.root, &m.machine, &wake.source, task, 2500000000,
                                        &facts, &error),
                     0);
    assert_true(cp_task_id_equal(facts.id, task));
    assert_int_equal(facts.tgid, 8);
    assert_int_equal(facts.uid, 1000);
    assert_string_equal(facts.comm, "a name of 20 ch");
    assert_int_equal(facts.pf_flags, 4194304);
    assert_int_equal(facts.sched_policy, SCHED_BATCH);
    assert_int_equal(facts.age_ns, 500000000);
    assert_int_equal(facts.last_cpu.os, 1);
    assert_int_equal(facts.rss_kib, 123);
    assert_int_equal(cp_cpumask_weight(&facts.allowed), 6);
    assert_int_equal(cp_cpumask_weight(&facts.cpuset), 4);
    assert_int_equal(facts.user_mask, CP_USER_MASK_SET);
    assert_int_equal(facts.home_node, 0);
    assert_false(facts.home_node_measured);
    cp_task_facts_done(&facts);
    /* A clock that was read before the task began. */
    assert_int_equal(
        cp_task_facts_read(&recorded.root, &m.machine, &wake.source, task, 1, &facts, &error), 0);
    assert_int_equal(facts.age_ns, 0);
    cp_task_facts_done(&facts);
    /* No cgroups at all: the cpuset is what is online. */
    recorded_root_write(&recorded, "proc/self/mountinfo", "1 1 0:1 / / rw - ext4 x rw\n");
    assert_int_equal(
        cp_task_facts_read(&recorded.root, &m.machine, &wake.source, task, 1, &facts, &error), 0);
    assert_true(cp_cpumask_equal(&facts.cpuset, &m.machine.online));
    cp_task_facts_done(&facts);
    test_machine_done(&m);
    recorded_root_remove(&recorded);
}

static void user_masks(void **state)
{
    static const struct {
        const char *allowed, *cpuset, *isolated;
        int wake_result;
        bool known, has;
        enum cp_user_mask expected;
    } table[] = {
        /* The kernel knows. */
        {"0-3", "0-3", "", 0, true, false, CP_USER_MASK_NONE},
        {"0-3", "0-3", "", 0, true, true, CP_USER_MASK_SET},
        {"1", "0-3", "", 0, true, false, CP_USER_MASK_NONE},
        /* It does not: compared with the cpuset, offline CPUs aside. */
        {"0-3", "0-3", "", 0, false, true, CP_USER_MASK_NONE},
        {"0-5", "0-3", "", -EOPNOTSUPP, false, false, CP_USER_MASK_NONE},
        {"0-3", "0-5", "", -EOPNOTSUPP, false, false, CP_USER_MASK_NONE},
        {"0-63", "0-3", "", -EOPNOTSUPP, false, false, CP_USER_MASK_NONE},
        {"0-2", "0-3", "", -EOPNOTSUPP, false, false, CP_USER_MASK_SET},
        {"1", "0-1", "", -EOPNOTSUPP, false, false, CP_USER_MASK_SET},
        {"1", "1", "", -EOPNOTSUPP, false, false, CP_USER_MASK_NONE},
        {"0-3", "0-1", "", -EOPNOTSUPP, false, false, CP_USER_MASK_SET},
        /* Isolated CPUs are missing from the boot on. */
        {"0-1", "0-3", "2-3", -EOPNOTSUPP, false, false, CP_USER_MASK_NONE},
        {"0-2", "0-3", "2-3", -EOPNOTSUPP, false, false, CP_USER_MASK_NONE},
        {"0", "0-3", "2-3", -EOPNOTSUPP, false, false, CP_USER_MASK_SET},
        {"2", "0-3", "2-3", -EOPNOTSUPP, false, false, CP_USER_MASK_SET},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct recorded_root recorded;
        struct test_machine m;
        struct test_wake wake = {
            .source.ops = &test_wake_ops,
            .result = table[i].wake_result,
            .facts = {.user_mask_known = table[i].known, .has_user_mask = table[i].has}};
        struct cp_task_facts facts = {0};
        struct cp_error error = {0};

        test_machine_init(&m, table[i].isolated);
        recorded_root_make(&recorded);
        write_task(&recorded, table[i].allowed, table[i].cpuset);
        assert_int_equal(
            cp_task_facts_read(&recorded.root, &m.machine, &wake.source, task, 1, &facts, &error),
            0);
        if (facts.user_mask != table[i].expected)
            print_error("row %zu\n", i);
        assert_int_equal(facts.user_mask, table[i].expected);
        cp_task_facts_done(&facts);
        if (table[i].wake_result == -EOPNOTSUPP) {
            assert_int_equal(
                cp_task_facts_read(&recorded.root, &m.machine, NULL, task, 1, &facts, &error), 0);
            assert_int_equal(facts.user_mask, table[i].expected);
            cp_task_facts_done(&facts);
        }
        test_machine_done(&m);
        recorded_root_remove(&recorded);
    }
}

static void home_nodes(void **state)
{
    static const struct {
        const char *numa_maps; /* NULL: none */
        unsigned last_cpu;
        uint32_t home;
        bool measured;
    } table[] = {
        {NULL, 0, 0, false},
        {NULL, 3, 1, false},
        {NULL, 5, CP_DOMAIN_NONE, false},
        {"", 3, 1, false},
        {"a default N0=9 N2=10 kernelpagesize_kB=4\n", 0, 1, true},
        {"a default N0=10 N2=9 kernelpagesize_kB=4\n", 3, 0, true},
        {"a default N0=100 kernelpagesize_kB=4\nb default N2=1 kernelpagesize_kB=2048\n", 0, 1,
         true},
        {"a default N0=9 N2=9 kernelpagesize_kB=4\n", 0, 0, true},
        {"a default N0=9 N2=9 kernelpagesize_kB=4\n", 2, 1, true},
        {"a default N0=9 N2=9 kernelpagesize_kB=4\n", 5, 0, true},
        /* Memory of a node without CPUs only: where it was found. */
        {"a default N1=900 kernelpagesize_kB=4\n", 2, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct recorded_root recorded;
        struct test_machine m;
        struct cp_task_facts facts = {0};
        struct cp_error error = {0};

        test_machine_init(&m, "");
        recorded_root_make(&recorded);
        write_task(&recorded, "0-3", "0-3\n");
        write_stat(&recorded, 0, 200, table[i].last_cpu);
        if (table[i].numa_maps)
            recorded_root_write(&recorded, "proc/8/numa_maps", table[i].numa_maps);
        assert_int_equal(
            cp_task_facts_read(&recorded.root, &m.machine, NULL, task, 1, &facts, &error), 0);
        if (facts.home_node != table[i].home)
            print_error("row %zu: node %u\n", i, facts.home_node);
        assert_int_equal(facts.home_node, table[i].home);
        assert_int_equal(facts.home_node_measured, table[i].measured);
        cp_task_facts_done(&facts);
        test_machine_done(&m);
        recorded_root_remove(&recorded);
    }
}

static void gone_and_failures(void **state)
{
    struct recorded_root recorded;
    struct test_machine m;
    struct test_wake wake = {.source.ops = &test_wake_ops, .result = CP_PROC_GONE};
    struct cp_task_facts facts = {.tgid = 42};
    struct cp_error error = {0};
    const struct cp_root *root = &recorded.root;

    (void)state;
    test_machine_init(&m, "");
    recorded_root_make(&recorded);
    assert_int_equal(cp_task_facts_read(root, &m.machine, NULL, task, 1, &facts, &error),
                     CP_PROC_GONE);
    write_task(&recorded, "0-3", "0-3\n");
    /* Another task of the same TID; one that is exiting; the kernel side has lost it. */
    write_stat(&recorded, 0, 201, 1);
    assert_int_equal(cp_task_facts_read(root, &m.machine, NULL, task, 1, &facts, &error),
                     CP_PROC_GONE);
    write_stat(&recorded, CP_PF_EXITING, 200, 1);
    assert_int_equal(cp_task_facts_read(root, &m.machine, NULL, task, 1, &facts, &error),
                     CP_PROC_GONE);
    write_stat(&recorded, 0, 200, 1);
    assert_int_equal(cp_task_facts_read(root, &m.machine, &wake.source, task, 1, &facts, &error),
                     CP_PROC_GONE);
    assert_int_equal(error.code, 0);
    wake.result = -EPERM;
    assert_int_equal(cp_task_facts_read(root, &m.machine, &wake.source, task, 1, &facts, &error),
                     -EPERM);
    assert_non_null(strstr(error.message, "user mask of task 9"));
    recorded_root_write(&recorded, "proc/9/cgroup", "3:cpuset:/../x\n");
    assert_int_equal(cp_task_facts_read(root, &m.machine, NULL, task, 1, &facts, &error), -EXDEV);
    assert_non_null(strstr(error.message, "container"));
    recorded_root_write(&recorded, "proc/9/status", "Tgid:\t8\n");
    assert_int_equal(cp_task_facts_read(root, &m.machine, NULL, task, 1, &facts, &error), -EBADMSG);
    assert_non_null(strstr(error.message, "status of task 9"));
    assert_int_equal(facts.tgid, 42);
    test_machine_done(&m);
    recorded_root_remove(&recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_filled),
        cmocka_unit_test(user_masks),
        cmocka_unit_test(home_nodes),
        cmocka_unit_test(gone_and_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
