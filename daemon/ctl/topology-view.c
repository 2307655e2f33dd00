/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A machine as JSON and as a table. Decides nothing and must not read the system. */
#include "ctl/topology-view.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define WIDTH_MIN 40u
#define LABEL_WIDTH 12u
#define CPUS_WIDTH_MIN 16u
#define CPUS_INDENT 6u

/* JSON */

/* A string of this program or of a user: what is not UTF-8 is replaced, since jansson refuses it.
 */
static json_t *json_text(const char *text)
{
    json_t *json = json_string(text);
    _cleanup_free_ char *copy = NULL;

    if (json)
        return json;
    copy = strdup(text);
    if (!copy)
        return NULL;
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    return json_string(copy);
}

static json_t *json_index(uint32_t index)
{
    return index == CP_DOMAIN_NONE ? json_null() : json_integer(index);
}

static json_t *json_cpu_list(const struct cp_cpumask *mask)
{
    _cleanup_free_ char *list = cp_cpumask_to_list(mask);

    return list ? json_string(list) : NULL;
}

static json_t *json_cpu_array(const struct cp_cpumask *mask)
{
    json_t *array = json_array();
    struct cp_cpu cpu;

    cp_cpumask_foreach (cpu, mask)
        if (json_array_append_new(array, json_integer(cpu.os)) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static const struct cp_domain *real_llc_of(const struct cp_machine *machine,
                                           const struct cp_machine_cpu *cpu)
{
    uint32_t index = cpu->domain[CP_LEVEL_LLC];

    if (index == CP_DOMAIN_NONE || !machine->domains[CP_LEVEL_LLC][index].real)
        return NULL;
    return &machine->domains[CP_LEVEL_LLC][index];
}

static json_t *json_cpu(const struct cp_machine *machine, const struct cp_machine_cpu *cpu)
{
    const struct cp_domain *llc = real_llc_of(machine, cpu);

    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:i, s:b, s:b}", "cpu", (int)cpu->cpu.os, "core",
                     json_index(cpu->domain[CP_LEVEL_CORE]), "llc",
                     json_index(llc ? llc->index : CP_DOMAIN_NONE), "node",
                     json_index(cpu->domain[CP_LEVEL_NODE]), "package",
                     json_index(cpu->domain[CP_LEVEL_PACKAGE]), "kind", cpu->kind, "isolated",
                     (int)cp_cpumask_test(&machine->isolated, cpu->cpu), "disallowed",
                     (int)cp_cpumask_test(&machine->disallowed, cpu->cpu));
}

static json_t *json_cpus(const struct cp_machine *machine)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < machine->n_cpus; i++)
        if (json_array_append_new(array, json_cpu(machine, &machine->cpus[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *json_domain(const struct cp_domain *domain)
{
    json_t *object = json_pack("{s:i}", "index", (int)domain->index);
    char cache[16];
    int r = 0;

    if (!object)
        return NULL;
    if (domain->level == CP_LEVEL_LLC) {
        (void)snprintf(cache, sizeof(cache), "L%u", domain->cache_level);
        r |= json_object_set_new(object, "level", json_string(cache));
        r |= json_object_set_new(object, "bytes",
                                 domain->cache_bytes ? json_integer((json_int_t)domain->cache_bytes)
                                                     : json_null());
    } else if (domain->level != CP_LEVEL_CORE) {
        r |= json_object_set_new(object, "os_index", json_integer(domain->os_index));
    }
    r |= json_object_set_new(object, "cpus", json_cpu_list(&domain->cpus));
    if (r < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *json_domains(const struct cp_machine *machine, enum cp_level level)
{
    json_t *array = json_array();
    int r = array ? 0 : -1;

    for (uint32_t i = 0; r == 0 && i < machine->n_domains[level]; i++)
        if (machine->domains[level][i].real)
            r = json_array_append_new(array, json_domain(&machine->domains[level][i]));
    for (uint32_t i = 0; r == 0 && level == CP_LEVEL_NODE && i < machine->n_memory_nodes; i++)
        r = json_array_append_new(array, json_pack("{s:n, s:i, s:s}", "index", "os_index",
                                                   (int)machine->memory_nodes[i], "cpus", ""));
    if (r < 0) {
        json_decref(array);
        return NULL;
    }
    return array;
}

json_t *cp_topology_to_json(const struct cp_machine *machine)
{
    return json_pack(
        "{s:i, s:I, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "generation",
        (json_int_t)machine->generation, "source", json_text(machine->source), "live",
        (int)machine->live, "model", json_text(machine->model), "cpus", json_cpus(machine),
        "offline", json_cpu_array(&machine->offline), "isolated",
        json_cpu_array(&machine->isolated), "cores", json_domains(machine, CP_LEVEL_CORE), "llcs",
        json_domains(machine, CP_LEVEL_LLC), "nodes", json_domains(machine, CP_LEVEL_NODE),
        "packages", json_domains(machine, CP_LEVEL_PACKAGE));
}

/* Text */

/* Prints text from column indent on, broken after commas and at blanks so that lines fit. */
static void print_wrapped(FILE *stream, const char *text, unsigned indent, unsigned width)
{
    size_t room = width > indent ? width - indent : 1;

    while (width && strlen(text) > room) {
        size_t cut = room;

        while (cut > 0 && text[cut] != ' ' && text[cut - 1] != ',')
            cut--;
        if (cut == 0)
            cut = room;
        fprintf(stream, "%.*s\n%*s", (int)cut, text, (int)indent, "");
        text += cut;
        while (*text == ' ')
            text++;
    }
    fprintf(stream, "%s\n", text);
}

static void print_line(FILE *stream, unsigned width, const char *label, const char *text)
{
    fprintf(stream, "%-*s", (int)LABEL_WIDTH, label);
    print_wrapped(stream, text, LABEL_WIDTH, width);
}

static int print_cpu_line(FILE *stream, unsigned width, const char *label,
                          const struct cp_cpumask *mask)
{
    _cleanup_free_ char *list = NULL;

    if (cp_cpumask_is_empty(mask))
        return 0;
    list = cp_cpumask_to_list(mask);
    if (!list)
        return -ENOMEM;
    print_line(stream, width, label, list);
    return 0;
}

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

static uint32_t count_real(const struct cp_machine *machine, enum cp_level level)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < machine->n_domains[level]; i++)
        n += machine->domains[level][i].real;
    return n;
}

static void print_counts(const struct cp_machine *machine, FILE *stream, unsigned width)
{
    uint32_t packages = machine->n_domains[CP_LEVEL_PACKAGE];
    uint32_t nodes = machine->n_domains[CP_LEVEL_NODE];
    uint32_t llcs = count_real(machine, CP_LEVEL_LLC);
    uint32_t cores = machine->n_domains[CP_LEVEL_CORE];
    char memory[48] = "";
    char text[256];

    if (machine->n_memory_nodes)
        (void)snprintf(memory, sizeof(memory), " (and %" PRIu32 " without CPUs)",
                       machine->n_memory_nodes);
    (void)snprintf(text, sizeof(text),
                   "%" PRIu32 " package%s, %" PRIu32 " node%s%s, %" PRIu32 " LLC%s, %" PRIu32
                   " core%s, %" PRIu32 " CPU%s online",
                   packages, plural(packages), nodes, plural(nodes), memory, llcs, plural(llcs),
                   cores, plural(cores), machine->n_cpus, plural(machine->n_cpus));
    print_line(stream, width, "Machine", text);
}

/* One line for each kind of CPU, where the machine has several. */
static int print_kinds(const struct cp_machine *machine, FILE *stream, unsigned width)
{
    int highest = -1;

    for (uint32_t i = 0; i < machine->n_cpus; i++)
        highest = CP_MAX(highest, machine->cpus[i].kind);
    for (int kind = 0; highest > 0 && kind <= highest; kind++) {
        _cleanup_cpumask_ struct cp_cpumask mask = {0};
        char label[32];
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < machine->n_cpus; i++)
            if (machine->cpus[i].kind == kind)
                r = cp_cpumask_set(&mask, machine->cpus[i].cpu);
        (void)snprintf(label, sizeof(label), "Kind %d", kind);
        if (r == 0)
            r = print_cpu_line(stream, width, label, &mask);
        if (r < 0)
            return r;
    }
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    unsigned left = *(const unsigned *)a;
    unsigned right = *(const unsigned *)b;

    return (left > right) - (left < right);
}

/* "0-3,8" of rising numbers, "-" of none. NULL: no memory. */
static char *format_numbers(const unsigned *numbers, uint32_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    if (n == 0)
        fputc('-', stream);
    for (uint32_t first = 0, next; first < n; first = next) {
        for (next = first + 1; next < n && numbers[next] == numbers[next - 1] + 1;)
            next++;
        fprintf(stream, "%s%u", first ? "," : "", numbers[first]);
        if (next > first + 1)
            fprintf(stream, "-%u", numbers[next - 1]);
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* The kernel's numbers of the domains of a level that hold CPUs of the mask, as a list string. Not
 * by way of a struct cp_cpumask: the firmware may give a package any number. */
static char *list_domains(const struct cp_machine *machine, enum cp_level level,
                          const struct cp_cpumask *cpus)
{
    _cleanup_free_ unsigned *numbers = NULL;
    uint32_t n = 0;

    numbers = calloc(machine->n_domains[level] ? machine->n_domains[level] : 1, sizeof(*numbers));
    if (!numbers)
        return NULL;
    for (uint32_t i = 0; i < machine->n_domains[level]; i++)
        if (cp_cpumask_intersects(&machine->domains[level][i].cpus, cpus))
            numbers[n++] = machine->domains[level][i].os_index;
    qsort(numbers, n, sizeof(*numbers), compare_numbers);
    return format_numbers(numbers, n);
}

static uint32_t count_cores(const struct cp_machine *machine, const struct cp_cpumask *cpus)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < machine->n_domains[CP_LEVEL_CORE]; i++)
        n += cp_cpumask_intersects(&machine->domains[CP_LEVEL_CORE][i].cpus, cpus);
    return n;
}

static void format_cache(const struct cp_domain *llc, char *buffer, size_t size)
{
    uint64_t kib = llc->cache_bytes / 1024;

    if (!llc->real)
        (void)snprintf(buffer, size, "no cache");
    else if (kib == 0)
        (void)snprintf(buffer, size, "L%u", llc->cache_level);
    else if (kib % 1024 == 0)
        (void)snprintf(buffer, size, "L%u %" PRIu64 " MiB", llc->cache_level, kib / 1024);
    else
        (void)snprintf(buffer, size, "L%u %" PRIu64 " KiB", llc->cache_level, kib);
}

struct llc_row {
    char cache[40];
    char *nodes;    /* owned */
    char *packages; /* owned */
    char *cpus;     /* owned */
    uint32_t n_cores;
};

static void llc_rows_free(struct llc_row *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(rows[i].nodes);
        free(rows[i].packages);
        free(rows[i].cpus);
    }
    free(rows);
}

static int llc_row_fill(const struct cp_machine *machine, const struct cp_domain *llc,
                        struct llc_row *row)
{
    format_cache(llc, row->cache, sizeof(row->cache));
    row->nodes = list_domains(machine, CP_LEVEL_NODE, &llc->cpus);
    row->packages = list_domains(machine, CP_LEVEL_PACKAGE, &llc->cpus);
    row->cpus = cp_cpumask_to_list(&llc->cpus);
    row->n_cores = count_cores(machine, &llc->cpus);
    return row->nodes && row->packages && row->cpus ? 0 : -ENOMEM;
}

struct llc_widths {
    size_t cache;
    size_t packages;
    size_t nodes;
};

/* The part of a line before the CPUs, then the CPUs: on lines of their own if the terminal is
 * narrow. */
static int print_llc_line(FILE *stream, unsigned width, const struct llc_widths *widths,
                          const char *index, const char *cores, const struct llc_row *row)
{
    int column =
        fprintf(stream, "%4s  %-*s  %-*s  %-*s  %5s", index, (int)widths->cache, row->cache,
                (int)widths->packages, row->packages, (int)widths->nodes, row->nodes, cores);

    if (column < 0)
        return -EIO;
    column += 2;
    if (width && (unsigned)column + CPUS_WIDTH_MIN > width) {
        fprintf(stream, "\n%*s", (int)CPUS_INDENT, "");
        column = (int)CPUS_INDENT;
    } else {
        fprintf(stream, "  ");
    }
    print_wrapped(stream, row->cpus, (unsigned)column, width);
    return 0;
}

static int print_llc_rows(FILE *stream, unsigned width, const struct llc_widths *widths,
                          const struct llc_row *rows, uint32_t n)
{
    const struct llc_row head = {.cache = "CACHE",
                                 .packages = (char *)"PACKAGE",
                                 .nodes = (char *)"NODE",
                                 .cpus = (char *)"CPUS"};
    int r;

    fputc('\n', stream);
    r = print_llc_line(stream, width, widths, "LLC", "CORES", &head);
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        char index[16];
        char cores[16];

        (void)snprintf(index, sizeof(index), "%" PRIu32, i);
        (void)snprintf(cores, sizeof(cores), "%" PRIu32, rows[i].n_cores);
        r = print_llc_line(stream, width, widths, index, cores, &rows[i]);
    }
    return r;
}

/* The table of LLC-level domains: what coplace places within. */
static int print_llcs(const struct cp_machine *machine, FILE *stream, unsigned width)
{
    struct llc_widths widths = {strlen("CACHE"), strlen("PACKAGE"), strlen("NODE")};
    uint32_t n = machine->n_domains[CP_LEVEL_LLC];
    struct llc_row *rows = calloc(n ? n : 1, sizeof(*rows));
    int r = 0;

    if (!rows)
        return -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        r = llc_row_fill(machine, &machine->domains[CP_LEVEL_LLC][i], &rows[i]);
        if (r < 0)
            break;
        widths.cache = CP_MAX(widths.cache, strlen(rows[i].cache));
        /* A very long list may push its row out of line rather than waste every row. */
        widths.packages = CP_MAX(widths.packages, CP_MIN(strlen(rows[i].packages), 9));
        widths.nodes = CP_MAX(widths.nodes, CP_MIN(strlen(rows[i].nodes), 9));
    }
    if (r == 0)
        r = print_llc_rows(stream, width, &widths, rows, n);
    llc_rows_free(rows, n);
    return r;
}

/* Online CPUs that the machine's files list and do not describe. */
static int print_left_out(const struct cp_machine *machine, FILE *stream, unsigned width)
{
    _cleanup_cpumask_ struct cp_cpumask left_out = {0};
    int r = cp_cpumask_andnot(&left_out, &machine->listed, &machine->online);

    return r < 0 ? r : print_cpu_line(stream, width, "Left out", &left_out);
}

int cp_topology_print(const struct cp_machine *machine, FILE *stream, unsigned width)
{
    int r;

    if (width && width < WIDTH_MIN)
        width = WIDTH_MIN;
    print_line(stream, width, "Source", machine->source);
    print_line(stream, width, "Model", machine->model);
    print_counts(machine, stream, width);
    r = print_cpu_line(stream, width, "Online", &machine->online);
    if (r == 0)
        r = print_cpu_line(stream, width, "Offline", &machine->offline);
    if (r == 0)
        r = print_cpu_line(stream, width, "Isolated", &machine->isolated);
    if (r == 0)
        r = print_cpu_line(stream, width, "Disallowed", &machine->disallowed);
    if (r == 0)
        r = print_left_out(machine, stream, width);
    if (r == 0)
        r = print_kinds(machine, stream, width);
    if (r == 0)
        r = print_llcs(machine, stream, width);
    if (r == 0 && ferror(stream))
        r = -EIO;
    return r;
}
