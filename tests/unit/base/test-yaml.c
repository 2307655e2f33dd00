/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* YAML trees: places, what is refused and where, limits, any bytes. Pins what libyaml does. */
#include "base/yaml.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorded-root.h"

static int parse(const char *text, struct cp_yaml **ret_yaml, struct cp_error *error)
{
    return cp_yaml_parse("t.yaml", text, strlen(text), ret_yaml, error);
}

static struct cp_yaml *parse_good(const char *text)
{
    struct cp_yaml *yaml = NULL;
    struct cp_error error = {0};
    int r = parse(text, &yaml, &error);

    if (r != 0)
        print_error("%u:%u: %s\n", error.line, error.column, error.message);
    assert_int_equal(r, 0);
    assert_string_equal(yaml->file, "t.yaml");
    return yaml;
}

static void a_tree_with_places(void **state)
{
    struct cp_yaml *yaml = parse_good("# head\n"
                                      "version: 1\n"
                                      "policies:\n"
                                      "  - name: \"a b\"\n"
                                      "    match: { user: [x, 'y'] }\n"
                                      "  - name: z # tail\n"
                                      "empty:\n"
                                      "text: |\n"
                                      "  two\n"
                                      "  lines\n");
    const struct cp_yaml_node *root = yaml->root;
    const struct cp_yaml_node *policies = cp_yaml_get(root, "policies");
    const struct cp_yaml_node *user;
    struct cp_error error;

    (void)state;
    assert_int_equal(root->kind, CP_YAML_MAPPING);
    assert_int_equal(root->n_entries, 4);
    assert_int_equal(root->line, 2);
    assert_string_equal(cp_yaml_get(root, "version")->text, "1");
    assert_false(cp_yaml_get(root, "version")->quoted);
    assert_int_equal(policies->kind, CP_YAML_SEQUENCE);
    assert_int_equal(policies->n_entries, 2);
    assert_null(policies->entries[0].key);
    assert_null(cp_yaml_get(policies, "name"));
    assert_string_equal(cp_yaml_get(policies->entries[0].value, "name")->text, "a b");
    assert_true(cp_yaml_get(policies->entries[0].value, "name")->quoted);
    assert_int_equal(cp_yaml_get(policies->entries[0].value, "name")->line, 4);
    assert_int_equal(cp_yaml_get(policies->entries[0].value, "name")->column, 11);
    user = cp_yaml_get(cp_yaml_get(policies->entries[0].value, "match"), "user");
    assert_int_equal(user->n_entries, 2);
    assert_string_equal(user->entries[1].value->text, "y");
    assert_int_equal(user->entries[1].value->line, 5);
    assert_int_equal(user->entries[1].value->column, 24);
    assert_string_equal(cp_yaml_get(policies->entries[1].value, "name")->text, "z");
    assert_string_equal(cp_yaml_get(root, "empty")->text, "");
    assert_false(cp_yaml_get(root, "empty")->quoted);
    assert_string_equal(cp_yaml_get(root, "text")->text, "two\nlines\n");
    assert_null(cp_yaml_get(root, "absent"));
    assert_null(cp_yaml_get(NULL, "x"));
    assert_null(cp_yaml_get(cp_yaml_get(root, "version"), "x"));
    assert_int_equal(cp_yaml_error(yaml, user, &error, "bad %d", 3), -EINVAL);
    assert_string_equal(error.message, "bad 3");
    assert_string_equal(error.file, "t.yaml");
    assert_int_equal(error.line, 5);
    assert_int_equal(error.column, 20);
    cp_yaml_free(yaml);
    assert_null(cp_yaml_free(NULL));
}

static void empty_texts(void **state)
{
    static const char *const texts[] = {"", "\n\n", "# nothing\n", "#\tnothing", "\xef\xbb\xbf"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct cp_yaml *yaml = parse_good(texts[i]);

        assert_null(yaml->root);
        cp_yaml_free(yaml);
    }
}

static void accepted(void **state)
{
    static const struct {
        const char *text;
        const char *value; /* of key a */
    } table[] = {
        {"a: 1\r\nb: 2\r\n", "1"},
        {"---\na: x\n...\n", "x"},
        {"\xef\xbb\xbf"
         "a: 1\n",
         "1"},
        {"a: \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"  # a comment\twith tabs\na: 1\n", "1"},
        {"a: \"tab\\tnewline\\n\"\n", "tab\tnewline\n"},
        {"a: 'it''s'\n", "it's"},
        {"a: b c  d\n", "b c  d"},
        {"a: x#y\n", "x#y"},
        {"\"a\": 1\n", "1"},
        {"a:\n  long\n  text\n", "long text"},
        {"a: ~\n", "~"},
        {"{a: 1, b: {a: 2}}", "1"},
        {"b: [{a: 1}, {a: 2}]\na: 3\n", "3"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct cp_yaml *yaml = parse_good(table[i].text);

        assert_string_equal(cp_yaml_get(yaml->root, "a")->text, table[i].value);
        cp_yaml_free(yaml);
    }
}

static void refused(void **state)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *word; /* in the message */
    } table[] = {
        {"a: 1\nb: 2\na: 3\n", 3, 1, "\"a\" is given twice, first in line 1"},
        {"x:\n  - {k: 1, \"k\": 2}\n", 2, 12, "twice"},
        {"a:\t1\n", 1, 3, "tab"},
        {"\ta: 1\n", 1, 1, "tab"},
        {"a:\n\tb: 1\n", 2, 1, "tab"},
        {"a: 1 \t# c\n", 1, 6, "tab"},
        {"a: \"x\ty\"\n", 1, 6, "tab"},
        {"\xc3\xa4: \t1\n", 1, 4, "tab"},
        {"a: &x 1\n", 1, 4, "anchors"},
        {"a: &x [1]\n", 1, 4, "anchors"},
        {"a: &x\n  b: 1\n", 1, 4, "anchors"},
        {"a: *x\n", 1, 4, "aliases"},
        {"<<: *x\n", 1, 5, "aliases"},
        {"a: !!int 1\n", 1, 4, "tags"},
        {"a: !x {b: 1}\n", 1, 4, "tags"},
        {"a: ! 1\n", 1, 4, "tags"},
        {"%YAML 1.1\n---\na: 1\n", 1, 1, "directives"},
        {"%TAG ! !x\n---\na: 1\n", 1, 1, "directives"},
        {"a: 1\n---\nb: 2\n", 2, 1, "second document"},
        {"a: 1\n...\n---\nb: 2\n", 3, 1, "second document"},
        {"? [a]\n: 1\n", 1, 3, "key"},
        {"{[a]: 1}\n", 1, 2, "key"},
        {": 1\n", 1, 1, "expected key"},
        {"'': 1\n", 1, 1, "key is missing"},
        {"a: \"x\\0y\"\n", 1, 4, "NUL"},
        {"a: b: c\n", 1, 5, "mapping values"},
        {"a: [1, 2\n", 2, 1, "expected ',' or ']'"},
        {"a: \"x\n", 2, 1, "end of stream"},
        {"a: 1\n b: 2\n", 2, 3, "mapping values"},
        {"- a\nb: 1\n", 2, 1, "expected"},
        {"a: @x\n", 1, 4, "cannot start"},
        {"a: \"\\q\"\n", 1, 5, "unknown escape"},
        {"a: \xff\n", 1, 4, "UTF-8"},
        {"a: 1\n# \xc3\n", 2, 3, "UTF-8"},
        {"a: \xc0\xaf\n", 1, 4, "UTF-8"},
        {"a: \xe0\x80\xaf\n", 1, 4, "UTF-8"},
        {"a: \xed\xa0\x80\n", 1, 4, "UTF-8"},
        {"a: \xf4\x90\x80\x80\n", 1, 4, "UTF-8"},
        {"a: \xf0\x9f\x98", 1, 4, "UTF-8"},
        {"\xff\xfe"
         "a",
         1, 1, "UTF-8"},
        {"a: \x01\n", 1, 4, "control"},
        {"a: \x1b[31m\n", 1, 4, "control"},
        {"a: \x7f\n", 1, 4, "control"},
        {"a: \xc2\x85"
         "b\n",
         1, 4, "control"},
        {"a: \xe2\x80\xa8"
         "b\n",
         1, 4, "separator"},
        {"a: 1\rb: 2\n", 1, 5, "carriage return"},
        {"a: \xef\xbb\xbf"
         "1\n",
         1, 4, "no text"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct cp_yaml *yaml = NULL;
        struct cp_error error = {0};
        int r = parse(table[i].text, &yaml, &error);

        if (r != -EINVAL || error.line != table[i].line || error.column != table[i].column ||
            !strstr(error.message, table[i].word))
            print_error("%s→ %d, %u:%u: %s\n", table[i].text, r, error.line, error.column,
                        error.message);
        assert_int_equal(r, -EINVAL);
        assert_null(yaml);
        assert_string_equal(error.file, "t.yaml");
        assert_int_equal(error.line, table[i].line);
        assert_int_equal(error.column, table[i].column);
        assert_non_null(strstr(error.message, table[i].word));
        assert_int_equal(parse(table[i].text, &yaml, NULL), -EINVAL);
    }
}

static void a_nul_byte(void **state)
{
    struct cp_yaml *yaml = NULL;
    struct cp_error error = {0};

    (void)state;
    assert_int_equal(cp_yaml_parse("t", "a: 1\n\0b", 7, &yaml, &error), -EINVAL);
    assert_int_equal(error.line, 2);
    assert_non_null(strstr(error.message, "control"));
}

/* Writes n copies of piece, with the number in place of %u. */
static char *repeat(const char *head, const char *piece, unsigned n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    fputs(head, stream);
    for (unsigned i = 0; i < n; i++) {
        const char *number = strchr(piece, '#');

        if (number)
            fprintf(stream, "%.*s%u%s", (int)(number - piece), piece, i, number + 1);
        else
            fputs(piece, stream);
    }
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void limits(void **state)
{
    static const struct {
        const char *head, *piece;
        unsigned n_good, n_bad;
        int result;
        const char *word;
    } table[] = {
        {"", "k#: 1\n", CP_YAML_MAX_KEYS, CP_YAML_MAX_KEYS + 1, -EINVAL, "keys"},
        {"", "- x\n", CP_YAML_MAX_NODES - 1, CP_YAML_MAX_NODES, -EINVAL, "too many"},
        {"# ", "xxxxxxxx", CP_YAML_MAX_SIZE / 8 - 1, CP_YAML_MAX_SIZE / 8, -EFBIG, "larger"},
    };
    struct cp_yaml *yaml = NULL;
    struct cp_error error = {0};
    char nested[200];

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char *good = repeat(table[i].head, table[i].piece, table[i].n_good);
        char *bad = repeat(table[i].head, table[i].piece, table[i].n_bad);

        yaml = parse_good(good);
        cp_yaml_free(yaml);
        assert_int_equal(parse(bad, &yaml, &error), table[i].result);
        assert_non_null(strstr(error.message, table[i].word));
        free(good);
        free(bad);
    }
    for (unsigned depth = CP_YAML_MAX_DEPTH; depth <= CP_YAML_MAX_DEPTH + 1; depth++) {
        memset(nested, '[', depth);
        memset(nested + depth, ']', depth);
        nested[(size_t)depth * 2] = '\0';
        yaml = NULL;
        assert_int_equal(parse(nested, &yaml, &error), depth <= CP_YAML_MAX_DEPTH ? 0 : -EINVAL);
        cp_yaml_free(yaml);
    }
    assert_non_null(strstr(error.message, "deeply"));
    assert_int_equal(error.column, CP_YAML_MAX_DEPTH + 1);
}

/* A text that would make a recursive or quadratic reader suffer: the answer comes, and soon. */
static void hostile_depth(void **state)
{
    static const char pieces[] = "[{-?:";
    struct cp_error error;

    (void)state;
    for (size_t i = 0; i < sizeof(pieces) - 1; i++) {
        size_t size = CP_YAML_MAX_SIZE;
        char *text = malloc(size);
        struct cp_yaml *yaml = NULL;

        assert_non_null(text);
        memset(text, pieces[i], size);
        if (pieces[i] == '-' || pieces[i] == '?' || pieces[i] == ':')
            for (size_t k = 1; k < size; k += 2)
                text[k] = ' ';
        assert_int_equal(cp_yaml_parse("t", text, size, &yaml, &error), -EINVAL);
        assert_null(yaml);
        free(text);
    }
}

static unsigned count_nodes(const struct cp_yaml_node *node, unsigned depth)
{
    unsigned n = 1;

    assert_true(depth <= CP_YAML_MAX_DEPTH);
    assert_true(node->line > 0 && node->column > 0);
    assert_int_equal(node->kind == CP_YAML_SCALAR, node->text != NULL);
    for (size_t i = 0; i < node->n_entries; i++) {
        assert_int_equal(node->kind == CP_YAML_MAPPING, node->entries[i].key != NULL);
        assert_non_null(node->entries[i].value);
        n += count_nodes(node->entries[i].value, depth + 1);
    }
    return n;
}

/* A good text with bytes changed, and texts of YAML's own characters. */
static void generated(void **state)
{
    static const char good[] =
        "version: 1\npolicies:\n  - name: \"a\"\n    match: {user: [x, 'y']}\n"
        "text: |\n  line\n";
    static const char alphabet[] = "a1 \n\n-:,[]{}#&*!|>'\"%@`?~\t\r\xc3\xa4\\";
    uint64_t random = 4711;
    unsigned n_accepted = 0;

    (void)state;
    for (unsigned round = 0; round < 30000; round++) {
        char text[sizeof(good)];
        size_t size = sizeof(good) - 1;
        struct cp_yaml *yaml = NULL;
        struct cp_error error = {0};
        unsigned n_changes = round % 2 ? 1 + round % 5 : (unsigned)size;

        memcpy(text, good, sizeof(good));
        for (unsigned i = 0; i < n_changes; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            text[n_changes == size ? i : (random >> 40) % size] =
                alphabet[(random >> 24) % (sizeof(alphabet) - 1)];
        }
        if (round % 2 == 0)
            size = 1 + (random >> 50) % 24;
        if (cp_yaml_parse("t", text, size, &yaml, &error) < 0) {
            assert_null(yaml);
            assert_true(error.message[0] && error.line > 0 && error.column > 0);
            continue;
        }
        n_accepted++;
        if (yaml->root)
            assert_true(count_nodes(yaml->root, 0) > 0);
        cp_yaml_free(yaml);
    }
    assert_true(n_accepted > 500);
}

static void files(void **state)
{
    struct recorded_root recorded;
    struct cp_yaml *yaml = NULL;
    struct cp_error error = {0};
    char path[128];
    char *large = repeat("# ", "xxxxxxxx", CP_YAML_MAX_SIZE / 8);

    (void)state;
    recorded_root_make(&recorded);
    (void)snprintf(path, sizeof(path), "%s/a.yaml", recorded.path);
    assert_int_equal(cp_yaml_read_file(path, &yaml, &error), -ENOENT);
    assert_string_equal(error.file, path);
    recorded_root_write(&recorded, "a.yaml", "a: 1\nb: [\n");
    assert_int_equal(cp_yaml_read_file(path, &yaml, &error), -EINVAL);
    assert_string_equal(error.file, path);
    assert_int_equal(error.line, 3);
    recorded_root_write(&recorded, "a.yaml", "a: 1\n");
    assert_int_equal(cp_yaml_read_file(path, &yaml, &error), 0);
    assert_string_equal(cp_yaml_get(yaml->root, "a")->text, "1");
    assert_string_equal(yaml->file, path);
    yaml = cp_yaml_free(yaml);
    recorded_root_write(&recorded, "a.yaml", large);
    assert_int_equal(cp_yaml_read_file(path, &yaml, &error), -EFBIG);
    assert_int_equal(cp_yaml_read_file(recorded.path, &yaml, &error), -EISDIR);
    (void)snprintf(path, sizeof(path), "%s/pipe", recorded.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(cp_yaml_read_file(path, &yaml, &error), -EINVAL);
    assert_non_null(strstr(error.message, "regular"));
    assert_null(yaml);
    free(large);
    recorded_root_remove(&recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_with_places),
        cmocka_unit_test(empty_texts),
        cmocka_unit_test(accepted),
        cmocka_unit_test(refused),
        cmocka_unit_test(a_nul_byte),
        cmocka_unit_test(limits),
        cmocka_unit_test(hostile_depth),
        cmocka_unit_test(generated),
        cmocka_unit_test(files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
