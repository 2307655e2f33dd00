/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small YAML documents as a tree, each node with its place: the only user of libyaml.
 *
 * What configuration needs and no more: scalars, sequences and mappings with scalar keys. Refused,
 * with the place: a key given twice, tabs (but in comment lines), anchors, aliases, tags,
 * directives, several documents, texts that are not UTF-8 or hold control characters, and whatever
 * exceeds the limits below. Meaning is the reader's business: scalars stay texts.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define CP_YAML_MAX_SIZE ((size_t)1024 * 1024)
#define CP_YAML_MAX_DEPTH 16u
#define CP_YAML_MAX_NODES 65536u
#define CP_YAML_MAX_KEYS 1024u /* of one mapping */

enum cp_yaml_kind {
    CP_YAML_SCALAR,
    CP_YAML_SEQUENCE,
    CP_YAML_MAPPING,
};

struct cp_yaml_entry;

struct cp_yaml_node {
    enum cp_yaml_kind kind;
    unsigned line; /* 1 and up; where the node begins */
    unsigned column;
    bool quoted; /* scalar in quotes or as a block: "5" is a text, 5 may be a number */
    char *text;  /* scalar: UTF-8, no NUL within; else NULL */
    size_t n_entries;
    struct cp_yaml_entry *entries; /* sequence and mapping, in the order of the file */
};

struct cp_yaml_entry {
    struct cp_yaml_node *key; /* a scalar; NULL in sequences */
    struct cp_yaml_node *value;
};

struct cp_yaml {
    char *file;                /* as given, for messages */
    struct cp_yaml_node *root; /* NULL: the text holds nothing but comments */
};

/*
 * Parses a text of size bytes; file names it in messages. -EINVAL with the place and what is wrong;
 * -EFBIG: more than CP_YAML_MAX_SIZE bytes; -ENOMEM. *ret_yaml belongs to the caller.
 */
int cp_yaml_parse(const char *file, const char *text, size_t size, struct cp_yaml **ret_yaml,
                  struct cp_error *error);

/* Reads and parses a regular file. As cp_yaml_parse(); -ENOENT and other errno of open and read,
 * -EINVAL also for what is not a regular file. Does not block on pipes. */
int cp_yaml_read_file(const char *path, struct cp_yaml **ret_yaml, struct cp_error *error);

struct cp_yaml *cp_yaml_free(struct cp_yaml *yaml); /* accepts and returns NULL */

/* The value of a key, borrowed; NULL if the mapping lacks it, or if node is NULL or no mapping. */
const struct cp_yaml_node *cp_yaml_get(const struct cp_yaml_node *node, const char *key);

/* Fills *error (NULL accepted) with the place of node and returns -EINVAL. */
int cp_yaml_error(const struct cp_yaml *yaml, const struct cp_yaml_node *node,
                  struct cp_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
