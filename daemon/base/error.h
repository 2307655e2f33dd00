/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors that a person will read.
 *
 * Functions return a negative errno that the caller only passes on, or 0, or a named positive
 * result that the caller must handle. Where a person will read the cause, they also fill a
 * struct cp_error: what is wrong, where, and what to do. An error is logged once, at the edge
 * (a main function or a D-Bus reply), never by the function that found it.
 */
#pragma once

struct cp_error {
    int code;          /* positive errno; 0 means no error */
    unsigned line;     /* 1 and up; 0: the error has no place in a file */
    unsigned column;   /* 1 and up; 0: unknown */
    char file[256];    /* empty: the error has no file */
    char message[768]; /* one sentence without a final newline, possibly cut at the end */
};

/*
 * Fills *error (NULL is accepted) and returns -code. The file, line and column are cleared.
 * code: a positive errno. The arguments may point into *error, so that a message can be wrapped.
 */
int cp_error_set(struct cp_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Like cp_error_set(), with a place. line and column count from 1; 0 means unknown. */
int cp_error_set_at(struct cp_error *error, int code, const char *file, unsigned line,
                    unsigned column, const char *format, ...) __attribute__((format(printf, 6, 7)));

/*
 * Writes "file:line:column: message" (parts that are unknown left out) to buffer, always
 * terminated, cut when it does not fit. An empty error gives the text of its code.
 */
void cp_error_format(const struct cp_error *error, char *buffer, unsigned long size);
