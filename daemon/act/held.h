/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The masks that are ours now, and those that were until a moment ago: a child that was forked
 * before its parent was released may be reported after. Private to act/. Changes no mask, writes
 * no journal.
 */
#pragma once

#include "act/journal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CP_HELD_RECENT 256u

struct cp_held_recent {
    struct cp_journal_entry *entry; /* owned; NULL: free */
    uint64_t until_ticks;           /* when it ceased to be ours */
    bool inherited;                 /* a child that had the mask from its parent: never placed */
};

struct cp_held_set {
    struct cp_journal_entry **entries; /* owned, sorted by task */
    size_t n;
    size_t capacity;
    struct cp_held_recent recent[CP_HELD_RECENT]; /* a ring */
    unsigned next_recent;
};

void cp_held_set_done(struct cp_held_set *set);
/* Room for n more, so that n inserts cannot fail. -ENOMEM. */
int cp_held_set_reserve(struct cp_held_set *set, size_t n);
/* Takes entry over, in place of a former one of the same task, which becomes recent. */
void cp_held_set_insert(struct cp_held_set *set, struct cp_journal_entry *entry,
                        uint64_t now_ticks);
/* The task's mask is no longer ours: its entry becomes recent. */
void cp_held_set_drop(struct cp_held_set *set, struct cp_task_id task, uint64_t now_ticks);
/* Takes entry over as recent at once: a mask that was ours for a moment, or inherited. */
void cp_held_set_remember(struct cp_held_set *set, struct cp_journal_entry *entry,
                          uint64_t now_ticks, bool inherited);
struct cp_journal_entry *cp_held_set_find(const struct cp_held_set *set, struct cp_task_id task);

/* Frees an entry of the heap. Accepts, returns NULL. */
struct cp_journal_entry *cp_held_entry_free(struct cp_journal_entry *entry);
