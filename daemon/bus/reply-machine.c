/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dictionaries about the machine and its cost table. Writes what it is given. */
#include "bus/reply.h"

#include "bus/writer.h"

#define DICTIONARY "{sv}"
#define DICTIONARIES "a{sv}"

static int32_t domain_index(uint32_t domain)
{
    return domain == CP_DOMAIN_NONE ? -1 : (int32_t)domain;
}

static void put_cpus(struct cp_bus_writer *w, const struct cp_machine *machine)
{
    cp_bus_open_entry(w, "cpus", DICTIONARIES);
    for (uint32_t i = 0; i < machine->n_cpus; i++) {
        const struct cp_machine_cpu *cpu = &machine->cpus[i];

        cp_bus_open_array(w, DICTIONARY);
        cp_bus_put_u32(w, "cpu", cpu->cpu.os);
        for (unsigned level = CP_LEVEL_CORE; level <= CP_LEVEL_PACKAGE; level++)
            cp_bus_put_i32(w, cp_level_to_string((enum cp_level)level),
                           domain_index(cpu->domain[level]));
        cp_bus_put_i32(w, "kind", cpu->kind);
        cp_bus_close(w);
    }
    cp_bus_close_entry(w);
}

static void put_domain(struct cp_bus_writer *w, const struct cp_domain *domain)
{
    cp_bus_open_array(w, DICTIONARY);
    cp_bus_put_text(w, "level", cp_level_to_string(domain->level));
    cp_bus_put_u32(w, "index", domain->index);
    cp_bus_put_u32(w, "os_index", domain->os_index);
    cp_bus_put_bool(w, "real", domain->real);
    cp_bus_put_cpus(w, "cpus", &domain->cpus);
    cp_bus_put_u32(w, "cache_level", domain->cache_level);
    cp_bus_put_u64(w, "cache_bytes", domain->cache_bytes);
    cp_bus_close(w);
}

static void put_domains(struct cp_bus_writer *w, const struct cp_machine *machine)
{
    cp_bus_open_entry(w, "domains", DICTIONARIES);
    for (unsigned level = CP_LEVEL_CORE; level <= CP_LEVEL_PACKAGE; level++)
        for (uint32_t i = 0; i < machine->n_domains[level]; i++)
            put_domain(w, &machine->domains[level][i]);
    cp_bus_close_entry(w);
}

static void put_costs(struct cp_bus_writer *w, const struct cp_machine *machine,
                      const struct cp_costs *costs)
{
    bool present[CP_LEVEL_MAX] = {false};

    cp_machine_levels_present(machine, present);
    for (unsigned level = 0; level < CP_LEVEL_MAX; level++) {
        const struct cp_cost *cost = &costs->level[level];

        cp_bus_open_array(w, DICTIONARY);
        cp_bus_put_text(w, "level", cp_level_to_string((enum cp_level)level));
        cp_bus_put_number(w, "ns", (double)cost->ns);
        cp_bus_put_number(w, "raw", (double)cost->raw_ns);
        cp_bus_put_number(w, "spread", (double)cost->spread_ns);
        cp_bus_put_u64(w, "samples", cost->n_samples);
        cp_bus_put_text(w, "source", cp_cost_source_to_string(cost->source));
        cp_bus_put_bool(w, "doubtful", cost->doubtful);
        cp_bus_put_bool(w, "present", present[level]);
        cp_bus_close(w);
    }
}

int cp_bus_write_costs(sd_bus_message *message, const struct cp_machine *machine,
                       const struct cp_costs *costs)
{
    struct cp_bus_writer w = {.message = message};

    cp_bus_open_array(&w, DICTIONARIES);
    put_costs(&w, machine, costs);
    cp_bus_close(&w);
    return w.error;
}

int cp_bus_write_topology(sd_bus_message *message, const struct cp_machine *machine,
                          const struct cp_costs *costs)
{
    struct cp_bus_writer w = {.message = message};

    cp_bus_open_array(&w, DICTIONARY);
    cp_bus_put_u64(&w, "generation", machine->generation);
    cp_bus_put_text(&w, "source", machine->source);
    cp_bus_put_bool(&w, "live", machine->live);
    cp_bus_put_text(&w, "model", machine->model);
    cp_bus_put_cpus(&w, "online", &machine->online);
    cp_bus_put_cpus(&w, "offline", &machine->offline);
    cp_bus_put_cpus(&w, "isolated", &machine->isolated);
    cp_bus_put_cpus(&w, "disallowed", &machine->disallowed);
    put_cpus(&w, machine);
    put_domains(&w, machine);
    cp_bus_open_entry(&w, "costs", DICTIONARIES);
    put_costs(&w, machine, costs);
    cp_bus_close_entry(&w);
    cp_bus_close(&w);
    return w.error;
}
