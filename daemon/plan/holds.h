/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds what holds a pair or one of its tasks back, quickly. Private to plan/. Pure. */
#pragma once

#include "plan/plan.h"

struct cp_holds_entry {
    struct cp_task_id tasks[2]; /* the lower id first; of one task: the second is zero */
    const struct cp_plan_hold *hold;
};

struct cp_holds {
    size_t n;
    struct cp_holds_entry *sorted; /* by tasks */
};

/* Borrows the holds. -ENOMEM. */
int cp_holds_init(struct cp_holds *index, const struct cp_plan_hold *holds, size_t n_holds);
void cp_holds_done(struct cp_holds *index); /* accepts a zeroed one */

/*
 * What holds the pair back at now_ns: a veto before all else, else what lasts longest. NULL:
 * nothing. *ret_blocked_by, set with a result: 0 or 1 for a hold of that task alone, else 2.
 */
const struct cp_plan_hold *cp_holds_find(const struct cp_holds *index,
                                         const struct cp_task_id tasks[2], uint64_t now_ns,
                                         unsigned *ret_blocked_by);
