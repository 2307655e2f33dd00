/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Facts of real tasks in real cpusets: needs root and a writable cpuset hierarchy. */
#include "base/clock.h"
#include "registry/cpuset-view.h"
#include "registry/task-facts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static struct cp_root root = {.fd = -1};
static struct cp_machine *machine;
static struct cp_cpuset_mount mount_found;

/* A child that only sleeps; dies with us. */
static pid_t start_sleeper(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent)
            pause();
        _exit(0);
    }
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct cp_task_id id_of(pid_t pid)
{
    struct cp_proc_stat stat;

    assert_int_equal(cp_proc_read_stat(&root, pid, &stat), 0);
    return stat.id;
}

static void read_facts(struct cp_task_id task, struct cp_task_facts *facts)
{
    struct cp_error error = {0};
    int r = cp_task_facts_read(&root, machine, NULL, task, cp_now_ns(), facts, &error);

    if (r != 0)
        print_error("%d: %s\n", r, error.message);
    assert_int_equal(r, 0);
}

static void a_child_of_ours(void **state)
{
    pid_t pid = start_sleeper();
    struct cp_task_id task = id_of(pid);
    struct cp_task_id other = {.tid = pid, .start_ticks = task.start_ticks + 1};
    struct cp_task_facts facts = {0};
    struct cp_error error = {0};

    (void)state;
    read_facts(task, &facts);
    assert_int_equal(facts.tgid, pid);
    assert_int_equal(facts.uid, getuid());
    assert_int_equal(facts.sched_policy, SCHED_OTHER);
    assert_false(facts.pf_flags & (CP_PF_KTHREAD | CP_PF_NO_SETAFFINITY));
    assert_true(facts.age_ns < 60 * CP_NS_PER_S);
    assert_true(cp_cpumask_test(&machine->online, facts.last_cpu));
    assert_true(facts.rss_kib > 0);
    assert_false(cp_cpumask_is_empty(&facts.cpuset));
    cp_task_facts_done(&facts);
    assert_int_equal(cp_task_facts_read(&root, machine, NULL, other, 1, &facts, &error),
                     CP_PROC_GONE);
    /* A zombie is gone, and so is what was reaped. */
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    assert_int_equal(cp_task_facts_read(&root, machine, NULL, task, 1, &facts, &error),
                     CP_PROC_GONE);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(cp_task_facts_read(&root, machine, NULL, task, 1, &facts, &error),
                     CP_PROC_GONE);
}

static void a_kernel_thread(void **state)
{
    struct cp_proc_stat stat;
    struct cp_task_facts facts = {0};

    (void)state;
    if (cp_proc_read_stat(&root, 2, &stat) != 0 || !(stat.flags & CP_PF_KTHREAD)) {
        print_message("no kernel threads are seen from here\n");
        return;
    }
    read_facts(stat.id, &facts);
    assert_true(facts.pf_flags & CP_PF_KTHREAD);
    assert_int_equal(facts.rss_kib, 0);
    cp_task_facts_done(&facts);
}

static void user_masks_by_comparison(void **state)
{
    pid_t pid = start_sleeper();
    struct cp_task_id task = id_of(pid);
    struct cp_task_facts facts = {0};
    struct cp_cpu first;
    cpu_set_t mask;

    (void)state;
    /* As wide as it can be: no user's. */
    memset(&mask, 0xff, sizeof(mask));
    assert_int_equal(sched_setaffinity(pid, sizeof(mask), &mask), 0);
    read_facts(task, &facts);
    assert_int_equal(facts.user_mask, CP_USER_MASK_NONE);
    if (cp_cpumask_weight(&facts.cpuset) > 1) {
        assert_true(cp_cpumask_next(&facts.cpuset, 0, &first));
        cp_task_facts_done(&facts);
        CPU_ZERO(&mask);
        CPU_SET(first.os, &mask);
        assert_int_equal(sched_setaffinity(pid, sizeof(mask), &mask), 0);
        read_facts(task, &facts);
        assert_int_equal(facts.user_mask, CP_USER_MASK_SET);
        assert_int_equal(cp_cpumask_weight(&facts.allowed), 1);
        assert_true(cp_cpumask_test(&facts.allowed, first));
    }
    cp_task_facts_done(&facts);
    stop(pid);
}

/* Writes into a file of a cgroup of our own. Negative errno. */
static int write_cgroup(const char *directory, const char *name, const char *text)
{
    char path[512];
    int fd;
    int r = 0;

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    fd = cp_root_open_file(&root, path, O_WRONLY);
    if (fd < 0)
        return fd;
    if (write(fd, text, strlen(text)) < 0)
        r = -errno;
    close(fd);
    return r;
}

static void assert_cpuset(struct cp_task_id task, const char *expected)
{
    struct cp_task_facts facts = {0};
    char *list;

    read_facts(task, &facts);
    list = cp_cpumask_to_list(&facts.cpuset);
    assert_string_equal(list, expected);
    free(list);
    cp_task_facts_done(&facts);
}

static void a_cpuset_is_followed(void **state)
{
    pid_t pid = start_sleeper();
    struct cp_task_id task = id_of(pid);
    struct cp_task_facts facts = {0};
    struct cp_error error = {0};
    char directory[128];
    char text[32];
    char *all;
    struct cp_cpu first;

    (void)state;
    read_facts(task, &facts);
    all = cp_cpumask_to_list(&facts.cpuset);
    assert_true(cp_cpumask_next(&facts.cpuset, 0, &first));
    cp_task_facts_done(&facts);
    (void)snprintf(directory, sizeof(directory), "%s/coplace-test-%d", mount_found.mount_point,
                   getpid());
    assert_int_equal(mkdirat(root.fd, directory, 0755), 0);
    (void)snprintf(text, sizeof(text), "%u", first.os);
    assert_int_equal(write_cgroup(directory, "cpuset.mems", "0"), 0);
    assert_int_equal(write_cgroup(directory, "cpuset.cpus", text), 0);
    (void)snprintf(text, sizeof(text), "%d", pid);
    assert_int_equal(write_cgroup(directory, "cgroup.procs", text), 0);
    (void)snprintf(text, sizeof(text), "%u", first.os);
    assert_cpuset(task, text);
    assert_int_equal(write_cgroup(directory, "cpuset.cpus", all), 0);
    assert_cpuset(task, all);
    stop(pid);
    assert_int_equal(cp_task_facts_read(&root, machine, NULL, task, 1, &facts, &error),
                     CP_PROC_GONE);
    assert_int_equal(unlinkat(root.fd, directory, AT_REMOVEDIR), 0);
    free(all);
}

int main(void)
{
    struct cp_machine_source source = {.kind = CP_MACHINE_LIVE};
    struct cp_error error = {0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_of_ours),
        cmocka_unit_test(a_kernel_thread),
        cmocka_unit_test(user_masks_by_comparison),
    };
    const struct CMUnitTest cpuset_tests[] = {cmocka_unit_test(a_cpuset_is_followed)};
    bool writable;
    int n_failed;

    if (cp_root_open(&root, NULL) < 0 || cp_machine_load(&source, 1, &machine, &error) < 0 ||
        cp_cpuset_find_mount(&root, &mount_found) < 0) {
        printf("cannot look at this machine: %s\n", error.message);
        return 1;
    }
    n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    writable = mount_found.kind == CP_CPUSET_V1 &&
               faccessat(root.fd, mount_found.mount_point, W_OK, AT_EACCESS) == 0;
    if (writable)
        n_failed += cmocka_run_group_tests(cpuset_tests, NULL, NULL);
    cp_cpuset_mount_done(&mount_found);
    cp_machine_unref(machine);
    cp_root_done(&root);
    if (n_failed == 0 && !writable) {
        printf("skipped in part: no writable cpuset hierarchy of cgroup v1\n");
        return 77;
    }
    return n_failed;
}
