/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a pair is, and why (design, section 4, "Relation"). Reads the tables, changes nothing.
 *
 * Serial or overlapping is asked of the two tasks, not of the place where they happen to be: is one
 * CPU cheaper than the cheapest level apart that the machine has? To compare with where they are
 * now would answer "no gain" for every pair that is stacked already, and a placement would seem to
 * end the relation that it was made for.
 *
 * The same holds for what goes into the question. On one CPU three figures mean something else:
 *  - Balance. The wakee preempts its waker before that sleeps, does its work, and finds nobody to
 *    wake: redis-benchmark -c 1 on one CPU showed 149 000 wakes one way and 10 000 the other, and
 *    8 200 both ways apart. A stream through a pipe looks just so (604 000 and 26 000).
 *  - Tail. A preempted waker comes back to a reply that is there already, so its tail goes on
 *    through its whole next round of work instead of ending in the sleep that shows dependence.
 *  - Load. Two that run on one CPU cannot show more than one CPU of run time.
 * Rates, latencies, and the run of the more frequent direction stay true. So hand-offs between CPUs
 * decide: each window that shows a pair apart is remembered by itself (struct cp_pair_apart), and
 * while more than a fifth of the pair's hand-offs are stacked, balance, tail, run and load are
 * those. That ends when the program has changed: when the run of the more frequent direction has
 * more than doubled (apart, run contains the cost of waking across CPUs, so it can only shrink by
 * stacking). A pair that was never seen apart is taken as it shows itself. Its tail is then an
 * upper bound, which errs towards leaving one CPU; there it is seen apart, and the move is undone
 * if it did not pay.
 *
 * The profile's tail and run are means over both directions. min(mean tail, mean run) is never
 * below the mean of the minima, so mixing errs against stacking.
 */
#include "pair/judge.h"

#include "base/cleanup.h"
#include "pair/table.h"

#define MAX_EXCLUSIVE_FAN_OUT 1.5
#define MIN_WIDE_FAN_OUT 4.0
#define MIN_WIDE_UNANSWERED 0.5
#define MAX_RUN_GROWTH 2.0
/* One CPU, and what windows lose at their edges: a stacked pair that never idles measures 1.0. */
#define MAX_LOAD_OF_ONE_CPU 1.05

/* The figures that the relation rests on; [0] is a wakes b, [1] b wakes a. */
struct evidence {
    double rate_hz[2];
    double tail_ns[2];
    double run_ns[2];
    double load;
};

/* Mean share of a level, weighed by the rates of the directions whose levels are known. */
static double level_share(const struct cp_pair *pair, enum cp_level level)
{
    const struct cp_direction *directions[] = {&pair->ab, &pair->ba};
    double share = 0.0;
    double rate_hz = 0.0;

    for (unsigned i = 0; i < CP_ELEMENTS(directions); i++) {
        double known = 0.0;

        for (unsigned l = 0; l < CP_LEVEL_MAX; l++)
            known += directions[i]->level[l];
        if (known <= 0.0)
            continue;
        share += directions[i]->rate_hz * directions[i]->level[level];
        rate_hz += directions[i]->rate_hz;
    }
    return rate_hz > 0.0 ? share / rate_hz : 0.0;
}

/* Does what the pair showed apart still speak for it, now that it is stacked? */
static bool apart_holds(const struct cp_pair *pair)
{
    unsigned frequent = pair->ab.rate_hz >= pair->ba.rate_hz ? 0 : 1;
    double run_ns = frequent == 0 ? pair->ab.run_ns : pair->ba.run_ns;

    return pair->apart.seen_ns != 0 &&
           level_share(pair, CP_LEVEL_CPU) > CP_JUDGE_MAX_STACKED_SHARE &&
           run_ns <= MAX_RUN_GROWTH * (double)pair->apart.run_ns[frequent];
}

static double load_of(const struct cp_pair_task *task)
{
    return task ? task->load : 0.0;
}

static void gather_evidence(const struct cp_pair *pair, const struct cp_pair_task *a,
                            const struct cp_pair_task *b, bool use_apart, struct evidence *ret)
{
    *ret = (struct evidence){
        .rate_hz = {pair->ab.rate_hz, pair->ba.rate_hz},
        .tail_ns = {pair->ab.tail_ns, pair->ba.tail_ns},
        .run_ns = {pair->ab.run_ns, pair->ba.run_ns},
        .load = load_of(a) + load_of(b),
    };
    if (!use_apart)
        return;
    for (unsigned i = 0; i < 2; i++) {
        ret->rate_hz[i] = (double)pair->apart.rate_hz[i];
        ret->tail_ns[i] = (double)pair->apart.tail_ns[i];
        ret->run_ns[i] = (double)pair->apart.run_ns[i];
    }
    ret->load = (double)pair->apart.load;
}

/* Mean of both directions weighed by rate; one without samples (0) says nothing. */
static double mean_of(const double value[2], const double rate_hz[2])
{
    double sum = 0.0;
    double weight = 0.0;

    for (unsigned i = 0; i < 2; i++) {
        if (value[i] <= 0.0)
            continue;
        sum += value[i] * rate_hz[i];
        weight += rate_hz[i];
    }
    return weight > 0.0 ? sum / weight : 0.0;
}

static double balance_of(double x_hz, double y_hz)
{
    double most_hz = CP_MAX(x_hz, y_hz);

    return most_hz > 0.0 ? CP_MIN(x_hz, y_hz) / most_hz : 0.0;
}

/* Fans out to many who do not answer each time, at a rate that matters. */
static bool is_wide(const struct cp_pair_task *task, const struct cp_policy *policy)
{
    return task && task->fan_out >= MIN_WIDE_FAN_OUT && task->wakes_hz >= policy->min_rate_hz &&
           task->unanswered > MIN_WIDE_UNANSWERED;
}

static bool is_exclusive(const struct cp_pair_task *task)
{
    return !task || task->fan_out < MAX_EXCLUSIVE_FAN_OUT;
}

/* Can two CPUs of this machine have this level as their innermost shared one? */
static bool is_level_apart(const struct cp_pairs *pairs, const struct cp_costs *costs,
                           const struct cp_handoff_profile *profile, enum cp_level level)
{
    if (pairs->levels_known)
        return pairs->levels[level];
    return costs->level[level].source != CP_COST_DEFAULT || profile->level[level] > 0.0;
}

static double cheapest_apart_ns(const struct cp_pairs *pairs, const struct cp_costs *costs,
                                const struct cp_handoff_profile *profile)
{
    double cheapest_ns = 0.0;
    bool found = false;

    for (enum cp_level l = CP_LEVEL_CORE; l < CP_LEVEL_MAX; l++) {
        double total_ns = cp_model_total_ns(costs, profile, l);

        if (is_level_apart(pairs, costs, profile, l) && (!found || total_ns < cheapest_ns)) {
            cheapest_ns = total_ns;
            found = true;
        }
    }
    /* Nothing is known of this machine yet; every one has something at the level of an LLC. */
    return found ? cheapest_ns : cp_model_total_ns(costs, profile, CP_LEVEL_LLC);
}

static enum cp_relation relation_of_mutual(const struct cp_pairs *pairs,
                                           const struct cp_costs *costs,
                                           const struct cp_handoff_profile *profile, double load,
                                           enum cp_relation_reason *ret_reason)
{
    if (cp_model_total_ns(costs, profile, CP_LEVEL_CPU) >=
        cheapest_apart_ns(pairs, costs, profile)) {
        *ret_reason = CP_WHY_RUNS_IN_PARALLEL;
        return CP_RELATION_OVERLAPPING;
    }
    if (load > MAX_LOAD_OF_ONE_CPU) {
        *ret_reason = CP_WHY_TOO_MUCH_RUN_TIME;
        return CP_RELATION_OVERLAPPING;
    }
    *ret_reason = CP_WHY_STACKING_GAINS;
    return CP_RELATION_SERIAL;
}

void cp_pair_judge(const struct cp_pairs *pairs, const struct cp_pair *pair,
                   const struct cp_policy *policy, const struct cp_costs *costs,
                   struct cp_pair_verdict *ret_verdict)
{
    const struct cp_pair_task *a = cp_pairs_find_task(pairs, pair->a);
    const struct cp_pair_task *b = cp_pairs_find_task(pairs, pair->b);
    bool use_apart = apart_holds(pair);
    struct cp_pair_verdict verdict = {.rate_hz = pair->ab.rate_hz + pair->ba.rate_hz};
    struct cp_handoff_profile *profile = &verdict.profile;
    struct evidence evidence;

    gather_evidence(pair, a, b, use_apart, &evidence);
    profile->rate_hz = verdict.rate_hz;
    profile->tail_ns = mean_of(evidence.tail_ns, evidence.rate_hz);
    profile->run_ns = mean_of(evidence.run_ns, evidence.rate_hz);
    for (enum cp_level l = CP_LEVEL_CPU; l < CP_LEVEL_MAX; l++)
        profile->level[l] = level_share(pair, l);
    /* Stacking only hides answers: a pair that is mutual even so is mutual. */
    verdict.balance = CP_MAX(balance_of(pair->ab.rate_hz, pair->ba.rate_hz),
                             balance_of(evidence.rate_hz[0], evidence.rate_hz[1]));
    verdict.stacking_gain = cp_model_gain(costs, profile, CP_LEVEL_CPU);

    verdict.relation = CP_RELATION_NONE;
    if (is_wide(a, policy) || is_wide(b, policy)) {
        verdict.relation = CP_RELATION_WIDE;
        verdict.reason = CP_WHY_FAN_OUT;
    } else if (verdict.rate_hz < policy->min_rate_hz) {
        verdict.reason = CP_WHY_BELOW_RATE;
    } else if (pair->handoffs < CP_JUDGE_MIN_HANDOFFS || profile->tail_ns <= 0.0 ||
               profile->run_ns <= 0.0) {
        verdict.reason = CP_WHY_TOO_FEW_SAMPLES;
    } else if (verdict.balance < CP_JUDGE_MIN_BALANCE) {
        verdict.reason = CP_WHY_ONE_WAY;
    } else if (!is_exclusive(a) || !is_exclusive(b)) {
        verdict.reason = CP_WHY_NOT_EXCLUSIVE;
    } else {
        verdict.relation =
            relation_of_mutual(pairs, costs, profile, evidence.load, &verdict.reason);
    }
    *ret_verdict = verdict;
}

const char *cp_relation_to_string(enum cp_relation relation)
{
    static const char *const names[CP_RELATION_MAX] = {
        [CP_RELATION_NONE] = "none",
        [CP_RELATION_SERIAL] = "serial",
        [CP_RELATION_OVERLAPPING] = "overlapping",
        [CP_RELATION_WIDE] = "wide",
    };

    return (unsigned)relation < CP_RELATION_MAX ? names[relation] : NULL;
}

const char *cp_relation_reason_to_string(enum cp_relation_reason reason)
{
    static const char *const names[CP_WHY_MAX] = {
        [CP_WHY_STACKING_GAINS] = "stacking-gains",
        [CP_WHY_RUNS_IN_PARALLEL] = "runs-in-parallel",
        [CP_WHY_TOO_MUCH_RUN_TIME] = "too-much-run-time",
        [CP_WHY_BELOW_RATE] = "below-rate",
        [CP_WHY_ONE_WAY] = "one-way",
        [CP_WHY_NOT_EXCLUSIVE] = "not-exclusive",
        [CP_WHY_FAN_OUT] = "fan-out",
        [CP_WHY_TOO_FEW_SAMPLES] = "too-few-samples",
    };

    return (unsigned)reason < CP_WHY_MAX ? names[reason] : NULL;
}
