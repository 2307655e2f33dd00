/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hwloc's view of a machine, turned into plain facts. The only file that knows hwloc. Must not set
 * a binding, nor let hwloc do it, nor change the environment.
 */
#include "machine/topology.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

/* hwloc's flags: CPUs outside our cpuset belong to the machine all the same; no discovery step may
 * bind (hwloc's x86 part would visit every CPU to run CPUID there, isolated ones too); distances
 * would only make groups, which we do not use. */
#define TOPOLOGY_FLAGS                                                                             \
    (HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING |            \
     HWLOC_TOPOLOGY_FLAG_NO_DISTANCES)

void cp_topology_done(struct cp_topology *topology)
{
    free(topology->cpus);
    free(topology->missing);
    free(topology->memory_nodes);
    *topology = (struct cp_topology){0};
}

static void topology_destroyp(hwloc_topology_t *topology)
{
    if (*topology)
        hwloc_topology_destroy(*topology);
}
#define _cleanup_hwloc_ _cleanup_(topology_destroyp)

/* The outermost data or unified cache above a PU. Memory-side caches hang beside the CPUs, not
 * above them, so that this walk never meets one. */
static hwloc_obj_t find_llc(hwloc_obj_t pu)
{
    hwloc_obj_t llc = NULL;

    for (hwloc_obj_t object = pu->parent; object; object = object->parent)
        if (hwloc_obj_type_is_dcache(object->type))
            llc = object;
    return llc;
}

static hwloc_obj_t find_ancestor(hwloc_obj_t pu, hwloc_obj_type_t type)
{
    for (hwloc_obj_t object = pu->parent; object; object = object->parent)
        if (object->type == type)
            return object;
    return NULL;
}

/*
 * The node of a CPU: the smallest one around it; of several of the same extent (DRAM and HBM or
 * persistent memory beside it: hwloc gives memory-only nodes the CPUs they are near to) the one
 * with the lowest number, since Linux numbers nodes with CPUs first.
 */
static hwloc_obj_t find_node(hwloc_topology_t topology, unsigned os)
{
    hwloc_obj_t best = NULL;
    int best_weight = 0;

    for (hwloc_obj_t node = NULL;
         (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
        int weight;

        if (!hwloc_bitmap_isset(node->cpuset, os))
            continue;
        weight = hwloc_bitmap_weight(node->cpuset);
        if (!best || weight < best_weight ||
            (weight == best_weight && node->os_index < best->os_index)) {
            best = node;
            best_weight = weight;
        }
    }
    return best;
}

static int find_kind(hwloc_topology_t topology, hwloc_obj_t pu)
{
    int kind = hwloc_cpukinds_get_by_cpuset(topology, pu->cpuset, 0);
    int efficiency = -1;

    if (kind < 0 ||
        hwloc_cpukinds_get_info(topology, (unsigned)kind, NULL, &efficiency, NULL, NULL, 0) < 0)
        return -1;
    return efficiency;
}

static uint64_t object_key(hwloc_obj_t object)
{
    return object ? object->gp_index : CP_TOPOLOGY_NO_KEY;
}

static void read_cpu(hwloc_topology_t topology, hwloc_obj_t pu, struct cp_topology_cpu *cpu)
{
    hwloc_obj_t llc = find_llc(pu);
    hwloc_obj_t node = find_node(topology, pu->os_index);
    hwloc_obj_t package = find_ancestor(pu, HWLOC_OBJ_PACKAGE);
    hwloc_obj_t core = find_ancestor(pu, HWLOC_OBJ_CORE);

    *cpu = (struct cp_topology_cpu){
        .cpu = {pu->os_index},
        .key[CP_LEVEL_CORE] = object_key(core ? core : pu), /* no core known: one of its own */
        .key[CP_LEVEL_LLC] = object_key(llc),
        .key[CP_LEVEL_NODE] = object_key(node),
        .key[CP_LEVEL_PACKAGE] = object_key(package),
        .node_os = node ? node->os_index : UINT32_MAX,
        .package_os = package ? package->os_index : UINT32_MAX,
        .cache_level = llc ? llc->attr->cache.depth : 0,
        .cache_bytes = llc ? llc->attr->cache.size : 0,
        .kind = find_kind(topology, pu),
        .disallowed =
            !hwloc_bitmap_isset(hwloc_topology_get_allowed_cpuset(topology), pu->os_index),
    };
}

static int compare_cpus(const void *a, const void *b)
{
    unsigned left = ((const struct cp_topology_cpu *)a)->cpu.os;
    unsigned right = ((const struct cp_topology_cpu *)b)->cpu.os;

    return (left > right) - (left < right);
}

static int read_cpus(hwloc_topology_t topology, struct cp_topology *facts, struct cp_error *error)
{
    int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    size_t i = 0;

    if (n <= 0)
        return cp_error_set(error, EBADMSG, "the machine has no CPU");
    if ((unsigned)n > CP_MACHINE_CPUS_MAX)
        return cp_error_set(error, E2BIG, "the machine has %d CPUs; at most %u are supported", n,
                            CP_MACHINE_CPUS_MAX);
    facts->cpus = calloc((size_t)n, sizeof(*facts->cpus));
    if (!facts->cpus)
        return cp_error_set(error, ENOMEM, "no memory for a machine of %d CPUs", n);
    for (hwloc_obj_t pu = NULL;
         i < (size_t)n && (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)); i++) {
        if (pu->os_index >= CP_CPU_LIMIT)
            return cp_error_set(error, ERANGE, "CPU number %u is not below %u", pu->os_index,
                                CP_CPU_LIMIT);
        read_cpu(topology, pu, &facts->cpus[i]);
    }
    facts->n_cpus = i;
    qsort(facts->cpus, facts->n_cpus, sizeof(*facts->cpus), compare_cpus);
    return 0;
}

/* CPUs in the complete set without a PU: offline, or left out when the file was written. */
static int read_missing(hwloc_topology_t topology, struct cp_topology *facts)
{
    hwloc_const_bitmap_t complete = hwloc_topology_get_complete_cpuset(topology);
    hwloc_const_bitmap_t known = hwloc_topology_get_topology_cpuset(topology);
    int weight = hwloc_bitmap_weight(complete);

    /* An unlimited set says nothing. */
    if (weight <= 0)
        return 0;
    facts->missing = calloc((size_t)CP_MIN(weight, (int)CP_CPU_LIMIT), sizeof(*facts->missing));
    if (!facts->missing)
        return -ENOMEM;
    for (int os = hwloc_bitmap_first(complete); os >= 0 && os < (int)CP_CPU_LIMIT;
         os = hwloc_bitmap_next(complete, os))
        if (!hwloc_bitmap_isset(known, (unsigned)os))
            facts->missing[facts->n_missing++] = (uint32_t)os;
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static int read_memory_nodes(hwloc_topology_t topology, struct cp_topology *facts)
{
    int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);

    if (n <= 0)
        return 0;
    facts->memory_nodes = calloc((size_t)n, sizeof(*facts->memory_nodes));
    if (!facts->memory_nodes)
        return -ENOMEM;
    for (hwloc_obj_t node = NULL;
         (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
        bool has_cpu = false;

        for (size_t i = 0; i < facts->n_cpus && !has_cpu; i++)
            has_cpu = facts->cpus[i].key[CP_LEVEL_NODE] == node->gp_index;
        if (!has_cpu && facts->n_memory_nodes < (size_t)n)
            facts->memory_nodes[facts->n_memory_nodes++] = node->os_index;
    }
    qsort(facts->memory_nodes, facts->n_memory_nodes, sizeof(*facts->memory_nodes),
          compare_numbers);
    return 0;
}

static void read_model(hwloc_topology_t topology, struct cp_topology *facts)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    size_t length;

    if (!model)
        model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
    if (!model || !*model)
        model = "unknown";
    length = CP_MIN(strlen(model), sizeof(facts->model) - 1);
    /* It will be printed on terminals, and a file may hold anything. */
    for (size_t i = 0; i < length; i++)
        facts->model[i] = isprint((unsigned char)model[i]) && isascii(model[i]) ? model[i] : '?';
    while (length > 0 && facts->model[length - 1] == ' ')
        facts->model[--length] = '\0';
}

static int topology_extract(hwloc_topology_t topology, struct cp_topology *ret_topology,
                            struct cp_error *error)
{
    _cleanup_topology_ struct cp_topology facts = {0};
    int r = read_cpus(topology, &facts, error);

    if (r < 0)
        return r;
    r = read_missing(topology, &facts);
    if (r == 0)
        r = read_memory_nodes(topology, &facts);
    if (r < 0)
        return cp_error_set(error, -r, "no memory for a machine of %zu CPUs", facts.n_cpus);
    read_model(topology, &facts);
    *ret_topology = facts;
    facts = (struct cp_topology){0};
    return 0;
}

/* Points hwloc to the source. A recorded machine is chosen by the environment, and the live one is
 * what hwloc takes if nothing is chosen. */
static int topology_select(hwloc_topology_t topology, const struct cp_machine_source *source,
                           const char *document, int size, struct cp_error *error)
{
    if (source->kind == CP_MACHINE_XML &&
        hwloc_topology_set_xmlbuffer(topology, document, size) < 0)
        return cp_error_set_at(error, EBADMSG, source->text, 0, 0,
                               "not a complete hwloc XML file (cut short or damaged)");
    if (source->kind == CP_MACHINE_SYNTHETIC &&
        hwloc_topology_set_synthetic(topology, source->text) < 0)
        return cp_error_set(error, EINVAL,
                            "\"%.200s\" is no synthetic machine; write it as in \"package:2 l3:4 "
                            "core:2 pu:2\" (hwloc(7), Synthetic topologies)",
                            source->text);
    return 0;
}

static int report_load_failure(const struct cp_machine_source *source, int code,
                               struct cp_error *error)
{
    switch (source->kind) {
    case CP_MACHINE_XML:
        return cp_error_set_at(error, EBADMSG, source->text, 0, 0,
                               "hwloc finds no valid machine in this file (cut short or damaged)");
    case CP_MACHINE_SYNTHETIC:
        return cp_error_set(error, EINVAL, "hwloc can make no machine of \"%.200s\"", source->text);
    case CP_MACHINE_ROOT:
        return cp_error_set_at(error, EBADMSG, source->text, 0, 0,
                               "hwloc finds no machine below this directory: %s", strerror(code));
    case CP_MACHINE_LIVE:
    default:
        return cp_error_set(error, code, "hwloc cannot read this machine: %s", strerror(code));
    }
}

int cp_topology_read(const struct cp_machine_source *source, const char *document, int size,
                     struct cp_topology *ret_topology, struct cp_error *error)
{
    _cleanup_hwloc_ hwloc_topology_t topology = NULL;
    int r;

    if (hwloc_topology_init(&topology) < 0)
        return cp_error_set(error, ENOMEM, "hwloc cannot be started");
    if (hwloc_topology_set_flags(topology, TOPOLOGY_FLAGS) < 0)
        return cp_error_set(error, ENOTSUP, "hwloc refuses our flags: it must be 2.9 or later");
    r = topology_select(topology, source, document, size, error);
    if (r < 0)
        return r;
    errno = 0;
    if (hwloc_topology_load(topology) < 0)
        return report_load_failure(source, errno ? errno : EIO, error);
    if ((source->kind == CP_MACHINE_LIVE) != (hwloc_topology_is_thissystem(topology) != 0))
        return cp_error_set(error, EXDEV,
                            "hwloc takes one machine for another; "
                            "this is an error in coplace");
    return topology_extract(topology, ret_topology, error);
}
