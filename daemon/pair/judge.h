/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What judging and bookkeeping must agree on. Private to pair/. */
#pragma once

#include "pair/pair.h"

/* Mutual: the rarer direction has at least this share of the other's rate. */
#define CP_JUDGE_MIN_BALANCE 0.5

/* A verdict and a memory need so many hand-offs, as in the ledger's judgement of a placement. */
#define CP_JUDGE_MIN_HANDOFFS 20.0

/* Up to this share of hand-offs on one CPU a pair counts as apart. */
#define CP_JUDGE_MAX_STACKED_SHARE 0.2
