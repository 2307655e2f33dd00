/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Builds a machine from what the daemon says of it. The daemon may be of another version, so every
 * number is checked before it becomes an index.
 */
#include "ctl/topology-reply.h"

#include "ctl/json.h"

#include <errno.h>
#include <string.h>

static int read_cpus(const json_t *object, const char *key, struct cp_cpumask *ret_cpus)
{
    int r = cp_cpumask_parse_list(cp_json_text(object, key), ret_cpus);

    return r == 0 || r == -ENOMEM ? r : -EBADMSG;
}

static int fill_domain(const json_t *entry, enum cp_level level, uint32_t index,
                       struct cp_domain *domain)
{
    uint64_t os_index = cp_json_count(entry, "os_index");

    if (cp_json_count(entry, "index") != index || os_index > UINT32_MAX)
        return -EBADMSG;
    domain->level = level;
    domain->index = index;
    domain->os_index = (unsigned)os_index;
    domain->real = cp_json_flag(entry, "real");
    domain->cache_level = (unsigned)CP_MIN(cp_json_count(entry, "cache_level"), 9);
    domain->cache_bytes = cp_json_count(entry, "cache_bytes");
    return read_cpus(entry, "cpus", &domain->cpus);
}

static bool is_of_level(const json_t *entry, enum cp_level level)
{
    return cp_level_from_string(cp_json_text(entry, "level")) == level;
}

/* The domains of a level, in the order of the reply, which is that of their indices. */
static int fill_domains(const json_t *entries, enum cp_level level, struct cp_machine *machine)
{
    size_t n_entries = json_array_size(entries);
    struct cp_domain *domains;
    uint32_t n = 0;
    int r = 0;

    for (size_t i = 0; i < n_entries; i++)
        n += is_of_level(json_array_get(entries, i), level);
    domains = calloc(n > 0 ? n : 1, sizeof(*domains));
    if (!domains)
        return -ENOMEM;
    machine->domains[level] = domains;
    machine->n_domains[level] = n;
    n = 0;
    for (size_t i = 0; r == 0 && i < n_entries; i++) {
        const json_t *entry = json_array_get(entries, i);

        if (!is_of_level(entry, level))
            continue;
        r = fill_domain(entry, level, n, &domains[n]);
        n++;
    }
    return r;
}

/* The index of a CPU's domain; absent or negative: it has none. */
static int read_index(const json_t *entry, enum cp_level level, uint32_t n_domains,
                      uint32_t *ret_index)
{
    const json_t *value = json_object_get(entry, cp_level_to_string(level));
    json_int_t index = json_is_integer(value) ? json_integer_value(value) : -1;

    if (index >= n_domains)
        return -EBADMSG;
    *ret_index = index < 0 ? CP_DOMAIN_NONE : (uint32_t)index;
    return 0;
}

static int fill_cpu(const json_t *entry, const struct cp_machine *machine,
                    struct cp_machine_cpu *cpu)
{
    uint64_t os = cp_json_count(entry, "cpu");

    if (os >= CP_CPU_LIMIT)
        return -EBADMSG;
    cpu->cpu.os = (unsigned)os;
    cpu->kind = (int)CP_MAX(-1, CP_MIN(json_integer_value(json_object_get(entry, "kind")), 99));
    for (int level = CP_LEVEL_CORE; level <= CP_LEVEL_PACKAGE; level++) {
        int r =
            read_index(entry, (enum cp_level)level, machine->n_domains[level], &cpu->domain[level]);

        if (r < 0)
            return r;
    }
    return 0;
}

static int fill_cpus(const json_t *entries, struct cp_machine *machine)
{
    size_t n = json_array_size(entries);
    int r;

    if (n == 0 || n > CP_CPU_LIMIT)
        return -EBADMSG;
    machine->cpus = calloc(n, sizeof(*machine->cpus));
    if (!machine->cpus)
        return -ENOMEM;
    machine->n_cpus = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        r = fill_cpu(json_array_get(entries, i), machine, &machine->cpus[i]);
        if (r < 0)
            return r;
        /* Rising by number: the look-ups of a machine rely on it. */
        if (i > 0 && machine->cpus[i].cpu.os <= machine->cpus[i - 1].cpu.os)
            return -EBADMSG;
    }
    return 0;
}

static int fill_masks(const json_t *reply, struct cp_machine *machine)
{
    int r = read_cpus(reply, "online", &machine->online);

    if (r == 0)
        r = read_cpus(reply, "online", &machine->listed);
    if (r == 0)
        r = read_cpus(reply, "offline", &machine->offline);
    if (r == 0)
        r = cp_cpumask_or(&machine->possible, &machine->online, &machine->offline);
    if (r == 0)
        r = read_cpus(reply, "isolated", &machine->isolated);
    if (r == 0)
        r = read_cpus(reply, "disallowed", &machine->disallowed);
    if (r == 0)
        r = cp_cpumask_andnot(&machine->usable, &machine->online, &machine->isolated);
    if (r == 0)
        r = cp_cpumask_andnot(&machine->usable, &machine->usable, &machine->disallowed);
    return r;
}

static int fill_machine(const json_t *reply, struct cp_machine *machine)
{
    int r = 0;

    machine->n_references = 1;
    machine->generation = cp_json_count(reply, "generation");
    machine->live = cp_json_flag(reply, "live");
    machine->source = strdup(cp_json_text(reply, "source"));
    machine->model = strdup(cp_json_text(reply, "model"));
    if (!machine->source || !machine->model)
        return -ENOMEM;
    for (int level = CP_LEVEL_CORE; r == 0 && level <= CP_LEVEL_PACKAGE; level++)
        r = fill_domains(json_object_get(reply, "domains"), (enum cp_level)level, machine);
    if (r == 0)
        r = fill_cpus(json_object_get(reply, "cpus"), machine);
    if (r == 0)
        r = fill_masks(reply, machine);
    return r;
}

int cp_topology_from_reply(const json_t *reply, struct cp_machine **ret_machine)
{
    struct cp_machine *machine = calloc(1, sizeof(*machine));
    int r;

    if (!machine)
        return -ENOMEM;
    r = fill_machine(reply, machine);
    if (r < 0) {
        (void)cp_machine_unref(machine);
        return r;
    }
    *ret_machine = machine;
    return 0;
}
