/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How busy each CPU is, from the lines "cpuN …" of proc/stat (proc(5)). Decides nothing. */
#include "machine/load.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One line a CPU and one long line of interrupt counts: below 2 MB with 8192 CPUs. */
#define STAT_SIZE_MAX (8u << 20)

/* user, nice, system, idle, iowait, irq, softirq, steal. The last two, guest and guest_nice, are
 * part of user and nice. */
#define N_FIELDS 8
#define FIELD_IDLE 3
#define FIELD_IOWAIT 4

void cp_load_done(struct cp_load *load)
{
    free(load->busy);
    free(load->total);
    *load = (struct cp_load){0};
}

/* Reads an unsigned number behind blanks; moves *text behind it. */
static bool parse_number(const char **text, uint64_t *ret)
{
    char *end;

    *text += strspn(*text, " ");
    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *ret = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0;
}

/* Parses a line behind its "cpu". Old kernels have fewer fields; idle is needed. */
static int parse_line(const char *line, struct cp_cpu *ret_cpu, uint64_t *ret_busy,
                      uint64_t *ret_total)
{
    uint64_t number;
    uint64_t total = 0;
    uint64_t idle = 0;
    int n = 0;

    if (!parse_number(&line, &number) || number >= CP_CPU_LIMIT || *line != ' ')
        return -EBADMSG;
    for (uint64_t value; n < N_FIELDS && parse_number(&line, &value); n++) {
        total += value;
        if (n == FIELD_IDLE || n == FIELD_IOWAIT)
            idle += value;
    }
    if (n <= FIELD_IDLE || (*line != ' ' && *line != '\n' && *line != '\0'))
        return -EBADMSG;
    *ret_cpu = (struct cp_cpu){(unsigned)number};
    *ret_busy = total - idle;
    *ret_total = total;
    return 0;
}

static int parse_stat(const char *text, const struct cp_machine *machine, struct cp_load *load)
{
    bool any = false;

    while (strncmp(text, "cpu", 3) == 0) {
        const char *next = strchrnul(text, '\n');

        /* "cpu  …" without a number is the sum of all. */
        if (text[3] != ' ') {
            const struct cp_machine_cpu *found;
            struct cp_cpu cpu;
            uint64_t busy;
            uint64_t total;
            int r = parse_line(text + 3, &cpu, &busy, &total);

            if (r < 0)
                return r;
            found = cp_machine_find_cpu(machine, cpu);
            if (found) {
                load->busy[found - machine->cpus] = busy;
                load->total[found - machine->cpus] = total;
            }
            any = true;
        }
        text = *next ? next + 1 : next;
    }
    return any ? 0 : -EBADMSG;
}

static bool load_allocate(struct cp_load *load, uint32_t n_cpus)
{
    load->n_cpus = n_cpus;
    load->busy = calloc(n_cpus, sizeof(*load->busy));
    load->total = calloc(n_cpus, sizeof(*load->total));
    return load->busy && load->total;
}

int cp_load_read(const struct cp_root *root, const struct cp_machine *machine,
                 struct cp_load *ret_load)
{
    _cleanup_(cp_load_done) struct cp_load load = {0};
    _cleanup_free_ char *text = NULL;
    int r = cp_root_read_file(root, "proc/stat", STAT_SIZE_MAX, &text, NULL);

    if (r < 0)
        return r;
    if (!load_allocate(&load, machine->n_cpus))
        return -ENOMEM;
    r = parse_stat(text, machine, &load);
    if (r < 0)
        return r;
    *ret_load = load;
    load = (struct cp_load){0};
    return 0;
}

void cp_load_between(const struct cp_load *earlier, const struct cp_load *later, uint16_t *permille)
{
    for (uint32_t i = 0; i < later->n_cpus; i++) {
        uint64_t busy = 0;

        permille[i] = 0;
        /* Counters of idle and iowait may go backwards (proc(5)). */
        if (i >= earlier->n_cpus || later->total[i] <= earlier->total[i])
            continue;
        if (later->busy[i] > earlier->busy[i])
            busy =
                (later->busy[i] - earlier->busy[i]) * 1000 / (later->total[i] - earlier->total[i]);
        permille[i] = (uint16_t)CP_MIN(busy, 1000);
    }
}
