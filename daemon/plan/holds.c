/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An index over holds: sorted by their tasks, for a binary search. */
#include "plan/holds.h"

#include <errno.h>
#include <stdlib.h>

/* The tasks of a hold or pair in an order of their own: the lower id first; a single task comes
 * before its "other" of TID 0, whatever the ids. */
struct hold_key {
    struct cp_task_id first;
    struct cp_task_id second;
};

static struct hold_key hold_key(struct cp_task_id a, struct cp_task_id b)
{
    if (b.tid != 0 && cp_task_id_compare(b, a) < 0)
        return (struct hold_key){b, a};
    return (struct hold_key){a, b.tid != 0 ? b : (struct cp_task_id){0}};
}

static int hold_key_compare(const struct hold_key *a, const struct hold_key *b)
{
    int c = cp_task_id_compare(a->first, b->first);

    return c != 0 ? c : cp_task_id_compare(a->second, b->second);
}

static int compare_holds(const void *a, const void *b)
{
    const struct cp_plan_hold *x = *(const struct cp_plan_hold *const *)a;
    const struct cp_plan_hold *y = *(const struct cp_plan_hold *const *)b;
    const struct hold_key key_x = hold_key(x->tasks[0], x->tasks[1]);
    const struct hold_key key_y = hold_key(y->tasks[0], y->tasks[1]);

    return hold_key_compare(&key_x, &key_y);
}

int cp_holds_init(struct cp_holds *index, const struct cp_plan_hold *holds, size_t n_holds)
{
    *index = (struct cp_holds){0};
    if (n_holds == 0)
        return 0;
    index->sorted = calloc(n_holds, sizeof(*index->sorted));
    if (!index->sorted)
        return -ENOMEM;
    index->n = n_holds;
    for (size_t i = 0; i < n_holds; i++)
        index->sorted[i] = &holds[i];
    qsort(index->sorted, n_holds, sizeof(*index->sorted), compare_holds);
    return 0;
}

void cp_holds_done(struct cp_holds *index)
{
    free(index->sorted);
    *index = (struct cp_holds){0};
}

static bool is_stronger(const struct cp_plan_hold *a, const struct cp_plan_hold *b)
{
    bool a_vetoes = a->why == CP_OUTCOME_VETOED;
    bool b_vetoes = b->why == CP_OUTCOME_VETOED;

    return a_vetoes != b_vetoes ? a_vetoes : a->until_ns > b->until_ns;
}

/* The strongest hold of exactly these tasks that is not over, or NULL. */
static const struct cp_plan_hold *find_exactly(const struct cp_holds *index, struct cp_task_id a,
                                               struct cp_task_id b, uint64_t now_ns)
{
    const struct hold_key key = hold_key(a, b);
    const struct cp_plan_hold *best = NULL;
    size_t low = 0;
    size_t high = index->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct cp_plan_hold *hold = index->sorted[middle];
        const struct hold_key other = hold_key(hold->tasks[0], hold->tasks[1]);

        if (hold_key_compare(&other, &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < index->n; low++) {
        const struct cp_plan_hold *hold = index->sorted[low];
        const struct hold_key other = hold_key(hold->tasks[0], hold->tasks[1]);

        if (hold_key_compare(&other, &key) != 0)
            break;
        if (hold->until_ns > now_ns && (!best || is_stronger(hold, best)))
            best = hold;
    }
    return best;
}

const struct cp_plan_hold *cp_holds_find(const struct cp_holds *index,
                                         const struct cp_task_id tasks[2], uint64_t now_ns,
                                         unsigned *ret_blocked_by)
{
    const struct cp_task_id nobody = {0};
    const struct cp_plan_hold *of[] = {
        find_exactly(index, tasks[0], nobody, now_ns),
        find_exactly(index, tasks[1], nobody, now_ns),
        find_exactly(index, tasks[0], tasks[1], now_ns),
    };
    const struct cp_plan_hold *best = NULL;

    for (unsigned i = 0; i < CP_ELEMENTS(of); i++) {
        if (of[i] && (!best || is_stronger(of[i], best))) {
            best = of[i];
            *ret_blocked_by = i;
        }
    }
    return best;
}
