/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A machine as JSON and as a table: every key, null where there is nothing, lines that fit. */
#include "ctl/topology-view.h"
#include "unit/machine/machine-fixture.h"

static char *print_machine(const struct cp_machine *machine, unsigned width)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    assert_int_equal(cp_topology_print(machine, stream, width), 0);
    assert_int_equal(fclose(stream), 0);
    return text;
}

/* Compares a member, given as JSON text. */
static void expect_member(const json_t *object, const char *key, const char *expected)
{
    json_t *value = json_object_get(object, key);
    _cleanup_free_ char *text = NULL;

    assert_non_null(value);
    text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(text, expected);
}

static void test_json(void **state)
{
    _cleanup_machine_ struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "package:1 numa:2 l3:1(size=8388608) core:1 pu:2");
    json_t *json = cp_topology_to_json(machine);

    (void)state;
    assert_non_null(json);
    expect_member(json, "schema", "1");
    expect_member(json, "generation", "7");
    expect_member(json, "live", "false");
    expect_member(json, "model", "\"unknown\"");
    expect_member(json, "offline", "[]");
    expect_member(json, "isolated", "[]");
    expect_member(json, "cores", "[{\"index\":0,\"cpus\":\"0-1\"},{\"index\":1,\"cpus\":\"2-3\"}]");
    expect_member(json, "llcs",
                  "[{\"index\":0,\"level\":\"L3\",\"bytes\":8388608,\"cpus\":\"0-1\"},"
                  "{\"index\":1,\"level\":\"L3\",\"bytes\":8388608,\"cpus\":\"2-3\"}]");
    expect_member(json, "nodes",
                  "[{\"index\":0,\"os_index\":0,\"cpus\":\"0-1\"},"
                  "{\"index\":1,\"os_index\":1,\"cpus\":\"2-3\"}]");
    expect_member(json, "packages", "[{\"index\":0,\"os_index\":0,\"cpus\":\"0-3\"}]");
    assert_int_equal(json_array_size(json_object_get(json, "cpus")), 4);
    json_decref(json);
}

static void test_json_without_caches_or_packages(void **state)
{
    _cleanup_machine_ struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "pu:2(indexes=3,1500)");
    json_t *json = cp_topology_to_json(machine);

    (void)state;
    assert_non_null(json);
    expect_member(json, "cpus",
                  "[{\"cpu\":3,\"core\":0,\"llc\":null,\"node\":0,\"package\":null,\"kind\":-1,"
                  "\"isolated\":false,\"disallowed\":false},"
                  "{\"cpu\":1500,\"core\":1,\"llc\":null,\"node\":0,\"package\":null,\"kind\":-1,"
                  "\"isolated\":false,\"disallowed\":false}]");
    expect_member(json, "llcs", "[]");
    expect_member(json, "packages", "[]");
    json_decref(json);
}

/* Everything at once that only a recorded machine has. The name of the directory is no UTF-8. */
static void test_json_of_a_recorded_machine(void **state)
{
    static const struct recorded_cpu cpus[] = {
        {1, "1", "1-2", {{3, "Unified", "1024K", "1-2"}}},
        {2, "2", "1-2", {{3, "Unified", "1024K", "1-2"}}},
    };
    struct cp_machine *machine;
    char tree[64];
    char path[128];
    json_t *json;

    (void)state;
    make_tree(tree);
    (void)snprintf(path, sizeof(path), "%s/\xff", tree);
    assert_int_equal(mkdir(path, 0755), 0);
    for (size_t i = 0; i < CP_ELEMENTS(cpus); i++)
        put_cpu(path, &cpus[i]);
    put_lists(path, "1-2\n", "0-3\n", "0-7\n");
    put_file(path, CPU_DIRECTORY "isolated", "2-3\n");
    put_file(path, "sys/devices/system/node/online", "0,4\n");
    put_node(path, 0, "1-2");
    put_node(path, 4, "");
    machine = load_machine(CP_MACHINE_ROOT, path);
    json = cp_topology_to_json(machine);
    assert_non_null(json);
    expect_member(json, "offline", "[0,3]");
    expect_member(json, "isolated", "[2,3]");
    expect_member(json, "nodes",
                  "[{\"index\":0,\"os_index\":0,\"cpus\":\"1-2\"},"
                  "{\"index\":null,\"os_index\":4,\"cpus\":\"\"}]");
    expect_member(json_array_get(json_object_get(json, "cpus"), 1), "isolated", "true");
    json_decref(json);
    cp_machine_unref(machine);
    remove_tree(tree);
}

static void test_table(void **state)
{
    _cleanup_machine_ struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "package:2 l3:2(size=33554432) core:2 pu:2");
    _cleanup_free_ char *text = print_machine(machine, 80);

    (void)state;
    assert_non_null(strstr(text, "2 packages, 1 node, 4 LLCs, 8 cores, 16 CPUs online\n"));
    assert_non_null(strstr(text, " LLC  CACHE      PACKAGE  NODE  CORES  CPUS\n"));
    assert_non_null(strstr(text, "   3  L3 32 MiB  1        0         2  12-15\n"));
    assert_null(strstr(text, "Offline"));
    assert_null(strstr(text, "Left out"));
}

static void expect_lines_fit(const char *text, unsigned width)
{
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");

        if (length > width)
            fail_msg("%zu columns instead of %u: %.*s", length, width, (int)length, line);
        if (length > 0 && line[length - 1] == ' ')
            fail_msg("a blank at the end: %.*s", (int)length, line);
        line += length + (line[length] != '\0');
    }
}

/* CPU numbers interleaved over packages: long lists. */
static void test_lines_fit_the_terminal(void **state)
{
    static const unsigned widths[] = {40, 60, 80, 200};
    _cleanup_machine_ struct cp_machine *machine = NULL;
    char text[2048] = "package:2 [numa] l3:1 core:64 pu:2(indexes=0";
    size_t length = strlen(text);

    (void)state;
    for (unsigned i = 1; i < 256; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, ",%u",
                                   i < 128 ? 2 * i : 2 * (i - 128) + 1);
    (void)snprintf(text + length, sizeof(text) - length, ")");
    machine = load_machine(CP_MACHINE_SYNTHETIC, text);
    assert_true(cp_cpumask_test(&machine->domains[CP_LEVEL_LLC][0].cpus, (struct cp_cpu){2}));
    assert_false(cp_cpumask_test(&machine->domains[CP_LEVEL_LLC][0].cpus, (struct cp_cpu){1}));
    for (size_t i = 0; i < CP_ELEMENTS(widths); i++) {
        _cleanup_free_ char *table = print_machine(machine, widths[i]);

        expect_lines_fit(table, widths[i]);
    }
}

/* Nothing is lost by wrapping: without blanks and line ends both texts are the same. */
static void test_wrapping_loses_nothing(void **state)
{
    _cleanup_machine_ struct cp_machine *machine =
        load_machine(CP_MACHINE_SYNTHETIC, "package:2 [numa] l3:4 core:8 pu:4");
    _cleanup_free_ char *narrow = print_machine(machine, 1);
    _cleanup_free_ char *endless = print_machine(machine, 0);
    const char *a = narrow;
    const char *b = endless;

    (void)state;
    do {
        a += strspn(a, " \n");
        b += strspn(b, " \n");
        assert_int_equal(*a, *b);
    } while (*a++ && *b++);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_without_caches_or_packages),
        cmocka_unit_test(test_json_of_a_recorded_machine),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_lines_fit_the_terminal),
        cmocka_unit_test(test_wrapping_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
