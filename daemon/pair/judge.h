/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What judging and bookkeeping must agree on. Private to pair/. */
#pragma once

#include "pair/pair.h"

/* Mutual: the rarer direction has at least this share of the other's rate. */
#define CP_JUDGE_MIN_BALANCE 0.5

/* true if what the pair shows now tells how its tasks depend on each other: enough hand-offs, and
 * almost all of them between CPUs. */
bool cp_judge_is_seen_apart(const struct cp_pair *pair);
