/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * coplacectl decisions --follow. Signals carry an id and a state only (everybody may hear them), so
 * each decision is fetched when its signal comes; one that we may not see is passed over.
 */
#include "bus/client.h"
#include "bus/interface.h"
#include "ctl/decisions.h"
#include "ctl/views.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-event.h>

#define REMEMBERED 256u

struct follower {
    const struct cp_ctl *ctl;
    sd_event *event;
    sd_bus *bus;
    const char *state; /* NULL: any */
    /* What was last printed of a decision, by id: by the time a signal is handled the decision may
     * have gone on, and the next signal would print the same again. */
    struct {
        uint64_t id;
        char state[16];
    } printed[REMEMBERED];
};

/* true if this state of the decision is new to us. */
static bool remember(struct follower *follower, uint64_t id, const char *state)
{
    size_t at = id % REMEMBERED;

    if (follower->printed[at].id == id && strcmp(follower->printed[at].state, state) == 0)
        return false;
    follower->printed[at].id = id;
    (void)snprintf(follower->printed[at].state, sizeof(follower->printed[at].state), "%s", state);
    return true;
}

/* 0 or an exit status. */
static int print_decision(struct follower *follower, json_t *decision)
{
    const char *state = cp_json_text(decision, "state");
    int r;

    if (!remember(follower, cp_json_count(decision, "id"), state))
        return 0;
    if (follower->state && strcmp(follower->state, state) != 0)
        return 0;
    if (follower->ctl->json)
        r = cp_ctl_put_json(json_incref(decision), true);
    else
        r = cp_ctl_viewed(cp_view_decision_line(&follower->ctl->view, decision));
    /* The other end of a pipe wants each line when it happens. */
    if (r == 0 && fflush(stdout) != 0)
        r = CP_CTL_FAILED;
    return r;
}

static int print_newest(struct follower *follower, size_t limit)
{
    _cleanup_json_ json_t *decisions = NULL;
    int r = cp_ctl_fetch_newest(follower->bus, follower->state, limit, &decisions);

    for (size_t i = 0; r == 0 && i < json_array_size(decisions); i++)
        r = print_decision(follower, json_array_get(decisions, i));
    return r;
}

static int on_decision(sd_bus_message *message, void *userdata, sd_bus_error *ret_error)
{
    struct follower *follower = userdata;
    _cleanup_json_ json_t *decisions = NULL;
    json_t *decision;
    uint64_t cursor;
    uint64_t id;
    int r = sd_bus_message_read(message, "t", &id);

    (void)ret_error;
    if (r < 0 || id == 0)
        return 0;
    r = cp_ctl_fetch_decisions(follower->bus, NULL, id - 1, 1, &decisions, &cursor);
    decision = json_array_get(decisions, 0);
    /* Another id: that decision is not for us to see, or already forgotten. */
    if (r == 0 && decision && cp_json_count(decision, "id") == id)
        r = print_decision(follower, decision);
    if (r != 0)
        (void)sd_event_exit(follower->event, r);
    return 0;
}

static int daemon_gone(struct follower *follower, const char *how)
{
    struct cp_error error = {0};

    (void)cp_error_set(&error, ENOTCONN, "%s", how);
    return sd_event_exit(follower->event, cp_ctl_failed(CP_CLIENT_NO_DAEMON, &error));
}

static int on_owner_changed(sd_bus_message *message, void *userdata, sd_bus_error *ret_error)
{
    const char *name;
    const char *old_owner;
    const char *new_owner;
    int r = sd_bus_message_read(message, "sss", &name, &old_owner, &new_owner);

    (void)ret_error;
    return r >= 0 && old_owner[0] ? daemon_gone(userdata, "coplaced has left the bus") : 0;
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *ret_error)
{
    (void)message;
    (void)ret_error;
    return daemon_gone(userdata, "the connection to the bus was lost");
}

static int subscribe(struct follower *follower)
{
    static const char *const signals[] = {"DecisionMade", "DecisionChanged"};
    int r = 0;

    for (size_t i = 0; r >= 0 && i < CP_ELEMENTS(signals); i++)
        r = sd_bus_match_signal(follower->bus, NULL, CP_BUS_NAME, CP_BUS_PATH, CP_BUS_MANAGER,
                                signals[i], on_decision, follower);
    if (r >= 0)
        r = sd_bus_add_match(follower->bus, NULL,
                             "type='signal',sender='org.freedesktop.DBus',"
                             "interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                             "arg0='" CP_BUS_NAME "'",
                             on_owner_changed, follower);
    if (r >= 0)
        r = sd_bus_match_signal(follower->bus, NULL, "org.freedesktop.DBus.Local",
                                "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                                "Disconnected", on_disconnected, follower);
    return r;
}

static int attach(struct follower *follower)
{
    sigset_t mask;
    int r;

    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGINT);
    (void)sigaddset(&mask, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return -errno;
    /* Without handlers of their own they end the loop with the status given as userdata. */
    r = sd_event_add_signal(follower->event, NULL, SIGINT, NULL, NULL);
    if (r >= 0)
        r = sd_event_add_signal(follower->event, NULL, SIGTERM, NULL, NULL);
    if (r >= 0)
        r = sd_bus_attach_event(follower->bus, follower->event, SD_EVENT_PRIORITY_NORMAL);
    return r;
}

int cp_ctl_follow(const struct cp_ctl *ctl, sd_bus *bus, const char *state, size_t limit)
{
    _cleanup_(sd_event_unrefp) sd_event *event = NULL;
    struct follower follower = {.ctl = ctl, .bus = bus, .state = state};
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    struct cp_error error = {0};
    int r = sd_event_new(&event);

    follower.event = event;
    if (r >= 0)
        r = attach(&follower);
    /* Before the first question, so that nothing falls between answer and signals. */
    if (r >= 0)
        r = subscribe(&follower);
    if (r < 0)
        return cp_ctl_failed(r, &error);
    /* Without a daemon there is nothing to wait for. */
    r = cp_client_get_properties(bus, &reply, &error);
    if (r != 0)
        return cp_ctl_failed(r, &error);
    r = limit > 0 ? print_newest(&follower, limit) : 0;
    if (r != 0)
        return r;
    r = sd_event_loop(event);
    (void)sd_bus_detach_event(bus);
    return r < 0 ? cp_ctl_failed(r, &error) : r;
}
