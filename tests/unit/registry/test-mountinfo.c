/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of mountinfo, ours and hostile ones. */
#include "base/cleanup.h"
#include "registry/mountinfo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void lines(void **state)
{
    static const struct {
        const char *text;
        int result;
        const char *root, *mount_point, *fs_type, *options;
    } table[] = {
        {"34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n", 0, "/",
         "/sys/fs/cgroup/cpuset", "cgroup", "rw,cpuset"},
        {"1 2 8:1 /docker /a rw shared:1 master:2 propagate_from:3 - ext4 /dev/sda1 rw", 0,
         "/docker", "/a", "ext4", "rw"},
        {"1 2 0:1 / /with\\040blank\\011tab\\012line\\134slash\\043 rw - tmpfs tmpfs rw\n", 0, "/",
         "/with blank\ttab\nline\\slash#", "tmpfs", "rw"},
        {"1 2 0:1 /\\057\\303\\244 / rw - tmpfs t rw\n", 0, "//\xc3\xa4", "/", "tmpfs", "rw"},
        /* No escapes: too short, no octal, above a byte. */
        {"1 2 0:1 /\\04 /\\09a\\999\\477\\ rw - tmpfs t rw\n", 0, "/\\04", "/\\09a\\999\\477\\",
         "tmpfs", "rw"},
        /* Options keep their escapes, so that commas in them do not separate. */
        {"1 2 0:1 / /a rw - cgroup cgroup rw,release_agent=/x\\054cpuset,name=y\n", 0, "/", "/a",
         "cgroup", "rw,release_agent=/x\\054cpuset,name=y"},
        /* Empty source, blank before the dash, blanks in foreign options. */
        {"1 2 0:1 / /a rw  - rootfs  rw\n", 0, "/", "/a", "rootfs", "rw"},
        {"1 2 0:1 / /a rw - cifs //s/x y rw,user=a b\n", 0, "/", "/a", "cifs", "y rw,user=a b"},
        {"", CP_MOUNTINFO_END, NULL, NULL, NULL, NULL},
        {"\n1 2\n", -EBADMSG, NULL, NULL, NULL, NULL},
        {"1 2 0:1 / /a rw\n", -EBADMSG, NULL, NULL, NULL, NULL},
        {"1 2 0:1 / /a rw - tmpfs\n", -EBADMSG, NULL, NULL, NULL, NULL},
        {"1 2 0:1 / /a rw - tmpfs t\n", -EBADMSG, NULL, NULL, NULL, NULL},
        {"1 2 0:1 / /a rw shared:1 tmpfs t rw\n", -EBADMSG, NULL, NULL, NULL, NULL},
        {"1 2 0:1 / a rw - tmpfs t rw\n", -EBADMSG, NULL, NULL, NULL, NULL},
        {"1 2  0:1 /  /a rw - tmpfs t rw\n", 0, "/", "/a", "tmpfs", "rw"},
        {"1 2  / /a rw - tmpfs t rw\n", -EBADMSG, NULL, NULL, NULL, NULL},
        {"no mountinfo at all", -EBADMSG, NULL, NULL, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        _cleanup_free_ char *copy = strdup(table[i].text);
        struct cp_mountinfo_entry entry = {0};
        char *rest = copy;
        int r = cp_mountinfo_next(&rest, &entry);

        if (r != table[i].result)
            print_error("row %zu gave %d\n", i, r);
        assert_int_equal(r, table[i].result);
        if (r != 0)
            continue;
        assert_string_equal(entry.root, table[i].root);
        assert_string_equal(entry.mount_point, table[i].mount_point);
        assert_string_equal(entry.fs_type, table[i].fs_type);
        assert_string_equal(entry.options, table[i].options);
        assert_int_equal(cp_mountinfo_next(&rest, &entry), CP_MOUNTINFO_END);
    }
}

/* Any bytes: an answer for each line, and an end. */
static void generated_bytes(void **state)
{
    static const char alphabet[] = "  \n\n/-\\0123457cgroup,:\x80";
    uint64_t random = 99;

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        char text[96];
        char *rest = text;
        unsigned n = 0;
        struct cp_mountinfo_entry entry;

        for (size_t i = 0; i < sizeof(text) - 1; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            text[i] = alphabet[(random >> 33) % (sizeof(alphabet) - 1)];
        }
        text[sizeof(text) - 1] = '\0';
        while (cp_mountinfo_next(&rest, &entry) != CP_MOUNTINFO_END)
            assert_true(++n < sizeof(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(generated_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
