/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads and children that inherited a mask of ours. Private to act/. */
#pragma once

#include "act/give-back.h"

struct cp_act_stray_scan {
    const struct cp_act_context *context;
    const struct cp_journal_entry *entry; /* whose mask may have been inherited */
    uint64_t until_ticks;                 /* only tasks that started up to then */
    bool (*is_placed)(struct cp_task_id task, void *userdata); /* ours by right: no stray */
    void *userdata;
};

/*
 * Finds tasks in the process of the entry, and among the descendants of its task, that started
 * between the placement and until_ticks, have exactly the entry's target as their mask though it is
 * not their whole cpuset, and are not placed. Gives them the entry's original. A process of which
 * the TGID was used again is not touched. Number given back. Blocks for a read of each thread's
 * stat (about 10 µs each).
 *
 * A task that pinned itself to exactly that mask after it started cannot be told from one that
 * inherited it.
 */
unsigned cp_act_free_strays(const struct cp_act_stray_scan *scan);
