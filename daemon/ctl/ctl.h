/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the verbs of coplacectl share: the session, exit statuses, errors and JSON output.
 *
 * Every verb fetches JSON (json.h) and either dumps it or prints a view of it, so that both forms
 * show the same. Views are functions of that JSON, without a bus.
 */
#pragma once

#include "base/error.h"
#include "ctl/arguments.h"
#include "ctl/json.h"
#include "ctl/table.h"

#include <jansson.h>
#include <systemd/sd-bus.h>

/* Exit statuses (design, section 7). */
enum cp_ctl_exit {
    CP_CTL_DONE = 0,
    CP_CTL_FAILED = 1,
    CP_CTL_USAGE = 2,
    CP_CTL_NO_DAEMON = 3,
};

/* Lists of the daemon are asked for in pieces of this many decisions. */
#define CP_CTL_PAGE 200u
/* More pairs or decisions than this are never shown. */
#define CP_CTL_LIMIT_MAX 1000000u

/* Words of the interface that a user may type; NULL-terminated. */
extern const char *const cp_ctl_modes[];
extern const char *const cp_ctl_states[]; /* of decisions */

struct cp_ctl {
    const char *bus_address; /* NULL: the system bus */
    bool json;
    struct cp_view view; /* standard output */
};

/* Prints an error and gives the exit status for it. result: what cp_client_*() returned (not 0). */
int cp_ctl_failed(int result, const struct cp_error *error);
/* Prints a wrong use of the verb and a hint; gives CP_CTL_USAGE. verb NULL: of the program. */
int cp_ctl_usage(const struct cp_verb *verb, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 0 if the text is one of the words; else CP_CTL_USAGE, printed. what: "a mode". */
int cp_ctl_word(const struct cp_verb *verb, const char *text, const char *what,
                const char *const *words);

/* Connects; 0 or an exit status, the error is printed. */
int cp_ctl_open(const struct cp_ctl *ctl, sd_bus **ret_bus);
/* Reads the next value of a reply; 0 or an exit status, the error is printed. */
int cp_ctl_read(sd_bus_message *reply, json_t **ret_value);

/* Asks for at most so many pairs, the strongest first; 0 or an exit status, printed. */
int cp_ctl_fetch_pairs(sd_bus *bus, uint32_t limit, json_t **ret_pairs);
/* The exit status for what a view returned; an error is printed. */
int cp_ctl_viewed(int result);

/* Reads an operand or option value as a number in a range; 0 or CP_CTL_USAGE, printed. what: "a
 * task", "a number of lines". */
int cp_ctl_number(const struct cp_verb *verb, const char *text, const char *what,
                  unsigned long long least, unsigned long long most,
                  unsigned long long *ret_number);

/*
 * Prints an object with "schema": 1 in front of its keys; takes the reference, NULL is out of
 * memory. on_one_line: for streams. An exit status.
 */
int cp_ctl_put_json(json_t *object, bool on_one_line);
/* An object with one key; takes the reference of value. NULL: no memory or value is NULL. */
json_t *cp_ctl_wrap(const char *key, json_t *value);

extern const struct cp_verb cp_verb_status;
extern const struct cp_verb cp_verb_pairs;
extern const struct cp_verb cp_verb_decisions;
extern const struct cp_verb cp_verb_explain;
extern const struct cp_verb cp_verb_topology;
extern const struct cp_verb cp_verb_mode;
extern const struct cp_verb cp_verb_undo;
extern const struct cp_verb cp_verb_allow;
extern const struct cp_verb cp_verb_calibrate;
