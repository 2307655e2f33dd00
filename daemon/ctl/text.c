/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Units and escaping. A thread name is written by whoever owns the thread: nothing of it may reach
 * a terminal unescaped.
 */
#include "ctl/text.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

struct unit {
    double factor;
    const char *name;
};

static const struct unit time_units[] = {{1, " ns"}, {1e3, " us"}, {1e6, " ms"}, {1e9, " s"}};
static const struct unit gain_units[] = {
    {1, " ns/s"}, {1e3, " us/s"}, {1e6, " ms/s"}, {1e9, " s/s"}};
static const struct unit rate_units[] = {{1, "/s"}, {1e3, "k/s"}, {1e6, "M/s"}, {1e9, "G/s"}};
static const struct unit byte_units[] = {
    {1, " B"}, {1024, " KiB"}, {1048576, " MiB"}, {1073741824, " GiB"}};

static const char *put_constant(char *buffer, const char *text)
{
    (void)snprintf(buffer, CP_TEXT_SIZE, "%s", text);
    return buffer;
}

/* Three digits that matter; whole numbers without a fraction. sign: "" or "+". */
static const char *format_scaled(char *buffer, double value, const char *sign,
                                 const struct unit *units, size_t n_units)
{
    double magnitude = fabs(value);
    size_t unit = 0;
    int digits;

    if (!isfinite(value))
        return put_constant(buffer, "-");
    /* By what will be printed: 999.6 us are 1.00 ms, not 1000 us. */
    while (unit + 1 < n_units && magnitude / units[unit].factor >= 999.5)
        unit++;
    value /= units[unit].factor;
    magnitude = fabs(value);
    if (magnitude < 9.995)
        digits = 2;
    else
        digits = magnitude < 99.95 ? 1 : 0;
    if (unit == 0 && magnitude == floor(magnitude))
        digits = 0;
    (void)snprintf(buffer, CP_TEXT_SIZE, "%s%.*f%s", value > 0 ? sign : "", digits, value,
                   units[unit].name);
    return buffer;
}

const char *cp_text_ns(char buffer[static CP_TEXT_SIZE], double ns)
{
    return format_scaled(buffer, ns, "", time_units, CP_ELEMENTS(time_units));
}

const char *cp_text_rate(char buffer[static CP_TEXT_SIZE], double hz)
{
    return format_scaled(buffer, hz, "", rate_units, CP_ELEMENTS(rate_units));
}

const char *cp_text_gain(char buffer[static CP_TEXT_SIZE], double ns_per_s)
{
    /* Less than this is nothing, and "-0.00" would be odd. */
    if (fabs(ns_per_s) < 0.005)
        return put_constant(buffer, "0");
    return format_scaled(buffer, ns_per_s, "+", gain_units, CP_ELEMENTS(gain_units));
}

const char *cp_text_share(char buffer[static CP_TEXT_SIZE], double share)
{
    static const struct unit percent = {1, "%"};
    double value = share * 100;

    if (isfinite(value) && (fabs(value) >= 9.5 || value == 0))
        value = round(value);
    return format_scaled(buffer, value, "", &percent, 1);
}

const char *cp_text_bytes(char buffer[static CP_TEXT_SIZE], uint64_t bytes)
{
    size_t unit = 0;

    while (unit + 1 < CP_ELEMENTS(byte_units) && (double)bytes >= byte_units[unit + 1].factor)
        unit++;
    if (bytes % (uint64_t)byte_units[unit].factor == 0)
        (void)snprintf(buffer, CP_TEXT_SIZE, "%.0f%s", (double)bytes / byte_units[unit].factor,
                       byte_units[unit].name);
    else
        (void)snprintf(buffer, CP_TEXT_SIZE, "%.1f%s", (double)bytes / byte_units[unit].factor,
                       byte_units[unit].name);
    return buffer;
}

const char *cp_text_span(char buffer[static CP_TEXT_SIZE], uint64_t ns)
{
    static const struct {
        uint64_t seconds;
        const char *name;
        uint64_t lesser_seconds;
        const char *lesser;
    } spans[] = {
        {86400, "d", 3600, "h"},
        {3600, "h", 60, "min"},
        {60, "min", 1, "s"},
    };
    uint64_t seconds = ns / CP_NS_PER_S;

    for (size_t i = 0; i < CP_ELEMENTS(spans); i++) {
        if (seconds < spans[i].seconds)
            continue;
        (void)snprintf(buffer, CP_TEXT_SIZE, "%ju %s %ju %s",
                       (uintmax_t)(seconds / spans[i].seconds), spans[i].name,
                       (uintmax_t)(seconds % spans[i].seconds / spans[i].lesser_seconds),
                       spans[i].lesser);
        return buffer;
    }
    if (ns >= CP_NS_PER_S)
        (void)snprintf(buffer, CP_TEXT_SIZE, "%ju.%ju s", (uintmax_t)seconds,
                       (uintmax_t)(ns % CP_NS_PER_S / (CP_NS_PER_S / 10)));
    else
        (void)snprintf(buffer, CP_TEXT_SIZE, "%ju ms", (uintmax_t)(ns / CP_NS_PER_MS));
    return buffer;
}

/* Bytes of the character at text, and its columns; 0: not printable. */
static size_t next_character(const char *text, size_t left, int *ret_columns)
{
    mbstate_t state = {0};
    wchar_t character;
    size_t n = mbrtowc(&character, text, left, &state);

    if (n == 0 || n > left)
        return 0;
    *ret_columns = wcwidth(character);
    return iswprint((wint_t)character) && *ret_columns > 0 ? n : 0;
}

char *cp_text_escape(const char *text)
{
    size_t length = strlen(text);
    char *escaped = malloc(length * 4 + 1);
    char *to = escaped;

    if (!escaped)
        return NULL;
    while (length > 0) {
        int columns;
        size_t n = next_character(text, length, &columns);

        if (n == 0) {
            to += sprintf(to, "\\x%02x", (unsigned)(unsigned char)*text);
            n = 1;
        } else {
            if (*text == '\\')
                *to++ = '\\';
            memcpy(to, text, n);
            to += n;
        }
        text += n;
        length -= n;
    }
    *to = '\0';
    return escaped;
}

size_t cp_text_fit(const char *text, unsigned width)
{
    size_t length = strlen(text);
    size_t at = 0;

    while (at < length) {
        int columns = 1;
        size_t n = next_character(text + at, length - at, &columns);

        if ((unsigned)columns > width)
            break;
        width -= (unsigned)columns;
        at += n > 0 ? n : 1;
    }
    return at;
}

unsigned cp_text_width(const char *text)
{
    size_t length = strlen(text);
    unsigned width = 0;

    for (size_t at = 0; at < length;) {
        int columns = 1;
        size_t n = next_character(text + at, length - at, &columns);

        width += (unsigned)columns;
        at += n > 0 ? n : 1;
    }
    return width;
}
