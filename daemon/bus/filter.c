/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The filter of ListDecisions. Refuses what it does not know: a filter that is silently ignored
 * would show too much. */
#include "bus/filter.h"

#include <errno.h>
#include <string.h>

static int read_state(sd_bus_message *message, struct cp_bus_filter *filter, struct cp_error *error)
{
    const char *text;
    int r = sd_bus_message_read(message, "v", "s", &text);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < CP_DECISION_STATE_MAX; i++)
        if (strcmp(text, cp_decision_state_to_string((enum cp_decision_state)i)) == 0) {
            filter->by_state = true;
            filter->state = (enum cp_decision_state)i;
            return 0;
        }
    return cp_error_set(error, EINVAL,
                        "there is no state '%s'; the states are proposed, applied, kept, undone, "
                        "yielded, failed and restored",
                        text);
}

static int read_tid(sd_bus_message *message, struct cp_bus_filter *filter)
{
    int r = sd_bus_message_read(message, "v", "u", &filter->tid);

    filter->by_tid = r >= 0;
    return r;
}

static int wrong_type(struct cp_error *error, const char *key, const char *wanted,
                      const char *contents)
{
    return cp_error_set(error, EINVAL, "filter key '%s' takes %s, not type '%s'", key, wanted,
                        contents);
}

static int read_entry(sd_bus_message *message, struct cp_bus_filter *filter, struct cp_error *error)
{
    const char *key;
    const char *contents;
    int r = sd_bus_message_read_basic(message, 's', &key);

    if (r >= 0)
        r = sd_bus_message_peek_type(message, NULL, &contents);
    if (r < 0)
        return r;
    if (strcmp(key, "state") == 0)
        return strcmp(contents, "s") == 0 ? read_state(message, filter, error)
                                          : wrong_type(error, key, "a string (s)", contents);
    if (strcmp(key, "tid") == 0)
        return strcmp(contents, "u") == 0 ? read_tid(message, filter)
                                          : wrong_type(error, key, "a number (u)", contents);
    return cp_error_set(error, EINVAL,
                        "there is no filter key '%s'; the keys are state (s) and tid (u)", key);
}

int cp_bus_filter_read(sd_bus_message *message, struct cp_bus_filter *ret_filter,
                       struct cp_error *error)
{
    struct cp_bus_filter filter = {0};
    int r = sd_bus_message_enter_container(message, 'a', "{sv}");

    while (r >= 0 && (r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
        r = read_entry(message, &filter, error);
        if (r >= 0)
            r = sd_bus_message_exit_container(message);
    }
    if (r >= 0)
        r = sd_bus_message_exit_container(message);
    if (r < 0)
        return r;
    *ret_filter = filter;
    return 0;
}

bool cp_bus_filter_matches(const struct cp_bus_filter *filter, const struct cp_decision *decision)
{
    if (filter->by_state && decision->state != filter->state)
        return false;
    return !filter->by_tid || (uint32_t)decision->tasks[0].tid == filter->tid ||
           (uint32_t)decision->tasks[1].tid == filter->tid;
}
