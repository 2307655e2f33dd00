#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A kept cost table with a gap, as a busy machine leaves it, is completed at the next start."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from live import Daemon, check, main, wait_for  # noqa: E402


def test(bus):
    table = bus.folder / "state" / "costs.yaml"
    with Daemon(bus, "--no-bpf") as daemon:
        daemon.wait_calibrated()
    whole = table.read_text()
    levels = [line for line in whole.splitlines() if "source:" in line]
    check(len(levels) >= 2, "at least two levels were measured")
    gap = "\n".join(line for line in whole.splitlines() if line != levels[-1]) + "\n"
    # Consistent in itself: a damaged table would be measured again in any case.
    table.write_text(gap.replace(f"count: {len(levels)}", f"count: {len(levels) - 1}"))
    name = levels[-1].strip().split(":")[0]
    with Daemon(bus, "--no-bpf") as daemon:
        check("is not used" not in daemon.log_path.read_text(), "the table with a gap is accepted")
        wait_for(lambda: f"{name}:" in table.read_text(), 20, f"the level {name} in the kept table")
        check(True, f"the missing level {name} was measured again")


if __name__ == "__main__":
    main(test)
