/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What may be known of a task before it is placed: owner, kind, masks, memory. Read fresh from the
 * kernel for the few tasks that are candidates. Decides nothing: plan does.
 */
#pragma once

#include "base/cpumask.h"
#include "base/error.h"
#include "base/proc.h"
#include "base/root.h"
#include "machine/machine.h"
#include "wake/wake.h"

#include <stdbool.h>
#include <stdint.h>

enum cp_user_mask {
    CP_USER_MASK_NONE, /* it has none, or one of all possible CPUs (isolated ones aside) */
    CP_USER_MASK_SET,  /* it has one (also one as wide as its cpuset is now) */
};

struct cp_task_facts {
    struct cp_task_id id;
    pid_t tgid;
    uid_t uid; /* real */
    char comm[CP_COMM_SIZE];
    uint32_t pf_flags;     /* CP_PF_* */
    unsigned sched_policy; /* SCHED_OTHER … of sched(7) */
    uint64_t age_ns;
    struct cp_cpu last_cpu;
    uint64_t rss_kib;
    struct cp_cpumask allowed; /* its mask now, offline CPUs included */
    struct cp_cpumask cpuset;  /* effective CPUs of its cpuset; all online where no cpuset exists */
    enum cp_user_mask user_mask;
    uint32_t home_node;      /* index in domains[NODE] holding most of its memory, or the node it
                                was found on when that is unknown; CP_DOMAIN_NONE: no nodes */
    bool home_node_measured; /* from its memory, not from where it was found */
};

void cp_task_facts_done(struct cp_task_facts *facts);

/*
 * Reads the facts of a task. The user mask comes from the wake source (user_cpus_ptr); where it
 * cannot tell, a mask that differs from the cpuset counts as one, but for isolated CPUs: the boot
 * takes these from every task. Memory by node is read from /proc/TGID/numa_maps only on machines
 * with several nodes, at most 4 MiB of it; the largest share wins, of equal ones the node it was
 * found on.
 * 0; CP_PROC_GONE: no such task, or its start time is another one; negative errno with *error.
 * *ret_facts is unchanged unless 0.
 * Blocks for the reads (tens of microseconds; milliseconds for numa_maps of huge processes).
 */
int cp_task_facts_read(const struct cp_root *root, const struct cp_machine *machine,
                       struct cp_wake_source *wake, struct cp_task_id task, uint64_t now_ns,
                       struct cp_task_facts *ret_facts, struct cp_error *error);
