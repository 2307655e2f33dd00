/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The readers of /proc against hostile texts, a recorded root and the running kernel. */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

/* Fields 3 to 52, with the interesting ones standing out: state, flags (9), utime (14), stime (15),
 * start (22), last CPU (39), policy (41). */
#define STAT_REST                                                                                  \
    " S 1 2 3 0 -1 4194304 10 0 0 0 11 22 0 0 20 0 1 0 123456789 1000 200 18446744073709551615 1 " \
    "1 0 0 0 0 0 0 0 0 0 0 17 5 0 3 0 0 0 0 0 0 0 0 0 0 0\n"

static void any_comm_is_safe(void **state)
{
    static const char *const comms[] = {
        "bash",
        "",
        ")",
        "(",
        "a) R 1 2 3",
        "))))",
        "a b  c",
        "line\nbreak",
        "\n",
        "1 (x) S",
        "\xff\xfe\x01",
        "kworker/u512:3-events_unbound",
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(comms); i++) {
        char text[512];
        struct cp_proc_stat stat = {0};

        (void)snprintf(text, sizeof(text), "4242 (%s)%s", comms[i], STAT_REST);
        assert_int_equal(cp_proc_parse_stat(text, &stat), 0);
        assert_int_equal(stat.id.tid, 4242);
        assert_int_equal(stat.id.start_ticks, 123456789);
        assert_string_equal(stat.comm, comms[i]);
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.flags, 4194304);
        assert_int_equal(stat.last_cpu, 5);
        assert_int_equal(stat.policy, 3);
        assert_int_equal(stat.cpu_ticks, 33);
    }
}

static void a_huge_comm_is_cut(void **state)
{
    struct cp_proc_stat stat = {0};
    size_t length = 1u << 20;
    char *text = malloc(length + 512);

    (void)state;
    assert_non_null(text);
    memcpy(text, "7 (", 3);
    memset(text + 3, 'x', length);
    memcpy(text + 3 + length, ")" STAT_REST, sizeof(")" STAT_REST));
    assert_int_equal(cp_proc_parse_stat(text, &stat), 0);
    assert_int_equal(strlen(stat.comm), sizeof(stat.comm) - 1);
    assert_int_equal(stat.last_cpu, 5);
    free(text);
}

/* Every text that ends before the last field that we need is refused. */
static void truncated_stat(void **state)
{
    static const char whole[] = "4242 (a) b)" STAT_REST;
    const char *policy = strstr(whole, " 17 5 0 3 ") + strlen(" 17 5 0 ");
    size_t needed = (size_t)(policy - whole) + 1;

    (void)state;
    for (size_t length = 0; length < sizeof(whole) - 1; length++) {
        char *text = strndup(whole, length);
        struct cp_proc_stat stat = {.last_cpu = -7};
        int r = cp_proc_parse_stat(text, &stat);

        assert_int_equal(r, length < needed ? -EBADMSG : 0);
        assert_int_equal(stat.last_cpu, length < needed ? -7 : 5);
        free(text);
    }
}

static void malformed_stat(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "no parentheses",
        "(a)" STAT_REST,
        "0 (a)" STAT_REST,
        "-1 (a)" STAT_REST,
        "+1 (a)" STAT_REST,
        " 1 (a)" STAT_REST,
        "1(a)" STAT_REST,
        "1  (a)" STAT_REST,
        "1x (a)" STAT_REST,
        "99999999999 (a)" STAT_REST,
        "1 )a(" STAT_REST,
        "1 (a) ",
        "1 (a)S 1 2 3",
        /* flags no number, negative, beyond 32 bits */
        "1 (a) S 1 2 3 0 -1 x 0 0 0 0 1 2 0 0 20 0 1 0 5 1 2 3 1 1 0 0 0 0 0 0 0 0 0 0 17 5 0 0 0",
        "1 (a) S 1 2 3 0 -1 -4 0 0 0 0 1 2 0 0 20 0 1 0 5 1 2 3 1 1 0 0 0 0 0 0 0 0 0 0 17 5 0 0 0",
        "1 (a) S 1 2 3 0 -1 4294967296 0 0 0 0 1 2 0 0 20 0 1 0 5 1 2 3 1 1 0 0 0 0 0 0 0 0 0 0 17 "
        "5 0 0 0",
        /* start time negative, CPU negative and too large, policy negative */
        "1 (a) S 1 2 3 0 -1 4 0 0 0 0 1 2 0 0 20 0 1 0 -5 1 2 3 1 1 0 0 0 0 0 0 0 0 0 0 17 5 0 0 0",
        "1 (a) S 1 2 3 0 -1 4 0 0 0 0 1 2 0 0 20 0 1 0 5 1 2 3 1 1 0 0 0 0 0 0 0 0 0 0 17 -5 0 0 0",
        "1 (a) S 1 2 3 0 -1 4 0 0 0 0 1 2 0 0 20 0 1 0 5 1 2 3 1 1 0 0 0 0 0 0 0 0 0 0 17 65536 0 "
        "0 0",
        "1 (a) S 1 2 3 0 -1 4 0 0 0 0 1 2 0 0 20 0 1 0 5 1 2 3 1 1 0 0 0 0 0 0 0 0 0 0 17 5 0 -1 0",
        /* a field that does not fit 64 bits */
        "1 (a) S 1 2 3 0 -1 4 0 0 0 0 99999999999999999999 2 0 0 20 0 1 0 5 1 2 3 1 1 0 0 0 0 0 0 "
        "0 0 0 0 17 5 0 0 0",
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(texts); i++) {
        struct cp_proc_stat stat = {0};
        int r = cp_proc_parse_stat(texts[i], &stat);

        if (r != -EBADMSG)
            print_error("accepted: %s\n", texts[i]);
        assert_int_equal(r, -EBADMSG);
        assert_int_equal(stat.id.tid, 0);
    }
}

#define STATUS "Name:\tcat\nUmask:\t0022\nTgid:\t120\nNgid:\t0\nPid:\t123\nUid:\t1000\t0\t0\t0\n"

static void status_texts(void **state)
{
    static const struct {
        const char *text;
        int result;
        uint64_t rss_kib;
        unsigned n_cpus;
    } table[] = {
        {STATUS "VmRSS:\t  42652 kB\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\nMems:\t0\n", 0,
         42652, 8},
        {STATUS "Cpus_allowed_list:\t0-7,1024-1030", 0, 0, 15},
        {STATUS "Cpus_allowed_list:\t\n", 0, 0, 0},
        {"\n\n" STATUS "\n\nCpus_allowed_list:\t3\n", 0, 0, 1},
        /* A name cannot make lines, but may look like a key. */
        {"Name:\tTgid:\\nUid:\t5\n" STATUS "Cpus_allowed_list:\t3\n", 0, 0, 1},
        {STATUS, -EBADMSG, 0, 0},
        {"", -EBADMSG, 0, 0},
        {STATUS "Cpus_allowed_list:\t0-\n", -EBADMSG, 0, 0},
        {STATUS "Cpus_allowed_list:\t99999999\n", -EBADMSG, 0, 0},
        {STATUS "Cpus_allowed_list\t0\n", -EBADMSG, 0, 0},
        {STATUS " Cpus_allowed_list:\t0\n", -EBADMSG, 0, 0},
        {"Tgid:\t-1\nUid:\t0\nCpus_allowed_list:\t0\n", -EBADMSG, 0, 0},
        {"Tgid:\t99999999999\nUid:\t0\nCpus_allowed_list:\t0\n", -EBADMSG, 0, 0},
        {"Tgid:\t5\nUid:\t4294967296\nCpus_allowed_list:\t0\n", -EBADMSG, 0, 0},
        {"Tgid:\n5\nUid:\t0\nCpus_allowed_list:\t0\n", -EBADMSG, 0, 0},
        {"Tgid:\t5\nCpus_allowed_list:\t0\n", -EBADMSG, 0, 0},
        {"Uid:\t5\nCpus_allowed_list:\t0\n", -EBADMSG, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct cp_proc_status status = {0};
        int r = cp_proc_parse_status(table[i].text, &status);

        if (r != table[i].result)
            print_error("row %zu gave %d\n", i, r);
        assert_int_equal(r, table[i].result);
        if (r == 0) {
            assert_int_equal(status.tgid, 120);
            assert_int_equal(status.uid, 1000);
        }
        assert_int_equal(status.rss_kib, table[i].rss_kib);
        assert_int_equal(cp_cpumask_weight(&status.allowed), table[i].n_cpus);
        cp_proc_status_done(&status);
    }
}

/* A recorded root: files as somebody may hand them to us. */
static void recorded_root(void **state)
{
    char directory[] = "/tmp/coplace-test-proc-XXXXXX";
    struct cp_root root = {.fd = -1};
    struct cp_proc_stat stat;
    struct cp_proc_status status = {0};
    int fd;

    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(cp_root_open(&root, directory), 0);
    assert_false(root.live);
    assert_int_equal(mkdirat(root.fd, "proc", 0755), 0);
    assert_int_equal(mkdirat(root.fd, "proc/9", 0755), 0);
    assert_int_equal(cp_proc_read_stat(&root, 8, &stat), CP_PROC_GONE);
    assert_int_equal(cp_proc_read_status(&root, 9, &status), CP_PROC_GONE);
    fd = openat(root.fd, "proc/9/stat", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(write(fd, "9", 1), 1);
    assert_int_equal(cp_proc_read_stat(&root, 9, &stat), -EFBIG);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(cp_proc_read_stat(&root, 9, &stat), -EBADMSG);
    assert_int_equal(pwrite(fd, "9 (x)" STAT_REST, sizeof("9 (x)" STAT_REST), 0),
                     sizeof("9 (x)" STAT_REST));
    assert_int_equal(cp_proc_read_stat(&root, 9, &stat), 0);
    close(fd);
    assert_int_equal(unlinkat(root.fd, "proc/9/stat", 0), 0);
    assert_int_equal(unlinkat(root.fd, "proc/9", AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(root.fd, "proc", AT_REMOVEDIR), 0);
    cp_root_done(&root);
    assert_int_equal(rmdir(directory), 0);
}

struct helper {
    pthread_t thread;
    pid_t tid;
    sem_t started;
    sem_t finish;
};

static void *helper_main(void *userdata)
{
    struct helper *helper = userdata;

    helper->tid = (pid_t)syscall(SYS_gettid);
    sem_post(&helper->started);
    sem_wait(&helper->finish);
    return NULL;
}

static void running_kernel(void **state)
{
    struct cp_root root = {.fd = -1};
    struct helper helpers[3];
    struct cp_proc_stat stat;
    struct cp_proc_status status = {0};
    pid_t *tids = NULL;
    size_t n_tids = 0;
    unsigned n_found = 0;
    cpu_set_t mask;

    (void)state;
    assert_int_equal(cp_root_open(&root, NULL), 0);
    assert_true(root.live);
    for (size_t i = 0; i < CP_ELEMENTS(helpers); i++) {
        sem_init(&helpers[i].started, 0, 0);
        sem_init(&helpers[i].finish, 0, 0);
        assert_int_equal(pthread_create(&helpers[i].thread, NULL, helper_main, &helpers[i]), 0);
        sem_wait(&helpers[i].started);
    }
    assert_int_equal(pthread_setname_np(helpers[0].thread, "a) R 1\n(b"), 0);
    assert_int_equal(cp_proc_read_stat(&root, helpers[0].tid, &stat), 0);
    assert_int_equal(stat.id.tid, helpers[0].tid);
    assert_string_equal(stat.comm, "a) R 1\n(b");
    assert_true(stat.id.start_ticks > 0);
    assert_int_equal(stat.policy, SCHED_OTHER);
    assert_false(stat.flags & (CP_PF_KTHREAD | CP_PF_EXITING));
    assert_int_equal(cp_proc_read_status(&root, helpers[0].tid, &status), 0);
    assert_int_equal(status.tgid, getpid());
    assert_int_equal(status.uid, getuid());
    assert_true(status.rss_kib > 0);
    assert_int_equal(sched_getaffinity(helpers[0].tid, sizeof(mask), &mask), 0);
    assert_true(cp_cpumask_weight(&status.allowed) >= (unsigned)CPU_COUNT(&mask));
    cp_proc_status_done(&status);

    assert_int_equal(cp_proc_list_threads(&root, getpid(), 2, &tids, &n_tids), -E2BIG);
    assert_null(tids);
    assert_int_equal(cp_proc_list_threads(&root, getpid(), 1000, &tids, &n_tids), 0);
    for (size_t i = 0; i < n_tids; i++) {
        assert_true(i == 0 || tids[i - 1] < tids[i]);
        for (size_t k = 0; k < CP_ELEMENTS(helpers); k++)
            n_found += tids[i] == helpers[k].tid;
    }
    assert_int_equal(n_found, CP_ELEMENTS(helpers));
    free(tids);
    for (size_t i = 0; i < CP_ELEMENTS(helpers); i++) {
        sem_post(&helpers[i].finish);
        pthread_join(helpers[i].thread, NULL);
    }
    /* No process can have a TID above the kernel's limit of 4 Mi. */
    assert_int_equal(cp_proc_read_stat(&root, 1 << 23, &stat), CP_PROC_GONE);
    assert_int_equal(cp_proc_list_threads(&root, 1 << 23, 10, &tids, &n_tids), CP_PROC_GONE);
    cp_root_done(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_comm_is_safe), cmocka_unit_test(a_huge_comm_is_cut),
        cmocka_unit_test(truncated_stat),   cmocka_unit_test(malformed_stat),
        cmocka_unit_test(status_texts),     cmocka_unit_test(recorded_root),
        cmocka_unit_test(running_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
