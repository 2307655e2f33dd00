/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From D-Bus to JSON with the same names, for every type of the interface, and forgiving access to
 * the result: a key that a daemon of another version does not send is empty, not an error.
 */
#pragma once

#include "base/cleanup.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

static inline void cp_json_decrefp(json_t **value)
{
    json_decref(*value);
}
#define _cleanup_json_ _cleanup_(cp_json_decrefp)

/*
 * Reads the next value of the message: dictionaries with text keys become objects, a task (ut)
 * becomes {"tid": …, "start": …}, other structures and arrays become arrays, variants vanish.
 * Numbers above INT64_MAX become reals, as jansson's integers end there; what is not a number
 * becomes null. 1: *ret_value belongs to the caller; 0: the end of the message or container;
 * -ENOTSUP: a type without a JSON form; -EBADMSG, -ENOMEM, errors of sd-bus.
 */
int cp_json_read(sd_bus_message *message, json_t **ret_value);

/* The value of a key; "", 0, 0.0 or NULL if it is absent or of another type. Borrowed. */
const char *cp_json_text(const json_t *object, const char *key);
uint64_t cp_json_count(const json_t *object, const char *key); /* reals: rounded, saturating */
double cp_json_number(const json_t *object, const char *key);
bool cp_json_flag(const json_t *object, const char *key);
/* An array or object that has members; NULL otherwise, so an empty one is as none. */
const json_t *cp_json_filled(const json_t *object, const char *key);
