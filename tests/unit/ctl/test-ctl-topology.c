/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A machine rebuilt from the daemon's answer shows the same as the machine itself. */
#include "ctl/json.h"
#include "ctl/topology-reply.h"
#include "ctl/topology-view.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

static json_t *index_or_none(uint32_t index)
{
    return json_integer(index == CP_DOMAIN_NONE ? -1 : (json_int_t)index);
}

static json_t *list_of(const struct cp_cpumask *mask)
{
    _cleanup_free_ char *list = cp_cpumask_to_list(mask);

    assert_non_null(list);
    return json_string(list);
}

static json_t *reply_cpus(const struct cp_machine *machine)
{
    json_t *cpus = json_array();

    for (uint32_t i = 0; i < machine->n_cpus; i++) {
        const struct cp_machine_cpu *cpu = &machine->cpus[i];

        json_array_append_new(
            cpus, json_pack("{s:i, s:o, s:o, s:o, s:o, s:i}", "cpu", (int)cpu->cpu.os, "core",
                            index_or_none(cpu->domain[CP_LEVEL_CORE]), "llc",
                            index_or_none(cpu->domain[CP_LEVEL_LLC]), "node",
                            index_or_none(cpu->domain[CP_LEVEL_NODE]), "package",
                            index_or_none(cpu->domain[CP_LEVEL_PACKAGE]), "kind", cpu->kind));
    }
    return cpus;
}

static json_t *reply_domains(const struct cp_machine *machine)
{
    json_t *domains = json_array();

    for (int level = CP_LEVEL_CORE; level <= CP_LEVEL_PACKAGE; level++) {
        for (uint32_t i = 0; i < machine->n_domains[level]; i++) {
            const struct cp_domain *domain = &machine->domains[level][i];

            json_array_append_new(
                domains,
                json_pack("{s:s, s:i, s:i, s:b, s:o, s:i, s:I}", "level",
                          cp_level_to_string(domain->level), "index", (int)domain->index,
                          "os_index", (int)domain->os_index, "real", (int)domain->real, "cpus",
                          list_of(&domain->cpus), "cache_level", (int)domain->cache_level,
                          "cache_bytes", (json_int_t)domain->cache_bytes));
        }
    }
    return domains;
}

/* What the daemon answers for a machine (interface.h: topology). */
static json_t *reply_for(const struct cp_machine *machine)
{
    json_t *reply =
        json_pack("{s:I, s:s, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "generation",
                  (json_int_t)machine->generation, "source", machine->source, "live",
                  (int)machine->live, "model", machine->model, "online", list_of(&machine->online),
                  "offline", list_of(&machine->offline), "isolated", list_of(&machine->isolated),
                  "disallowed", list_of(&machine->disallowed), "cpus", reply_cpus(machine),
                  "domains", reply_domains(machine));

    assert_non_null(reply);
    return reply;
}

static struct cp_machine *synthetic(const char *text)
{
    struct cp_machine_source source = {.kind = CP_MACHINE_SYNTHETIC, .text = text};
    struct cp_machine *machine = NULL;
    struct cp_error error = {0};

    if (cp_machine_load(&source, 3, &machine, &error) < 0)
        print_message("%s: %s\n", text, error.message);
    assert_non_null(machine);
    return machine;
}

static char *print_text(const struct cp_machine *machine)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    assert_int_equal(cp_topology_print(machine, stream, 0), 0);
    (void)fclose(stream);
    return text;
}

static void same_view(void **state)
{
    static const char *const machines[] = {
        "pu:1",
        "core:2 pu:1",
        "package:2 l3:4 core:2 pu:2",
        "package:2 numa:2 l3:2 core:4 pu:2",
        "numa:4 core:2 pu:1",
        "package:2 numa:4 l3:4 core:8 pu:4",
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(machines); i++) {
        _cleanup_machine_ struct cp_machine *machine = synthetic(machines[i]);
        _cleanup_machine_ struct cp_machine *rebuilt = NULL;
        _cleanup_json_ json_t *reply = reply_for(machine);
        _cleanup_json_ json_t *expected = cp_topology_to_json(machine);
        _cleanup_json_ json_t *actual = NULL;
        _cleanup_free_ char *expected_text = print_text(machine);
        _cleanup_free_ char *actual_text = NULL;

        assert_int_equal(cp_topology_from_reply(reply, &rebuilt), 0);
        assert_true(cp_cpumask_equal(&machine->usable, &rebuilt->usable));
        actual = cp_topology_to_json(rebuilt);
        assert_non_null(actual);
        assert_true(json_equal(expected, actual));
        actual_text = print_text(rebuilt);
        assert_string_equal(expected_text, actual_text);
    }
}

/* Each of these makes a good answer one that must be refused, not believed. */
static void refuses_nonsense(void **state)
{
    static const struct {
        const char *list;
        size_t at;
        const char *key;
        json_int_t value;
    } spoils[] = {
        {"cpus", 1, "core", 4},     {"cpus", 0, "llc", 1000000000000},
        {"cpus", 0, "node", 9},     {"cpus", 0, "cpu", 1 << 20},
        {"cpus", 1, "cpu", 0},      {"domains", 0, "index", 1},
        {"domains", 1, "index", 0},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(spoils); i++) {
        _cleanup_machine_ struct cp_machine *machine = synthetic("l3:2 core:2 pu:1");
        struct cp_machine *rebuilt = NULL;
        _cleanup_json_ json_t *reply = reply_for(machine);
        json_t *entry = json_array_get(json_object_get(reply, spoils[i].list), spoils[i].at);

        assert_int_equal(json_object_set_new(entry, spoils[i].key, json_integer(spoils[i].value)),
                         0);
        assert_int_equal(cp_topology_from_reply(reply, &rebuilt), -EBADMSG);
        assert_null(rebuilt);
    }
}

static void refuses_empty(void **state)
{
    static const char *const replies[] = {"{}", "[]", "{\"cpus\":[]}", "{\"cpus\":7}"};

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(replies); i++) {
        _cleanup_json_ json_t *reply = json_loads(replies[i], 0, NULL);
        struct cp_machine *rebuilt = NULL;

        assert_non_null(reply);
        assert_int_equal(cp_topology_from_reply(reply, &rebuilt), -EBADMSG);
        assert_null(rebuilt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_view),
        cmocka_unit_test(refuses_nonsense),
        cmocka_unit_test(refuses_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
