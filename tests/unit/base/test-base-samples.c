/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPU lists and /proc texts as they came from the field (../shared/data/kernfs). */
#include "base/proc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SAMPLES "../shared/data/kernfs"

static char *read_sample(const char *name)
{
    struct cp_root root = {.fd = -1};
    char *text = NULL;

    assert_int_equal(cp_root_open(&root, SAMPLES), 0);
    assert_int_equal(cp_root_read_file(&root, name, 1 << 20, &text, NULL), 0);
    cp_root_done(&root);
    return text;
}

/* Takes the quotes off a JSON string whose only escape is a newline. */
static void unquote(const char *json, char *ret_text)
{
    for (json++; *json && *json != '"'; json++) {
        if (json[0] == '\\' && json[1] == 'n') {
            *ret_text++ = '\n';
            json++;
        } else {
            *ret_text++ = *json;
        }
    }
    *ret_text = '\0';
}

/*
 * The kernel's own vectors. We are stricter on purpose (empty ranges, white space within, strides
 * of nothing and the words "all" and "N" are refused) and never otherwise different; sizes of bit
 * maps do not exist here, so that the kernel's ERANGE has no counterpart below our own limit.
 */
static void kernel_vectors(void **state)
{
    _cleanup_free_ char *text = read_sample("cpulist-vectors-kernel.tsv");
    unsigned n_same = 0;
    char *rest = text;

    (void)state;
    for (char *line; (line = strsep(&rest, "\n"));) {
        _cleanup_cpumask_ struct cp_cpumask mask = {0};
        _cleanup_cpumask_ struct cp_cpumask expected = {0};
        char *input = strsep(&line, "\t");
        const char *result;
        char list[512];
        int r;

        if (input[0] != '"')
            continue;
        assert_non_null(strsep(&line, "\t"));
        result = strsep(&line, "\t");
        assert_non_null(result);
        assert_true(strlen(input) < sizeof(list));
        unquote(input, list);
        r = cp_cpumask_parse_list(list, &mask);
        if (strcmp(result, "EINVAL") == 0) {
            assert_int_equal(r, -EINVAL);
        } else if (strcmp(result, "EOVERFLOW") == 0) {
            assert_int_equal(r, -ERANGE);
        } else if (strcmp(result, "ERANGE") == 0 || strpbrk(list, " aAN") || strstr(list, ":0/") ||
                   strstr(list, ",,")) {
            continue;
        } else {
            if (strcmp(result, "(empty set)") != 0)
                assert_int_equal(cp_cpumask_parse_list(result, &expected), 0);
            assert_int_equal(r, 0);
            assert_true(cp_cpumask_equal(&mask, &expected));
        }
        n_same++;
    }
    assert_true(n_same >= 25);
}

/* A record whose signed and unsigned fields are at the ends of their ranges, the CPU among them:
 * such a CPU is refused; with a possible one the rest must be read. */
static void kernel_thread_stat(void **state)
{
    _cleanup_free_ char *text = read_sample("proc-pid-stat-26232");
    static const char impossible[] = " 9223372036854775807 0 0 0 0 ";
    struct cp_proc_stat stat;
    char *cpu = strstr(text, impossible);

    (void)state;
    assert_int_equal(cp_proc_parse_stat(text, &stat), -EBADMSG);
    assert_non_null(cpu);
    memmove(cpu + 2, cpu + strlen(" 9223372036854775807"),
            strlen(cpu + strlen(" 9223372036854775807")) + 1);
    cpu[1] = '3';
    assert_int_equal(cp_proc_parse_stat(text, &stat), 0);
    assert_int_equal(stat.id.tid, 33);
    assert_int_equal(stat.id.start_ticks, 5);
    assert_string_equal(stat.comm, "ata_sff");
    assert_true(stat.flags & CP_PF_KTHREAD);
    assert_true(stat.flags & CP_PF_NO_SETAFFINITY);
    assert_int_equal(stat.last_cpu, 3);
}

static void statuses(void **state)
{
    static const struct {
        const char *name;
        pid_t tgid;
        uint64_t rss_kib;
        const char *allowed;
    } table[] = {
        {"proc-pid-status-nspid", 26235, 42652, "0-7"},
        {"proc-pid-status-26231", 26231, 6716, "0-7"},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        _cleanup_free_ char *text = read_sample(table[i].name);
        _cleanup_free_ char *list = NULL;
        struct cp_proc_status status = {0};

        assert_int_equal(cp_proc_parse_status(text, &status), 0);
        list = cp_cpumask_to_list(&status.allowed);
        assert_int_equal(status.tgid, table[i].tgid);
        assert_int_equal(status.rss_kib, table[i].rss_kib);
        assert_string_equal(list, table[i].allowed);
        cp_proc_status_done(&status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_vectors),
        cmocka_unit_test(kernel_thread_stat),
        cmocka_unit_test(statuses),
    };

    if (access(SAMPLES, R_OK) != 0) {
        printf("skipped: " SAMPLES " is not here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
