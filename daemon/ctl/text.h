/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers and foreign texts as people read them. Prints nothing, decides nothing.
 *
 * The formatting functions write to buffer, always terminated, and return it; a value that is not
 * a number gives "-". Three digits that matter, units with one space ("3.20 us").
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CP_TEXT_SIZE 32

/* Nanoseconds: "412 ns", "3.20 us", "4.10 ms", "1.50 s". */
const char *cp_text_ns(char buffer[static CP_TEXT_SIZE], double ns);
/* Per second: "450/s", "31.2k/s", "1.20M/s". */
const char *cp_text_rate(char buffer[static CP_TEXT_SIZE], double hz);
/* Nanoseconds per second, always with its sign: "+420 ms/s", "-1.20 us/s", "0". */
const char *cp_text_gain(char buffer[static CP_TEXT_SIZE], double ns_per_s);
/* A share of 1: "98%", "0.12%". */
const char *cp_text_share(char buffer[static CP_TEXT_SIZE], double share);
/* A time span in two units at most: "12 ms", "5.3 s", "12 min 5 s", "3 d 4 h". */
const char *cp_text_span(char buffer[static CP_TEXT_SIZE], uint64_t ns);
/* Bytes: "512 B", "32 MiB", "1.50 GiB". */
const char *cp_text_bytes(char buffer[static CP_TEXT_SIZE], uint64_t bytes);

/*
 * A copy of text (a thread name, a message) that cannot harm a terminal: what the locale does not
 * call printable, has no width of its own (combining, direction marks), or is no valid sequence
 * becomes "\xHH" byte by byte; a backslash is doubled. The new string belongs to the caller; NULL:
 * no memory. The result has at most four times the length of text.
 */
char *cp_text_escape(const char *text);

/* Columns that an escaped text takes on a terminal. */
unsigned cp_text_width(const char *text);
/* Number of bytes of an escaped text that fit into width columns; never cuts a character. */
size_t cp_text_fit(const char *text, unsigned width);
