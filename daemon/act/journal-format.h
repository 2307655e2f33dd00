/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The journal's bytes: encoding, and the reader of whatever a crash or a bad disk left. Private to
 * act/. Pure: no file, no clock.
 *
 * All numbers are little-endian. The file is a header followed by records.
 *
 *   preamble, the same in every version     header of version 1, behind the preamble
 *     0  8  magic "coplaceJ"                 16 40  boot id, padded with zeros
 *     8  4  version                          56  8  every decision id up to this one is used
 *    12  4  CRC-32 of bytes 0-11             64  4  CRC-32 of bytes 16-63
 *
 *   record
 *     0  4  magic "cpJr"                     12  4  CRC-32 of boot id (40 bytes as in the header),
 *     4  4  type: 1 PLACE, 2 END, 3 COUNTER         bytes 0-11 and the payload
 *     8  4  length of the payload            16  …  payload
 *
 *   PLACE:   8 decision, 4 number of entries; each entry: 4 TID, 4 TGID, 8 start ticks, 8 placed
 *            ticks, 4 flags (1: had a user mask), 4 n, 4 m, n words of 8 (original), m (target)
 *   END:     4 TID, 4 zero, 8 start ticks
 *   COUNTER: 8 every decision id up to this one is used
 *
 * The boot id is part of each record's CRC, so that a record of another boot never validates, even
 * behind a damaged header. Behind damage the reader looks for the next valid record byte by byte:
 * a length field that may itself be damaged is not trusted to skip good records.
 */
#pragma once

#include "act/journal.h"

#include <stddef.h>
#include <stdint.h>

#define CP_JOURNAL_VERSION 1u
#define CP_JOURNAL_BOOT_ID_SIZE ((size_t)40)
#define CP_JOURNAL_HEADER_SIZE ((size_t)68)
#define CP_JOURNAL_RECORD_HEADER_SIZE ((size_t)16)
#define CP_JOURNAL_MAX_PAYLOAD ((size_t)4 * 1024 * 1024)
#define CP_JOURNAL_COUNTER_BATCH 64u /* decision ids that one COUNTER record reserves */

/* Bytes that grow. A zeroed struct is a valid empty one. */
struct cp_journal_bytes {
    uint8_t *data; /* owned */
    size_t size;
    size_t capacity;
};

void cp_journal_bytes_done(struct cp_journal_bytes *bytes);
#define _cleanup_journal_bytes_ _cleanup_(cp_journal_bytes_done)

/* Each appends to *bytes: -ENOMEM; -E2BIG for a payload above CP_JOURNAL_MAX_PAYLOAD. On failure
 * *bytes holds no part of a record. boot_id must fit its field. */
int cp_journal_put_header(struct cp_journal_bytes *bytes, const char *boot_id, uint64_t counter);
int cp_journal_put_place(struct cp_journal_bytes *bytes, const char *boot_id, uint64_t decision,
                         const struct cp_journal_entry *entries, size_t n_entries);
int cp_journal_put_end(struct cp_journal_bytes *bytes, const char *boot_id, struct cp_task_id task);
int cp_journal_put_counter(struct cp_journal_bytes *bytes, const char *boot_id, uint64_t counter);

/* What is due, in the order of placement; ended ones leave a hole until the next squeeze. */
struct cp_journal_table {
    struct cp_journal_entry *entries; /* owned; task.tid 0: a hole */
    size_t n_slots;
    size_t n_live;
    size_t capacity;
};

void cp_journal_table_done(struct cp_journal_table *table);
/* Makes room for n more, so that the next n calls of cp_journal_table_put() cannot fail. -ENOMEM,
 * -ENOSPC above CP_JOURNAL_MAX_DUE. */
int cp_journal_table_reserve(struct cp_journal_table *table, size_t n);
/* Moves *entry in, over a former one of the same task; former_target follows from that one, what
 * *entry has of it is dropped. Room must be reserved. */
void cp_journal_table_put(struct cp_journal_table *table, struct cp_journal_entry *entry);
bool cp_journal_table_remove(struct cp_journal_table *table, struct cp_task_id task);
const struct cp_journal_entry *cp_journal_table_find(const struct cp_journal_table *table,
                                                     struct cp_task_id task);
void cp_journal_table_squeeze(struct cp_journal_table *table);

/* What a file holds. */
struct cp_journal_image {
    uint32_t version;    /* of the preamble; 0: the preamble is damaged */
    bool newer;          /* a valid preamble of a version that we do not know: nothing was read */
    bool header_damaged; /* preamble or header; records of this boot were read all the same */
    bool other_boot;     /* a valid header of another boot: the table stays empty */
    char boot_id[CP_JOURNAL_BOOT_ID_SIZE]; /* of the header, if that is valid; else "" */
    uint64_t counter;                      /* every decision id up to this one may have been used */
    size_t n_records;                      /* valid ones */
    size_t n_void;                         /* of another boot: entries that would be due */
    size_t damaged_bytes;                  /* between valid records, and a damaged header */
    size_t tail_offset;                    /* where the last valid record (or the header) ends */
    size_t tail_bytes;                     /* behind it: a torn record */
    struct cp_journal_table due;
};

void cp_journal_image_done(struct cp_journal_image *image);

/* Reads size bytes. Never fails for what they are; -ENOMEM, -ENOSPC (more due than
 * CP_JOURNAL_MAX_DUE). */
int cp_journal_parse(const uint8_t *data, size_t size, const char *boot_id,
                     struct cp_journal_image *ret_image);
