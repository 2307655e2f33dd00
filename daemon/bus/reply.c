/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dictionaries about pairs, decisions and tasks. Writes what it is given and decides nothing.
 */
#include "bus/reply.h"

#include "bus/writer.h"

#include <sched.h>

#define DICTIONARY "{sv}"
#define DICTIONARIES "a{sv}"

static void put_handoffs(struct cp_bus_writer *w, const struct cp_direction *ab,
                         const struct cp_direction *ba)
{
    cp_bus_put_number(w, "latency_ab", ab->latency_ns);
    cp_bus_put_number(w, "latency_ba", ba->latency_ns);
    cp_bus_put_number(w, "tail_ab", ab->tail_ns);
    cp_bus_put_number(w, "tail_ba", ba->tail_ns);
    cp_bus_put_number(w, "run_ab", ab->run_ns);
    cp_bus_put_number(w, "run_ba", ba->run_ns);
    cp_bus_put_number(w, "slept_ab", ab->slept_share);
    cp_bus_put_number(w, "slept_ba", ba->slept_share);
}

static void put_levels(struct cp_bus_writer *w, const struct cp_handoff_profile *profile)
{
    cp_bus_open_entry(w, "levels", "{sd}");
    for (unsigned level = 0; level < CP_LEVEL_MAX; level++)
        cp_bus_put_share(w, cp_level_to_string((enum cp_level)level), profile->level[level]);
    cp_bus_close_entry(w);
}

static void put_pair_tasks(struct cp_bus_writer *w, const struct cp_pair *pair,
                           const struct cp_pair_task *a, const struct cp_pair_task *b)
{
    static const struct cp_pair_task unknown = {.uid = (uid_t)-1};

    a = a ? a : &unknown;
    b = b ? b : &unknown;
    cp_bus_put_task(w, "task_a", pair->a);
    cp_bus_put_task(w, "task_b", pair->b);
    cp_bus_put_text(w, "comm_a", a->comm);
    cp_bus_put_text(w, "comm_b", b->comm);
    cp_bus_put_u32(w, "pid_a", (uint32_t)a->tgid);
    cp_bus_put_u32(w, "pid_b", (uint32_t)b->tgid);
    cp_bus_put_u32(w, "uid_a", a->uid);
    cp_bus_put_u32(w, "uid_b", b->uid);
    cp_bus_put_number(w, "load_a", a->load);
    cp_bus_put_number(w, "load_b", b->load);
    cp_bus_put_number(w, "fan_out_a", a->fan_out);
    cp_bus_put_number(w, "fan_out_b", b->fan_out);
}

/* Without the array around it, so that it can stand alone or inside an explanation. */
static void put_pair(struct cp_bus_writer *w, const struct cp_bus_pair *pair)
{
    const struct cp_pair_verdict *verdict = pair->verdict;

    put_pair_tasks(w, pair->pair, pair->a, pair->b);
    cp_bus_put_text(w, "relation", cp_relation_to_string(verdict->relation));
    cp_bus_put_text(w, "reason", cp_relation_reason_to_string(verdict->reason));
    cp_bus_put_number(w, "rate", verdict->rate_hz);
    cp_bus_put_number(w, "balance", verdict->balance);
    cp_bus_put_number(w, "stacking_gain", verdict->stacking_gain);
    put_handoffs(w, &pair->pair->ab, &pair->pair->ba);
    put_levels(w, &verdict->profile);
    cp_bus_put_text(w, "outcome", cp_plan_outcome_to_string(pair->outcome));
    cp_bus_put_text(w, "outcome_text", cp_plan_outcome_explain(pair->outcome));
    cp_bus_put_u64(w, "decision", pair->decision);
}

int cp_bus_write_pair(sd_bus_message *message, const struct cp_bus_pair *pair)
{
    struct cp_bus_writer w = {.message = message};

    cp_bus_open_array(&w, DICTIONARY);
    put_pair(&w, pair);
    cp_bus_close(&w);
    return w.error;
}

static void put_candidates(struct cp_bus_writer *w, const struct cp_plan_candidate *candidates,
                           size_t n_candidates)
{
    cp_bus_open_entry(w, "candidates", DICTIONARIES);
    for (size_t i = 0; i < n_candidates; i++) {
        cp_bus_open_array(w, DICTIONARY);
        cp_bus_put_text(w, "level", cp_level_to_string(candidates[i].level));
        cp_bus_put_number(w, "total", candidates[i].total_ns);
        cp_bus_put_number(w, "gain", candidates[i].gain);
        cp_bus_put_bool(w, "possible", candidates[i].possible);
        cp_bus_close(w);
    }
    cp_bus_close_entry(w);
}

static void put_observation(struct cp_bus_writer *w, const char *key,
                            const struct cp_observation *observation)
{
    cp_bus_open_entry(w, key, DICTIONARY);
    if (observation->handoffs > 0) {
        cp_bus_put_number(w, "rate", observation->rate_hz);
        cp_bus_put_number(w, "loss", observation->loss_ns);
        cp_bus_put_number(w, "latency", observation->latency_ns);
        cp_bus_put_number(w, "outside", observation->outside_share);
        cp_bus_put_u64(w, "handoffs", observation->handoffs);
        cp_bus_put_u64(w, "begin", observation->begin_ns);
        cp_bus_put_u64(w, "end", observation->end_ns);
    }
    cp_bus_close_entry(w);
}

static void put_decision_tasks(struct cp_bus_writer *w, const struct cp_decision *decision)
{
    cp_bus_put_task(w, "task_a", decision->tasks[0]);
    cp_bus_put_task(w, "task_b", decision->tasks[1]);
    cp_bus_put_text(w, "comm_a", decision->comm[0]);
    cp_bus_put_text(w, "comm_b", decision->comm[1]);
    cp_bus_put_u32(w, "pid_a", (uint32_t)decision->tgid[0]);
    cp_bus_put_u32(w, "pid_b", (uint32_t)decision->tgid[1]);
    cp_bus_put_u32(w, "uid_a", decision->uid[0]);
    cp_bus_put_u32(w, "uid_b", decision->uid[1]);
}

static void put_decision(struct cp_bus_writer *w, const struct cp_decision *decision)
{
    cp_bus_put_u64(w, "id", decision->id);
    cp_bus_put_text(w, "state", cp_decision_state_to_string(decision->state));
    cp_bus_put_text(w, "why", decision->why);
    put_decision_tasks(w, decision);
    cp_bus_put_cpus(w, "cpus", &decision->target);
    cp_bus_put_text(w, "level", cp_level_to_string(decision->level));
    cp_bus_put_text(w, "level_before", cp_level_to_string(decision->level_before));
    cp_bus_put_text(w, "rule", cp_plan_rule_to_string(decision->rule));
    cp_bus_put_text(w, "relation", cp_relation_to_string(decision->relation));
    cp_bus_put_text(w, "policy", decision->policy);
    cp_bus_put_number(w, "predicted_gain", decision->predicted_gain);
    put_candidates(w, decision->candidates, decision->n_candidates);
    put_observation(w, "before", &decision->before);
    put_observation(w, "after", &decision->after);
    cp_bus_put_u64(w, "hot", decision->hot_ns);
    cp_bus_put_u64(w, "decided", decision->decided_ns);
    cp_bus_put_u64(w, "applied", decision->applied_ns);
    cp_bus_put_u64(w, "changed", decision->changed_ns);
}

int cp_bus_write_decision(sd_bus_message *message, const struct cp_decision *decision)
{
    struct cp_bus_writer w = {.message = message};

    cp_bus_open_array(&w, DICTIONARY);
    put_decision(&w, decision);
    cp_bus_close(&w);
    return w.error;
}

static void put_policy(struct cp_bus_writer *w, const struct cp_policy *policy)
{
    cp_bus_put_text(w, "name", policy->name);
    cp_bus_put_text(w, "mode", cp_mode_to_string(policy->mode));
    cp_bus_put_text(w, "pairs", cp_pair_level_to_string(policy->pairs));
    cp_bus_put_text(w, "affinity", cp_affinity_to_string(policy->affinity));
    cp_bus_put_text(w, "keep", cp_keep_to_string(policy->keep));
    cp_bus_put_number(w, "min_rate", policy->min_rate_hz);
    cp_bus_put_number(w, "min_gain", policy->min_gain_ns_per_s);
    cp_bus_put_number(w, "margin", policy->margin);
    cp_bus_put_u64(w, "settle", policy->settle_ns);
    cp_bus_put_u64(w, "min_age", policy->min_age_ns);
    cp_bus_put_bool(w, "across", policy->across);
    cp_bus_put_text(w, "nodes", policy->any_node ? "any" : "home");
}

int cp_bus_write_policy(sd_bus_message *message, const struct cp_policy *policy)
{
    struct cp_bus_writer w = {.message = message};

    cp_bus_open_array(&w, DICTIONARY);
    put_policy(&w, policy);
    cp_bus_close(&w);
    return w.error;
}

/* The words of sched(7), without their prefix. 7 is SCHED_EXT of kernels 6.12 and later. */
static const char *sched_policy_to_string(unsigned policy)
{
    static const char *const names[] = {
        [SCHED_OTHER] = "other",
        [SCHED_FIFO] = "fifo",
        [SCHED_RR] = "rr",
        [SCHED_BATCH] = "batch",
        [SCHED_IDLE] = "idle",
        [SCHED_DEADLINE] = "deadline",
        [7] = "ext",
    };

    return policy < CP_ELEMENTS(names) && names[policy] ? names[policy] : "unknown";
}

static void put_facts(struct cp_bus_writer *w, const struct cp_task_facts *facts)
{
    cp_bus_open_entry(w, "facts", DICTIONARY);
    cp_bus_put_u64(w, "age", facts->age_ns);
    cp_bus_put_text(w, "sched", sched_policy_to_string(facts->sched_policy));
    cp_bus_put_cpus(w, "cpuset", &facts->cpuset);
    cp_bus_put_text(w, "user_mask", facts->user_mask == CP_USER_MASK_SET ? "set" : "none");
    cp_bus_put_u32(w, "last_cpu", facts->last_cpu.os);
    cp_bus_put_u64(w, "rss_kib", facts->rss_kib);
    cp_bus_close_entry(w);
}

static void put_explained_pair(struct cp_bus_writer *w, const struct cp_bus_view *view,
                               const struct cp_bus_explanation *explanation)
{
    const struct cp_plan_finding *finding = &explanation->finding;
    const struct cp_pair *pair = &explanation->pair;
    struct cp_bus_pair shown = {
        .pair = pair,
        .verdict = &finding->verdict,
        .outcome = finding->outcome,
        .decision = explanation->decision ? explanation->decision->id : 0,
    };

    cp_bus_open_entry(w, "pair", DICTIONARY);
    if (explanation->have_pair) {
        shown.a = cp_pairs_find_task(view->pairs, pair->a);
        shown.b = cp_pairs_find_task(view->pairs, pair->b);
        put_pair(w, &shown);
    }
    cp_bus_close_entry(w);
}

static void put_outcome(struct cp_bus_writer *w, const struct cp_bus_explanation *explanation)
{
    const struct cp_plan_finding *finding = &explanation->finding;
    const struct cp_decision *decision = explanation->decision;
    bool known =
        explanation->have_pair || (decision && cp_decision_state_is_standing(decision->state));

    cp_bus_put_text(w, "outcome", known ? cp_plan_outcome_to_string(finding->outcome) : "");
    cp_bus_put_text(w, "outcome_text", known ? cp_plan_outcome_explain(finding->outcome) : "");
    cp_bus_put_u64(w, "outcome_until", known ? finding->until_ns : 0);
    cp_bus_put_text(w, "level_now", known ? cp_level_to_string(finding->level_now) : "");
    put_candidates(w, finding->candidates, known ? finding->n_candidates : 0);
}

int cp_bus_write_explanation(sd_bus_message *message, const struct cp_bus_view *view,
                             const struct cp_bus_explanation *explanation)
{
    struct cp_bus_writer w = {.message = message};
    const struct cp_task_facts *facts = &explanation->facts;

    cp_bus_open_array(&w, DICTIONARY);
    cp_bus_put_task(&w, "task", facts->id);
    cp_bus_put_text(&w, "comm", facts->comm);
    cp_bus_put_u32(&w, "pid", (uint32_t)facts->tgid);
    cp_bus_put_u32(&w, "uid", facts->uid);
    cp_bus_put_cpus(&w, "mask", &facts->allowed);
    cp_bus_put_cpus(&w, "former_mask", &explanation->former_mask);
    cp_bus_put_text(&w, "summary", explanation->summary);
    put_outcome(&w, explanation);
    put_explained_pair(&w, view, explanation);
    cp_bus_open_entry(&w, "decision", DICTIONARY);
    if (explanation->decision)
        put_decision(&w, explanation->decision);
    cp_bus_close_entry(&w);
    cp_bus_open_entry(&w, "policy", DICTIONARY);
    put_policy(&w, view->policy);
    cp_bus_close_entry(&w);
    put_facts(&w, facts);
    cp_bus_close(&w);
    return w.error;
}
