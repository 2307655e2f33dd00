/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs cp_topology_read() in a forked child. Internal to machine/; machine.h says why. */
#pragma once

#include "machine/topology.h"

/*
 * As cp_topology_read(), but nothing that hwloc does can hurt this process. Blocks until the child
 * has answered, at most 30 s (-ETIMEDOUT). A child that crashed gives -EBADMSG. Negative errno with
 * *error; then *ret_topology is untouched.
 */
int cp_topology_fetch(const struct cp_machine_source *source, const char *document, size_t size,
                      struct cp_topology *ret_topology, struct cp_error *error);
