#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The demo: a pair of processes and a 1:N load, without coplaced and with it.

Readable by someone who has never heard of waker and wakee. Under a minute.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from coplace import BIN, Bus, Daemon, Failure, end, masks, wait_for  # noqa: E402

SECONDS = 3.0
WORKERS = 4


def say(text=""):
    print(text, flush=True)


class Load:
    """A load program of the tests; rates() are those that it has printed so far."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(BIN / command[0]), *map(str, command[1:])],
                                        stdout=subprocess.PIPE)
        line = self.process.stdout.readline().decode()
        self.pids = [int(pid) for pid in line.split()[1:]]
        if not self.pids:
            raise Failure(f"{command[0]} did not start")
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = ""

    def rates(self):
        self.text += (self.process.stdout.read() or b"").decode()
        return [float(rate) for rate in re.findall(r"^rate (\d+)$", self.text, re.M)]

    def stop(self):
        end(self.process)


def measure(load, seconds=SECONDS, skip=1.0):
    """Median rate of a load over some seconds, those of the beginning left out."""
    time.sleep(skip)
    before = len(load.rates())
    time.sleep(seconds)
    rates = load.rates()[before:]
    if not rates:
        raise Failure("the load printed no rate")
    return statistics.median(rates)


def where(pids):
    """The CPU that each process ran on last."""
    cpus = []
    for pid in pids:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        cpus.append(int(stat.rpartition(")")[2].split()[36]))
    return cpus


def without_coplaced():
    say("1. Without coplaced: the kernel decides alone")
    pair = Load("pingpong", 60)
    alone = measure(pair)
    kernel_cpus = where(pair.pids)
    pair.stop()
    fan = Load("fanout", 60, WORKERS, 200)
    fan_alone = measure(fan)
    fan.stop()
    say(f"   two processes that hand a byte to and fro (on CPUs {kernel_cpus[0]} and "
        f"{kernel_cpus[1]}): {alone:,.0f} hand-offs a second")
    say(f"   one process that wakes {WORKERS} workers at once: {fan_alone:,.0f} rounds a second")
    return alone, fan_alone


def bound_apart():
    """Where the kernel has found the good place by itself, a launcher might have prevented it."""
    say("   The kernel has put the two on one CPU by itself just now, and nothing is left to gain.")
    say("   So the pair is shown bound to two CPUs, as a launcher might have done, and coplaced is")
    say("   told that it may override that.")
    pair = Load("pingpong", 60, 0, min(1, os.cpu_count() - 1))
    apart = measure(pair)
    pair.stop()
    say(f"   bound apart: {apart:,.0f} hand-offs a second")
    return apart


def indent(text):
    return "\n".join("   | " + line for line in text.rstrip().splitlines())


def placed_decision(daemon, pair):
    found = [d for d in daemon.decisions()
             if d["state"] in ("applied", "kept") and
             {d["task_a"]["tid"], d["task_b"]["tid"]} == set(pair.pids)]
    return found[-1] if found else None


def find_placement(daemon, pair, apart):
    """Waits for it; None if there is nothing to place since the kernel has packed the pair."""
    try:
        return wait_for(lambda: placed_decision(daemon, pair), 15 if apart else 5, "a placement")
    except Failure:
        cpus = where(pair.pids)
        if not apart and cpus[0] == cpus[1]:
            return None
        raise Failure("coplaced did not place the pair; it says:\n"
                      + daemon.ctl("explain", pair.pids[0]).stdout) from None


def with_coplaced(bus, apart):
    options = ["--affinity=override"] if apart else []
    say("\n2. With coplaced")
    say(f"   starting: coplaced {' '.join(options)}")
    with Daemon(bus, *options) as daemon:
        daemon.wait_calibrated()
        before_masks = {}
        pair = Load("pingpong", 60, *((0, 1) if apart else ()))
        fan = None
        try:
            before_masks.update(masks(pair.pids))
            decision = find_placement(daemon, pair, apart)
            if not decision:
                return None
            took = (decision["applied"] - decision["hot"]) / 1e6 if decision["hot"] else None
            together = measure(pair)
            say("   the two processes: " + f"{together:,.0f} hand-offs a second"
                + (f" (found and placed {took:.0f} ms after they became busy)" if took else ""))
            say(f"\n3. Why is it there? coplacectl explain {pair.pids[0]}")
            say(indent(daemon.ctl("explain", pair.pids[0]).stdout))
            pair_masks = masks(pair.pids)
            fan, fan_with, fan_masks = fan_alongside(pair)
            say("\n4. coplaced stops, the two processes run on")
            status = daemon.stop()
            after_masks = masks(pair.pids)
        finally:
            pair.stop()
            if fan:
                fan.stop()
    for pid in pair.pids:
        say(f"   mask of {pid}: {sorted(before_masks[pid])} at the start, {sorted(pair_masks[pid])} "
            f"while placed, {sorted(after_masks[pid])} now")
    return together, fan_with, fan_masks, status == 0 and before_masks == after_masks


def fan_alongside(pair):
    """The 1:N load under coplaced, alone: the pair is stopped meanwhile."""
    for pid in pair.pids:
        os.kill(pid, 19)
    fan = Load("fanout", 60, WORKERS, 200)
    before = masks(fan.pids)
    rate = measure(fan)
    after = masks(fan.pids)
    for pid in pair.pids:
        os.kill(pid, 18)
    return fan, rate, before == after


def main():
    if os.cpu_count() < 2:
        raise Failure("the demo needs two CPUs")
    begin = time.monotonic()
    alone, fan_alone = without_coplaced()
    with Bus() as bus:
        # Apart, a hand-off crosses CPUs; a rate like that of one CPU means they were together.
        one_cpu = Load("pingpong", 60, 0, 0)
        best = measure(one_cpu, 1.5, 0.5)
        one_cpu.stop()
        apart = bound_apart() if alone > best / 2 else None
        result = with_coplaced(bus, apart)
        if not result:
            apart = bound_apart()
            result = with_coplaced(bus, apart)
        together, fan_with, fan_untouched, restored = result
    without = apart or alone
    say("\nResult")
    say(f"   pair, hand-offs a second: {without:>10,.0f} without, {together:>10,.0f} with coplaced: "
        f"{together / without:.1f} times (both on one CPU by hand: {best:,.0f})")
    say(f"   1:N,  rounds a second:    {fan_alone:>10,.0f} without, {fan_with:>10,.0f} with coplaced: "
        f"{fan_with / fan_alone:.2f} times; masks {'untouched' if fan_untouched else 'CHANGED'}")
    say(f"   masks after the end: {'all as they were' if restored else 'NOT ALL RESTORED'}")
    say(f"   ({time.monotonic() - begin:.0f} seconds)")
    return 0 if restored and fan_untouched and together > without else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"demo: {failure}")
