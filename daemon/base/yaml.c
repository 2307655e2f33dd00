/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * YAML to a tree by libyaml's events. Must not give meaning to scalars and must not log.
 *
 * libyaml accepts duplicate keys, and tells of bad bytes by offset only: both are looked for here,
 * the bytes before it sees them.
 */
#include "base/yaml.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

/* Allows recursion: the depth of a tree is bounded. */
static void node_free(struct cp_yaml_node *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->n_entries; i++) {
        node_free(node->entries[i].key);
        node_free(node->entries[i].value);
    }
    free(node->entries);
    free(node->text);
    free(node);
}

struct cp_yaml *cp_yaml_free(struct cp_yaml *yaml)
{
    if (yaml) {
        node_free(yaml->root);
        free(yaml->file);
        free(yaml);
    }
    return NULL;
}

const struct cp_yaml_node *cp_yaml_get(const struct cp_yaml_node *node, const char *key)
{
    if (!node || node->kind != CP_YAML_MAPPING)
        return NULL;
    for (size_t i = 0; i < node->n_entries; i++)
        if (strcmp(node->entries[i].key->text, key) == 0)
            return node->entries[i].value;
    return NULL;
}

int cp_yaml_error(const struct cp_yaml *yaml, const struct cp_yaml_node *node,
                  struct cp_error *error, const char *format, ...)
{
    char message[sizeof(error->message)];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return cp_error_set_at(error, EINVAL, yaml->file, node->line, node->column, "%s", message);
}

/* What is wrong with a character anywhere in a text; NULL: nothing. */
static const char *refuse_character(uint32_t c, size_t offset)
{
    if (c == '\t')
        return "a tab: use spaces";
    if (c == '\r')
        return "a carriage return without a newline";
    if ((c < 0x20 && c != '\n') || (c >= 0x7f && c < 0xa0))
        return "a control character";
    /* libyaml takes these for line ends, which no editor shows. */
    if (c == 0x2028 || c == 0x2029)
        return "a Unicode line or paragraph separator";
    if ((c == 0xfeff && offset > 0) || c == 0xfffe || c == 0xffff)
        return "a character that is no text";
    return NULL;
}

/* Checks encoding and characters of the whole text, comments included. */
static int check_characters(const char *file, const char *text, size_t size, struct cp_error *error)
{
    unsigned line = 1;
    unsigned column = 1;
    bool blank = true; /* nothing but blanks on this line so far */
    bool comment = false;

    for (size_t offset = 0, length; offset < size; offset += length) {
        uint32_t c;
        const char *why;

        length = cp_utf8_decode(text + offset, size - offset, &c);
        if (length == 0)
            return cp_error_set_at(error, EINVAL, file, line, column,
                                   "bytes that are not UTF-8: save the file as UTF-8");
        why = refuse_character(c, offset);
        if (c == '\r' && offset + 1 < size && text[offset + 1] == '\n')
            why = NULL;
        if (c == '\t' && comment)
            why = NULL;
        if (why)
            return cp_error_set_at(error, EINVAL, file, line, column, "%s is not allowed here",
                                   why);
        comment = comment || (blank && c == '#');
        blank = blank && c == ' ';
        column++;
        if (c == '\n') {
            line++;
            column = 1;
            blank = true;
            comment = false;
        }
    }
    return 0;
}

struct builder {
    struct cp_yaml *yaml;
    struct cp_yaml_node *open[CP_YAML_MAX_DEPTH]; /* borrowed; the innermost one last */
    unsigned depth;
    unsigned n_nodes;
    unsigned n_documents;
    struct cp_error *error;
};

static int refuse(const struct builder *builder, yaml_mark_t mark, const char *what)
{
    return cp_error_set_at(builder->error, EINVAL, builder->yaml->file, (unsigned)mark.line + 1,
                           (unsigned)mark.column + 1, "%s", what);
}

static int append(struct cp_yaml_node *parent, struct cp_yaml_entry entry)
{
    /* Full at each power of two. */
    if ((parent->n_entries & (parent->n_entries - 1)) == 0) {
        size_t wanted = parent->n_entries ? parent->n_entries * 2 : 1;
        struct cp_yaml_entry *larger = reallocarray(parent->entries, wanted, sizeof(*larger));

        if (!larger)
            return -ENOMEM;
        parent->entries = larger;
    }
    parent->entries[parent->n_entries++] = entry;
    return 0;
}

static int add_key(const struct builder *builder, struct cp_yaml_node *mapping,
                   struct cp_yaml_node *key)
{
    int r;

    if (key->kind != CP_YAML_SCALAR)
        return cp_yaml_error(builder->yaml, key, builder->error, "a key must be a plain word");
    if (!key->text[0])
        return cp_yaml_error(builder->yaml, key, builder->error, "a key is missing before \":\"");
    if (mapping->n_entries == CP_YAML_MAX_KEYS)
        return cp_yaml_error(builder->yaml, key, builder->error, "more than %u keys",
                             CP_YAML_MAX_KEYS);
    for (size_t i = 0; i < mapping->n_entries; i++) {
        const struct cp_yaml_node *earlier = mapping->entries[i].key;

        if (strcmp(earlier->text, key->text) == 0)
            return cp_yaml_error(builder->yaml, key, builder->error,
                                 "key \"%s\" is given twice, first in line %u", key->text,
                                 earlier->line);
    }
    r = append(mapping, (struct cp_yaml_entry){.key = key});
    return r < 0 ? cp_error_set(builder->error, ENOMEM, "out of memory") : 0;
}

/* Hangs a node into the tree, which owns it then; on failure it still is the caller's. */
static int attach(struct builder *builder, struct cp_yaml_node *node)
{
    struct cp_yaml_node *parent;

    if (builder->depth == 0) {
        builder->yaml->root = node;
        return 0;
    }
    parent = builder->open[builder->depth - 1];
    if (parent->kind == CP_YAML_SEQUENCE)
        return append(parent, (struct cp_yaml_entry){.value = node}) < 0
                   ? cp_error_set(builder->error, ENOMEM, "out of memory")
                   : 0;
    if (parent->n_entries > 0 && !parent->entries[parent->n_entries - 1].value) {
        parent->entries[parent->n_entries - 1].value = node;
        return 0;
    }
    return add_key(builder, parent, node);
}

static struct cp_yaml_node *node_new(enum cp_yaml_kind kind, const yaml_event_t *event)
{
    struct cp_yaml_node *node = calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    node->kind = kind;
    node->line = (unsigned)event->start_mark.line + 1;
    node->column = (unsigned)event->start_mark.column + 1;
    if (kind != CP_YAML_SCALAR)
        return node;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->text = strndup((const char *)event->data.scalar.value, event->data.scalar.length);
    if (!node->text) {
        free(node);
        return NULL;
    }
    return node;
}

static int add_node(struct builder *builder, enum cp_yaml_kind kind, const yaml_event_t *event)
{
    struct cp_yaml_node *node;
    int r;

    if (builder->n_nodes == CP_YAML_MAX_NODES)
        return refuse(builder, event->start_mark, "too many values for one file");
    if (kind != CP_YAML_SCALAR && builder->depth == CP_YAML_MAX_DEPTH)
        return refuse(builder, event->start_mark, "nested too deeply");
    node = node_new(kind, event);
    if (!node)
        return cp_error_set(builder->error, ENOMEM, "out of memory");
    builder->n_nodes++;
    r = attach(builder, node);
    if (r < 0) {
        node_free(node);
        return r;
    }
    if (kind != CP_YAML_SCALAR)
        builder->open[builder->depth++] = node;
    return 0;
}

/* Anchors and tags: what a node may carry beside its value. */
static int check_properties(const struct builder *builder, const yaml_event_t *event,
                            const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        return refuse(builder, event->start_mark, "anchors (\"&\") are not supported");
    if (tag)
        return refuse(builder, event->start_mark, "tags (\"!\") are not supported");
    return 0;
}

static int begin_document(struct builder *builder, const yaml_event_t *event)
{
    const yaml_tag_directive_t *tags = event->data.document_start.tag_directives.start;

    if (event->data.document_start.version_directive ||
        tags != event->data.document_start.tag_directives.end)
        return refuse(builder, event->start_mark, "directives (\"%\") are not supported");
    if (builder->n_documents++ > 0)
        return refuse(builder, event->start_mark, "a second document begins here: one to a file");
    return 0;
}

static int handle_event(struct builder *builder, const yaml_event_t *event)
{
    int r;

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return begin_document(builder, event);
    case YAML_ALIAS_EVENT:
        return refuse(builder, event->start_mark, "aliases (\"*\") are not supported");
    case YAML_SCALAR_EVENT:
        r = check_properties(builder, event, event->data.scalar.anchor, event->data.scalar.tag);
        if (r < 0)
            return r;
        if (memchr(event->data.scalar.value, '\0', event->data.scalar.length))
            return refuse(builder, event->start_mark, "a text must not hold NUL");
        return add_node(builder, CP_YAML_SCALAR, event);
    case YAML_SEQUENCE_START_EVENT:
        r = check_properties(builder, event, event->data.sequence_start.anchor,
                             event->data.sequence_start.tag);
        return r < 0 ? r : add_node(builder, CP_YAML_SEQUENCE, event);
    case YAML_MAPPING_START_EVENT:
        r = check_properties(builder, event, event->data.mapping_start.anchor,
                             event->data.mapping_start.tag);
        return r < 0 ? r : add_node(builder, CP_YAML_MAPPING, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        builder->depth--;
        return 0;
    default:
        return 0;
    }
}

static int syntax_error(const struct builder *builder, const yaml_parser_t *parser)
{
    char what[256];

    if (parser->error == YAML_MEMORY_ERROR)
        return cp_error_set(builder->error, ENOMEM, "out of memory");
    (void)snprintf(what, sizeof(what), "%s%s%s", parser->problem ? parser->problem : "no YAML",
                   parser->context ? ", " : "", parser->context ? parser->context : "");
    return refuse(builder, parser->problem_mark, what);
}

/* Runs the parser over the text to its end, or to the first error. */
static int build(struct builder *builder, const char *text, size_t size)
{
    yaml_parser_t parser;
    bool done = false;
    int r = 0;

    if (!yaml_parser_initialize(&parser))
        return cp_error_set(builder->error, ENOMEM, "out of memory");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    while (r == 0 && !done) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event)) {
            r = syntax_error(builder, &parser);
            break;
        }
        r = handle_event(builder, &event);
        done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return r;
}

int cp_yaml_parse(const char *file, const char *text, size_t size, struct cp_yaml **ret_yaml,
                  struct cp_error *error)
{
    struct builder builder = {.error = error};
    int r;

    if (size > CP_YAML_MAX_SIZE)
        return cp_error_set_at(error, EFBIG, file, 0, 0, "larger than %zu bytes", CP_YAML_MAX_SIZE);
    r = check_characters(file, text, size, error);
    if (r < 0)
        return r;
    builder.yaml = calloc(1, sizeof(*builder.yaml));
    if (builder.yaml)
        builder.yaml->file = strdup(file);
    if (!builder.yaml || !builder.yaml->file)
        r = cp_error_set(error, ENOMEM, "out of memory");
    else
        r = build(&builder, text, size);
    if (r < 0) {
        cp_yaml_free(builder.yaml);
        return r;
    }
    *ret_yaml = builder.yaml;
    return 0;
}

/* Reads at most CP_YAML_MAX_SIZE bytes of a regular file into a new buffer. */
static int read_text(int fd, char **ret_text, size_t *ret_size)
{
    struct stat status;
    char *text;
    size_t size = 0;
    ssize_t n;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
    if (status.st_size > (off_t)CP_YAML_MAX_SIZE)
        return -EFBIG;
    text = malloc(CP_YAML_MAX_SIZE + 1);
    if (!text)
        return -ENOMEM;
    do {
        n = read(fd, text + size, CP_YAML_MAX_SIZE + 1 - size);
        if (n > 0)
            size += (size_t)n;
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (n < 0) {
        int r = -errno;

        free(text);
        return r;
    }
    *ret_text = text;
    *ret_size = size;
    return 0;
}

int cp_yaml_read_file(const char *path, struct cp_yaml **ret_yaml, struct cp_error *error)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *text = NULL;
    size_t size = 0;
    int r = fd < 0 ? -errno : read_text(fd, &text, &size);

    if (r == -EFBIG)
        return cp_error_set_at(error, EFBIG, path, 0, 0, "larger than %zu bytes", CP_YAML_MAX_SIZE);
    if (r == -EINVAL)
        return cp_error_set_at(error, EINVAL, path, 0, 0, "not a regular file");
    if (r < 0)
        return cp_error_set_at(error, -r, path, 0, 0, "cannot be read: %s", strerror(-r));
    r = cp_yaml_parse(path, text, size, ret_yaml, error);
    free(text);
    return r;
}
