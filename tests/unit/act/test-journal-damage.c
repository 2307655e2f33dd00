/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Generated damage: whatever happens to a journal's bytes, the reader gives nothing but entries
 * that were written, never crashes, and keeps everything that is behind the damage.
 */
#include "unit/act/journal-fixture.h"

#include "act/journal-format.h"

/* Entries 0 … N_ENTRIES - 1, of which the even ones were ended. */
#define N_ENTRIES 8u
#define COUNTER 192u

struct sample {
    struct cp_journal_bytes bytes;
    size_t ends[3 * N_ENTRIES]; /* offsets behind each record */
    size_t n_ends;
};

static void note_end(struct sample *sample)
{
    sample->ends[sample->n_ends++] = sample->bytes.size;
}

static void make_sample(struct sample *sample)
{
    *sample = (struct sample){0};
    assert_int_equal(cp_journal_put_header(&sample->bytes, BOOT_A, 128), 0);
    assert_int_equal(cp_journal_put_counter(&sample->bytes, BOOT_A, COUNTER), 0);
    note_end(sample);
    for (unsigned i = 0; i < N_ENTRIES; i++) {
        struct cp_journal_entry entry = make_entry(i);

        assert_int_equal(cp_journal_put_place(&sample->bytes, BOOT_A, 130 + i, &entry, 1), 0);
        note_end(sample);
        if (i % 2 == 0) {
            assert_int_equal(cp_journal_put_end(&sample->bytes, BOOT_A, entry.task), 0);
            note_end(sample);
        }
        cp_journal_entry_done(&entry);
    }
}

/* Everything due is something that was written, at most once. */
static void check_image(const struct cp_journal_image *image)
{
    bool seen[N_ENTRIES] = {false};

    for (size_t i = 0; i < image->due.n_slots; i++) {
        const struct cp_journal_entry *entry = &image->due.entries[i];
        unsigned n = (unsigned)entry->task.tid - 1000;

        assert_true(n < N_ENTRIES);
        assert_true(entry_is(entry, n));
        assert_int_equal(entry->decision, 130 + n);
        assert_false(seen[n]);
        seen[n] = true;
    }
    assert_true(image->counter <= COUNTER);
}

static size_t parse(const uint8_t *data, size_t size, const char *boot_id,
                    struct cp_journal_image *image)
{
    /* A copy of exactly this size, so that the sanitizer sees a read behind it. */
    uint8_t *copy = malloc(size ? size : 1);

    assert_non_null(copy);
    memcpy(copy, data, size);
    assert_int_equal(cp_journal_parse(copy, size, boot_id, image), 0);
    free(copy);
    check_image(image);
    return image->due.n_live;
}

static void test_undamaged(void **state)
{
    struct cp_journal_image image;
    struct sample sample;

    (void)state;
    make_sample(&sample);
    assert_int_equal(parse(sample.bytes.data, sample.bytes.size, BOOT_A, &image), N_ENTRIES / 2);
    assert_int_equal(image.damaged_bytes + image.tail_bytes, 0);
    assert_int_equal(image.counter, COUNTER);
    assert_int_equal(image.n_records, sample.n_ends);
    cp_journal_image_done(&image);
    cp_journal_bytes_done(&sample.bytes);
}

static void test_cut_at_every_byte(void **state)
{
    struct sample sample;

    (void)state;
    make_sample(&sample);
    for (size_t size = 0; size < sample.bytes.size; size++) {
        struct cp_journal_image image;
        size_t whole = 0;

        parse(sample.bytes.data, size, BOOT_A, &image);
        for (size_t i = 0; i < sample.n_ends; i++)
            whole += sample.ends[i] <= size;
        assert_int_equal(image.n_records, whole);
        if (size >= CP_JOURNAL_HEADER_SIZE) {
            size_t end = whole ? sample.ends[whole - 1] : CP_JOURNAL_HEADER_SIZE;

            assert_false(image.header_damaged);
            assert_int_equal(image.tail_offset, end);
            assert_int_equal(image.tail_bytes, size - end);
        } else {
            assert_true(image.header_damaged);
        }
        cp_journal_image_done(&image);
    }
    cp_journal_bytes_done(&sample.bytes);
}

/* Every bit of every byte: exactly the record that holds it is lost. */
static void test_every_flipped_bit(void **state)
{
    struct sample sample;

    (void)state;
    make_sample(&sample);
    for (size_t i = 0; i < sample.bytes.size * 8; i++) {
        struct cp_journal_image image;

        sample.bytes.data[i / 8] ^= (uint8_t)(1u << (i % 8));
        parse(sample.bytes.data, sample.bytes.size, BOOT_A, &image);
        assert_false(image.newer);
        assert_false(image.other_boot);
        if (i / 8 < CP_JOURNAL_HEADER_SIZE) {
            assert_true(image.header_damaged);
            assert_int_equal(image.n_records, sample.n_ends);
            assert_int_equal(image.due.n_live, N_ENTRIES / 2);
        } else {
            assert_int_equal(image.n_records, sample.n_ends - 1);
            assert_true(image.damaged_bytes + image.tail_bytes > 0);
        }
        cp_journal_image_done(&image);
        sample.bytes.data[i / 8] ^= (uint8_t)(1u << (i % 8));
    }
    cp_journal_bytes_done(&sample.bytes);
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Runs of bytes overwritten, removed, doubled and inserted. */
static void damage(uint64_t *random, uint8_t *data, size_t *size, size_t capacity)
{
    size_t from = next_random(random) % *size;
    size_t length = 1 + next_random(random) % 40;

    length = CP_MIN(length, *size - from);
    switch (next_random(random) % 4) {
    case 0:
        for (size_t i = 0; i < length; i++)
            data[from + i] = (uint8_t)next_random(random);
        break;
    case 1:
        memset(data + from, 0, length);
        break;
    case 2:
        memmove(data + from, data + from + length, *size - from - length);
        *size -= length;
        break;
    default:
        if (*size + length <= capacity) {
            memmove(data + from + length, data + from, *size - from);
            *size += length;
        }
        break;
    }
}

static void test_random_damage(void **state)
{
    uint64_t random = 20240607;
    struct sample sample;
    uint8_t data[8192];

    (void)state;
    make_sample(&sample);
    assert_true(sample.bytes.size < sizeof(data) / 2);
    for (unsigned round = 0; round < 20000; round++) {
        struct cp_journal_image image;
        size_t size = sample.bytes.size;
        unsigned hits = 1 + next_random(&random) % 4;

        memcpy(data, sample.bytes.data, size);
        for (unsigned i = 0; i < hits && size > 0; i++)
            damage(&random, data, &size, sizeof(data));
        parse(data, size, BOOT_A, &image);
        cp_journal_image_done(&image);
    }
    cp_journal_bytes_done(&sample.bytes);
}

static void test_noise(void **state)
{
    uint64_t random = 4711;
    uint8_t data[512];

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        struct cp_journal_image image;
        size_t size = next_random(&random) % sizeof(data);

        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)next_random(&random);
        if (round % 2 && size > 40) /* something that begins as a record does */
            memcpy(data + size / 2, "cpJr", 4);
        assert_int_equal(parse(data, size, BOOT_A, &image), 0);
        assert_true(image.header_damaged);
        cp_journal_image_done(&image);
    }
}

/* A right CRC does not make sense of nonsense. */
static void test_records_that_we_never_write(void **state)
{
    struct cp_journal_bytes bytes = {0};
    struct cp_journal_image image;
    struct cp_journal_entry odd = make_entry(1);
    struct cp_journal_entry good = make_entry(2);

    (void)state;
    odd.task.tid = 0;
    assert_int_equal(cp_journal_put_header(&bytes, BOOT_A, 0), 0);
    assert_int_equal(cp_journal_put_place(&bytes, BOOT_A, 131, &odd, 1), 0);
    odd.task.tid = 1001;
    cp_cpumask_zero(&odd.original);
    assert_int_equal(cp_journal_put_place(&bytes, BOOT_A, 131, &odd, 1), 0);
    odd.task.tid = -5;
    assert_int_equal(cp_journal_put_end(&bytes, BOOT_A, odd.task), 0);
    assert_int_equal(cp_journal_put_place(&bytes, BOOT_A, 132, &good, 1), 0);
    assert_int_equal(parse(bytes.data, bytes.size, BOOT_A, &image), 1);
    assert_int_equal(image.n_records, 1);
    assert_true(image.damaged_bytes > 0);
    cp_journal_image_done(&image);
    cp_journal_entry_done(&odd);
    cp_journal_entry_done(&good);
    cp_journal_bytes_done(&bytes);
}

static void test_records_of_another_boot_never_validate(void **state)
{
    struct cp_journal_image image;
    struct sample sample;

    (void)state;
    make_sample(&sample);
    assert_int_equal(parse(sample.bytes.data, sample.bytes.size, BOOT_B, &image), 0);
    assert_true(image.other_boot);
    assert_int_equal(image.n_void, N_ENTRIES / 2);
    assert_int_equal(image.counter, COUNTER);
    cp_journal_image_done(&image);
    sample.bytes.data[20] ^= 1; /* the header's boot id */
    assert_int_equal(parse(sample.bytes.data, sample.bytes.size, BOOT_B, &image), 0);
    assert_true(image.header_damaged);
    assert_int_equal(image.n_records, 0);
    cp_journal_image_done(&image);
    cp_journal_bytes_done(&sample.bytes);
}

/* The file is put into order, the damaged one is kept for people, and ids go on above. */
static void test_damaged_file_is_put_into_order(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal;
    struct sample sample;
    char *warnings = NULL;
    char kept[96];
    uint64_t id;

    make_sample(&sample);
    sample.bytes.data[sample.ends[0] - 3] ^= 0x40; /* the counter record */
    write_bytes(fixture->path, sample.bytes.data, sample.bytes.size);
    journal = open_journal(fixture, BOOT_A, &warnings);
    assert_non_null(warnings);
    assert_non_null(strstr(warnings, "24 damaged bytes"));
    free(warnings);
    assert_int_equal(count_due(journal), N_ENTRIES / 2);
    assert_int_equal(cp_journal_next_decision(journal, &id), 0);
    assert_true(id > COUNTER);
    fixture_path(fixture, "journal.damaged", kept);
    assert_int_equal(access(kept, F_OK), 0);
    cp_journal_close(journal);
    warnings = NULL;
    journal = open_journal(fixture, BOOT_A, &warnings);
    assert_null(warnings);
    assert_int_equal(count_due(journal), N_ENTRIES / 2);
    cp_journal_close(journal);
    cp_journal_bytes_done(&sample.bytes);
}

static void test_torn_file_goes_on(void **state)
{
    const struct fixture *fixture = *state;
    struct sample sample;

    make_sample(&sample);
    for (size_t size = CP_JOURNAL_HEADER_SIZE; size < sample.bytes.size; size += 7) {
        struct cp_journal *journal;
        char *warnings = NULL;
        size_t due;

        write_bytes(fixture->path, sample.bytes.data, size);
        journal = open_journal(fixture, BOOT_A, &warnings);
        free(warnings);
        due = count_due(journal);
        place(journal, 999, 30);
        cp_journal_close(journal);
        warnings = NULL;
        journal = open_journal(fixture, BOOT_A, &warnings);
        assert_null(warnings);
        assert_int_equal(count_due(journal), due + 1);
        cp_journal_close(journal);
    }
    cp_journal_bytes_done(&sample.bytes);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undamaged),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_every_flipped_bit),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_records_that_we_never_write),
        cmocka_unit_test(test_records_of_another_boot_never_validate),
        WITH_FIXTURE(test_damaged_file_is_put_into_order),
        WITH_FIXTURE(test_torn_file_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
