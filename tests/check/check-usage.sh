#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Wrong values of coplaced's options are usage errors (2) with one line and a hint, before anything
# is opened: no bus is there, and none is asked for.
set -u
bin=${COPLACE_BIN:-build/bin}
faults=0
for option in --costs=foo=1us --costs= --costs=cpu=0 --costs=cpu=1us, --costs=cpu=1us,cpu=2us \
    --mode=on --pairs=near --min-rate=-1 --settle=soon --margin=5 --on-exit=later --frobnicate; do
    output=$("$bin/coplaced" "$option" --bus-address=unix:path=/nonexistent 2>&1)
    status=$?
    if [[ $status != 2 || $(wc -l <<<"$output") != 2 || $output != *"Try 'coplaced --help'."* ]]; then
        echo "check-usage: coplaced $option: status $status: $output"
        ((++faults))
    fi
done
echo "$faults faults"
((faults == 0))
