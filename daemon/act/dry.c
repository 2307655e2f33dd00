/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dry actuator: for observe mode and for machines that are not live. Must not change or
 * remember anything. */
#include "act/act.h"

#include <stdlib.h>

static int dry_place(struct cp_actuator *actuator, uint64_t decision,
                     const struct cp_cpumask *target, struct cp_act_change *changes,
                     size_t n_changes, struct cp_error *error)
{
    (void)actuator;
    (void)decision;
    (void)target;
    (void)error;
    for (size_t i = 0; i < n_changes; i++) {
        changes[i].result = CP_ACT_DRY;
        changes[i].detail[0] = '\0';
    }
    return 0;
}

static enum cp_act_result dry_task(struct cp_actuator *actuator, struct cp_task_id task,
                                   char detail[static CP_ACT_DETAIL_SIZE])
{
    (void)actuator;
    (void)task;
    detail[0] = '\0';
    return CP_ACT_DRY;
}

static enum cp_act_result dry_release_child(struct cp_actuator *actuator, struct cp_task_id child,
                                            struct cp_task_id parent)
{
    (void)actuator;
    (void)child;
    (void)parent;
    return CP_ACT_DRY;
}

static unsigned dry_scan_strays(struct cp_actuator *actuator)
{
    (void)actuator;
    return 0;
}

static bool dry_held(struct cp_actuator *actuator, size_t i, struct cp_act_held *ret_held)
{
    (void)actuator;
    (void)i;
    (void)ret_held;
    return false;
}

static const struct cp_act_held *dry_find(struct cp_actuator *actuator, struct cp_task_id task)
{
    (void)actuator;
    (void)task;
    return NULL;
}

static int dry_set_machine(struct cp_actuator *actuator, struct cp_machine *machine)
{
    (void)actuator;
    (void)machine;
    return 0;
}

static void dry_free(struct cp_actuator *actuator)
{
    free(actuator);
}

static const struct cp_actuator_ops dry_ops = {
    .name = "dry",
    .place = dry_place,
    .release = dry_task,
    .check = dry_task,
    .release_child = dry_release_child,
    .scan_strays = dry_scan_strays,
    .held = dry_held,
    .find = dry_find,
    .set_machine = dry_set_machine,
    .free = dry_free,
};

struct cp_actuator *cp_dry_actuator_new(void)
{
    struct cp_actuator *actuator = malloc(sizeof(*actuator));

    if (actuator)
        *actuator = (struct cp_actuator){.ops = &dry_ops};
    return actuator;
}
