/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The CPUs that a task's cpuset lets it use, found through /proc/TID/cgroup and the mount of the
 * cpuset controller in /proc/self/mountinfo: pure v1, hybrid (cpuset on v1), pure v2, several or
 * foreign mounts. Paths are never guessed. Reads only.
 */
#pragma once

#include "base/cpumask.h"
#include "base/error.h"
#include "base/root.h"

#include <sys/types.h>

enum cp_cpuset_kind {
    CP_CPUSET_ABSENT, /* no cpuset controller is mounted */
    CP_CPUSET_V1,
    CP_CPUSET_V2,
};

struct cp_cpuset_mount {
    enum cp_cpuset_kind kind;
    char *mount_point; /* owned, relative to the root ("sys/fs/cgroup/cpuset"); NULL if absent */
    char *
        mount_root; /* owned: the cgroup that the mount shows ("/" in most cases); NULL if absent */
};

void cp_cpuset_mount_done(struct cp_cpuset_mount *mount);

/*
 * Finds the mount in proc/self/mountinfo. The cpuset controller's v1 mount wins over a v2 mount;
 * on v2 the mount is taken if cgroup.controllers of the mount has cpuset. Of several the one that
 * shows the root cgroup wins. Mounts that are hidden by others, or are a single file, are passed
 * over. 0 also when there is none (kind is CP_CPUSET_ABSENT); -ENOMEM, -EBADMSG, or the errno of
 * reading mountinfo.
 */
int cp_cpuset_find_mount(const struct cp_root *root, struct cp_cpuset_mount *ret_mount);

/*
 * The effective CPUs of the task's cpuset: v1 cpuset.effective_cpus (cpuset.cpus where an old
 * kernel lacks it), v2 cpuset.cpus.effective of the nearest cgroup upwards that has the file.
 * 0; CP_PROC_GONE (the task or its cgroup went: ENOENT, ENODEV, ESRCH); 2 = CP_CPUSET_UNLIMITED:
 * no cpuset applies; -EXDEV: the task's cgroup lies outside of what the mount shows (we run in a
 * container, the task does not); -EBADMSG, other negative errno. *ret_cpus must be a valid set.
 */
#define CP_CPUSET_UNLIMITED 2
int cp_cpuset_effective(const struct cp_root *root, const struct cp_cpuset_mount *mount, pid_t tid,
                        struct cp_cpumask *ret_cpus);
