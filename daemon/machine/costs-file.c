/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cost table on disk: what was measured on this machine, so that the next start need not.
 *
 * Believes nothing: the file may be of another machine, older or newer, cut or edited by hand. What
 * is not exactly right is an error and the machine is measured again.
 */
#include "machine/costs.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "base/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FORMAT_VERSION "1"

/* Reads a whole number of a mapping within a range. */
static int read_number(const struct cp_yaml *yaml, const struct cp_yaml_node *mapping,
                       const char *key, uint64_t low, uint64_t high, uint64_t *ret,
                       struct cp_error *error)
{
    const struct cp_yaml_node *node = cp_yaml_get(mapping, key);
    const char *rest;
    double value;

    if (!node)
        return cp_yaml_error(yaml, mapping, error, "key \"%s\" is missing", key);
    if (node->kind != CP_YAML_SCALAR || node->quoted ||
        node->text[strspn(node->text, "0123456789")] ||
        cp_quantity_split(node->text, &value, &rest) < 0 || value < (double)low ||
        value > (double)high)
        return cp_yaml_error(yaml, node, error, "%s must be a number from %" PRIu64 " to %" PRIu64,
                             key, low, high);
    *ret = (uint64_t)value;
    return 0;
}

static int read_source(const struct cp_yaml *yaml, const struct cp_yaml_node *mapping,
                       enum cp_cost_source *ret, struct cp_error *error)
{
    const struct cp_yaml_node *node = cp_yaml_get(mapping, "source");

    if (!node || node->kind != CP_YAML_SCALAR)
        return cp_yaml_error(yaml, node ? node : mapping, error, "key \"source\" needs a word");
    for (unsigned i = CP_COST_OBSERVED; i <= CP_COST_MEASURED; i++) {
        if (strcmp(node->text, cp_cost_source_to_string((enum cp_cost_source)i)) == 0) {
            *ret = (enum cp_cost_source)i;
            return 0;
        }
    }
    return cp_yaml_error(yaml, node, error, "source must be measured or observed");
}

static int read_level(const struct cp_yaml *yaml, const struct cp_yaml_entry *entry,
                      struct cp_costs *costs, struct cp_error *error)
{
    enum cp_level level = cp_level_from_string(entry->key->text);
    const struct cp_yaml_node *mapping = entry->value;
    struct cp_cost cost = {0};
    int r;

    if (level == CP_LEVEL_INVALID)
        return cp_yaml_error(yaml, entry->key, error, "\"%s\" is no level", entry->key->text);
    if (mapping->kind != CP_YAML_MAPPING || mapping->n_entries != 5)
        return cp_yaml_error(yaml, mapping, error,
                             "a level has the keys ns, calibrated, spread, samples and source");
    r = read_number(yaml, mapping, "calibrated", 1, CP_NS_PER_S, &cost.anchor_ns, error);
    if (r == 0)
        r = read_number(yaml, mapping, "ns", CP_MAX(cost.anchor_ns / 2, 1), cost.anchor_ns * 2,
                        &cost.raw_ns, error);
    if (r == 0)
        r = read_number(yaml, mapping, "spread", 0, CP_NS_PER_S, &cost.spread_ns, error);
    if (r == 0)
        r = read_number(yaml, mapping, "samples", 1, UINT64_C(1000000000), &cost.n_samples, error);
    if (r == 0)
        r = read_source(yaml, mapping, &cost.source, error);
    if (r < 0)
        return r;
    cost.ns = cost.raw_ns;
    if (costs->level[level].source != CP_COST_CONFIGURED)
        costs->level[level] = cost;
    return 0;
}

/* The text of a scalar at the top; NULL with *error where there is none. */
static const char *read_head(const struct cp_yaml *yaml, const char *key, struct cp_error *error)
{
    const struct cp_yaml_node *node = cp_yaml_get(yaml->root, key);

    if (node && node->kind == CP_YAML_SCALAR)
        return node->text;
    cp_error_set_at(error, EINVAL, yaml->file, node ? node->line : 0, node ? node->column : 0,
                    "not a cost table of coplace: no %s", key);
    return NULL;
}

static int read_levels(const struct cp_yaml *yaml, struct cp_costs *costs, struct cp_error *error)
{
    const struct cp_yaml_node *levels = cp_yaml_get(yaml->root, "levels");
    uint64_t count = 0;
    int r;

    if (!levels || levels->kind != CP_YAML_MAPPING || yaml->root->n_entries != 4)
        return cp_yaml_error(yaml, levels ? levels : yaml->root, error,
                             "a cost table has the keys version, fingerprint, count and levels");
    r = read_number(yaml, yaml->root, "count", 0, CP_LEVEL_MAX, &count, error);
    if (r < 0)
        return r;
    /* A file that was cut between two levels would be good YAML. */
    if (count != levels->n_entries)
        return cp_yaml_error(yaml, levels, error, "%zu levels, but count says %" PRIu64,
                             levels->n_entries, count);
    for (size_t i = 0; i < levels->n_entries; i++) {
        r = read_level(yaml, &levels->entries[i], costs, error);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_table(const struct cp_yaml *yaml, const char *fingerprint, struct cp_costs *costs,
                      struct cp_error *error)
{
    const char *version = read_head(yaml, "version", error);
    const char *written_for;

    if (!version)
        return -EINVAL;
    if (strcmp(version, FORMAT_VERSION) != 0)
        return cp_error_set_at(
            error, EINVAL, yaml->file, 0, 0,
            "version \"%.32s\" of the cost table is not known, only version " FORMAT_VERSION,
            version);
    written_for = read_head(yaml, "fingerprint", error);
    if (!written_for)
        return -EINVAL;
    if (strcmp(written_for, fingerprint) != 0)
        return CP_COSTS_FOREIGN;
    return read_levels(yaml, costs, error);
}

int cp_costs_load(struct cp_costs *costs, const char *path, const char *fingerprint,
                  struct cp_error *error)
{
    struct cp_costs loaded = *costs;
    struct cp_yaml *yaml = NULL;
    int r = cp_yaml_read_file(path, &yaml, error);

    if (r == -ENOENT)
        return CP_COSTS_FOREIGN;
    if (r < 0)
        return r;
    r = read_table(yaml, fingerprint, &loaded, error);
    cp_yaml_free(yaml);
    if (r != 0)
        return r;
    cp_costs_smooth(&loaded);
    *costs = loaded;
    return 0;
}

static bool is_kept(const struct cp_cost *cost)
{
    return cost->source == CP_COST_MEASURED || cost->source == CP_COST_OBSERVED;
}

static void print_table(FILE *stream, const struct cp_costs *costs, const char *fingerprint)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CP_LEVEL_MAX; i++)
        count += is_kept(&costs->level[i]);
    fprintf(stream,
            "# What one hand-off costs on this machine, in nanoseconds: written by coplaced.\n"
            "# Remove this file, or call coplacectl calibrate, to measure again.\n"
            "version: " FORMAT_VERSION "\n"
            "fingerprint: \"%s\"\n"
            "count: %u\n"
            "levels:%s\n",
            fingerprint, count, count ? "" : " {}");
    for (unsigned i = 0; i < CP_LEVEL_MAX; i++) {
        const struct cp_cost *cost = &costs->level[i];

        if (is_kept(cost))
            fprintf(stream,
                    "  %s: { ns: %" PRIu64 ", calibrated: %" PRIu64 ", spread: %" PRIu64
                    ", samples: %" PRIu64 ", source: %s }\n",
                    cp_level_to_string((enum cp_level)i), cost->raw_ns, cost->anchor_ns,
                    cost->spread_ns, cost->n_samples, cp_cost_source_to_string(cost->source));
    }
}

/* Hands all to the kernel; closes the stream in any case. Negative errno. Does not wait for the
 * disk, which may take seconds: a table that a crash of the machine has damaged is measured again.
 */
static int finish(FILE *stream)
{
    int r = 0;

    if (fflush(stream) != 0 || fchmod(fileno(stream), 0644) < 0)
        r = -errno;
    if (fclose(stream) != 0 && r == 0)
        r = -errno;
    return r;
}

int cp_costs_save(const struct cp_costs *costs, const char *path, const char *fingerprint,
                  struct cp_error *error)
{
    char temporary[4096];
    FILE *stream;
    int fd;
    int r;

    if ((size_t)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= sizeof(temporary))
        return cp_error_set(error, ENAMETOOLONG, "the name %.64s… is too long", path);
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return cp_error_set(error, errno, "cannot write %s: %s", path, strerror(errno));
    stream = fdopen(fd, "w");
    if (!stream) {
        r = -errno;
        close(fd);
    } else {
        print_table(stream, costs, fingerprint);
        r = finish(stream);
    }
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlink(temporary);
        return cp_error_set(error, -r, "cannot write %s: %s", path, strerror(-r));
    }
    return 0;
}
