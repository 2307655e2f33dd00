/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For the live tests of act/: real tasks that do as told, an actuator with its journal, and a
 * cpuset of the test's own. Everything fails the test at once when it does not work.
 */
#pragma once

#include "act/act.h"
#include "act/journal.h"
#include "base/proc.h"
#include "base/root.h"
#include "machine/machine.h"
#include "registry/cpuset-view.h"
#include "wake/wake.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A process whose main thread starts threads and children when told. All only wait. */
struct worker {
    pid_t pid;
    int to;
    int from;
};

/* An actuator on the running machine with a journal in a directory of its own. */
struct live {
    struct cp_root root;
    struct cp_machine *machine;
    struct cp_journal *journal;
    struct cp_actuator *actuator;
    char directory[64];
    /* The first two CPUs of the test's own mask, and all that a task without a mask has here. */
    struct cp_cpu a;
    struct cp_cpu b;
    struct cp_cpumask only_a;
    struct cp_cpumask only_b;
    struct cp_cpumask all;
};

#define TEST_BOOT "00000000-1111-2222-3333-444444444444"

/* ---- workers ---- */

static inline void *wait_forever(void *argument)
{
    pid_t tid = gettid();
    int fd = *(int *)argument;

    if (write(fd, &tid, sizeof(tid)) != sizeof(tid))
        _exit(1);
    for (;;)
        (void)pause();
    return NULL;
}

/* Runs a new program when it gets SIGUSR1. */
static inline void *exec_when_told(void *argument)
{
    pid_t tid = gettid();
    sigset_t set;
    int number;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (write(*(int *)argument, &tid, sizeof(tid)) != sizeof(tid) || sigwait(&set, &number) != 0)
        _exit(1);
    (void)execl("/bin/sleep", "sleep", "600", NULL);
    _exit(1);
}

static inline void start_child(int from)
{
    pid_t child = fork();

    if (child == 0) {
        pid_t self = getpid();

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(from, &self, sizeof(self)) != sizeof(self))
            _exit(1);
        for (;;)
            (void)pause();
    }
    if (child < 0)
        _exit(1);
}

static inline void __attribute__((noreturn)) work(int to, int from)
{
    pthread_attr_t attributes;
    char command;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGCHLD, SIG_IGN);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 256 * 1024);
    while (read(to, &command, 1) == 1) {
        pthread_t thread;

        if (command == 'c')
            start_child(from);
        else if (pthread_create(&thread, &attributes,
                                command == 'e' ? exec_when_told : wait_forever, &from) != 0)
            _exit(1);
    }
    _exit(0);
}

static inline void worker_start(struct worker *worker)
{
    int to[2];
    int from[2];
    char ready;

    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    worker->pid = fork();
    assert_true(worker->pid >= 0);
    if (worker->pid == 0) {
        /* Not even the journal's lock is to be shared with it. */
        for (int fd = 3; fd < 256; fd++)
            if (fd != to[0] && fd != from[1])
                close(fd);
        if (write(from[1], "", 1) != 1)
            _exit(1);
        work(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    worker->to = to[1];
    worker->from = from[0];
    /* Until it has let go of the lock, a journal that is closed here cannot be opened again. */
    assert_int_equal(read(worker->from, &ready, 1), 1);
}

static inline pid_t ask(struct worker *worker, char command)
{
    pid_t tid;

    assert_int_equal(write(worker->to, &command, 1), 1);
    assert_int_equal(read(worker->from, &tid, sizeof(tid)), sizeof(tid));
    return tid;
}

static inline pid_t worker_thread(struct worker *worker)
{
    return ask(worker, 't');
}

/* Its process runs sleep(1) once this thread gets SIGUSR1. */
static inline pid_t worker_execing_thread(struct worker *worker)
{
    return ask(worker, 'e');
}

static inline pid_t worker_child(struct worker *worker)
{
    return ask(worker, 'c');
}

/* SIGKILL, with its children; reaped. */
static inline void worker_stop(struct worker *worker)
{
    if (worker->pid > 0) {
        assert_int_equal(kill(worker->pid, SIGKILL), 0);
        assert_int_equal(waitpid(worker->pid, NULL, 0), worker->pid);
    }
    close(worker->to);
    close(worker->from);
    *worker = (struct worker){.to = -1, .from = -1};
}

/* ---- tasks and masks ---- */

static inline const struct cp_root *system_root(void)
{
    static struct cp_root root = {.fd = -1};

    if (root.fd < 0)
        assert_int_equal(cp_root_open(&root, NULL), 0);
    return &root;
}

static inline struct cp_task_id task_of(pid_t tid)
{
    struct cp_proc_stat stat;

    assert_int_equal(cp_proc_read_stat(system_root(), tid, &stat), 0);
    return stat.id;
}

static inline void read_status(pid_t tid, struct cp_proc_status *status)
{
    assert_int_equal(cp_proc_read_status(system_root(), tid, status), 0);
}

static inline pid_t tgid_of(pid_t tid)
{
    struct cp_proc_status status;
    pid_t tgid;

    read_status(tid, &status);
    tgid = status.tgid;
    cp_proc_status_done(&status);
    return tgid;
}

static inline struct cp_cpumask read_mask(pid_t tid)
{
    struct cp_proc_status status;

    read_status(tid, &status);
    return status.allowed;
}

static inline void set_mask(pid_t tid, const struct cp_cpumask *mask)
{
    assert_int_equal(
        sched_setaffinity(tid, mask->n_words * 8, (const cpu_set_t *)(const void *)mask->words), 0);
}

static inline void expect_mask(pid_t tid, const struct cp_cpumask *mask)
{
    struct cp_cpumask current = read_mask(tid);

    if (!cp_cpumask_equal(&current, mask)) {
        char *is = cp_cpumask_to_list(&current);
        char *wanted = cp_cpumask_to_list(mask);

        fail_msg("task %d has the mask %s, not %s", tid, is, wanted);
    }
    cp_cpumask_done(&current);
}

static inline struct cp_act_change change_of(pid_t tid, bool had_user_mask)
{
    return (struct cp_act_change){
        .task = task_of(tid),
        .tgid = tgid_of(tid),
        .original = read_mask(tid),
        .had_user_mask = had_user_mask,
        .result = CP_ACT_RESULT_MAX,
    };
}

static inline int place_one(struct live *live, pid_t tid, bool had_user_mask,
                            const struct cp_cpumask *target, struct cp_act_change *ret_change)
{
    struct cp_act_change change = change_of(tid, had_user_mask);
    struct cp_error error = {0};
    int r = live->actuator->ops->place(live->actuator, 1, target, &change, 1, &error);

    cp_cpumask_done(&change.original);
    *ret_change = change;
    return r;
}

/* Places and wants it to work. */
static inline void place_ok(struct live *live, pid_t tid, bool had_user_mask,
                            const struct cp_cpumask *target)
{
    struct cp_act_change change;
    int r = place_one(live, tid, had_user_mask, target, &change);

    if (r != 0 || change.result != CP_ACT_DONE)
        fail_msg("task %d: %s: %s", tid, cp_act_result_to_string(change.result), change.detail);
    expect_mask(tid, target);
}

static inline enum cp_act_result release(struct live *live, pid_t tid)
{
    char detail[CP_ACT_DETAIL_SIZE];

    return live->actuator->ops->release(live->actuator, task_of(tid), detail);
}

static inline size_t count_due(struct live *live)
{
    const struct cp_journal_entry *due;

    return cp_journal_due(live->journal, &due);
}

/* words must be in detail */
static inline void say_reason(const char *words, const char *detail)
{
    if (!strstr(detail, words))
        fail_msg("\"%s\" is not in \"%s\"", words, detail);
}

/* ---- a cpuset of our own ---- */

/* Below the mount; "" asks for the directory itself. */
static inline void cpuset_path(const struct live *live, const char *name, char path[512], bool top)
{
    struct cp_cpuset_mount mount;

    assert_int_equal(cp_cpuset_find_mount(&live->root, &mount), 0);
    assert_int_not_equal(mount.kind, CP_CPUSET_ABSENT);
    if (top)
        (void)snprintf(path, 512, "/%.200s/%.60s", mount.mount_point, name);
    else
        (void)snprintf(path, 512, "/%.200s/coplace-test-%d/%.60s", mount.mount_point, getpid(),
                       name);
    cp_cpuset_mount_done(&mount);
}

static inline int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int r = 0;

    if (fd < 0)
        return -errno;
    if (write(fd, text, strlen(text)) < 0)
        r = -errno;
    close(fd);
    return r;
}

static inline bool give_up(const char *what, int r)
{
    print_message("no cpuset to test with: %s: %s\n", what, strerror(-r));
    return false;
}

static inline void cpuset_set(struct live *live, const struct cp_cpumask *cpus)
{
    char *list = cp_cpumask_to_list(cpus);
    char path[512];

    assert_non_null(list);
    cpuset_path(live, "cpuset.cpus", path, false);
    assert_int_equal(write_text(path, list), 0);
    free(list);
}

/* v1 wants memory nodes before a task may enter. */
static inline int copy_mems(const struct live *live)
{
    char path[512];
    char *text;
    int r;

    cpuset_path(live, "cpuset.mems", path, true);
    r = cp_root_read_file(&live->root, path + 1, 4096, &text, NULL);
    if (r < 0)
        return r;
    cpuset_path(live, "cpuset.mems", path, false);
    r = write_text(path, text);
    free(text);
    return r;
}

/* A child cpuset with CPUs a and b, where cpuset can be had; false after printing why not. */
static inline bool cpuset_make(struct live *live)
{
    struct cp_cpumask both = {0};
    struct cp_cpuset_mount mount;
    enum cp_cpuset_kind kind;
    char path[512];
    int r;

    assert_int_equal(cp_cpuset_find_mount(&live->root, &mount), 0);
    kind = mount.kind;
    cp_cpuset_mount_done(&mount);
    if (kind == CP_CPUSET_ABSENT)
        return give_up("no cpuset controller is mounted", -ENOENT);
    if (kind == CP_CPUSET_V2) {
        cpuset_path(live, "cgroup.subtree_control", path, true);
        r = write_text(path, "+cpuset");
        if (r < 0)
            return give_up("cgroup.subtree_control", r);
    }
    cpuset_path(live, "", path, false);
    if (mkdir(path, 0755) < 0)
        return give_up(path, -errno);
    if (kind == CP_CPUSET_V1) {
        r = copy_mems(live);
        if (r < 0)
            return give_up("cpuset.mems", r);
    }
    assert_int_equal(cp_cpumask_or(&both, &live->only_a, &live->only_b), 0);
    cpuset_set(live, &both);
    cp_cpumask_done(&both);
    return true;
}

static inline void cpuset_put(struct live *live, pid_t pid)
{
    char path[512];
    char text[32];

    cpuset_path(live, "cgroup.procs", path, false);
    (void)snprintf(text, sizeof(text), "%d", pid);
    assert_int_equal(write_text(path, text), 0);
}

static inline void cpuset_remove(struct live *live)
{
    struct cp_cpuset_mount mount;
    enum cp_cpuset_kind kind;
    char path[512];

    assert_int_equal(cp_cpuset_find_mount(&live->root, &mount), 0);
    kind = mount.kind;
    cp_cpuset_mount_done(&mount);
    if (kind == CP_CPUSET_ABSENT)
        return;
    cpuset_path(live, "", path, false);
    /* Tasks that were killed a moment ago may still be counted. */
    for (unsigned i = 0; i < 100 && rmdir(path) < 0 && errno == EBUSY; i++)
        (void)usleep(10000);
}

/* ---- the actuator ---- */

/* 0, or 77 after printing why these tests cannot run here. */
static inline int live_check(void)
{
    cpu_set_t own;

    if (geteuid() != 0) {
        printf("SKIP: changing masks of others needs root\n");
        return 77;
    }
    if (sched_getaffinity(0, sizeof(own), &own) < 0 || CPU_COUNT(&own) < 2) {
        printf("SKIP: two CPUs are needed\n");
        return 77;
    }
    return 0;
}

static inline void live_close(struct live *live)
{
    live->actuator = cp_actuator_free(live->actuator);
    live->journal = cp_journal_close(live->journal);
}

/* As after a restart. */
static inline void live_reopen(struct live *live, struct cp_wake_source *wake)
{
    struct cp_error error = {0};

    live_close(live);
    if (cp_journal_open(live->directory, TEST_BOOT, &live->journal, NULL, &error) != 0 ||
        cp_affinity_actuator_new(&live->root, live->machine, wake, live->journal, &live->actuator,
                                 &error) < 0)
        fail_msg("%s", error.message);
}

static inline void find_cpus(struct live *live)
{
    struct cp_cpumask own = read_mask(getpid());
    char path[] = "sys/devices/system/cpu/possible";
    char *text;

    assert_true(cp_cpumask_next(&own, 0, &live->a));
    assert_true(cp_cpumask_next(&own, live->a.os + 1, &live->b));
    cp_cpumask_done(&own);
    assert_int_equal(cp_cpumask_set(&live->only_a, live->a), 0);
    assert_int_equal(cp_cpumask_set(&live->only_b, live->b), 0);
    assert_int_equal(cp_root_read_file(&live->root, path, 65536, &text, NULL), 0);
    assert_int_equal(cp_cpumask_parse_list(text, &live->all), 0);
    free(text);
    /* What the kernel makes of "all" here. */
    set_mask(0, &live->all);
    cp_cpumask_done(&live->all);
    live->all = read_mask(getpid());
}

static inline int live_setup(void **state)
{
    const struct cp_machine_source source = {.kind = CP_MACHINE_LIVE};
    struct live *live = calloc(1, sizeof(*live));
    struct cp_error error = {0};

    assert_non_null(live);
    (void)snprintf(live->directory, sizeof(live->directory), "/tmp/coplace-act-XXXXXX");
    assert_non_null(mkdtemp(live->directory));
    assert_int_equal(cp_root_open(&live->root, NULL), 0);
    if (cp_machine_load(&source, 1, &live->machine, &error) < 0)
        fail_msg("%s", error.message);
    find_cpus(live);
    live_reopen(live, NULL);
    *state = live;
    return 0;
}

static inline int live_teardown(void **state)
{
    struct live *live = *state;
    DIR *directory;
    struct dirent *entry;

    live_close(live);
    cpuset_remove(live);
    directory = opendir(live->directory);
    assert_non_null(directory);
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    (void)rmdir(live->directory);
    cp_cpumask_done(&live->only_a);
    cp_cpumask_done(&live->only_b);
    cp_cpumask_done(&live->all);
    cp_machine_unref(live->machine);
    cp_root_done(&live->root);
    free(live);
    return 0;
}
