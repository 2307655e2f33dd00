/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * coplacectl: asks coplaced and shows the answer. Global options and the choice of the verb; no
 * logic of its own.
 */
#include "base/clock.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

static const struct cp_verb *const verbs[] = {
    &cp_verb_status, &cp_verb_pairs, &cp_verb_decisions, &cp_verb_explain,   &cp_verb_topology,
    &cp_verb_mode,   &cp_verb_undo,  &cp_verb_allow,     &cp_verb_calibrate,
};

static const struct cp_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < CP_ELEMENTS(verbs); i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static void print_help(void)
{
    (void)fputs("Usage: coplacectl [OPTION…] COMMAND [ARGUMENT…]\n\n"
                "Asks coplaced, which places threads that hand work to each other, and steers "
                "it.\n\nCommands:\n",
                stdout);
    for (size_t i = 0; i < CP_ELEMENTS(verbs); i++)
        (void)printf("  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
    (void)fputs("\nOptions:\n", stdout);
    cp_arguments_help_global(stdout);
    (void)fputs("\nExit status: 0 done, 1 failed, 2 wrong use, 3 coplaced cannot be reached.\n"
                "See coplacectl(1).\n",
                stdout);
}

static int print_version(void)
{
    (void)puts("coplacectl " COPLACE_VERSION);
    return CP_CTL_DONE;
}

static int run_verb(const struct cp_verb *verb, int argc, char *argv[],
                    struct cp_global_options *options)
{
    struct cp_error error = {0};
    struct cp_arguments arguments;
    struct cp_ctl ctl;

    if (cp_arguments_parse_verb(verb, argc, argv, options, &arguments, &error) < 0)
        return cp_ctl_usage(verb, "%s", error.message);
    if (options->help) {
        cp_arguments_help(verb, stdout);
        return CP_CTL_DONE;
    }
    if (options->version)
        return print_version();
    ctl = (struct cp_ctl){.bus_address = options->bus_address, .json = options->json};
    cp_view_init(&ctl.view, stdout, cp_now_ns());
    return verb->run(&ctl, &arguments);
}

static int run(int argc, char *argv[])
{
    struct cp_global_options options = {0};
    struct cp_error error = {0};
    const struct cp_verb *verb;
    int used;

    if (cp_arguments_parse_global(argc, argv, &options, &used, &error) < 0)
        return cp_ctl_usage(NULL, "%s", error.message);
    if (used < argc) {
        verb = find_verb(argv[used]);
        if (!verb)
            return cp_ctl_usage(NULL, "unknown command '%s'", argv[used]);
        return run_verb(verb, argc - used, argv + used, &options);
    }
    if (options.version)
        return print_version();
    if (!options.help)
        return cp_ctl_usage(NULL, "a command is missing");
    print_help();
    return CP_CTL_DONE;
}

int main(int argc, char *argv[])
{
    int status;

    (void)setlocale(LC_CTYPE, "");
    status = run(argc, argv);
    /* An answer that nobody got is no success. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fprintf(stderr, "coplacectl: cannot write to standard output: %s\n", strerror(errno));
        return status == CP_CTL_DONE ? CP_CTL_FAILED : status;
    }
    return status;
}
