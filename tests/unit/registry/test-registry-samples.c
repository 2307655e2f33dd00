/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mount tables and cgroup files as they came from the field (../shared/data/kernfs). */
#include "base/proc.h"
#include "registry/cpuset-view.h"
#include "registry/mountinfo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "recorded-root.h"

#define SAMPLES "../shared/data/kernfs"
#define SCOPE                                                                                      \
    "/system.slice/docker-dc4eaa1a34ec4d593bc0125d31eea823a1d76ae483aeb1409cca80304e34da2e.scope"

static char *read_sample(const char *name)
{
    struct cp_root root = {.fd = -1};
    char *text = NULL;

    assert_int_equal(cp_root_open(&root, SAMPLES), 0);
    assert_int_equal(cp_root_read_file(&root, name, 1 << 20, &text, NULL), 0);
    cp_root_done(&root);
    return text;
}

static void every_line_is_read(void **state)
{
    static const char *const names[] = {
        "mountinfo-fedora-hybrid",   "mountinfo-systemd-aufs-container",
        "mountinfo-cgroup2-unified", "mountinfo-docker-v1-rootdocker",
        "proc-pid-mountinfo-nfs",    "ul-mountinfo",
        "ul-mountinfo_btrfs",        "ul-mountinfo-nonroot",
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(names); i++) {
        char *text = read_sample(names[i]);
        char *rest = text;
        struct cp_mountinfo_entry entry;
        unsigned n_expected = 0;
        unsigned n = 0;
        int r;

        for (const char *at = text; (at = strstr(at, " - ")); at++)
            n_expected++;
        while ((r = cp_mountinfo_next(&rest, &entry)) == 0) {
            assert_int_equal(entry.mount_point[0], '/');
            n++;
        }
        if (r != CP_MOUNTINFO_END || n != n_expected)
            print_error("%s: %d behind %u lines\n", names[i], r, n);
        assert_int_equal(r, CP_MOUNTINFO_END);
        assert_int_equal(n, n_expected);
        assert_true(n >= 8);
        free(text);
    }
}

static void the_cpuset_of_a_task_is_found(void **state)
{
    static const struct {
        const char *name;
        const char *cgroup;
        const char *directory; /* where the files of the task's cpuset are */
        enum cp_cpuset_kind kind;
        int result;
    } table[] = {
        {"mountinfo-fedora-hybrid", "5:cpuset:/a b\n", "sys/fs/cgroup/cpuset/a b", CP_CPUSET_V1, 0},
        {"mountinfo-systemd-aufs-container", "5:cpuset:" SCOPE "\n", "sys/fs/cgroup/cpuset",
         CP_CPUSET_V1, 0},
        {"mountinfo-systemd-aufs-container", "5:cpuset:" SCOPE "/in\n", "sys/fs/cgroup/cpuset/in",
         CP_CPUSET_V1, 0},
        {"mountinfo-systemd-aufs-container", "5:cpuset:/\n", "sys/fs/cgroup/cpuset", CP_CPUSET_V1,
         -EXDEV},
        {"mountinfo-cgroup2-unified", "5:cpuset:/x\n", "sys/fs/cgroup/cpuset/x", CP_CPUSET_V1, 0},
        {"mountinfo-docker-v1-rootdocker", "5:cpuset:/docker\n", "sys/fs/cgroup/cpuset/docker",
         CP_CPUSET_V1, 0},
        {"ul-mountinfo", "5:cpuset:/\n", "sys/fs/cgroup/cpuset", CP_CPUSET_V1, 0},
        {"ul-mountinfo-nonroot", "5:cpuset:/\n", "sys/fs/cgroup/cpuset", CP_CPUSET_V1, 0},
        {"proc-pid-mountinfo-nfs", "0::/\n", "x", CP_CPUSET_ABSENT, CP_CPUSET_UNLIMITED},
        {"ul-mountinfo_btrfs", "0::/\n", "x", CP_CPUSET_ABSENT, CP_CPUSET_UNLIMITED},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct recorded_root recorded;
        struct cp_cpuset_mount mount = {0};
        struct cp_cpumask cpus = {0};
        char *mountinfo = read_sample(table[i].name);
        char path[512];
        int r;

        recorded_root_make(&recorded);
        recorded_root_write(&recorded, "proc/self/mountinfo", mountinfo);
        recorded_root_write(&recorded, "proc/7/cgroup", table[i].cgroup);
        if (table[i].kind == CP_CPUSET_V1)
            recorded_root_write(&recorded, "sys/fs/cgroup/cpuset/cpuset.cpus", "0-63\n");
        (void)snprintf(path, sizeof(path), "%s/cpuset.effective_cpus", table[i].directory);
        recorded_root_write(&recorded, path, "3\n");
        assert_int_equal(cp_cpuset_find_mount(&recorded.root, &mount), 0);
        assert_int_equal(mount.kind, table[i].kind);
        r = cp_cpuset_effective(&recorded.root, &mount, 7, &cpus);
        if (r != table[i].result)
            print_error("%s, %s: %d\n", table[i].name, table[i].cgroup, r);
        assert_int_equal(r, table[i].result);
        assert_int_equal(cp_cpumask_weight(&cpus), r == 0 ? 1 : 0);
        cp_cpumask_done(&cpus);
        cp_cpuset_mount_done(&mount);
        recorded_root_remove(&recorded);
        free(mountinfo);
    }
}

/* Every recorded line of v2 leads to its directory, or is told to lie outside. */
static void cgroup_lines(void **state)
{
    char *text = read_sample("proc-pid-cgroup-lines.tsv");
    unsigned n = 0;
    char *rest = text;

    (void)state;
    for (char *line; (line = strsep(&rest, "\n"));) {
        struct recorded_root recorded;
        struct cp_cpuset_mount mount = {0};
        struct cp_cpumask cpus = {0};
        char path[512];
        bool outside;
        int r;

        line[strcspn(line, "\t")] = '\0';
        if (strncmp(line, "0::", 3) != 0)
            continue;
        outside = strncmp(line, "0::/..", 6) == 0;
        recorded_root_make(&recorded);
        recorded_root_write(&recorded, "proc/self/mountinfo",
                            "1 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n");
        recorded_root_write(&recorded, "proc/7/cgroup", line);
        recorded_root_write(&recorded, "cg/cgroup.controllers", "cpuset\n");
        recorded_root_write(&recorded, "cg/cpuset.cpus.effective", "0-9\n");
        assert_int_equal(cp_cpuset_find_mount(&recorded.root, &mount), 0);
        if (!outside && line[4]) {
            assert_int_equal(cp_cpuset_effective(&recorded.root, &mount, 7, &cpus), CP_PROC_GONE);
            (void)snprintf(path, sizeof(path), "cg%s/cpuset.cpus.effective", line + 3);
            recorded_root_write(&recorded, path, "5\n");
        }
        r = cp_cpuset_effective(&recorded.root, &mount, 7, &cpus);
        assert_int_equal(r, outside ? -EXDEV : 0);
        if (!outside)
            assert_int_equal(cp_cpumask_weight(&cpus), line[4] ? 1 : 10);
        n++;
        cp_cpumask_done(&cpus);
        cp_cpuset_mount_done(&mount);
        recorded_root_remove(&recorded);
    }
    assert_int_equal(n, 7);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_is_read),
        cmocka_unit_test(the_cpuset_of_a_task_is_found),
        cmocka_unit_test(cgroup_lines),
    };

    if (access(SAMPLES, R_OK) != 0) {
        printf("skipped: " SAMPLES " is not here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
