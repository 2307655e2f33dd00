/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a process has its memory, by node, from numa_maps(5). Decides nothing. */
#pragma once

#include "base/root.h"

#include <stdint.h>
#include <sys/types.h>

/* Nodes with numbers at and above this are not counted: the kernel's NODES_SHIFT is at most 10. */
#define CP_NUMA_NODE_LIMIT 1024u

/*
 * Adds up the memory of the mappings in a numa_maps text into kib[] by the kernel's node number. A
 * last line without its newline (a text that was cut) does not count; a line that is malformed
 * counts as far as it can be read. Pure.
 */
void cp_numa_maps_add(const char *text, uint64_t kib[static CP_NUMA_NODE_LIMIT]);

/* Reads proc/PID/numa_maps, at most 4 MiB of it, into kib[] (which it clears first). Negative
 * errno: -ENOENT also where the kernel has no NUMA. May block for milliseconds. */
int cp_numa_maps_read(const struct cp_root *root, pid_t pid,
                      uint64_t kib[static CP_NUMA_NODE_LIMIT]);
