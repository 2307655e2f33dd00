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

#include <stdatomic.h>
#include <stdint.h>

/*
 * Measures within budget_ns (wall time, shared among levels) and stores into *costs what could be
 * measured, smoothed. Blocks for that time; the calling thread's affinity is unchanged at return.
 * cancel (NULL accepted) is read between rounds; when it becomes true the function returns
 * -ECANCELED and leaves *costs as it was. Other errors: negative errno with *error (no two usable
 * CPUs and no level measured: -ENODATA). Levels that got fewer than 20 hand-offs keep their value.
 */
int cp_calibrate(const struct cp_machine *machine, uint64_t budget_ns, const atomic_bool *cancel,
                 struct cp_costs *costs, struct cp_error *error);
