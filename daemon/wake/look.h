/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When to look: at which moments a window of the scale is opened.
 *
 * Attaching the scale interrupts every CPU of the machine, so windows are rare: one as soon as a
 * new pair is hot, one to verify what was just placed, then at doubling distances while nothing
 * changes, and none at all when nothing is hot and nothing is placed. New hot pairs that lead to
 * nothing make the next one wait longer. Pure: time is an argument.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cp_look_config {
    uint64_t window_ns;       /* length of a window */
    uint64_t verify_delay_ns; /* from a placement to the window that verifies it */
    uint64_t hot_interval_ns; /* first distance of repeated looks at a new hot pair */
    uint64_t min_interval_ns; /* that after a placement or a verdict */
    uint64_t max_interval_ns; /* last one: 120 s makes 30 windows an hour */
    uint64_t min_hot_gap_ns;  /* from the end of a window to one for a new hot pair */
    uint64_t max_hot_gap_ns;
};

struct cp_look {
    struct cp_look_config config;
    uint64_t due_ns; /* when to open the next window; UINT64_MAX: not at all */
    uint64_t interval_ns;
    uint64_t hot_gap_ns;
    uint64_t last_end_ns;
    bool for_hot; /* the window due was asked for by a new hot pair */
};

/* 100 ms windows, verified after 100 ms, repeated after 150 ms or 1 s … 120 s, hot gap 50 ms … 30
 * s. */
void cp_look_config_init_default(struct cp_look_config *config);

void cp_look_init(struct cp_look *look, const struct cp_look_config *config);

/* A pair has become hot that was not before. */
void cp_look_on_hot(struct cp_look *look, uint64_t now_ns);

/* Something was placed and must be verified. */
void cp_look_on_placed(struct cp_look *look, uint64_t now_ns);

/* Something that must wait (a task too young, settling, backing off) may be judged from until_ns
 * on: a window is to end just after. */
void cp_look_on_wait(struct cp_look *look, uint64_t now_ns, uint64_t until_ns);

/* A window has ended. changed: it led to a move or a verdict. watching: there is a placement or a
 * hot pair to look at again. Call before cp_look_on_placed() and
 * cp_look_on_wait() for what the window led to. */
void cp_look_on_end(struct cp_look *look, uint64_t now_ns, bool changed, bool watching);
