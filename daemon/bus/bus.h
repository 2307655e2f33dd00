/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The D-Bus face of the daemon (interface.h): formats what the other rooms hold, checks callers,
 * and hands wishes to the manager through struct cp_bus_ops. Decides nothing.
 *
 * Callers: uid and groups come from the bus driver's GetConnectionCredentials, asked
 * asynchronously, kept per unique name and forgotten at NameOwnerChanged. Privileged are root and
 * members of group "coplace". Others see only what concerns tasks of their own real uid; a
 * decision or pair is theirs if both of its tasks are; anything else looks as if it did not exist.
 */
#pragma once

#include "base/error.h"
#include "ledger/ledger.h"
#include "machine/costs.h"
#include "machine/machine.h"
#include "pair/pair.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "registry/task-facts.h"
#include "wake/wake.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

/* What the bus reads; everything borrowed, valid until the handler returns. */
struct cp_bus_view {
    const char *version;
    enum cp_mode mode; /* effective */
    uint64_t started_ns;
    const struct cp_machine *machine;
    const struct cp_costs *costs;
    const struct cp_policy *policy;
    const struct cp_wake_source *wake;
    struct cp_pairs *pairs;
    struct cp_ledger *ledger;
    unsigned n_placements;         /* masks that are ours now */
    const char *const *neighbours; /* NULL-terminated list of texts; may be NULL */
};

/* The answer to "why is this thread here?" */
struct cp_bus_explanation {
    struct cp_task_facts facts;    /* owned */
    struct cp_cpumask former_mask; /* owned; empty if we hold no mask of it */
    bool have_pair;
    struct cp_pair pair;
    struct cp_plan_finding finding;     /* meaningful if have_pair or the decision stands */
    const struct cp_decision *decision; /* borrowed from the ledger; NULL: none */
    char summary[512];                  /* one sentence */
    /* As summary, but saying nothing of a partner: for a caller who may not see it. Empty: a
     * stock sentence is shown. */
    char summary_alone[512];
};

/* Frees what the explanation owns; a zeroed one is accepted. */
void cp_bus_explanation_done(struct cp_bus_explanation *explanation);

/* Results of the wishes below beside 0 and negative errno (a failure: *error is shown to the caller
 * if it was filled, else the errno's text). The same holds for *error with these results. */
enum cp_bus_result {
    CP_BUS_NO_SUCH_TASK = 1,
    CP_BUS_NO_SUCH_DECISION,
    CP_BUS_NOT_IN_EFFECT,
    CP_BUS_BUSY,
};

struct cp_bus_ops {
    void (*view)(void *userdata, struct cp_bus_view *ret_view);
    /* start_ticks 0: whoever has the TID now. CP_BUS_NO_SUCH_TASK. */
    int (*explain)(void *userdata, struct cp_task_id task, struct cp_bus_explanation *ret);
    /* What plan found for a pair last time, and the newest decision of it (NULL: none). */
    void (*pair_outcome)(void *userdata, const struct cp_pair *pair,
                         enum cp_plan_outcome *ret_outcome,
                         const struct cp_decision **ret_decision);
    int (*undo)(void *userdata, uint64_t decision, struct cp_error *error);
    int (*undo_all)(void *userdata, unsigned *ret_undone, struct cp_error *error);
    int (*allow)(void *userdata, struct cp_task_id task, unsigned *ret_lifted);
    int (*set_mode)(void *userdata, enum cp_mode mode, bool persist, struct cp_error *error);
    /* Begins a calibration; the bus keeps the caller's message and answers it when the manager
     * calls cp_bus_calibrated(). CP_BUS_BUSY: one is under way. */
    int (*calibrate)(void *userdata, struct cp_error *error);
    /* The bus has gone away (logged already) and does not come back by itself: emitters are then
     * ignored. May free the bus and make another. NULL accepted. */
    void (*disconnected)(void *userdata);
};

struct cp_bus;

/*
 * Connects to the bus at address (NULL: the system bus), attaches to the loop with the given
 * priority, exports the object and asks for the name (not queued, no replacement). Negative errno
 * with *error saying what to do: no bus, name taken (another coplaced), not allowed to own it.
 * Blocks while it connects; nothing else here blocks but cp_bus_free().
 */
int cp_bus_new(sd_event *event, int64_t priority, const char *address, const struct cp_bus_ops *ops,
               void *userdata, struct cp_bus **ret_bus, struct cp_error *error);
/* Accepts, returns NULL. Answers waiting Calibrate calls, waits until the bus has taken what is
 * queued (so only for the end), closes and so gives the name back. */
struct cp_bus *cp_bus_free(struct cp_bus *bus);

/* Typed emitters. NULL and a bus that has gone away are ignored. Do not block. */
void cp_bus_emit_decision_made(struct cp_bus *bus, uint64_t id, enum cp_decision_state state);
void cp_bus_emit_decision_changed(struct cp_bus *bus, uint64_t id, enum cp_decision_state state);
void cp_bus_emit_samples_lost(struct cp_bus *bus, uint64_t n);
void cp_bus_emit_mode_changed(struct cp_bus *bus);
void cp_bus_emit_topology_changed(struct cp_bus *bus);
/* Answers every waiting Calibrate call. result: 0, or negative errno with *error. */
void cp_bus_calibrated(struct cp_bus *bus, int result, const struct cp_error *error);
