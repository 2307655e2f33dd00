/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of machine/ share: loading, small recorded machines in a temporary directory. */
#pragma once

#include "base/cleanup.h"
#include "machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static inline struct cp_machine *load_machine(enum cp_machine_source_kind kind, const char *text)
{
    const struct cp_machine_source source = {.kind = kind, .text = text};
    struct cp_machine *machine = NULL;
    struct cp_error error = {0};

    if (cp_machine_load(&source, 7, &machine, &error) < 0) {
        char message[1200];

        cp_error_format(&error, message, sizeof(message));
        fail_msg("%s: %s", text ? text : "live", message);
    }
    assert_non_null(machine);
    return machine;
}

/* Expects loading to fail with that code and a message that holds the words. */
static inline void expect_load_error(enum cp_machine_source_kind kind, const char *text, int code,
                                     const char *words)
{
    const struct cp_machine_source source = {.kind = kind, .text = text};
    struct cp_machine *machine = NULL;
    struct cp_error error = {0};
    char message[1200];
    int r = cp_machine_load(&source, 1, &machine, &error);

    cp_error_format(&error, message, sizeof(message));
    if (r != -code || error.code != code || !strstr(message, words))
        fail_msg("%s: result %d, \"%s\" (expected %d, \"%s\")", text, r, message, -code, words);
    assert_null(machine);
}

static inline void expect_cpus(const struct cp_cpumask *mask, const char *list)
{
    _cleanup_free_ char *text = cp_cpumask_to_list(mask);

    assert_string_equal(text, list);
}

static inline void expect_domain(const struct cp_machine *machine, enum cp_level level,
                                 uint32_t index, const char *list)
{
    assert_true(index < machine->n_domains[level]);
    assert_int_equal(machine->domains[level][index].index, index);
    assert_int_equal(machine->domains[level][index].level, level);
    expect_cpus(&machine->domains[level][index].cpus, list);
}

/* Structure that holds for every machine. */
static inline void expect_sound(const struct cp_machine *machine)
{
    assert_true(machine->n_cpus > 0);
    assert_int_equal(cp_cpumask_weight(&machine->online), machine->n_cpus);
    assert_false(cp_cpumask_intersects(&machine->online, &machine->offline));
    assert_true(cp_cpumask_is_subset(&machine->online, &machine->possible));
    assert_true(cp_cpumask_is_subset(&machine->offline, &machine->possible));
    assert_true(cp_cpumask_is_subset(&machine->isolated, &machine->possible));
    assert_true(cp_cpumask_is_subset(&machine->disallowed, &machine->online));
    assert_true(cp_cpumask_is_subset(&machine->usable, &machine->online));
    assert_false(cp_cpumask_intersects(&machine->usable, &machine->isolated));
    assert_false(cp_cpumask_intersects(&machine->usable, &machine->disallowed));
    for (uint32_t i = 0; i < machine->n_cpus; i++) {
        const struct cp_machine_cpu *cpu = &machine->cpus[i];

        assert_true(i == 0 || machine->cpus[i - 1].cpu.os < cpu->cpu.os);
        assert_ptr_equal(cp_machine_find_cpu(machine, cpu->cpu), cpu);
        /* Every CPU has a core and an LLC-level domain. */
        assert_true(cpu->domain[CP_LEVEL_CORE] < machine->n_domains[CP_LEVEL_CORE]);
        assert_true(cpu->domain[CP_LEVEL_LLC] < machine->n_domains[CP_LEVEL_LLC]);
    }
    for (unsigned level = CP_LEVEL_CORE; level <= CP_LEVEL_PACKAGE; level++) {
        unsigned total = 0;
        unsigned before = 0;

        for (uint32_t i = 0; i < machine->n_domains[level]; i++) {
            const struct cp_domain *domain = &machine->domains[level][i];
            struct cp_cpu cpu;

            total += cp_cpumask_weight(&domain->cpus);
            assert_true(cp_cpumask_next(&domain->cpus, 0, &cpu));
            assert_true(i == 0 || cpu.os > before);
            before = cpu.os;
            cp_cpumask_foreach (cpu, &domain->cpus)
                assert_int_equal(cp_machine_find_cpu(machine, cpu)->domain[level], i);
        }
        /* Domains of a level do not overlap, and hold online CPUs only. */
        assert_true(total <= machine->n_cpus);
    }
}

/* A new directory below the build's temporary one; the caller removes it by remove_tree(). */
static inline void make_tree(char path[64])
{
    (void)snprintf(path, 64, "/tmp/coplace-test-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static inline int remove_entry(const char *path, const struct stat *status, int type,
                               struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Writes a file below the tree, and the directories that it needs. */
static inline void put_file(const char *tree, const char *path, const char *text)
{
    char full[512];
    FILE *stream;

    (void)snprintf(full, sizeof(full), "%s/%s", tree, path);
    for (char *slash = full + strlen(tree) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(full, 0755) < 0)
            assert_int_equal(errno, EEXIST);
        *slash = '/';
    }
    stream = fopen(full, "we");
    assert_non_null(stream);
    assert_true(fputs(text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
}

/* As put_file(), with a CPU list in the kernel's mask form: "00000001,0000000f". */
static inline void put_mask(const char *tree, const char *path, const char *list)
{
    _cleanup_cpumask_ struct cp_cpumask mask = {0};
    char text[1024] = "";
    size_t used = 0;

    assert_int_equal(cp_cpumask_parse_list(list, &mask), 0);
    for (size_t i = mask.n_words; i-- > 0;)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%08x,%08x%s",
                                 (unsigned)(mask.words[i] >> 32), (unsigned)mask.words[i],
                                 i ? "," : "\n");
    assert_true(used < sizeof(text));
    put_file(tree, path, text);
}

struct recorded_cache {
    unsigned level; /* 0: no more caches */
    const char *type;
    const char *size;
    const char *cpus;
};

struct recorded_cpu {
    unsigned os;
    const char *core;    /* the CPUs of its core */
    const char *package; /* the CPUs of its package */
    struct recorded_cache caches[3];
};

static inline void put_cpu(const char *tree, const struct recorded_cpu *cpu)
{
    char base[128];
    char path[256];
    char text[64];

    (void)snprintf(base, sizeof(base), "sys/devices/system/cpu/cpu%u", cpu->os);
    (void)snprintf(path, sizeof(path), "%s/topology/core_cpus", base);
    put_mask(tree, path, cpu->core);
    (void)snprintf(path, sizeof(path), "%s/topology/package_cpus", base);
    put_mask(tree, path, cpu->package);
    (void)snprintf(path, sizeof(path), "%s/topology/core_id", base);
    (void)snprintf(text, sizeof(text), "%d\n", atoi(cpu->core));
    put_file(tree, path, text);
    (void)snprintf(path, sizeof(path), "%s/topology/physical_package_id", base);
    (void)snprintf(text, sizeof(text), "%d\n", atoi(cpu->package));
    put_file(tree, path, text);
    for (unsigned i = 0; i < CP_ELEMENTS(cpu->caches) && cpu->caches[i].level; i++) {
        const struct recorded_cache *cache = &cpu->caches[i];

        (void)snprintf(path, sizeof(path), "%s/cache/index%u/shared_cpu_map", base, i);
        put_mask(tree, path, cache->cpus);
        (void)snprintf(path, sizeof(path), "%s/cache/index%u/type", base, i);
        put_file(tree, path, cache->type);
        (void)snprintf(path, sizeof(path), "%s/cache/index%u/size", base, i);
        put_file(tree, path, cache->size);
        (void)snprintf(path, sizeof(path), "%s/cache/index%u/level", base, i);
        (void)snprintf(text, sizeof(text), "%u\n", cache->level);
        put_file(tree, path, text);
    }
}

#define CPU_DIRECTORY "sys/devices/system/cpu/"

static inline void put_lists(const char *tree, const char *online, const char *present,
                             const char *possible)
{
    put_file(tree, CPU_DIRECTORY "online", online);
    put_file(tree, CPU_DIRECTORY "present", present);
    put_file(tree, CPU_DIRECTORY "possible", possible);
}

static inline void put_node(const char *tree, unsigned node, const char *cpus)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "sys/devices/system/node/node%u/cpumap", node);
    put_mask(tree, path, cpus);
    (void)snprintf(path, sizeof(path), "sys/devices/system/node/node%u/meminfo", node);
    put_file(tree, path, "MemTotal: 1048576 kB\n");
}
