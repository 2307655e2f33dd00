/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine as an immutable snapshot: CPUs by OS number, and the domains (core, LLC, node,
 * package) that they share.
 *
 * Words. LLC: the outermost data or unified cache above a CPU, never a memory-side cache. A CPU
 * without any cache has no LLC; its node stands for it as the LLC-level domain (real = false). An
 * LLC may be wider than a node or a package, and a machine may have LLCs of several kinds. A CPU
 * without a node of its own is legal (a die without memory); if it has no cache either, its
 * package stands for the LLC, and where that is unknown too, all such CPUs of the machine.
 * Snapshots are reference-counted, never changed, and tell each other apart by generation.
 * hwloc is known to topology.c alone. Nothing here sets a mask.
 */
#pragma once

#include "base/cpumask.h"
#include "base/error.h"
#include "base/level.h"
#include "base/root.h"

#include <stdbool.h>
#include <stdint.h>

#define CP_DOMAIN_NONE UINT32_MAX

struct cp_domain {
    enum cp_level level;    /* CP_LEVEL_CORE … CP_LEVEL_PACKAGE */
    uint32_t index;         /* its place in machine->domains[level] */
    unsigned os_index;      /* the kernel's number of a node or package; else the same as index */
    bool real;              /* false: an LLC-level domain of CPUs without caches (see above) */
    unsigned cache_level;   /* LLC: 1, 2, 3 or 4 (L1 … L4); else 0 */
    uint64_t cache_bytes;   /* LLC: its size, 0 unknown; else 0 */
    struct cp_cpumask cpus; /* the online CPUs in it (disallowed and isolated ones included) */
};

struct cp_machine_cpu {
    struct cp_cpu cpu;
    /* Indices into domains[CP_LEVEL_CORE … CP_LEVEL_PACKAGE]; [CP_LEVEL_CPU] and
     * [CP_LEVEL_MACHINE] are unused. CP_DOMAIN_NONE where the machine knows none (a package). */
    uint32_t domain[CP_LEVEL_MAX];
    int kind; /* hwloc CPU kind (rank of efficiency, rising with performance), -1 unknown */
};

struct cp_machine {
    unsigned n_references;
    uint64_t generation;
    bool live;    /* the running machine; false: a recorded or synthetic one */
    char *source; /* "live", "xml FILE", "synthetic TEXT", "root DIR"; for people */
    char *model;  /* CPU model, "unknown" where not known */

    uint32_t n_cpus; /* online CPUs, rising by OS number */
    struct cp_machine_cpu *cpus;
    uint32_t n_domains[CP_LEVEL_MAX];        /* 0 for CP_LEVEL_CPU and CP_LEVEL_MACHINE */
    struct cp_domain *domains[CP_LEVEL_MAX]; /* in the order of their lowest CPUs */
    /* OS numbers, rising, of nodes that have memory and no CPU of their own: they are no domain. */
    uint32_t n_memory_nodes;
    unsigned *memory_nodes;

    struct cp_cpumask online; /* as cpus */
    /* What the kernel's online list said, read before the rest; equal to online but for CPUs that
     * came or went meanwhile or that hwloc leaves out. */
    struct cp_cpumask listed;
    struct cp_cpumask offline;    /* present in the machine and not online */
    struct cp_cpumask possible;   /* online, offline, and empty slots that may get a CPU later */
    struct cp_cpumask isolated;   /* isolcpus, nohz_full, isolated partitions; within possible */
    struct cp_cpumask disallowed; /* online, outside the daemon's own cpuset */
    struct cp_cpumask usable;     /* online, neither isolated nor disallowed: placement targets */
};

enum cp_machine_source_kind {
    CP_MACHINE_LIVE,      /* root must be the running system's */
    CP_MACHINE_XML,       /* text: an hwloc XML file, format 1 or 2 */
    CP_MACHINE_SYNTHETIC, /* text: an hwloc synthetic description ("package:2 l3:4 core:2 pu:2") */
    CP_MACHINE_ROOT,      /* text: a directory with sys/ (and proc/) of a recorded machine */
};

struct cp_machine_source {
    enum cp_machine_source_kind kind;
    const char *text; /* borrowed; NULL for live */
};

/* More online CPUs than this are refused with -E2BIG. */
#define CP_MACHINE_CPUS_MAX 16384u

/*
 * Takes a snapshot. generation is stored as given. Blocks for milliseconds (tens on machines with
 * hundreds of CPUs), at most 30 s.
 *
 * hwloc runs in a forked child with an environment of its own: it crashes on some damaged files,
 * takes recorded machines only through environment variables, and its HWLOC_* variables could turn
 * "live" into something else. So this process's environment, memory and standard error stay as
 * they are. CPUID is not read: that means binding to every CPU in turn, isolated ones too.
 *
 * Negative errno with *error filled (names the file or text, says what is wrong and what to do);
 * -EPROTONOSUPPORT: an XML format of a newer hwloc. A machine without a single online CPU is an
 * error. Memory-only nodes make no domain. Isolated CPUs are known of live and recorded machines
 * only. CPUs that an XML file or a recorded machine knows without describing them count as offline.
 */
int cp_machine_load(const struct cp_machine_source *source, uint64_t generation,
                    struct cp_machine **ret_machine, struct cp_error *error);

struct cp_machine *cp_machine_ref(struct cp_machine *machine);
struct cp_machine *cp_machine_unref(struct cp_machine *machine); /* accepts and returns NULL */
CP_DEFINE_CLEANUP(struct cp_machine, cp_machine_unref)
#define _cleanup_machine_ _cleanup_(cp_machine_unrefp)

/* The record of an online CPU, borrowed from the snapshot; NULL if it is not online. O(log n). */
const struct cp_machine_cpu *cp_machine_find_cpu(const struct cp_machine *machine,
                                                 struct cp_cpu cpu);

/* The innermost level that two online CPUs share; CP_LEVEL_MACHINE if one of them is unknown. */
enum cp_level cp_machine_shared_level(const struct cp_machine *machine, struct cp_cpu a,
                                      struct cp_cpu b);

/* The domain of that level that holds the CPU (CORE … PACKAGE), borrowed; NULL where none. */
const struct cp_domain *cp_machine_domain_of(const struct cp_machine *machine, enum cp_level level,
                                             struct cp_cpu cpu);

/* true for each level for which two CPUs of this machine have it as their innermost shared one
 * (CP_LEVEL_CPU always). */
void cp_machine_levels_present(const struct cp_machine *machine, bool ret_present[CP_LEVEL_MAX]);

/* A hash over CPU model, topology and kernel release: what the cost table depends on. 16 hex
 * digits, terminated. */
void cp_machine_fingerprint(const struct cp_machine *machine, const char *kernel_release,
                            char ret_fingerprint[17]);

/* Compares the kernel's present online list below root (sys/devices/system/cpu/online) with the
 * snapshot's. 1: it differs, take a new snapshot; 0: the same; negative errno: unreadable, -EBADMSG
 * malformed. */
int cp_machine_is_stale(const struct cp_machine *machine, const struct cp_root *root);
