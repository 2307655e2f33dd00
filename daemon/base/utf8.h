/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* UTF-8, one character at a time. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at the start of text, of which size > 0 bytes may be read. Returns its
 * length in bytes, 0 if there is none: truncated, overlong, a surrogate, above U+10FFFF (RFC 3629).
 */
size_t cp_utf8_decode(const char *text, size_t size, uint32_t *ret_character);
