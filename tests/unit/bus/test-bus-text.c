/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text that may leave the daemon: everything it calls clean must be accepted by sd-bus. */
#include "bus/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>
/* cmocka wants the above first */
#include <cmocka.h>

static void test_table(void **state)
{
    static const struct {
        const char *text;
        const char *cleaned;
    } cases[] = {
        {"", ""},
        {"redis-server", "redis-server"},
        {"gr\xc3\xbc\xc3\x9f"
         "e",
         "gr\xc3\xbc\xc3\x9f"
         "e"},
        {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"\xf0\x9f\x90\xa7", "\xf0\x9f\x90\xa7"},
        {"cut \xe2\x82", "cut ??"},   /* a character cut at 15 bytes */
        {"\xff", "?"},                /* never in UTF-8 */
        {"\x80", "?"},                /* a continuation of nothing */
        {"\xc0\xaf", "??"},           /* overlong */
        {"\xe0\x80\x80", "???"},      /* overlong */
        {"\xed\xa0\x80", "???"},      /* a surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* beyond U+10FFFF */
        {"\xef\xbf\xbf", "???"},      /* U+FFFF: sd-bus refuses it */
        {"\xef\xb7\x90", "???"},      /* U+FDD0: likewise */
        {"a\nb\tc", "a?b?c"},         /* would break a line of a table */
        {"\x1b[31m", "?[31m"},        /* would colour a terminal */
        {"\xc2\x9b"
         "31m",
         "??31m"}, /* the same as C1 */
        {"\x7f", "?"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "%s", cases[i].text);
        assert_int_equal(cp_bus_text_is_clean(text), strcmp(text, cases[i].cleaned) == 0);
        cp_bus_text_clean(text);
        assert_string_equal(text, cases[i].cleaned);
        assert_true(cp_bus_text_is_clean(text));
    }
}

/* Random bytes, mostly of the kinds that matter, against sd-bus's own check. */
static void test_sd_bus_accepts_what_is_clean(void **state)
{
    static const unsigned char kinds[] = {0x41, 0x80, 0xbf, 0xc2, 0xdf, 0xe0, 0xed,
                                          0xef, 0xb7, 0xf0, 0xf4, 0x8f, 0x90, 0xff};
    sd_bus_message *message = NULL;
    sd_bus *connection = NULL;
    uint32_t random = 12345;
    int sockets[2];

    (void)state;
    assert_true(sd_bus_new(&connection) >= 0);
    /* A connection that never gets to talk is enough to own messages. */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    assert_true(sd_bus_set_fd(connection, sockets[0], sockets[0]) >= 0);
    assert_true(sd_bus_start(connection) >= 0);
    for (unsigned i = 0; i < 200000; i++) {
        char text[9] = "";

        for (size_t at = 0; at < 8; at++) {
            random = random * 1664525u + 1013904223u;
            text[at] = random >> 28 < 14 ? (char)kinds[random >> 28] : (char)(random >> 16);
        }
        cp_bus_text_clean(text);
        assert_true(cp_bus_text_is_clean(text));
        if (i % 64 == 0) {
            message = sd_bus_message_unref(message);
            assert_true(sd_bus_message_new(connection, &message, SD_BUS_MESSAGE_METHOD_CALL) >= 0);
        }
        assert_true(sd_bus_message_append_basic(message, 's', text) >= 0);
    }
    sd_bus_message_unref(message);
    sd_bus_close_unref(connection);
    close(sockets[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_sd_bus_accepts_what_is_clean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
