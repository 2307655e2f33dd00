/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An index over holds: sorted by their tasks, for a binary search. */
#include "plan/holds.h"

#include <errno.h>
#include <stdlib.h>

static struct cp_holds_entry make_entry(struct cp_task_id a, struct cp_task_id b,
                                        const struct cp_plan_hold *hold)
{
    if (b.tid == 0)
        return (struct cp_holds_entry){{a, {0}}, hold};
    if (cp_task_id_compare(b, a) < 0)
        return (struct cp_holds_entry){{b, a}, hold};
    return (struct cp_holds_entry){{a, b}, hold};
}

static int compare_entries(const void *a, const void *b)
{
    const struct cp_holds_entry *x = a;
    const struct cp_holds_entry *y = b;
    int order = cp_task_id_compare(x->tasks[0], y->tasks[0]);

    return order != 0 ? order : cp_task_id_compare(x->tasks[1], y->tasks[1]);
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
        index->sorted[i] = make_entry(holds[i].tasks[0], holds[i].tasks[1], &holds[i]);
    qsort(index->sorted, n_holds, sizeof(*index->sorted), compare_entries);
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
    const struct cp_holds_entry key = make_entry(a, b, NULL);
    const struct cp_plan_hold *best = NULL;
    size_t low = 0;
    size_t high = index->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_entries(&index->sorted[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < index->n && compare_entries(&index->sorted[low], &key) == 0; low++) {
        const struct cp_plan_hold *hold = index->sorted[low].hold;

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
