/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory by node: texts as the kernel writes them, hostile ones, and long files in pieces. */
#include "base/cleanup.h"
#include "registry/numa-maps.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "recorded-root.h"

static void texts(void **state)
{
    static const struct {
        const char *text;
        uint64_t node0, node1, node1023;
    } table[] = {
        {"", 0, 0, 0},
        {"55d0 default file=/bin/cat mapped=10 N0=10 kernelpagesize_kB=4\n", 40, 0, 0},
        {"55d0 bind:0-1 heap anon=3 dirty=3 active=0 N0=1 N1=2 kernelpagesize_kB=4\n", 4, 8, 0},
        {"2aaa prefer:1 file=/dev/hugepages/x huge dirty=2 N1=2 kernelpagesize_kB=2048\n", 0, 4096,
         0},
        {"55d0 default N1023=5\n55d1 default N1023=1 kernelpagesize_kB=64\n", 0, 0, 84},
        {"55d0 default file=/a\\040N0=9 N1=1 kernelpagesize_kB=4\n", 0, 4, 0},
        /* A line that was cut does not count. */
        {"55d0 default N0=1 kernelpagesize_kB=4\n55d1 default N0=10", 4, 0, 0},
        {"55d0 default N0= N=5 Nx=5 N-1=5 N1024=5 N0=5x N1=99999999999999999999 N0=-5\n", 0, 0, 0},
        {"\n\n\nN0=5\n", 0, 0, 0},
        {"x N0=5\n", 20, 0, 0},
        {"x N0=5 kernelpagesize_kB=99999999999\n", 20, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        uint64_t kib[CP_NUMA_NODE_LIMIT] = {0};

        cp_numa_maps_add(table[i].text, kib);
        if (kib[0] != table[i].node0 || kib[1] != table[i].node1)
            print_error("row %zu\n", i);
        assert_int_equal(kib[0], table[i].node0);
        assert_int_equal(kib[1], table[i].node1);
        assert_int_equal(kib[1023], table[i].node1023);
    }
}

/* Lines of many lengths, so that chunks cut them everywhere. */
static void long_files(void **state)
{
    struct recorded_root recorded;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    uint64_t kib[CP_NUMA_NODE_LIMIT] = {[5] = 77};
    uint64_t expected = 0;

    (void)state;
    recorded_root_make(&recorded);
    for (unsigned i = 0; i < 30000; i++) {
        fprintf(stream, "%x default file=/%.*s mapped=%u N%u=%u kernelpagesize_kB=4\n", i,
                (int)(i % 90),
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaa",
                i, i % 2, i % 1000);
        expected += i % 2 == 0 ? i % 1000 * 4 : 0;
    }
    assert_int_equal(fclose(stream), 0);
    assert_true(size > 1000000 && size < 4000000);
    recorded_root_write(&recorded, "proc/7/numa_maps", text);
    assert_int_equal(cp_numa_maps_read(&recorded.root, 7, kib), 0);
    assert_int_equal(kib[0], expected);
    assert_true(kib[1] > 0);
    assert_int_equal(kib[5], 0);
    assert_int_equal(cp_numa_maps_read(&recorded.root, 8, kib), -ENOENT);
    memset(text, 'x', size);
    recorded_root_write(&recorded, "proc/7/numa_maps", text);
    assert_int_equal(cp_numa_maps_read(&recorded.root, 7, kib), -EBADMSG);
    free(text);
    recorded_root_remove(&recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(long_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
