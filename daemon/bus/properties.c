/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Getters of the properties. Anyone may read them, so nothing here may tell of a single task.
 */
#include "base/cleanup.h"
#include "bus/bus-internal.h"
#include "bus/reply.h"
#include "bus/text.h"

#include <errno.h>
#include <string.h>

static struct cp_bus_view view_of(const struct cp_bus *bus)
{
    struct cp_bus_view view = {0};

    bus->ops->view(bus->userdata, &view);
    return view;
}

/* What a person should know about the source: why there is none, or what it cannot tell apart. */
static const char *wake_detail(const struct cp_wake_source *wake)
{
    if (wake->why[0])
        return wake->why;
    return wake->sees_hard_interrupts
               ? "wake-ups from hard interrupts are told apart and not counted"
               : "wake-ups from hard interrupts cannot be told apart on this kernel; one-way ones "
                 "are filtered";
}

static int append_text(sd_bus_message *reply, const char *text)
{
    _cleanup_free_ char *copy = strdup(text ? text : "");

    if (!copy)
        return -ENOMEM;
    cp_bus_text_clean(copy);
    return sd_bus_message_append_basic(reply, 's', copy);
}

int cp_bus_get_text(sd_bus *connection, const char *path, const char *interface, const char *name,
                    sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
    struct cp_bus_view view = view_of(userdata);
    const struct {
        const char *name;
        const char *text;
    } texts[] = {
        {"Version", view.version},
        {"Mode", cp_mode_to_string(view.mode)},
        {"WakeSource", view.wake->ops->name},
        {"WakeSourceDetail", wake_detail(view.wake)},
    };

    (void)connection;
    (void)path;
    (void)interface;
    (void)ret_error;
    for (size_t i = 0; i < CP_ELEMENTS(texts); i++)
        if (strcmp(texts[i].name, name) == 0)
            return append_text(reply, texts[i].text);
    return -EINVAL;
}

int cp_bus_get_u64(sd_bus *connection, const char *path, const char *interface, const char *name,
                   sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
    struct cp_bus_view view = view_of(userdata);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"TopologyGeneration", view.machine->generation},
        {"StartedAt", view.started_ns},
        {"ScoutAttaches", view.wake->counters.n_scout_attaches},
        {"ScaleAttaches", view.wake->counters.n_scale_attaches},
        {"DroppedHandoffs", view.wake->counters.n_dropped},
        {"LostEvents", view.wake->counters.n_lost_events},
    };

    (void)connection;
    (void)path;
    (void)interface;
    (void)ret_error;
    for (size_t i = 0; i < CP_ELEMENTS(numbers); i++)
        if (strcmp(numbers[i].name, name) == 0)
            return sd_bus_message_append_basic(reply, 't', &numbers[i].value);
    return -EINVAL;
}

int cp_bus_get_placements(sd_bus *connection, const char *path, const char *interface,
                          const char *name, sd_bus_message *reply, void *userdata,
                          sd_bus_error *ret_error)
{
    struct cp_bus_view view = view_of(userdata);
    uint32_t n = view.n_placements;

    (void)connection;
    (void)path;
    (void)interface;
    (void)name;
    (void)ret_error;
    return sd_bus_message_append_basic(reply, 'u', &n);
}

int cp_bus_get_decision_counts(sd_bus *connection, const char *path, const char *interface,
                               const char *name, sd_bus_message *reply, void *userdata,
                               sd_bus_error *ret_error)
{
    struct cp_bus_view view = view_of(userdata);
    int r = sd_bus_message_open_container(reply, 'a', "{su}");

    (void)connection;
    (void)path;
    (void)interface;
    (void)name;
    (void)ret_error;
    for (unsigned i = 0; r >= 0 && i < CP_DECISION_STATE_MAX; i++) {
        enum cp_decision_state state = (enum cp_decision_state)i;
        size_t count = cp_ledger_count(view.ledger, state);

        r = sd_bus_message_append(reply, "{su}", cp_decision_state_to_string(state),
                                  (uint32_t)CP_MIN(count, (size_t)UINT32_MAX));
    }
    return r < 0 ? r : sd_bus_message_close_container(reply);
}

int cp_bus_get_policy(sd_bus *connection, const char *path, const char *interface, const char *name,
                      sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
    struct cp_bus_view view = view_of(userdata);

    (void)connection;
    (void)path;
    (void)interface;
    (void)name;
    (void)ret_error;
    return cp_bus_write_policy(reply, view.policy);
}

int cp_bus_get_neighbours(sd_bus *connection, const char *path, const char *interface,
                          const char *name, sd_bus_message *reply, void *userdata,
                          sd_bus_error *ret_error)
{
    struct cp_bus_view view = view_of(userdata);
    int r = sd_bus_message_open_container(reply, 'a', "s");

    (void)connection;
    (void)path;
    (void)interface;
    (void)name;
    (void)ret_error;
    for (const char *const *text = view.neighbours; r >= 0 && text && *text; text++)
        r = append_text(reply, *text);
    return r < 0 ? r : sd_bus_message_close_container(reply);
}
