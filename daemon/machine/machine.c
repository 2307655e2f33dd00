/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Questions to a snapshot. Nothing here changes one. */
#include "machine/machine.h"

#include "base/cleanup.h"
#include "machine/cpu-lists.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void machine_free(struct cp_machine *machine)
{
    for (unsigned level = 0; level < CP_LEVEL_MAX; level++) {
        for (uint32_t i = 0; i < machine->n_domains[level]; i++)
            cp_cpumask_done(&machine->domains[level][i].cpus);
        free(machine->domains[level]);
    }
    free(machine->memory_nodes);
    free(machine->cpus);
    free(machine->source);
    free(machine->model);
    cp_cpumask_done(&machine->online);
    cp_cpumask_done(&machine->listed);
    cp_cpumask_done(&machine->offline);
    cp_cpumask_done(&machine->possible);
    cp_cpumask_done(&machine->isolated);
    cp_cpumask_done(&machine->disallowed);
    cp_cpumask_done(&machine->usable);
    free(machine);
}

struct cp_machine *cp_machine_ref(struct cp_machine *machine)
{
    machine->n_references++;
    return machine;
}

struct cp_machine *cp_machine_unref(struct cp_machine *machine)
{
    if (machine && --machine->n_references == 0)
        machine_free(machine);
    return NULL;
}

const struct cp_machine_cpu *cp_machine_find_cpu(const struct cp_machine *machine,
                                                 struct cp_cpu cpu)
{
    uint32_t low = 0;
    uint32_t high = machine->n_cpus;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (machine->cpus[middle].cpu.os < cpu.os)
            low = middle + 1;
        else
            high = middle;
    }
    return low < machine->n_cpus && machine->cpus[low].cpu.os == cpu.os ? &machine->cpus[low]
                                                                        : NULL;
}

static bool share(const struct cp_machine_cpu *a, const struct cp_machine_cpu *b, unsigned level)
{
    return a->domain[level] != CP_DOMAIN_NONE && a->domain[level] == b->domain[level];
}

static enum cp_level shared_level(const struct cp_machine_cpu *a, const struct cp_machine_cpu *b)
{
    for (unsigned level = CP_LEVEL_CORE; level <= CP_LEVEL_PACKAGE; level++)
        if (share(a, b, level))
            return (enum cp_level)level;
    return CP_LEVEL_MACHINE;
}

enum cp_level cp_machine_shared_level(const struct cp_machine *machine, struct cp_cpu a,
                                      struct cp_cpu b)
{
    const struct cp_machine_cpu *left = cp_machine_find_cpu(machine, a);
    const struct cp_machine_cpu *right = cp_machine_find_cpu(machine, b);

    if (!left || !right)
        return CP_LEVEL_MACHINE;
    return left == right ? CP_LEVEL_CPU : shared_level(left, right);
}

const struct cp_domain *cp_machine_domain_of(const struct cp_machine *machine, enum cp_level level,
                                             struct cp_cpu cpu)
{
    const struct cp_machine_cpu *found = cp_machine_find_cpu(machine, cpu);

    if (!found || level < CP_LEVEL_CORE || level > CP_LEVEL_PACKAGE ||
        found->domain[level] == CP_DOMAIN_NONE)
        return NULL;
    return &machine->domains[level][found->domain[level]];
}

/* true if one domain of a nearer level holds all of these CPUs (indices into machine->cpus), so
 * that no two can have a farther one as their innermost. */
static bool lie_in_one_nearer_domain(const struct cp_machine *machine, const uint32_t *members,
                                     uint32_t n, enum cp_level level)
{
    for (unsigned nearer = CP_LEVEL_CORE; nearer < (unsigned)level; nearer++) {
        uint32_t i = 0;

        while (i < n && share(&machine->cpus[members[0]], &machine->cpus[members[i]], nearer))
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* true if two of these CPUs, which all share the level, share nothing nearer. The check before the
 * loops makes the common "no" cheap; a "yes" is found after a few CPUs. */
static bool have_innermost(const struct cp_machine *machine, const uint32_t *members, uint32_t n,
                           enum cp_level level)
{
    if (n < 2 || lie_in_one_nearer_domain(machine, members, n, level))
        return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++)
            if (shared_level(&machine->cpus[members[i]], &machine->cpus[members[k]]) == level)
                return true;
    return false;
}

/* Lists the CPUs of a domain as indices into machine->cpus. */
static uint32_t list_members(const struct cp_machine *machine, const struct cp_domain *domain,
                             uint32_t *members)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < machine->n_cpus; i++)
        if (machine->cpus[i].domain[domain->level] == domain->index)
            members[n++] = i;
    return n;
}

void cp_machine_levels_present(const struct cp_machine *machine, bool ret_present[CP_LEVEL_MAX])
{
    _cleanup_free_ uint32_t *members = calloc(machine->n_cpus, sizeof(*members));

    memset(ret_present, 0, CP_LEVEL_MAX * sizeof(*ret_present));
    ret_present[CP_LEVEL_CPU] = true;
    if (!members)
        return;
    for (unsigned level = CP_LEVEL_CORE; level <= CP_LEVEL_PACKAGE; level++)
        for (uint32_t i = 0; i < machine->n_domains[level] && !ret_present[level]; i++) {
            uint32_t n = list_members(machine, &machine->domains[level][i], members);

            ret_present[level] = have_innermost(machine, members, n, (enum cp_level)level);
        }
    for (uint32_t i = 0; i < machine->n_cpus; i++)
        members[i] = i;
    ret_present[CP_LEVEL_MACHINE] =
        have_innermost(machine, members, machine->n_cpus, CP_LEVEL_MACHINE);
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv). */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    for (const unsigned char *next = data; size > 0; next++, size--)
        hash = (hash ^ *next) * UINT64_C(0x100000001b3);
    return hash;
}

/* With the terminator, so that "ab" + "c" is not "a" + "bc". */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
    return hash_bytes(hash, &number, sizeof(number));
}

void cp_machine_fingerprint(const struct cp_machine *machine, const char *kernel_release,
                            char ret_fingerprint[17])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    hash = hash_text(hash, machine->model);
    hash = hash_text(hash, kernel_release);
    /* Not the kinds: hwloc ranks them by frequencies that the firmware may change. */
    for (uint32_t i = 0; i < machine->n_cpus; i++) {
        hash = hash_number(hash, machine->cpus[i].cpu.os);
        for (unsigned level = CP_LEVEL_CORE; level <= CP_LEVEL_PACKAGE; level++)
            hash = hash_number(hash, machine->cpus[i].domain[level]);
    }
    for (uint32_t i = 0; i < machine->n_domains[CP_LEVEL_LLC]; i++) {
        hash = hash_number(hash, machine->domains[CP_LEVEL_LLC][i].cache_level);
        hash = hash_number(hash, machine->domains[CP_LEVEL_LLC][i].cache_bytes);
    }
    (void)snprintf(ret_fingerprint, 17, "%016" PRIx64, hash);
}

int cp_machine_is_stale(const struct cp_machine *machine, const struct cp_root *root)
{
    _cleanup_cpumask_ struct cp_cpumask online = {0};
    int r = cp_cpu_lists_read_online(root, &online);

    if (r < 0)
        return r;
    return !cp_cpumask_equal(&online, &machine->listed);
}
