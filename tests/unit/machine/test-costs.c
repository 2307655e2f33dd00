/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cost table: words, smoothing against its definition, observation, files good and bad. */
#include "base/cleanup.h"
#include "machine/costs.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "recorded-root.h"

#define N CP_LEVEL_MAX

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static void defaults(void **state)
{
    static const uint64_t expected[N] = {1000, 2000, 4000, 9000, 15000, 25000};
    struct cp_costs costs;

    (void)state;
    memset(&costs, 0xff, sizeof(costs));
    cp_costs_init_default(&costs);
    cp_costs_smooth(&costs);
    assert_false(costs.doubtful);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(costs.level[i].ns, expected[i]);
        assert_int_equal(costs.level[i].raw_ns, expected[i]);
        assert_int_equal(costs.level[i].n_samples, 0);
        assert_int_equal(costs.level[i].source, CP_COST_DEFAULT);
        assert_false(costs.level[i].doubtful);
    }
    assert_string_equal(cp_cost_source_to_string(CP_COST_MEASURED), "measured");
    assert_null(cp_cost_source_to_string(CP_COST_SOURCE_MAX));
}

static void configured(void **state)
{
    struct cp_costs costs;
    struct cp_error error = {0};

    (void)state;
    cp_costs_init_default(&costs);
    assert_int_equal(cp_costs_configure(&costs, "cpu=1.5us,machine=1000ms,llc=40us", &error), 0);
    assert_int_equal(costs.level[CP_LEVEL_CPU].ns, 1500);
    assert_int_equal(costs.level[CP_LEVEL_LLC].ns, 40000);
    assert_int_equal(costs.level[CP_LEVEL_MACHINE].ns, 1000000000);
    assert_int_equal(costs.level[CP_LEVEL_CPU].source, CP_COST_CONFIGURED);
    assert_int_equal(costs.level[CP_LEVEL_CORE].source, CP_COST_DEFAULT);
    /* Defaults are moved between what is known, and doubt nothing. */
    assert_int_equal(costs.level[CP_LEVEL_CORE].ns, 2000);
    assert_int_equal(costs.level[CP_LEVEL_NODE].ns, 40000);
    assert_int_equal(costs.level[CP_LEVEL_PACKAGE].ns, 40000);
    assert_false(costs.doubtful);
    /* Nothing else overrides. */
    cp_costs_set_measured(&costs, CP_LEVEL_CPU, 77, 1, 1000);
    cp_costs_observe(&costs, CP_LEVEL_CPU, 77, 1000);
    cp_costs_smooth(&costs);
    assert_int_equal(costs.level[CP_LEVEL_CPU].ns, 1500);
    assert_int_equal(costs.level[CP_LEVEL_CPU].source, CP_COST_CONFIGURED);
}

static void configuration_errors(void **state)
{
    static const struct {
        const char *text, *word;
    } table[] = {
        {"", "is no cost"},
        {"cpu", "\"cpu\" is no cost"},
        {"cpu=1us,", "\"\" is no cost"},
        {",cpu=1us", "\"\" is no cost"},
        {"l3=1us", "\"l3\" is no level: use cpu, core"},
        {" cpu=1us", "\" cpu\" is no level"},
        {"cpu=1us,llc=2us,cpu=3us", "cpu is given twice"},
        {"cpu=", "\"\" is no cost of cpu"},
        {"cpu=1", "from 1ns to 1000ms"},
        {"cpu=0ns", "from 1ns"},
        {"cpu=0.4ns", "from 1ns"},
        {"cpu=1001ms", "1000ms"},
        {"cpu=-1us", "\"-1us\""},
        {"cpu=1us;llc=2us", "\"1us;llc=2us\""},
        {"llc=4us,cpu=1 us", "\"1 us\""},
        {"llc=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "is no"},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct cp_costs costs;
        struct cp_costs before;
        struct cp_error error = {0};
        int r;

        cp_costs_init_default(&costs);
        before = costs;
        r = cp_costs_configure(&costs, table[i].text, &error);
        if (r != -EINVAL || !strstr(error.message, table[i].word))
            print_error("\"%s\" gave %d, %s\n", table[i].text, r, error.message);
        assert_int_equal(r, -EINVAL);
        assert_non_null(strstr(error.message, table[i].word));
        assert_memory_equal(&costs, &before, sizeof(costs));
    }
}

/* Values by level; 0: the default stands. C: configured. n: samples. */
static void smoothing(void **state)
{
    static const struct {
        uint64_t measured[N], samples[N], fixed[N];
        uint64_t expected[N];
        unsigned doubtful; /* bits by level */
    } table[] = {
        /* This virtual machine: far defaults are lifted, nobody is doubted. */
        {{1500, 0, 50000}, {2000, 0, 2000}, {0}, {1500, 2000, 50000, 50000, 50000, 50000}, 0},
        /* A nearer one dearer than a farther: the mean of both, by samples. */
        {{3000, 0, 1000}, {1, 0, 3}, {0}, {1500, 1500, 1500, 9000, 15000, 25000}, 1 | 4},
        {{100, 200, 400, 300, 600, 700},
         {1, 1, 1, 1, 1, 1},
         {0},
         {100, 200, 350, 350, 600, 700},
         4 | 8},
        {{600, 500, 400, 300, 200, 100},
         {1, 1, 1, 1, 1, 1},
         {0},
         {350, 350, 350, 350, 350, 350},
         63},
        /* Equal values are no doubt. */
        {{100, 100, 100, 100, 100, 100},
         {1, 2, 3, 4, 5, 6},
         {0},
         {100, 100, 100, 100, 100, 100},
         0},
        /* Pooling goes back as far as it must. */
        {{100, 500, 600, 200, 900, 1000},
         {1, 1, 1, 1, 1, 1},
         {0},
         {100, 433, 433, 433, 900, 1000},
         2 | 4 | 8},
        /* Defaults dearer than what is known farther off come down. */
        {{0, 0, 1200}, {0, 0, 100}, {0}, {1000, 1200, 1200, 9000, 15000, 25000}, 0},
        {{0, 0, 0, 0, 0, 700}, {0, 0, 0, 0, 0, 9}, {0}, {700, 700, 700, 700, 700, 700}, 0},
        /* Configured ones stand, measured ones yield and are doubted. */
        {{5000, 0, 300}, {10, 0, 10}, {0, 1000}, {1000, 1000, 1000, 9000, 15000, 25000}, 1 | 4},
        {{500, 0, 3000}, {10, 0, 10}, {0, 1000}, {500, 1000, 3000, 9000, 15000, 25000}, 0},
        /* Two configured ones that contradict each other: as said, but doubted. */
        {{0}, {0}, {9000, 1000}, {9000, 1000, 9000, 9000, 15000, 25000}, 1},
    };

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct cp_costs costs;
        struct cp_costs again;

        cp_costs_init_default(&costs);
        for (unsigned l = 0; l < N; l++) {
            if (table[i].measured[l])
                cp_costs_set_measured(&costs, (enum cp_level)l, table[i].measured[l], 0,
                                      table[i].samples[l]);
            if (table[i].fixed[l]) {
                char text[64];

                (void)snprintf(text, sizeof(text), "%s=%lluns",
                               cp_level_to_string((enum cp_level)l),
                               (unsigned long long)table[i].fixed[l]);
                assert_int_equal(cp_costs_configure(&costs, text, NULL), 0);
            }
        }
        cp_costs_smooth(&costs);
        for (unsigned l = 0; l < N; l++) {
            if (costs.level[l].ns != table[i].expected[l])
                print_error("row %zu, level %u: %llu\n", i, l,
                            (unsigned long long)costs.level[l].ns);
            assert_int_equal(costs.level[l].ns, table[i].expected[l]);
            assert_int_equal(costs.level[l].doubtful, table[i].doubtful >> l & 1);
        }
        assert_int_equal(costs.doubtful, table[i].doubtful != 0);
        again = costs;
        cp_costs_smooth(&again);
        assert_memory_equal(&again, &costs, sizeof(costs));
    }
}

/* The weighted sum of squared distances of a rising table from what was measured. */
static double distance(const struct cp_costs *costs, const uint64_t *ns)
{
    double sum = 0;

    for (unsigned l = 0; l < N; l++) {
        double d = (double)ns[l] - (double)costs->level[l].raw_ns;

        sum += d * d * (double)costs->level[l].n_samples;
    }
    return sum;
}

/* Isotonic regression by definition: rising, keeps the weighted mean, and no rising table made by
 * moving one stretch of levels a little lies nearer to what was measured. */
static void generated_tables(void **state)
{
    uint64_t random = 5;

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        struct cp_costs costs;
        uint64_t smooth[N];
        double mean_before = 0;
        double mean_after = 0;
        bool rising = true;

        cp_costs_init_default(&costs);
        for (unsigned l = 0; l < N; l++)
            cp_costs_set_measured(&costs, (enum cp_level)l, 10000 + next_random(&random) % 100000,
                                  0, 1 + next_random(&random) % 5);
        cp_costs_smooth(&costs);
        for (unsigned l = 0; l < N; l++) {
            const struct cp_cost *cost = &costs.level[l];

            smooth[l] = cost->ns;
            assert_true(l == 0 || smooth[l - 1] <= smooth[l]);
            rising = rising && (l == 0 || costs.level[l - 1].raw_ns <= cost->raw_ns);
            mean_before += (double)(cost->raw_ns * cost->n_samples);
            mean_after += (double)(cost->ns * cost->n_samples);
            assert_true(cost->doubtful || cost->ns == cost->raw_ns);
        }
        assert_int_equal(costs.doubtful, !rising);
        assert_true(fabs(mean_before - mean_after) < 5.0 * N);
        for (unsigned first = 0; first < N; first++) {
            for (unsigned last = first; last < N; last++) {
                for (int step = -100; step <= 100; step += 200) {
                    uint64_t other[N];
                    bool still_rising = true;

                    memcpy(other, smooth, sizeof(other));
                    for (unsigned l = first; l <= last; l++)
                        other[l] = (uint64_t)((int64_t)other[l] + step);
                    for (unsigned l = 1; l < N; l++)
                        still_rising = still_rising && other[l - 1] <= other[l];
                    if (still_rising)
                        assert_true(distance(&costs, other) >= distance(&costs, smooth));
                }
            }
        }
    }
}

/* Any mixture of sources, without contradictions among configured values, gives a rising table. */
static void generated_mixtures(void **state)
{
    uint64_t random = 6;

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        struct cp_costs costs;
        unsigned fixed = 100;

        cp_costs_init_default(&costs);
        for (unsigned l = 0; l < N; l++) {
            unsigned kind = (unsigned)(next_random(&random) % 4);
            char text[64];

            fixed += (unsigned)(next_random(&random) % 20000);
            (void)snprintf(text, sizeof(text), "%s=%uns", cp_level_to_string((enum cp_level)l),
                           fixed);
            if (kind == 1)
                cp_costs_set_measured(&costs, (enum cp_level)l, next_random(&random) % 60000, 0,
                                      next_random(&random) % 3000);
            else if (kind == 2)
                cp_costs_observe(&costs, (enum cp_level)l, next_random(&random) % 60000,
                                 next_random(&random) % 3000);
            else if (kind == 3)
                assert_int_equal(cp_costs_configure(&costs, text, NULL), 0);
        }
        cp_costs_smooth(&costs);
        for (unsigned l = 0; l < N; l++) {
            assert_true(costs.level[l].ns > 0);
            assert_true(l == 0 || costs.level[l - 1].ns <= costs.level[l].ns);
            if (costs.level[l].source == CP_COST_CONFIGURED) {
                assert_int_equal(costs.level[l].ns, costs.level[l].raw_ns);
                assert_false(costs.level[l].doubtful);
            }
            if (costs.level[l].source == CP_COST_DEFAULT)
                assert_false(costs.level[l].doubtful);
        }
    }
}

static void observation(void **state)
{
    struct cp_costs costs;
    struct cp_cost *llc = &costs.level[CP_LEVEL_LLC];

    (void)state;
    cp_costs_init_default(&costs);
    cp_costs_set_measured(&costs, CP_LEVEL_LLC, 40000, 900, 2000);
    cp_costs_observe(&costs, CP_LEVEL_LLC, 50000, 0);
    assert_int_equal(llc->raw_ns, 40000);
    assert_int_equal(llc->source, CP_COST_MEASURED);
    /* Half of the way after as many hand-offs as weigh one half. */
    cp_costs_observe(&costs, CP_LEVEL_LLC, 50000, 1000);
    assert_int_equal(llc->raw_ns, 45000);
    assert_int_equal(llc->ns, 45000);
    assert_int_equal(llc->source, CP_COST_OBSERVED);
    assert_int_equal(llc->n_samples, 3000);
    assert_int_equal(llc->spread_ns, 900);
    /* Never beyond a factor of two of the calibration, however long and however far. */
    for (unsigned i = 0; i < 100; i++)
        cp_costs_observe(&costs, CP_LEVEL_LLC, 10000000, UINT64_MAX);
    assert_int_equal(llc->raw_ns, 80000);
    assert_true(llc->n_samples <= 1000000000);
    for (unsigned i = 0; i < 100; i++)
        cp_costs_observe(&costs, CP_LEVEL_LLC, 0, 1000000);
    assert_int_equal(llc->raw_ns, 20000);
    /* The same from a default; a new calibration is a new anchor. */
    cp_costs_observe(&costs, CP_LEVEL_NODE, 1000000, 1000000000);
    assert_int_equal(costs.level[CP_LEVEL_NODE].raw_ns, 18000);
    cp_costs_set_measured(&costs, CP_LEVEL_LLC, 7000, 1, 30);
    assert_int_equal(llc->source, CP_COST_MEASURED);
    cp_costs_observe(&costs, CP_LEVEL_LLC, 1000000, 1000000000);
    assert_int_equal(llc->raw_ns, 14000);
    /* Nothing measured is nothing stored; no time is none of zero. */
    cp_costs_set_measured(&costs, CP_LEVEL_CPU, 5, 1, 0);
    assert_int_equal(costs.level[CP_LEVEL_CPU].source, CP_COST_DEFAULT);
    cp_costs_set_measured(&costs, CP_LEVEL_CPU, 0, 1, 10);
    assert_int_equal(costs.level[CP_LEVEL_CPU].ns, 1);
}

static void make_table(struct cp_costs *costs)
{
    cp_costs_init_default(costs);
    cp_costs_set_measured(costs, CP_LEVEL_CPU, 1500, 100, 2000);
    cp_costs_set_measured(costs, CP_LEVEL_LLC, 52000, 9000, 1800);
    cp_costs_set_measured(costs, CP_LEVEL_NODE, 40000, 100, 20);
    cp_costs_observe(costs, CP_LEVEL_LLC, 60000, 300);
    cp_costs_smooth(costs);
}

static void files_go_round(void **state)
{
    struct recorded_root recorded;
    struct cp_costs costs;
    struct cp_costs loaded;
    struct cp_error error = {0};
    struct stat status;
    char path[128];

    (void)state;
    recorded_root_make(&recorded);
    (void)snprintf(path, sizeof(path), "%s/costs.yaml", recorded.path);
    make_table(&costs);
    assert_true(costs.doubtful);
    cp_costs_init_default(&loaded);
    assert_int_equal(cp_costs_load(&loaded, path, "0123456789abcdef", &error), CP_COSTS_FOREIGN);
    assert_int_equal(cp_costs_save(&costs, path, "0123456789abcdef", &error), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0644);
    assert_int_equal(cp_costs_load(&loaded, path, "0123456789abcdee", &error), CP_COSTS_FOREIGN);
    assert_int_equal(loaded.level[CP_LEVEL_CPU].source, CP_COST_DEFAULT);
    assert_int_equal(cp_costs_load(&loaded, path, "0123456789abcdef", &error), 0);
    assert_memory_equal(&loaded, &costs, sizeof(costs));
    /* What is configured stays, and is not written. */
    cp_costs_init_default(&loaded);
    assert_int_equal(cp_costs_configure(&loaded, "llc=7us", &error), 0);
    assert_int_equal(cp_costs_load(&loaded, path, "0123456789abcdef", &error), 0);
    assert_int_equal(loaded.level[CP_LEVEL_LLC].ns, 7000);
    assert_int_equal(loaded.level[CP_LEVEL_CPU].ns, 1500);
    assert_int_equal(cp_costs_save(&loaded, path, "0123456789abcdef", &error), 0);
    cp_costs_init_default(&loaded);
    assert_int_equal(cp_costs_load(&loaded, path, "0123456789abcdef", &error), 0);
    assert_int_equal(loaded.level[CP_LEVEL_LLC].source, CP_COST_DEFAULT);
    assert_int_equal(loaded.level[CP_LEVEL_CPU].source, CP_COST_MEASURED);
    /* A table of nothing but defaults. */
    cp_costs_init_default(&loaded);
    assert_int_equal(cp_costs_save(&loaded, path, "f", &error), 0);
    assert_int_equal(cp_costs_load(&loaded, path, "f", &error), 0);
    assert_int_equal(loaded.level[CP_LEVEL_CPU].source, CP_COST_DEFAULT);
    recorded_root_remove(&recorded);
}

static char *saved_text(const struct recorded_root *recorded, const char *path)
{
    struct cp_costs costs;
    char *text = NULL;

    make_table(&costs);
    assert_int_equal(cp_costs_save(&costs, path, "0123456789abcdef", NULL), 0);
    assert_int_equal(cp_root_read_file(&recorded->root, "costs.yaml", 65536, &text, NULL), 0);
    return text;
}

/* Cut anywhere, or with any byte changed: an error, another machine's, or a sane table. */
static void damaged_files(void **state)
{
    static const char bytes[] = "0:#\n -x\xff\x01\"";
    struct recorded_root recorded;
    struct cp_costs before;
    char path[128];
    char *text;
    size_t size;

    (void)state;
    recorded_root_make(&recorded);
    (void)snprintf(path, sizeof(path), "%s/costs.yaml", recorded.path);
    text = saved_text(&recorded, path);
    size = strlen(text);
    cp_costs_init_default(&before);
    for (size_t i = 0; i < size * CP_ELEMENTS(bytes); i++) {
        struct cp_costs costs = before;
        struct cp_error error = {0};
        char *copy = strdup(text);
        size_t at = i / CP_ELEMENTS(bytes);
        bool cut = i % CP_ELEMENTS(bytes) == CP_ELEMENTS(bytes) - 1;
        int r;

        copy[at] = bytes[i % CP_ELEMENTS(bytes)];
        recorded_root_write(&recorded, "costs.yaml", copy);
        r = cp_costs_load(&costs, path, "0123456789abcdef", &error);
        /* Only the last newline may be missing. */
        assert_true(!cut || r < 0 || r == CP_COSTS_FOREIGN || at == size - 1);
        if (r != 0) {
            assert_memory_equal(&costs, &before, sizeof(costs));
            assert_true(r == CP_COSTS_FOREIGN || error.message[0]);
        }
        for (unsigned l = 0; l < N; l++) {
            assert_true(costs.level[l].ns > 0 && costs.level[l].ns <= 1000000000);
            assert_true(l == 0 || costs.level[l - 1].ns <= costs.level[l].ns);
        }
        free(copy);
    }
    free(text);
    recorded_root_remove(&recorded);
}

#define HEAD "version: 1\nfingerprint: \"f\"\ncount: 1\nlevels:\n"

static void malformed_files(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *word;
    } table[] = {
        {"", 0, "not a cost table"},
        {"- a\n", 0, "not a cost table"},
        {"version: 2\nfingerprint: f\n", 0, "version \"2\""},
        {"version: 1\n", 0, "no fingerprint"},
        {"version: 1\nfingerprint: [f]\n", 2, "no fingerprint"},
        {"version: 1\nfingerprint: f\n", 1, "keys version"},
        {"version: 1\nfingerprint: f\ncount: 1\nlevels: []\n", 4, "keys version"},
        {"version: 1\nfingerprint: f\ncount: 2\nlevels: {}\n", 4, "count says 2"},
        {"version: 1\nfingerprint: f\ncount: x\nlevels: {}\n", 3, "count must be"},
        {HEAD "  l3: 5\n", 5, "\"l3\" is no level"},
        {HEAD "  cpu: 5\n", 5, "a level has the keys"},
        {HEAD "  cpu: {ns: 5, calibrated: 5, spread: 1, samples: 0, source: measured}\n", 5,
         "samples must be a number from 1"},
        {HEAD "  cpu: {ns: 11, calibrated: 5, spread: 1, samples: 9, source: measured}\n", 5,
         "ns must be a number from 2 to 10"},
        {HEAD "  cpu: {ns: 0, calibrated: 0, spread: 1, samples: 9, source: measured}\n", 5,
         "calibrated must be"},
        {HEAD "  cpu: {ns: 5, calibrated: 5, spread: 1.5, samples: 9, source: measured}\n", 5,
         "spread must be"},
        {HEAD "  cpu: {ns: \"5\", calibrated: 5, spread: 1, samples: 9, source: measured}\n", 5,
         "ns must be"},
        {HEAD "  cpu: {ns: 5, calibrated: 5, spread: 1, samples: 9, source: configured}\n", 5,
         "source must be"},
        {HEAD "  cpu: {ns: 5, calibrated: 5, spread: 1, samples: 9, sources: measured}\n", 5,
         "\"source\""},
        {HEAD "  cpu: {ns: 99999999999999999999, calibrated: 5, spread: 1, samples: 9, source: "
              "measured}\n",
         5, "ns must be"},
        {HEAD "  cpu: [\n", 6, "expected"},
    };
    struct recorded_root recorded;
    char path[128];

    (void)state;
    recorded_root_make(&recorded);
    (void)snprintf(path, sizeof(path), "%s/costs.yaml", recorded.path);
    for (size_t i = 0; i < CP_ELEMENTS(table); i++) {
        struct cp_costs costs;
        struct cp_error error = {0};
        int r;

        cp_costs_init_default(&costs);
        recorded_root_write(&recorded, "costs.yaml", table[i].text);
        r = cp_costs_load(&costs, path, "f", &error);
        if (r != -EINVAL || error.line != table[i].line || !strstr(error.message, table[i].word))
            print_error("row %zu: %d, line %u: %s\n", i, r, error.line, error.message);
        assert_int_equal(r, -EINVAL);
        assert_int_equal(error.line, table[i].line);
        assert_non_null(strstr(error.message, table[i].word));
        assert_string_equal(error.file, path);
    }
    recorded_root_remove(&recorded);
}

/* What cannot be written leaves the old file and nothing else. */
static void unwritable(void **state)
{
    struct recorded_root recorded;
    struct cp_costs costs;
    struct cp_error error = {0};
    char path[128];

    (void)state;
    recorded_root_make(&recorded);
    make_table(&costs);
    (void)snprintf(path, sizeof(path), "%s/absent/costs.yaml", recorded.path);
    assert_int_equal(cp_costs_save(&costs, path, "f", &error), -ENOENT);
    assert_non_null(strstr(error.message, path));
    /* A directory in its place: the rename fails, the temporary file goes. */
    recorded_root_mkdir(&recorded, "costs.yaml");
    (void)snprintf(path, sizeof(path), "%s/costs.yaml", recorded.path);
    assert_int_equal(cp_costs_save(&costs, path, "f", &error), -EISDIR);
    assert_int_equal(cp_costs_load(&costs, path, "f", &error), -EISDIR);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(recorded.path), 0);
    assert_int_equal(mkdir(recorded.path, 0700), 0);
    recorded_root_remove(&recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(configured),
        cmocka_unit_test(configuration_errors),
        cmocka_unit_test(smoothing),
        cmocka_unit_test(generated_tables),
        cmocka_unit_test(generated_mixtures),
        cmocka_unit_test(observation),
        cmocka_unit_test(files_go_round),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(malformed_files),
        cmocka_unit_test(unwritable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
