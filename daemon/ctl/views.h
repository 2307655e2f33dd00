/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The answers of the daemon as people read them: functions of the JSON that --json would print.
 * Every key may be missing (a daemon of another version); every text may be hostile (table.h
 * escapes). Each returns 0 or -ENOMEM.
 */
#pragma once

#include "ctl/table.h"

#include <jansson.h>

int cp_view_status(const struct cp_view *view, const json_t *properties);
int cp_view_pairs(const struct cp_view *view, const json_t *pairs);
int cp_view_decisions(const struct cp_view *view, const json_t *decisions);
/* One line, for a stream of them. */
int cp_view_decision_line(const struct cp_view *view, const json_t *decision);
int cp_view_explanation(const struct cp_view *view, const json_t *explanation);
/* The cost table: an array of the interface's cost dictionaries. */
int cp_view_costs(const struct cp_view *view, const json_t *costs);

/* Parts that several views share. */
void cp_view_policy(const struct cp_view *view, const json_t *policy);
/* The TID of the task under a key; 0: none. */
uint64_t cp_json_tid(const json_t *object, const char *key);
/* A name for people where a task has none. */
const char *cp_json_comm(const json_t *object, const char *key);
/* The level with the greatest share, "" if all are 0. Borrowed. */
const char *cp_json_main_level(const json_t *levels);
/* Colour of a decision's state. */
enum cp_style cp_view_state_style(const char *state);
