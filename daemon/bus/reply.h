/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One typed writer for each dictionary of interface.h. Compilers do not check the arguments of
 * sd_bus_message_append(), so nothing else in the daemon puts a dictionary together.
 *
 * Each appends to an open message and returns 0 or a negative errno, after which the message is of
 * no use. They show what they are given: who may see it is decided before.
 */
#pragma once

#include "bus/bus.h"

#include <systemd/sd-bus.h>

/* All borrowed. A task that is no longer in the table is NULL: its names are then empty. */
struct cp_bus_pair {
    const struct cp_pair *pair;
    const struct cp_pair_task *a;
    const struct cp_pair_task *b;
    const struct cp_pair_verdict *verdict;
    enum cp_plan_outcome outcome;
    uint64_t decision; /* 0: none */
};

int cp_bus_write_pair(sd_bus_message *message, const struct cp_bus_pair *pair); /* a{sv} */
int cp_bus_write_decision(sd_bus_message *message, const struct cp_decision *decision);
int cp_bus_write_explanation(sd_bus_message *message, const struct cp_bus_view *view,
                             const struct cp_bus_explanation *explanation);
int cp_bus_write_topology(sd_bus_message *message, const struct cp_machine *machine,
                          const struct cp_costs *costs);
int cp_bus_write_costs(sd_bus_message *message, const struct cp_machine *machine,
                       const struct cp_costs *costs); /* aa{sv} */
int cp_bus_write_policy(sd_bus_message *message, const struct cp_policy *policy);
