/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* D-Bus messages as JSON. The messages are real ones of sd-bus, on a bus that nobody answers. */
#include "ctl/json.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <setjmp.h>

#include <cmocka.h>

struct fixture {
    sd_bus *bus;
    int other_end;
};

static int setup(void **state)
{
    static struct fixture fixture;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    fixture.other_end = ends[1];
    *state = &fixture;
    if (sd_bus_new(&fixture.bus) < 0 || sd_bus_set_fd(fixture.bus, ends[0], ends[0]) < 0)
        return -1;
    return sd_bus_start(fixture.bus) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    sd_bus_close_unref(fixture->bus);
    close(fixture->other_end);
    return 0;
}

static sd_bus_message *begin(void **state)
{
    struct fixture *fixture = *state;
    sd_bus_message *message;

    assert_true(sd_bus_message_new_signal(fixture->bus, &message, "/a", "a.b", "C") >= 0);
    return message;
}

/* Seals the message and reads all of it; expected is JSON with its keys in order. */
static void check(sd_bus_message *message, const char *expected)
{
    _cleanup_json_ json_t *value = NULL;
    _cleanup_json_ json_t *rest = NULL;
    _cleanup_free_ char *text = NULL;

    assert_true(sd_bus_message_seal(message, 1, 0) >= 0);
    assert_true(sd_bus_message_rewind(message, 1) >= 0);
    assert_int_equal(cp_json_read(message, &value), 1);
    text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    assert_non_null(text);
    assert_string_equal(text, expected);
    assert_int_equal(cp_json_read(message, &rest), 0);
    assert_null(rest);
    sd_bus_message_unref(message);
}

static void basic_types(void **state)
{
    sd_bus_message *message = begin(state);

    assert_true(sd_bus_message_append(message, "a{sv}", 9, "b", "b", 1, "y", "y", 255, "n", "n", -3,
                                      "i", "i", -70000, "u", "u", UINT32_MAX, "x", "x", INT64_MIN,
                                      "d", "d", 0.5, "s", "s", "text \"q\"", "o", "o",
                                      "/a/b") >= 0);
    check(message, "{\"b\":true,\"y\":255,\"n\":-3,\"i\":-70000,\"u\":4294967295,"
                   "\"x\":-9223372036854775808,\"d\":0.5,\"s\":\"text \\\"q\\\"\",\"o\":\"/a/b\"}");
}

static void numbers_beyond_json(void **state)
{
    sd_bus_message *message = begin(state);

    assert_true(sd_bus_message_append(message, "a{sv}", 5, "most", "t", (uint64_t)INT64_MAX,
                                      "above", "t", UINT64_MAX, "nan", "d", (double)NAN, "infinite",
                                      "d", (double)INFINITY, "zero", "d", 0.0) >= 0);
    check(message, "{\"most\":9223372036854775807,\"above\":1.84467440737096e19,\"nan\":null,"
                   "\"infinite\":null,\"zero\":0.0}");
}

static void tasks_and_dictionaries(void **state)
{
    sd_bus_message *message = begin(state);

    assert_true(sd_bus_message_append(message, "aa{sv}", 2, 2, "task", "(ut)", 7u, (uint64_t)123456,
                                      "levels", "a{sd}", 1, "cpu", 0.25, 1, "empty", "a{sv}",
                                      0) >= 0);
    check(message, "[{\"task\":{\"tid\":7,\"start\":123456},\"levels\":{\"cpu\":0.25}},"
                   "{\"empty\":{}}]");
}

static void nested(void **state)
{
    sd_bus_message *message = begin(state);

    assert_true(sd_bus_message_append(message, "a{sv}", 4, "list", "aa{sv}", 1, 1, "level", "s",
                                      "cpu", "counts", "a{su}", 2, "kept", 3u, "undone", 0u,
                                      "names", "as", 2, "a", "b", "tuple", "(us)", 1u, "x") >= 0);
    check(message, "{\"list\":[{\"level\":\"cpu\"}],\"counts\":{\"kept\":3,\"undone\":0},"
                   "\"names\":[\"a\",\"b\"],\"tuple\":[1,\"x\"]}");
}

static void several_values(void **state)
{
    sd_bus_message *message = begin(state);
    _cleanup_json_ json_t *list = NULL;
    _cleanup_json_ json_t *cursor = NULL;

    assert_true(sd_bus_message_append(message, "aa{sv}t", 0, (uint64_t)12) >= 0);
    assert_true(sd_bus_message_seal(message, 1, 0) >= 0);
    assert_int_equal(cp_json_read(message, &list), 1);
    assert_int_equal(json_array_size(list), 0);
    assert_true(json_is_array(list));
    assert_int_equal(cp_json_read(message, &cursor), 1);
    assert_int_equal(json_integer_value(cursor), 12);
    sd_bus_message_unref(message);
}

static void unknown_types(void **state)
{
    struct fixture *fixture = *state;
    sd_bus_message *message = begin(state);
    json_t *value = NULL;

    assert_true(sd_bus_message_append(message, "a{us}", 1, 1u, "x") >= 0);
    assert_true(sd_bus_message_seal(message, 1, 0) >= 0);
    assert_int_equal(cp_json_read(message, &value), -ENOTSUP);
    assert_null(value);
    sd_bus_message_unref(message);
    message = begin(state);
    assert_true(sd_bus_message_append(message, "a{sv}", 1, "fd", "h", fixture->other_end) >= 0);
    assert_true(sd_bus_message_seal(message, 1, 0) >= 0);
    assert_int_equal(cp_json_read(message, &value), -ENOTSUP);
    assert_null(value);
    sd_bus_message_unref(message);
}

static void forgiving_access(void **state)
{
    _cleanup_json_ json_t *object =
        json_pack("{s:s, s:i, s:i, s:f, s:f, s:b, s:{}, s:[i]}", "text", "x", "n", 5, "minus", -5,
                  "huge", 1.8446744073709552e19, "real", 2.75, "flag", 1, "empty", "list", 1);

    (void)state;
    assert_non_null(object);
    assert_string_equal(cp_json_text(object, "text"), "x");
    assert_string_equal(cp_json_text(object, "n"), "");
    assert_string_equal(cp_json_text(object, "none"), "");
    assert_string_equal(cp_json_text(NULL, "none"), "");
    assert_int_equal(cp_json_count(object, "n"), 5);
    assert_int_equal(cp_json_count(object, "minus"), 0);
    assert_int_equal(cp_json_count(object, "real"), 2);
    assert_true(cp_json_count(object, "huge") == UINT64_MAX);
    assert_int_equal(cp_json_count(object, "text"), 0);
    assert_true(cp_json_number(object, "n") == 5);
    assert_true(cp_json_number(object, "text") == 0);
    assert_true(cp_json_flag(object, "flag"));
    assert_false(cp_json_flag(object, "n"));
    assert_null(cp_json_filled(object, "empty"));
    assert_null(cp_json_filled(object, "none"));
    assert_non_null(cp_json_filled(object, "list"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(basic_types),
        cmocka_unit_test(numbers_beyond_json),
        cmocka_unit_test(tasks_and_dictionaries),
        cmocka_unit_test(nested),
        cmocka_unit_test(several_values),
        cmocka_unit_test(unknown_types),
        cmocka_unit_test(forgiving_access),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
