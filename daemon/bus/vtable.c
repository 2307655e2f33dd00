/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The members of org.coplace.Placement1.Manager: names, types and names of arguments, as
 * interface.h documents them. Every method is open to anyone here (UNPRIVILEGED) and checked in
 * methods.c: sd-bus's own check knows only root and the daemon's user.
 */
#include "bus/bus-internal.h"

#define METHOD(name, arguments, result)                                                            \
    SD_BUS_METHOD_WITH_ARGS(name, SD_BUS_ARGS arguments, SD_BUS_RESULT result, cp_bus_on_method,   \
                            SD_BUS_VTABLE_UNPRIVILEGED)

const sd_bus_vtable cp_bus_vtable[] = {
    SD_BUS_VTABLE_START(0),

    SD_BUS_PROPERTY("Version", "s", cp_bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Mode", "s", cp_bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("WakeSource", "s", cp_bus_get_text, 0, 0),
    SD_BUS_PROPERTY("WakeSourceDetail", "s", cp_bus_get_text, 0, 0),
    SD_BUS_PROPERTY("TopologyGeneration", "t", cp_bus_get_u64, 0,
                    SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("StartedAt", "t", cp_bus_get_u64, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("ScoutAttaches", "t", cp_bus_get_u64, 0, 0),
    SD_BUS_PROPERTY("ScaleAttaches", "t", cp_bus_get_u64, 0, 0),
    SD_BUS_PROPERTY("DroppedHandoffs", "t", cp_bus_get_u64, 0, 0),
    SD_BUS_PROPERTY("LostEvents", "t", cp_bus_get_u64, 0, 0),
    SD_BUS_PROPERTY("Placements", "u", cp_bus_get_placements, 0, 0),
    SD_BUS_PROPERTY("DecisionCounts", "a{su}", cp_bus_get_decision_counts, 0, 0),
    SD_BUS_PROPERTY("Policy", "a{sv}", cp_bus_get_policy, 0, 0),
    SD_BUS_PROPERTY("Neighbours", "as", cp_bus_get_neighbours, 0, 0),

    METHOD("ListPairs", ("u", limit), ("aa{sv}", pairs)),
    METHOD("ListDecisions", ("a{sv}", filter, "t", cursor, "u", limit),
           ("aa{sv}", decisions, "t", next_cursor)),
    METHOD("ExplainTask", ("(ut)", task), ("a{sv}", explanation)),
    METHOD("Undo", ("t", decision), (NULL)),
    METHOD("UndoAll", (NULL), ("u", undone)),
    METHOD("Allow", ("(ut)", task), ("u", lifted)),
    METHOD("SetMode", ("s", mode, "b", persist), (NULL)),
    METHOD("Calibrate", (NULL), ("aa{sv}", costs)),
    METHOD("GetTopology", (NULL), ("a{sv}", topology)),

    SD_BUS_SIGNAL_WITH_ARGS("DecisionMade", SD_BUS_ARGS("t", id, "s", state), 0),
    SD_BUS_SIGNAL_WITH_ARGS("DecisionChanged", SD_BUS_ARGS("t", id, "s", state), 0),
    SD_BUS_SIGNAL_WITH_ARGS("SamplesLost", SD_BUS_ARGS("t", n), 0),

    SD_BUS_VTABLE_END,
};
