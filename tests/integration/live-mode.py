#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A persisted mode outlives a restart; one that cannot be read ends in observe, never in enforce."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from live import Daemon, check, main  # noqa: E402

COSTS = "--costs=cpu=1us,core=2us,llc=60us"


def mode_with(bus, make):
    """The mode of a daemon that finds what make() leaves at the place of the mode file."""
    path = bus.folder / "state" / "mode"
    make(path)
    try:
        with Daemon(bus, "--no-bpf", COSTS) as daemon:
            return daemon.json("status")["Mode"]
    finally:
        path.rmdir() if path.is_dir() else path.unlink()


def test(bus):
    with Daemon(bus, "--no-bpf", COSTS) as daemon:
        check(daemon.json("status")["Mode"] == "enforce", "no mode file: enforce")
        daemon.ctl("mode", "off", "--persist")
    kept = (bus.folder / "state" / "mode").read_text()
    check(mode_with(bus, lambda path: path.write_text(kept)) == "off", "a persisted mode is kept")
    for what, make in (("garbage", lambda path: path.write_text("garbage\n")),
                       ("random bytes", lambda path: path.write_bytes(bytes(range(128, 250)))),
                       ("an empty file", lambda path: path.write_text("")),
                       ("a directory", lambda path: path.mkdir()),
                       ("a FIFO", os.mkfifo)):
        check(mode_with(bus, make) == "observe", f"{what}: observe")


if __name__ == "__main__":
    main(test)
