/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* After SIGKILL: from the journal alone everybody gets his mask back. */
#include "integration/act-live.h"

#include <sched.h>
#include <time.h>

#define N_WORKERS 12u
#define N_KILLS 20u

struct tally {
    unsigned n;
    unsigned n_detail;
};

static void count_report(const struct cp_journal_entry *entry, enum cp_act_result result,
                         const char *detail, void *userdata)
{
    struct tally *tally = userdata;

    assert_true(entry->task.tid > 0);
    assert_true(result < CP_ACT_RESULT_MAX);
    tally->n++;
    tally->n_detail += detail[0] != '\0';
}

static struct cp_restore_summary restore(struct live *live)
{
    struct cp_restore_summary summary = {0};
    struct tally tally = {0};

    assert_int_equal(cp_restore_all(&live->root, live->journal, count_report, &tally, &summary), 0);
    assert_int_equal(tally.n, summary.due);
    assert_int_equal(summary.restored + summary.yielded + summary.gone + summary.refused,
                     summary.due);
    return summary;
}

/* What the killed daemon does: places and releases pairs at random until it dies. */
static void __attribute__((noreturn))
run_daemon(struct live *live, const struct worker *workers, const bool *had_mask, unsigned seed)
{
    srand(seed);
    live_reopen(live, NULL);
    for (;;) {
        unsigned i = (unsigned)rand() % N_WORKERS;
        unsigned k = (i + 1) % N_WORKERS;
        struct cp_act_change changes[2] = {change_of(workers[i].pid, had_mask[i]),
                                           change_of(workers[k].pid, had_mask[k])};
        struct cp_error error = {0};
        uint64_t decision;

        if (cp_journal_next_decision(live->journal, &decision) < 0)
            _exit(1);
        if (rand() % 3 == 0) {
            (void)release(live, workers[i].pid);
            (void)release(live, workers[k].pid);
        } else if (live->actuator->ops->place(live->actuator, decision,
                                              rand() % 2 ? &live->only_a : &live->only_b, changes,
                                              2, &error) < 0) {
            _exit(1);
        }
        cp_cpumask_done(&changes[0].original);
        cp_cpumask_done(&changes[1].original);
    }
}

static void kill_after(pid_t pid, long us)
{
    const struct timespec wait = {.tv_nsec = us * 1000};
    int status;

    (void)nanosleep(&wait, NULL);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

/* original[i]: what worker i has when nobody placed it. */
static const struct cp_cpumask *original_of(const struct live *live, unsigned i)
{
    return i % 3 == 0 ? &live->all : i % 3 == 1 ? &live->only_a : &live->only_b;
}

static void test_sigkill_at_random_moments(void **state)
{
    struct live *live = *state;
    struct worker workers[N_WORKERS];
    bool had_mask[N_WORKERS];
    unsigned n_restored = 0;

    live_close(live);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        worker_start(&workers[i]);
        had_mask[i] = i % 3 != 0;
        set_mask(workers[i].pid, original_of(live, i));
    }
    srand(6202);
    for (unsigned round = 0; round < N_KILLS; round++) {
        unsigned seed = (unsigned)rand();
        long us = 1000 + rand() % 40000;
        pid_t daemon = fork();

        assert_true(daemon >= 0);
        if (daemon == 0)
            run_daemon(live, workers, had_mask, seed);
        kill_after(daemon, us);
        live_reopen(live, NULL);
        n_restored += restore(live).restored;
        for (unsigned i = 0; i < N_WORKERS; i++)
            expect_mask(workers[i].pid, original_of(live, i));
        assert_int_equal(count_due(live), 0);
        live_close(live);
    }
    /* Else the test has tested nothing. */
    assert_true(n_restored > 0);
    for (unsigned i = 0; i < N_WORKERS; i++)
        worker_stop(&workers[i]);
}

/* The next start takes over what is due, and releasing it restores it. */
static void test_restart_takes_over(void **state)
{
    struct live *live = *state;
    struct cp_act_held held;
    struct worker workers[2];
    struct cp_task_id ended;

    for (unsigned i = 0; i < 2; i++) {
        worker_start(&workers[i]);
        place_ok(live, workers[i].pid, false, &live->only_a);
    }
    ended = task_of(workers[1].pid);
    worker_stop(&workers[1]);
    live_reopen(live, NULL);
    assert_true(live->actuator->ops->held(live->actuator, 1, &held));
    assert_non_null(live->actuator->ops->find(live->actuator, ended));
    assert_int_equal(release(live, workers[0].pid), CP_ACT_RESTORED);
    expect_mask(workers[0].pid, &live->all);
    assert_true(live->actuator->ops->held(live->actuator, 0, &held));
    assert_true(cp_task_id_equal(held.task, ended));
    worker_stop(&workers[0]);
    assert_int_equal(restore(live).gone, 1);
    assert_int_equal(count_due(live), 0);
}

static void test_each_fate_is_counted(void **state)
{
    struct live *live = *state;
    struct worker workers[4];
    struct cp_restore_summary summary;

    for (unsigned i = 0; i < 4; i++) {
        worker_start(&workers[i]);
        if (i == 3)
            set_mask(workers[i].pid, &live->only_b);
        place_ok(live, workers[i].pid, i == 3, &live->only_a);
    }
    set_mask(workers[1].pid, &live->only_b); /* somebody else, after us */
    worker_stop(&workers[2]);
    live_reopen(live, NULL);
    summary = restore(live);
    assert_int_equal(summary.due, 4);
    assert_int_equal(summary.restored, 2);
    assert_int_equal(summary.yielded, 1);
    assert_int_equal(summary.gone, 1);
    assert_int_equal(summary.refused, 0);
    assert_int_equal(summary.strays, 0);
    expect_mask(workers[0].pid, &live->all);
    expect_mask(workers[1].pid, &live->only_b);
    expect_mask(workers[3].pid, &live->only_b);
    assert_int_equal(count_due(live), 0);
    /* A second time there is nothing to do. */
    assert_int_equal(restore(live).due, 0);
    worker_stop(&workers[0]);
    worker_stop(&workers[1]);
    worker_stop(&workers[3]);
}

/* Without the right to, everything stays due, and is given back by the next who may. */
static void test_refused_stays_due(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t child;
    int status;

    worker_start(&worker);
    place_ok(live, worker.pid, false, &live->only_a);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setresuid(65534, 65534, 65534) < 0)
            _exit(2);
        _exit(restore(live).refused == 1 && count_due(live) == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_mask(worker.pid, &live->only_a);
    live_reopen(live, NULL);
    assert_int_equal(restore(live).restored, 1);
    expect_mask(worker.pid, &live->all);
    worker_stop(&worker);
}

/* The crash came between the record of a second placement and its change. */
static void test_crash_between_record_and_change(void **state)
{
    struct live *live = *state;
    char detail[CP_ACT_DETAIL_SIZE];
    const struct cp_journal_entry *due;
    struct cp_journal_entry second;
    struct worker worker;

    worker_start(&worker);
    for (unsigned restart = 0; restart < 2; restart++) {
        place_ok(live, worker.pid, false, &live->only_a);
        assert_int_equal(cp_journal_due(live->journal, &due), 1);
        assert_int_equal(cp_journal_entry_copy(&due[0], &second), 0);
        assert_int_equal(cp_cpumask_copy(&second.target, &live->only_b), 0);
        assert_int_equal(cp_journal_place(live->journal, 2, &second, 1), 0);
        live_reopen(live, NULL);
        if (restart) {
            assert_int_equal(live->actuator->ops->check(live->actuator, second.task, detail),
                             CP_ACT_DONE);
            assert_int_equal(release(live, worker.pid), CP_ACT_RESTORED);
        } else {
            assert_int_equal(restore(live).restored, 1);
            live_reopen(live, NULL);
        }
        expect_mask(worker.pid, &live->all);
        cp_journal_entry_done(&second);
    }
    worker_stop(&worker);
}

/* Nobody was there to see these start. */
static void test_children_born_without_a_daemon(void **state)
{
    struct live *live = *state;
    struct worker worker;
    pid_t thread;
    pid_t child;

    worker_start(&worker);
    place_ok(live, worker.pid, false, &live->only_a);
    live_close(live);
    thread = worker_thread(&worker);
    child = worker_child(&worker);
    expect_mask(child, &live->only_a);
    live_reopen(live, NULL);
    assert_int_equal(restore(live).strays, 2);
    expect_mask(worker.pid, &live->all);
    expect_mask(thread, &live->all);
    expect_mask(child, &live->all);
    worker_stop(&worker);
}

/* The journal of another boot names tasks that may exist by chance. */
static void test_another_boot_touches_nobody(void **state)
{
    struct live *live = *state;
    struct cp_error error = {0};
    struct cp_journal *journal = NULL;
    struct cp_restore_summary summary = {0};
    char *warnings = NULL;
    struct worker worker;

    worker_start(&worker);
    place_ok(live, worker.pid, false, &live->only_a);
    live_close(live);
    assert_int_equal(cp_journal_open(live->directory, "another", &journal, &warnings, &error), 0);
    assert_non_null(warnings);
    free(warnings);
    assert_int_equal(cp_restore_all(&live->root, journal, NULL, NULL, &summary), 0);
    assert_int_equal(summary.due, 0);
    expect_mask(worker.pid, &live->only_a);
    cp_journal_close(journal);
    worker_stop(&worker);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, live_setup, live_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(test_sigkill_at_random_moments),
        LIVE(test_restart_takes_over),
        LIVE(test_each_fate_is_counted),
        LIVE(test_refused_stays_due),
        LIVE(test_crash_between_record_and_change),
        LIVE(test_children_born_without_a_daemon),
        LIVE(test_another_boot_touches_nobody),
    };
    int r = live_check();

    return r != 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
