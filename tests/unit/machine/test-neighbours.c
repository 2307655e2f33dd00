/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Others that place tasks, as their files would say it: recorded roots made by the test. */
#include "machine/neighbours.h"

#include "base/root.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct file {
    const char *path;
    const char *text;
};

/* Makes each folder of a path below root, then the file. */
static void write_file(const char *root, const struct file *file)
{
    char path[512];
    FILE *stream;

    (void)snprintf(path, sizeof(path), "%s/%s", root, file->path);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    stream = fopen(path, "we");
    assert_non_null(stream);
    assert_true(fputs(file->text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
}

static struct cp_neighbours detect(const struct file *files, size_t n_files)
{
    char folder[] = "/tmp/coplace-neighbours-XXXXXX";
    char command[128];
    struct cp_neighbours found;
    struct cp_root root;

    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < n_files; i++)
        write_file(folder, &files[i]);
    assert_int_equal(cp_root_open(&root, folder), 0);
    cp_neighbours_detect(&root, &found);
    cp_root_done(&root);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a path of our own */
    return found;
}

static void test_an_empty_machine_has_none(void **state)
{
    struct cp_neighbours found = detect(NULL, 0);

    (void)state;
    assert_false(found.sched_ext);
    assert_false(found.cache_aware);
    assert_false(found.kubelet_static);
    assert_int_equal(found.n_texts, 0);
}

static void test_a_loaded_sched_ext_scheduler_is_named(void **state)
{
    const struct file files[] = {
        {"sys/kernel/sched_ext/state", "enabled\n"},
        {"sys/kernel/sched_ext/root/ops", "layered_1.0\n"},
    };
    struct cp_neighbours found = detect(files, 2);

    (void)state;
    assert_true(found.sched_ext);
    assert_string_equal(found.sched_ext_name, "layered_1.0");
    assert_non_null(strstr(found.texts[0], "layered_1.0"));
}

static void test_sched_ext_without_a_scheduler_does_not_count(void **state)
{
    const struct file files[] = {{"sys/kernel/sched_ext/state", "disabled\n"}};

    (void)state;
    assert_false(detect(files, 1).sched_ext);
}

static void test_cache_aware_scheduling_counts_when_it_is_on(void **state)
{
    const struct file on[] = {{"sys/kernel/debug/sched/llc_balancing/enabled", "Y\n"}};
    const struct file off[] = {{"sys/kernel/debug/sched/llc_balancing/enabled", "N\n"}};

    (void)state;
    assert_true(detect(on, 1).cache_aware);
    assert_false(detect(off, 1).cache_aware);
}

static void test_only_the_static_kubelet_policy_counts(void **state)
{
    const struct file with[] = {{"var/lib/kubelet/cpu_manager_state",
                                 "{\"policyName\":\"static\",\"defaultCpuSet\":\"0-3\"}"}};
    const struct file without[] = {
        {"var/lib/kubelet/cpu_manager_state", "{\"policyName\":\"none\",\"defaultCpuSet\":\"\"}"}};

    (void)state;
    assert_true(detect(with, 1).kubelet_static);
    assert_false(detect(without, 1).kubelet_static);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_machine_has_none),
        cmocka_unit_test(test_a_loaded_sched_ext_scheduler_is_named),
        cmocka_unit_test(test_sched_ext_without_a_scheduler_does_not_count),
        cmocka_unit_test(test_cache_aware_scheduling_counts_when_it_is_on),
        cmocka_unit_test(test_only_the_static_kubelet_policy_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
