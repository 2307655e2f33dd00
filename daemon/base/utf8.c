/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* UTF-8 after RFC 3629. Pure: no locale, no system call. */
#include "base/utf8.h"

size_t cp_utf8_decode(const char *text, size_t size, uint32_t *ret_character)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t character;
    size_t length;

    if (bytes[0] < 0x80) {
        *ret_character = bytes[0];
        return 1;
    }
    if ((bytes[0] & 0xe0) == 0xc0)
        length = 2;
    else if ((bytes[0] & 0xf0) == 0xe0)
        length = 3;
    else if ((bytes[0] & 0xf8) == 0xf0)
        length = 4;
    else
        return 0;
    if (length > size)
        return 0;
    character = bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (bytes[i] & 0x3fu);
    }
    if (character < smallest[length] || (character >= 0xd800 && character <= 0xdfff) ||
        character > 0x10ffff)
        return 0;
    *ret_character = character;
    return length;
}
