/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A D-Bus message as text with its types, so that a test can look for a key with its type and
 * value: {"id":<t>7,"state":<s>"kept"}.
 */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>

static inline int bus_dump_value(sd_bus_message *message, FILE *to);

static inline int bus_dump_basic(sd_bus_message *message, char type, FILE *to)
{
    union {
        const char *s;
        uint32_t u;
        int32_t i;
        uint64_t t;
        double d;
        int b;
    } value;
    int r = sd_bus_message_read_basic(message, type, &value);

    if (r < 0)
        return r;
    switch (type) {
    case 's':
    case 'o':
        return fprintf(to, "\"%s\"", value.s);
    case 'u':
        return fprintf(to, "%" PRIu32, value.u);
    case 'i':
        return fprintf(to, "%" PRId32, value.i);
    case 't':
        return fprintf(to, "%" PRIu64, value.t);
    case 'd':
        return fprintf(to, "%g", value.d);
    case 'b':
        return fprintf(to, "%s", value.b ? "true" : "false");
    default:
        return -1;
    }
}

/* Contents of an open container, with something between them. */
static inline int bus_dump_contents(sd_bus_message *message, const char *between, FILE *to)
{
    for (int n = 0;; n++) {
        int r = sd_bus_message_at_end(message, 0);

        if (r != 0)
            return r < 0 ? r : 0;
        if (n > 0)
            fputs(between, to);
        r = bus_dump_value(message, to);
        if (r < 0)
            return r;
    }
}

static inline int bus_dump_value(sd_bus_message *message, FILE *to)
{
    const char *contents;
    char type;
    int r = sd_bus_message_peek_type(message, &type, &contents);
    const char *open = "";
    const char *close = "";
    const char *between = ",";

    if (r <= 0)
        return r < 0 ? r : -1;
    if (!contents)
        return bus_dump_basic(message, type, to);
    if (type == 'a') {
        open = contents[0] == '{' ? "{" : "[";
        close = contents[0] == '{' ? "}" : "]";
    } else if (type == 'r') {
        open = "(";
        close = ")";
    } else if (type == 'e') {
        between = ":";
    } else {
        fprintf(to, "<%s>", contents);
    }
    fputs(open, to);
    r = sd_bus_message_enter_container(message, type, contents);
    if (r >= 0)
        r = bus_dump_contents(message, between, to);
    if (r >= 0)
        r = sd_bus_message_exit_container(message);
    fputs(close, to);
    return r;
}

/* The whole body in a new string of the caller; NULL on failure. */
static inline char *bus_dump(sd_bus_message *message)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    int r;

    if (!to)
        return NULL;
    r = bus_dump_contents(message, " ", to);
    if (fclose(to) != 0 || r < 0) {
        free(text);
        return NULL;
    }
    return text;
}
