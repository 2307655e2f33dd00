/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the bus asks for: views of the manager's objects, explanations, and wishes carried out.
 *
 * Callers are checked by bus/ before anything here runs.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "manager-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* An explanation of a task without a known pair asks for a window, at most so often. */
#define EXPLAIN_LOOK_GAP_NS (2 * CP_NS_PER_S)

static void serve_view(void *userdata, struct cp_bus_view *ret_view)
{
    struct cp_manager *manager = userdata;
    struct cp_act_held held;
    unsigned n_held = 0;

    while (manager->actuator->ops->held(manager->actuator, n_held, &held))
        n_held++;
    *ret_view = (struct cp_bus_view){
        .version = COPLACE_VERSION,
        .mode = cp_manager_mode(manager),
        .started_ns = manager->started_ns,
        .machine = manager->machine,
        .costs = &manager->costs,
        .policy = &manager->policy,
        .wake = manager->wake,
        .pairs = manager->pairs,
        .ledger = manager->ledger,
        .n_placements = n_held,
        .neighbours = manager->neighbour_texts,
    };
}

/* Plans for one pair as things are now, without acting. */
static int find_for_pair(struct cp_manager *manager, const struct cp_pair *pair,
                         struct cp_plan_finding *ret_finding)
{
    struct cp_plan plan = {0};
    int r = cp_manager_plan(manager, &pair, 1, &plan);

    if (r < 0)
        return r;
    if (plan.n_findings == 1)
        *ret_finding = plan.findings[0];
    r = plan.n_findings == 1 ? 0 : -ENODATA;
    cp_plan_done(&plan);
    return r;
}

static void summarise_without_pair(struct cp_manager *manager, struct cp_bus_explanation *e)
{
    enum cp_plan_outcome outcome = cp_plan_movable(&e->facts, &manager->policy, cp_now_ns(), NULL);

    if (strcmp(manager->wake->ops->name, "none") == 0) {
        (void)snprintf(e->summary, sizeof(e->summary), "Nothing is known of its wake-ups: %.400s",
                       manager->wake->why);
        return;
    }
    if (outcome != CP_OUTCOME_PLACE) {
        (void)snprintf(e->summary, sizeof(e->summary),
                       "Left alone: %s No partner of it was seen either.",
                       cp_plan_outcome_explain(outcome));
        return;
    }
    (void)snprintf(e->summary, sizeof(e->summary),
                   "Left alone: no partner was seen that it exchanges at least %.0f hand-offs a "
                   "second with.",
                   manager->policy.min_rate_hz);
    if (!manager->window_is_open && cp_now_ns() - manager->look.last_end_ns > EXPLAIN_LOOK_GAP_NS &&
        cp_manager_mode(manager) != CP_MODE_OFF) {
        cp_look_on_hot(&manager->look, cp_now_ns());
        cp_manager_arm_look(manager);
    }
}

static void summarise_pair(struct cp_manager *manager, struct cp_bus_explanation *e)
{
    const struct cp_decision *decision = e->decision;
    _cleanup_free_ char *cpus = NULL;

    if (decision && cp_decision_state_is_standing(decision->state)) {
        unsigned other = cp_task_id_equal(decision->tasks[0], e->facts.id) ? 1 : 0;

        cpus = cp_cpumask_to_list(&decision->target);
        (void)snprintf(e->summary_alone, sizeof(e->summary_alone), "Placed on CPU %s.",
                       cpus ? cpus : "?");
        (void)snprintf(e->summary, sizeof(e->summary),
                       "Placed on CPU %s with %d (%s), with which it exchanges hand-offs (%s): %s.",
                       cpus ? cpus : "?", decision->tasks[other].tid, decision->comm[other],
                       cp_relation_to_string(decision->relation), decision->why);
        return;
    }
    if (e->finding.outcome == CP_OUTCOME_PLACE) {
        (void)snprintf(e->summary, sizeof(e->summary), "%s",
                       cp_manager_mode(manager) == CP_MODE_ENFORCE
                           ? "About to be placed at the next look."
                           : "Would be placed, but the mode is not enforce: nothing is changed.");
        return;
    }
    if (e->finding.outcome == CP_OUTCOME_NO_RELATION)
        (void)snprintf(e->summary, sizeof(e->summary), "Left alone: relation %s (%s).",
                       cp_relation_to_string(e->finding.verdict.relation),
                       cp_relation_reason_to_string(e->finding.verdict.reason));
    else
        (void)snprintf(e->summary, sizeof(e->summary), "Left alone: %s",
                       cp_plan_outcome_explain(e->finding.outcome));
}

/* A pair that was just placed starts its statistics anew: until the next window its decision says
 * who the partner is. */
static void explain_by_decision(struct cp_bus_explanation *e)
{
    e->finding.outcome = CP_OUTCOME_STAND;
    e->finding.level_now = e->decision->level;
    e->finding.n_candidates = e->decision->n_candidates;
    memcpy(e->finding.candidates, e->decision->candidates, sizeof(e->finding.candidates));
}

static int serve_explain(void *userdata, struct cp_task_id task, struct cp_bus_explanation *ret)
{
    struct cp_manager *manager = userdata;
    struct cp_bus_explanation e = {0};
    const struct cp_act_held *held;
    const struct cp_pair *pair;
    struct cp_error error = {0};
    int r;

    if (task.start_ticks == 0) {
        struct cp_proc_stat stat;

        r = cp_proc_read_stat(&manager->root, task.tid, &stat);
        if (r != 0)
            return r == CP_PROC_GONE ? CP_BUS_NO_SUCH_TASK : r;
        task = stat.id;
    }
    r = cp_task_facts_read(&manager->root, manager->machine, manager->wake, task, cp_now_ns(),
                           &e.facts, &error);
    if (r != 0)
        return r == CP_PROC_GONE ? CP_BUS_NO_SUCH_TASK : r;
    held = manager->actuator->ops->find(manager->actuator, task);
    if (held) {
        e.facts.user_mask = held->had_user_mask ? CP_USER_MASK_SET : CP_USER_MASK_NONE;
        r = cp_cpumask_copy(&e.former_mask, held->original);
        if (r < 0) {
            cp_bus_explanation_done(&e);
            return r;
        }
    }
    e.decision = cp_ledger_find_task(manager->ledger, task);
    pair = cp_pairs_strongest(manager->pairs, task);
    if (pair && find_for_pair(manager, pair, &e.finding) == 0) {
        e.have_pair = true;
        e.pair = *pair;
    } else if (e.decision && cp_decision_state_is_standing(e.decision->state)) {
        explain_by_decision(&e);
    }
    if (e.have_pair || (e.decision && cp_decision_state_is_standing(e.decision->state)))
        summarise_pair(manager, &e);
    else
        summarise_without_pair(manager, &e);
    *ret = e;
    return 0;
}

static void serve_pair_outcome(void *userdata, const struct cp_pair *pair,
                               enum cp_plan_outcome *ret_outcome,
                               const struct cp_decision **ret_decision)
{
    struct cp_manager *manager = userdata;
    const struct cp_plan *plan = &manager->last_plan;
    const struct cp_decision *decision = cp_ledger_find_task(manager->ledger, pair->a);

    if (decision && !((cp_task_id_equal(decision->tasks[0], pair->a) &&
                       cp_task_id_equal(decision->tasks[1], pair->b)) ||
                      (cp_task_id_equal(decision->tasks[0], pair->b) &&
                       cp_task_id_equal(decision->tasks[1], pair->a))))
        decision = NULL;
    *ret_decision = decision;
    *ret_outcome = CP_OUTCOME_NO_RELATION;
    if (decision && cp_decision_state_is_standing(decision->state)) {
        *ret_outcome = CP_OUTCOME_STAND;
        return;
    }
    for (size_t i = 0; i < plan->n_findings; i++)
        if (cp_task_id_equal(plan->findings[i].tasks[0], pair->a) &&
            cp_task_id_equal(plan->findings[i].tasks[1], pair->b))
            *ret_outcome = plan->findings[i].outcome;
}

static int serve_undo(void *userdata, uint64_t id, struct cp_error *error)
{
    struct cp_manager *manager = userdata;
    struct cp_decision *decision = cp_ledger_find(manager->ledger, id);

    if (!decision) {
        cp_error_set(error, ENOENT, "there is no decision %" PRIu64, id);
        return CP_BUS_NO_SUCH_DECISION;
    }
    if (!cp_decision_state_is_standing(decision->state)) {
        cp_error_set(error, EINVAL, "decision %" PRIu64 " is not in effect: it is %s", id,
                     cp_decision_state_to_string(decision->state));
        return CP_BUS_NOT_IN_EFFECT;
    }
    cp_ledger_veto(manager->ledger, decision->tasks[0], decision->tasks[1]);
    cp_manager_end_decision(manager, decision, CP_DECISION_UNDONE, "undone by hand");
    cp_manager_notify_status(manager);
    return 0;
}

static int serve_undo_all(void *userdata, unsigned *ret_undone, struct cp_error *error)
{
    struct cp_manager *manager = userdata;

    (void)error;
    *ret_undone = cp_manager_end_all(manager, CP_DECISION_UNDONE, "undone by hand");
    cp_manager_notify_status(manager);
    return 0;
}

static int serve_allow(void *userdata, struct cp_task_id task, unsigned *ret_lifted)
{
    struct cp_manager *manager = userdata;

    *ret_lifted = cp_ledger_allow(manager->ledger, task);
    if (*ret_lifted) {
        manager->wake->ops->rearm(manager->wake);
        cp_look_on_hot(&manager->look, cp_now_ns());
        cp_manager_arm_look(manager);
    }
    return 0;
}

static int persist_mode(const struct cp_manager *manager, enum cp_mode mode, struct cp_error *error)
{
    _cleanup_close_ int directory =
        open(manager->config.state_directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_close_ int fd = -1;
    const char *text = cp_mode_to_string(mode);

    if (directory >= 0)
        fd = openat(directory, "mode.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    0644);
    if (fd < 0 || dprintf(fd, "%s\n", text) < 0 || fsync(fd) < 0 ||
        renameat(directory, "mode.new", directory, "mode") < 0)
        return cp_error_set(error, errno, "cannot keep the mode in %s: %s",
                            manager->config.state_directory, strerror(errno));
    return 0;
}

static int serve_set_mode(void *userdata, enum cp_mode mode, bool persist, struct cp_error *error)
{
    struct cp_manager *manager = userdata;
    enum cp_mode before = cp_manager_mode(manager);

    if (persist) {
        int r = persist_mode(manager, mode, error);

        if (r < 0)
            return r;
    }
    manager->policy.mode = mode;
    if (cp_manager_mode(manager) != CP_MODE_ENFORCE)
        (void)cp_manager_end_all(manager, CP_DECISION_RESTORED, "the mode was changed");
    if (cp_manager_mode(manager) > before) {
        manager->wake->ops->rearm(manager->wake);
        cp_look_on_hot(&manager->look, cp_now_ns());
    }
    cp_log_notice("mode %s (effective %s)", cp_mode_to_string(mode),
                  cp_mode_to_string(cp_manager_mode(manager)));
    cp_bus_emit_mode_changed(manager->bus);
    cp_manager_arm_look(manager);
    cp_manager_notify_status(manager);
    return 0;
}

static int serve_calibrate(void *userdata, struct cp_error *error)
{
    struct cp_manager *manager = userdata;

    if (manager->calibration.running)
        return CP_BUS_BUSY;
    return cp_manager_start_calibration(manager, error);
}

/* Nobody could ask or undo any more: end in order, and let the service manager start anew. */
static void serve_disconnected(void *userdata)
{
    struct cp_manager *manager = userdata;

    (void)sd_event_exit(manager->event, -ECONNRESET);
}

const struct cp_bus_ops cp_manager_bus_ops = {
    .view = serve_view,
    .explain = serve_explain,
    .pair_outcome = serve_pair_outcome,
    .undo = serve_undo,
    .undo_all = serve_undo_all,
    .allow = serve_allow,
    .set_mode = serve_set_mode,
    .calibrate = serve_calibrate,
    .disconnected = serve_disconnected,
};
