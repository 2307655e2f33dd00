/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* coplacectl status: the daemon at a glance. */
#include "bus/client.h"
#include "ctl/ctl.h"
#include "ctl/text.h"
#include "ctl/views.h"

#include <string.h>

/* "1 kept, 2 undone", or "none". */
static void show_counts(const struct cp_view *view, json_t *counts)
{
    char text[256] = "none";
    size_t length = 0;

    for (void *i = json_object_iter(counts); i; i = json_object_iter_next(counts, i)) {
        json_int_t n = json_integer_value(json_object_iter_value(i));
        int r;

        if (n <= 0)
            continue;
        r = snprintf(text + length, sizeof(text) - length, "%s%lld %s", length > 0 ? ", " : "",
                     (long long)n, json_object_iter_key(i));
        if (r < 0 || (size_t)r >= sizeof(text) - length)
            break;
        length += (size_t)r;
    }
    cp_view_field(view, "Decisions", "%s", text);
}

static void show_neighbours(const struct cp_view *view, const json_t *neighbours)
{
    size_t n = json_array_size(neighbours);

    if (n == 0)
        cp_view_field(view, "Neighbours", "none");
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(neighbours, i));

        cp_view_field(view, i == 0 ? "Neighbours" : "", "%s", text ? text : "?");
    }
}

int cp_view_status(const struct cp_view *view, const json_t *properties)
{
    uint64_t started = cp_json_count(properties, "StartedAt");
    const char *detail = cp_json_text(properties, "WakeSourceDetail");
    char since[CP_TEXT_SIZE];

    cp_view_line(view, CP_STYLE_STRONG, "coplaced %s, mode %s", cp_json_text(properties, "Version"),
                 cp_json_text(properties, "Mode"));
    cp_view_field(view, "Running", "for %s",
                  cp_text_span(since, view->now_ns > started ? view->now_ns - started : 0));
    cp_view_field(view, "Wake source", "%s%s%s", cp_json_text(properties, "WakeSource"),
                  detail[0] ? ": " : "", detail);
    cp_view_field(view, "Windows", "%ju opened (scale attached); scout attached %ju times",
                  (uintmax_t)cp_json_count(properties, "ScaleAttaches"),
                  (uintmax_t)cp_json_count(properties, "ScoutAttaches"));
    cp_view_field(view, "Lost", "%ju hand-offs without room in a table, %ju events",
                  (uintmax_t)cp_json_count(properties, "DroppedHandoffs"),
                  (uintmax_t)cp_json_count(properties, "LostEvents"));
    cp_view_field(view, "Placements", "%ju masks are coplaced's now",
                  (uintmax_t)cp_json_count(properties, "Placements"));
    show_counts(view, json_object_get(properties, "DecisionCounts"));
    cp_view_policy(view, cp_json_filled(properties, "Policy"));
    show_neighbours(view, json_object_get(properties, "Neighbours"));
    cp_view_field(view, "Topology", "generation %ju",
                  (uintmax_t)cp_json_count(properties, "TopologyGeneration"));
    return 0;
}

static int run_status(const struct cp_ctl *ctl, const struct cp_arguments *arguments)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_json_ json_t *properties = NULL;
    struct cp_error error = {0};
    int r = cp_ctl_open(ctl, &bus);

    (void)arguments;
    if (r != 0)
        return r;
    r = cp_client_get_properties(bus, &reply, &error);
    if (r != 0)
        return cp_ctl_failed(r, &error);
    r = cp_ctl_read(reply, &properties);
    if (r != 0)
        return r;
    if (ctl->json)
        return cp_ctl_put_json(TAKE_PTR(properties), false);
    return cp_ctl_viewed(cp_view_status(&ctl->view, properties));
}

const struct cp_verb cp_verb_status = {
    .name = "status",
    .synopsis = "",
    .summary = "the daemon at a glance",
    .description = "Shows version, mode, wake source, windows, placements, decisions by state,\n"
                   "what was lost, the policy and the neighbours that coplaced respects.\n",
    .example = "coplacectl status --json | jq .Mode",
    .run = run_status,
};
