/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fetching decisions once (decisions.c) and as they change (follow.c). */
#pragma once

#include "ctl/ctl.h"

#include <stddef.h>
#include <stdint.h>

/*
 * One page of decisions with an id above cursor, rising, at most limit; state NULL: any. 0 or an
 * exit status, the error is printed. *ret_cursor is where the next page begins.
 */
int cp_ctl_fetch_decisions(sd_bus *bus, const char *state, uint64_t cursor, uint32_t limit,
                           json_t **ret_decisions, uint64_t *ret_cursor);

/* The newest limit decisions, rising; all pages are read. 0 or an exit status, printed. */
int cp_ctl_fetch_newest(sd_bus *bus, const char *state, size_t limit, json_t **ret_decisions);

/*
 * Prints the newest limit decisions (may be 0) and then each that is made or changes, one line
 * each, until SIGINT or SIGTERM (CP_CTL_DONE) or until the daemon goes (CP_CTL_NO_DAEMON). Blocks.
 */
int cp_ctl_follow(const struct cp_ctl *ctl, sd_bus *bus, const char *state, size_t limit);
