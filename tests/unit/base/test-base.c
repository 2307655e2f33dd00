/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Root, errors and level names. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/level.h"
#include "base/root.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void errors_say_where(void **state)
{
    static const struct {
        const char *file;
        unsigned line;
        unsigned column;
        const char *expected;
    } table[] = {
        {"a.yaml", 3, 7, "a.yaml:3:7: bad 5"},
        {"a.yaml", 3, 0, "a.yaml:3: bad 5"},
        {"a.yaml", 0, 7, "a.yaml: bad 5"},
        {"", 3, 7, "bad 5"},
    };
    struct cp_error error;
    char buffer[128];

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        memset(&error, 0xff, sizeof(error));
        assert_int_equal(cp_error_set_at(&error, EINVAL, table[i].file, table[i].line,
                                         table[i].column, "bad %d", 5),
                         -EINVAL);
        assert_int_equal(error.code, EINVAL);
        cp_error_format(&error, buffer, sizeof(buffer));
        assert_string_equal(buffer, table[i].expected);
    }
    /* Without a place nothing of the former one is left. */
    assert_int_equal(cp_error_set(&error, ENOENT, "gone"), -ENOENT);
    assert_string_equal(error.file, "");
    assert_int_equal(error.line, 0);
    assert_int_equal(cp_error_set(NULL, EPERM, "nobody reads this"), -EPERM);
    assert_int_equal(cp_error_set_at(NULL, EPERM, "f", 1, 1, "nor this"), -EPERM);
}

static void errors_can_wrap_and_are_cut(void **state)
{
    struct cp_error error;
    char small[8];
    char longer[2000];

    (void)state;
    (void)cp_error_set_at(&error, EINVAL, "f.yaml", 1, 2, "inner");
    (void)cp_error_set_at(&error, EIO, error.file, error.line, error.column, "outer: %s",
                          error.message);
    assert_string_equal(error.message, "outer: inner");
    assert_string_equal(error.file, "f.yaml");
    assert_int_equal(error.line, 1);
    (void)cp_error_set(&error, EIO, "again: %s", error.message);
    assert_string_equal(error.message, "again: outer: inner");
    cp_error_format(&error, small, sizeof(small));
    assert_string_equal(small, "again: ");
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    (void)cp_error_set_at(&error, EIO, longer, 1, 1, "%s", longer);
    assert_int_equal(strlen(error.message), sizeof(error.message) - 1);
    assert_int_equal(strlen(error.file), sizeof(error.file) - 1);
    error = (struct cp_error){.code = ENOENT};
    cp_error_format(&error, longer, sizeof(longer));
    assert_string_equal(longer, strerror(ENOENT));
}

static void levels_go_round(void **state)
{
    static const char *const foreign[] = {"", "CPU", "cpu ", "l3", "numa"};

    (void)state;
    for (int i = 0; i < CP_LEVEL_MAX; i++)
        assert_int_equal(cp_level_from_string(cp_level_to_string((enum cp_level)i)), i);
    for (size_t i = 0; i < CP_ELEMENTS(foreign); i++)
        assert_int_equal(cp_level_from_string(foreign[i]), CP_LEVEL_INVALID);
    assert_null(cp_level_to_string(CP_LEVEL_MAX));
    assert_null(cp_level_to_string(CP_LEVEL_INVALID));
}

static void write_file(const struct cp_root *root, const char *name, size_t size)
{
    int fd = openat(root->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    for (size_t i = 0; i < size; i++) {
        char c = (char)('a' + i % 26);

        assert_int_equal(write(fd, &c, 1), 1);
    }
    close(fd);
}

static void files_below_a_root(void **state)
{
    static const size_t sizes[] = {0, 1, 4094, 4095, 4096, 4097, 8191, 8192, 10000};
    char directory[] = "/tmp/coplace-test-base-XXXXXX";
    struct cp_root root = {.fd = -1};
    char *text = (char *)"untouched";
    size_t size = 77;

    (void)state;
    cp_root_done(&root);
    assert_non_null(mkdtemp(directory));
    assert_int_equal(cp_root_open(&root, directory), 0);
    assert_string_equal(root.path, directory);
    assert_int_equal(cp_root_read_file(&root, "absent", 10, &text, &size), -ENOENT);
    assert_int_equal(cp_root_read_file(&root, ".", 10, &text, &size), -EISDIR);
    for (size_t i = 0; i < CP_ELEMENTS(sizes); i++) {
        write_file(&root, "file", sizes[i]);
        if (sizes[i] > 0) {
            assert_int_equal(cp_root_read_file(&root, "file", sizes[i] - 1, &text, &size), -EFBIG);
            assert_string_equal(text, "untouched");
            assert_int_equal(size, 77);
        }
        for (size_t limit = sizes[i]; limit <= sizes[i] + 2; limit++) {
            char *content = NULL;
            size_t length = 0;

            assert_int_equal(cp_root_read_file(&root, "file", limit, &content, &length), 0);
            assert_int_equal(length, sizes[i]);
            assert_int_equal(strlen(content), sizes[i]);
            assert_true(sizes[i] == 0 ||
                        content[sizes[i] - 1] == (char)('a' + (sizes[i] - 1) % 26));
            free(content);
        }
    }
    assert_int_equal(unlinkat(root.fd, "file", 0), 0);
    cp_root_done(&root);
    assert_int_equal(root.fd, -1);
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(cp_root_open(&root, directory), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(errors_can_wrap_and_are_cut),
        cmocka_unit_test(levels_go_round),
        cmocka_unit_test(files_below_a_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
