/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The journal as a file: what is due survives, ids are never given twice, and nothing that could
 * be somebody else's is believed. */
#include "unit/act/journal-fixture.h"

#include "act/journal-format.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <zlib.h>

static void test_due_survives_reopening(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    const struct cp_journal_entry *due;
    char *warnings = NULL;

    place(journal, 1, 1);
    place(journal, 2, 2);
    place(journal, 2, 3);
    end(journal, 2);
    cp_journal_close(journal);
    journal = open_journal(fixture, BOOT_A, &warnings);
    assert_null(warnings);
    assert_int_equal(cp_journal_due(journal, &due), 2);
    assert_true(entry_is(&due[0], 1) && due[0].decision == 1);
    assert_true(entry_is(&due[1], 3) && due[1].decision == 2);
    cp_journal_close(journal);
}

static void test_a_set_is_one_record(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    struct cp_journal_entry entries[2] = {make_entry(4), make_entry(5)};
    const struct cp_journal_entry *due;

    assert_int_equal(cp_journal_place(journal, 9, entries, 2), 0);
    cp_journal_close(journal);
    journal = open_journal(fixture, BOOT_A, NULL);
    assert_int_equal(cp_journal_due(journal, &due), 2);
    assert_true(entry_is(&due[0], 4) && entry_is(&due[1], 5));
    cp_journal_close(journal);
    cp_journal_entry_done(&entries[0]);
    cp_journal_entry_done(&entries[1]);
}

static void test_a_second_place_replaces_the_first(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    struct cp_journal_entry entry = make_entry(6);
    const struct cp_journal_entry *due;

    place(journal, 1, 6);
    assert_int_equal(cp_cpumask_set(&entry.target, (struct cp_cpu){77}), 0);
    assert_int_equal(cp_journal_place(journal, 2, &entry, 1), 0);
    cp_journal_close(journal);
    journal = open_journal(fixture, BOOT_A, NULL);
    assert_int_equal(cp_journal_due(journal, &due), 1);
    assert_int_equal(due[0].decision, 2);
    assert_true(cp_cpumask_equal(&due[0].target, &entry.target));
    cp_journal_close(journal);
    cp_journal_entry_done(&entry);
}

/* Between the record and the change a crash may come: the target before is remembered, until the
 * new one is confirmed. */
static void test_former_target(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    struct cp_journal_entry first = make_entry(6);
    struct cp_journal_entry second = make_entry(6);
    const struct cp_journal_entry *due;

    assert_int_equal(cp_cpumask_set(&second.target, (struct cp_cpu){77}), 0);
    assert_int_equal(cp_journal_place(journal, 1, &first, 1), 0);
    assert_int_equal(cp_journal_place(journal, 2, &second, 1), 0);
    for (unsigned i = 0; i < 600; i++) { /* compacts */
        place(journal, 3, 1);
        end(journal, 1);
    }
    cp_journal_close(journal);
    journal = open_journal(fixture, BOOT_A, NULL);
    assert_int_equal(cp_journal_due(journal, &due), 1);
    assert_int_equal(due[0].decision, 2);
    assert_true(cp_cpumask_equal(&due[0].target, &second.target));
    assert_true(cp_cpumask_equal(&due[0].former_target, &first.target));
    assert_int_equal(cp_journal_place(journal, 2, &second, 1), 0);
    assert_int_equal(cp_journal_due(journal, &due), 1);
    assert_true(cp_cpumask_is_empty(&due[0].former_target));
    cp_journal_close(journal);
    cp_journal_entry_done(&first);
    cp_journal_entry_done(&second);
}

static void test_arguments_are_checked(void **state)
{
    struct cp_journal *journal = open_journal(*state, BOOT_A, NULL);
    struct cp_journal_entry entry = make_entry(1);
    struct cp_error error;
    struct cp_journal *none = NULL;

    assert_int_equal(cp_journal_place(journal, 1, &entry, 0), -EINVAL);
    assert_int_equal(cp_journal_place(journal, 1, &entry, CP_JOURNAL_MAX_SET + 1), -E2BIG);
    cp_cpumask_zero(&entry.target);
    assert_int_equal(cp_journal_place(journal, 1, &entry, 1), -EINVAL);
    assert_int_equal(cp_journal_end(journal, (struct cp_task_id){.tid = 4711}), 0);
    assert_int_equal(count_due(journal), 0);
    cp_journal_entry_done(&entry);
    cp_journal_close(journal);
    assert_int_equal(cp_journal_open("/tmp", "", &none, NULL, &error), -EINVAL);
    assert_int_equal(
        cp_journal_open("/tmp", "0123456789012345678901234567890123456789", &none, NULL, &error),
        -EINVAL);
    assert_null(none);
}

static void test_lock(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    struct cp_journal *second = NULL;
    struct cp_error error = {0};

    assert_int_equal(cp_journal_open(fixture->directory, BOOT_A, &second, NULL, &error), -EBUSY);
    assert_non_null(strstr(error.message, "another coplaced"));
    /* Compaction replaces the file; the lock must hold on. */
    for (unsigned i = 0; i < 500; i++) {
        place(journal, i, i % 7);
        end(journal, i % 7);
    }
    assert_int_equal(cp_journal_open(fixture->directory, BOOT_A, &second, NULL, &error), -EBUSY);
    cp_journal_close(journal);
    second = open_journal(fixture, BOOT_A, NULL);
    cp_journal_close(second);
}

static void test_compaction_keeps_the_file_small(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    struct stat status;
    const struct cp_journal_entry *due;
    uint64_t last = 0;
    uint64_t id;

    place(journal, 1, 50);
    for (unsigned i = 0; i < 3000; i++) {
        assert_int_equal(cp_journal_next_decision(journal, &id), 0);
        assert_true(id > last);
        last = id;
        place(journal, id, i % 40);
        end(journal, i % 40);
    }
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_true(status.st_size < 64 * 1024);
    assert_int_equal(status.st_mode & 07777, 0600);
    cp_journal_close(journal);
    journal = open_journal(fixture, BOOT_A, NULL);
    assert_int_equal(cp_journal_due(journal, &due), 1);
    assert_true(entry_is(&due[0], 50));
    assert_int_equal(cp_journal_next_decision(journal, &id), 0);
    assert_true(id > last);
    cp_journal_close(journal);
}

static void test_many_due(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    const struct cp_journal_entry *due;

    for (unsigned i = 0; i < 2000; i++)
        place(journal, i, i);
    for (unsigned i = 0; i < 2000; i += 2)
        end(journal, i);
    cp_journal_close(journal);
    journal = open_journal(fixture, BOOT_A, NULL);
    assert_int_equal(cp_journal_due(journal, &due), 1000);
    for (unsigned i = 0; i < 1000; i++)
        assert_true(entry_is(&due[i], 2 * i + 1));
    cp_journal_close(journal);
}

static void test_wide_masks(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    struct cp_journal_entry entry = make_entry(1);
    const struct cp_journal_entry *due;

    assert_int_equal(cp_cpumask_set(&entry.target, (struct cp_cpu){CP_CPU_LIMIT - 1}), 0);
    assert_int_equal(cp_cpumask_set(&entry.original, (struct cp_cpu){2047}), 0);
    assert_int_equal(cp_journal_place(journal, 1, &entry, 1), 0);
    cp_journal_close(journal);
    journal = open_journal(fixture, BOOT_A, NULL);
    assert_int_equal(cp_journal_due(journal, &due), 1);
    assert_true(cp_cpumask_equal(&due[0].target, &entry.target));
    assert_true(cp_cpumask_equal(&due[0].original, &entry.original));
    cp_journal_close(journal);
    cp_journal_entry_done(&entry);
}

/* The process dies at an arbitrary id: the next one starts above. */
static void test_ids_after_sigkill(void **state)
{
    const struct fixture *fixture = *state;
    uint64_t last = 0;

    for (unsigned round = 0; round < 5; round++) {
        struct cp_journal *journal;
        int channel[2];
        uint64_t id = 0;
        pid_t child;

        assert_int_equal(pipe2(channel, O_CLOEXEC), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            journal = open_journal(fixture, BOOT_A, NULL);
            for (unsigned i = 0; i < 100 + round; i++)
                if (cp_journal_next_decision(journal, &id) < 0)
                    _exit(1);
            if (write(channel[1], &id, sizeof(id)) != sizeof(id))
                _exit(1);
            (void)raise(SIGKILL);
            _exit(1);
        }
        close(channel[1]);
        assert_int_equal(read(channel[0], &id, sizeof(id)), sizeof(id));
        close(channel[0]);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_true(id >= last + 100);
        last = id;
    }
}

static void test_another_boot_is_void_but_counts_on(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    char *warnings = NULL;
    uint64_t last = 0;
    uint64_t id;

    for (unsigned i = 0; i < 70; i++)
        assert_int_equal(cp_journal_next_decision(journal, &last), 0);
    place(journal, last, 1);
    cp_journal_close(journal);
    journal = open_journal(fixture, BOOT_B, &warnings);
    assert_int_equal(count_due(journal), 0);
    assert_non_null(warnings);
    assert_non_null(strstr(warnings, "another boot: 1 placements"));
    free(warnings);
    assert_int_equal(cp_journal_next_decision(journal, &id), 0);
    assert_true(id > last);
    cp_journal_close(journal);
    /* What was void stays void, even if the old boot id came back. */
    journal = open_journal(fixture, BOOT_A, &warnings);
    assert_int_equal(count_due(journal), 0);
    free(warnings);
    cp_journal_close(journal);
}

static void test_newer_version_is_left_alone(void **state)
{
    const struct fixture *fixture = *state;
    _cleanup_journal_bytes_ struct cp_journal_bytes bytes = {0};
    struct cp_journal *journal = NULL;
    struct cp_error error = {0};
    char *warnings = NULL;
    unsigned char before[256];
    unsigned char after[256];
    uint32_t crc;

    assert_int_equal(cp_journal_put_header(&bytes, BOOT_A, 5), 0);
    bytes.data[8] = 7;
    crc = (uint32_t)crc32(0, bytes.data, 12);
    for (unsigned i = 0; i < 4; i++)
        bytes.data[12 + i] = (uint8_t)(crc >> (8 * i));
    bytes.data[40] ^= 0xff; /* whatever a newer header looks like */
    write_bytes(fixture->path, bytes.data, bytes.size);
    memcpy(before, bytes.data, bytes.size);
    assert_int_equal(cp_journal_open(fixture->directory, BOOT_A, &journal, &warnings, &error),
                     CP_JOURNAL_NEWER_VERSION);
    assert_null(journal);
    assert_null(warnings);
    assert_non_null(strstr(error.message, "version 7"));
    assert_int_equal(read_bytes(fixture->path, after, sizeof(after)), bytes.size);
    assert_memory_equal(before, after, bytes.size);
    /* The lock was given back. */
    assert_int_equal(unlink(fixture->path), 0);
    cp_journal_close(open_journal(fixture, BOOT_A, NULL));
}

static void test_empty_file(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal;
    char *warnings = NULL;

    write_bytes(fixture->path, "", 0);
    journal = open_journal(fixture, BOOT_A, &warnings);
    assert_non_null(warnings);
    assert_non_null(strstr(warnings, "empty"));
    free(warnings);
    place(journal, 1, 1);
    cp_journal_close(journal);
    journal = open_journal(fixture, BOOT_A, NULL);
    assert_int_equal(count_due(journal), 1);
    cp_journal_close(journal);
}

static void refuse(const struct fixture *fixture, int code, const char *words)
{
    struct cp_journal *journal = NULL;
    struct cp_error error = {0};

    assert_int_equal(cp_journal_open(fixture->directory, BOOT_A, &journal, NULL, &error), -code);
    assert_null(journal);
    if (!strstr(error.message, words))
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
}

static void test_what_is_no_regular_file_is_refused(void **state)
{
    const struct fixture *fixture = *state;
    char lock[96];

    fixture_path(fixture, "lock", lock);
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    refuse(fixture, EISDIR, "is a directory");
    assert_int_equal(rmdir(fixture->path), 0);
    assert_int_equal(symlink("/dev/null", fixture->path), 0);
    refuse(fixture, ELOOP, "symbolic link");
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    refuse(fixture, EINVAL, "not a regular file");
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(symlink("elsewhere", lock), 0);
    refuse(fixture, ELOOP, "symbolic link");
}

static void test_files_of_others_are_refused(void **state)
{
    const struct fixture *fixture = *state;

    write_bytes(fixture->path, "", 0);
    assert_int_equal(chmod(fixture->path, 0666), 0);
    refuse(fixture, EPERM, "written by others");
    assert_int_equal(chmod(fixture->path, 0600), 0);
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(fixture->path, 12345, 0), 0);
    refuse(fixture, EPERM, "uid 12345");
}

static void test_a_huge_file_is_refused(void **state)
{
    const struct fixture *fixture = *state;

    write_bytes(fixture->path, "x", 1);
    assert_int_equal(truncate(fixture->path, 65 * 1024 * 1024), 0);
    refuse(fixture, EFBIG, "more than any journal");
}

static void test_a_missing_directory(void **state)
{
    struct fixture missing = {.directory = "/nonexistent/coplace"};

    (void)state;
    refuse(&missing, ENOENT, "/nonexistent/coplace");
}

/* A file size limit stands for a full disk: the write is cut short in the middle of a record. */
static void run_into_limit(const struct fixture *fixture)
{
    struct cp_journal *journal = open_journal(fixture, BOOT_A, NULL);
    struct cp_journal_entry entry = make_entry(2);
    struct rlimit limit;
    struct stat before;
    struct stat after;

    place(journal, 1, 1);
    assert_int_equal(stat(fixture->path, &before), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = (rlim_t)before.st_size + 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(cp_journal_place(journal, 2, &entry, 1), -ENOSPC);
    assert_int_equal(stat(fixture->path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(count_due(journal), 1);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(cp_journal_place(journal, 2, &entry, 1), 0);
    cp_journal_entry_done(&entry);
    cp_journal_close(journal);
}

static void test_no_room(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal;
    char *warnings = NULL;

    run_into_limit(fixture);
    journal = open_journal(fixture, BOOT_A, &warnings);
    assert_null(warnings);
    assert_int_equal(count_due(journal), 2);
    cp_journal_close(journal);
}

/* A real full file system, where one can be mounted. */
static void test_full_tmpfs(void **state)
{
    const struct fixture *fixture = *state;
    struct cp_journal *journal;
    struct fixture inside = {0};
    char filler[96];
    unsigned n = 0;
    int r = 0;

    if (mount("tmpfs", fixture->directory, "tmpfs", 0, "size=64k") < 0) {
        print_message("no tmpfs can be mounted here: %s\n", strerror(errno));
        skip();
    }
    memcpy(&inside, fixture, sizeof(inside));
    journal = open_journal(&inside, BOOT_A, NULL);
    place(journal, 1, 0);
    fixture_path(&inside, "filler", filler);
    while (r == 0) {
        static const char page[4096];
        int fd = open(filler, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        r = write(fd, page, sizeof(page)) == sizeof(page) ? 0 : -1;
        close(fd);
    }
    for (r = 0; r == 0 && n < 1000;) {
        struct cp_journal_entry entry = make_entry(n + 1);

        r = cp_journal_place(journal, 1, &entry, 1);
        n += r == 0;
        cp_journal_entry_done(&entry);
    }
    assert_int_equal(r, -ENOSPC);
    assert_int_equal(count_due(journal), n + 1);
    cp_journal_close(journal);
    journal = open_journal(&inside, BOOT_A, NULL);
    assert_int_equal(count_due(journal), n + 1);
    cp_journal_close(journal);
    assert_int_equal(umount(fixture->directory), 0);
}

static void test_read_only_directory(void **state)
{
    const struct fixture *fixture = *state;

    if (mount("tmpfs", fixture->directory, "tmpfs", MS_RDONLY, "size=64k") < 0) {
        print_message("no tmpfs can be mounted here: %s\n", strerror(errno));
        skip();
    }
    refuse(fixture, EROFS, "no mask is changed without a journal");
    assert_int_equal(umount(fixture->directory), 0);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_due_survives_reopening),
        WITH_FIXTURE(test_a_set_is_one_record),
        WITH_FIXTURE(test_a_second_place_replaces_the_first),
        WITH_FIXTURE(test_former_target),
        WITH_FIXTURE(test_arguments_are_checked),
        WITH_FIXTURE(test_lock),
        WITH_FIXTURE(test_compaction_keeps_the_file_small),
        WITH_FIXTURE(test_many_due),
        WITH_FIXTURE(test_wide_masks),
        WITH_FIXTURE(test_ids_after_sigkill),
        WITH_FIXTURE(test_another_boot_is_void_but_counts_on),
        WITH_FIXTURE(test_newer_version_is_left_alone),
        WITH_FIXTURE(test_empty_file),
        WITH_FIXTURE(test_what_is_no_regular_file_is_refused),
        WITH_FIXTURE(test_files_of_others_are_refused),
        WITH_FIXTURE(test_a_huge_file_is_refused),
        cmocka_unit_test(test_a_missing_directory),
        WITH_FIXTURE(test_no_room),
        WITH_FIXTURE(test_full_tmpfs),
        WITH_FIXTURE(test_read_only_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
