/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers with a unit. Pure: no locale, no system call, no log. */
#include "base/quantity.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* 18 decimal digits fit 64 bits. */
#define MAX_DIGITS 18u

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int cp_quantity_split(const char *text, double *ret_value, const char **ret_unit)
{
    uint64_t digits = 0;
    double scale = 1;
    unsigned n_digits = 0;
    bool fraction = false;

    if (!is_digit(*text))
        return -EINVAL;
    for (;; text++) {
        if (*text == '.' && !fraction && is_digit(text[1])) {
            fraction = true;
            continue;
        }
        if (!is_digit(*text))
            break;
        if (++n_digits > MAX_DIGITS)
            return -ERANGE;
        digits = digits * 10 + (uint64_t)(*text - '0');
        if (fraction)
            scale *= 10;
    }
    if (*text == '.')
        return -EINVAL;
    *ret_value = (double)digits / scale;
    *ret_unit = text;
    return 0;
}

int cp_quantity_parse_ns(const char *text, uint64_t max_ns, uint64_t *ret_ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const char *unit;
    double value;
    int r = cp_quantity_split(text, &value, &unit);

    if (r < 0)
        return r;
    for (size_t i = 0; i < CP_ELEMENTS(units); i++) {
        if (strcmp(unit, units[i].unit) != 0)
            continue;
        value = round(value * units[i].ns);
        if (value > (double)max_ns)
            return -ERANGE;
        *ret_ns = (uint64_t)value;
        return 0;
    }
    return -EINVAL;
}
