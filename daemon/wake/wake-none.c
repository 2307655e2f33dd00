/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wake source of a system without one: it sees nothing and says why. The daemon runs on with
 * it, so guarding and following the machine succeed (there is nothing to place, so nothing to
 * guard).
 */
#include "wake/wake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int none_event_fd(struct cp_wake_source *source)
{
    (void)source;
    return -1;
}

static int none_dispatch(struct cp_wake_source *source, cp_wake_event_handler handler,
                         void *userdata)
{
    (void)source;
    (void)handler;
    (void)userdata;
    return 0;
}

static void none_rearm(struct cp_wake_source *source)
{
    (void)source;
}

static int none_window_open(struct cp_wake_source *source, struct cp_error *error)
{
    return cp_error_set(error, EOPNOTSUPP, "no wake source: %s", source->why);
}

static int none_window_close(struct cp_wake_source *source, struct cp_wake_sample *ret_sample,
                             struct cp_error *error)
{
    (void)ret_sample;
    return cp_error_set(error, EOPNOTSUPP, "no wake source: %s", source->why);
}

static int none_guard(struct cp_wake_source *source, struct cp_task_id task)
{
    (void)source;
    (void)task;
    return 0;
}

static void none_unguard(struct cp_wake_source *source, struct cp_task_id task)
{
    (void)source;
    (void)task;
}

static int none_task_facts(struct cp_wake_source *source, struct cp_task_id task,
                           struct cp_wake_task_facts *ret_facts)
{
    (void)source;
    (void)task;
    (void)ret_facts;
    return -EOPNOTSUPP;
}

static int none_set_machine(struct cp_wake_source *source, const struct cp_machine *machine)
{
    (void)source;
    (void)machine;
    return 0;
}

static void none_free(struct cp_wake_source *source)
{
    free(source);
}

struct cp_wake_source *cp_wake_none_new(const char *why)
{
    static const struct cp_wake_source_ops ops = {
        .name = "none",
        .event_fd = none_event_fd,
        .dispatch = none_dispatch,
        .rearm = none_rearm,
        .window_open = none_window_open,
        .window_close = none_window_close,
        .guard = none_guard,
        .unguard = none_unguard,
        .task_facts = none_task_facts,
        .set_machine = none_set_machine,
        .free = none_free,
    };
    struct cp_wake_source *source = calloc(1, sizeof(*source));

    if (!source)
        return NULL;
    source->ops = &ops;
    (void)snprintf(source->why, sizeof(source->why), "%s", why);
    return source;
}
