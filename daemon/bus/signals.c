/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One typed emitter for each signal. Broadcasts reach everyone on the bus: they carry an id and a
 * state only. A signal that cannot be sent is no reason to stop: listeners ask again.
 */
#include "base/log.h"
#include "bus/bus-internal.h"
#include "bus/interface.h"

#include <string.h>

static bool is_up(const struct cp_bus *bus)
{
    return bus && !bus->lost && sd_bus_is_open(bus->connection) > 0;
}

static void note(int r, const char *name)
{
    if (r < 0)
        cp_log_debug("signal %s was not sent: %s", name, strerror(-r));
}

static void emit_decision(struct cp_bus *bus, const char *name, uint64_t id,
                          enum cp_decision_state state)
{
    const char *text = cp_decision_state_to_string(state);

    if (is_up(bus) && text)
        note(sd_bus_emit_signal(bus->connection, CP_BUS_PATH, CP_BUS_MANAGER, name, "ts", id, text),
             name);
}

static void emit_property(struct cp_bus *bus, const char *name)
{
    if (is_up(bus))
        note(sd_bus_emit_properties_changed(bus->connection, CP_BUS_PATH, CP_BUS_MANAGER, name,
                                            NULL),
             name);
}

void cp_bus_emit_decision_made(struct cp_bus *bus, uint64_t id, enum cp_decision_state state)
{
    emit_decision(bus, "DecisionMade", id, state);
}

void cp_bus_emit_decision_changed(struct cp_bus *bus, uint64_t id, enum cp_decision_state state)
{
    emit_decision(bus, "DecisionChanged", id, state);
}

void cp_bus_emit_samples_lost(struct cp_bus *bus, uint64_t n)
{
    if (is_up(bus))
        note(
            sd_bus_emit_signal(bus->connection, CP_BUS_PATH, CP_BUS_MANAGER, "SamplesLost", "t", n),
            "SamplesLost");
}

void cp_bus_emit_mode_changed(struct cp_bus *bus)
{
    emit_property(bus, "Mode");
}

void cp_bus_emit_topology_changed(struct cp_bus *bus)
{
    emit_property(bus, "TopologyGeneration");
}
