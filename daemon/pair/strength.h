/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Order among the records: pairs by rate, what the pairs of a task make of it (fan-out, strongest
 * partner), and who goes when time or the bounds say so. Decides nothing about relations. Nothing
 * here can fail. Private to pair/.
 */
#pragma once

#include "pair/table.h"

/* Brings pairs->order up to date: strongest total rate first, ties by ids. */
void cp_strength_sort(struct cp_pairs *pairs);

/* Finds again what the pairs of each task say of it: wakes, fan-out, strongest. To be called after
 * every change of rates or of the set of pairs. */
void cp_strength_relate(struct cp_pairs *pairs);

/* Drops what was unseen for too long, then the weakest beyond the bounds (counted), and relates
 * what is left. */
void cp_strength_trim(struct cp_pairs *pairs);
