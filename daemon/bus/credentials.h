/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who is calling: uid and groups of each sender, asked from the bus driver without blocking. Calls
 * of a sender that is not yet known wait, in order and bounded, until the driver has answered.
 *
 * The driver's answer is of the moment the caller connected and cannot be raced; what sd-bus
 * itself offers reads /proc later, and its own privilege check admits only root and our own uid.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#define CP_BUS_GROUP "coplace"

/* Each costs one match rule at the bus, which allows 512 to a connection (dbus-daemon 1.14). */
#define CP_BUS_MAX_CALLERS 256u
#define CP_BUS_MAX_PENDING 512u
#define CP_BUS_MAX_PENDING_PER_CALLER 64u

struct cp_bus_identity {
    uid_t uid;
    bool privileged; /* root, or a member of CP_BUS_GROUP */
};

/* Runs one method call and answers it. Borrowed arguments. */
typedef void (*cp_bus_run)(sd_bus_message *message, const struct cp_bus_identity *identity,
                           void *userdata);

struct cp_bus_caller;

struct cp_bus_callers {
    sd_bus *connection; /* borrowed */
    cp_bus_run run;
    void *userdata;
    bool have_group;
    gid_t group;
    size_t n_callers;
    struct cp_bus_caller *table[CP_BUS_MAX_CALLERS]; /* owned */
    size_t n_pending;                                /* waiting calls of all callers */
    uint64_t n_uses;                                 /* a clock for "least recently used" */
};

/*
 * Looks up CP_BUS_GROUP once (may block on the name service: only at start); where there is no such
 * group only root is privileged. connection and userdata must outlive *callers.
 */
void cp_bus_callers_init(struct cp_bus_callers *callers, sd_bus *connection, cp_bus_run run,
                         void *userdata);
/* Drops waiting calls without an answer. Accepts a zeroed struct. */
void cp_bus_callers_done(struct cp_bus_callers *callers);

/* Hands the call to run, now or when its sender is known; answers it with an error where that is
 * not possible (LimitsExceeded, NotPermitted, Failed). Does not block. */
void cp_bus_callers_handle(struct cp_bus_callers *callers, sd_bus_message *message);
