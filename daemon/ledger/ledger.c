/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decisions and their states; what waits is waits.c, the verdict on a placement judge.c. See
 * ledger.h.
 *
 * Decisions are allocated one by one, so that pointers to them hold while the array of pointers,
 * rising by id, grows. Room for what plan borrows is made when a decision comes in: reading cannot
 * fail.
 */
#include "ledger/ledger.h"

#include "base/cleanup.h"
#include "ledger/waits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct cp_ledger {
    size_t max_decisions;
    uint64_t settle_ns;
    struct cp_decision **decisions; /* owned, rising by id */
    struct cp_plan_placement *placements;
    struct cp_plan_hold *holds;
    size_t n_decisions;
    size_t capacity;       /* of decisions and placements */
    size_t holds_capacity; /* at least two for each decision and one for each wait */
    struct cp_waits waits;
};

const char *cp_decision_state_to_string(enum cp_decision_state state)
{
    static const char *const names[CP_DECISION_STATE_MAX] = {
        [CP_DECISION_PROPOSED] = "proposed", [CP_DECISION_APPLIED] = "applied",
        [CP_DECISION_KEPT] = "kept",         [CP_DECISION_UNDONE] = "undone",
        [CP_DECISION_YIELDED] = "yielded",   [CP_DECISION_FAILED] = "failed",
        [CP_DECISION_RESTORED] = "restored",
    };

    return (unsigned)state < CP_DECISION_STATE_MAX ? names[state] : NULL;
}

struct cp_ledger *cp_ledger_new(size_t max_decisions, uint64_t settle_ns)
{
    struct cp_ledger *ledger = calloc(1, sizeof(*ledger));

    if (!ledger)
        return NULL;
    ledger->max_decisions = CP_MAX(max_decisions, 1u);
    ledger->settle_ns = settle_ns;
    cp_waits_init(&ledger->waits, ledger->max_decisions, settle_ns);
    return ledger;
}

static struct cp_decision *decision_free(struct cp_decision *decision)
{
    if (decision) {
        cp_cpumask_done(&decision->target);
        free(decision);
    }
    return NULL;
}

struct cp_ledger *cp_ledger_free(struct cp_ledger *ledger)
{
    if (!ledger)
        return NULL;
    for (size_t i = 0; i < ledger->n_decisions; i++)
        decision_free(ledger->decisions[i]);
    free(ledger->decisions);
    free(ledger->placements);
    free(ledger->holds);
    cp_waits_done(&ledger->waits);
    free(ledger);
    return NULL;
}

static int reserve_holds(struct cp_ledger *ledger, size_t n_decisions, size_t n_waits)
{
    size_t n = 2 * n_decisions + n_waits;
    struct cp_plan_hold *holds;

    if (n <= ledger->holds_capacity)
        return 0;
    n = CP_MAX(n, ledger->holds_capacity + ledger->holds_capacity / 2);
    holds = reallocarray(ledger->holds, n, sizeof(*holds));
    if (!holds)
        return -ENOMEM;
    ledger->holds = holds;
    ledger->holds_capacity = n;
    return 0;
}

/* Room for one decision more. */
static int reserve(struct cp_ledger *ledger)
{
    size_t capacity = CP_MAX(16u, ledger->capacity + ledger->capacity / 2);
    struct cp_decision **decisions;
    struct cp_plan_placement *placements;

    if (ledger->n_decisions == ledger->capacity) {
        decisions = reallocarray(ledger->decisions, capacity, sizeof(struct cp_decision *));
        if (!decisions)
            return -ENOMEM;
        ledger->decisions = decisions;
        placements = reallocarray(ledger->placements, capacity, sizeof(*placements));
        if (!placements)
            return -ENOMEM;
        ledger->placements = placements;
        ledger->capacity = capacity;
    }
    return reserve_holds(ledger, ledger->n_decisions + 1, cp_waits_count(&ledger->waits) + 1);
}

/* Place of the oldest decision that is not in effect; n_decisions if all are. */
static size_t oldest_not_standing(const struct cp_ledger *ledger)
{
    size_t i = 0;

    while (i < ledger->n_decisions && cp_decision_state_is_standing(ledger->decisions[i]->state))
        i++;
    return i;
}

bool cp_ledger_has_room(const struct cp_ledger *ledger)
{
    return ledger->n_decisions < ledger->max_decisions ||
           oldest_not_standing(ledger) < ledger->n_decisions;
}

static void remove_at(struct cp_ledger *ledger, size_t place)
{
    decision_free(ledger->decisions[place]);
    ledger->n_decisions--;
    memmove(&ledger->decisions[place], &ledger->decisions[place + 1],
            (ledger->n_decisions - place) * sizeof(struct cp_decision *));
}

/* Place of the first decision with an id above cursor. */
static size_t place_above(const struct cp_ledger *ledger, uint64_t cursor)
{
    size_t low = 0;
    size_t high = ledger->n_decisions;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ledger->decisions[middle]->id <= cursor)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct cp_decision *cp_ledger_add(struct cp_ledger *ledger, struct cp_decision *decision)
{
    struct cp_decision *added;
    size_t place;

    if ((unsigned)decision->state >= CP_DECISION_STATE_MAX ||
        cp_ledger_find(ledger, decision->id) || !cp_ledger_has_room(ledger) || reserve(ledger) < 0)
        return NULL;
    added = malloc(sizeof(*added));
    if (!added)
        return NULL;
    if (ledger->n_decisions >= ledger->max_decisions)
        remove_at(ledger, oldest_not_standing(ledger));
    *added = *decision;
    decision->target = (struct cp_cpumask){0};

    place = place_above(ledger, added->id);
    memmove(&ledger->decisions[place + 1], &ledger->decisions[place],
            (ledger->n_decisions - place) * sizeof(struct cp_decision *));
    ledger->decisions[place] = added;
    ledger->n_decisions++;
    return added;
}

struct cp_decision *cp_ledger_find(struct cp_ledger *ledger, uint64_t id)
{
    size_t place = place_above(ledger, id);

    return place > 0 && ledger->decisions[place - 1]->id == id ? ledger->decisions[place - 1]
                                                               : NULL;
}

struct cp_decision *cp_ledger_find_task(struct cp_ledger *ledger, struct cp_task_id task)
{
    struct cp_decision *newest = NULL;

    for (size_t i = ledger->n_decisions; i-- > 0;) {
        struct cp_decision *decision = ledger->decisions[i];

        if (!cp_task_id_equal(decision->tasks[0], task) &&
            !cp_task_id_equal(decision->tasks[1], task))
            continue;
        if (cp_decision_state_is_standing(decision->state))
            return decision;
        if (!newest)
            newest = decision;
    }
    return newest;
}

size_t cp_ledger_list(struct cp_ledger *ledger, uint64_t cursor, size_t limit,
                      struct cp_decision **ret_decisions)
{
    size_t place = place_above(ledger, cursor);
    size_t n = CP_MIN(limit, ledger->n_decisions - place);

    if (n > 0)
        memcpy(ret_decisions, &ledger->decisions[place], n * sizeof(struct cp_decision *));
    return n;
}

size_t cp_ledger_count(const struct cp_ledger *ledger, enum cp_decision_state state)
{
    size_t n = 0;

    for (size_t i = 0; i < ledger->n_decisions; i++)
        n += ledger->decisions[i]->state == state;
    return n;
}

static bool is_end(enum cp_decision_state state)
{
    return state != CP_DECISION_PROPOSED && !cp_decision_state_is_standing(state);
}

/* The changes that ledger.h allows. */
static bool may_become(enum cp_decision_state from, enum cp_decision_state to)
{
    if ((unsigned)to >= CP_DECISION_STATE_MAX || is_end(from))
        return false;
    if (to == from || is_end(to))
        return true;
    return (from == CP_DECISION_PROPOSED && to == CP_DECISION_APPLIED) ||
           (from == CP_DECISION_APPLIED && to == CP_DECISION_KEPT);
}

bool cp_ledger_set_state(struct cp_ledger *ledger, struct cp_decision *decision,
                         enum cp_decision_state state, uint64_t now_ns, const char *why)
{
    if (!may_become(decision->state, state))
        return false;
    /* The reason may be that of the decision itself. */
    if (why != decision->why)
        (void)snprintf(decision->why, sizeof(decision->why), "%s", why);
    if (state == decision->state)
        return true;
    decision->state = state;
    decision->changed_ns = now_ns;
    if (state == CP_DECISION_KEPT)
        cp_waits_succeed(&ledger->waits, decision->tasks[0], decision->tasks[1]);
    else if (state == CP_DECISION_UNDONE || state == CP_DECISION_YIELDED ||
             state == CP_DECISION_FAILED)
        cp_ledger_back_off(ledger, decision, now_ns);
    return true;
}

/* Makes room for a new wait among the holds, or tells that there is no memory. */
static int reserve_wait(struct cp_ledger *ledger)
{
    return reserve_holds(ledger, ledger->n_decisions, cp_waits_count(&ledger->waits) + 1);
}

void cp_ledger_back_off(struct cp_ledger *ledger, struct cp_decision *decision, uint64_t now_ns)
{
    if (decision->backed_off || reserve_wait(ledger) < 0)
        return;
    decision->backed_off =
        cp_waits_back_off(&ledger->waits, decision->tasks[0], decision->tasks[1], now_ns) == 0;
}

int cp_ledger_veto(struct cp_ledger *ledger, struct cp_task_id a, struct cp_task_id b)
{
    int r = reserve_wait(ledger);

    return r < 0 ? r : cp_waits_veto(&ledger->waits, a, b);
}

unsigned cp_ledger_allow(struct cp_ledger *ledger, struct cp_task_id task)
{
    return cp_waits_lift(&ledger->waits, task.tid != 0 ? &task : NULL);
}

void cp_ledger_forget_task(struct cp_ledger *ledger, struct cp_task_id task)
{
    (void)cp_waits_lift(&ledger->waits, &task);
}

/* Tasks of decisions applied less than settle ago. A task may come twice. */
static size_t add_settling(const struct cp_ledger *ledger, uint64_t now_ns,
                           struct cp_plan_hold *holds)
{
    size_t n = 0;

    for (size_t i = 0; i < ledger->n_decisions; i++) {
        const struct cp_decision *decision = ledger->decisions[i];
        uint64_t until_ns = decision->applied_ns + ledger->settle_ns;

        if (decision->applied_ns == 0 || until_ns <= now_ns)
            continue;
        for (unsigned k = 0; k < CP_ELEMENTS(decision->tasks); k++)
            holds[n++] = (struct cp_plan_hold){
                .tasks = {decision->tasks[k], {0}},
                .until_ns = until_ns,
                .why = CP_OUTCOME_SETTLING,
            };
    }
    return n;
}

/* By tasks; of the same ones the longest hold first. */
static int compare_holds(const void *x, const void *y)
{
    const struct cp_plan_hold *a = x;
    const struct cp_plan_hold *b = y;
    int order = cp_task_id_compare(a->tasks[0], b->tasks[0]);

    if (order == 0)
        order = cp_task_id_compare(a->tasks[1], b->tasks[1]);
    if (order == 0 && a->until_ns != b->until_ns)
        order = a->until_ns > b->until_ns ? -1 : 1;
    return order;
}

static bool same_tasks(const struct cp_plan_hold *a, const struct cp_plan_hold *b)
{
    return cp_task_id_equal(a->tasks[0], b->tasks[0]) && cp_task_id_equal(a->tasks[1], b->tasks[1]);
}

size_t cp_ledger_holds(struct cp_ledger *ledger, uint64_t now_ns,
                       const struct cp_plan_hold **ret_holds)
{
    struct cp_plan_hold *holds = ledger->holds;
    size_t n = 0;
    size_t kept = 0;

    *ret_holds = holds;
    n = add_settling(ledger, now_ns, holds);
    n += cp_waits_holds(&ledger->waits, now_ns, n > 0 ? &holds[n] : holds);
    if (n == 0)
        return 0;
    qsort(holds, n, sizeof(*holds), compare_holds);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !same_tasks(&holds[kept - 1], &holds[i]))
            holds[kept++] = holds[i];
    return kept;
}

static double load_of(const struct cp_decision *decision, const struct cp_pairs *pairs)
{
    const struct cp_pair_task *a = cp_pairs_find_task(pairs, decision->tasks[0]);
    const struct cp_pair_task *b = cp_pairs_find_task(pairs, decision->tasks[1]);

    return a && b && a->n_windows > 0 && b->n_windows > 0 ? a->load + b->load : decision->load;
}

size_t cp_ledger_placements(struct cp_ledger *ledger, const struct cp_pairs *pairs,
                            const struct cp_plan_placement **ret_placements)
{
    size_t n = 0;

    for (size_t i = 0; i < ledger->n_decisions; i++) {
        const struct cp_decision *decision = ledger->decisions[i];

        if (!cp_decision_state_is_standing(decision->state))
            continue;
        ledger->placements[n++] = (struct cp_plan_placement){
            .tasks = {decision->tasks[0], decision->tasks[1]},
            .level = decision->level,
            .target = &decision->target,
            .load = load_of(decision, pairs),
            .since_ns = decision->applied_ns,
        };
    }
    *ret_placements = ledger->placements;
    return n;
}
