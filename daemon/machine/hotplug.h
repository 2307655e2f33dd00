/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells that CPUs may have gone or come: kernel uevents of subsystem "cpu" over netlink.
 *
 * These come without udevd (an sd-device monitor would wait for it for ever). An event only asks
 * for a comparison with the online list; missed ones are caught by the comparison in each round.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* A non-blocking socket that belongs to the caller, or negative errno with *error. */
int cp_hotplug_open(struct cp_error *error);

/* Reads everything that waits. 1: an event of a CPU was among it, or events were lost; 0: none;
 * negative errno. Does not block. */
int cp_hotplug_read(int fd);
