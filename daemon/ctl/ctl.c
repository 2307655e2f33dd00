/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the verbs share. The edge at which errors are printed, once each. */
#include "ctl/ctl.h"

#include "bus/client.h"
#include "ctl/text.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

const char *const cp_ctl_modes[] = {"off", "observe", "enforce", NULL};
const char *const cp_ctl_states[] = {"proposed", "applied", "kept",     "undone",
                                     "yielded",  "failed",  "restored", NULL};

/* Messages quote names of threads and what the user typed: escaped. */
static void put_error(const char *prefix, const char *text)
{
    _cleanup_free_ char *escaped = cp_text_escape(text);

    (void)fprintf(stderr, "coplacectl: %s%s\n", prefix, escaped ? escaped : "out of memory");
}

int cp_ctl_failed(int result, const struct cp_error *error)
{
    char text[1200];

    cp_error_format(error, text, sizeof(text));
    put_error("", error->code != 0 || result >= 0 ? text : strerror(-result));
    return result == CP_CLIENT_NO_DAEMON ? CP_CTL_NO_DAEMON : CP_CTL_FAILED;
}

int cp_ctl_usage(const struct cp_verb *verb, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    char prefix[40] = "";
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (verb)
        (void)snprintf(prefix, sizeof(prefix), "%s: ", verb->name);
    put_error(prefix, text ? text : "out of memory");
    (void)fprintf(stderr, "Try 'coplacectl %s%s--help'.\n", verb ? verb->name : "",
                  verb ? " " : "");
    return CP_CTL_USAGE;
}

int cp_ctl_word(const struct cp_verb *verb, const char *text, const char *what,
                const char *const *words)
{
    char list[160] = "";
    size_t length = 0;

    for (size_t i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0)
            return 0;
        if (length < sizeof(list))
            length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s",
                                       i > 0 ? ", " : "", words[i]);
    }
    return cp_ctl_usage(verb, "'%s' is not %s (%s)", text, what, list);
}

int cp_ctl_open(const struct cp_ctl *ctl, sd_bus **ret_bus)
{
    struct cp_error error = {0};
    int r = cp_client_open(ctl->bus_address, ret_bus, &error);

    return r == 0 ? 0 : cp_ctl_failed(r, &error);
}

int cp_ctl_read(sd_bus_message *reply, json_t **ret_value)
{
    struct cp_error error = {0};
    int r = cp_json_read(reply, ret_value);

    if (r > 0)
        return 0;
    r = cp_error_set(&error, r < 0 ? -r : EBADMSG,
                     "cannot read the daemon's answer (%s): is it of another version?",
                     strerror(r < 0 ? -r : EBADMSG));
    return cp_ctl_failed(r, &error);
}

int cp_ctl_fetch_pairs(sd_bus *bus, uint32_t limit, json_t **ret_pairs)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    struct cp_error error = {0};
    int r = cp_client_call(bus, "ListPairs", 0, &reply, &error, "u", limit);

    return r == 0 ? cp_ctl_read(reply, ret_pairs) : cp_ctl_failed(r, &error);
}

int cp_ctl_viewed(int result)
{
    if (result == 0)
        return CP_CTL_DONE;
    put_error("", strerror(-result));
    return CP_CTL_FAILED;
}

int cp_ctl_number(const struct cp_verb *verb, const char *text, const char *what,
                  unsigned long long least, unsigned long long most, unsigned long long *ret_number)
{
    if (cp_arguments_number(text, least, most, ret_number))
        return 0;
    return cp_ctl_usage(verb, "'%s' is not %s (a number from %llu to %llu)", text, what, least,
                        most);
}

json_t *cp_ctl_wrap(const char *key, json_t *value)
{
    json_t *object = json_object();

    /* Takes the reference of value also when it fails. */
    if (json_object_set_new(object, key, value) < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

int cp_ctl_put_json(json_t *object, bool on_one_line)
{
    /* ASCII only: a terminal obeys some characters above 127 too. */
    size_t flags =
        JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15) | (on_one_line ? JSON_COMPACT : JSON_INDENT(2));
    _cleanup_json_ json_t *body = object;
    _cleanup_json_ json_t *schema = cp_ctl_wrap("schema", json_integer(1));

    if (!body || !schema || json_object_update(schema, body) < 0 ||
        json_dumpf(schema, stdout, flags) < 0) {
        put_error("", "cannot write JSON");
        return CP_CTL_FAILED;
    }
    (void)fputc('\n', stdout);
    return CP_CTL_DONE;
}
