/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Levels: the innermost thing that two CPUs share.
 *
 * Used by every room and by the BPF program, so this header includes nothing.
 */
#pragma once

enum cp_level {
    CP_LEVEL_CPU,     /* the same CPU */
    CP_LEVEL_CORE,    /* SMT siblings */
    CP_LEVEL_LLC,     /* one last-level cache; where a CPU has no cache, its node stands for it */
    CP_LEVEL_NODE,    /* one NUMA node */
    CP_LEVEL_PACKAGE, /* one package (socket) */
    CP_LEVEL_MACHINE, /* nothing nearer than the machine */
    CP_LEVEL_MAX,
    CP_LEVEL_INVALID = -1,
};

/* "cpu", "core", "llc", "node", "package", "machine"; NULL for any other value. */
const char *cp_level_to_string(enum cp_level level);

/* The level of that name, CP_LEVEL_INVALID for any other text. */
enum cp_level cp_level_from_string(const char *text);
