/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Typed steps of writing a D-Bus message, with an error that sticks: after the first failure the
 * rest does nothing, so a dictionary can be written down like a table. Known to reply*.c alone.
 */
#pragma once

#include "base/cpumask.h"
#include "base/task-id.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct cp_bus_writer {
    sd_bus_message *message; /* borrowed */
    int error;               /* 0, or the negative errno of the first step that failed */
};

/* One entry of an a{sv}. Text: NULL is written as "", unclean text is cleaned (text.h). A number
 * that is not finite is written as 0: JSON has no way to say it. CPUs go out as a list string. */
void cp_bus_put_text(struct cp_bus_writer *writer, const char *key, const char *text);
void cp_bus_put_number(struct cp_bus_writer *writer, const char *key, double value); /* d */
void cp_bus_put_u64(struct cp_bus_writer *writer, const char *key, uint64_t value);  /* t */
void cp_bus_put_u32(struct cp_bus_writer *writer, const char *key, uint32_t value);  /* u */
void cp_bus_put_i32(struct cp_bus_writer *writer, const char *key, int32_t value);   /* i */
void cp_bus_put_bool(struct cp_bus_writer *writer, const char *key, bool value);     /* b */
void cp_bus_put_task(struct cp_bus_writer *writer, const char *key, struct cp_task_id task);
void cp_bus_put_cpus(struct cp_bus_writer *writer, const char *key, const struct cp_cpumask *cpus);

/* The bare parts of an a{sd} and an array. */
void cp_bus_put_share(struct cp_bus_writer *writer, const char *key, double value);
void cp_bus_open_array(struct cp_bus_writer *writer, const char *contents);
/* An entry of an a{sv} whose value is an array: until cp_bus_close_entry(). */
void cp_bus_open_entry(struct cp_bus_writer *writer, const char *key, const char *contents);
void cp_bus_close(struct cp_bus_writer *writer);
void cp_bus_close_entry(struct cp_bus_writer *writer);
