/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The manager owns every object of the daemon and is the only wiring between rooms: wake → pair →
 * plan → act, with the ledger behind and the bus on top.
 */
#pragma once

#include "base/error.h"
#include "policy/policy.h"

#include <stdbool.h>

struct cp_manager_config {
    struct cp_policy policy;
    const char *costs_text;      /* --costs, borrowed; NULL: none */
    const char *bus_address;     /* NULL: the system bus */
    const char *run_directory;   /* borrowed, created if missing */
    const char *state_directory; /* borrowed, created if missing */
    bool mode_given;             /* --mode was given: a persisted mode does not count */
    bool keep_on_exit;           /* leave the masks as they are on a clean stop */
    bool use_bpf;
};

struct cp_manager;

/*
 * Opens everything and gives back what an earlier life left behind. Blocks for tens of
 * milliseconds. Negative errno with *error saying what to do.
 */
int cp_manager_new(const struct cp_manager_config *config, struct cp_manager **ret_manager,
                   struct cp_error *error);

/* Runs until SIGTERM or SIGINT. 0, or negative errno with *error. Gives masks back before it
 * returns (on-exit: restore). */
int cp_manager_run(struct cp_manager *manager, struct cp_error *error);

struct cp_manager *cp_manager_free(struct cp_manager *manager); /* accepts, returns NULL */

/* `coplaced --restore`: gives back every mask that the journal says is due, without BPF and without
 * a bus, and logs what became of each. -EBUSY: a coplaced is running. */
int cp_restore_run(const char *run_directory, struct cp_error *error);
