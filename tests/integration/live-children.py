#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Children and new programs of a placed process get the original mask soon after."""

import statistics
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from live import Daemon, check, end, main, start_load  # noqa: E402

CHILDREN = 20


def test(bus):
    with Daemon(bus, "--keep=always", "--costs=cpu=1us,core=2us,llc=60us") as daemon:
        for _ in range(3):
            parent = start_load("parent", CHILDREN)
            try:
                lines = parent.stdout.read().split("\n")
            finally:
                end(parent)
            # Beside other load the kernel may pack the two by itself: nothing to place.
            if "never placed" not in lines:
                break
        windows = [int(line.split()[1]) for line in lines if line.startswith("window")]
        check("never placed" not in lines, "the pair was placed")
        check(len(windows) == CHILDREN + 1, f"{CHILDREN} children and one new program reported")
        check(min(windows) >= 0, "each has a wide mask within five seconds")
        print(f"inherited mask kept for: median {statistics.median(windows):.0f} us, "
              f"longest {max(windows)} us; after exec {windows[-1]} us")
        check(daemon.process.poll() is None, "the daemon is alive")


if __name__ == "__main__":
    main(test)
