/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The D-Bus interface org.coplace.Placement1.Manager as both sides know it: names, and the keys of
 * every dictionary. bus/ serves it, bus/client reads it, the CLI's JSON has the same names.
 *
 * Types (design, section 7): task (ut) = TID and start time in ticks; CPUs as a list string
 * ("0-3,8"); times t in ns of CLOCK_BOOTTIME; rates d per second; costs d in ns; gains d in ns a
 * second; decision id t. Within Placement1 there are only additions.
 *
 * Introspection shows the names of arguments and no prose (sd-bus has none): this is the document.
 *
 * Methods                                                     who
 *   ListPairs(u limit) → aa{sv} pairs                         anyone: own tasks; privileged: all
 *   ListDecisions(a{sv} filter, t cursor, u limit)
 *        → aa{sv} decisions, t next_cursor                    anyone: own; privileged: all
 *        filter keys: state s, tid u (either task); others are InvalidArgument. Ids rise and are
 *        above cursor; next_cursor is the last id given, or cursor if there was none.
 *   ExplainTask((ut) task) → a{sv}                            own task; start 0: whoever has it now
 *   Undo(t decision)                                          privileged
 *   UndoAll() → u undone                                      privileged
 *   Allow((ut) task) → u lifted          (0,0): all           privileged
 *   SetMode(s mode, b persist)                                privileged
 *   Calibrate() → aa{sv} costs           (replies when done)  privileged
 *   GetTopology() → a{sv}                                     anyone
 * Signals (broadcast, an id and a state only)
 *   DecisionMade(t id, s state), DecisionChanged(t id, s state), SamplesLost(t n)
 * Properties (read-only)
 *   Version s, Mode s*, WakeSource s, WakeSourceDetail s, TopologyGeneration t*, StartedAt t,
 *   ScoutAttaches t, ScaleAttaches t, DroppedHandoffs t, LostEvents t, Placements u,
 *   DecisionCounts a{su}, Policy a{sv}, Neighbours as      (* emits PropertiesChanged)
 * Errors
 *   org.coplace.Error.NoSuchTask, .NoSuchDecision, .NotPermitted, .NotInEffect,
 *   .InvalidArgument, .Busy, .Failed; and of the bus itself: InvalidArgs (wrong types),
 *   LimitsExceeded (too many calls of callers not yet known)
 * Limits of the lists: at most CP_BUS_LIST_LIMIT entries a call; 0 means as many.
 * Texts are valid UTF-8 without control characters; what a task's name has of them is shown as '?'.
 * An explanation to a caller who may not see the task's partner is as if there were none.
 *
 * pair: task_a (ut), task_b (ut), comm_a s, comm_b s, pid_a u, pid_b u, uid_a u, uid_b u,
 *       relation s, reason s, rate d, balance d, stacking_gain d,
 *       latency_ab d, latency_ba d, tail_ab d, tail_ba d, run_ab d, run_ba d,
 *       slept_ab d, slept_ba d, levels a{sd} (shares of both directions), load_a d, load_b d,
 *       fan_out_a d, fan_out_b d, outcome s, outcome_text s, decision t (0 none)
 * decision: id t, state s, why s, task_a (ut), task_b (ut), comm_a s, comm_b s, pid_a u, pid_b u,
 *       uid_a u, uid_b u, cpus s, level s, level_before s, rule s, relation s, policy s,
 *       predicted_gain d, candidates aa{sv} (level s, total d, gain d, possible b),
 *       before a{sv}, after a{sv} (rate d, loss d, latency d, outside d, handoffs t, begin t,
 *       end t; empty if not observed), hot t, decided t, applied t, changed t
 * explanation: task (ut), comm s, pid u, uid u, mask s, former_mask s ("" if not placed),
 *       summary s (one sentence), outcome s, outcome_text s, outcome_until t (the outcome is "" if
 *       there is neither a pair nor a standing decision),
 *       pair a{sv} (as above; empty if none), candidates aa{sv}, level_now s,
 *       decision a{sv} (as above; empty if none), policy a{sv}, facts a{sv} (age t, sched s,
 *       cpuset s, user_mask s, last_cpu u, rss_kib t)
 * topology: generation t, source s, live b, model s, online s, offline s, isolated s,
 *       disallowed s, cpus aa{sv} (cpu u, core i, llc i, node i, package i, kind i; -1 none),
 *       domains aa{sv} (level s, index u, os_index u, real b, cpus s, cache_level u,
 *       cache_bytes t), costs aa{sv}
 * cost: level s, ns d, raw d, spread d, samples t, source s, doubtful b, present b
 * policy: name s, mode s, pairs s, affinity s, keep s, min_rate d, min_gain d, margin d, settle t,
 *       min_age t, across b, nodes s
 */
#pragma once

#define CP_BUS_NAME "org.coplace.Placement1"
#define CP_BUS_PATH "/org/coplace/Placement1"
#define CP_BUS_MANAGER "org.coplace.Placement1.Manager"

#define CP_BUS_LIST_LIMIT 1000u

#define CP_BUS_ERROR_NO_SUCH_TASK "org.coplace.Error.NoSuchTask"
#define CP_BUS_ERROR_NO_SUCH_DECISION "org.coplace.Error.NoSuchDecision"
#define CP_BUS_ERROR_NOT_PERMITTED "org.coplace.Error.NotPermitted"
#define CP_BUS_ERROR_NOT_IN_EFFECT "org.coplace.Error.NotInEffect"
#define CP_BUS_ERROR_INVALID_ARGUMENT "org.coplace.Error.InvalidArgument"
#define CP_BUS_ERROR_BUSY "org.coplace.Error.Busy"
#define CP_BUS_ERROR_FAILED "org.coplace.Error.Failed"
