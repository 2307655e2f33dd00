/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* hwloc XML files: both formats that 2.9 reads, written here by hwloc itself, and everything that
 * is no such file: each must give a clear error, none may hurt this process. */
#include "machine-fixture.h"

#include <fcntl.h>
#include <hwloc.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE "package:2 [numa] l3:2 core:2 pu:2"

struct files {
    char tree[64];
    char path[128]; /* where each test puts its file */
    char *text;     /* SAMPLE in format 2 */
    int length;
};

/* Writes SAMPLE as XML to path. flags as for hwloc_topology_export_xml(). */
static void export_sample(const char *path, unsigned long flags)
{
    hwloc_topology_t topology;

    assert_int_equal(hwloc_topology_init(&topology), 0);
    assert_int_equal(hwloc_topology_set_synthetic(topology, SAMPLE), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    (void)hwloc_obj_add_info(hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0), "CPUModel",
                             "Model \033[31mX\t9 ");
    assert_int_equal(hwloc_topology_export_xml(topology, path, flags), 0);
    hwloc_topology_destroy(topology);
}

static int set_up(void **state)
{
    struct files *files = calloc(1, sizeof(*files));
    FILE *stream;

    assert_non_null(files);
    make_tree(files->tree);
    (void)snprintf(files->path, sizeof(files->path), "%s/machine.xml", files->tree);
    export_sample(files->path, 0);
    files->text = calloc(1, 1u << 20);
    assert_non_null(files->text);
    stream = fopen(files->path, "re");
    assert_non_null(stream);
    files->length = (int)fread(files->text, 1, (1u << 20) - 1, stream);
    assert_int_equal(fclose(stream), 0);
    assert_true(files->length > 1000);
    *state = files;
    return 0;
}

static int tear_down(void **state)
{
    struct files *files = *state;

    remove_tree(files->tree);
    free(files->text);
    free(files);
    return 0;
}

static void put_text(const struct files *files, const char *text, int length)
{
    FILE *stream = fopen(files->path, "we");

    assert_non_null(stream);
    assert_int_equal(fwrite(text, 1, (size_t)length, stream), length);
    assert_int_equal(fclose(stream), 0);
}

static void test_both_formats(void **state)
{
    static const unsigned long formats[] = {0, HWLOC_TOPOLOGY_EXPORT_XML_FLAG_V1};
    const struct files *files = *state;

    for (size_t i = 0; i < CP_ELEMENTS(formats); i++) {
        _cleanup_machine_ struct cp_machine *machine = NULL;

        export_sample(files->path, formats[i]);
        machine = load_machine(CP_MACHINE_XML, files->path);
        expect_sound(machine);
        assert_int_equal(machine->n_cpus, 16);
        assert_int_equal(machine->n_domains[CP_LEVEL_CORE], 8);
        assert_int_equal(machine->n_domains[CP_LEVEL_LLC], 4);
        assert_int_equal(machine->n_domains[CP_LEVEL_NODE], 2);
        assert_int_equal(machine->n_domains[CP_LEVEL_PACKAGE], 2);
        assert_false(machine->live);
        /* Not known from a file. */
        assert_true(cp_cpumask_is_empty(&machine->isolated));
        assert_null(strchr(machine->model, '\033'));
        assert_null(strchr(machine->model, '\t'));
        assert_non_null(strstr(machine->source, files->path));
    }
}

/* Changes what stands between two marks of the sample, and writes it. */
static void put_changed(const struct files *files, const char *from, const char *to)
{
    const char *place = strstr(files->text, from);
    char *changed = NULL;
    int length;

    assert_non_null(place);
    length = asprintf(&changed, "%.*s%s%s", (int)(place - files->text), files->text, to,
                      place + strlen(from));
    assert_true(length > 0);
    put_text(files, changed, length);
    free(changed);
}

static void test_offline_and_disallowed(void **state)
{
    const struct files *files = *state;
    struct cp_machine *machine;

    put_changed(files, "allowed_cpuset=\"0x0000ffff\"", "allowed_cpuset=\"0x00000ff0\"");
    machine = load_machine(CP_MACHINE_XML, files->path);
    expect_sound(machine);
    expect_cpus(&machine->online, "0-15");
    expect_cpus(&machine->disallowed, "0-3,12-15");
    expect_cpus(&machine->usable, "4-11");
    cp_machine_unref(machine);
    put_changed(files, "complete_cpuset=\"0x0000ffff\"", "complete_cpuset=\"0x0003ffff\"");
    machine = load_machine(CP_MACHINE_XML, files->path);
    expect_sound(machine);
    expect_cpus(&machine->offline, "16-17");
    cp_machine_unref(machine);
}

static void test_newer_formats_are_refused(void **state)
{
    const struct files *files = *state;

    put_changed(files, "<topology version=\"2.0\"", "<topology version=\"3.0\"");
    expect_load_error(CP_MACHINE_XML, files->path, EPROTONOSUPPORT, "format 3.0");
    expect_load_error(CP_MACHINE_XML, files->path, EPROTONOSUPPORT, files->path);
    put_changed(files, "<topology version=\"2.0\"", "<topology version=\"banana\"");
    expect_load_error(CP_MACHINE_XML, files->path, EBADMSG, "not a number");
}

static void test_what_is_no_hwloc_xml(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "empty"},
        {"\n\n", "not an hwloc XML file"},
        {"{\"cpus\": []}", "not an hwloc XML file"},
        {"<?xml version=\"1.0\"?><html></html>", "not an hwloc XML file"},
        {"<topologies/>", "not an hwloc XML file"},
        {"<!-- <topology version=\"3.0\"> --><svg/>", "not an hwloc XML file"},
        {"<!-- never closed <topology>", "not an hwloc XML file"},
        {"<?xml", "not an hwloc XML file"},
        {"<topology", "hwloc"},
        {"<topology version=\"2.0\"></topology>", "hwloc"},
        {"<topology version=\"2.0\"><object type=\"Machine\"/></topology>", "hwloc"},
    };
    const struct files *files = *state;

    for (size_t i = 0; i < CP_ELEMENTS(cases); i++) {
        put_text(files, cases[i].text, (int)strlen(cases[i].text));
        expect_load_error(CP_MACHINE_XML, files->path, EBADMSG, cases[i].words);
        expect_load_error(CP_MACHINE_XML, files->path, EBADMSG, files->path);
    }
    put_text(files, "<topo\0logy", 10);
    expect_load_error(CP_MACHINE_XML, files->path, EBADMSG, "binary");
}

static void test_what_is_no_file(void **state)
{
    const struct files *files = *state;

    expect_load_error(CP_MACHINE_XML, files->tree, EISDIR, "directory");
    assert_int_equal(unlink(files->path), 0);
    expect_load_error(CP_MACHINE_XML, files->path, ENOENT, files->path);
    assert_int_equal(mkfifo(files->path, 0600), 0);
    expect_load_error(CP_MACHINE_XML, files->path, EINVAL, "regular file");
    assert_int_equal(unlink(files->path), 0);
    put_text(files, "<topology>", 10);
    /* Sparse: takes no room. */
    assert_int_equal(truncate(files->path, 33l << 20), 0);
    expect_load_error(CP_MACHINE_XML, files->path, EFBIG, "MiB");
}

/* Loads what may be damaged: a sound machine or a clear error. Returns true for a machine. */
static bool try_load(const struct files *files)
{
    const struct cp_machine_source source = {.kind = CP_MACHINE_XML, .text = files->path};
    _cleanup_machine_ struct cp_machine *machine = NULL;
    struct cp_error error = {0};
    int r = cp_machine_load(&source, 1, &machine, &error);

    if (r == 0) {
        expect_sound(machine);
        return true;
    }
    assert_null(machine);
    assert_int_equal(error.code, -r);
    assert_true(strlen(error.message) > 10);
    return false;
}

static void test_every_truncation_is_an_error(void **state)
{
    const struct files *files = *state;

    for (int length = 1; length < files->length - 12; length += 1 + files->length / 60) {
        put_text(files, files->text, length);
        if (try_load(files))
            fail_msg("the first %d bytes of %d were taken for a machine", length, files->length);
    }
}

static unsigned next_random(unsigned *seed)
{
    /* The linear congruence of the C standard's example: the same everywhere. */
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16 & 0x7fff;
}

/* hwloc 2.9 itself crashes on some of these. */
static void test_damaged_files_do_not_hurt(void **state)
{
    const struct files *files = *state;
    _cleanup_free_ char *damaged = malloc((size_t)files->length);
    unsigned seed = 20240229;
    int n_errors = 0;

    assert_non_null(damaged);
    for (int round = 0; round < 150; round++) {
        memcpy(damaged, files->text, (size_t)files->length);
        for (unsigned n = 1 + next_random(&seed) % 6; n > 0; n--)
            damaged[next_random(&seed) % (unsigned)files->length] =
                (char)(1 + next_random(&seed) % 255);
        put_text(files, damaged, files->length);
        n_errors += !try_load(files);
    }
    assert_true(n_errors > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_formats, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_offline_and_disallowed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_newer_formats_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_no_hwloc_xml, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_no_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_truncation_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_files_do_not_hurt, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
