/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's answer to GetTopology as a machine, so that one view serves both sources. */
#pragma once

#include "machine/machine.h"

#include <jansson.h>

/*
 * Builds a snapshot from the reply (interface.h: topology) read as JSON. Nodes without CPUs are not
 * part of the interface and so are missing. -EBADMSG: not such a reply, or one that contradicts
 * itself; -ENOMEM.
 */
int cp_topology_from_reply(const json_t *reply, struct cp_machine **ret_machine);
