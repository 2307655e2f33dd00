/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* getopt_long() over declared options. */
#include "ctl/arguments.h"

#include "base/cleanup.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

enum {
    VALUE_BUS_ADDRESS = 1000,
    VALUE_JSON,
    VALUE_HELP,
    VALUE_VERSION,
    VALUE_VERB, /* and above: the options of the verb, by place */
};

static const struct option global_options[] = {
    {"bus-address", required_argument, NULL, VALUE_BUS_ADDRESS},
    {"json", no_argument, NULL, VALUE_JSON},
    {"help", no_argument, NULL, VALUE_HELP},
    {"version", no_argument, NULL, VALUE_VERSION},
};

/* Enough for the global options, those of a verb and the end mark. */
struct option_table {
    struct option options[CP_ELEMENTS(global_options) + CP_ARGUMENTS_MAX + 1];
};

static void set_global(int value, struct cp_global_options *options)
{
    switch (value) {
    case VALUE_BUS_ADDRESS:
        options->bus_address = optarg;
        break;
    case VALUE_JSON:
        options->json = true;
        break;
    case VALUE_HELP:
        options->help = true;
        break;
    default:
        options->version = true;
    }
}

static const char *name_of(const struct option_table *table, int value)
{
    for (const struct option *option = table->options; option->name; option++)
        if (option->val == value)
            return option->name;
    return NULL;
}

/* Says what getopt_long() did not like. result: '?' or ':'. */
static int refuse(const struct option_table *table, int result, char *argv[],
                  struct cp_error *error)
{
    const char *name = name_of(table, optopt);

    if (result == ':' && name)
        return cp_error_set(error, EINVAL, "option '--%s' needs a value", name);
    if (name)
        return cp_error_set(error, EINVAL, "option '--%s' takes no value", name);
    if (optopt != 0)
        return cp_error_set(error, EINVAL, "unknown option '-%c'", optopt);
    return cp_error_set(error, EINVAL, "unknown option '%s'", argv[optind - 1]);
}

int cp_arguments_parse_global(int argc, char *argv[], struct cp_global_options *options,
                              int *ret_used, struct cp_error *error)
{
    struct option_table table = {0};
    int value;

    for (size_t i = 0; i < CP_ELEMENTS(global_options); i++)
        table.options[i] = global_options[i];
    optind = 0; /* glibc: begin anew */
    opterr = 0;
    while ((value = getopt_long(argc, argv, "+:", table.options, NULL)) != -1) {
        if (value == '?' || value == ':')
            return refuse(&table, value, argv, error);
        set_global(value, options);
    }
    *ret_used = optind;
    return 0;
}

static int check_operands(const struct cp_verb *verb, const struct cp_arguments *arguments,
                          struct cp_error *error)
{
    if (arguments->n_operands < verb->min_operands)
        return cp_error_set(error, EINVAL, "%s is missing", verb->synopsis);
    if (arguments->n_operands > verb->max_operands)
        return cp_error_set(error, EINVAL, "unexpected argument '%s'",
                            arguments->operands[verb->max_operands]);
    return 0;
}

int cp_arguments_parse_verb(const struct cp_verb *verb, int argc, char *argv[],
                            struct cp_global_options *options, struct cp_arguments *ret_arguments,
                            struct cp_error *error)
{
    struct cp_arguments arguments = {0};
    struct option_table table = {0};
    size_t n = CP_ELEMENTS(global_options);
    int value;
    int r;

    for (size_t i = 0; i < n; i++)
        table.options[i] = global_options[i];
    for (size_t i = 0; verb->options[i].name; i++)
        table.options[n + i] = (struct option){
            .name = verb->options[i].name,
            .has_arg = verb->options[i].argument ? required_argument : no_argument,
            .val = VALUE_VERB + (int)i,
        };
    optind = 0;
    opterr = 0;
    while ((value = getopt_long(argc, argv, ":", table.options, NULL)) != -1) {
        if (value == '?' || value == ':')
            return refuse(&table, value, argv, error);
        if (value >= VALUE_VERB)
            arguments.options[value - VALUE_VERB] = optarg ? optarg : "";
        else
            set_global(value, options);
    }
    arguments.n_operands = (size_t)(argc - optind);
    arguments.operands = argv + optind;
    r = options->help || options->version ? 0 : check_operands(verb, &arguments, error);
    if (r < 0)
        return r;
    *ret_arguments = arguments;
    return 0;
}

static void help_option(FILE *out, const char *name, const char *argument, const char *help)
{
    char left[64];

    (void)snprintf(left, sizeof(left), "--%s%s%s", name, argument ? "=" : "",
                   argument ? argument : "");
    (void)fprintf(out, "  %-24s %s\n", left, help);
}

void cp_arguments_help_global(FILE *out)
{
    help_option(out, "bus-address", "ADDRESS", "use this bus instead of the system bus");
    help_option(out, "json", NULL, "print JSON (\"schema\": 1) instead of text");
    help_option(out, "help", NULL, "show this help; behind a command: the help of that command");
    help_option(out, "version", NULL, "show the version");
}

void cp_arguments_help(const struct cp_verb *verb, FILE *out)
{
    (void)fprintf(out, "Usage: coplacectl [OPTION…] %s%s%s\n\n%s\n", verb->name,
                  verb->synopsis[0] ? " " : "", verb->synopsis, verb->description);
    (void)fputs("Options:\n", out);
    for (const struct cp_verb_option *option = verb->options; option->name; option++)
        help_option(out, option->name, option->argument, option->help);
    cp_arguments_help_global(out);
    (void)fprintf(out, "\nExample:\n  %s\n", verb->example);
}

bool cp_arguments_number(const char *text, unsigned long long least, unsigned long long most,
                         unsigned long long *ret_number)
{
    unsigned long long number;
    char *end;

    /* strtoull() takes signs and white space; a number here begins with a digit. */
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < least || number > most)
        return false;
    *ret_number = number;
    return true;
}
