/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pairs that must wait: backing off after a placement that did not last, or vetoed by hand. Bounded
 * and small, so searched from end to end. Private to ledger/.
 */
#pragma once

#include "plan/plan.h"

struct cp_wait {
    struct cp_task_id a; /* a < b by cp_task_id_compare() */
    struct cp_task_id b;
    uint64_t delay_ns; /* last back-off; 0: never */
    uint64_t until_ns; /* of the back-off; it may be over, the delay is remembered */
    bool vetoed;
};

struct cp_waits {
    size_t max;
    uint64_t first_delay_ns;
    struct cp_wait *waits; /* owned */
    size_t n;
    size_t capacity;
};

/* At most max pairs (at least 1); the first back-off lasts settle_ns. */
void cp_waits_init(struct cp_waits *waits, size_t max, uint64_t settle_ns);
void cp_waits_done(struct cp_waits *waits);

/* Begins or doubles a back-off. When full, the back-off that ends first makes room. -ENOMEM;
 * -ENOSPC: full of vetoes. */
int cp_waits_back_off(struct cp_waits *waits, struct cp_task_id a, struct cp_task_id b,
                      uint64_t now_ns);
/* Likewise for a veto, which lasts. */
int cp_waits_veto(struct cp_waits *waits, struct cp_task_id a, struct cp_task_id b);
/* A placement helped: its back-off is over and forgotten; a veto stays. */
void cp_waits_succeed(struct cp_waits *waits, struct cp_task_id a, struct cp_task_id b);
/* Forgets the pairs of a task, or all if task is NULL. Returns how many. */
unsigned cp_waits_lift(struct cp_waits *waits, const struct cp_task_id *task);

/* Most that cp_waits_holds() can write. */
size_t cp_waits_count(const struct cp_waits *waits);
/* Writes what waits at now_ns to holds; forgets back-offs that are long over. */
size_t cp_waits_holds(struct cp_waits *waits, uint64_t now_ns, struct cp_plan_hold *holds);
