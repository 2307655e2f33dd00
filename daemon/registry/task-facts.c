/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Facts of one task, read fresh. Decides nothing, keeps nothing, changes nothing. */
#include "registry/task-facts.h"

#include "base/cleanup.h"
#include "registry/cpuset-view.h"
#include "registry/numa-maps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void cp_task_facts_done(struct cp_task_facts *facts)
{
    cp_cpumask_done(&facts->allowed);
    cp_cpumask_done(&facts->cpuset);
    *facts = (struct cp_task_facts){0};
}

static int facts_error(struct cp_error *error, int r, struct cp_task_id task, const char *what)
{
    return cp_error_set(error, -r, "cannot read the %s of task %d: %s", what, task.tid,
                        strerror(-r));
}

/* Takes what the stat file says. 0, CP_PROC_GONE. */
static int read_stat(const struct cp_root *root, struct cp_task_id task, uint64_t now_ns,
                     struct cp_task_facts *facts, struct cp_error *error)
{
    struct cp_proc_stat stat;
    uint64_t start_ns = task.start_ticks * CP_NS_PER_TICK;
    int r = cp_proc_read_stat(root, task.tid, &stat);

    if (r < 0)
        return facts_error(error, r, task, "state");
    if (r == CP_PROC_GONE || !cp_task_id_equal(stat.id, task) || (stat.flags & CP_PF_EXITING) != 0)
        return CP_PROC_GONE;
    facts->id = task;
    (void)snprintf(facts->comm, sizeof(facts->comm), "%.*s", (int)sizeof(facts->comm) - 1,
                   stat.comm);
    facts->pf_flags = stat.flags;
    facts->sched_policy = stat.policy;
    facts->age_ns = now_ns > start_ns ? now_ns - start_ns : 0;
    facts->last_cpu = (struct cp_cpu){(unsigned)stat.last_cpu};
    return 0;
}

static int read_cpuset(const struct cp_root *root, const struct cp_machine *machine,
                       struct cp_task_facts *facts, struct cp_error *error)
{
    _cleanup_(cp_cpuset_mount_done) struct cp_cpuset_mount mount = {0};
    int r = cp_cpuset_find_mount(root, &mount);

    if (r >= 0)
        r = cp_cpuset_effective(root, &mount, facts->id.tid, &facts->cpuset);
    if (r == CP_CPUSET_UNLIMITED)
        r = cp_cpumask_copy(&facts->cpuset, &machine->online);
    if (r == -EXDEV)
        return cp_error_set(error, EXDEV,
                            "the cgroup of task %d lies outside of what %s shows: run coplaced "
                            "outside of containers",
                            facts->id.tid, mount.mount_point);
    return r < 0 ? facts_error(error, r, facts->id, "cpuset") : r;
}

/*
 * Where the kernel cannot tell: a mask that was never set is the whole cpuset. Boots with isolcpus=
 * take the isolated CPUs from every task's first mask, though cpusets still list them, so that
 * only what is missing beyond those tells of a user.
 */
static int guess_user_mask(const struct cp_machine *machine, struct cp_task_facts *facts)
{
    _cleanup_cpumask_ struct cp_cpumask full = {0};
    _cleanup_cpumask_ struct cp_cpumask now = {0};
    _cleanup_cpumask_ struct cp_cpumask missing = {0};
    int r = cp_cpumask_and(&full, &facts->cpuset, &machine->online);

    if (r == 0)
        r = cp_cpumask_and(&now, &facts->allowed, &machine->online);
    if (r == 0)
        r = cp_cpumask_andnot(&missing, &full, &now);
    if (r < 0)
        return r;
    facts->user_mask =
        cp_cpumask_is_subset(&now, &full) && cp_cpumask_is_subset(&missing, &machine->isolated)
            ? CP_USER_MASK_NONE
            : CP_USER_MASK_SET;
    return 0;
}

static int read_user_mask(const struct cp_machine *machine, struct cp_wake_source *wake,
                          struct cp_task_facts *facts, struct cp_error *error)
{
    struct cp_wake_task_facts kernel = {0};
    int r = wake ? wake->ops->task_facts(wake, facts->id, &kernel) : -EOPNOTSUPP;

    if (r == 0 && kernel.user_mask_known) {
        facts->user_mask = kernel.has_user_mask && !kernel.user_mask_is_everywhere
                               ? CP_USER_MASK_SET
                               : CP_USER_MASK_NONE;
        return 0;
    }
    if (r == 0 || r == -EOPNOTSUPP)
        r = guess_user_mask(machine, facts);
    return r < 0 ? facts_error(error, r, facts->id, "user mask") : r;
}

static uint32_t node_of(const struct cp_machine *machine, struct cp_cpu cpu)
{
    const struct cp_machine_cpu *record = cp_machine_find_cpu(machine, cpu);

    return record ? record->domain[CP_LEVEL_NODE] : CP_DOMAIN_NONE;
}

/* Fills home_node from where the task was found, and better from its memory. That the memory
 * cannot be read (a kernel thread, no NUMA in the kernel, a process that ended) is no failure. */
static int read_home_node(const struct cp_root *root, const struct cp_machine *machine,
                          struct cp_task_facts *facts)
{
    _cleanup_free_ uint64_t *kib = NULL;
    uint32_t found = node_of(machine, facts->last_cpu);
    uint32_t best = CP_DOMAIN_NONE;
    uint64_t most = 0;

    facts->home_node = found;
    facts->home_node_measured = false;
    if (machine->n_domains[CP_LEVEL_NODE] < 2)
        return 0;
    kib = calloc(CP_NUMA_NODE_LIMIT, sizeof(*kib));
    if (!kib)
        return -ENOMEM;
    if (cp_numa_maps_read(root, facts->tgid, kib) < 0)
        return 0;
    for (uint32_t i = 0; i < machine->n_domains[CP_LEVEL_NODE]; i++) {
        unsigned os = machine->domains[CP_LEVEL_NODE][i].os_index;
        uint64_t here = os < CP_NUMA_NODE_LIMIT ? kib[os] : 0;

        if (here > most || (here == most && here > 0 && i == found)) {
            most = here;
            best = i;
        }
    }
    if (best != CP_DOMAIN_NONE) {
        facts->home_node = best;
        facts->home_node_measured = true;
    }
    return 0;
}

int cp_task_facts_read(const struct cp_root *root, const struct cp_machine *machine,
                       struct cp_wake_source *wake, struct cp_task_id task, uint64_t now_ns,
                       struct cp_task_facts *ret_facts, struct cp_error *error)
{
    _cleanup_(cp_task_facts_done) struct cp_task_facts facts = {0};
    struct cp_proc_status status = {0};
    struct cp_proc_stat again;
    int r = read_stat(root, task, now_ns, &facts, error);

    if (r != 0)
        return r;
    r = cp_proc_read_status(root, task.tid, &status);
    if (r != 0)
        return r < 0 ? facts_error(error, r, task, "status") : r;
    facts.tgid = status.tgid;
    facts.uid = status.uid;
    facts.rss_kib = status.rss_kib;
    facts.allowed = status.allowed;
    r = read_cpuset(root, machine, &facts, error);
    if (r != 0)
        return r;
    r = read_user_mask(machine, wake, &facts, error);
    if (r != 0)
        return r;
    r = read_home_node(root, machine, &facts);
    if (r < 0)
        return facts_error(error, r, task, "memory");
    /* All of it was of this task only if the TID is still the same task's. */
    r = cp_proc_read_stat(root, task.tid, &again);
    if (r < 0)
        return facts_error(error, r, task, "state");
    if (r == CP_PROC_GONE || !cp_task_id_equal(again.id, task))
        return CP_PROC_GONE;
    *ret_facts = facts;
    facts = (struct cp_task_facts){0};
    return 0;
}
