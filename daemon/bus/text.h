/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text fit to leave the daemon. The name of a task is whatever bytes it chose (or a character cut
 * at 15 bytes); D-Bus takes valid UTF-8 only, and one bad name would spoil the whole reply.
 */
#pragma once

#include <stdbool.h>

/* true if text is valid UTF-8 without control characters (C0, DEL, C1: a terminal obeys them). */
bool cp_bus_text_is_clean(const char *text);

/* Replaces, in place, every byte of what is_clean() objects to by '?'. */
void cp_bus_text_clean(char *text);
