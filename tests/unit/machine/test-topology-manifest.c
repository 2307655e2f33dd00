/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The collection of real machines in ../shared/data/topologies against the counts that its
 * MANIFEST.md gives. Skipped where the collection is absent; test-topology-root and -xml cover the
 * same kinds with machines made on the spot.
 *
 * #NUMA of the manifest counts NUMA objects of hwloc, those with memory only among them. A snapshot
 * has domains for nodes with CPUs, and only the numbers of the others, so the two are added here.
 */
#include "machine-fixture.h"

#include <ctype.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define COLLECTION "../shared/data/topologies"
#define N_CELLS 11
#define ROWS_MIN 30

extern char **environ;

struct row {
    char *cells[N_CELLS]; /* borrowed from the line, blanks cut off */
};

enum cell { CELL_FILE, CELL_PU, CELL_CORE, CELL_PACKAGE, CELL_LLC, CELL_NUMA, CELL_ODD };

static char *trim(char *text)
{
    char *end = text + strlen(text);

    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text + strspn(text, " ");
}

/* Splits "| a | b | … |" in place. false: not a row of files. */
static bool split_row(char *line, struct row *row)
{
    size_t n = 0;

    *row = (struct row){0};
    if (*line != '|')
        return false;
    for (char *cell = line + 1, *end; n < N_CELLS && (end = strchr(cell, '|')); cell = end + 1) {
        *end = '\0';
        row->cells[n++] = trim(cell);
    }
    return n > CELL_ODD && (strstr(row->cells[CELL_FILE], ".xml") != NULL ||
                            strstr(row->cells[CELL_FILE], ".tar.") != NULL);
}

/* Some trees hold 40 000 files, most of them of no use here: idle states, empty power
 * directories, devices. */
static void unpack(const char *archive, const char *tree)
{
    char *arguments[] = {(char *)"tar",
                         (char *)"--exclude=*/cpuidle",
                         (char *)"--exclude=*/power",
                         (char *)"--exclude=*/thermal_throttle",
                         (char *)"--exclude=*/hotplug",
                         (char *)"--exclude=*/memory[0-9]*",
                         (char *)"--exclude=*/hugepages*",
                         (char *)"--exclude=*/devices/pci*",
                         (char *)"--exclude=*/acpi_cppc",
                         (char *)"--exclude=*/microcode",
                         (char *)"--exclude=*/sys/class",
                         (char *)"-xf",
                         (char *)archive,
                         (char *)"-C",
                         (char *)tree,
                         NULL};
    pid_t child;
    int status;

    assert_int_equal(posix_spawnp(&child, "tar", NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("tar cannot unpack %s (xz-utils and bzip2 are needed)", archive);
}

static unsigned count_levels(const struct cp_machine *machine, unsigned cache_level)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < machine->n_domains[CP_LEVEL_LLC]; i++)
        n += machine->domains[CP_LEVEL_LLC][i].real &&
             (cache_level == 0 || machine->domains[CP_LEVEL_LLC][i].cache_level == cache_level);
    return n;
}

/* "2 (L2:1 L3:1 w2-12 PUs)": the number of LLCs, of each level, and their smallest and largest
 * width. */
static void check_llcs(const struct cp_machine *machine, const char *cell)
{
    unsigned narrowest = UINT32_MAX;
    unsigned widest = 0;
    const char *width = strstr(cell, " w");

    assert_int_equal(count_levels(machine, 0), strtoul(cell, NULL, 10));
    for (const char *level = strchr(cell, 'L'); level; level = strchr(level + 1, 'L'))
        assert_int_equal(count_levels(machine, (unsigned)(level[1] - '0')),
                         strtoul(level + 3, NULL, 10));
    if (!width)
        return;
    for (uint32_t i = 0; i < machine->n_domains[CP_LEVEL_LLC]; i++) {
        const struct cp_domain *llc = &machine->domains[CP_LEVEL_LLC][i];

        if (!llc->real)
            continue;
        narrowest = CP_MIN(narrowest, cp_cpumask_weight(&llc->cpus));
        widest = CP_MAX(widest, cp_cpumask_weight(&llc->cpus));
    }
    assert_int_equal(narrowest, strtoul(width + 2, NULL, 10));
    assert_int_equal(widest, strtoul(strchr(width, '-') + 1, NULL, 10));
}

static unsigned count_kinds(const struct cp_machine *machine)
{
    bool seen[64] = {false};
    unsigned n = 0;

    for (uint32_t i = 0; i < machine->n_cpus; i++) {
        int kind = machine->cpus[i].kind;

        if (kind >= 0 && kind < 64 && !seen[kind]) {
            seen[kind] = true;
            n++;
        }
    }
    return n;
}

/* A number before or after a phrase in the remarks; returns false if the phrase is not there. */
static bool number_after(const char *text, const char *phrase, unsigned *ret)
{
    const char *place = strstr(text, phrase);

    if (!place)
        return false;
    *ret = (unsigned)strtoul(place + strlen(phrase), NULL, 10);
    return true;
}

static bool number_before(const char *text, const char *phrase, unsigned *ret)
{
    const char *place = strstr(text, phrase);

    if (!place)
        return false;
    while (place > text && isdigit((unsigned char)place[-1]))
        place--;
    *ret = (unsigned)strtoul(place, NULL, 10);
    return true;
}

/* What the remarks add: "allowed 10 of 16", "highest PU id 15", "3 CPU kinds", "48 PUs without any
 * cache", "isolated CPUs 4-7,60-63". */
static void check_remarks(const struct cp_machine *machine, const char *odd)
{
    const char *isolated = strstr(odd, "isolated CPUs ");
    const char *allowed = strstr(odd, "; allowed ");
    unsigned n;

    if (allowed) {
        unsigned all;

        assert_int_equal(sscanf(allowed, "; allowed %u of %u", &n, &all), 2);
        assert_int_equal(machine->n_cpus - cp_cpumask_weight(&machine->disallowed), n);
        assert_int_equal(machine->n_cpus + cp_cpumask_weight(&machine->offline), all);
    }
    if (number_after(odd, "highest PU id ", &n)) {
        /* Of all that the machine has, offline ones included. */
        unsigned last = machine->cpus[machine->n_cpus - 1].cpu.os;
        struct cp_cpu cpu;

        cp_cpumask_foreach (cpu, &machine->offline)
            last = CP_MAX(last, cpu.os);
        assert_int_equal(last, n);
    }
    if (number_before(odd, " CPU kinds", &n))
        assert_int_equal(count_kinds(machine), n);
    if (number_before(odd, " PUs without any cache", &n)) {
        unsigned without = 0;

        for (uint32_t i = 0; i < machine->n_cpus; i++)
            without += !machine->domains[CP_LEVEL_LLC][machine->cpus[i].domain[CP_LEVEL_LLC]].real;
        assert_int_equal(without, n);
    }
    if (isolated) {
        _cleanup_free_ char *list = strdup(isolated + strlen("isolated CPUs "));

        list[strspn(list, "0123456789-,")] = '\0';
        expect_cpus(&machine->isolated, list);
    }
}

static void check_machine(const struct row *row, enum cp_machine_source_kind kind, const char *text)
{
    _cleanup_machine_ struct cp_machine *machine = load_machine(kind, text);

    expect_sound(machine);
    assert_false(machine->live);
    assert_int_equal(machine->n_cpus, strtoul(row->cells[CELL_PU], NULL, 10));
    assert_int_equal(machine->n_domains[CP_LEVEL_CORE], strtoul(row->cells[CELL_CORE], NULL, 10));
    assert_int_equal(machine->n_domains[CP_LEVEL_PACKAGE],
                     strtoul(row->cells[CELL_PACKAGE], NULL, 10));
    assert_int_equal(machine->n_domains[CP_LEVEL_NODE] + machine->n_memory_nodes,
                     strtoul(row->cells[CELL_NUMA], NULL, 10));
    check_llcs(machine, row->cells[CELL_LLC]);
    check_remarks(machine, row->cells[CELL_ODD]);
}

static void check_archive(const struct row *row, const char *file)
{
    char *directory = strstr(row->cells[CELL_FILE], "[root dir: ");
    char tree[64];
    char path[256];

    assert_non_null(directory);
    directory += strlen("[root dir: ");
    directory[strcspn(directory, "]")] = '\0';
    make_tree(tree);
    unpack(file, tree);
    (void)snprintf(path, sizeof(path), "%s/%s", tree, directory);
    check_machine(row, CP_MACHINE_ROOT, path);
    remove_tree(tree);
}

static void check_row(const struct row *row)
{
    char file[256];

    (void)snprintf(file, sizeof(file), COLLECTION "/%.*s", (int)strcspn(row->cells[CELL_FILE], " "),
                   row->cells[CELL_FILE]);
    print_message("%s\n", file);
    if (strncmp(row->cells[CELL_FILE], "NEGATIVE", strlen("NEGATIVE")) == 0) {
        expect_load_error(CP_MACHINE_XML, file, EPROTONOSUPPORT, file);
        expect_load_error(CP_MACHINE_XML, file, EPROTONOSUPPORT, "hwloc XML format 3.0");
    } else if (strstr(file, ".tar.")) {
        check_archive(row, file);
    } else {
        check_machine(row, CP_MACHINE_XML, file);
    }
}

static void test_every_machine_of_the_manifest(void **state)
{
    FILE *manifest = fopen(COLLECTION "/MANIFEST.md", "re");
    char *line = NULL;
    size_t size = 0;
    unsigned n_rows = 0;

    (void)state;
    assert_non_null(manifest);
    while (getline(&line, &size, manifest) >= 0) {
        struct row row;

        if (split_row(line, &row)) {
            check_row(&row);
            n_rows++;
        }
    }
    free(line);
    assert_int_equal(fclose(manifest), 0);
    /* A table that could not be parsed must not pass. */
    assert_true(n_rows >= ROWS_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_machine_of_the_manifest),
    };

    if (access(COLLECTION "/MANIFEST.md", R_OK) < 0) {
        printf("skipped: " COLLECTION " is not here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
