/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The filter of ListDecisions: an a{sv} of known keys, each with its one type. */
#pragma once

#include "base/error.h"
#include "ledger/ledger.h"

#include <stdbool.h>
#include <systemd/sd-bus.h>

struct cp_bus_filter {
    bool by_state;
    enum cp_decision_state state;
    bool by_tid;
    uint32_t tid;
};

/*
 * Reads the a{sv} at the message's read position. Negative errno: unreadable; with *error filled
 * (code not 0) the caller's mistake: an unknown key or state or a wrong type, and what is allowed.
 */
int cp_bus_filter_read(sd_bus_message *message, struct cp_bus_filter *ret_filter,
                       struct cp_error *error);

bool cp_bus_filter_matches(const struct cp_bus_filter *filter, const struct cp_decision *decision);
