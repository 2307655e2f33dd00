#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SIGKILL at random moments under load: a new start, or --restore alone, gives every mask back."""

import os
import random
import signal
import subprocess
import time
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from coplace import BIN  # noqa: E402
from live import Daemon, check, end, main, masks, start_load, wait_for  # noqa: E402

ROUNDS = int(os.environ.get("COPLACE_KILL_ROUNDS", 20))
SEED = 20


def loads():
    """Pairs bound apart (a former mask of their own) and free ones."""
    return [start_load("pingpong", 600, 0, 1), start_load("pingpong", 600, 1, 0),
            start_load("pingpong", 600)]


def test(bus):
    chance = random.Random(SEED)
    options = ["--affinity=override", "--settle=100ms", "--costs=cpu=1us,core=2us,llc=60us"]
    started = loads()
    pids = [pid for load in started for pid in load.pids]
    try:
        time.sleep(1)
        before = masks(pids)
        placed_rounds = 0
        for number in range(ROUNDS):
            daemon = Daemon(bus, *options)
            time.sleep(chance.uniform(0.05, 1.2))
            placed_rounds += masks(pids) != before
            daemon.stop(signal.SIGKILL)
            if number % 2:
                subprocess.run([str(BIN / "coplaced"), "--restore", f"--run-directory={daemon.run}",
                                "--log-level=warning"], check=True)
            else:
                with Daemon(bus, *options, "--mode=observe"):
                    wait_for(lambda: masks(pids) == before, 5, f"masks of {before} after a restart")
            check(masks(pids) == before, f"round {number + 1}: every mask is as before")
        check(placed_rounds >= ROUNDS // 4,
              f"the kill hit placed tasks in {placed_rounds} of {ROUNDS} rounds")
    finally:
        for load in started:
            end(load)


if __name__ == "__main__":
    main(test)
