/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of this room share. Not for others. */
#pragma once

#include "bus/bus.h"
#include "bus/credentials.h"

#define CP_BUS_MAX_CALIBRATIONS 16u

struct cp_bus {
    sd_bus *connection; /* owned */
    bool lost;          /* the bus has gone away */
    const struct cp_bus_ops *ops;
    void *userdata;
    struct cp_bus_callers callers;
    size_t n_calibrations;
    sd_bus_message *calibrations[CP_BUS_MAX_CALIBRATIONS]; /* owned: Calibrate calls that wait */
};

/* The vtable of the Manager interface; userdata of its entries is the struct cp_bus. */
extern const sd_bus_vtable cp_bus_vtable[];

/*
 * The one handler of all methods in the vtable: finds out who is calling, then cp_bus_run_method().
 * A method that is in the vtable and not in the table of methods.c is refused to everyone.
 */
int cp_bus_on_method(sd_bus_message *message, void *userdata, sd_bus_error *ret_error);
void cp_bus_run_method(sd_bus_message *message, const struct cp_bus_identity *identity,
                       void *userdata);

/* Answers a call with an error. text may hold any bytes (the name of a file or a task): it is
 * cleaned, and cut to the length of a cp_error message. */
void cp_bus_reply_failure(sd_bus_message *message, const char *name, const char *text);

/* Getters of the properties; all of them harmless to show to anyone. */
int cp_bus_get_text(sd_bus *connection, const char *path, const char *interface, const char *name,
                    sd_bus_message *reply, void *userdata, sd_bus_error *ret_error);
int cp_bus_get_u64(sd_bus *connection, const char *path, const char *interface, const char *name,
                   sd_bus_message *reply, void *userdata, sd_bus_error *ret_error);
int cp_bus_get_placements(sd_bus *connection, const char *path, const char *interface,
                          const char *name, sd_bus_message *reply, void *userdata,
                          sd_bus_error *ret_error);
int cp_bus_get_decision_counts(sd_bus *connection, const char *path, const char *interface,
                               const char *name, sd_bus_message *reply, void *userdata,
                               sd_bus_error *ret_error);
int cp_bus_get_policy(sd_bus *connection, const char *path, const char *interface, const char *name,
                      sd_bus_message *reply, void *userdata, sd_bus_error *ret_error);
int cp_bus_get_neighbours(sd_bus *connection, const char *path, const char *interface,
                          const char *name, sd_bus_message *reply, void *userdata,
                          sd_bus_error *ret_error);
