/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* coplaced: options, logging, run. No logic. */
#include "base/cleanup.h"
#include "base/log.h"
#include "machine/costs.h"
#include "manager.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help_text[] =
    "Usage: coplaced [OPTION]…\n"
    "\n"
    "Learns which threads hand work to each other and places them where that is cheapest.\n"
    "\n"
    "What it may do:\n"
    "  --mode=off|observe|enforce      look at nothing; decide and record only; place (default)\n"
    "  --pairs=auto|same-cpu|same-core|same-llc|same-node|off\n"
    "                                  where pairs go; auto: where the cost model gains (default)\n"
    "  --affinity=respect|override     leave tasks alone that others have bound (default), or\n"
    "                                  replace such masks for the time of a placement\n"
    "  --keep=if-helped|always         undo a placement that did not pay (default), or never\n"
    "  --min-rate=RATE                 hand-offs a second that make a pair (default 500/s)\n"
    "  --min-gain=SHARE                predicted gain, of one CPU's time (default 0.1%)\n"
    "  --margin=SHARE                  by which a change must win to be kept (default 5%)\n"
    "  --settle=TIME                   between two moves of one task (default 10s)\n"
    "  --min-age=TIME                  younger tasks are left alone (default 300ms)\n"
    "  --across                        also pairs of tasks with different owners\n"
    "  --nodes=home|any                keep tasks on the NUMA node of their memory (default home)\n"
    "  --costs=LIST                    hand-off costs, as cpu=1us,llc=4us; the rest is measured\n"
    "\n"
    "Where it runs:\n"
    "  --bus-address=ADDRESS           a D-Bus other than the system bus\n"
    "  --run-directory=DIR             journal of changed masks (default /run/coplace)\n"
    "  --state-directory=DIR           cost table, mode (default /var/lib/coplace)\n"
    "  --on-exit=restore|keep          what a clean stop does with placements (default restore)\n"
    "  --no-bpf                        run without a wake source (nothing is placed)\n"
    "\n"
    "  --restore                       give back every mask that an earlier run left, then exit\n"
    "  --log-level=error|warning|notice|info|debug   (default info)\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 usage.\n";

enum {
    OPTION_MODE = 256,
    OPTION_PAIRS,
    OPTION_AFFINITY,
    OPTION_KEEP,
    OPTION_MIN_RATE,
    OPTION_MIN_GAIN,
    OPTION_MARGIN,
    OPTION_SETTLE,
    OPTION_MIN_AGE,
    OPTION_ACROSS,
    OPTION_NODES,
    OPTION_COSTS,
    OPTION_BUS_ADDRESS,
    OPTION_RUN_DIRECTORY,
    OPTION_STATE_DIRECTORY,
    OPTION_ON_EXIT,
    OPTION_NO_BPF,
    OPTION_RESTORE,
    OPTION_LOG_LEVEL,
    OPTION_HELP,
    OPTION_VERSION,
};

static const struct option long_options[] = {
    {"mode", required_argument, NULL, OPTION_MODE},
    {"pairs", required_argument, NULL, OPTION_PAIRS},
    {"affinity", required_argument, NULL, OPTION_AFFINITY},
    {"keep", required_argument, NULL, OPTION_KEEP},
    {"min-rate", required_argument, NULL, OPTION_MIN_RATE},
    {"min-gain", required_argument, NULL, OPTION_MIN_GAIN},
    {"margin", required_argument, NULL, OPTION_MARGIN},
    {"settle", required_argument, NULL, OPTION_SETTLE},
    {"min-age", required_argument, NULL, OPTION_MIN_AGE},
    {"across", no_argument, NULL, OPTION_ACROSS},
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"costs", required_argument, NULL, OPTION_COSTS},
    {"bus-address", required_argument, NULL, OPTION_BUS_ADDRESS},
    {"run-directory", required_argument, NULL, OPTION_RUN_DIRECTORY},
    {"state-directory", required_argument, NULL, OPTION_STATE_DIRECTORY},
    {"on-exit", required_argument, NULL, OPTION_ON_EXIT},
    {"no-bpf", no_argument, NULL, OPTION_NO_BPF},
    {"restore", no_argument, NULL, OPTION_RESTORE},
    {"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

#define CP_USAGE 2

static bool arg_restore;
static int arg_log_level = LOG_INFO;
static struct cp_manager_config arg_config = {
    .run_directory = "/run/coplace",
    .state_directory = "/var/lib/coplace",
    .use_bpf = true,
};

/* Looks a word up in a NULL-terminated list. Its place, or -1. */
static int find_word(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

static int parse_policy_option(int option, const char *text, struct cp_error *error)
{
    struct cp_policy *policy = &arg_config.policy;
    double share;
    int r;

    switch (option) {
    case OPTION_MODE:
        policy->mode = cp_mode_from_string(text);
        arg_config.mode_given = true;
        return policy->mode == CP_MODE_INVALID ? -1 : 0;
    case OPTION_PAIRS:
        policy->pairs = cp_pair_level_from_string(text);
        return policy->pairs == CP_PAIRS_INVALID ? -1 : 0;
    case OPTION_AFFINITY:
        policy->affinity = cp_affinity_from_string(text);
        return policy->affinity == CP_AFFINITY_INVALID ? -1 : 0;
    case OPTION_KEEP:
        policy->keep = cp_keep_from_string(text);
        return policy->keep == CP_KEEP_INVALID ? -1 : 0;
    case OPTION_MIN_RATE:
        return cp_parse_rate(text, &policy->min_rate_hz, error);
    case OPTION_MIN_GAIN:
        r = cp_parse_share(text, &share, error);
        if (r == 0)
            policy->min_gain_ns_per_s = share * 1e9;
        return r;
    case OPTION_MARGIN:
        return cp_parse_share(text, &policy->margin, error);
    case OPTION_SETTLE:
        return cp_parse_time(text, &policy->settle_ns, error);
    case OPTION_MIN_AGE:
        return cp_parse_time(text, &policy->min_age_ns, error);
    default:
        return -1;
    }
}

static int parse_option(int option, const char *text, struct cp_error *error)
{
    static const char *const nodes[] = {"home", "any", NULL};
    static const char *const on_exit_words[] = {"restore", "keep", NULL};
    struct cp_costs tried;
    static const char *const levels[] = {"error", "warning", "notice", "info", "debug", NULL};
    int word;

    switch (option) {
    case OPTION_ACROSS:
        arg_config.policy.across = true;
        return 0;
    case OPTION_NODES:
        word = find_word(nodes, text);
        arg_config.policy.any_node = word == 1;
        return word < 0 ? -1 : 0;
    case OPTION_COSTS:
        /* Tried on a table of its own, so that a mistake is a usage error before anything opens. */
        cp_costs_init_default(&tried);
        arg_config.costs_text = text;
        return cp_costs_configure(&tried, text, error);
    case OPTION_BUS_ADDRESS:
        arg_config.bus_address = text;
        return 0;
    case OPTION_RUN_DIRECTORY:
        arg_config.run_directory = text;
        return 0;
    case OPTION_STATE_DIRECTORY:
        arg_config.state_directory = text;
        return 0;
    case OPTION_ON_EXIT:
        word = find_word(on_exit_words, text);
        arg_config.keep_on_exit = word == 1;
        return word < 0 ? -1 : 0;
    case OPTION_NO_BPF:
        arg_config.use_bpf = false;
        return 0;
    case OPTION_RESTORE:
        arg_restore = true;
        return 0;
    case OPTION_LOG_LEVEL:
        word = find_word(levels, text);
        arg_log_level = LOG_ERR + word;
        return word < 0 ? -1 : 0;
    default:
        return parse_policy_option(option, text, error);
    }
}

static const char *option_name(int option)
{
    for (const struct option *entry = long_options; entry->name; entry++)
        if (entry->val == option)
            return entry->name;
    return "?";
}

/* 0: go on; 1: all is done (help, version); CP_USAGE. */
static int parse_options(int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
        struct cp_error error = {0};

        if (option == OPTION_HELP) {
            fputs(help_text, stdout);
            return 1;
        }
        if (option == OPTION_VERSION) {
            puts("coplaced " COPLACE_VERSION);
            return 1;
        }
        if (option == '?') {
            fputs("Try 'coplaced --help'.\n", stderr);
            return CP_USAGE;
        }
        if (parse_option(option, optarg, &error) < 0) {
            fprintf(stderr, "coplaced: --%s: %s%s%s\nTry 'coplaced --help'.\n", option_name(option),
                    error.message[0] ? error.message : "no such value: '",
                    error.message[0] ? "" : optarg, error.message[0] ? "" : "'");
            return CP_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "coplaced: unexpected argument '%s'\nTry 'coplaced --help'.\n",
                argv[optind]);
        return CP_USAGE;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct cp_manager *manager = NULL;
    struct cp_error error = {0};
    char text[1200];
    int r;

    cp_policy_init_builtin(&arg_config.policy);
    r = parse_options(argc, argv);
    if (r != 0)
        return r == 1 ? 0 : r;
    cp_log_setup("coplaced", arg_log_level);
    if (geteuid() != 0) {
        cp_log_error("coplaced must be root: it changes the CPU masks of other users' tasks");
        return 1;
    }
    if (arg_restore) {
        r = cp_restore_run(arg_config.run_directory, &error);
    } else {
        r = cp_manager_new(&arg_config, &manager, &error);
        if (r >= 0)
            r = cp_manager_run(manager, &error);
        cp_manager_free(manager);
    }
    if (r < 0) {
        cp_error_format(&error, text, sizeof(text));
        cp_log_error("%s", text);
        return 1;
    }
    return 0;
}
