#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""With nothing hot the daemon does not wake up, and it stays small with 1 000 threads around."""

import re
import subprocess
import sys as system
import time
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from live import Daemon, check, end, main, wait_for  # noqa: E402

THREADS = 1000
SLEEPERS = f"""
import threading
threading.stack_size(65536)
for _ in range({THREADS}):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("up", flush=True)
threading.Event().wait()
"""


def memory(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {key: int(re.search(rf"^{key}:\s+(\d+) kB", text, re.M).group(1))
            for key in ("RssAnon", "VmRSS")}


def switches(pid):
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        text = (task / "status").read_text()
        total += sum(int(n) for n in re.findall(r"ctxt_switches:\s+(\d+)", text))
    return total


def test(bus):
    sleepers = subprocess.Popen([system.executable, "-c", SLEEPERS], stdout=subprocess.PIPE, text=True)
    try:
        check(sleepers.stdout.readline() == "up\n", f"{THREADS} threads are there")
        with Daemon(bus) as daemon:
            daemon.wait_calibrated()
            pid = daemon.process.pid
            time.sleep(2)

            def quiet():
                before = switches(pid)
                time.sleep(5)
                return switches(pid) - before == 0
            # Other programs of this machine may exchange a burst at times.
            wait_for(quiet, 60, "five seconds without a single wake-up of the daemon")
            check(True, "five seconds without a single wake-up")
            used = memory(pid)
            print(f"RssAnon {used['RssAnon']} KiB, VmRSS {used['VmRSS']} KiB")
            if "asan" not in pathlib.Path(f"/proc/{pid}/maps").read_text():
                check(used["RssAnon"] <= 4096, "anonymous memory is at most 4 MiB")
    finally:
        end(sleepers)


if __name__ == "__main__":
    main(test)
