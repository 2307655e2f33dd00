/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one client of the D-Bus interface. Turns what the bus and the daemon say into an errno and a
 * sentence. Must not print, and must never cause the bus to start the daemon: an administrator's
 * stop stays a stop.
 */
#include "bus/client.h"

#include "base/cleanup.h"
#include "bus/interface.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define START_HINT "start it with 'systemctl start coplaced'"

/* What the names of errors mean to a caller; 0 stands for CP_CLIENT_NO_DAEMON. */
static const struct {
    const char *name;
    int code;
} error_codes[] = {
    {CP_BUS_ERROR_NO_SUCH_TASK, ESRCH},
    {CP_BUS_ERROR_NO_SUCH_DECISION, ENOENT},
    {CP_BUS_ERROR_NOT_PERMITTED, EACCES},
    {CP_BUS_ERROR_NOT_IN_EFFECT, EALREADY},
    {CP_BUS_ERROR_INVALID_ARGUMENT, EINVAL},
    {CP_BUS_ERROR_BUSY, EBUSY},
    {CP_BUS_ERROR_FAILED, EIO},
    {SD_BUS_ERROR_SERVICE_UNKNOWN, 0},
    {SD_BUS_ERROR_NAME_HAS_NO_OWNER, 0},
    {SD_BUS_ERROR_NO_REPLY, 0},
    {SD_BUS_ERROR_DISCONNECTED, 0},
    {SD_BUS_ERROR_ACCESS_DENIED, EACCES},
    {SD_BUS_ERROR_UNKNOWN_OBJECT, EOPNOTSUPP},
    {SD_BUS_ERROR_UNKNOWN_INTERFACE, EOPNOTSUPP},
    {SD_BUS_ERROR_UNKNOWN_METHOD, EOPNOTSUPP},
    {SD_BUS_ERROR_LIMITS_EXCEEDED, EAGAIN},
    {SD_BUS_ERROR_TIMEOUT, ETIMEDOUT},
};

static int no_daemon(struct cp_error *error, int code, const char *detail)
{
    (void)cp_error_set(error, code, "coplaced cannot be reached (%s); " START_HINT, detail);
    return CP_CLIENT_NO_DAEMON;
}

static int open_failed(struct cp_error *error, const char *address, int code)
{
    const char *bus = address ? address : "the system bus";

    if (code == EINVAL)
        return cp_error_set(error, code, "'%s' is not the address of a bus", bus);
    if (code == ENOMEM)
        return cp_error_set(error, code, "out of memory");
    (void)cp_error_set(error, code, "cannot connect to %s (%s), so coplaced cannot be reached", bus,
                       strerror(code));
    return CP_CLIENT_NO_DAEMON;
}

static int connect_bus(const char *address, sd_bus **ret_bus)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    const char *unique;
    int r;

    if (!address) {
        r = sd_bus_open_system(&bus);
    } else {
        r = sd_bus_new(&bus);
        if (r >= 0)
            r = sd_bus_set_address(bus, address);
        if (r >= 0)
            r = sd_bus_set_bus_client(bus, 1);
        if (r >= 0)
            r = sd_bus_start(bus);
    }
    if (r < 0)
        return r;
    /* Waits for the bus to let us in, so that a refusal is told here and not at the first call. */
    r = sd_bus_get_unique_name(bus, &unique);
    if (r < 0)
        return r;
    *ret_bus = TAKE_PTR(bus);
    return 0;
}

int cp_client_open(const char *address, sd_bus **ret_bus, struct cp_error *error)
{
    int r = connect_bus(address, ret_bus);

    return r < 0 ? open_failed(error, address, -r) : 0;
}

/* What a failed call means. code: what sd_bus_call() gave, positive. */
static int call_failed(struct cp_error *error, const sd_bus_error *bus_error, int code)
{
    const char *text = bus_error->message ? bus_error->message : strerror(code);

    if (code == ECONNRESET || code == ENOTCONN || code == EPIPE || code == ESHUTDOWN)
        return no_daemon(error, code, "the connection to the bus was lost");
    for (size_t i = 0; bus_error->name && i < CP_ELEMENTS(error_codes); i++) {
        if (strcmp(bus_error->name, error_codes[i].name) != 0)
            continue;
        code = error_codes[i].code;
        if (code == 0)
            return no_daemon(error, ENOTCONN, text);
        if (code == ETIMEDOUT)
            return cp_error_set(error, code, "coplaced did not answer in time");
        if (code == EOPNOTSUPP)
            return cp_error_set(error, code,
                                "coplaced does not know this call (%s): is it of another version?",
                                text);
        return cp_error_set(error, code, "%s", text);
    }
    return cp_error_set(error, code, "%s", text);
}

static int call(sd_bus *bus, sd_bus_message *message, uint64_t timeout_us,
                sd_bus_message **ret_reply, struct cp_error *error)
{
    _cleanup_(sd_bus_error_free) sd_bus_error bus_error = SD_BUS_ERROR_NULL;
    int r = sd_bus_message_set_auto_start(message, 0);

    if (r >= 0)
        r = sd_bus_call(bus, message, timeout_us, &bus_error, ret_reply);
    return r < 0 ? call_failed(error, &bus_error, -r) : 0;
}

int cp_client_call(sd_bus *bus, const char *method, uint64_t timeout_us, sd_bus_message **ret_reply,
                   struct cp_error *error, const char *types, ...)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
    int r = sd_bus_message_new_method_call(bus, &message, CP_BUS_NAME, CP_BUS_PATH, CP_BUS_MANAGER,
                                           method);

    if (r >= 0 && types[0]) {
        va_list arguments;

        va_start(arguments, types);
        r = sd_bus_message_appendv(message, types, arguments);
        va_end(arguments);
    }
    if (r < 0)
        return call_failed(error, &SD_BUS_ERROR_NULL, -r);
    return call(bus, message, timeout_us, ret_reply, error);
}

int cp_client_get_properties(sd_bus *bus, sd_bus_message **ret_reply, struct cp_error *error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
    int r = sd_bus_message_new_method_call(bus, &message, CP_BUS_NAME, CP_BUS_PATH,
                                           "org.freedesktop.DBus.Properties", "GetAll");

    if (r >= 0)
        r = sd_bus_message_append(message, "s", CP_BUS_MANAGER);
    if (r < 0)
        return call_failed(error, &SD_BUS_ERROR_NULL, -r);
    return call(bus, message, 0, ret_reply, error);
}
