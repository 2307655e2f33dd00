/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors that a person will read: filled here, printed at the edge. Must not log. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The text is made before *error is cleared: callers wrap messages, so that the arguments may point
 * into *error. */
__attribute__((format(printf, 3, 0))) static void error_setv(struct cp_error *error, int code,
                                                             const char *format, va_list arguments)
{
    if (!error)
        return;

    char message[sizeof(error->message)];

    (void)vsnprintf(message, sizeof(message), format, arguments);
    *error = (struct cp_error){.code = code};
    memcpy(error->message, message, sizeof(message));
}

int cp_error_set(struct cp_error *error, int code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    error_setv(error, code, format, arguments);
    va_end(arguments);
    return -code;
}

int cp_error_set_at(struct cp_error *error, int code, const char *file, unsigned line,
                    unsigned column, const char *format, ...)
{
    char place[sizeof(error->file)];
    va_list arguments;

    (void)snprintf(place, sizeof(place), "%s", file);
    va_start(arguments, format);
    error_setv(error, code, format, arguments);
    va_end(arguments);
    if (error) {
        (void)snprintf(error->file, sizeof(error->file), "%s", place);
        error->line = line;
        error->column = column;
    }
    return -code;
}

void cp_error_format(const struct cp_error *error, char *buffer, unsigned long size)
{
    char place[sizeof(error->file) + 32] = "";

    if (error->file[0] && error->line && error->column)
        (void)snprintf(place, sizeof(place), "%s:%u:%u: ", error->file, error->line, error->column);
    else if (error->file[0] && error->line)
        (void)snprintf(place, sizeof(place), "%s:%u: ", error->file, error->line);
    else if (error->file[0])
        (void)snprintf(place, sizeof(place), "%s: ", error->file);
    (void)snprintf(buffer, size, "%s%s", place,
                   error->message[0] ? error->message : strerror(error->code));
}
