/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A round: what one window showed becomes pair statistics, a plan, moves and decisions.
 *
 * Wires the pure rooms; must hold no rule of its own about who is placed where.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "manager-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Facts cost some tens of microseconds a task; a round takes the strongest pairs only. */
#define MAX_PAIRS_A_ROUND 256u

static int compare_edges(const void *a, const void *b)
{
    const struct cp_wake_edge *left = a;
    const struct cp_wake_edge *right = b;
    int order = cp_task_id_compare(left->waker, right->waker);

    return order != 0 ? order : cp_task_id_compare(left->wakee, right->wakee);
}

static const struct cp_wake_edge *find_edge(const struct cp_wake_sample *sample,
                                            struct cp_task_id waker, struct cp_task_id wakee)
{
    const struct cp_wake_edge key = {.waker = waker, .wakee = wakee};

    if (sample->n_edges == 0)
        return NULL;
    return bsearch(&key, sample->edges, sample->n_edges, sizeof(key), compare_edges);
}

static int compare_tasks(const void *a, const void *b)
{
    return cp_task_id_compare(((const struct cp_wake_task *)a)->id,
                              ((const struct cp_wake_task *)b)->id);
}

static const struct cp_wake_task *find_task(const struct cp_wake_sample *sample,
                                            struct cp_task_id id)
{
    const struct cp_wake_task key = {.id = id};

    if (sample->n_tasks == 0)
        return NULL;
    return bsearch(&key, sample->tasks, sample->n_tasks, sizeof(key), compare_tasks);
}

void cp_manager_observe(const struct cp_wake_sample *sample, struct cp_task_id a,
                        struct cp_task_id b, struct cp_observation *ret)
{
    const struct cp_wake_edge *edges[] = {find_edge(sample, a, b), find_edge(sample, b, a)};
    const struct cp_wake_task *tasks[] = {find_task(sample, a), find_task(sample, b)};
    double seconds = (double)(sample->end_ns - sample->begin_ns) / (double)CP_NS_PER_S;
    uint64_t latency_ns = 0;
    uint64_t n_latency = 0;
    double preempted_ns = 0;

    *ret = (struct cp_observation){.begin_ns = sample->begin_ns, .end_ns = sample->end_ns};
    for (unsigned i = 0; i < CP_ELEMENTS(edges); i++) {
        if (edges[i]) {
            ret->handoffs += edges[i]->handoffs;
            latency_ns += edges[i]->latency_ns;
            n_latency += edges[i]->n_latency;
        }
        if (tasks[i]) {
            double awake = (double)(tasks[i]->run_ns + tasks[i]->wait_ns);
            double outside = (double)tasks[i]->wait_ns - (double)tasks[i]->partner_ns;

            preempted_ns += (double)tasks[i]->preempted_ns;
            if (awake > 0 && outside > 0)
                ret->outside_share = CP_MAX(ret->outside_share, outside / awake);
        }
    }
    if (seconds > 0)
        ret->rate_hz = (double)ret->handoffs / seconds;
    if (n_latency > 0)
        ret->latency_ns = (double)latency_ns / (double)n_latency;
    if (ret->handoffs > 0)
        ret->loss_ns = ret->latency_ns + preempted_ns / (double)ret->handoffs;
}

/* The pairs worth planning for: related ones above the rate, strongest first, and those placed. */
static size_t choose_candidates(struct cp_manager *manager, const struct cp_pair **candidates,
                                size_t max)
{
    const struct cp_pair *const *pairs;
    size_t n_pairs = cp_pairs_list(manager->pairs, &pairs);
    size_t n = 0;

    for (size_t i = 0; i < n_pairs && n < max; i++) {
        const struct cp_decision *decision = cp_ledger_find_task(manager->ledger, pairs[i]->a);
        struct cp_pair_verdict verdict;
        bool placed = decision && cp_decision_state_is_standing(decision->state);

        cp_pair_judge(manager->pairs, pairs[i], &manager->policy, &manager->costs, &verdict);
        if (placed || verdict.relation == CP_RELATION_SERIAL ||
            verdict.relation == CP_RELATION_OVERLAPPING)
            candidates[n++] = pairs[i];
    }
    return n;
}

/* Facts of one task as plan wants them: of a task that carries our mask, the mask it had before. */
static int read_facts(struct cp_manager *manager, struct cp_task_id task, uint64_t now_ns,
                      struct cp_task_facts *ret_facts)
{
    const struct cp_act_held *held;
    struct cp_error error = {0};
    int r = cp_task_facts_read(&manager->root, manager->machine, manager->wake, task, now_ns,
                               ret_facts, &error);

    if (r < 0)
        cp_log_debug("task %d: %s", task.tid, error.message);
    if (r != 0)
        return r;
    held = manager->actuator->ops->find(manager->actuator, task);
    if (held) {
        ret_facts->user_mask = held->had_user_mask ? CP_USER_MASK_SET : CP_USER_MASK_NONE;
        r = cp_cpumask_copy(&ret_facts->allowed, held->original);
        if (r < 0)
            cp_task_facts_done(ret_facts);
    }
    return r;
}

static int compare_facts(const void *a, const void *b)
{
    return cp_task_id_compare(((const struct cp_task_facts *)a)->id,
                              ((const struct cp_task_facts *)b)->id);
}

static bool have_facts(const struct cp_task_facts *facts, size_t n, struct cp_task_id task)
{
    for (size_t i = 0; i < n; i++)
        if (cp_task_id_equal(facts[i].id, task))
            return true;
    return false;
}

/* Reads the facts of every task of the pairs. Tasks that went are left out. Returns the number. */
static size_t gather_facts(struct cp_manager *manager, const struct cp_pair *const *pairs,
                           size_t n_pairs, uint64_t now_ns, struct cp_task_facts *facts)
{
    size_t n = 0;

    for (size_t i = 0; i < n_pairs; i++) {
        const struct cp_task_id tasks[] = {pairs[i]->a, pairs[i]->b};

        for (unsigned k = 0; k < CP_ELEMENTS(tasks); k++)
            if (!have_facts(facts, n, tasks[k]) &&
                read_facts(manager, tasks[k], now_ns, &facts[n]) == 0)
                n++;
    }
    qsort(facts, n, sizeof(*facts), compare_facts);
    return n;
}

int cp_manager_plan(struct cp_manager *manager, const struct cp_pair *const *pairs, size_t n_pairs,
                    struct cp_plan *ret_plan)
{
    uint64_t now_ns = cp_now_ns();
    struct cp_task_facts *facts = calloc(2 * n_pairs + 1, sizeof(*facts));
    struct cp_plan_input input = {
        .machine = manager->machine,
        .costs = &manager->costs,
        .policy = &manager->policy,
        .pairs = manager->pairs,
        .n_candidates = n_pairs,
        .candidates = pairs,
        .facts = facts,
        .busy_permille = manager->busy_generation == manager->machine->generation
                             ? manager->busy_permille
                             : NULL,
        .now_ns = now_ns,
    };
    int r;

    if (!facts)
        return -ENOMEM;
    input.n_facts = gather_facts(manager, pairs, n_pairs, now_ns, facts);
    input.n_placements = cp_ledger_placements(manager->ledger, manager->pairs, &input.placements);
    input.n_holds = cp_ledger_holds(manager->ledger, now_ns, &input.holds);
    r = cp_plan_make(&input, ret_plan);
    for (size_t i = 0; i < input.n_facts; i++)
        cp_task_facts_done(&facts[i]);
    free(facts);
    return r;
}

static uint64_t hot_since(const struct cp_manager *manager, const struct cp_task_id tasks[2])
{
    for (size_t i = 0; i < manager->n_hot; i++)
        if ((cp_task_id_equal(manager->hot[i].tasks[0], tasks[0]) &&
             cp_task_id_equal(manager->hot[i].tasks[1], tasks[1])) ||
            (cp_task_id_equal(manager->hot[i].tasks[0], tasks[1]) &&
             cp_task_id_equal(manager->hot[i].tasks[1], tasks[0])))
            return manager->hot[i].since_ns;
    return 0;
}

static const struct cp_plan_finding *find_finding(const struct cp_plan *plan,
                                                  const struct cp_plan_move *move)
{
    for (size_t i = 0; i < plan->n_findings; i++)
        if (cp_task_id_equal(plan->findings[i].tasks[0], move->tasks[0]) &&
            cp_task_id_equal(plan->findings[i].tasks[1], move->tasks[1]))
            return &plan->findings[i];
    return NULL;
}

/* The decision that a move asks for, not yet in any state. */
static int make_decision(struct cp_manager *manager, const struct cp_plan *plan,
                         const struct cp_plan_move *move, const struct cp_wake_sample *sample,
                         struct cp_decision *ret)
{
    const struct cp_plan_finding *finding = find_finding(plan, move);
    struct cp_decision decision = {
        .tasks = {move->tasks[0], move->tasks[1]},
        .level = move->level,
        .level_before = finding ? finding->level_now : CP_LEVEL_MACHINE,
        .rule = move->rule,
        .relation = move->relation,
        .predicted_gain = move->gain,
        .load = move->load,
        .hot_ns = hot_since(manager, move->tasks),
        .decided_ns = cp_now_ns(),
    };
    int r = cp_cpumask_copy(&decision.target, &move->target);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < 2; i++) {
        const struct cp_pair_task *task = cp_pairs_find_task(manager->pairs, move->tasks[i]);

        if (task) {
            memcpy(decision.comm[i], task->comm, sizeof(decision.comm[i]));
            decision.tgid[i] = task->tgid;
            decision.uid[i] = task->uid;
        }
    }
    (void)snprintf(decision.policy, sizeof(decision.policy), "%s", manager->policy.name);
    if (finding) {
        decision.n_candidates = finding->n_candidates;
        memcpy(decision.candidates, finding->candidates, sizeof(decision.candidates));
    }
    cp_manager_observe(sample, move->tasks[0], move->tasks[1], &decision.before);
    *ret = decision;
    return 0;
}

/* In observe mode the same proposal is made once, not in each round. */
static bool is_proposed(struct cp_manager *manager, const struct cp_decision *decision)
{
    const struct cp_decision *former = cp_ledger_find_task(manager->ledger, decision->tasks[0]);

    return former && former->state == CP_DECISION_PROPOSED &&
           cp_task_id_equal(former->tasks[0], decision->tasks[0]) &&
           cp_task_id_equal(former->tasks[1], decision->tasks[1]) &&
           former->level == decision->level;
}

/* Reads the facts again immediately before the change; a task that may no longer be moved stops
 * the whole set. */
static bool fill_changes(struct cp_manager *manager, struct cp_decision *decision,
                         struct cp_act_change changes[2])
{
    for (unsigned i = 0; i < 2; i++) {
        struct cp_task_facts facts = {0};
        uint64_t now_ns = cp_now_ns();
        enum cp_plan_outcome outcome;

        if (read_facts(manager, decision->tasks[i], now_ns, &facts) != 0) {
            (void)snprintf(decision->why, sizeof(decision->why),
                           "task %d ended before it was moved", decision->tasks[i].tid);
            return false;
        }
        outcome = cp_plan_movable(&facts, &manager->policy, now_ns, NULL);
        if (outcome == CP_OUTCOME_PLACE && !cp_cpumask_intersects(&decision->target, &facts.cpuset))
            outcome = CP_OUTCOME_NO_COMMON_CPU;
        changes[i].task = facts.id;
        changes[i].tgid = facts.tgid;
        changes[i].had_user_mask = facts.user_mask == CP_USER_MASK_SET;
        changes[i].original = facts.allowed;
        facts.allowed = (struct cp_cpumask){0};
        cp_task_facts_done(&facts);
        if (outcome != CP_OUTCOME_PLACE) {
            (void)snprintf(decision->why, sizeof(decision->why), "task %d: %s",
                           decision->tasks[i].tid, cp_plan_outcome_explain(outcome));
            return false;
        }
    }
    return true;
}

static const char *first_detail(const struct cp_act_change changes[2], const struct cp_error *error)
{
    /* RESTORED is a task that only shared the other's fate. */
    for (unsigned i = 0; i < 2; i++)
        if (changes[i].detail[0] && changes[i].result != CP_ACT_RESTORED)
            return changes[i].detail;
    return error->message[0] ? error->message : "the masks could not be set";
}

/* Changes the masks of a decision. true: they are as decided. */
static bool apply(struct cp_manager *manager, struct cp_decision *decision)
{
    struct cp_act_change changes[2] = {0};
    struct cp_error error = {0};
    bool done = false;

    if (fill_changes(manager, decision, changes)) {
        int r = manager->actuator->ops->place(manager->actuator, decision->id, &decision->target,
                                              changes, CP_ELEMENTS(changes), &error);

        done = r == 0;
        if (done)
            decision->applied_ns = cp_now_ns();
        else
            (void)snprintf(decision->why, sizeof(decision->why), "%.199s",
                           first_detail(changes, &error));
    }
    for (unsigned i = 0; i < CP_ELEMENTS(changes); i++)
        cp_cpumask_done(&changes[i].original);
    return done;
}

/* A new plan for a pair that is placed replaces the standing placement. */
static void end_former(struct cp_manager *manager, const struct cp_plan_move *move)
{
    for (unsigned i = 0; i < 2; i++) {
        struct cp_decision *former = cp_ledger_find_task(manager->ledger, move->tasks[i]);

        if (former && cp_decision_state_is_standing(former->state))
            cp_manager_end_decision(manager, former, CP_DECISION_RESTORED,
                                    "a better placement was found");
    }
}

/* Takes the decision into the ledger. What cannot be recorded cannot be undone later: its masks are
 * given back at once. */
static void record(struct cp_manager *manager, struct cp_decision *decision,
                   enum cp_decision_state state, const char *why)
{
    struct cp_decision *added;

    decision->state = state;
    decision->changed_ns = cp_now_ns();
    if (why)
        (void)snprintf(decision->why, sizeof(decision->why), "%s", why);
    added = cp_ledger_add(manager->ledger, decision);
    if (!added) {
        char detail[CP_ACT_DETAIL_SIZE];

        cp_log_error("decision %" PRIu64 " cannot be recorded and is not carried out",
                     decision->id);
        for (unsigned i = 0; i < 2 && state == CP_DECISION_APPLIED; i++)
            (void)manager->actuator->ops->release(manager->actuator, decision->tasks[i], detail);
        cp_cpumask_done(&decision->target);
        return;
    }
    cp_log_info("decision %" PRIu64 ": %s (%s %d, %s %d), level %s: %s", added->id,
                cp_decision_state_to_string(state), added->comm[0], added->tasks[0].tid,
                added->comm[1], added->tasks[1].tid, cp_level_to_string(added->level), added->why);
    cp_bus_emit_decision_made(manager->bus, added->id, added->state);
    if (state == CP_DECISION_FAILED)
        cp_ledger_back_off(manager->ledger, added, added->changed_ns);
}

/* Carries out one move as the mode allows. true: a mask was changed. */
static bool carry_out(struct cp_manager *manager, const struct cp_plan *plan,
                      const struct cp_plan_move *move, const struct cp_wake_sample *sample)
{
    bool enforce = cp_manager_mode(manager) == CP_MODE_ENFORCE;
    struct cp_decision decision = {0};
    bool applied = false;

    if (make_decision(manager, plan, move, sample, &decision) < 0) {
        cp_log_error("no memory for a decision");
        return false;
    }
    if (!enforce && is_proposed(manager, &decision)) {
        cp_cpumask_done(&decision.target);
        return false;
    }
    if (!manager->journal) {
        decision.id = ++manager->last_unwritten_decision;
    } else if (cp_journal_next_decision(manager->journal, &decision.id) < 0) {
        cp_log_error("the journal gives no new decision number; nothing is moved");
        cp_cpumask_done(&decision.target);
        return false;
    }
    if (!enforce) {
        record(manager, &decision, CP_DECISION_PROPOSED, "mode observe: nothing is changed");
        return false;
    }
    end_former(manager, move);
    if (!cp_ledger_has_room(manager->ledger)) {
        cp_log_warning("the ledger is full of standing placements; nothing more is placed");
        cp_cpumask_done(&decision.target);
        return false;
    }
    applied = apply(manager, &decision);
    if (applied)
        cp_pairs_reset_pair(manager->pairs, move->tasks[0], move->tasks[1]);
    record(manager, &decision, applied ? CP_DECISION_APPLIED : CP_DECISION_FAILED,
           applied ? "placed; to be verified" : NULL);
    return applied;
}

/* Hot pairs stay on the list as long as a window still shows them above the rate. */
static void drop_cold_pairs(struct cp_manager *manager, const struct cp_wake_sample *sample)
{
    size_t kept = 0;

    for (size_t i = 0; i < manager->n_hot; i++) {
        struct cp_observation seen;

        cp_manager_observe(sample, manager->hot[i].tasks[0], manager->hot[i].tasks[1], &seen);
        /* A pair reported after the window began has not been looked at yet. */
        if (manager->hot[i].since_ns > sample->begin_ns ||
            seen.rate_hz >= manager->policy.min_rate_hz)
            manager->hot[kept++] = manager->hot[i];
    }
    manager->n_hot = kept;
}

static void refine_costs(struct cp_manager *manager, const struct cp_wake_sample *sample)
{
    for (unsigned level = 0; level < CP_LEVEL_MAX; level++)
        if (sample->n_idle_latency[level] > 0)
            cp_costs_observe(&manager->costs, (enum cp_level)level,
                             sample->idle_latency_ns[level] / sample->n_idle_latency[level],
                             sample->n_idle_latency[level]);
    cp_costs_smooth(&manager->costs);
}

/* Reads how busy each CPU was in the window; unknown where it cannot be read. */
static void measure_busy(struct cp_manager *manager)
{
    const struct cp_machine *machine = manager->machine;
    struct cp_load now = {0};

    free(manager->busy_permille);
    manager->busy_permille = NULL;
    manager->busy_generation = machine->generation;
    if (manager->load_at_open.n_cpus == machine->n_cpus &&
        cp_load_read(&manager->root, machine, &now) == 0) {
        manager->busy_permille = calloc(machine->n_cpus, sizeof(*manager->busy_permille));
        if (manager->busy_permille)
            cp_load_between(&manager->load_at_open, &now, manager->busy_permille);
    }
    cp_load_done(&now);
}

static bool plan_and_act(struct cp_manager *manager, const struct cp_wake_sample *sample)
{
    const struct cp_pair *candidates[MAX_PAIRS_A_ROUND];
    size_t n = choose_candidates(manager, candidates, CP_ELEMENTS(candidates));
    bool moved = false;

    measure_busy(manager);
    cp_plan_done(&manager->last_plan);
    if (cp_manager_plan(manager, candidates, n, &manager->last_plan) < 0) {
        cp_log_error("no memory for a plan");
        return false;
    }
    if (manager->last_plan.machine_generation != manager->machine->generation)
        return false;
    for (size_t i = 0; i < manager->last_plan.n_moves; i++)
        moved |= carry_out(manager, &manager->last_plan, &manager->last_plan.moves[i], sample);
    if (moved)
        (void)manager->actuator->ops->scan_strays(manager->actuator);
    return moved;
}

/* A pair that became hot while the window was open was seen for a part of it only. */
static bool has_unseen_hot(const struct cp_manager *manager, const struct cp_wake_sample *sample)
{
    for (size_t i = 0; i < manager->n_hot; i++)
        if (manager->hot[i].since_ns > sample->begin_ns)
            return true;
    return false;
}

/* The earliest moment at which a pair that must wait may be judged; UINT64_MAX: none waits. */
static uint64_t next_judgement(const struct cp_plan *plan, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;

    for (size_t i = 0; i < plan->n_findings; i++)
        if (plan->findings[i].until_ns > now_ns)
            next_ns = CP_MIN(next_ns, plan->findings[i].until_ns);
    return next_ns;
}

void cp_manager_round(struct cp_manager *manager, const struct cp_wake_sample *sample)
{
    uint64_t generation = manager->machine->generation;
    uint64_t waits_until_ns;
    bool changed;
    bool moved = false;

    if (sample->n_dropped)
        cp_bus_emit_samples_lost(manager->bus, sample->n_dropped);
    cp_manager_follow_hotplug(manager);
    if (cp_pairs_feed(manager->pairs, sample) < 0)
        cp_log_error("no memory for pair statistics; this window is lost");
    refine_costs(manager, sample);
    drop_cold_pairs(manager, sample);
    changed = cp_manager_verify(manager, sample);
    /* A CPU went or came during the round: what was seen belongs to another machine. */
    if (manager->machine->generation == generation && !manager->calibration.running &&
        cp_manager_mode(manager) != CP_MODE_OFF)
        moved = plan_and_act(manager, sample);
    cp_look_on_end(&manager->look, cp_now_ns(), changed || moved,
                   manager->n_hot > 0 ||
                       cp_ledger_count(manager->ledger, CP_DECISION_APPLIED) > 0 ||
                       cp_ledger_count(manager->ledger, CP_DECISION_KEPT) > 0);
    if (moved)
        cp_look_on_placed(&manager->look, cp_now_ns());
    if (has_unseen_hot(manager, sample))
        cp_look_on_hot(&manager->look, cp_now_ns());
    waits_until_ns = next_judgement(&manager->last_plan, cp_now_ns());
    if (waits_until_ns != UINT64_MAX)
        cp_look_on_wait(&manager->look, cp_now_ns(), waits_until_ns);
    cp_manager_arm_look(manager);
    cp_manager_notify_status(manager);
}
