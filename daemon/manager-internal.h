/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the manager share: manager.c (life and event sources), round.c (from a window
 * to moves), standing.c (what becomes of placements), serve.c (what the bus asks for). For these
 * files alone.
 */
#pragma once

#include "act/act.h"
#include "act/journal.h"
#include "base/root.h"
#include "bus/bus.h"
#include "ledger/ledger.h"
#include "machine/costs.h"
#include "machine/load.h"
#include "machine/machine.h"
#include "machine/neighbours.h"
#include "manager.h"
#include "pair/pair.h"
#include "plan/plan.h"
#include "wake/look.h"
#include "wake/wake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <systemd/sd-event.h>

/* Pairs that the scout reported and that are still worth looking at. */
#define CP_HOT_MAX 1024u

struct cp_hot_pair {
    struct cp_task_id tasks[2]; /* in the order of cp_task_id_compare() */
    uint64_t since_ns;
};

/* A calibration, which blocks, runs in a thread of its own on its own copy of the table. */
struct cp_calibration {
    bool running;
    pthread_t thread;
    atomic_bool cancel;
    int done_fd; /* eventfd, written by the thread when it has finished */
    sd_event_source *done_source;
    struct cp_machine *machine;
    struct cp_costs costs;
    int result;
    struct cp_error error;
};

struct cp_manager {
    struct cp_manager_config config;
    struct cp_root root;
    uint64_t started_ns;

    sd_event *event;
    sd_event_source *wake_source_io;
    sd_event_source *look_timer;
    sd_event_source *hotplug_io;
    int hotplug_fd;

    struct cp_machine *machine;
    struct cp_costs costs;
    char fingerprint[17];
    struct cp_neighbours neighbours;
    const char *neighbour_texts[CP_NEIGHBOURS_MAX + 1];
    struct cp_policy policy; /* its mode is the configured one; see cp_manager_mode() */

    struct cp_wake_source *wake;
    struct cp_look look;
    bool window_is_open;
    struct cp_load load_at_open;
    uint16_t *busy_permille;  /* owned: of the last window, by index in machine->cpus; NULL: none */
    uint64_t busy_generation; /* of the machine that it was read for */
    size_t n_hot;
    struct cp_hot_pair hot[CP_HOT_MAX];

    struct cp_pairs *pairs;
    struct cp_plan last_plan;
    struct cp_ledger *ledger;
    struct cp_journal *journal; /* NULL: a newer version's journal is there, enforce is refused */
    uint64_t last_unwritten_decision; /* without a journal, ids count from 1 in each life */
    struct cp_actuator *actuator;
    struct cp_calibration calibration;
    struct cp_bus *bus;
};

/* manager.c */

/* The effective mode: the lower of the configured one and what neighbours and the journal allow. */
enum cp_mode cp_manager_mode(const struct cp_manager *manager);
/* Sets the timer to what the look schedule says. */
void cp_manager_arm_look(struct cp_manager *manager);
/* Tells systemd what `systemctl status` shall show. */
void cp_manager_notify_status(struct cp_manager *manager);
/* Compares the online CPUs with the snapshot and takes a new one if they differ. */
void cp_manager_follow_hotplug(struct cp_manager *manager);

/* open.c */

/* Opens machine, wake source, journal, actuator, pairs and ledger, and gives back what an earlier
 * life left. Negative errno with *error; what was opened belongs to the manager all the same. */
int cp_manager_open_rooms(struct cp_manager *manager, struct cp_error *error);

/* calibration.c */

/* Takes the cost table from the options and the kept file, and measures the rest. */
int cp_manager_open_costs(struct cp_manager *manager, struct cp_error *error);
/* Begins to measure in a thread; calibration.done_fd becomes readable when it has ended. */
int cp_manager_start_calibration(struct cp_manager *manager, struct cp_error *error);
int cp_manager_on_calibrated(sd_event_source *source, int fd, uint32_t revents, void *userdata);
/* Ends a calibration under way and waits for its thread. */
void cp_manager_stop_calibration(struct cp_manager *manager);

/* round.c */

/* A window has ended with this sample: verify, plan, act. */
void cp_manager_round(struct cp_manager *manager, const struct cp_wake_sample *sample);
/* Plans for the given pairs only, changing nothing. The plan belongs to the caller. */
int cp_manager_plan(struct cp_manager *manager, const struct cp_pair *const *pairs, size_t n_pairs,
                    struct cp_plan *ret_plan);
/* What the sample shows of a pair. */
void cp_manager_observe(const struct cp_wake_sample *sample, struct cp_task_id a,
                        struct cp_task_id b, struct cp_observation *ret);

/* standing.c */

/* Gives back both masks of a standing decision and brings it into state. */
void cp_manager_end_decision(struct cp_manager *manager, struct cp_decision *decision,
                             enum cp_decision_state state, const char *why);
/* Ends every standing decision. Number ended. */
unsigned cp_manager_end_all(struct cp_manager *manager, enum cp_decision_state state,
                            const char *why);
/* Looks at each standing decision after a window: yielded, gone, judged, quiet. true: a state
 * changed. */
bool cp_manager_verify(struct cp_manager *manager, const struct cp_wake_sample *sample);
/* News of a task that carries our mask. */
void cp_manager_on_guarded(struct cp_manager *manager, const struct cp_wake_event *event);
/* Gives back everything that is ours without a standing decision (an earlier life). */
void cp_manager_release_orphans(struct cp_manager *manager);
void cp_manager_set_state(struct cp_manager *manager, struct cp_decision *decision,
                          enum cp_decision_state state, const char *why);

/* serve.c */

extern const struct cp_bus_ops cp_manager_bus_ops;
