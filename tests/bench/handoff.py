#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Benchmark handoff: what coplaced does to real pairs, and to loads that must not be harmed.

Columns: off (left to the kernel), split (bound apart, as a launcher might), on_from_split (bound
apart, coplaced with --affinity=override), on_from_off (coplaced with its defaults), best (both on
one CPU by hand). Rounds are interleaved; medians and ratios count. Rates are read from outside
while the load runs, so "on" is measured after the placement.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import benchlib
from coplace import Bus, Daemon, Failure, descendants, end, threads, wait_for

SETTLE = 1.0  # seconds from the start of a load to the measurement
REDIS_PORT, SOCKPERF_PORT, POSTGRES_PORT = 16379, 11111, 15432
NULL = subprocess.DEVNULL


def bind(pids, cpus):
    for pid in pids:
        for tid in threads(pid):
            try:
                os.sched_setaffinity(tid, cpus)
            except ProcessLookupError:
                pass


def reads(pids):
    """read(2) calls of the processes so far."""
    total = 0
    for pid in pids:
        try:
            text = pathlib.Path(f"/proc/{pid}/io").read_text()
        except OSError:
            continue
        total += int(re.search(r"^syscr: (\d+)", text, re.M).group(1))
    return total


class Serial:
    """A load that runs until stopped. sides() gives the pids of its two sides."""
    kind, unit, better = "serial", "hand-offs/s", "higher"
    columns = ("off", "split", "on_from_split", "on_from_off", "best")

    def __init__(self, seconds):
        self.seconds = seconds
        self.process = None

    def prepare(self):
        """Starts what stays up over all rounds."""

    def close(self):
        """Ends it."""

    def start(self):
        raise NotImplementedError

    def sides(self):
        raise NotImplementedError

    def counter(self):
        raise NotImplementedError

    def stop(self):
        for pid in reversed(descendants(self.process.pid)[1:]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        end(self.process, signal.SIGKILL)

    def place(self, column):
        one, other = self.sides()
        if column in ("split", "on_from_split"):
            bind(one, {0})
            bind(other, {1})
        elif column == "best":
            bind(one + other, {0})

    def run(self, column):
        self.start()
        try:
            self.place(column)
            time.sleep(SETTLE)
            begin, first = time.monotonic(), self.counter()
            time.sleep(self.seconds)
            return (self.counter() - first) / (time.monotonic() - begin)
        finally:
            self.stop()


class PerfPipe(Serial):
    def __init__(self, seconds, threaded):
        super().__init__(seconds)
        self.threaded = threaded
        self.name = "perf bench sched pipe" + (" -T" if threaded else "")

    def start(self):
        command = ["perf", "bench", "sched", "pipe", "-l", "2000000000"]
        self.process = subprocess.Popen(command + (["-T"] if self.threaded else []), stdout=NULL)
        self.pair = wait_for(self.find, 5, "perf's two tasks")

    def find(self):
        """The two tasks that exchange bytes: children of perf, or threads of it."""
        if self.threaded:
            tids = [t for t in threads(self.process.pid) if t != self.process.pid]
        else:
            tids = descendants(self.process.pid)
            tids = tids[1:] if len(tids) > 2 else tids
        return tids if len(tids) == 2 else None

    def place(self, column):
        if column in ("split", "on_from_split"):
            for cpu, tid in enumerate(self.pair):
                os.sched_setaffinity(tid, {cpu})
        elif column == "best":
            for tid in self.pair:
                os.sched_setaffinity(tid, {0})

    def counter(self):
        return reads(descendants(self.process.pid))


class StressSwitch(Serial):
    name = "stress-ng --switch 1"

    def start(self):
        self.process = subprocess.Popen(
            ["stress-ng", "--switch", "1", "--switch-method", "pipe", "-t", "60"], stdout=NULL,
            stderr=NULL)
        self.pair = wait_for(self.find, 5, "stress-ng's two tasks")

    def find(self):
        pids = descendants(self.process.pid)
        return pids[-2:] if len(pids) >= 3 else None

    def sides(self):
        return [self.pair[0]], [self.pair[1]]

    def counter(self):
        return reads(descendants(self.process.pid))


class Redis(Serial):
    unit = "requests/s"

    def __init__(self, seconds, clients):
        super().__init__(seconds)
        self.clients = clients
        self.name = f"redis-benchmark -c {clients}"
        if clients > 1:
            self.kind, self.columns = "no-harm", ("off", "on_from_off")

    def prepare(self):
        self.server = subprocess.Popen(
            ["redis-server", "--port", str(REDIS_PORT), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--daemonize", "no"], stdout=NULL)
        wait_for(self.is_up, 10, "redis-server")

    def is_up(self):
        try:
            return self.commands() >= 0
        except OSError:
            return False

    def close(self):
        end(self.server)

    @staticmethod
    def commands():
        with socket.create_connection(("127.0.0.1", REDIS_PORT), timeout=5) as connection:
            connection.sendall(b"INFO stats\r\n")
            text = b""
            while b"total_commands_processed" not in text or not text.endswith(b"\r\n"):
                text += connection.recv(65536)
            return int(re.search(rb"total_commands_processed:(\d+)", text).group(1))

    def start(self):
        bind([self.server.pid], set(range(os.cpu_count())))
        self.process = subprocess.Popen(
            ["redis-benchmark", "-p", str(REDIS_PORT), "-c", str(self.clients), "-t", "get", "-n",
             "2000000000", "-q"], stdout=NULL, stderr=NULL)

    def sides(self):
        return [self.server.pid], [self.process.pid]

    def counter(self):
        return self.commands()


class Pgbench(Serial):
    name, unit = "pgbench -S -c 1", "transactions/s"

    def prepare(self):
        self.bin = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="coplace-pg-"))
        shutil.chown(self.folder, "postgres")
        self.as_postgres([self.bin / "initdb", "-D", self.folder / "data", "-A", "trust"])
        self.server = subprocess.Popen(
            self.command([self.bin / "postgres", "-D", self.folder / "data", "-p",
                          str(POSTGRES_PORT), "-k", self.folder, "-h", ""]),
            stdout=NULL, stderr=NULL, cwd="/")
        ready = [self.bin / "pg_isready", "-h", self.folder, "-p", str(POSTGRES_PORT)]
        wait_for(lambda: subprocess.run(ready, stdout=NULL, check=False).returncode == 0, 30,
                 "PostgreSQL")
        self.as_postgres([self.bin / "pgbench", "-h", self.folder, "-p", str(POSTGRES_PORT), "-i",
                          "-q", "postgres"])

    @staticmethod
    def command(arguments):
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups",
                *map(str, arguments)]

    def as_postgres(self, arguments):
        subprocess.run(self.command(arguments), stdout=NULL, stderr=NULL, check=True, cwd="/")

    def close(self):
        end(self.server, signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        self.before = set(descendants(self.server.pid))
        self.process = subprocess.Popen(
            self.command([self.bin / "pgbench", "-h", self.folder, "-p", str(POSTGRES_PORT), "-n",
                          "-S", "-c", "1", "-T", "60", "-P", "1", "postgres"]),
            stdout=NULL, stderr=subprocess.PIPE, text=True, cwd="/")
        self.backend = wait_for(self.find_backend, 10, "the PostgreSQL backend")

    def find_backend(self):
        new = [p for p in descendants(self.server.pid) if p not in self.before]
        return new if new else None

    def sides(self):
        return self.backend, [self.process.pid]

    def run(self, column):
        """pgbench says its own rate each second: the first is before the placement."""
        self.start()
        try:
            self.place(column)
            rates = []
            for line in self.process.stderr:
                found = re.search(r"progress: [\d.]+ s, ([\d.]+) tps", line)
                if found:
                    rates.append(float(found.group(1)))
                if len(rates) > 1 + round(self.seconds):
                    break
            return statistics.mean(rates[1:])
        finally:
            self.stop()


class Sockperf(Serial):
    name, unit = "sockperf ping-pong --tcp", "transactions/s"

    def prepare(self):
        self.server = subprocess.Popen(
            ["sockperf", "server", "--tcp", "-i", "127.0.0.1", "-p", str(SOCKPERF_PORT)],
            stdout=NULL, stderr=NULL)
        time.sleep(0.5)

    def close(self):
        end(self.server)

    def start(self):
        bind([self.server.pid], set(range(os.cpu_count())))
        self.process = subprocess.Popen(
            ["sockperf", "ping-pong", "--tcp", "-i", "127.0.0.1", "-p", str(SOCKPERF_PORT), "-t",
             "30"], stdout=NULL, stderr=NULL)
        # It waits for two seconds before it begins.
        first = self.counter()
        wait_for(lambda: self.counter() > first + 500, 10, "sockperf's first transactions")

    def sides(self):
        return [self.server.pid], [self.process.pid]

    def counter(self):
        """TCP segments that came in on this machine: two make a transaction."""
        lines = [line.split() for line in pathlib.Path("/proc/net/snmp").read_text().splitlines()
                 if line.startswith("Tcp:")]
        return int(lines[1][lines[0].index("InSegs")]) / 2


class Whole:
    """A load that ends by itself and says its result."""
    kind, columns = "no-harm", ("off", "on_from_off")

    def __init__(self, name, command, pattern, unit, better):
        self.name, self.command, self.pattern = name, command, pattern
        self.unit, self.better = unit, better

    def prepare(self):
        """Nothing stays up."""

    def close(self):
        """Nothing stayed up."""

    def run(self, _column):
        result = subprocess.run(self.command, capture_output=True, text=True, check=True)
        found = re.search(self.pattern, result.stdout + result.stderr, re.M)
        if not found:
            raise Failure(f"{self.name}: no result in its output:\n{result.stdout[-500:]}")
        return float(found.group(1))


def workloads(seconds):
    loops = str(round(2500 * seconds / 1.5))
    return [
        PerfPipe(seconds, threaded=False), PerfPipe(seconds, threaded=True), Redis(seconds, 1),
        Pgbench(seconds), Sockperf(seconds), StressSwitch(seconds), Redis(seconds, 50),
        Whole("perf bench sched messaging -g 1",
              ["perf", "bench", "sched", "messaging", "-g", "1", "-l", loops],
              r"Total time: ([\d.]+)", "s", "lower"),
        Whole("hackbench -g 1", ["hackbench", "-g", "1", "-l", loops], r"Time: ([\d.]+)", "s",
              "lower"),
        Whole("stress-ng --cpu 2", ["stress-ng", "--cpu", "2", "-t", str(max(2, round(seconds))),
                                    "--cpu-method", "int64", "--metrics-brief"],
              r"\] cpu +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)", "ops/s", "higher"),
        Whole("7z b -mmt2", ["7z", "b", "1", "-mmt2", "-md18"], r"^Tot: +\d+ +\d+ +(\d+)", "MIPS",
              "higher"),
    ]


def measure(workload, column, bus, reactions):
    if not column.startswith("on"):
        return workload.run(column)
    options = ["--affinity=override"] if column == "on_from_split" else []
    with Daemon(bus, *options, "--log-level=info") as daemon:
        daemon.wait_calibrated()
        value = workload.run(column)
        for decision in daemon.decisions():
            if decision["applied"] and decision["hot"]:
                reactions.append((decision["applied"] - decision["hot"]) / 1e6)
        return value


def ratios(row):
    result = {}
    if row.kind == "serial":
        from_off, from_split = row.ratio("on_from_off", "best"), row.ratio("on_from_split", "best")
        result = {"on_best": min(from_off, from_split), "on_best_from_off": from_off,
                  "on_best_from_split": from_split,
                  "on_split": row.ratio("on_from_split", "split")}
    result["on_off"] = row.ratio("on_from_off", "off")
    return result


def show(rows, rounds, reactions):
    columns = ("off", "split", "on_from_split", "on_from_off", "best")
    print(f"\nMedians of {rounds} rounds\n")
    lines = []
    for row, values in rows:
        lines.append([row.name, row.unit,
                      *(benchlib.number(row.median(column)) for column in columns),
                      *(f"{values[k]:.2f}" if values.get(k) else "-"
                        for k in ("on_best", "on_off", "on_split"))])
    benchlib.table(["load", "unit", *columns, "on/best", "on/off", "on/split"], lines)
    print("\nRatios above 1 are better; on/best is the lower of the two starts.")
    if reactions:
        print(f"From hot to placed: median {statistics.median(reactions):.0f} ms, "
              f"longest {max(reactions):.0f} ms, {len(reactions)} placements.")


def main():
    options = benchlib.arguments("handoff", __doc__, 5).parse_args()
    chosen = [w for w in workloads(options.seconds)
              if not options.only or any(text in w.name for text in options.only)]
    busy = benchlib.load()
    print(f"{benchlib.machine()}; other load on the machine: {busy:.0f} %"
          + (" (busy: figures will be noisy)" if busy > 10 else ""))
    rows = [benchlib.Row(w.name, w.kind, w.unit, w.better) for w in chosen]
    reactions, prepared = [], []
    with Bus() as bus:
        try:
            for workload in chosen:
                if isinstance(workload, Redis) and any(isinstance(w, Redis) for w in prepared):
                    workload.server = next(w for w in prepared if isinstance(w, Redis)).server
                    continue
                workload.prepare()
                prepared.append(workload)
            for number in range(options.rounds):
                for workload, row in zip(chosen, rows):
                    print(f"round {number + 1}/{options.rounds}: {workload.name} …", flush=True)
                    for column in workload.columns:
                        row.add(column, measure(workload, column, bus, reactions))
        finally:
            for workload in prepared:
                workload.close()
    result = [(row, ratios(row)) for row in rows]
    show(result, options.rounds, reactions)
    if options.json:
        benchlib.write_json(options.json, "handoff", options.rounds, result,
                            {"load_percent": busy, "reaction_ms": reactions})


if __name__ == "__main__":
    try:
        main()
    except (Failure, subprocess.CalledProcessError) as failure:
        sys.exit(f"bench handoff: {failure}")
