/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one client of the D-Bus interface: used by coplacectl, later by the plugins. Connects, calls
 * with a deadline and without auto-start, and turns bus errors into sentences.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <systemd/sd-bus.h>

/* The daemon cannot be reached (no bus, no owner of the name): exit status 3 of the CLI. */
#define CP_CLIENT_NO_DAEMON 1

/* address NULL: the system bus. 0, CP_CLIENT_NO_DAEMON or negative errno; *error filled unless 0.
 */
int cp_client_open(const char *address, sd_bus **ret_bus, struct cp_error *error);

/*
 * Calls a method of the Manager interface. types and the arguments behind it as for
 * sd_bus_message_append(); "" for none. The reply belongs to the caller (NULL accepted). Waits at
 * most timeout_us (0: 25 s). 0, CP_CLIENT_NO_DAEMON or negative errno; *error says what the daemon
 * said: -EACCES not permitted, -ESRCH no such task, -ENOENT no such decision, -EALREADY not in
 * effect, -EINVAL, -EBUSY, -ETIMEDOUT no answer in time, -EAGAIN too many calls at once,
 * -EOPNOTSUPP a daemon that does not know the method, -EIO it failed.
 */
int cp_client_call(sd_bus *bus, const char *method, uint64_t timeout_us, sd_bus_message **ret_reply,
                   struct cp_error *error, const char *types, ...);

/* Reads all properties of the Manager as one a{sv} reply. Same results. */
int cp_client_get_properties(sd_bus *bus, sd_bus_message **ret_reply, struct cp_error *error);
