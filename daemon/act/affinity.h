/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The live actuator's own parts. Private to act/. */
#pragma once

#include "act/give-back.h"
#include "act/held.h"
#include "wake/wake.h"

struct cp_affinity {
    struct cp_actuator actuator;
    struct cp_act_context context;
    struct cp_machine *machine;  /* referenced */
    struct cp_wake_source *wake; /* borrowed; NULL: nothing is guarded */
    struct cp_journal *journal;  /* borrowed */
    struct cp_held_set held;
    struct cp_act_held found; /* what find() lends */
};

static inline struct cp_affinity *cp_affinity_of(struct cp_actuator *actuator)
{
    return (struct cp_affinity *)(void *)((char *)actuator -
                                          offsetof(struct cp_affinity, actuator));
}

/* 0 also where the source cannot guard; CP_PROC_GONE; negative errno. */
int cp_affinity_guard(struct cp_affinity *affinity, struct cp_task_id task);
void cp_affinity_unguard(struct cp_affinity *affinity, struct cp_task_id task);
/* The task's mask is no longer ours: journal, guard and account say so. */
void cp_affinity_drop(struct cp_affinity *affinity, struct cp_task_id task);

/* place() of struct cp_actuator_ops. */
int cp_affinity_place(struct cp_actuator *actuator, uint64_t decision,
                      const struct cp_cpumask *target, struct cp_act_change *changes,
                      size_t n_changes, struct cp_error *error);
