# SPDX-License-Identifier: LGPL-2.1-or-later
"""Starts coplaced on a private D-Bus, for the demo, the benchmarks and the live tests.

Everything lives in one temporary folder; processes are ended by their own pid. Needs root.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("COPLACE_BIN", ROOT / "build" / "bin"))

BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
</busconfig>
"""


class Failure(Exception):
    """Something that the user of the script must read."""


def wait_for(condition, seconds, what):
    """Polls until condition() gives something true, and returns it."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Failure(f"waited {seconds} s in vain for {what}")
        time.sleep(0.02)


def end(process, sig=signal.SIGTERM, seconds=10):
    """Ends a process of ours and waits for it."""
    if process.poll() is None:
        process.send_signal(sig)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode


class Bus:
    """A dbus-daemon of its own."""

    def __init__(self):
        # In memory, as /run is: a busy disk would stall the journal of changed masks.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="coplace-", dir=memory))
        self.folder.chmod(0o755)
        config = self.folder / "bus.conf"
        socket = self.folder / "bus"
        config.write_text(BUS_CONFIG.format(path=socket))
        self.address = f"unix:path={socket}"
        self.process = subprocess.Popen(
            ["dbus-daemon", f"--config-file={config}", "--nofork", "--nopidfile"],
            stderr=subprocess.DEVNULL)
        wait_for(socket.exists, 10, "the private D-Bus")

    def close(self):
        end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Daemon:
    """A coplaced on a private bus. The folders for run and state outlive it with the bus."""

    def __init__(self, bus, *options, log=None):
        self.bus = bus
        self.run = bus.folder / "run"
        self.state = bus.folder / "state"
        self.log_path = pathlib.Path(log) if log else bus.folder / "coplaced.log"
        self.log = open(self.log_path, "a", encoding="utf-8")
        self.process = subprocess.Popen(
            [str(BIN / "coplaced"), f"--bus-address={bus.address}", f"--run-directory={self.run}",
             f"--state-directory={self.state}", *options],
            stderr=self.log, stdin=subprocess.DEVNULL)
        try:
            wait_for(self.is_up, 15, "coplaced on the private bus")
        except Failure as failure:
            end(self.process)
            raise Failure(f"{failure}\n{self.log_path.read_text()[-2000:]}") from failure

    def is_up(self):
        if self.process.poll() is not None:
            raise Failure(f"coplaced ended with status {self.process.returncode}")
        return self.ctl("status", check=False).returncode == 0

    def ctl(self, *arguments, check=True, timeout=30):
        return ctl(self.bus.address, *arguments, check=check, timeout=timeout)

    def json(self, *arguments):
        return json.loads(self.ctl(*arguments, "--json").stdout)

    def decisions(self):
        return self.json("decisions")["decisions"]

    def wait_calibrated(self, seconds=20):
        """Until the cost table is measured: placements begin after that."""
        wait_for(lambda: (self.state / "costs.yaml").exists(), seconds, "the calibration")

    def stop(self, sig=signal.SIGTERM):
        status = end(self.process, sig)
        self.log.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status = self.stop()
        # A sanitizer's finding, a leak for one, is seen by the status.
        if kind is None and status != 0:
            raise Failure(f"coplaced ended with status {status}:\n"
                          + self.log_path.read_text()[-4000:])


def ctl(address, *arguments, check=True, timeout=30):
    result = subprocess.run(
        [str(BIN / "coplacectl"), f"--bus-address={address}", *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, check=False)
    if check and result.returncode != 0:
        raise Failure(f"coplacectl {' '.join(map(str, arguments))}: status {result.returncode}: "
                      f"{result.stderr.strip()}")
    return result


def threads(pid):
    """TIDs of a process, or none if it has gone."""
    try:
        return sorted(int(t) for t in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []


def descendants(pid):
    """The process and all its children, by pid."""
    found = [pid]
    for parent in found:
        for tid in threads(parent):
            try:
                children = pathlib.Path(f"/proc/{parent}/task/{tid}/children").read_text()
            except OSError:
                continue
            found.extend(int(c) for c in children.split())
    return found


def masks(pids):
    """The CPU mask of every thread of the processes."""
    result = {}
    for pid in pids:
        for tid in threads(pid):
            try:
                result[tid] = os.sched_getaffinity(tid)
            except OSError:
                pass
    return result


def voluntary_switches(pids):
    """Sum of voluntary context switches of every thread: how often they went to sleep."""
    total = 0
    for pid in pids:
        for tid in threads(pid):
            try:
                status = pathlib.Path(f"/proc/{pid}/task/{tid}/status").read_text()
            except OSError:
                continue
            for line in status.splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    total += int(line.split()[1])
    return total
