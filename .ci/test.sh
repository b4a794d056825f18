#!/usr/bin/env bash
# Runs tests, lists the slowest thirty, and tries those again alone whose wait ran out.
#
# Usage: .ci/test.sh [all | systems | bounds]
#   all      every test that takes seconds: of tests/it, beside it those of the library and the programs, then the documentation's examples
#   systems  those that need other programs or more than seconds: of tests/it, and beside it of portvakt-lists and portvakt-state (a build of
#            its own, .ci/optimised.sh models); then the bounds among them
#   bounds   those of the others that assert an upper bound on a time: one after the other, with nothing beside them, three tries each
#
# A test that fails because a wait ran out (harness::RAN_OUT, or the state's) may have failed because the machine was slow. It runs
# again three times, alone: if it passes each time, it is reported as flaky, in target/flaky-SUITE.txt too, and the run has passed. Any other
# failure is one at once: what the core saw, a count, an answer or a record may be wrong once in a hundred runs, and right three times
# alone.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:-all}
target=${CARGO_TARGET_DIR:-target}
folder=$(mktemp -d)
lane=
# The lane has a process group of its own, which an interrupt does not reach.
trap '[ -z "$lane" ] || kill -- "-$lane" 2>/dev/null || true; rm -rf "$folder"' EXIT
touch "$folder/flaky" "$folder/failed" "$folder/times"
# A wait of the test's, or one of the program's that reached the test: PostgreSQL on a busy machine took longer than the gateway waits.
marker='a wait ran out|no (commit succeeded|answer) for [0-9]+ s|nothing was written for [0-9]+ s|the state answers too slowly'
# Tests wait more than they compute.
threads=$(($(nproc) * 2))
failed=0

# The programs of the tests, one in a line.
cargo test --workspace --features sandbox --no-run --message-format=json-render-diagnostics >"$folder/built"
mapfile -t programs < <(sed -n 's/.*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*/\1/p' "$folder/built")
it=$(printf '%s\n' "${programs[@]}" | grep '/it-' || true)
[ -n "$it" ] || { echo "tests/it is not among the built tests" >&2 && exit 1; }

lists=$(printf '%s\n' "${programs[@]}" | grep '/portvakt_lists-' || true)
[ -n "$lists" ] || { echo "the tests of portvakt-lists are not among the built tests" >&2 && exit 1; }

# What tells the programs that tests start from those of another build.
started() {
    stat -c '%n %i' "$target/debug/portvakt" "$target/debug/portvakt-sandbox"
}
built=$(started)

# The output of the last attempt.
out=$folder/out

# attempt PROGRAM ARGUMENT...: runs tests; the output stands in $out as well. libtest prints times only where unstable options are
# allowed, which this variable does; it reaches the program of the tests and what that starts, no compiler.
attempt() {
    RUSTC_BOOTSTRAP=1 "$@" -Z unstable-options --report-time 2>&1 | tee "$out"
}

# note_times: of the last attempt.
note_times() {
    sed -n 's/^test \(.*\) \.\.\. .*<\([0-9.]*\)s>$/\2 \1/p' "$out" >>"$folder/times"
}

# judge PROGRAM: decides about the failures of the last attempt.
judge() {
    local program=$1 name
    # Each failed test, and whether a wait of it ran out.
    awk -v marker="$marker" '
        /^test .* \.\.\. FAILED/ { failed[$2] = 1 }
        /^---- .* stdout ----$/ { name = $2 }
        name != "" && $0 ~ marker { waited[name] = 1 }
        /^failures:$/ || /^test result:/ { name = "" }
        END { for (test in failed) print (test in waited ? "wait" : "other"), test }
    ' "$out" >"$folder/failures"
    if [ ! -s "$folder/failures" ]; then
        echo "the program of the tests ended without a result: $program" >&2
        failed=1
    fi
    while read -r kind name; do
        if [ "$kind" = wait ] && passes_alone "$program" "$name"; then
            echo "flaky: $name" | tee -a "$folder/flaky"
        else
            echo "failed: $name" | tee -a "$folder/failed"
            failed=1
        fi
    done <"$folder/failures"
}

passes_alone() {
    local program=$1 name=$2 try
    for try in 1 2 3; do
        echo "$name again, alone ($try of 3)"
        "$program" --exact "$name" --include-ignored --test-threads=1 </dev/null >"$folder/alone" 2>&1 || {
            cat "$folder/alone"
            return 1
        }
    done
}

# bounds OPTION...: the bounds whose names grep selects by these options.
bounds() {
    local names name try passed
    names=$("$it" --list --ignored bounds:: 2>/dev/null | sed -n 's/: test$//p' | grep "$@") ||
        { echo "failed: no test is a bound" | tee -a "$folder/failed" && failed=1 && return; }
    for name in $names; do
        passed=no
        for try in 1 2 3; do
            attempt "$it" --exact "$name" --include-ignored --test-threads=1 && passed=yes && break
        done
        if [ $passed = no ]; then
            echo "failed: $name" | tee -a "$folder/failed"
            failed=1
        fi
    done
}

# judged OUTPUT PROGRAM: what one of them did.
judged() {
    out=$folder/out-$1
    [ ! -e "$out-failed" ] || judge "$2"
    note_times
}

# together ARGUMENT...: runs tests/it, and beside it the programs of `others`, one after the other. What failed is judged, and tried alone,
# after all have ended.
together() {
    local at
    # A process group of its own, which can be killed as a whole.
    set -m
    (
        for at in "${!others[@]}"; do
            out=$folder/out-$at
            attempt "${others[at]}" "$@" --test-threads=$(((threads + 3) / 4)) >/dev/null || touch "$out-failed"
        done
    ) </dev/null &
    lane=$!
    set +m
    out=$folder/out-it
    attempt "$it" "$@" --test-threads=$threads || touch "$out-failed"
    wait "$lane"
    lane=
    for at in "${!others[@]}"; do
        cat "$folder/out-$at"
    done
    judged it "$it"
    for at in "${!others[@]}"; do
        judged "$at" "${others[at]}"
    done
}

case $suite in
all)
    # What the tests admit is read by others too, in a test of systems.
    rm -f "$target/tmp/admitted"
    export PORTVAKT_ADMITTED=$folder/admitted
    mapfile -t others < <(printf '%s\n' "${programs[@]}" | grep -vxF "$it")
    together
    cargo test --workspace --features sandbox --doc || failed=1
    [ $failed -ne 0 ] || mv "$PORTVAKT_ADMITTED" "$target/tmp/"
    ;;
systems)
    models=$(.ci/optimised.sh models)
    others=("$lists" "$models")
    together --ignored systems:: --skip bounds::
    bounds "^systems::"
    ;;
bounds) bounds -v "^systems::" ;;
*)
    echo "usage: .ci/test.sh [all | systems | bounds]" >&2
    exit 2
    ;;
esac

if [ -s "$folder/times" ]; then
    echo
    echo "the slowest tests, in seconds:"
    sort -u "$folder/times" | sort -rn | sed -n '1,30p'
fi
if [ "$(started)" != "$built" ]; then
    echo "failed: another build replaced portvakt or portvakt-sandbox while tests started them" | tee -a "$folder/failed"
    failed=1
fi
mkdir -p "$target"
tee "$target/flaky-$suite.txt" <"$folder/flaky"
cat "$folder/failed"
exit $failed
