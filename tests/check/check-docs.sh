#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# --help of both programs and of every verb, the man pages and the bash completions must name the
# same verbs, options (with a value or without) and words of options. Needs COPLACE_BIN.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
export LC_ALL=C.UTF-8
bin=${COPLACE_BIN:-build/bin}
faults=0
compared=0

# fault TEXT…
fault()
{
    echo "check-docs: $*"
    faults=$((faults + 1))
}

# same WHAT EXPECTED ACTUAL: two lists, one item a line, in any order
same()
{
    local expected actual

    compared=$((compared + 1))
    expected=$(sort -u <<<"$2" | sed '/^$/d')
    actual=$(sort -u <<<"$3" | sed '/^$/d')
    [[ $expected == "$actual" ]] && return
    fault "$1 differ (< --help):"
    diff <(echo "$expected") <(echo "$actual") | grep '^[<>]'
}

# From a help text: each option at the beginning of a line, "--name" or "--name=".
help_options()
{
    grep -E '^ +--' <<<"$1" | sed -E 's/^ +//' |
        grep -oE '^--[a-z-]+=?[^ ]*(, --[a-z-]+)*' | tr ',' '\n' |
        sed -E 's/^ *(--[a-z-]+=?).*/\1/'
}

# From a help text: "--name word" for each word of "--name=word|word".
help_words()
{
    grep -oE '^ +--[a-z-]+=[a-z-]+(\|[a-z-]+)+' <<<"$1" | sed -E 's/^ +//' |
        while IFS='=' read -r name words; do
            tr '|' '\n' <<<"$words" | sed "s/^/$name /"
        done
}

# From the source of a man page, lines on standard input: the options that have an entry.
man_options()
{
    sed -nE -e 's/^\.It Fl (-[a-z-]+) Ns = .*/-\1=/p' -e 's/^\.It Fl (-[a-z-]+)$/-\1/p'
}

man_words()
{
    sed -nE 's/^\.It Fl (-[a-z-]+) Ns = Ns (Cm .*)/\1 \2/p' | while read -r name words; do
        for word in $words; do
            [[ $word == Cm || $word == Ns || $word == "|" ]] || echo "-$name $word"
        done
    done
}

# section PAGE KIND TITLE: the lines below ".KIND TITLE" up to the next section
section()
{
    awk -v kind="$2" -v title="$3" '
        ($1 == ".Sh" || $1 == ".Ss") { inside = ($1 == kind && $2 == title); next }
        inside' "$1"
}

# complete_words PROGRAM WORD…: what the completion offers after these words, one a line. The
# last WORD is the one to complete.
complete_words()
{
    local -a COMP_WORDS=("$@")
    local COMP_CWORD=$(($# - 1)) COMPREPLY=()

    "_$1"
    printf '%s\n' "${COMPREPLY[@]}"
}

check_completed_words()
{
    local program=$1 words=$2 name before
    shift 2

    while read -r name; do
        before=$(grep -- "^$name " <<<"$words" | cut -d ' ' -f 2)
        same "words of $program $* $name and its completion" "$before" \
            "$(complete_words "$program" "$@" "$name" = "")"
    done < <(cut -d ' ' -f 1 <<<"$words" | sort -u)
}

check_daemon()
{
    local page=config/man/coplaced.8 help

    help=$("$bin/coplaced" --help) || fault "coplaced --help fails"
    same "options of coplaced and $page" "$(help_options "$help")" "$(man_options <$page)"
    same "words of coplaced and $page" "$(help_words "$help")" "$(man_words <$page)"
    same "options of coplaced and its completion" "$(help_options "$help")" \
        "$(complete_words coplaced "")"
    check_completed_words coplaced "$(help_words "$help")"
}

# A man page as plain text.
render()
{
    if [[ $formatter == mandoc ]]; then
        mandoc -Tascii -Owidth=200 "$1" | col -bx
    else
        MANWIDTH=200 man -l -Tascii "$1" 2>/dev/null | col -bx
    fi
}

check_verb()
{
    local page=config/man/coplacectl.1 verb=$1 help usage rendered operands options

    help=$("$bin/coplacectl" "$verb" --help) || fault "coplacectl $verb --help fails"
    options=$(help_options "$help")
    grep -q '^Example:' <<<"$help" || fault "coplacectl $verb --help has no example"
    same "options of coplacectl $verb and $page" "$options" \
        "$(man_options < <(section $page .Ss "$verb" | cat - <(echo "$global_entries")))"

    # The line of usage and the title in the man page: the same but for blanks.
    usage=$(sed -nE "s/^Usage: coplacectl \[OPTION…\] //p" <<<"$help" | tr -d ' ')
    if [[ $formatter ]]; then
        rendered=$(render $page | sed -nE "s/^   ($verb( .*)?)$/\1/p" | tr -d ' ')
        same "usage of coplacectl $verb and $page" "$usage" "$rendered"
    fi

    # Words that stand for themselves in the operands are completed beside the options.
    operands=$(sed -E 's/\[--[^]]*\]//g; s/--[a-z]+(=[A-Z]+)?//g' <<<"${usage#"$verb"}" |
        grep -oE '[a-z]+')
    same "operands and options of coplacectl $verb and its completion" \
        "$options"$'\n'"$operands" "$(complete_words coplacectl "$verb" "")"
}

check_client()
{
    local page=config/man/coplacectl.1 help verbs verb

    help=$("$bin/coplacectl" --help) || fault "coplacectl --help fails"
    verbs=$(sed -n '/^Commands:/,/^$/p' <<<"$help" | sed -nE 's/^  ([a-z]+) .*/\1/p')
    global_entries=$(section $page .Sh DESCRIPTION)
    same "options of coplacectl and $page" "$(help_options "$help")" \
        "$(man_options <<<"$global_entries")"
    same "verbs of coplacectl and $page" "$verbs" "$(awk '$1 == ".Ss" { print $2 }' $page)"
    same "verbs, options of coplacectl and its completion" \
        "$verbs"$'\n'"$(help_options "$help")" "$(complete_words coplacectl "")"
    for verb in $verbs; do
        check_verb "$verb"
    done
    # The states are words of the description.
    help=$("$bin/coplacectl" decisions --help | sed -nE 's/^States: (.*)\.$/\1/p' | tr -d ',' |
        tr ' ' '\n')
    same "states and the completion" "$help" \
        "$(complete_words coplacectl decisions --state = "")"
    same "states and $page" "$help" "$(section $page .Ss decisions |
        sed -n '/^\.It Fl -state/,/^\.It Fl -limit/s/^\.Cm \([a-z]*\).*/\1/p')"
}

check_pages()
{
    local page complaints=""

    for page in config/man/*.[1-8]; do
        # Whether other manuals are installed here says nothing about this one.
        case $formatter in
        mandoc) complaints=$(mandoc -Tlint "$page" 2>/dev/null | grep -v 'manual not found') ;;
        man) complaints=$(man --warnings -l -Tutf8 "$page" 2>&1 >/dev/null) ;;
        esac
        [[ $complaints ]] && fault "$page: $complaints"
    done
}

formatter=""
for program in man mandoc; do
    command -v $program >/dev/null && formatter=$program
done
for program in coplaced coplacectl; do
    if [[ ! -x $bin/$program ]]; then
        echo "check-docs: $bin/$program is missing; build first or set COPLACE_BIN"
        exit 1
    fi
    # shellcheck source=/dev/null
    source "config/completions/$program" || exit 1
done
check_daemon
check_client
check_pages
echo "check-docs: $compared comparisons, $faults faults"
((faults == 0 && compared >= 26)) || exit 1
if [[ ! $formatter ]]; then
    echo "check-docs: neither mandoc nor man is installed: pages not formatted, usage not compared"
    exit 77
fi
