/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a snapshot out of what hwloc and the kernel's lists say. Must not know hwloc. */
#include "base/cleanup.h"
#include "machine/cpu-lists.h"
#include "machine/document.h"
#include "machine/machine.h"
#include "machine/topology-child.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of LLC-level domains of CPUs without caches: their node's or package's key or one for the
 * rest, made different from every cache's key (hwloc counts its objects from 1). */
#define STAND_IN_NODE (UINT64_C(1) << 62)
#define STAND_IN_PACKAGE (UINT64_C(2) << 62)
#define STAND_IN_MACHINE (UINT64_C(3) << 62)

struct member {
    uint64_t key;
    uint32_t cpu; /* index into facts->cpus */
};

static int compare_members(const void *a, const void *b)
{
    const struct member *left = a;
    const struct member *right = b;

    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    return (left->cpu > right->cpu) - (left->cpu < right->cpu);
}

static uint64_t domain_key(const struct cp_topology_cpu *cpu, enum cp_level level)
{
    if (cpu->key[level] != CP_TOPOLOGY_NO_KEY || level != CP_LEVEL_LLC)
        return cpu->key[level];
    if (cpu->key[CP_LEVEL_NODE] != CP_TOPOLOGY_NO_KEY)
        return STAND_IN_NODE | cpu->key[CP_LEVEL_NODE];
    if (cpu->key[CP_LEVEL_PACKAGE] != CP_TOPOLOGY_NO_KEY)
        return STAND_IN_PACKAGE | cpu->key[CP_LEVEL_PACKAGE];
    return STAND_IN_MACHINE;
}

/*
 * Gives each CPU the number of its domain: domains are numbered in the order of their lowest CPUs,
 * whatever order hwloc has them in. number[i] of facts->cpus[i] may be CP_DOMAIN_NONE. Returns the
 * number of domains, or -ENOMEM.
 */
static int number_domains(const struct cp_topology *facts, enum cp_level level, uint32_t *number)
{
    _cleanup_free_ struct member *members = calloc(facts->n_cpus, sizeof(*members));
    _cleanup_free_ uint32_t *lowest = calloc(facts->n_cpus, sizeof(*lowest));
    int n_domains = 0;

    if (!members || !lowest)
        return -ENOMEM;
    for (uint32_t i = 0; i < facts->n_cpus; i++)
        members[i] = (struct member){domain_key(&facts->cpus[i], level), i};
    qsort(members, facts->n_cpus, sizeof(*members), compare_members);
    for (uint32_t i = 0, first = 0; i < facts->n_cpus; i++) {
        if (members[i].key != members[first].key)
            first = i;
        lowest[members[i].cpu] = members[first].cpu;
    }
    for (uint32_t i = 0; i < facts->n_cpus; i++)
        if (domain_key(&facts->cpus[i], level) == CP_TOPOLOGY_NO_KEY)
            number[i] = CP_DOMAIN_NONE;
        else
            number[i] = lowest[i] == i ? (uint32_t)n_domains++ : number[lowest[i]];
    return n_domains;
}

static void describe_domain(struct cp_domain *domain, enum cp_level level, uint32_t index,
                            const struct cp_topology_cpu *first)
{
    *domain = (struct cp_domain){.level = level, .index = index, .os_index = index, .real = true};
    if (level == CP_LEVEL_NODE) {
        domain->os_index = first->node_os;
    } else if (level == CP_LEVEL_PACKAGE && first->package_os != UINT32_MAX) {
        domain->os_index = first->package_os;
    } else if (level == CP_LEVEL_LLC) {
        domain->real = first->key[CP_LEVEL_LLC] != CP_TOPOLOGY_NO_KEY;
        domain->cache_level = first->cache_level;
        domain->cache_bytes = first->cache_bytes;
    }
}

static int build_level(struct cp_machine *machine, const struct cp_topology *facts,
                       enum cp_level level)
{
    _cleanup_free_ uint32_t *number = calloc(facts->n_cpus, sizeof(*number));
    struct cp_domain *domains;
    int n;

    if (!number)
        return -ENOMEM;
    n = number_domains(facts, level, number);
    if (n < 0)
        return n;
    domains = calloc(n ? (size_t)n : 1, sizeof(*domains));
    if (!domains)
        return -ENOMEM;
    machine->domains[level] = domains;
    for (uint32_t i = 0; i < facts->n_cpus; i++) {
        int r;

        machine->cpus[i].domain[level] = number[i];
        if (number[i] == CP_DOMAIN_NONE)
            continue;
        if (number[i] == machine->n_domains[level])
            describe_domain(&domains[machine->n_domains[level]++], level, number[i],
                            &facts->cpus[i]);
        r = cp_cpumask_set(&domains[number[i]].cpus, facts->cpus[i].cpu);
        if (r < 0)
            return r;
    }
    return 0;
}

static int build_cpus(struct cp_machine *machine, const struct cp_topology *facts)
{
    int r = 0;

    machine->cpus = calloc(facts->n_cpus, sizeof(*machine->cpus));
    if (!machine->cpus)
        return -ENOMEM;
    machine->n_cpus = (uint32_t)facts->n_cpus;
    for (uint32_t i = 0; r == 0 && i < machine->n_cpus; i++) {
        machine->cpus[i].cpu = facts->cpus[i].cpu;
        machine->cpus[i].kind = facts->cpus[i].kind;
        for (unsigned level = 0; level < CP_LEVEL_MAX; level++)
            machine->cpus[i].domain[level] = CP_DOMAIN_NONE;
        r = cp_cpumask_set(&machine->online, facts->cpus[i].cpu);
        if (r == 0 && facts->cpus[i].disallowed)
            r = cp_cpumask_set(&machine->disallowed, facts->cpus[i].cpu);
    }
    for (unsigned level = CP_LEVEL_CORE; r == 0 && level <= CP_LEVEL_PACKAGE; level++)
        r = build_level(machine, facts, (enum cp_level)level);
    return r;
}

static int build_memory_nodes(struct cp_machine *machine, const struct cp_topology *facts)
{
    machine->memory_nodes =
        calloc(facts->n_memory_nodes ? facts->n_memory_nodes : 1, sizeof(*machine->memory_nodes));
    if (!machine->memory_nodes)
        return -ENOMEM;
    for (size_t i = 0; i < facts->n_memory_nodes; i++)
        machine->memory_nodes[i] = facts->memory_nodes[i];
    machine->n_memory_nodes = (uint32_t)facts->n_memory_nodes;
    return 0;
}

/* The sets that need the kernel's lists as well as hwloc's facts. */
static int build_sets(struct cp_machine *machine, const struct cp_topology *facts,
                      const struct cp_cpu_lists *lists)
{
    int r = cp_cpumask_copy(&machine->offline, &lists->present);

    /* Where the kernel says what is present, hwloc's "complete" set adds nothing. */
    for (size_t i = 0; r == 0 && cp_cpumask_is_empty(&lists->present) && i < facts->n_missing; i++)
        r = cp_cpumask_set(&machine->offline, (struct cp_cpu){facts->missing[i]});
    if (r == 0)
        r = cp_cpumask_andnot(&machine->offline, &machine->offline, &machine->online);
    /* An online CPU that hwloc leaves out is not offline for that. */
    if (r == 0)
        r = cp_cpumask_andnot(&machine->offline, &machine->offline, &lists->online);
    if (r == 0)
        r = cp_cpumask_or(&machine->possible, &machine->online, &machine->offline);
    if (r == 0)
        r = cp_cpumask_or(&machine->possible, &machine->possible, &lists->possible);
    if (r == 0)
        r = cp_cpumask_and(&machine->isolated, &lists->isolated, &machine->possible);
    if (r == 0)
        r = cp_cpumask_andnot(&machine->usable, &machine->online, &machine->isolated);
    if (r == 0)
        r = cp_cpumask_andnot(&machine->usable, &machine->usable, &machine->disallowed);
    if (r == 0)
        r = cp_cpumask_copy(&machine->listed,
                            lists->online_known ? &lists->online : &machine->online);
    return r;
}

/* "xml FILE": for people, so what would upset a terminal is replaced. */
static char *describe_source(const struct cp_machine_source *source)
{
    static const char *const names[] = {
        [CP_MACHINE_LIVE] = "live",
        [CP_MACHINE_XML] = "xml",
        [CP_MACHINE_SYNTHETIC] = "synthetic",
        [CP_MACHINE_ROOT] = "root",
    };
    char *text = NULL;

    if (source->kind == CP_MACHINE_LIVE)
        return strdup(names[CP_MACHINE_LIVE]);
    if (asprintf(&text, "%s %s", names[source->kind], source->text) < 0)
        return NULL;
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    return text;
}

static int fill(struct cp_machine *machine, const struct cp_machine_source *source,
                const struct cp_topology *facts, const struct cp_cpu_lists *lists)
{
    int r;

    machine->live = source->kind == CP_MACHINE_LIVE;
    machine->source = describe_source(source);
    machine->model = strdup(facts->model);
    if (!machine->source || !machine->model)
        return -ENOMEM;
    r = build_cpus(machine, facts);
    if (r == 0)
        r = build_memory_nodes(machine, facts);
    if (r == 0)
        r = build_sets(machine, facts, lists);
    return r;
}

static int build(const struct cp_machine_source *source, uint64_t generation,
                 const struct cp_topology *facts, const struct cp_cpu_lists *lists,
                 struct cp_machine **ret_machine)
{
    struct cp_machine *machine = calloc(1, sizeof(*machine));
    int r;

    if (!machine)
        return -ENOMEM;
    machine->n_references = 1;
    machine->generation = generation;
    r = fill(machine, source, facts, lists);
    if (r < 0)
        cp_machine_unref(machine);
    else
        *ret_machine = machine;
    return r;
}

/* Reads the kernel's lists of the live or a recorded machine. */
static int load_lists(const struct cp_machine_source *source, struct cp_cpu_lists *ret_lists,
                      struct cp_error *error)
{
    const char *path = source->kind == CP_MACHINE_LIVE ? NULL : source->text;
    struct cp_root root = {.fd = -1};
    int fd;
    int r = cp_root_open(&root, path);

    if (r < 0)
        return cp_error_set_at(error, -r, path ? path : "/", 0, 0, "%s", strerror(-r));
    /* Without this directory hwloc would make up a machine of one CPU. */
    fd = cp_root_open_file(&root, "sys/devices/system/cpu", O_PATH | O_DIRECTORY);
    if (fd < 0) {
        r = cp_error_set_at(error, -fd, root.path, 0, 0,
                            "this is no recorded machine: it has no directory "
                            "sys/devices/system/cpu (%s)",
                            strerror(-fd));
    } else {
        close(fd);
        r = cp_cpu_lists_read(&root, ret_lists, error);
    }
    cp_root_done(&root);
    return r;
}

int cp_machine_load(const struct cp_machine_source *source, uint64_t generation,
                    struct cp_machine **ret_machine, struct cp_error *error)
{
    _cleanup_cpu_lists_ struct cp_cpu_lists lists = {0};
    _cleanup_topology_ struct cp_topology facts = {0};
    _cleanup_free_ char *document = NULL;
    size_t size = 0;
    int r = 0;

    /* The lists first: a CPU that comes or goes from here on shows as a stale snapshot. */
    if (source->kind == CP_MACHINE_LIVE || source->kind == CP_MACHINE_ROOT)
        r = load_lists(source, &lists, error);
    else if (source->kind == CP_MACHINE_XML)
        r = cp_document_read(source->text, &document, &size, error);
    else
        r = cp_document_check_synthetic(source->text, error);
    if (r < 0)
        return r;
    r = cp_topology_fetch(source, document, size, &facts, error);
    if (r < 0)
        return r;
    r = build(source, generation, &facts, &lists, ret_machine);
    if (r < 0)
        return cp_error_set(error, -r, "no memory for a machine of %zu CPUs", facts.n_cpus);
    return 0;
}
