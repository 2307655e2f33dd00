/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sets of CPUs by the kernel's (OS) number, and their text form ("0-3,8").
 *
 * A zeroed struct is a valid empty set. Sets grow as needed up to CP_CPU_LIMIT; two sets of
 * different capacity compare by their members. Functions that may allocate return -ENOMEM and
 * leave their output as it was.
 */
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A CPU by the kernel's number, wrapped so that it is never mixed with an index into a table. */
struct cp_cpu {
    unsigned os;
};

/* Numbers at and above this are refused: no kernel has so many (x86 NR_CPUS is at most 8192). */
#define CP_CPU_LIMIT 65536u

struct cp_cpumask {
    size_t n_words;
    uint64_t *words; /* owned */
};

void cp_cpumask_done(struct cp_cpumask *mask);
#define _cleanup_cpumask_ _cleanup_(cp_cpumask_done)

/* -ERANGE for a number at or above CP_CPU_LIMIT, -ENOMEM. */
int cp_cpumask_set(struct cp_cpumask *mask, struct cp_cpu cpu);
int cp_cpumask_set_range(struct cp_cpumask *mask, struct cp_cpu first, struct cp_cpu last);
void cp_cpumask_clear(struct cp_cpumask *mask, struct cp_cpu cpu);
void cp_cpumask_zero(struct cp_cpumask *mask);
bool cp_cpumask_test(const struct cp_cpumask *mask, struct cp_cpu cpu);

bool cp_cpumask_is_empty(const struct cp_cpumask *mask);
unsigned cp_cpumask_weight(const struct cp_cpumask *mask);
bool cp_cpumask_equal(const struct cp_cpumask *a, const struct cp_cpumask *b);
bool cp_cpumask_intersects(const struct cp_cpumask *a, const struct cp_cpumask *b);
/* true if every CPU of inner is in outer; the empty set is a subset of every set. */
bool cp_cpumask_is_subset(const struct cp_cpumask *inner, const struct cp_cpumask *outer);

/* Each writes its result over *to, which may be one of the operands. -ENOMEM: *to is unchanged. */
int cp_cpumask_copy(struct cp_cpumask *to, const struct cp_cpumask *from);
int cp_cpumask_and(struct cp_cpumask *to, const struct cp_cpumask *a, const struct cp_cpumask *b);
int cp_cpumask_or(struct cp_cpumask *to, const struct cp_cpumask *a, const struct cp_cpumask *b);
int cp_cpumask_andnot(struct cp_cpumask *to, const struct cp_cpumask *a,
                      const struct cp_cpumask *b);

/* The lowest member at or above from, or false. */
bool cp_cpumask_next(const struct cp_cpumask *mask, unsigned from, struct cp_cpu *ret_cpu);

/* for each member, in rising order: struct cp_cpu cpu; cp_cpumask_foreach (cpu, &mask) … */
#define cp_cpumask_foreach(cpu, mask)                                                              \
    for (unsigned _next_##cpu = 0;                                                                 \
         cp_cpumask_next(mask, _next_##cpu, &(cpu)) && (_next_##cpu = (cpu).os + 1, true);)

/*
 * Parses the kernel's list form (cpuset(7), "List format"): "0-3,8", also with strides
 * "0-31:2/16"; white space around the whole and an empty text are accepted (the empty set), empty
 * ranges and white space within are not. *ret_mask must be a valid set; its content is replaced.
 * -EINVAL: malformed; -ERANGE: a number at or above CP_CPU_LIMIT; -ENOMEM.
 */
int cp_cpumask_parse_list(const char *text, struct cp_cpumask *ret_mask);

/* The list form in a new string of the caller's; "" for the empty set. NULL: no memory. */
char *cp_cpumask_to_list(const struct cp_cpumask *mask);
