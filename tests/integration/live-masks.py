#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Masks of others win, and an undo leaves no user mask behind: a cpuset is followed afterwards."""

import os
import time
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from live import Daemon, all_cpus, check, end, main, masks, start_load, start_placed, wait_for, wait_placed  # noqa: E402


class Cpuset:
    """A cpuset of its own, in whichever hierarchy has the controller; None where that is nowhere."""

    def __init__(self):
        self.path = None
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            left, right = line.split(" - ")
            mount, options = left.split()[4], right.split()
            if options[0] == "cgroup" and "cpuset" in options[2].split(","):
                self.create(mount, "tasks")
                return
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            left, right = line.split(" - ")
            root = pathlib.Path(left.split()[4])
            if right.split()[0] == "cgroup2" and \
                    "cpuset" in (root / "cgroup.controllers").read_text().split():
                (root / "cgroup.subtree_control").write_text("+cpuset")
                self.create(root, "cgroup.procs")
                return

    def create(self, mount, tasks):
        self.path = pathlib.Path(mount) / f"coplace-test-{os.getpid()}"
        self.path.mkdir()
        self.tasks = self.path / tasks
        self.set("0-1")
        if tasks == "tasks":
            (self.path / "cpuset.mems").write_text("0")

    def set(self, cpus):
        (self.path / "cpuset.cpus").write_text(cpus)

    def add(self, pid):
        self.tasks.write_text(str(pid))

    def remove(self):
        self.path.rmdir()


def follows_a_cpuset(bus):
    cpuset = Cpuset()
    if not cpuset.path:
        print("no cpuset controller here: the part on cpusets is left out")
        return
    pair = start_load("pingpong", 120)
    try:
        for pid in pair.pids:
            cpuset.add(pid)
        with Daemon(bus, "--keep=always", "--costs=cpu=1us,core=2us,llc=60us") as daemon:
            wait_placed(pair.pids, 60)
            daemon.ctl("undo", "--all")
            both = {pid: {0, 1} for pid in pair.pids}
            check(masks(pair.pids) == both, "undo widens to the cpuset")
            cpuset.set("0")
            check(masks(pair.pids) == {pid: {0} for pid in pair.pids}, "the cpuset shrinks: followed")
            cpuset.set("0-1")
            check(masks(pair.pids) == both, "the cpuset grows: followed")
    finally:
        end(pair)
        wait_for(lambda: not os.path.exists(f"/proc/{pair.pids[1]}"), 5, "the end of the pair")
        cpuset.remove()


def others_win(bus):
    with Daemon(bus, "--keep=always", "--costs=cpu=1us,core=2us,llc=60us") as daemon:
        free = start_placed(daemon, "pingpong", 120)
        bound = start_load("pingpong", 120, 0, 1)
        try:
            wait_for(lambda: daemon.json("explain", bound.pids[0]).get("outcome") ==
                     "foreign-mask", 20, "the outcome foreign-mask")
            check(masks(bound.pids) == {bound.pids[0]: {0}, bound.pids[1]: {1}},
                  "tasks bound before are untouched")
            placed = masks(free.pids)[free.pids[0]]
            other = next(iter(all_cpus() - placed))
            os.sched_setaffinity(free.pids[0], {other})
            wait_for(lambda: daemon.json("explain", free.pids[0])["decision"]["state"] == "yielded",
                     30, "the state yielded")
            check(os.sched_getaffinity(free.pids[0]) == {other},
                  "a task bound after our placement keeps the other's mask")
            check(os.sched_getaffinity(free.pids[1]) == all_cpus(), "its partner is given back")
            time.sleep(1)
            check(os.sched_getaffinity(free.pids[0]) == {other}, "and it stays so")
        finally:
            end(bound)
            end(free)


def a_second_placement_remembers_no_user_mask(bus):
    """Giving back "all CPUs" is not a mask of the user's, or the next give-back would set exactly the
    CPUs of that moment, and the task would not follow its cpuset any more."""
    with Daemon(bus, "--keep=always", "--settle=100ms", "--costs=cpu=1us,core=2us,llc=60us") as daemon:
        pair = start_placed(daemon, "pingpong", 120)
        try:
            check(daemon.json("explain", pair.pids[0])["facts"]["user_mask"] == "none",
                  "a task that nobody bound has no user mask")
            daemon.ctl("undo", "--all")
            daemon.ctl("allow", "--all")
            wait_placed(pair.pids, 30)
            for pid in pair.pids:
                check(daemon.json("explain", pid)["facts"]["user_mask"] == "none",
                      f"nor has {pid} after an undo and a second placement")
        finally:
            end(pair)


def test(bus):
    others_win(bus)
    a_second_placement_remembers_no_user_mask(bus)
    follows_a_cpuset(bus)


if __name__ == "__main__":
    main(test)
