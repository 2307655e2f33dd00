# SPDX-License-Identifier: LGPL-2.1-or-later
"""What every benchmark shares: rounds, medians, the table for people and the JSON for scripts."""

import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))


def arguments(name, about, rounds):
    parser = argparse.ArgumentParser(prog=f"bench {name}", description=about)
    parser.add_argument("--rounds", type=int, default=rounds,
                        help="interleaved rounds (default %(default)s; medians need 5 or more)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="rows whose name contains TEXT (repeatable)")
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON")
    parser.add_argument("--seconds", type=float, default=1.5,
                        help="length of each measurement (default %(default)s)")
    return parser


def machine():
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} CPUs"


def load():
    """Busy share of the whole machine over half a second, percent."""
    def read():
        fields = [int(f) for f in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        return sum(fields[:8]), fields[3] + fields[4]
    total, idle = read()
    time.sleep(0.5)
    total2, idle2 = read()
    return 100.0 * (1 - (idle2 - idle) / max(1, total2 - total))


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def gain(better, new, old):
    """Ratio of two medians, turned so that above 1 is better."""
    if not new or not old:
        return None
    return new / old if better == "higher" else old / new


class Row:
    def __init__(self, name, kind, unit, better):
        self.name, self.kind, self.unit, self.better = name, kind, unit, better
        self.values = {}

    def add(self, column, value):
        self.values.setdefault(column, []).append(value)

    def median(self, column):
        values = self.values.get(column)
        return statistics.median(values) if values else None

    def ratio(self, new, old):
        return gain(self.better, self.median(new), self.median(old))


def number(value):
    if value is None:
        return "-"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def table(headings, lines):
    """Plain aligned columns: the first to the left, the rest to the right."""
    widths = [max(len(str(line[i])) for line in [headings, *lines]) for i in range(len(headings))]
    for line in [headings, *lines]:
        cells = [str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())


def write_json(path, name, rounds, rows, extra=None):
    """rows: (Row, {ratio name: value}). One object for each benchmark of the project."""
    report = {
        "benchmark": name,
        "machine": machine(),
        "kernel": platform.release(),
        "rounds": rounds,
        "rows": [{
            "name": row.name, "kind": row.kind, "unit": row.unit, "better": row.better,
            "columns": {column: summary(values) for column, values in row.values.items()},
            "ratios": ratios,
        } for row, ratios in rows],
    }
    report.update(extra or {})
    pathlib.Path(path).write_text(json.dumps(report, indent=2) + "\n")
