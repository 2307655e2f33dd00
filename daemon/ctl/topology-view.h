/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How coplacectl shows a machine: as JSON for programs, as a table for people. Reads no machine
 * and asks no daemon. */
#pragma once

#include "machine/machine.h"

#include <jansson.h>
#include <stdio.h>

/*
 * The machine as a new JSON object that belongs to the caller; NULL: no memory.
 *
 *   schema 1, generation, source, live, model
 *   cpus      the online ones: {cpu, core, llc, node, package, kind, isolated, disallowed}; core …
 *             package are the index of an entry below, null where there is none (llc: no cache)
 *   offline, isolated   arrays of CPU numbers
 *   cores     {index, cpus}
 *   llcs      real caches only: {index, level "L3", bytes (null unknown), cpus}
 *   nodes     {index, os_index, cpus}; nodes without CPUs come last with index null and cpus ""
 *   packages  {index, os_index, cpus}
 * The member cpus of an entry is a list string ("0-3,8").
 */
json_t *cp_topology_to_json(const struct cp_machine *machine);

/* Prints the machine for people, in lines of at most width columns (0: as long as they get; below
 * 40 counts as 40). 0, -ENOMEM, -EIO. */
int cp_topology_print(const struct cp_machine *machine, FILE *stream, unsigned width);
