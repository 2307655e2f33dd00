/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Translates messages. Knows types, no keys, so it never has to follow the interface.
 */
#include "ctl/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static json_t *from_unsigned(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

static json_t *from_double(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static int read_basic(sd_bus_message *message, char type, json_t **ret_value)
{
    union {
        uint8_t u8;
        int boolean;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        double number;
        const char *text;
    } basic = {0};
    json_t *value;
    int r;

    if (!strchr("ybnqiuxtdsog", type))
        return -ENOTSUP;
    r = sd_bus_message_read_basic(message, type, &basic);
    if (r <= 0)
        return r < 0 ? r : -EBADMSG;
    switch (type) {
    case 'y':
        value = json_integer(basic.u8);
        break;
    case 'b':
        value = json_boolean(basic.boolean);
        break;
    case 'n':
        value = json_integer(basic.i16);
        break;
    case 'q':
        value = json_integer(basic.u16);
        break;
    case 'i':
        value = json_integer(basic.i32);
        break;
    case 'u':
        value = json_integer(basic.u32);
        break;
    case 'x':
        value = json_integer(basic.i64);
        break;
    case 't':
        value = from_unsigned(basic.u64);
        break;
    case 'd':
        value = from_double(basic.number);
        break;
    default:
        value = json_string(basic.text);
    }
    if (!value)
        return -ENOMEM;
    *ret_value = value;
    return 1;
}

/* One entry of a dictionary; its key is text. */
static int read_entry(sd_bus_message *message, json_t *object)
{
    json_t *value = NULL;
    const char *key;
    int r = sd_bus_message_enter_container(message, SD_BUS_TYPE_DICT_ENTRY, NULL);

    if (r < 0)
        return r;
    r = sd_bus_message_read_basic(message, 's', &key);
    if (r < 0)
        return r;
    r = cp_json_read(message, &value);
    if (r <= 0)
        return r < 0 ? r : -EBADMSG;
    if (json_object_set_new(object, key, value) < 0)
        return -ENOMEM;
    return sd_bus_message_exit_container(message);
}

static int read_entries(sd_bus_message *message, json_t *object)
{
    int r;

    /* Asked first: entering with unnamed contents fails at the end of an array. */
    while ((r = sd_bus_message_at_end(message, 0)) == 0) {
        r = read_entry(message, object);
        if (r < 0)
            break;
    }
    return r < 0 ? r : 0;
}

static int read_items(sd_bus_message *message, json_t *array)
{
    json_t *value;
    int r;

    while ((r = cp_json_read(message, &value)) > 0) {
        if (json_array_append_new(array, value) < 0)
            return -ENOMEM;
    }
    return r;
}

/* Arrays, dictionaries, structures but the task, and what is in a variant. */
static int read_container(sd_bus_message *message, char type, const char *contents,
                          json_t **ret_value)
{
    bool dictionary = type == SD_BUS_TYPE_ARRAY && contents[0] == '{';
    _cleanup_json_ json_t *value = NULL;
    int r;

    if (dictionary && contents[1] != 's')
        return -ENOTSUP;
    r = sd_bus_message_enter_container(message, type, contents);
    if (r < 0)
        return r;
    if (type == SD_BUS_TYPE_VARIANT) {
        r = cp_json_read(message, &value);
        if (r == 0)
            r = -EBADMSG;
    } else {
        value = dictionary ? json_object() : json_array();
        if (!value)
            return -ENOMEM;
        r = dictionary ? read_entries(message, value) : read_items(message, value);
    }
    if (r < 0)
        return r;
    r = sd_bus_message_exit_container(message);
    if (r < 0)
        return r;
    *ret_value = TAKE_PTR(value);
    return 1;
}

static int read_task(sd_bus_message *message, json_t **ret_value)
{
    _cleanup_json_ json_t *value = NULL;
    json_t *start;
    uint32_t tid;
    uint64_t start_ticks;
    int r = sd_bus_message_read(message, "(ut)", &tid, &start_ticks);

    if (r <= 0)
        return r < 0 ? r : -EBADMSG;
    value = json_object();
    start = from_unsigned(start_ticks);
    if (!value || json_object_set_new(value, "tid", json_integer(tid)) < 0) {
        json_decref(start);
        return -ENOMEM;
    }
    if (json_object_set_new(value, "start", start) < 0)
        return -ENOMEM;
    *ret_value = TAKE_PTR(value);
    return 1;
}

int cp_json_read(sd_bus_message *message, json_t **ret_value)
{
    const char *contents;
    char type;
    int r = sd_bus_message_peek_type(message, &type, &contents);

    if (r <= 0)
        return r;
    if (type == SD_BUS_TYPE_STRUCT && strcmp(contents, "ut") == 0)
        return read_task(message, ret_value);
    if (type == SD_BUS_TYPE_ARRAY || type == SD_BUS_TYPE_STRUCT || type == SD_BUS_TYPE_VARIANT)
        return read_container(message, type, contents, ret_value);
    return read_basic(message, type, ret_value);
}

const char *cp_json_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

uint64_t cp_json_count(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    double number;

    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    number = json_real_value(value);
    if (number <= 0)
        return 0;
    return number >= 0x1p64 ? UINT64_MAX : (uint64_t)number;
}

double cp_json_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

bool cp_json_flag(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

const json_t *cp_json_filled(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_array_size(value) > 0 || json_object_size(value) > 0 ? value : NULL;
}
