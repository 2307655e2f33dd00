# SPDX-License-Identifier: LGPL-2.1-or-later
"""What live tests in Python share: skips, checks, load programs."""

import os
import subprocess
import sys
import time

from coplace import BIN, Bus, Daemon, Failure, end, masks, wait_for


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def check(condition, text):
    if not condition:
        raise Failure(text)
    print(f"ok: {text}", flush=True)


def start_load(*command):
    """A load program of the tests, with .pids as it printed them."""
    process = subprocess.Popen([str(BIN / command[0]), *map(str, command[1:])],
                               stdout=subprocess.PIPE, text=True)
    process.pids = [int(pid) for pid in process.stdout.readline().split()[1:]]
    if not process.pids:
        raise Failure(f"{command[0]} did not start")
    return process


def are_on_one_cpu(pids):
    found = [mask for mask in masks(pids).values()]
    return len(found) == len(pids) and all(len(m) == 1 for m in found) and \
        len(set(map(frozenset, found))) == 1


def wait_placed(pids, seconds=15):
    """Until all tasks have the same one-CPU mask."""
    wait_for(lambda: are_on_one_cpu(pids), seconds, f"a placement of {pids}")


def start_placed(daemon, *command, tries=6):
    """A free pair that coplaced has placed. Beside other load the kernel may pack a pair onto one
    CPU by itself, or leave no room: then there is nothing to place, and another pair is tried."""
    for _ in range(tries):
        load = start_load(*command)
        try:
            wait_placed(load.pids, 5)
            return load
        except Failure:
            explained = daemon.json("explain", load.pids[0])
            print(f"not placed ({explained.get('outcome')}), once more", flush=True)
            end(load)
    raise Failure(f"{tries} pairs in a row were not placed: {explained['summary']}")


def all_cpus():
    return os.sched_getaffinity(0)


def main(test):
    if os.geteuid() != 0:
        skip("needs root")
    if os.cpu_count() < 2:
        skip("needs two CPUs")
    begin = time.monotonic()
    try:
        with Bus() as bus:
            try:
                test(bus)
            except BaseException:
                log = bus.folder / "coplaced.log"
                if log.exists():
                    print("---- coplaced.log\n" + log.read_text()[-6000:], file=sys.stderr)
                raise
    except Failure as failure:
        sys.exit(f"FAILED: {failure}")
    print(f"1 passed, 0 failed ({time.monotonic() - begin:.0f} s)")


__all__ = ["Bus", "Daemon", "Failure", "all_cpus", "are_on_one_cpu", "check", "end", "main", "masks",
           "skip", "start_load", "start_placed", "wait_for", "wait_placed"]
