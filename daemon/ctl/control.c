/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The verbs that steer the daemon: mode, undo, allow, calibrate. */
#include "bus/client.h"
#include "ctl/ctl.h"
#include "ctl/views.h"

#include <limits.h>

#define CALIBRATE_TIMEOUT_US 60000000ull

enum { OPTION_ALL = 0, OPTION_PERSIST = 0 };

/* Prints a number as JSON under a key or before a word. */
static int put_count(const struct cp_ctl *ctl, const char *key, uint32_t n, const char *sentence)
{
    if (ctl->json)
        return cp_ctl_put_json(cp_ctl_wrap(key, json_integer(n)), false);
    cp_view_line(&ctl->view, CP_STYLE_PLAIN, "%u %s", n, sentence);
    return CP_CTL_DONE;
}

static int show_mode(const struct cp_ctl *ctl, sd_bus *bus)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_json_ json_t *properties = NULL;
    struct cp_error error = {0};
    const char *mode;
    int r = cp_client_get_properties(bus, &reply, &error);

    if (r != 0)
        return cp_ctl_failed(r, &error);
    r = cp_ctl_read(reply, &properties);
    if (r != 0)
        return r;
    mode = cp_json_text(properties, "Mode");
    if (ctl->json)
        return cp_ctl_put_json(cp_ctl_wrap("Mode", json_string(mode)), false);
    cp_view_line(&ctl->view, CP_STYLE_PLAIN, "%s", mode);
    return CP_CTL_DONE;
}

static int run_mode(const struct cp_ctl *ctl, const struct cp_arguments *arguments)
{
    const char *mode = arguments->n_operands > 0 ? arguments->operands[0] : NULL;
    int persist = arguments->options[OPTION_PERSIST] != NULL;
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    struct cp_error error = {0};
    int r = mode ? cp_ctl_word(&cp_verb_mode, mode, "a mode", cp_ctl_modes) : 0;

    if (!mode && persist)
        return cp_ctl_usage(&cp_verb_mode, "--persist needs a mode (off, observe, enforce)");
    if (r == 0)
        r = cp_ctl_open(ctl, &bus);
    if (r != 0)
        return r;
    if (mode) {
        r = cp_client_call(bus, "SetMode", 0, NULL, &error, "sb", mode, persist);
        if (r != 0)
            return cp_ctl_failed(r, &error);
    }
    /* What is in effect may be lower than what was asked for. */
    return show_mode(ctl, bus);
}

const struct cp_verb cp_verb_mode = {
    .name = "mode",
    .synopsis = "[off|observe|enforce [--persist]]",
    .summary = "show or set how far coplaced goes",
    .description =
        "off: look at nothing. observe: decide and record, change nothing. enforce: place.\n"
        "Lasts until the daemon restarts unless --persist is given. Prints the mode that\n"
        "is in effect.\n",
    .example = "coplacectl mode observe",
    .max_operands = 1,
    .options = {[OPTION_PERSIST] = {"persist", NULL, "keep the mode over restarts"}},
    .run = run_mode,
};

/* Either --all or one operand, not both. 0 or CP_CTL_USAGE, printed. */
static int check_one_or_all(const struct cp_verb *verb, const struct cp_arguments *arguments)
{
    bool all = arguments->options[OPTION_ALL] != NULL;

    if (all && arguments->n_operands > 0)
        return cp_ctl_usage(verb, "--all and '%s' exclude each other", arguments->operands[0]);
    if (!all && arguments->n_operands == 0)
        return cp_ctl_usage(verb, "%s is missing", verb->synopsis);
    return 0;
}

static int undo_one(const struct cp_ctl *ctl, sd_bus *bus, uint64_t id)
{
    struct cp_error error = {0};
    int r = cp_client_call(bus, "Undo", 0, NULL, &error, "t", id);

    return r == 0 ? put_count(ctl, "undone", 1, "undone") : cp_ctl_failed(r, &error);
}

/* Prints the number that a reply consists of. An exit status. */
static int put_reply_count(const struct cp_ctl *ctl, sd_bus_message *reply, const char *key,
                           const char *sentence)
{
    _cleanup_json_ json_t *n = NULL;
    int r = cp_ctl_read(reply, &n);

    return r == 0 ? put_count(ctl, key, (uint32_t)json_integer_value(n), sentence) : r;
}

static int undo_all(const struct cp_ctl *ctl, sd_bus *bus)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    struct cp_error error = {0};
    int r = cp_client_call(bus, "UndoAll", 0, &reply, &error, "");

    return r == 0 ? put_reply_count(ctl, reply, "undone", "undone") : cp_ctl_failed(r, &error);
}

static int run_undo(const struct cp_ctl *ctl, const struct cp_arguments *arguments)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    bool all = arguments->options[OPTION_ALL] != NULL;
    unsigned long long id = 0;
    int r = check_one_or_all(&cp_verb_undo, arguments);

    if (r == 0 && !all)
        r = cp_ctl_number(&cp_verb_undo, arguments->operands[0], "the id of a decision", 1,
                          UINT64_MAX, &id);
    if (r == 0)
        r = cp_ctl_open(ctl, &bus);
    if (r != 0)
        return r;
    return all ? undo_all(ctl, bus) : undo_one(ctl, bus, id);
}

const struct cp_verb cp_verb_undo = {
    .name = "undo",
    .synopsis = "ID|--all",
    .summary = "give masks back and leave the pair alone",
    .description =
        "Undoes a decision: both threads get the mask back that they had, and the pair is\n"
        "left alone until 'coplacectl allow' or the end of a thread.\n",
    .example = "coplacectl undo 12",
    .max_operands = 1,
    .options = {[OPTION_ALL] = {"all", NULL, "every decision that is in effect"}},
    .run = run_undo,
};

/* A TID is used again in time, so the daemon is first asked who that is. 0 or an exit status. */
static int find_start(sd_bus *bus, uint32_t tid, uint64_t *ret_start)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_json_ json_t *explanation = NULL;
    struct cp_error error = {0};
    int r = cp_client_call(bus, "ExplainTask", 0, &reply, &error, "(ut)", tid, (uint64_t)0);

    if (r != 0)
        return cp_ctl_failed(r, &error);
    r = cp_ctl_read(reply, &explanation);
    if (r != 0)
        return r;
    *ret_start = cp_json_count(json_object_get(explanation, "task"), "start");
    return 0;
}

static int run_allow(const struct cp_ctl *ctl, const struct cp_arguments *arguments)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    bool all = arguments->options[OPTION_ALL] != NULL;
    struct cp_error error = {0};
    unsigned long long tid = 0;
    uint64_t start = 0;
    int r = check_one_or_all(&cp_verb_allow, arguments);

    if (r == 0 && !all)
        r = cp_ctl_number(&cp_verb_allow, arguments->operands[0], "a TID", 1, INT_MAX, &tid);
    if (r == 0)
        r = cp_ctl_open(ctl, &bus);
    if (r == 0 && !all)
        r = find_start(bus, (uint32_t)tid, &start);
    if (r != 0)
        return r;
    r = cp_client_call(bus, "Allow", 0, &reply, &error, "(ut)", (uint32_t)tid, start);
    return r == 0 ? put_reply_count(ctl, reply, "lifted", "lifted") : cp_ctl_failed(r, &error);
}

const struct cp_verb cp_verb_allow = {
    .name = "allow",
    .synopsis = "TID|--all",
    .summary = "lift what keeps a thread from being placed again",
    .description =
        "Lifts the vetoes (after 'coplacectl undo') and the waiting times (after a placement\n"
        "that did not pay) of a thread.\n",
    .example = "coplacectl allow --all",
    .max_operands = 1,
    .options = {[OPTION_ALL] = {"all", NULL, "of every thread"}},
    .run = run_allow,
};

static int run_calibrate(const struct cp_ctl *ctl, const struct cp_arguments *arguments)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    _cleanup_json_ json_t *costs = NULL;
    struct cp_error error = {0};
    int r = cp_ctl_open(ctl, &bus);

    (void)arguments;
    if (r != 0)
        return r;
    r = cp_client_call(bus, "Calibrate", CALIBRATE_TIMEOUT_US, &reply, &error, "");
    if (r != 0)
        return cp_ctl_failed(r, &error);
    r = cp_ctl_read(reply, &costs);
    if (r != 0)
        return r;
    if (ctl->json)
        return cp_ctl_put_json(cp_ctl_wrap("costs", TAKE_PTR(costs)), false);
    return cp_ctl_viewed(cp_view_costs(&ctl->view, costs));
}

const struct cp_verb cp_verb_calibrate = {
    .name = "calibrate",
    .synopsis = "",
    .summary = "measure the cost of a hand-off again",
    .description =
        "Measures what a hand-off costs at each level of this machine (about two seconds)\n"
        "and prints the new table.\n",
    .example = "coplacectl calibrate",
    .run = run_calibrate,
};
