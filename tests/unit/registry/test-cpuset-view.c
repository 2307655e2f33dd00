/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cpusets of tasks on recorded machines: v1, hybrid, v2, containers, strange mounts. */
#include "base/proc.h"
#include "registry/cpuset-view.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "recorded-root.h"

#define MOUNT(root, point, type, options)                                                          \
    "30 20 0:9 " root " " point " rw - " type " x " options "\n"

struct file {
    const char *path;
    const char *text; /* NULL: a directory */
};

#define MAX_FILES 8

struct machine_case {
    const char *name;
    const char *mountinfo;
    const char *cgroup; /* of task 7 */
    struct file files[MAX_FILES];
    enum cp_cpuset_kind kind;
    int result;
    const char *mount_point;
    const char *cpus;
};

static const struct machine_case machine_cases[] = {
    {"pure v1",
     MOUNT("/", "/sys/fs/cgroup/cpuset", "cgroup", "rw,cpuset"),
     "3:cpuset:/job\n2:cpu:/\n",
     {{"sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n"},
      {"sys/fs/cgroup/cpuset/job/cpuset.cpus", "0-3\n"},
      {"sys/fs/cgroup/cpuset/job/cpuset.effective_cpus", "0-2\n"}},
     CP_CPUSET_V1,
     0,
     "sys/fs/cgroup/cpuset",
     "0-2"},
    {"v1 of an old kernel, controllers together",
     MOUNT("/", "/cgroup/all", "cgroup", "rw,cpuset,cpu,cpuacct"),
     "1:cpu,cpuset,cpuacct:/a\n",
     {{"cgroup/all/cpuset.cpus", "0-7\n"}, {"cgroup/all/a/cpuset.cpus", "4-5\n"}},
     CP_CPUSET_V1,
     0,
     "cgroup/all",
     "4-5"},
    {"v1 with noprefix",
     MOUNT("/", "/dev/cpuset", "cgroup", "rw,cpuset,noprefix"),
     "1:cpuset:/a\n",
     {{"dev/cpuset/cpus", "0-7\n"},
      {"dev/cpuset/a/cpus", "0-3\n"},
      {"dev/cpuset/a/effective_cpus", "1\n"}},
     CP_CPUSET_V1,
     0,
     "dev/cpuset",
     "1"},
    {"hybrid: cpuset on v1, another path on v2",
     MOUNT("/", "/sys/fs/cgroup/unified", "cgroup2", "rw")
         MOUNT("/", "/sys/fs/cgroup/cpuset", "cgroup", "rw,cpuset"),
     "4:cpuset:/\n0::/user.slice/a.scope\n",
     {{"sys/fs/cgroup/unified/cgroup.controllers", "\n"},
      {"sys/fs/cgroup/cpuset/cpuset.cpus", "0-1\n"},
      {"sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n"}},
     CP_CPUSET_V1,
     0,
     "sys/fs/cgroup/cpuset",
     "0-1"},
    {"v1 wins though v2 comes first and lists the controller",
     MOUNT("/", "/a", "cgroup2", "rw") MOUNT("/x", "/b", "cgroup", "rw,cpuset"),
     "1:cpuset:/x/y\n0::/\n",
     {{"a/cgroup.controllers", "cpuset\n"},
      {"b/cpuset.cpus", "0\n"},
      {"b/y/cpuset.effective_cpus", "5\n"}},
     CP_CPUSET_V1,
     0,
     "b",
     "5"},
    {"pure v2",
     MOUNT("/", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate"),
     "0::/a.slice/b\n",
     {{"sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n"},
      {"sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"},
      {"sys/fs/cgroup/a.slice/cpuset.cpus.effective", "0-3\n"},
      {"sys/fs/cgroup/a.slice/b/cpuset.cpus.effective", "2\n"}},
     CP_CPUSET_V2,
     0,
     "sys/fs/cgroup",
     "2"},
    {"v2, the nearest upwards",
     MOUNT("/", "/sys/fs/cgroup", "cgroup2", "rw"),
     "0::/a/b/c\n",
     {{"sys/fs/cgroup/cgroup.controllers", "cpu cpuset\n"},
      {"sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"},
      {"sys/fs/cgroup/a/cpuset.cpus.effective", "0-3\n"},
      {"sys/fs/cgroup/a/b/c", NULL}},
     CP_CPUSET_V2,
     0,
     "sys/fs/cgroup",
     "0-3"},
    {"v2, up to the root cgroup",
     MOUNT("/", "/sys/fs/cgroup", "cgroup2", "rw"),
     "0::/a\n",
     {{"sys/fs/cgroup/cgroup.controllers", "cpuset"},
      {"sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"},
      {"sys/fs/cgroup/a", NULL}},
     CP_CPUSET_V2,
     0,
     "sys/fs/cgroup",
     "0-7"},
    {"v2, the task in the root cgroup",
     MOUNT("/", "/sys/fs/cgroup", "cgroup2", "rw"),
     "0::/\n",
     {{"sys/fs/cgroup/cgroup.controllers", "cpuset"},
      {"sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"}},
     CP_CPUSET_V2,
     0,
     "sys/fs/cgroup",
     "0-7"},
    {"v2 without any file of the controller",
     MOUNT("/", "/c", "cgroup2", "rw"),
     "0::/a\n",
     {{"c/cgroup.controllers", "cpuset"}, {"c/a", NULL}},
     CP_CPUSET_V2,
     CP_CPUSET_UNLIMITED,
     "c",
     NULL},
    {"v2, the cgroup went",
     MOUNT("/", "/c", "cgroup2", "rw"),
     "0::/a/b (deleted)\n",
     {{"c/cgroup.controllers", "cpuset"}, {"c/cpuset.cpus.effective", "0-7\n"}, {"c/a", NULL}},
     CP_CPUSET_V2,
     CP_PROC_GONE,
     "c",
     NULL},
    {"v2 without the controller: a word that only looks like it",
     MOUNT("/", "/c", "cgroup2", "rw"),
     "0::/\n",
     {{"c/cgroup.controllers", "cpu cpusets xcpuset memory\n"}},
     CP_CPUSET_ABSENT,
     CP_CPUSET_UNLIMITED,
     NULL,
     NULL},
    {"no cgroups",
     MOUNT("/", "/", "ext4", "rw"),
     "",
     {{NULL, NULL}},
     CP_CPUSET_ABSENT,
     CP_CPUSET_UNLIMITED,
     NULL,
     NULL},
    {"other v1 controllers, a name and an agent that only look like it",
     MOUNT("/", "/a", "cgroup", "rw,name=cpuset")
         MOUNT("/", "/b", "cgroup", "rw,memory,release_agent=/x\\054cpuset")
             MOUNT("/", "/c", "tmpfs", "rw,cpuset"),
     "1:name=cpuset:/\n2:memory:/\n",
     {{"a/cpuset.cpus", "0\n"}, {"b/cpuset.cpus", "0\n"}, {"c/cpuset.cpus", "0\n"}},
     CP_CPUSET_ABSENT,
     CP_CPUSET_UNLIMITED,
     NULL,
     NULL},
    {"blanks and a backslash in the mount point",
     MOUNT("/", "/my\\040cg\\134x", "cgroup", "rw,cpuset"),
     "1:cpuset:/\n",
     {{"my cg\\x/cpuset.cpus", "0-1\n"}},
     CP_CPUSET_V1,
     0,
     "my cg\\x",
     "0-1"},
    {"a bind mount of one cgroup and the whole tree: the whole wins",
     MOUNT("/docker", "/a", "cgroup", "rw,cpuset") MOUNT("/", "/b", "cgroup", "rw,cpuset"),
     "1:cpuset:/sys\n",
     {{"a/cpuset.cpus", "0\n"}, {"b/cpuset.cpus", "0-3\n"}, {"b/sys/cpuset.cpus", "2-3\n"}},
     CP_CPUSET_V1,
     0,
     "b",
     "2-3"},
    {"a single file mounted",
     MOUNT("/d/cpuset.cpus", "/f", "cgroup", "rw,cpuset") MOUNT("/d", "/a", "cgroup", "rw,cpuset"),
     "1:cpuset:/d\n",
     {{"f", "0-7\n"}, {"a/cpuset.cpus", "3\n"}},
     CP_CPUSET_V1,
     0,
     "a",
     "3"},
    {"a mount hidden by another",
     MOUNT("/", "/a", "cgroup", "rw,cpuset") MOUNT("/", "/b", "cgroup2", "rw"),
     "1:cpuset:/\n0::/\n",
     {{"a/other", ""}, {"b/cgroup.controllers", "cpuset\n"}, {"b/cpuset.cpus.effective", "6\n"}},
     CP_CPUSET_V2,
     0,
     "b",
     "6"},
    {"v2 mounted over v1",
     MOUNT("/", "/a", "cgroup", "rw,cpuset") MOUNT("/", "/a", "cgroup2", "rw"),
     "0::/x\n",
     {{"a/cgroup.controllers", "cpuset\n"},
      {"a/x/cpuset.cpus", "0\n"},
      {"a/x/cpuset.cpus.effective", "6\n"}},
     CP_CPUSET_V2,
     0,
     "a",
     "6"},
    {"inside a container of v1: the mount shows our own cgroup",
     MOUNT("/docker/0abc", "/sys/fs/cgroup/cpuset", "cgroup", "ro,cpuset"),
     "9:cpuset:/docker/0abc\n",
     {{"sys/fs/cgroup/cpuset/cpuset.cpus", "1-2\n"}},
     CP_CPUSET_V1,
     0,
     "sys/fs/cgroup/cpuset",
     "1-2"},
    {"a task below it",
     MOUNT("/docker/0abc", "/c", "cgroup", "rw,cpuset"),
     "9:cpuset:/docker/0abc/in\n",
     {{"c/cpuset.cpus", "1-2\n"}, {"c/in/cpuset.effective_cpus", "2\n"}},
     CP_CPUSET_V1,
     0,
     "c",
     "2"},
    {"a task of another container",
     MOUNT("/docker/0abc", "/c", "cgroup", "rw,cpuset"),
     "9:cpuset:/docker/0abcd\n",
     {{"c/cpuset.cpus", "1-2\n"}},
     CP_CPUSET_V1,
     -EXDEV,
     "c",
     NULL},
    {"a task above our cgroup namespace",
     MOUNT("/", "/c", "cgroup2", "rw"),
     "0::/../../etc\n",
     {{"c/cgroup.controllers", "cpuset\n"}, {"etc/cpuset.cpus.effective", "1\n"}},
     CP_CPUSET_V2,
     -EXDEV,
     "c",
     NULL},
    {"a mount above our cgroup namespace",
     MOUNT("/..", "/c", "cgroup2", "rw"),
     "0::/../b\n",
     {{"c/cgroup.controllers", "cpuset\n"}, {"c/b/cpuset.cpus.effective", "1\n"}},
     CP_CPUSET_V2,
     0,
     "c",
     "1"},
    {"dots that are names",
     MOUNT("/", "/c", "cgroup2", "rw"),
     "0::/..a/.../b..\n",
     {{"c/cgroup.controllers", "cpuset\n"}, {"c/..a/.../b../cpuset.cpus.effective", "1\n"}},
     CP_CPUSET_V2,
     0,
     "c",
     "1"},
    {"colons and blanks in the path",
     MOUNT("/", "/c", "cgroup2", "rw"),
     "0::/sshd@1-10.2.0.1:22-x y:1.service\n",
     {{"c/cgroup.controllers", "cpuset\n"},
      {"c/sshd@1-10.2.0.1:22-x y:1.service/cpuset.cpus.effective", "1\n"}},
     CP_CPUSET_V2,
     0,
     "c",
     "1"},
    {"a v1 task whose hierarchy is not listed",
     MOUNT("/", "/c", "cgroup", "rw,cpuset"),
     "2:memory:/\n",
     {{"c/cpuset.cpus", "1\n"}},
     CP_CPUSET_V1,
     CP_CPUSET_UNLIMITED,
     "c",
     NULL},
    {"v1, the cgroup went",
     MOUNT("/", "/c", "cgroup", "rw,cpuset"),
     "2:cpuset:/a\n",
     {{"c/cpuset.cpus", "1\n"}},
     CP_CPUSET_V1,
     CP_PROC_GONE,
     "c",
     NULL},
    {"nonsense in the file",
     MOUNT("/", "/c", "cgroup", "rw,cpuset"),
     "2:cpuset:/\n",
     {{"c/cpuset.cpus", "0-x\n"}},
     CP_CPUSET_V1,
     -EBADMSG,
     "c",
     NULL},
};

static void machines(void **state)
{
    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(machine_cases); i++) {
        const struct machine_case *c = &machine_cases[i];
        struct recorded_root recorded;
        struct cp_cpuset_mount mount = {0};
        struct cp_cpumask cpus = {0};
        int r;

        recorded_root_make(&recorded);
        recorded_root_write(&recorded, "proc/self/mountinfo", c->mountinfo);
        recorded_root_write(&recorded, "proc/7/cgroup", c->cgroup);
        for (size_t k = 0; k < MAX_FILES && c->files[k].path; k++) {
            if (c->files[k].text)
                recorded_root_write(&recorded, c->files[k].path, c->files[k].text);
            else
                recorded_root_mkdir(&recorded, c->files[k].path);
        }
        assert_int_equal(cp_cpuset_find_mount(&recorded.root, &mount), 0);
        if (mount.kind != c->kind)
            print_error("%s: kind %d\n", c->name, mount.kind);
        assert_int_equal(mount.kind, c->kind);
        if (c->mount_point)
            assert_string_equal(mount.mount_point, c->mount_point);
        else
            assert_null(mount.mount_point);
        r = cp_cpuset_effective(&recorded.root, &mount, 7, &cpus);
        if (r != c->result)
            print_error("%s: gave %d\n", c->name, r);
        assert_int_equal(r, c->result);
        if (r == 0) {
            char *list = cp_cpumask_to_list(&cpus);

            assert_string_equal(list, c->cpus);
            free(list);
        } else {
            assert_true(cp_cpumask_is_empty(&cpus));
        }
        if (c->kind != CP_CPUSET_ABSENT)
            assert_int_equal(cp_cpuset_effective(&recorded.root, &mount, 8, &cpus), CP_PROC_GONE);
        cp_cpumask_done(&cpus);
        cp_cpuset_mount_done(&mount);
        recorded_root_remove(&recorded);
    }
}

static void unreadable_mountinfo(void **state)
{
    struct recorded_root recorded;
    struct cp_cpuset_mount mount = {.kind = CP_CPUSET_V2};

    (void)state;
    recorded_root_make(&recorded);
    assert_int_equal(cp_cpuset_find_mount(&recorded.root, &mount), -ENOENT);
    recorded_root_write(&recorded, "proc/self/mountinfo", "not a mountinfo\n");
    assert_int_equal(cp_cpuset_find_mount(&recorded.root, &mount), -EBADMSG);
    assert_int_equal(mount.kind, CP_CPUSET_V2);
    assert_null(mount.mount_point);
    recorded_root_remove(&recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines),
        cmocka_unit_test(unreadable_mountinfo),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
