/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who is calling. A caller's record is made at its first call, kept under its unique name (which a
 * bus never gives away twice) and dropped when the bus says that the name has gone. The match for
 * that news names the caller, so that other clients' coming and going wakes nobody here.
 * Must not block, and must not believe anything that the caller says.
 */
#include "bus/credentials.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "bus/interface.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>

#define DRIVER "org.freedesktop.DBus"
#define DRIVER_PATH "/org/freedesktop/DBus"

struct cp_bus_caller {
    struct cp_bus_callers *callers; /* borrowed: the table that it is in */
    char *name;                     /* owned */
    sd_bus_slot *match;             /* owned: NameOwnerChanged of this name */
    sd_bus_slot *query;             /* owned while the driver is being asked */
    bool known;
    struct cp_bus_identity identity; /* meaningful if known */
    uint64_t last_use;
    size_t n_pending;
    sd_bus_message *pending[CP_BUS_MAX_PENDING_PER_CALLER]; /* owned references */
};

static struct cp_bus_caller *caller_free(struct cp_bus_caller *caller)
{
    if (!caller)
        return NULL;
    for (size_t i = 0; i < caller->n_pending; i++)
        sd_bus_message_unref(caller->pending[i]);
    caller->callers->n_pending -= caller->n_pending;
    sd_bus_slot_unref(caller->query);
    sd_bus_slot_unref(caller->match);
    free(caller->name);
    free(caller);
    return NULL;
}

/* One try with a buffer of that size: ERANGE if it is too small, else the result of getgrnam_r().
 */
static int try_group(size_t size, bool *ret_found, gid_t *ret_gid)
{
    struct group group;
    struct group *found = NULL;
    char *buffer = malloc(size);
    int r;

    if (!buffer)
        return ENOMEM;
    r = getgrnam_r(CP_BUS_GROUP, &group, buffer, size, &found);
    *ret_found = found != NULL;
    if (found)
        *ret_gid = found->gr_gid;
    free(buffer);
    return r;
}

static bool look_up_group(gid_t *ret_gid)
{
    bool found = false;
    int r = ERANGE;

    /* A group with many members needs a larger buffer; 1 MiB holds some 30 000 names. */
    for (size_t size = 4096; r == ERANGE && size <= 1u << 20; size *= 4)
        r = try_group(size, &found, ret_gid);
    /* Some name services give ENOENT for "no such group". */
    if (!found && r != 0 && r != ENOENT)
        cp_log_warning("group " CP_BUS_GROUP " could not be looked up (%s): "
                       "only root may change anything over the bus",
                       strerror(r));
    return found;
}

void cp_bus_callers_init(struct cp_bus_callers *callers, sd_bus *connection, cp_bus_run run,
                         void *userdata)
{
    *callers = (struct cp_bus_callers){.connection = connection, .run = run, .userdata = userdata};
    callers->have_group = look_up_group(&callers->group);
}

void cp_bus_callers_done(struct cp_bus_callers *callers)
{
    for (size_t i = 0; i < callers->n_callers; i++)
        caller_free(callers->table[i]);
    callers->n_callers = 0;
}

static void drop(struct cp_bus_caller *caller)
{
    struct cp_bus_callers *callers = caller->callers;

    for (size_t i = 0; i < callers->n_callers; i++)
        if (callers->table[i] == caller) {
            callers->table[i] = callers->table[--callers->n_callers];
            break;
        }
    caller_free(caller);
}

static struct cp_bus_caller *find(struct cp_bus_callers *callers, const char *name)
{
    for (size_t i = 0; i < callers->n_callers; i++)
        if (strcmp(callers->table[i]->name, name) == 0)
            return callers->table[i];
    return NULL;
}

/* Makes room in a full table: the caller that has been silent longest and waits for nothing. */
static bool make_room(struct cp_bus_callers *callers)
{
    struct cp_bus_caller *oldest = NULL;

    if (callers->n_callers < CP_BUS_MAX_CALLERS)
        return true;
    for (size_t i = 0; i < callers->n_callers; i++) {
        struct cp_bus_caller *caller = callers->table[i];

        if (caller->known && (!oldest || caller->last_use < oldest->last_use))
            oldest = caller;
    }
    if (!oldest)
        return false;
    drop(oldest);
    return true;
}

/* Reads the au of an open variant: is the group among them? */
static int read_groups(const struct cp_bus_callers *callers, sd_bus_message *reply,
                       bool *ret_member)
{
    const void *array = NULL;
    size_t size = 0;
    int r = sd_bus_message_enter_container(reply, 'v', "au");

    if (r >= 0)
        r = sd_bus_message_read_array(reply, 'u', &array, &size);
    if (r < 0)
        return r;
    for (size_t i = 0; i < size / sizeof(uint32_t); i++)
        if (callers->have_group && ((const uint32_t *)array)[i] == callers->group)
            *ret_member = true;
    return sd_bus_message_exit_container(reply);
}

/* Reads one entry of the driver's answer; keys that are of no use here are skipped. */
static int read_entry(const struct cp_bus_callers *callers, sd_bus_message *reply, bool *ret_have,
                      uint32_t *ret_uid, bool *ret_member)
{
    const char *key;
    const char *contents;
    int r = sd_bus_message_read_basic(reply, 's', &key);

    if (r >= 0)
        r = sd_bus_message_peek_type(reply, NULL, &contents);
    if (r < 0)
        return r;
    if (strcmp(key, "UnixUserID") == 0 && strcmp(contents, "u") == 0) {
        *ret_have = true;
        return sd_bus_message_read(reply, "v", "u", ret_uid);
    }
    if (strcmp(key, "UnixGroupIDs") == 0 && strcmp(contents, "au") == 0)
        return read_groups(callers, reply, ret_member);
    return sd_bus_message_skip(reply, "v");
}

/* 0: read; -ENODATA: the driver does not tell the uid; other negative errno: malformed. */
static int read_identity(const struct cp_bus_callers *callers, sd_bus_message *reply,
                         struct cp_bus_identity *ret_identity)
{
    bool have_uid = false;
    bool member = false;
    uint32_t uid = UINT32_MAX;
    int r = sd_bus_message_enter_container(reply, 'a', "{sv}");

    while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
        r = read_entry(callers, reply, &have_uid, &uid, &member);
        if (r >= 0)
            r = sd_bus_message_exit_container(reply);
    }
    if (r < 0)
        return r;
    if (!have_uid)
        return -ENODATA;
    *ret_identity = (struct cp_bus_identity){.uid = uid, .privileged = uid == 0 || member};
    return 0;
}

/* Ends the waiting of a caller: each call is run if the caller is known, else answered with the
 * error; with neither (the caller has gone) they are dropped. */
static void settle(struct cp_bus_caller *caller, const char *error_name, const char *text)
{
    struct cp_bus_callers *callers = caller->callers;
    struct cp_bus_identity identity = caller->identity;
    bool known = caller->known;
    size_t n = caller->n_pending;
    sd_bus_message *messages[CP_BUS_MAX_PENDING_PER_CALLER];

    for (size_t i = 0; i < n; i++)
        messages[i] = caller->pending[i];
    callers->n_pending -= n;
    caller->n_pending = 0;
    if (!known)
        drop(caller);
    for (size_t i = 0; i < n; i++) {
        if (known)
            callers->run(messages[i], &identity, callers->userdata);
        else if (error_name)
            (void)sd_bus_reply_method_errorf(messages[i], error_name, "%s", text);
        sd_bus_message_unref(messages[i]);
    }
}

static int on_credentials(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
    struct cp_bus_caller *caller = userdata;

    (void)ret_error;
    caller->query = sd_bus_slot_unref(caller->query);
    if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NAME_HAS_NO_OWNER)) {
        settle(caller, NULL, NULL);
    } else if (sd_bus_message_is_method_error(reply, NULL)) {
        settle(caller, CP_BUS_ERROR_FAILED, "the bus did not tell who is calling; try again");
    } else {
        caller->known = read_identity(caller->callers, reply, &caller->identity) >= 0;
        settle(caller, CP_BUS_ERROR_NOT_PERMITTED, "the bus does not know your user id");
    }
    return 0;
}

static int on_name_owner_changed(sd_bus_message *signal, void *userdata, sd_bus_error *ret_error)
{
    const char *name;
    const char *old_owner;
    const char *new_owner;

    (void)ret_error;
    if (sd_bus_message_read(signal, "sss", &name, &old_owner, &new_owner) >= 0 && !*new_owner)
        drop(userdata);
    return 0;
}

/* Without the match a record lives until the table is full: harmless, as names are never reused.
 * sd-bus would close the connection if nobody took this answer. */
static int on_match_installed(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
    (void)reply;
    (void)userdata;
    (void)ret_error;
    return 0;
}

/* Has the bus tell us who the caller is, and when it goes. First the match, then the question, so
 * that no end of the caller falls between them. */
static int ask(struct cp_bus_caller *caller)
{
    sd_bus *connection = caller->callers->connection;
    char rule[512];
    int r = snprintf(rule, sizeof(rule),
                     "type='signal',sender='" DRIVER "',path='" DRIVER_PATH "',interface='" DRIVER
                     "',member='NameOwnerChanged',arg0='%s'",
                     caller->name);

    if (r < 0 || (size_t)r >= sizeof(rule))
        return -ENAMETOOLONG;
    r = sd_bus_add_match_async(connection, &caller->match, rule, on_name_owner_changed,
                               on_match_installed, caller);
    if (r < 0)
        return r;
    return sd_bus_call_method_async(connection, &caller->query, DRIVER, DRIVER_PATH, DRIVER,
                                    "GetConnectionCredentials", on_credentials, caller, "s",
                                    caller->name);
}

static int add(struct cp_bus_callers *callers, const char *name, struct cp_bus_caller **ret_caller)
{
    struct cp_bus_caller *caller = calloc(1, sizeof(*caller));
    int r;

    if (!caller)
        return -ENOMEM;
    caller->callers = callers;
    caller->name = strdup(name);
    r = caller->name ? ask(caller) : -ENOMEM;
    if (r < 0) {
        caller_free(caller);
        return r;
    }
    callers->table[callers->n_callers++] = caller;
    *ret_caller = caller;
    return 0;
}

static void keep(struct cp_bus_caller *caller, sd_bus_message *message)
{
    struct cp_bus_callers *callers = caller->callers;

    if (caller->n_pending == CP_BUS_MAX_PENDING_PER_CALLER ||
        callers->n_pending == CP_BUS_MAX_PENDING) {
        (void)sd_bus_reply_method_errorf(message, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                         "too many calls are waiting; try again later");
        return;
    }
    caller->pending[caller->n_pending++] = sd_bus_message_ref(message);
    callers->n_pending++;
}

void cp_bus_callers_handle(struct cp_bus_callers *callers, sd_bus_message *message)
{
    const char *name = sd_bus_message_get_sender(message);
    struct cp_bus_caller *caller;
    int r;

    if (!name) { /* a bus always names the sender */
        (void)sd_bus_reply_method_errorf(message, CP_BUS_ERROR_NOT_PERMITTED,
                                         "the call has no sender");
        return;
    }
    caller = find(callers, name);
    if (!caller) {
        if (!make_room(callers)) {
            (void)sd_bus_reply_method_errorf(message, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                             "too many callers are waiting; try again later");
            return;
        }
        r = add(callers, name, &caller);
        if (r < 0) {
            (void)sd_bus_reply_method_errorf(message, CP_BUS_ERROR_FAILED,
                                             "cannot ask the bus who is calling: %s", strerror(-r));
            return;
        }
    }
    caller->last_use = ++callers->n_uses;
    if (caller->known)
        callers->run(message, &caller->identity, callers->userdata);
    else
        keep(caller, message);
}
