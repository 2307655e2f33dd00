/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connection, the name and the object. What is said over them is in methods.c, properties.c
 * and signals.c.
 *
 * After cp_bus_new() nothing here waits: the loop also serves `undo` in a wake storm, and a bus
 * that does not answer must not hold up the placements.
 */
#include "bus/bus.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "bus/bus-internal.h"
#include "bus/interface.h"
#include "bus/reply.h"

#include <errno.h>
#include <string.h>

static int connect_bus(const char *address, sd_bus **ret_connection, struct cp_error *error)
{
    _cleanup_(sd_bus_close_unrefp) sd_bus *connection = NULL;
    int r;

    if (!address) {
        r = sd_bus_open_system_with_description(&connection, "coplaced");
    } else {
        r = sd_bus_new(&connection);
        if (r >= 0)
            r = sd_bus_set_address(connection, address);
        if (r >= 0)
            r = sd_bus_set_bus_client(connection, 1);
        if (r >= 0)
            r = sd_bus_start(connection);
    }
    if (r < 0)
        return cp_error_set(error, -r,
                            "cannot connect to %s (%s); is a D-Bus daemon running there? "
                            "--bus-address names another bus",
                            address ? address : "the system bus", strerror(-r));
    *ret_connection = TAKE_PTR(connection);
    return 0;
}

static int on_disconnected(sd_bus_message *signal, void *userdata, sd_bus_error *ret_error)
{
    struct cp_bus *bus = userdata;

    (void)signal;
    (void)ret_error;
    bus->lost = true;
    cp_log_error("the connection to the bus was lost");
    cp_bus_callers_done(&bus->callers);
    if (bus->ops->disconnected)
        bus->ops->disconnected(bus->userdata); /* may free the bus */
    return 0;
}

static int export_object(struct cp_bus *bus, struct cp_error *error)
{
    int r = sd_bus_add_object_vtable(bus->connection, NULL, CP_BUS_PATH, CP_BUS_MANAGER,
                                     cp_bus_vtable, bus);

    /* The Local interface is made up by sd-bus itself: no rule is sent to the bus. */
    if (r >= 0)
        r = sd_bus_add_match(bus->connection, NULL,
                             "type='signal',sender='org.freedesktop.DBus.Local',"
                             "interface='org.freedesktop.DBus.Local',member='Disconnected'",
                             on_disconnected, bus);
    if (r < 0)
        return cp_error_set(error, -r, "cannot export " CP_BUS_PATH ": %s", strerror(-r));
    return 0;
}

static int request_name(struct cp_bus *bus, struct cp_error *error)
{
    int r = sd_bus_request_name(bus->connection, CP_BUS_NAME, 0);

    if (r >= 0)
        return 0;
    if (r == -EEXIST)
        return cp_error_set(error, -r,
                            "another coplaced owns " CP_BUS_NAME
                            " on this bus; stop it first (systemctl stop coplaced)");
    if (r == -EACCES || r == -EPERM)
        return cp_error_set(error, -r,
                            "the bus does not let this user own " CP_BUS_NAME
                            "; run as root, with " CP_BUS_NAME ".conf in "
                            "/usr/share/dbus-1/system.d and the bus reloaded");
    return cp_error_set(error, -r, "cannot own " CP_BUS_NAME ": %s", strerror(-r));
}

/* Everything that may fail; the caller frees the bus then. */
static int set_up(struct cp_bus *bus, sd_event *event, int64_t priority, const char *address,
                  struct cp_error *error)
{
    int r = connect_bus(address, &bus->connection, error);

    if (r < 0)
        return r;
    cp_bus_callers_init(&bus->callers, bus->connection, cp_bus_run_method, bus);
    /* Losing the bus must not end the process in the midst of its placements. */
    r = sd_bus_set_exit_on_disconnect(bus->connection, 0);
    if (r < 0)
        return cp_error_set(error, -r, "cannot set up the bus: %s", strerror(-r));
    r = export_object(bus, error);
    if (r < 0)
        return r;
    r = request_name(bus, error);
    if (r < 0)
        return r;
    r = sd_bus_attach_event(bus->connection, event, (int)priority);
    if (r < 0)
        return cp_error_set(error, -r, "cannot attach the bus to the event loop: %s", strerror(-r));
    return 0;
}

int cp_bus_new(sd_event *event, int64_t priority, const char *address, const struct cp_bus_ops *ops,
               void *userdata, struct cp_bus **ret_bus, struct cp_error *error)
{
    struct cp_bus *bus = calloc(1, sizeof(*bus));
    int r;

    if (!bus)
        return cp_error_set(error, ENOMEM, "out of memory");
    bus->ops = ops;
    bus->userdata = userdata;
    r = set_up(bus, event, priority, address, error);
    if (r < 0) {
        cp_bus_free(bus);
        return r;
    }
    *ret_bus = bus;
    return 0;
}

static void answer_calibration(struct cp_bus *bus, sd_bus_message *call, int result,
                               const struct cp_error *error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    struct cp_bus_view view = {0};
    int r;

    if (result < 0) {
        cp_bus_reply_failure(call, CP_BUS_ERROR_FAILED,
                             error && error->message[0] ? error->message : strerror(-result));
        return;
    }
    bus->ops->view(bus->userdata, &view);
    r = sd_bus_message_new_method_return(call, &reply);
    if (r >= 0)
        r = cp_bus_write_costs(reply, view.machine, view.costs);
    if (r >= 0)
        r = sd_bus_send(bus->connection, reply, NULL);
    if (r < 0)
        (void)sd_bus_reply_method_errorf(call, CP_BUS_ERROR_FAILED, "%s", strerror(-r));
}

void cp_bus_calibrated(struct cp_bus *bus, int result, const struct cp_error *error)
{
    if (!bus)
        return;
    for (size_t i = 0; i < bus->n_calibrations; i++) {
        answer_calibration(bus, bus->calibrations[i], result, error);
        sd_bus_message_unref(bus->calibrations[i]);
    }
    bus->n_calibrations = 0;
}

struct cp_bus *cp_bus_free(struct cp_bus *bus)
{
    static const struct cp_error stopping = {.code = ECANCELED, .message = "coplaced stops"};

    if (!bus)
        return NULL;
    cp_bus_calibrated(bus, -ECANCELED, &stopping);
    cp_bus_callers_done(&bus->callers);
    if (bus->lost)
        sd_bus_close_unref(bus->connection);
    else
        sd_bus_flush_close_unref(bus->connection);
    free(bus);
    return NULL;
}

void cp_bus_explanation_done(struct cp_bus_explanation *explanation)
{
    cp_task_facts_done(&explanation->facts);
    cp_cpumask_done(&explanation->former_mask);
}
