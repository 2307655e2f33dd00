#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# coplacectl where there is no daemon, used wrongly, and run by somebody without privileges: the
# exit statuses of coplacectl(1), one clear line for each failure, nothing on the wrong stream.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
export LC_ALL=C.UTF-8
folder=$(mktemp -d) || exit 1
bus_pid=""
trap '[[ $bus_pid ]] && kill "$bus_pid"; rm -rf "$folder"' EXIT
# A copy that everybody may run, wherever the build tree is.
chmod 755 "$folder"
install -m 755 "${COPLACE_BIN:-build/bin}/coplacectl" "$folder/coplacectl" || exit 1
missing="--bus-address=unix:path=$folder/no-such-bus"
prefix=()
faults=0
runs=0

fault()
{
    echo "live-ctl: ${prefix[*]:+[${prefix[*]}] }$*"
    faults=$((faults + 1))
}

run()
{
    runs=$((runs + 1))
    "${prefix[@]}" "$folder/coplacectl" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
}

# fails STATUS LINES ARGUMENT…: ends with that status, nothing on standard output and so many
# lines on standard error, the first of which names the program
fails()
{
    local wanted=$1 lines=$2
    shift 2

    run "$@"
    [[ $status == "$wanted" ]] || fault "'$*' ended with $status, not $wanted"
    [[ -s $folder/out ]] && fault "'$*' failed and wrote to standard output"
    [[ $(wc -l <"$folder/err") == "$lines" ]] ||
        fault "'$*' wrote other than $lines lines: $(cat "$folder/err")"
    [[ $(head -n 1 "$folder/err") == "coplacectl: "* ]] ||
        fault "'$*' does not say who speaks: $(cat "$folder/err")"
}

no_daemon()
{
    fails 3 1 "$@"
    grep -q 'coplaced cannot be reached' "$folder/err" ||
        fault "'$*' does not say what is missing: $(cat "$folder/err")"
}

# Wrong use: a line and a hint, and that before any bus is looked for.
usage()
{
    fails 2 2 "$missing" "$@"
    grep -q "^Try 'coplacectl .*--help'\.$" "$folder/err" || fault "'$*' gives no hint"
}

works()
{
    run "$@"
    [[ $status == 0 ]] || fault "'$*' ended with $status: $(cat "$folder/err")"
    [[ -s $folder/err ]] && fault "'$*' wrote to standard error: $(cat "$folder/err")"
    [[ -s $folder/out ]] || fault "'$*' wrote nothing"
}

# without_daemon ADDRESS-OPTION
without_daemon()
{
    local verb

    for verb in status pairs decisions topology mode calibrate; do
        no_daemon "$1" $verb
        no_daemon $verb "$1" --json
    done
    no_daemon "$1" decisions --follow
    no_daemon "$1" explain 1
    no_daemon "$1" mode observe --persist
    no_daemon "$1" undo 1
    no_daemon "$1" undo --all
    no_daemon "$1" allow 1
    no_daemon "$1" allow --all
}

wrong_use()
{
    usage
    usage no-such-verb
    usage --no-such-option status
    usage status --no-such-option
    usage status -x
    usage status extra
    usage status --json=yes
    usage pairs --limit
    usage pairs --limit=0
    usage pairs --limit=many
    usage decisions --state=unknown
    usage decisions --limit=-1
    usage explain
    usage explain 1 2
    usage explain self
    usage explain -1
    usage explain 99999999999
    usage topology --xml=a --synthetic=b
    usage mode sometimes
    usage mode --persist
    usage undo
    usage undo 0
    usage undo 1 --all
    usage allow
    usage allow 1 --all
    usage calibrate now
}

without_a_bus()
{
    local verb

    works --help
    works --version
    for verb in status pairs decisions explain topology mode undo allow calibrate; do
        works $verb --help
        works --help $verb
    done
    works topology --synthetic "package:2 l3:2 core:2 pu:2"
    works topology --synthetic "package:2 l3:2 core:2 pu:2" --json
    grep -q '"schema": 1' "$folder/out" || fault "JSON without schema"
    fails 1 1 topology --synthetic "nonsense"
    fails 1 1 topology --xml "$folder/no-such-file"
    fails 1 1 topology --root "$folder/no-such-folder"
}

# An answer that could not be written is a failure.
full_disk()
{
    "$folder/coplacectl" --help >/dev/full 2>"$folder/err"
    [[ $? == 1 && $(wc -l <"$folder/err") == 1 ]] || fault "a full disk goes unnoticed"
}

everything()
{
    without_daemon "$missing"
    [[ $bus_pid ]] && without_daemon "--bus-address=unix:path=$folder/bus"
    wrong_use
    without_a_bus
}

# A bus on which nobody owns the name is the other way not to have a daemon.
if command -v dbus-daemon >/dev/null; then
    dbus-daemon --session --address="unix:path=$folder/bus" --nofork --nopidfile 2>/dev/null &
    bus_pid=$!
    for _ in {1..100}; do
        [[ -S $folder/bus ]] && break
        sleep 0.1
    done
    chmod 666 "$folder/bus"
else
    echo "live-ctl: dbus-daemon is missing: a bus without the daemon is not tried"
fi
everything
full_disk
if ((EUID == 0)); then
    prefix=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
    # The session bus lets only its own user in, so others see no bus at all.
    everything
fi
echo "live-ctl: $runs runs, $faults faults"
((faults == 0))
