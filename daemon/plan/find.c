/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a pair fits best: the choice of a CPU or a domain by the room that is left. Changes no
 * load and no claim.
 */
#include "plan/room.h"

#include "base/cleanup.h"

/* Other work keeps a domain this busy: it is saturated, and a pair that seems to fit would queue.
 */
#define SATURATED_SHARE 0.95
/* Sums of loads are compared with whole CPUs: what adding and giving back may lose. */
#define ROUNDING 1e-6

/*
 * So much of a CPU must be left for a pair that fills one. A pair on one CPU that waits for nothing
 * but itself shows a load of 1.0 whatever it needs: it would fit no CPU on which anything else ever
 * ran, not even the one where it is.
 */
#define FULL_CPU 0.9

/*
 * Preferences are weighed as load: a place where the pair is at home already may carry this many
 * CPUs more than another before the pair is moved away from it.
 */
#define BONUS_SAME_CPU 0.10
#define BONUS_SAME_LLC 0.05
#define BONUS_DOMAIN 0.05 /* for each of the two that is there */
/* A busy SMT sibling takes about half a core away. */
#define WEIGHT_SIBLING 0.5
/* Between equal CPUs the emptier LLC. */
#define WEIGHT_LLC 0.05

static bool fits(double outside, double claimed, double more, unsigned capacity)
{
    return outside < SATURATED_SHARE * capacity && outside + claimed + more <= capacity + ROUNDING;
}

/* Has each domain of the CPU from that level outwards room for the load? */
static bool domains_have_room(const struct cp_room *room, uint32_t cpu, enum cp_level from,
                              double load)
{
    for (enum cp_level l = from; l <= CP_LEVEL_PACKAGE; l++) {
        uint32_t d = room->machine->cpus[cpu].domain[l];
        const struct cp_room_level *level = &room->levels[l];

        if (d != CP_DOMAIN_NONE &&
            !fits(level->outside[d], level->claimed[d], load, level->n_usable[d]))
            return false;
    }
    return true;
}

/* Different owners never share a core (design, "Owners"). */
static bool core_is_open(const struct cp_room *room, uint32_t cpu,
                         const struct cp_room_request *request)
{
    const struct cp_room_core *core = &room->cores[room->core[cpu]];

    return core->n_claims == 0 || request->across ||
           (!core->owner.mixed && !request->owner.mixed && core->owner.uid == request->owner.uid);
}

static bool is_allowed(const struct cp_room *room, uint32_t cpu,
                       const struct cp_room_request *request)
{
    return room->usable[cpu] && cp_cpumask_test(request->allowed, room->machine->cpus[cpu].cpu);
}

/* How good a place is: fewer claims first, then a core without claims, then the lower score. */
struct rank {
    unsigned n_claims;
    bool core_is_claimed;
    double score;
};

static bool rank_is_better(const struct rank *a, const struct rank *b)
{
    if (a->n_claims != b->n_claims)
        return a->n_claims < b->n_claims;
    if (a->core_is_claimed != b->core_is_claimed)
        return !a->core_is_claimed;
    return a->score < b->score;
}

/* Mean outside load of the other usable CPUs of the core. */
static double sibling_load(const struct cp_room *room, uint32_t cpu)
{
    uint32_t core = room->machine->cpus[cpu].domain[CP_LEVEL_CORE];
    const struct cp_room_level *cores = &room->levels[CP_LEVEL_CORE];

    if (core == CP_DOMAIN_NONE || cores->n_usable[core] < 2)
        return 0.0;
    return (cores->outside[core] - room->outside[cpu]) / (cores->n_usable[core] - 1);
}

static double cpu_score(const struct cp_room *room, uint32_t cpu,
                        const struct cp_room_request *request)
{
    const struct cp_machine_cpu *cpus = room->machine->cpus;
    uint32_t llc = cpus[cpu].domain[CP_LEVEL_LLC];
    double score = room->outside[cpu] + room->levels[CP_LEVEL_PACKAGE].parts[cpu] +
                   WEIGHT_SIBLING * sibling_load(room, cpu);
    double bonus = 0.0;

    if (llc != CP_DOMAIN_NONE) {
        const struct cp_room_level *llcs = &room->levels[CP_LEVEL_LLC];

        score += WEIGHT_LLC * (llcs->outside[llc] + llcs->claimed[llc]) / llcs->n_usable[llc];
    }
    for (unsigned i = 0; i < 2; i++) {
        uint32_t last = request->last[i];

        if (last == cpu)
            bonus = BONUS_SAME_CPU;
        else if (last != CP_DOMAIN_NONE && llc != CP_DOMAIN_NONE &&
                 cpus[last].domain[CP_LEVEL_LLC] == llc)
            bonus = CP_MAX(bonus, BONUS_SAME_LLC);
    }
    return score - bonus;
}

static uint32_t find_cpu(const struct cp_room *room, const struct cp_room_request *request)
{
    uint32_t best = CP_DOMAIN_NONE;
    struct rank best_rank = {0};
    double load = CP_MIN(request->load, FULL_CPU);

    for (uint32_t i = 0; i < room->machine->n_cpus; i++) {
        struct rank rank;

        if (!is_allowed(room, i, request) || !core_is_open(room, i, request) ||
            !fits(room->outside[i], room->levels[CP_LEVEL_CORE].parts[i], load, 1) ||
            !domains_have_room(room, i, CP_LEVEL_CORE, load))
            continue;
        rank.n_claims = room->n_claims[i];
        rank.core_is_claimed = room->cores[room->core[i]].n_claims > 0;
        rank.score = cpu_score(room, i, request);
        if (best == CP_DOMAIN_NONE || rank_is_better(&rank, &best_rank)) {
            best = i;
            best_rank = rank;
        }
    }
    return best;
}

/* Counts for each domain of the level what the pair could use of it. */
static void measure_targets(struct cp_room *room, enum cp_level level,
                            const struct cp_room_request *request)
{
    const struct cp_machine *machine = room->machine;

    for (uint32_t d = 0; d < machine->n_domains[level]; d++) {
        room->n_target[d] = 0;
        room->target_load[d] = 0.0;
    }
    for (uint32_t i = 0; i < machine->n_cpus; i++) {
        uint32_t d = machine->cpus[i].domain[level];

        if (d == CP_DOMAIN_NONE || !is_allowed(room, i, request))
            continue;
        room->n_target[d]++;
        room->target_load[d] += room->outside[i] + room->levels[level].parts[i];
    }
}

static double domain_score(const struct cp_room *room, enum cp_level level, uint32_t domain,
                           const struct cp_room_request *request)
{
    double score = room->target_load[domain] / room->n_target[domain];

    for (unsigned i = 0; i < 2; i++)
        if (request->last[i] != CP_DOMAIN_NONE &&
            room->machine->cpus[request->last[i]].domain[level] == domain)
            score -= BONUS_DOMAIN;
    return score;
}

static bool domain_has_room(const struct cp_room *room, enum cp_level level, uint32_t domain,
                            uint32_t first_cpu, const struct cp_room_request *request)
{
    unsigned n = room->n_target[domain];

    if (room->target_load[domain] + request->load > n + ROUNDING)
        return false;
    if (level == CP_LEVEL_CORE && !core_is_open(room, first_cpu, request))
        return false;
    return domains_have_room(room, first_cpu, level, request->load);
}

static uint32_t find_domain(struct cp_room *room, enum cp_level level,
                            const struct cp_room_request *request)
{
    const struct cp_machine *machine = room->machine;
    uint32_t best = CP_DOMAIN_NONE;
    struct rank best_rank = {0};

    measure_targets(room, level, request);
    for (uint32_t i = 0; i < machine->n_cpus; i++) {
        uint32_t d = machine->cpus[i].domain[level];
        struct rank rank = {0};

        if (d == CP_DOMAIN_NONE || !is_allowed(room, i, request) ||
            room->n_target[d] < request->min_cpus)
            continue;
        if (domain_has_room(room, level, d, i, request)) {
            if (level == CP_LEVEL_CORE)
                rank.n_claims = room->cores[d].n_claims;
            rank.score = domain_score(room, level, d, request);
            if (best == CP_DOMAIN_NONE || rank_is_better(&rank, &best_rank)) {
                best = d;
                best_rank = rank;
            }
        }
        /* Each domain once, at its first allowed CPU. */
        room->n_target[d] = 0;
    }
    return best;
}

uint32_t cp_room_find(struct cp_room *room, enum cp_level level,
                      const struct cp_room_request *request)
{
    if (level == CP_LEVEL_CPU)
        return find_cpu(room, request);
    if (level >= CP_LEVEL_CORE && level <= CP_LEVEL_PACKAGE)
        return find_domain(room, level, request);
    return CP_DOMAIN_NONE;
}
