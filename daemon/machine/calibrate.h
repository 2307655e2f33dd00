/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Measures the cost table of the live machine by a short ping-pong between two threads.
 *
 * For each level that the machine has, a few CPU pairs; the two threads bind only themselves.
 * Isolated and disallowed CPUs are never used. Known to the manager alone, which runs it in a
 * thread of its own.
 */
#pragma once

#include "machine/costs.h"
#include "machine/machine.h"
#include "machine/ping-pong.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Chooses at most max_pairs pairs of usable CPUs whose innermost shared level is level (of
 * CP_LEVEL_CPU: a CPU with itself), spread over the machine, none twice. Returns their number; 0
 * where the usable CPUs do not have the level. Pure; O(n²) in the number of CPUs at worst.
 */
size_t cp_calibrate_choose(const struct cp_machine *machine, enum cp_level level,
                           struct cp_cpu_pair *pairs, size_t max_pairs);

/*
 * Measures within budget_ns (wall time, shared among levels) and stores into *costs what could be
 * measured, smoothed. Levels that are configured are not measured. Blocks for that time; less where
 * enough hand-offs were seen earlier. The calling thread's affinity is unchanged at return.
 * cancel (NULL accepted) is read all along; when it becomes true the function returns -ECANCELED
 * and leaves *costs as it was, as it does with other errors: negative errno with *error (no two
 * usable CPUs and no level measured: -ENODATA; a machine that is not live: -EINVAL). Levels that
 * got fewer than 20 hand-offs keep their value.
 */
int cp_calibrate(const struct cp_machine *machine, uint64_t budget_ns, const atomic_bool *cancel,
                 struct cp_costs *costs, struct cp_error *error);
