/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks at what a user gave as a machine before hwloc sees it, so that the error is ours and clear.
 * Internal to machine/. */
#pragma once

#include "base/error.h"

#include <stddef.h>

/*
 * Reads an hwloc XML file. *ret_text is terminated and belongs to the caller; *ret_size counts the
 * terminator. Negative errno with *error naming the file: -EISDIR, -EINVAL (no regular file),
 * -EFBIG (above 32 MiB), -EBADMSG (empty, binary, no hwloc XML), -EPROTONOSUPPORT (format 3 or
 * later), or that of open and read.
 */
int cp_document_read(const char *path, char **ret_text, size_t *ret_size, struct cp_error *error);

/* Checks that a synthetic description does not ask for more than CP_MACHINE_CPUS_MAX CPUs, which
 * hwloc would try to build. -EINVAL (empty), -E2BIG with *error. */
int cp_document_check_synthetic(const char *text, struct cp_error *error);
