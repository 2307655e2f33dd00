/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Room on the machine while a plan is made: what each CPU and domain carries, what is claimed, and
 * where a pair fits. Private to plan/. Pure.
 *
 * Two kinds of load, both in CPUs (1.0 = one CPU):
 *   outside  what the CPU did, less what belongs to pairs that are placed or to be placed;
 *   claimed  what placements were given. A claim counts from the moment it is made (design, row
 *            pending-claim), in the domains of its own level and outwards: inside, the kernel moves
 *            it to where there is room. On the CPUs of its target it is kept in even parts.
 */
#pragma once

#include "base/cpumask.h"
#include "machine/machine.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cp_room_owner {
    uid_t uid;
    bool mixed; /* of several users, or unknown: the same as nobody */
};

struct cp_room_core {
    unsigned n_claims;
    struct cp_room_owner owner; /* of the claims */
};

struct cp_room_level {
    /* By index in the machine's domains of this level: */
    unsigned *n_usable;
    double *outside;
    double *claimed;
    /* By index in machine->cpus: parts of the claims of this level and of those inside it (of
     * CP_LEVEL_CORE: of claims on one core or one CPU). */
    double *parts;
};

struct cp_room {
    const struct cp_machine *machine; /* borrowed */
    /* By index in machine->cpus: */
    bool *usable;
    double *outside;
    unsigned *n_claims; /* on this CPU or its core alone */
    uint32_t *core;     /* index in cores; a CPU that has no core gets one of its own */
    struct cp_room_core *cores;
    struct cp_room_level levels[CP_LEVEL_MAX]; /* CP_LEVEL_CORE … CP_LEVEL_PACKAGE */
    double *roaming; /* by LLC: lifted load that was not found on the CPU where its task ran last */
    /* Scratch of cp_room_find(), by domain: */
    unsigned *n_target;
    double *target_load;
};

/* busy_permille by index in machine->cpus, or NULL. -ENOMEM. */
int cp_room_init(struct cp_room *room, const struct cp_machine *machine,
                 const uint16_t *busy_permille);
void cp_room_done(struct cp_room *room); /* accepts a zeroed one */

/* A task's own part of what CPUs did, taken out of the outside load. */
struct cp_room_lift {
    uint32_t cpu;   /* index in machine->cpus, CP_DOMAIN_NONE: it is nowhere */
    double on_cpu;  /* taken from that CPU */
    double roaming; /* the rest, taken from its LLC: the task ran on several CPUs */
};

/* Takes load out that a task used, which ran last on cpu. Before cp_room_settle(). */
void cp_room_lift(struct cp_room *room, uint32_t cpu, double load, struct cp_room_lift *ret_lift);
/* All are lifted: takes what roams out of the LLCs. Once, before anything below is called. */
void cp_room_settle(struct cp_room *room);
/* For a task that was not lifted before settling: the lift that cp_room_lift_again() would take.
 * Only what is found on that CPU. */
void cp_room_measure_lift(const struct cp_room *room, uint32_t cpu, double load,
                          struct cp_room_lift *ret_lift);
/* The task is not placed: its load is outside load again, or (again) not. */
void cp_room_put_back(struct cp_room *room, const struct cp_room_lift *lift);
void cp_room_lift_again(struct cp_room *room, const struct cp_room_lift *lift);

/* Makes and gives back a claim of the placement of a pair on these CPUs. */
void cp_room_claim(struct cp_room *room, enum cp_level level, const struct cp_cpumask *target,
                   double load, struct cp_room_owner owner);
void cp_room_release(struct cp_room *room, enum cp_level level, const struct cp_cpumask *target,
                     double load);

struct cp_room_request {
    const struct cp_cpumask *allowed; /* usable CPUs that both tasks may use */
    double load;                      /* of both */
    struct cp_room_owner owner;
    bool across;       /* may share a core with claims of other owners */
    uint32_t last[2];  /* where the two ran last: index in machine->cpus, or CP_DOMAIN_NONE */
    unsigned min_cpus; /* that a domain must offer */
};

/*
 * The best place at that level with room for the pair: an index in machine->cpus for CP_LEVEL_CPU,
 * in the level's domains else; CP_DOMAIN_NONE: nowhere. Never a saturated domain, one that the pair
 * would fill beyond its capacity, or (one CPU, one core) a core with claims of another owner; a CPU
 * or core with a claim only if no other is suitable. Cost: O(CPUs).
 */
uint32_t cp_room_find(struct cp_room *room, enum cp_level level,
                      const struct cp_room_request *request);
