/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guarded tasks on the real kernel: their children, their exec, their end; and the facts of tasks.
 */
#include "integration/wake-load.h"

#include <pthread.h>
#include <sys/syscall.h>

struct fixture {
    struct cp_machine machine;
    struct cp_wake_source *source;
    struct events events;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    make_machine(&fixture->machine);
    fixture->source = make_source(&fixture->machine, 1024);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    cp_wake_source_free(fixture->source);
    machine_done(&fixture->machine);
    free(fixture);
    return 0;
}

/* A child that waits for a byte, then runs; the byte lets it go. */
struct held_child {
    pid_t pid;
    int go;
};

static bool start_held(struct held_child *child)
{
    int fds[2];
    char token;

    assert_int_equal(pipe(fds), 0);
    if (start_child(&child->pid)) {
        (void)!read(fds[0], &token, 1);
        return true;
    }
    close(fds[0]);
    child->go = fds[1];
    return false;
}

static void let_go(struct held_child *child)
{
    assert_int_equal(write(child->go, "x", 1), 1);
    close(child->go);
}

static const struct cp_wake_event *expect(struct fixture *fixture, enum cp_wake_event_kind kind,
                                          pid_t tid)
{
    const struct cp_wake_event *event = wait_event(fixture->source, &fixture->events, kind, tid);

    if (!event)
        fail_msg("no event of kind %d for %d", (int)kind, (int)tid);
    return event;
}

static const struct cp_wake_event *find_fork_by(const struct fixture *fixture, pid_t parent)
{
    for (size_t i = 0; i < fixture->events.n; i++)
        if (fixture->events.list[i].kind == CP_WAKE_EVENT_FORK &&
            fixture->events.list[i].other.tid == parent)
            return &fixture->events.list[i];
    return NULL;
}

/* A guarded shell runs a shell that runs true: two generations of children, each with exec. */
static void test_children_and_grandchildren(void **state)
{
    struct fixture *fixture = *state;
    struct held_child child;
    struct cp_task_id id;
    const struct cp_wake_event *fork_event;
    const struct cp_wake_event *grandchild;

    fixture->events.n = 0;
    if (start_held(&child)) {
        pid_t pid = fork();

        if (pid == 0) {
            pid = fork();
            if (pid == 0) {
                (void)execl("/bin/true", "true", (char *)NULL);
                _exit(1);
            }
            (void)waitpid(pid, NULL, 0);
            _exit(0);
        }
        (void)waitpid(pid, NULL, 0);
        _exit(0);
    }
    id = task_id(child.pid);
    assert_int_equal(fixture->source->ops->guard(fixture->source, id), 0);
    let_go(&child);
    (void)waitpid(child.pid, NULL, 0);
    fork_event = expect(fixture, CP_WAKE_EVENT_FORK, child.pid);
    assert_true(cp_task_id_equal(fork_event->other, id));
    grandchild = find_fork_by(fixture, fork_event->task.tid);
    assert_non_null(grandchild);
    assert_true(cp_task_id_equal(grandchild->other, fork_event->task));
    assert_true(cp_task_id_equal(expect(fixture, CP_WAKE_EVENT_EXEC, grandchild->task.tid)->task,
                                 grandchild->task));
    (void)expect(fixture, CP_WAKE_EVENT_EXIT, grandchild->task.tid);
    (void)expect(fixture, CP_WAKE_EVENT_EXIT, fork_event->task.tid);
    assert_true(cp_task_id_equal(expect(fixture, CP_WAKE_EVENT_EXIT, child.pid)->task, id));
}

static void test_exec_of_a_guarded_task(void **state)
{
    struct fixture *fixture = *state;
    struct held_child child;
    const struct cp_wake_event *event;
    struct cp_task_id id;

    fixture->events.n = 0;
    if (start_held(&child)) {
        (void)execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    id = task_id(child.pid);
    assert_int_equal(fixture->source->ops->guard(fixture->source, id), 0);
    let_go(&child);
    event = expect(fixture, CP_WAKE_EVENT_EXEC, child.pid);
    assert_true(cp_task_id_equal(event->task, id));
    assert_true(cp_task_id_equal(event->other, id));
    (void)expect(fixture, CP_WAKE_EVENT_EXIT, child.pid);
    (void)waitpid(child.pid, NULL, 0);
}

static void test_unguarded_tasks_are_silent(void **state)
{
    struct fixture *fixture = *state;
    struct held_child children[3];
    struct cp_task_id stale;

    fixture->events.n = 0;
    for (int i = 0; i < 3; i++)
        if (start_held(&children[i])) {
            pid_t pid = fork();

            if (pid == 0)
                _exit(0);
            (void)waitpid(pid, NULL, 0);
            _exit(0);
        }
    /* The first is not guarded any more, the second's TID was guarded for another task. */
    assert_int_equal(fixture->source->ops->guard(fixture->source, task_id(children[0].pid)), 0);
    fixture->source->ops->unguard(fixture->source, task_id(children[0].pid));
    stale = task_id(children[1].pid);
    stale.start_ticks -= 1;
    assert_int_equal(fixture->source->ops->guard(fixture->source, stale), 0);
    assert_int_equal(fixture->source->ops->guard(fixture->source, task_id(children[2].pid)), 0);
    for (int i = 0; i < 3; i++) {
        let_go(&children[i]);
        (void)waitpid(children[i].pid, NULL, 0);
    }
    (void)expect(fixture, CP_WAKE_EVENT_EXIT, children[2].pid);
    for (int kind = CP_WAKE_EVENT_FORK; kind <= CP_WAKE_EVENT_EXIT; kind++)
        for (int i = 0; i < 2; i++)
            assert_int_equal(
                count_events(&fixture->events, (enum cp_wake_event_kind)kind, children[i].pid), 0);
    fixture->source->ops->unguard(fixture->source, stale);
}

/* A second thread of another process: it tells its TID, waits, makes a thread or runs a program. */
struct thread_job {
    int tell;
    int wait;
    bool runs_program;
};

static void *idle_thread(void *userdata)
{
    return userdata;
}

static void *thread_main(void *userdata)
{
    const struct thread_job *job = userdata;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    pthread_t other;
    char token;

    (void)!write(job->tell, &tid, sizeof(tid));
    (void)!read(job->wait, &token, 1);
    if (job->runs_program)
        (void)execl("/bin/sleep", "sleep", "0.2", (char *)NULL);
    else if (pthread_create(&other, NULL, idle_thread, NULL) == 0)
        (void)pthread_join(other, NULL);
    return NULL;
}

struct threaded_child {
    pid_t pid;
    pid_t tid;
    int go;
};

static void start_threaded(struct threaded_child *child, bool runs_program)
{
    int tell[2];
    int wait[2];

    assert_int_equal(pipe(tell), 0);
    assert_int_equal(pipe(wait), 0);
    if (start_child(&child->pid)) {
        struct thread_job job = {.tell = tell[1], .wait = wait[0], .runs_program = runs_program};
        pthread_t thread;

        if (pthread_create(&thread, NULL, thread_main, &job) == 0)
            (void)pthread_join(thread, NULL);
        nap_us(200000);
        _exit(0);
    }
    assert_int_equal(read(tell[0], &child->tid, sizeof(child->tid)), sizeof(child->tid));
    assert_true(child->tid != child->pid);
    child->go = wait[1];
    close(tell[0]);
    close(tell[1]);
    close(wait[0]);
}

static void test_a_thread_that_is_no_leader(void **state)
{
    struct fixture *fixture = *state;
    struct threaded_child child;
    const struct cp_wake_event *event;
    struct cp_task_id id;

    fixture->events.n = 0;
    start_threaded(&child, false);
    id = task_id(child.tid);
    assert_int_equal(fixture->source->ops->guard(fixture->source, id), 0);
    assert_int_equal(write(child.go, "x", 1), 1);
    event = expect(fixture, CP_WAKE_EVENT_FORK, child.tid);
    assert_true(cp_task_id_equal(event->other, id));
    (void)expect(fixture, CP_WAKE_EVENT_EXIT, event->task.tid);
    assert_true(
        cp_task_id_equal(expect(fixture, CP_WAKE_EVENT_EXIT, child.tid)->task, event->other));
    assert_int_equal(count_events(&fixture->events, CP_WAKE_EVENT_EXIT, child.pid), 0);
    (void)waitpid(child.pid, NULL, 0);
    close(child.go);
}

/* Such a thread becomes the leader when it runs a program: one event says both names. */
static void test_exec_by_a_thread_that_is_no_leader(void **state)
{
    struct fixture *fixture = *state;
    struct threaded_child child;
    const struct cp_wake_event *event;
    struct cp_task_id id;

    fixture->events.n = 0;
    start_threaded(&child, true);
    id = task_id(child.tid);
    assert_int_equal(fixture->source->ops->guard(fixture->source, id), 0);
    assert_int_equal(write(child.go, "x", 1), 1);
    event = expect(fixture, CP_WAKE_EVENT_EXEC, child.pid);
    assert_int_equal(event->task.tid, child.pid);
    assert_true(cp_task_id_equal(event->task, task_id(child.pid)));
    assert_true(cp_task_id_equal(event->other, id));
    (void)expect(fixture, CP_WAKE_EVENT_EXIT, child.pid);
    (void)waitpid(child.pid, NULL, 0);
    close(child.go);
}

static void test_guard_table_is_bounded(void **state)
{
    struct fixture *fixture = *state;
    struct cp_wake_source *source = fixture->source;
    struct cp_task_id id = {.start_ticks = 1};
    int r = 0;

    for (id.tid = 1 << 23; r == 0 && id.tid < (1 << 23) + 100000; id.tid++)
        r = source->ops->guard(source, id);
    assert_int_equal(r, -ENOSPC);
    /* A task that is known already needs no room. */
    assert_int_equal(source->ops->guard(source, (struct cp_task_id){1 << 23, 2}), 0);
    source->ops->unguard(source, (struct cp_task_id){1 << 23, 2});
    while (id.tid-- > 1 << 23)
        source->ops->unguard(source, id);
    assert_int_equal(source->ops->guard(source, task_id(getpid())), 0);
    source->ops->unguard(source, task_id(getpid()));
}

/* More forks than the ring has room for, and nobody reads: the loss is counted and told. */
static void test_lost_events_are_told(void **state)
{
    enum { N = 4000 };
    struct fixture *fixture = *state;
    struct held_child child;
    uint64_t n_lost = 0;
    size_t n_before;

    fixture->events.n = 0;
    if (start_held(&child)) {
        for (int i = 0; i < N; i++) {
            pid_t pid = fork();

            if (pid == 0)
                _exit(0);
            (void)waitpid(pid, NULL, 0);
        }
        _exit(0);
    }
    assert_int_equal(fixture->source->ops->guard(fixture->source, task_id(child.pid)), 0);
    let_go(&child);
    (void)waitpid(child.pid, NULL, 0);
    /* A dispatch takes a bounded number: go on until the ring is empty. */
    do {
        n_before = fixture->events.n;
        take_events(fixture->source, &fixture->events, 100);
    } while (fixture->events.n > n_before);
    for (size_t i = 0; i < fixture->events.n; i++)
        if (fixture->events.list[i].kind == CP_WAKE_EVENT_LOST)
            n_lost += fixture->events.list[i].n_lost;
    assert_true(n_lost > 0);
    assert_int_equal(n_lost, fixture->source->counters.n_lost_events);
}

/* Facts. */

static void test_user_mask(void **state)
{
    struct fixture *fixture = *state;
    struct cp_wake_source *source = fixture->source;
    struct cp_wake_task_facts facts;
    struct held_child child;
    cpu_set_t set;

    if (start_held(&child))
        _exit(0);
    assert_int_equal(source->ops->task_facts(source, task_id(child.pid), &facts), 0);
    if (!facts.user_mask_known) {
        printf("SKIP: this kernel keeps no user masks (before 6.2)\n");
        stop_child(child.pid);
        skip();
    }
    assert_false(facts.has_user_mask);
    assert_false(facts.user_mask_is_everywhere);
    assert_int_equal(sched_getaffinity(child.pid, sizeof(set), &set), 0);
    assert_int_equal(sched_setaffinity(child.pid, sizeof(set), &set), 0);
    assert_int_equal(source->ops->task_facts(source, task_id(child.pid), &facts), 0);
    assert_true(facts.user_mask_known);
    assert_true(facts.has_user_mask);
    assert_true(facts.user_mask_is_everywhere);
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    assert_int_equal(sched_setaffinity(child.pid, sizeof(set), &set), 0);
    assert_int_equal(source->ops->task_facts(source, task_id(child.pid), &facts), 0);
    assert_true(facts.has_user_mask);
    assert_false(facts.user_mask_is_everywhere);
    stop_child(child.pid);
    close(child.go);
}

static void test_facts_of_a_thread_and_of_the_gone(void **state)
{
    struct fixture *fixture = *state;
    struct cp_wake_source *source = fixture->source;
    struct cp_wake_task_facts facts;
    struct threaded_child child;
    struct cp_task_id id;

    start_threaded(&child, false);
    id = task_id(child.tid);
    assert_int_equal(source->ops->task_facts(source, id, &facts), 0);
    id.start_ticks++;
    assert_int_equal(source->ops->task_facts(source, id, &facts), CP_PROC_GONE);
    id.start_ticks--;
    stop_child(child.pid);
    close(child.go);
    assert_int_equal(source->ops->task_facts(source, id, &facts), CP_PROC_GONE);
    assert_int_equal(source->ops->task_facts(source, (struct cp_task_id){0, 0}, &facts),
                     CP_PROC_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_and_grandchildren),
        cmocka_unit_test(test_exec_of_a_guarded_task),
        cmocka_unit_test(test_unguarded_tasks_are_silent),
        cmocka_unit_test(test_a_thread_that_is_no_leader),
        cmocka_unit_test(test_exec_by_a_thread_that_is_no_leader),
        cmocka_unit_test(test_guard_table_is_bounded),
        cmocka_unit_test(test_user_mask),
        cmocka_unit_test(test_facts_of_a_thread_and_of_the_gone),
        cmocka_unit_test(test_lost_events_are_told),
    };

    skip_unless_root();
    return cmocka_run_group_tests(tests, setup, teardown);
}
