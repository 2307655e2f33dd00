#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rules of the house over the include graph: who may know whom, and foreign headers at home.

Data flows wake → pair → plan → act; machine, policy, registry and base are read-only input; the
ledger stands behind, the bus on top, and only the manager (the files of daemon/ itself) wires.
"""

import pathlib
import re
import subprocess
import sys

# What each room may include of the others, beside itself.
ROOMS = {
    "base": set(),
    "machine": {"base"},
    "policy": {"base"},
    "wake": {"base", "machine"},
    "pair": {"base", "machine", "policy", "wake"},
    "registry": {"base", "machine", "wake"},
    "plan": {"base", "machine", "policy", "wake", "pair", "registry"},
    "act": {"base", "machine", "wake", "registry"},
    "ledger": {"base", "machine", "policy", "wake", "pair", "plan", "registry"},
    "pressure": {"base"},
    "bus": {"base", "machine", "policy", "wake", "pair", "plan", "registry", "ledger"},
    "ctl": {"base", "machine", "bus"},
}
# Foreign headers, and the only files that may know them.
FOREIGN = {
    r"hwloc": r"daemon/machine/",
    r"yaml\.h": r"daemon/base/yaml\.c",
    r"bpf/(?!bpf_)": r"daemon/wake/wake-bpf",
    r"bpf/bpf_": r"daemon/wake/.*\.bpf\.[ch]",
    r"libcgroup": r"daemon/act/",
    r"jansson\.h": r"daemon/ctl/|plugin/oci/",
    r"systemd/": r"daemon/(main|manager|manager-internal|round|standing|serve|calibration|open)\.[ch]|"
                 r"daemon/(bus|ctl)/|daemon/act/systemd",
    r"zlib\.h": r"daemon/act/",
}
# Paths of the kernel's files belong below a root directory.
LITERAL = re.compile(r'"/(proc|sys)/')
# Pure rooms: no system call, no clock, no log.
PURE = ("pair", "plan")
IMPURE = re.compile(r"#include <(unistd|fcntl|time|sys/\w+|pthread)\.h>|base/(log|clock)\.h|"
                    r"cp_now_ns\(")
PURE_ALLOWED = re.compile(r"<sys/types\.h>")


def main():
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "daemon/*.[ch]", "daemon/**/*.[ch]"],
                           capture_output=True, text=True, check=True).stdout.split()
    faults = []
    if len(files) < 20:
        sys.exit(f"check-includes: only {len(files)} files found; is this the repository?")
    for name in sorted(set(files)):
        parts = pathlib.PurePath(name).parts
        room = parts[1] if len(parts) > 2 else None
        for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1):
            place = f"{name}:{number}"
            included = re.match(r'#include [<"]([^>"]+)[>"]', line)
            if included:
                target = included.group(1)
                other = target.split("/")[0]
                if room and other in ROOMS and other != room and other not in ROOMS[room] and \
                        "<" not in line:
                    faults.append(f"{place}: room {room} may not include {target}")
                if room and '"' in line and "/" not in target and target.startswith("manager"):
                    faults.append(f"{place}: rooms know nothing of the manager")
                for pattern, home in FOREIGN.items():
                    if "<" in line and re.match(pattern, target) and not re.match(home, name):
                        faults.append(f"{place}: <{target}> belongs to {home}")
            if LITERAL.search(line):
                faults.append(f"{place}: a path of the kernel's files as a literal; use a root")
            if room in PURE and IMPURE.search(line) and not PURE_ALLOWED.search(line) and \
                    "clock.h" not in line:
                faults.append(f"{place}: {room} is pure: {line.strip()}")
    print("\n".join(faults))
    print(f"{len(set(files))} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
