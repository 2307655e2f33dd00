/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers with a unit as people write them ("1.5us", "500/s", "5%"): the one parser of them.
 *
 * Pure and independent of the locale. Knows no names and no ranges of options: callers say what is
 * allowed.
 */
#pragma once

#include <stdint.h>

/*
 * Splits text into a number and what follows it. The number is decimal digits with an optional
 * fraction ("12", "0.5"); no sign, exponent, hexadecimal or white space, at most 18 digits in all.
 * *ret_unit points into text, at "" if nothing follows. -EINVAL: no such number; -ERANGE: too many
 * digits. Outputs are unchanged on failure.
 */
int cp_quantity_split(const char *text, double *ret_value, const char **ret_unit);

/*
 * Parses a time with unit ns, us, ms or s to whole nanoseconds, rounded. -EINVAL: no number or no
 * such unit; -ERANGE: above max_ns or too many digits.
 */
int cp_quantity_parse_ns(const char *text, uint64_t max_ns, uint64_t *ret_ns);
