/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bookkeeping of room: loads and claims by CPU and domain. Where a pair goes is find.c. Must not
 * know pairs, policies or costs.
 */
#include "plan/room.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* calloc(0) may give NULL, which would look like no memory. */
static void *zeroed(size_t n, size_t size)
{
    return calloc(CP_MAX(n, 1u), size);
}

static int room_allocate(struct cp_room *room)
{
    const struct cp_machine *machine = room->machine;
    size_t n = machine->n_cpus;
    size_t most_domains = 0;

    for (enum cp_level l = CP_LEVEL_CORE; l <= CP_LEVEL_PACKAGE; l++) {
        struct cp_room_level *level = &room->levels[l];
        size_t n_domains = machine->n_domains[l];

        most_domains = CP_MAX(most_domains, n_domains);
        level->n_usable = zeroed(n_domains, sizeof(*level->n_usable));
        level->outside = zeroed(n_domains, sizeof(*level->outside));
        level->claimed = zeroed(n_domains, sizeof(*level->claimed));
        level->parts = zeroed(n, sizeof(*level->parts));
        if (!level->n_usable || !level->outside || !level->claimed || !level->parts)
            return -ENOMEM;
    }
    room->usable = zeroed(n, sizeof(*room->usable));
    room->outside = zeroed(n, sizeof(*room->outside));
    room->n_claims = zeroed(n, sizeof(*room->n_claims));
    room->core = zeroed(n, sizeof(*room->core));
    room->cores = zeroed(machine->n_domains[CP_LEVEL_CORE] + n, sizeof(*room->cores));
    room->roaming = zeroed(machine->n_domains[CP_LEVEL_LLC], sizeof(*room->roaming));
    room->n_target = zeroed(most_domains, sizeof(*room->n_target));
    room->target_load = zeroed(most_domains, sizeof(*room->target_load));
    if (!room->usable || !room->outside || !room->n_claims || !room->core || !room->cores ||
        !room->roaming || !room->n_target || !room->target_load)
        return -ENOMEM;
    return 0;
}

/* Adds to the outside load of a CPU and of its domains; below 0 there is nothing. */
static void room_add_outside(struct cp_room *room, uint32_t cpu, double load)
{
    double before = room->outside[cpu];

    if (!room->usable[cpu])
        return;
    room->outside[cpu] = CP_MAX(before + load, 0.0);
    for (enum cp_level l = CP_LEVEL_CORE; l <= CP_LEVEL_PACKAGE; l++) {
        uint32_t domain = room->machine->cpus[cpu].domain[l];

        if (domain != CP_DOMAIN_NONE)
            room->levels[l].outside[domain] += room->outside[cpu] - before;
    }
}

int cp_room_init(struct cp_room *room, const struct cp_machine *machine,
                 const uint16_t *busy_permille)
{
    int r;

    *room = (struct cp_room){.machine = machine};
    r = room_allocate(room);
    if (r < 0) {
        cp_room_done(room);
        return r;
    }
    for (uint32_t i = 0; i < machine->n_cpus; i++) {
        const struct cp_machine_cpu *cpu = &machine->cpus[i];
        uint32_t core = cpu->domain[CP_LEVEL_CORE];

        room->core[i] = core != CP_DOMAIN_NONE ? core : machine->n_domains[CP_LEVEL_CORE] + i;
        room->usable[i] = cp_cpumask_test(&machine->usable, cpu->cpu);
        if (!room->usable[i])
            continue;
        for (enum cp_level l = CP_LEVEL_CORE; l <= CP_LEVEL_PACKAGE; l++)
            if (cpu->domain[l] != CP_DOMAIN_NONE)
                room->levels[l].n_usable[cpu->domain[l]]++;
        if (busy_permille)
            room_add_outside(room, i, busy_permille[i] / 1000.0);
    }
    return 0;
}

void cp_room_done(struct cp_room *room)
{
    for (enum cp_level l = CP_LEVEL_CORE; l <= CP_LEVEL_PACKAGE; l++) {
        free(room->levels[l].n_usable);
        free(room->levels[l].outside);
        free(room->levels[l].claimed);
        free(room->levels[l].parts);
    }
    free(room->usable);
    free(room->outside);
    free(room->n_claims);
    free(room->core);
    free(room->cores);
    free(room->roaming);
    free(room->n_target);
    free(room->target_load);
    *room = (struct cp_room){0};
}

static uint32_t room_llc(const struct cp_room *room, uint32_t cpu)
{
    return room->machine->cpus[cpu].domain[CP_LEVEL_LLC];
}

void cp_room_lift(struct cp_room *room, uint32_t cpu, double load, struct cp_room_lift *ret_lift)
{
    struct cp_room_lift lift = {.cpu = cpu};

    if (cpu != CP_DOMAIN_NONE && room->usable[cpu]) {
        lift.on_cpu = CP_MIN(load, room->outside[cpu]);
        room_add_outside(room, cpu, -lift.on_cpu);
        if (room_llc(room, cpu) != CP_DOMAIN_NONE) {
            lift.roaming = load - lift.on_cpu;
            room->roaming[room_llc(room, cpu)] += lift.roaming;
        }
    }
    *ret_lift = lift;
}

void cp_room_settle(struct cp_room *room)
{
    const struct cp_room_level *llcs = &room->levels[CP_LEVEL_LLC];

    /* Turn the sum of each LLC into the share of its outside load that goes. */
    for (uint32_t d = 0; d < room->machine->n_domains[CP_LEVEL_LLC]; d++)
        if (room->roaming[d] > 0.0)
            room->roaming[d] =
                room->roaming[d] < llcs->outside[d] ? room->roaming[d] / llcs->outside[d] : 1.0;
    for (uint32_t i = 0; i < room->machine->n_cpus; i++)
        if (room_llc(room, i) != CP_DOMAIN_NONE)
            room_add_outside(room, i, -room->outside[i] * room->roaming[room_llc(room, i)]);
}

void cp_room_measure_lift(const struct cp_room *room, uint32_t cpu, double load,
                          struct cp_room_lift *ret_lift)
{
    *ret_lift = (struct cp_room_lift){.cpu = cpu};
    if (cpu != CP_DOMAIN_NONE)
        ret_lift->on_cpu = CP_MIN(load, room->outside[cpu]);
}

/* Where a roaming task was is not known: it counts evenly on all of its LLC. */
static void room_spread_outside(struct cp_room *room, uint32_t llc, double load)
{
    double each = load / CP_MAX(room->levels[CP_LEVEL_LLC].n_usable[llc], 1u);

    for (uint32_t i = 0; i < room->machine->n_cpus; i++)
        if (room_llc(room, i) == llc)
            room_add_outside(room, i, each);
}

void cp_room_put_back(struct cp_room *room, const struct cp_room_lift *lift)
{
    if (lift->cpu == CP_DOMAIN_NONE)
        return;
    room_add_outside(room, lift->cpu, lift->on_cpu);
    if (lift->roaming > 0.0)
        room_spread_outside(room, room_llc(room, lift->cpu), lift->roaming);
}

void cp_room_lift_again(struct cp_room *room, const struct cp_room_lift *lift)
{
    if (lift->cpu == CP_DOMAIN_NONE)
        return;
    room_add_outside(room, lift->cpu, -lift->on_cpu);
    if (lift->roaming > 0.0)
        room_spread_outside(room, room_llc(room, lift->cpu), -lift->roaming);
}

static bool room_owner_equal(struct cp_room_owner a, struct cp_room_owner b)
{
    return !a.mixed && !b.mixed && a.uid == b.uid;
}

static void room_count_claim(struct cp_room *room, uint32_t cpu, struct cp_room_owner owner)
{
    struct cp_room_core *core = &room->cores[room->core[cpu]];

    if (core->n_claims == 0)
        core->owner = owner;
    else if (!room_owner_equal(core->owner, owner))
        core->owner.mixed = true;
    core->n_claims++;
    room->n_claims[cpu]++;
}

static void room_add_claim(struct cp_room *room, enum cp_level level,
                           const struct cp_cpumask *target, double load)
{
    const struct cp_machine *machine = room->machine;
    unsigned n = 0;

    for (uint32_t i = 0; i < machine->n_cpus; i++)
        n += room->usable[i] && cp_cpumask_test(target, machine->cpus[i].cpu);
    for (uint32_t i = 0; i < machine->n_cpus; i++) {
        if (!room->usable[i] || !cp_cpumask_test(target, machine->cpus[i].cpu))
            continue;
        for (enum cp_level l = CP_MAX(level, CP_LEVEL_CORE); l <= CP_LEVEL_PACKAGE; l++) {
            uint32_t domain = machine->cpus[i].domain[l];

            room->levels[l].parts[i] += load / n;
            if (domain != CP_DOMAIN_NONE)
                room->levels[l].claimed[domain] += load / n;
        }
    }
}

void cp_room_claim(struct cp_room *room, enum cp_level level, const struct cp_cpumask *target,
                   double load, struct cp_room_owner owner)
{
    const struct cp_machine *machine = room->machine;

    room_add_claim(room, level, target, load);
    for (uint32_t i = 0; level <= CP_LEVEL_CORE && i < machine->n_cpus; i++)
        if (cp_cpumask_test(target, machine->cpus[i].cpu))
            room_count_claim(room, i, owner);
}

void cp_room_release(struct cp_room *room, enum cp_level level, const struct cp_cpumask *target,
                     double load)
{
    const struct cp_machine *machine = room->machine;

    room_add_claim(room, level, target, -load);
    for (uint32_t i = 0; level <= CP_LEVEL_CORE && i < machine->n_cpus; i++) {
        if (!cp_cpumask_test(target, machine->cpus[i].cpu))
            continue;
        room->n_claims[i]--;
        room->cores[room->core[i]].n_claims--;
    }
}
