/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Back-offs and vetoes of pairs. See waits.h. */
#include "ledger/waits.h"

#include "base/cleanup.h"

#include <errno.h>

#define MIN_DELAY_NS UINT64_C(100000000)     /* 100 ms */
#define MAX_DELAY_NS UINT64_C(3600000000000) /* 1 h */
/* A pair that gave no trouble for so long after its back-off begins anew. */
#define REMEMBER_NS MAX_DELAY_NS

void cp_waits_init(struct cp_waits *waits, size_t max, uint64_t settle_ns)
{
    *waits = (struct cp_waits){
        .max = CP_MAX(max, 1u),
        .first_delay_ns = CP_MIN(CP_MAX(settle_ns, MIN_DELAY_NS), MAX_DELAY_NS),
    };
}

void cp_waits_done(struct cp_waits *waits)
{
    free(waits->waits);
    *waits = (struct cp_waits){0};
}

static void order_ids(struct cp_task_id *a, struct cp_task_id *b)
{
    if (cp_task_id_compare(*a, *b) > 0) {
        struct cp_task_id swapped = *a;

        *a = *b;
        *b = swapped;
    }
}

static struct cp_wait *find(struct cp_waits *waits, struct cp_task_id a, struct cp_task_id b)
{
    order_ids(&a, &b);
    for (size_t i = 0; i < waits->n; i++)
        if (cp_task_id_equal(waits->waits[i].a, a) && cp_task_id_equal(waits->waits[i].b, b))
            return &waits->waits[i];
    return NULL;
}

static void remove_wait(struct cp_waits *waits, struct cp_wait *wait)
{
    *wait = waits->waits[--waits->n];
}

/* The back-off that ends first, or NULL if there are vetoes only. */
static struct cp_wait *first_to_end(struct cp_waits *waits)
{
    struct cp_wait *first = NULL;

    for (size_t i = 0; i < waits->n; i++)
        if (!waits->waits[i].vetoed && (!first || waits->waits[i].until_ns < first->until_ns))
            first = &waits->waits[i];
    return first;
}

static int find_or_add(struct cp_waits *waits, struct cp_task_id a, struct cp_task_id b,
                       struct cp_wait **ret)
{
    struct cp_wait *wait = find(waits, a, b);

    if (!wait && waits->n >= waits->max) {
        wait = first_to_end(waits);
        if (!wait)
            return -ENOSPC;
        remove_wait(waits, wait);
        wait = NULL;
    }
    if (!wait && waits->n == waits->capacity) {
        size_t capacity = CP_MIN(waits->max, CP_MAX(16u, 2 * waits->capacity));
        struct cp_wait *grown = reallocarray(waits->waits, capacity, sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        waits->waits = grown;
        waits->capacity = capacity;
    }
    if (!wait) {
        order_ids(&a, &b);
        wait = &waits->waits[waits->n++];
        *wait = (struct cp_wait){.a = a, .b = b};
    }
    *ret = wait;
    return 0;
}

/* Over for so long that its length does not matter any more. */
static bool is_forgotten(const struct cp_wait *wait, uint64_t now_ns)
{
    return !wait->vetoed && now_ns > wait->until_ns && now_ns - wait->until_ns > REMEMBER_NS;
}

int cp_waits_back_off(struct cp_waits *waits, struct cp_task_id a, struct cp_task_id b,
                      uint64_t now_ns)
{
    struct cp_wait *wait;
    int r = find_or_add(waits, a, b, &wait);

    if (r < 0)
        return r;
    if (wait->delay_ns == 0 || is_forgotten(wait, now_ns))
        wait->delay_ns = waits->first_delay_ns;
    else
        wait->delay_ns = CP_MIN(2 * wait->delay_ns, MAX_DELAY_NS);
    wait->until_ns = now_ns + wait->delay_ns;
    return 0;
}

int cp_waits_veto(struct cp_waits *waits, struct cp_task_id a, struct cp_task_id b)
{
    struct cp_wait *wait;
    int r = find_or_add(waits, a, b, &wait);

    if (r < 0)
        return r;
    wait->vetoed = true;
    return 0;
}

void cp_waits_succeed(struct cp_waits *waits, struct cp_task_id a, struct cp_task_id b)
{
    struct cp_wait *wait = find(waits, a, b);

    if (!wait)
        return;
    if (wait->vetoed)
        wait->delay_ns = wait->until_ns = 0;
    else
        remove_wait(waits, wait);
}

unsigned cp_waits_lift(struct cp_waits *waits, const struct cp_task_id *task)
{
    unsigned lifted = 0;

    for (size_t i = waits->n; i-- > 0;) {
        struct cp_wait *wait = &waits->waits[i];

        if (task && !cp_task_id_equal(wait->a, *task) && !cp_task_id_equal(wait->b, *task))
            continue;
        remove_wait(waits, wait);
        lifted++;
    }
    return lifted;
}

size_t cp_waits_count(const struct cp_waits *waits)
{
    return waits->n;
}

size_t cp_waits_holds(struct cp_waits *waits, uint64_t now_ns, struct cp_plan_hold *holds)
{
    size_t n = 0;

    for (size_t i = waits->n; i-- > 0;) {
        struct cp_wait *wait = &waits->waits[i];

        if (is_forgotten(wait, now_ns)) {
            remove_wait(waits, wait);
            continue;
        }
        if (wait->vetoed || wait->until_ns > now_ns)
            holds[n++] = (struct cp_plan_hold){
                .tasks = {wait->a, wait->b},
                .until_ns = wait->vetoed ? UINT64_MAX : wait->until_ns,
                .why = wait->vetoed ? CP_OUTCOME_VETOED : CP_OUTCOME_BACKING_OFF,
            };
    }
    return n;
}
