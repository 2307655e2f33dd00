/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What all actuators share: names, and the end. */
#include "act/act.h"

#include "base/cleanup.h"

const char *cp_act_result_to_string(enum cp_act_result result)
{
    static const char *const names[CP_ACT_RESULT_MAX] = {
        [CP_ACT_DONE] = "done",       [CP_ACT_GONE] = "gone",         [CP_ACT_REFUSED] = "refused",
        [CP_ACT_YIELDED] = "yielded", [CP_ACT_RESTORED] = "restored", [CP_ACT_DRY] = "dry",
        [CP_ACT_FAILED] = "failed",
    };

    return (unsigned)result < CP_ELEMENTS(names) ? names[result] : "invalid";
}

struct cp_actuator *cp_actuator_free(struct cp_actuator *actuator)
{
    if (actuator)
        actuator->ops->free(actuator);
    return NULL;
}
