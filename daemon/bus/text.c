/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text fit to leave the daemon: UTF-8 as RFC 3629 has it, minus what terminals obey. Pure. */
#include "bus/text.h"

#include <stddef.h>
#include <stdint.h>

/* sd-bus refuses these though Unicode lets them be exchanged: U+FDD0…U+FDEF, U+xxFFFE, U+xxFFFF. */
static bool is_noncharacter(uint32_t code)
{
    return (code >= 0xFDD0 && code <= 0xFDEF) || (code & 0xFFFE) == 0xFFFE;
}

static bool is_allowed(uint32_t code, size_t length)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};

    if (code < smallest[length] || code > 0x10FFFF)
        return false;
    if (code >= 0xD800 && code <= 0xDFFF)
        return false;
    if (code < 0x20 || (code >= 0x7F && code < 0xA0))
        return false;
    return !is_noncharacter(code);
}

/* Bytes of the character at text, 0 if it is none that may leave. Never reads behind the
 * terminator, which is no continuation byte. */
static size_t character_length(const unsigned char *text)
{
    size_t length;
    uint32_t code;

    if (text[0] < 0x80) {
        length = 1;
        code = text[0];
    } else if ((text[0] & 0xE0) == 0xC0) {
        length = 2;
        code = text[0] & 0x1Fu;
    } else if ((text[0] & 0xF0) == 0xE0) {
        length = 3;
        code = text[0] & 0x0Fu;
    } else if ((text[0] & 0xF8) == 0xF0) {
        length = 4;
        code = text[0] & 0x07u;
    } else {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3Fu);
    }
    return is_allowed(code, length) ? length : 0;
}

bool cp_bus_text_is_clean(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        size_t length = character_length(at);

        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

void cp_bus_text_clean(char *text)
{
    unsigned char *at = (unsigned char *)text;

    while (*at) {
        size_t length = character_length(at);

        if (length == 0) {
            *at = '?';
            length = 1;
        }
        at += length;
    }
}
