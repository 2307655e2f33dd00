/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What hwloc says of a machine, as plain facts for each CPU. Internal to machine/: topology.c reads
 * them in the forked child, snapshot.c makes them a struct cp_machine.
 */
#pragma once

#include "base/error.h"
#include "machine/machine.h"

#include <stddef.h>
#include <stdint.h>

/* No such object above this CPU. */
#define CP_TOPOLOGY_NO_KEY UINT64_MAX

struct cp_topology_cpu {
    struct cp_cpu cpu;
    /* Any number that the CPUs of one domain have in common, by level CORE … PACKAGE; the key of
     * the LLC level is NO_KEY where there is no cache. */
    uint64_t key[CP_LEVEL_MAX];
    uint32_t node_os;
    uint32_t package_os; /* UINT32_MAX where the package has no number */
    uint32_t cache_level;
    int32_t kind;
    uint64_t cache_bytes;
    uint32_t disallowed; /* 0 or 1 */
    uint32_t pad;        /* so that no byte sent to the parent is undefined */
};

struct cp_topology {
    size_t n_cpus;
    struct cp_topology_cpu *cpus; /* owned; rising by OS number, no duplicates */
    size_t n_missing;
    uint32_t *missing; /* owned; CPUs that the machine is known to have beyond cpus, rising */
    size_t n_memory_nodes;
    uint32_t *memory_nodes; /* owned; rising */
    char model[128];        /* printable ASCII; "unknown" */
};

void cp_topology_done(struct cp_topology *topology);
#define _cleanup_topology_ _cleanup_(cp_topology_done)

/*
 * Loads a topology by hwloc in this process. document is the text of the XML file (its size with
 * the final NUL), NULL for the other sources. The caller has prepared the environment (HWLOC_FSROOT
 * for a recorded machine) and must be ready to die: hwloc crashes on some damaged input.
 * Negative errno with *error; then *ret_topology is untouched.
 */
int cp_topology_read(const struct cp_machine_source *source, const char *document, int size,
                     struct cp_topology *ret_topology, struct cp_error *error);
