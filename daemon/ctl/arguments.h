/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line: what a verb declares is what is parsed and what its --help shows, so the two
 * cannot differ. Does not print errors and does not exit.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define CP_ARGUMENTS_MAX 4u /* options of one verb */

struct cp_verb_option {
    const char *name;     /* without the dashes; NULL ends the list */
    const char *argument; /* what its value is called; NULL: it takes none */
    const char *help;     /* one line */
};

/* The options that every verb takes, before and behind its name. */
struct cp_global_options {
    const char *bus_address; /* NULL: the system bus */
    bool json;
    bool help;
    bool version;
};

struct cp_arguments {
    const char *options[CP_ARGUMENTS_MAX]; /* by place in the declaration: NULL not given, "" given
                                              without a value */
    size_t n_operands;
    char *const *operands;
};

struct cp_ctl;

struct cp_verb {
    const char *name;
    const char *synopsis;    /* of options and operands; may be "" */
    const char *summary;     /* a few words */
    const char *description; /* some lines, each ends with a newline */
    const char *example;     /* a command line with its purpose */
    size_t min_operands;
    size_t max_operands;
    struct cp_verb_option options[CP_ARGUMENTS_MAX + 1];
    int (*run)(const struct cp_ctl *ctl, const struct cp_arguments *arguments); /* exit status */
};

/*
 * Parses what stands before the verb. *ret_used is the index of the verb in argv (argc if there is
 * none). -EINVAL with *error in one line.
 */
int cp_arguments_parse_global(int argc, char *argv[], struct cp_global_options *options,
                              int *ret_used, struct cp_error *error);

/*
 * Parses what follows the verb; argv[0] is the verb. Operands may stand between options; argv is
 * reordered and must outlive *ret_arguments. Does not count the operands if help is asked for.
 * -EINVAL with *error in one line.
 */
int cp_arguments_parse_verb(const struct cp_verb *verb, int argc, char *argv[],
                            struct cp_global_options *options, struct cp_arguments *ret_arguments,
                            struct cp_error *error);

/* Prints the help of a verb. */
void cp_arguments_help(const struct cp_verb *verb, FILE *out);
/* Prints the lines of the global options. */
void cp_arguments_help_global(FILE *out);

/* A decimal number from least to most, nothing before or behind it. */
bool cp_arguments_number(const char *text, unsigned long long least, unsigned long long most,
                         unsigned long long *ret_number);
