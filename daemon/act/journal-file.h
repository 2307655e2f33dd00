/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What opening and using the journal share. Private to act/. */
#pragma once

#include "act/journal-format.h"

#define CP_JOURNAL_FILE_NAME "journal"
#define CP_JOURNAL_DAMAGED_NAME "journal.damaged"
#define CP_JOURNAL_FILE_MAX_SIZE ((size_t)64 * 1024 * 1024)
#define CP_JOURNAL_COMPACT_MIN_SIZE ((size_t)16 * 1024)

struct cp_journal {
    char boot_id[CP_JOURNAL_BOOT_ID_SIZE];
    int directory_fd;
    int lock_fd;
    int fd;
    size_t size;       /* of the file */
    size_t compact_at; /* when the file has this size, it is written anew */
    uint64_t last_decision;
    uint64_t reserved_decision; /* ids up to this one are noted as used in the file */
    struct cp_journal_table due;
};

/*
 * Writes the file anew with what is due and puts it in place of the old one; keep_damaged: the old
 * one gets the name CP_JOURNAL_DAMAGED_NAME. Negative errno: the old one stays in use.
 */
int cp_journal_rewrite(struct cp_journal *journal, bool keep_damaged);
