/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The journal's bytes, written and read. Pure; the format is described in the header. */
#include "act/journal-format.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const uint8_t file_magic[8] = {'c', 'o', 'p', 'l', 'a', 'c', 'e', 'J'};
static const uint8_t record_magic[4] = {'c', 'p', 'J', 'r'};

#define PREAMBLE_SIZE 16u
#define ENTRY_FIXED_SIZE 36u
#define MAX_MASK_WORDS (CP_CPU_LIMIT / 64u)
#define FLAG_USER_MASK 1u

enum record_type { RECORD_PLACE = 1, RECORD_END = 2, RECORD_COUNTER = 3 };

/* ---- writing ---- */

void cp_journal_bytes_done(struct cp_journal_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct cp_journal_bytes){0};
}

static int reserve_bytes(struct cp_journal_bytes *bytes, size_t size)
{
    size_t wanted = bytes->size + size;
    uint8_t *larger;

    if (wanted <= bytes->capacity)
        return 0;
    wanted = CP_MAX(wanted, bytes->capacity * 2);
    larger = realloc(bytes->data, wanted);
    if (!larger)
        return -ENOMEM;
    bytes->data = larger;
    bytes->capacity = wanted;
    return 0;
}

/* The put functions below write into room that the caller has reserved. */
static void put_raw(struct cp_journal_bytes *bytes, const void *data, size_t size)
{
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static void put_u32(struct cp_journal_bytes *bytes, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        bytes->data[bytes->size++] = (uint8_t)(value >> (8 * i));
}

static void put_u64(struct cp_journal_bytes *bytes, uint64_t value)
{
    put_u32(bytes, (uint32_t)value);
    put_u32(bytes, (uint32_t)(value >> 32));
}

static uint32_t crc_of(uint32_t crc, const uint8_t *data, size_t size)
{
    return (uint32_t)crc32_z(crc, data, size);
}

static void boot_id_field(const char *boot_id, uint8_t field[static CP_JOURNAL_BOOT_ID_SIZE])
{
    memset(field, 0, CP_JOURNAL_BOOT_ID_SIZE);
    memcpy(field, boot_id, strnlen(boot_id, CP_JOURNAL_BOOT_ID_SIZE - 1));
}

int cp_journal_put_header(struct cp_journal_bytes *bytes, const char *boot_id, uint64_t counter)
{
    size_t start = bytes->size;
    uint8_t field[CP_JOURNAL_BOOT_ID_SIZE];
    int r = reserve_bytes(bytes, CP_JOURNAL_HEADER_SIZE);

    if (r < 0)
        return r;
    put_raw(bytes, file_magic, sizeof(file_magic));
    put_u32(bytes, CP_JOURNAL_VERSION);
    put_u32(bytes, crc_of(0, bytes->data + start, 12));
    boot_id_field(boot_id, field);
    put_raw(bytes, field, sizeof(field));
    put_u64(bytes, counter);
    put_u32(bytes, crc_of(0, bytes->data + start + PREAMBLE_SIZE, 48));
    return 0;
}

static uint32_t record_crc(const char *boot_id, const uint8_t *record, size_t payload_size)
{
    uint8_t field[CP_JOURNAL_BOOT_ID_SIZE];
    uint32_t crc;

    boot_id_field(boot_id, field);
    crc = crc_of(0, field, sizeof(field));
    crc = crc_of(crc, record, 12);
    return crc_of(crc, record + CP_JOURNAL_RECORD_HEADER_SIZE, payload_size);
}

/* Reserves the whole record and writes its header with a CRC of zero. */
static int begin_record(struct cp_journal_bytes *bytes, enum record_type type, size_t payload_size)
{
    int r;

    if (payload_size > CP_JOURNAL_MAX_PAYLOAD)
        return -E2BIG;
    r = reserve_bytes(bytes, CP_JOURNAL_RECORD_HEADER_SIZE + payload_size);
    if (r < 0)
        return r;
    put_raw(bytes, record_magic, sizeof(record_magic));
    put_u32(bytes, (uint32_t)type);
    put_u32(bytes, (uint32_t)payload_size);
    put_u32(bytes, 0);
    return 0;
}

static void finish_record(struct cp_journal_bytes *bytes, const char *boot_id, size_t start)
{
    size_t payload_size = bytes->size - start - CP_JOURNAL_RECORD_HEADER_SIZE;
    size_t end = bytes->size;
    uint32_t crc = record_crc(boot_id, bytes->data + start, payload_size);

    bytes->size = start + 12;
    put_u32(bytes, crc);
    bytes->size = end;
}

static uint32_t used_words(const struct cp_cpumask *mask)
{
    size_t n = CP_MIN(mask->n_words, MAX_MASK_WORDS);

    while (n > 0 && mask->words[n - 1] == 0)
        n--;
    return (uint32_t)n;
}

static void put_entry(struct cp_journal_bytes *bytes, const struct cp_journal_entry *entry)
{
    uint32_t n_original = used_words(&entry->original);
    uint32_t n_target = used_words(&entry->target);

    put_u32(bytes, (uint32_t)entry->task.tid);
    put_u32(bytes, (uint32_t)entry->tgid);
    put_u64(bytes, entry->task.start_ticks);
    put_u64(bytes, entry->placed_ticks);
    put_u32(bytes, entry->had_user_mask ? FLAG_USER_MASK : 0);
    put_u32(bytes, n_original);
    put_u32(bytes, n_target);
    for (uint32_t i = 0; i < n_original; i++)
        put_u64(bytes, entry->original.words[i]);
    for (uint32_t i = 0; i < n_target; i++)
        put_u64(bytes, entry->target.words[i]);
}

int cp_journal_put_place(struct cp_journal_bytes *bytes, const char *boot_id, uint64_t decision,
                         const struct cp_journal_entry *entries, size_t n_entries)
{
    size_t start = bytes->size;
    size_t payload_size = 12;
    int r;

    if (n_entries > CP_JOURNAL_MAX_SET)
        return -E2BIG;
    for (size_t i = 0; i < n_entries; i++)
        payload_size += ENTRY_FIXED_SIZE + (size_t)8 * (used_words(&entries[i].original) +
                                                        used_words(&entries[i].target));
    r = begin_record(bytes, RECORD_PLACE, payload_size);
    if (r < 0)
        return r;
    put_u64(bytes, decision);
    put_u32(bytes, (uint32_t)n_entries);
    for (size_t i = 0; i < n_entries; i++)
        put_entry(bytes, &entries[i]);
    finish_record(bytes, boot_id, start);
    return 0;
}

int cp_journal_put_end(struct cp_journal_bytes *bytes, const char *boot_id, struct cp_task_id task)
{
    size_t start = bytes->size;
    int r = begin_record(bytes, RECORD_END, 16);

    if (r < 0)
        return r;
    put_u32(bytes, (uint32_t)task.tid);
    put_u32(bytes, 0);
    put_u64(bytes, task.start_ticks);
    finish_record(bytes, boot_id, start);
    return 0;
}

int cp_journal_put_counter(struct cp_journal_bytes *bytes, const char *boot_id, uint64_t counter)
{
    size_t start = bytes->size;
    int r = begin_record(bytes, RECORD_COUNTER, 8);

    if (r < 0)
        return r;
    put_u64(bytes, counter);
    finish_record(bytes, boot_id, start);
    return 0;
}

/* ---- reading ---- */

void cp_journal_image_done(struct cp_journal_image *image)
{
    cp_journal_table_done(&image->due);
    *image = (struct cp_journal_image){0};
}

static uint32_t get_u32(const uint8_t *data)
{
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
}

static uint64_t get_u64(const uint8_t *data)
{
    return (uint64_t)get_u32(data) | (uint64_t)get_u32(data + 4) << 32;
}

static int get_mask(const uint8_t *data, uint32_t n_words, struct cp_cpumask *ret_mask)
{
    struct cp_cpumask mask = {.n_words = n_words};

    if (n_words > 0) {
        mask.words = calloc(n_words, sizeof(*mask.words));
        if (!mask.words)
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < n_words; i++)
        mask.words[i] = get_u64(data + (size_t)8 * i);
    *ret_mask = mask;
    return 0;
}

/* Reads one entry at *data and moves it on. -EBADMSG: a record with a right CRC that makes no
 * sense; no version of ours writes such. */
static int get_entry(const uint8_t **data, const uint8_t *end, uint64_t decision,
                     struct cp_journal_entry *ret_entry)
{
    struct cp_journal_entry entry = {.decision = decision};
    const uint8_t *p = *data;
    uint32_t n_original;
    uint32_t n_target;
    int r;

    if ((size_t)(end - p) < ENTRY_FIXED_SIZE)
        return -EBADMSG;
    if (get_u32(p) == 0 || get_u32(p) > INT_MAX || get_u32(p + 4) > INT_MAX)
        return -EBADMSG;
    entry.task = (struct cp_task_id){.tid = (pid_t)get_u32(p), .start_ticks = get_u64(p + 8)};
    entry.tgid = (pid_t)get_u32(p + 4);
    entry.placed_ticks = get_u64(p + 16);
    entry.had_user_mask = (get_u32(p + 24) & FLAG_USER_MASK) != 0;
    n_original = get_u32(p + 28);
    n_target = get_u32(p + 32);
    p += ENTRY_FIXED_SIZE;
    if (n_original == 0 || n_target == 0 || n_original > MAX_MASK_WORDS ||
        n_target > MAX_MASK_WORDS || (size_t)(end - p) < (size_t)8 * (n_original + n_target))
        return -EBADMSG;
    r = get_mask(p, n_original, &entry.original);
    if (r >= 0)
        r = get_mask(p + (size_t)8 * n_original, n_target, &entry.target);
    if (r < 0) {
        cp_journal_entry_done(&entry);
        return r;
    }
    *data = p + (size_t)8 * (n_original + n_target);
    *ret_entry = entry;
    return 0;
}

static int read_place(struct cp_journal_image *image, const uint8_t *payload, size_t size)
{
    const uint8_t *p = payload + 12;
    uint64_t decision;
    uint32_t n;

    if (size < 12 || get_u32(payload + 8) > CP_JOURNAL_MAX_SET)
        return -EBADMSG;
    decision = get_u64(payload);
    n = get_u32(payload + 8);
    image->counter = CP_MAX(image->counter, decision);
    for (uint32_t i = 0; i < n; i++) {
        struct cp_journal_entry entry;
        int r = get_entry(&p, payload + size, decision, &entry);

        if (r >= 0) {
            r = cp_journal_table_reserve(&image->due, 1);
            if (r < 0)
                cp_journal_entry_done(&entry);
        }
        if (r < 0)
            return r;
        cp_journal_table_put(&image->due, &entry);
    }
    return 0;
}

/* The size of the valid record at data, or 0 if there is none. */
static size_t valid_record(const uint8_t *data, size_t size, const char *boot_id)
{
    uint32_t payload_size;

    if (size < CP_JOURNAL_RECORD_HEADER_SIZE ||
        memcmp(data, record_magic, sizeof(record_magic)) != 0)
        return 0;
    payload_size = get_u32(data + 8);
    if (payload_size > CP_JOURNAL_MAX_PAYLOAD ||
        payload_size > size - CP_JOURNAL_RECORD_HEADER_SIZE)
        return 0;
    if (get_u32(data + 12) != record_crc(boot_id, data, payload_size))
        return 0;
    return CP_JOURNAL_RECORD_HEADER_SIZE + payload_size;
}

/* -EBADMSG: a type or content that we never write; the record is skipped. */
static int read_record(struct cp_journal_image *image, const uint8_t *data, size_t size)
{
    const uint8_t *payload = data + CP_JOURNAL_RECORD_HEADER_SIZE;
    size_t payload_size = size - CP_JOURNAL_RECORD_HEADER_SIZE;

    switch (get_u32(data + 4)) {
    case RECORD_PLACE:
        return read_place(image, payload, payload_size);
    case RECORD_END:
        if (payload_size != 16 || get_u32(payload) > INT_MAX)
            return -EBADMSG;
        (void)cp_journal_table_remove(&image->due,
                                      (struct cp_task_id){.tid = (pid_t)get_u32(payload),
                                                          .start_ticks = get_u64(payload + 8)});
        return 0;
    case RECORD_COUNTER:
        if (payload_size != 8)
            return -EBADMSG;
        image->counter = CP_MAX(image->counter, get_u64(payload));
        return 0;
    default:
        return -EBADMSG;
    }
}

/* Where the next valid record at or behind offset begins; size if there is none. */
static size_t find_record(const uint8_t *data, size_t size, size_t offset, const char *boot_id)
{
    while (offset < size) {
        const uint8_t *candidate =
            memmem(data + offset, size - offset, record_magic, sizeof(record_magic));

        if (!candidate)
            break;
        offset = (size_t)(candidate - data);
        if (valid_record(candidate, size - offset, boot_id) > 0)
            return offset;
        offset++;
    }
    return size;
}

static int parse_records(struct cp_journal_image *image, const uint8_t *data, size_t size,
                         size_t offset, const char *boot_id)
{
    image->tail_offset = offset;
    while ((offset = find_record(data, size, offset, boot_id)) < size) {
        size_t length = valid_record(data + offset, size - offset, boot_id);
        int r = read_record(image, data + offset, length);

        if (r < 0 && r != -EBADMSG)
            return r;
        if (r == -EBADMSG)
            image->damaged_bytes += length;
        else
            image->n_records++;
        image->damaged_bytes += offset - image->tail_offset;
        offset += length;
        image->tail_offset = offset;
    }
    image->tail_bytes = size - image->tail_offset;
    return 0;
}

static int parse_version_1(struct cp_journal_image *image, const uint8_t *data, size_t size,
                           const char *boot_id)
{
    int r;

    if (size < CP_JOURNAL_HEADER_SIZE || data[PREAMBLE_SIZE + CP_JOURNAL_BOOT_ID_SIZE - 1] != 0 ||
        get_u32(data + 64) != crc_of(0, data + PREAMBLE_SIZE, 48)) {
        image->header_damaged = true;
        return parse_records(image, data, size, 0, boot_id);
    }
    memcpy(image->boot_id, data + PREAMBLE_SIZE, CP_JOURNAL_BOOT_ID_SIZE);
    image->counter = get_u64(data + 56);
    image->other_boot = strcmp(image->boot_id, boot_id) != 0;
    r = parse_records(image, data, size, CP_JOURNAL_HEADER_SIZE, image->boot_id);
    if (r >= 0 && image->other_boot) {
        image->n_void = image->due.n_live;
        cp_journal_table_done(&image->due);
    }
    return r;
}

int cp_journal_parse(const uint8_t *data, size_t size, const char *boot_id,
                     struct cp_journal_image *ret_image)
{
    struct cp_journal_image image = {0};
    int r;

    if (size >= PREAMBLE_SIZE && memcmp(data, file_magic, sizeof(file_magic)) == 0 &&
        get_u32(data + 12) == crc_of(0, data, 12))
        image.version = get_u32(data + 8);
    switch (image.version) {
    case 0:
        image.header_damaged = true;
        r = parse_records(&image, data, size, 0, boot_id);
        break;
    case 1:
        r = parse_version_1(&image, data, size, boot_id);
        break;
    default:
        image.newer = true;
        r = 0;
        break;
    }
    if (r < 0) {
        cp_journal_image_done(&image);
        return r;
    }
    cp_journal_table_squeeze(&image.due);
    *ret_image = image;
    return 0;
}
