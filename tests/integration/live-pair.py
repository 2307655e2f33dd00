#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A serial pair that runs apart is found, placed, kept, explained, undone, allowed and given back."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from live import Daemon, all_cpus, check, end, main, masks, start_load, wait_for, wait_placed  # noqa: E402


def newest(daemon, pids):
    found = [d for d in daemon.decisions() if {d["task_a"]["tid"], d["task_b"]["tid"]} == set(pids)]
    return found[-1] if found else {"state": "none"}


def wait_state(daemon, pids, state):
    return wait_for(lambda: newest(daemon, pids)["state"] == state and newest(daemon, pids), 20,
                    f"a decision in state {state}, found {newest(daemon, pids)['state']}")


def test(bus):
    # Bound apart, so that the kernel's own packing cannot hide the pair; override lifts that.
    with Daemon(bus, "--affinity=override", "--settle=1s") as daemon:
        daemon.wait_calibrated()
        pair = start_load("pingpong", 120, 0, 1)
        try:
            wait_placed(pair.pids)
            decision = wait_state(daemon, pair.pids, "kept")
            check(decision["relation"] == "serial", "the relation is serial")
            check(decision["rule"] == "handoff" and decision["level"] == "cpu",
                  "rule handoff, level cpu")
            check(decision["predicted_gain"] > 0, "a gain was predicted")
            check(decision["after"]["rate"] > decision["before"]["rate"], "the rate has risen")
            check(decision["applied"] >= decision["hot"] > 0, "it was hot before it was placed")
            explained = daemon.json("explain", pair.pids[0])
            check(explained["decision"]["id"] == decision["id"], "explain names the decision")
            check(explained["former_mask"] in ("0", "1"), "explain knows the former mask")
            check(str(pair.pids[1]) in daemon.ctl("explain", pair.pids[0]).stdout,
                  "explain names the partner")
            daemon.ctl("undo", decision["id"])
            check(masks(pair.pids) == {pair.pids[0]: {0}, pair.pids[1]: {1}},
                  "undo gives both masks back")
            check(newest(daemon, pair.pids)["state"] == "undone", "the decision is undone")
            explained = daemon.json("explain", pair.pids[0])
            again = daemon.ctl("undo", decision["id"], check=False)
            check(again.returncode == 1 and len(again.stderr.splitlines()) == 1,
                  "a second undo is a clear error")
            daemon.ctl("allow", pair.pids[0])
            wait_placed(pair.pids, 20)
            check(True, "allow lifts the veto")
            daemon.ctl("mode", "observe")
            check(masks(pair.pids) == {pair.pids[0]: {0}, pair.pids[1]: {1}},
                  "mode observe gives back")
        finally:
            end(pair)
    with Daemon(bus, "--mode=observe", "--affinity=override") as daemon:
        pair = start_load("pingpong", 120, 0, 1)
        try:
            wait_state(daemon, pair.pids, "proposed")
            check(masks(pair.pids) == {pair.pids[0]: {0}, pair.pids[1]: {1}},
                  "observe proposes and changes nothing")
        finally:
            end(pair)
    with Daemon(bus) as daemon:
        pair = start_load("pingpong", 120, 0, 1)
        try:
            explained = wait_for(lambda: daemon.json("explain", pair.pids[0]).get("outcome") ==
                                 "foreign-mask" and daemon.json("explain", pair.pids[0]), 20,
                                 "the outcome foreign-mask")
            check("bound" in explained["outcome_text"], "a pair bound by others is left alone, and why")
        finally:
            end(pair)
        check(all_cpus() == set(masks([daemon.process.pid])[daemon.process.pid]),
              "the daemon itself is bound nowhere")


if __name__ == "__main__":
    main(test)
