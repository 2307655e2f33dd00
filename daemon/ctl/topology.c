/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * coplacectl topology: the machine as coplace sees it. The daemon's machine with its costs, or,
 * with a source given, any other machine without a daemon.
 */
#include "bus/client.h"
#include "ctl/ctl.h"
#include "ctl/topology-reply.h"
#include "ctl/topology-view.h"
#include "ctl/views.h"
#include "machine/machine.h"

#include <errno.h>

enum { OPTION_XML, OPTION_SYNTHETIC, OPTION_ROOT, N_SOURCES };

/* costs NULL: none are known (no daemon). */
static int show(const struct cp_ctl *ctl, const struct cp_machine *machine, json_t *costs)
{
    json_t *object;
    int r;

    if (!ctl->json) {
        r = cp_topology_print(machine, ctl->view.out, ctl->view.width);
        if (r == 0 && costs) {
            (void)fputc('\n', ctl->view.out);
            r = cp_view_costs(&ctl->view, costs);
        }
        return cp_ctl_viewed(r);
    }
    object = cp_topology_to_json(machine);
    if (object && costs && json_object_set(object, "costs", costs) < 0) {
        json_decref(object);
        object = NULL;
    }
    return cp_ctl_put_json(object, false);
}

static int show_source(const struct cp_ctl *ctl, const struct cp_machine_source *source)
{
    _cleanup_machine_ struct cp_machine *machine = NULL;
    struct cp_error error = {0};
    int r = cp_machine_load(source, 1, &machine, &error);

    return r < 0 ? cp_ctl_failed(r, &error) : show(ctl, machine, NULL);
}

static int show_daemon(const struct cp_ctl *ctl)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_machine_ struct cp_machine *machine = NULL;
    _cleanup_json_ json_t *topology = NULL;
    struct cp_error error = {0};
    int r = cp_ctl_open(ctl, &bus);

    if (r != 0)
        return r;
    r = cp_client_call(bus, "GetTopology", 0, &reply, &error, "");
    if (r != 0)
        return cp_ctl_failed(r, &error);
    r = cp_ctl_read(reply, &topology);
    if (r != 0)
        return r;
    r = cp_topology_from_reply(topology, &machine);
    if (r < 0) {
        (void)cp_error_set(&error, -r,
                           "the daemon's machine makes no sense: is it of another "
                           "version?");
        return cp_ctl_failed(r, &error);
    }
    return show(ctl, machine, json_object_get(topology, "costs"));
}

static int run_topology(const struct cp_ctl *ctl, const struct cp_arguments *arguments)
{
    static const enum cp_machine_source_kind kinds[N_SOURCES] = {
        [OPTION_XML] = CP_MACHINE_XML,
        [OPTION_SYNTHETIC] = CP_MACHINE_SYNTHETIC,
        [OPTION_ROOT] = CP_MACHINE_ROOT,
    };
    struct cp_machine_source source = {0};
    unsigned n_given = 0;

    for (size_t i = 0; i < N_SOURCES; i++) {
        if (!arguments->options[i])
            continue;
        n_given++;
        source = (struct cp_machine_source){.kind = kinds[i], .text = arguments->options[i]};
    }
    if (n_given > 1)
        return cp_ctl_usage(&cp_verb_topology, "--xml, --synthetic and --root exclude each other");
    return n_given == 1 ? show_source(ctl, &source) : show_daemon(ctl);
}

const struct cp_verb cp_verb_topology = {
    .name = "topology",
    .synopsis = "[--xml=FILE|--synthetic=TEXT|--root=DIR]",
    .summary = "the machine as coplace sees it, and what hand-offs cost",
    .description =
        "Shows the daemon's machine: CPUs, caches, nodes, packages, what is offline, isolated or\n"
        "not allowed, and the cost of a hand-off at each level. With a source given, shows that\n"
        "machine, without a daemon and without costs.\n",
    .example = "coplacectl topology --synthetic \"package:2 l3:4 core:2 pu:2\"",
    .options =
        {
            [OPTION_XML] = {"xml", "FILE", "a machine saved by hwloc (lstopo FILE.xml)"},
            [OPTION_SYNTHETIC] = {"synthetic", "TEXT", "a machine described in hwloc's words"},
            [OPTION_ROOT] = {"root", "DIR", "a machine recorded as a directory with sys/"},
        },
    .run = run_topology,
};
