/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What may be done to whom: immutable rules. For now the one built-in policy, whose few switches
 * are daemon options; names and meanings are those of the YAML schema (design, section 7).
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum cp_mode {
    CP_MODE_OFF,     /* look at nothing */
    CP_MODE_OBSERVE, /* decide and record, change nothing */
    CP_MODE_ENFORCE,
    CP_MODE_MAX,
    CP_MODE_INVALID = -1,
};

enum cp_pair_level {
    CP_PAIRS_AUTO,     /* the level that the cost model finds */
    CP_PAIRS_SAME_CPU, /* every pair there, whatever its timing */
    CP_PAIRS_SAME_CORE,
    CP_PAIRS_SAME_LLC,
    CP_PAIRS_SAME_NODE,
    CP_PAIRS_OFF,
    CP_PAIRS_MAX,
    CP_PAIRS_INVALID = -1,
};

enum cp_affinity {
    CP_AFFINITY_RESPECT,  /* tasks with a mask of somebody else's making stay untouched */
    CP_AFFINITY_OVERRIDE, /* such masks may be widened and replaced (and are given back) */
    CP_AFFINITY_MAX,
    CP_AFFINITY_INVALID = -1,
};

enum cp_keep {
    CP_KEEP_IF_HELPED,
    CP_KEEP_ALWAYS,
    CP_KEEP_MAX,
    CP_KEEP_INVALID = -1,
};

struct cp_policy {
    char name[64]; /* "builtin" for now */
    enum cp_mode mode;
    enum cp_pair_level pairs;
    enum cp_affinity affinity;
    enum cp_keep keep;
    double min_rate_hz;       /* hand-offs a second */
    double min_gain_ns_per_s; /* 1e6 = 0.1 % of one CPU */
    double margin;            /* share by which a new plan must beat the standing one: 0.05 */
    uint64_t settle_ns;
    uint64_t min_age_ns;
    bool across;   /* pairs with other owners */
    bool any_node; /* nodes: any */
};

/* The defaults of design section 7: enforce, auto, respect, if-helped, 500/s, 0.1 %, 5 %, 10 s,
 * 300 ms, across false, nodes home. */
void cp_policy_init_builtin(struct cp_policy *policy);

/* Texts as in YAML ("same-cpu", "if-helped", …); *_from_string gives *_INVALID for any other. */
const char *cp_mode_to_string(enum cp_mode mode);
enum cp_mode cp_mode_from_string(const char *text);
const char *cp_pair_level_to_string(enum cp_pair_level pairs);
enum cp_pair_level cp_pair_level_from_string(const char *text);
const char *cp_affinity_to_string(enum cp_affinity affinity);
enum cp_affinity cp_affinity_from_string(const char *text);
const char *cp_keep_to_string(enum cp_keep keep);
enum cp_keep cp_keep_from_string(const char *text);

/* "500/s" or "500": hand-offs a second, 0.1 to 1e7. "10s", "300ms", "1500us": time. "5%": share.
 * -EINVAL, -ERANGE with *error saying what is allowed. */
int cp_parse_rate(const char *text, double *ret_hz, struct cp_error *error);
int cp_parse_time(const char *text, uint64_t *ret_ns, struct cp_error *error);
int cp_parse_share(const char *text, double *ret_share, struct cp_error *error);
