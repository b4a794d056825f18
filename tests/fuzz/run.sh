#!/usr/bin/env bash
# Fuzzes parsers, as many at a time as there are cores, and prints a line for each.
#
# Usage: tests/fuzz/run.sh MINUTES [TARGET...]
#   MINUTES   the CPU time of each target, which takes longer on a busy machine
#
# It starts with valid inputs (tests/it/properties.rs, src/lists/signature/tests/seeds.rs), and with what earlier runs kept because it
# reached other code: both are in target/fuzz/corpus. A fault ends its target; the input is then in target/fuzz/faults, and the script
# fails.
set -euo pipefail
cd "$(dirname "$0")/../.."
minutes=$1
shift
mkdir -p "${CARGO_TARGET_DIR:-target}/fuzz/faults"
folder=$(cd "${CARGO_TARGET_DIR:-target}/fuzz" && pwd)
[ $# -gt 0 ] || mapfile -t all < <(sed -n 's/^path = "fuzz_targets\/\(.*\)\.rs"$/\1/p' tests/fuzz/Cargo.toml)
[ $# -gt 0 ] || set -- "${all[@]}"

fuzz=$(.ci/tool.sh cargo-fuzz)
for name in "$@"; do
    # There is no unsafe code: it needs no sanitizer, and so no unstable compiler.
    (cd tests/fuzz && PATH="$(dirname "$fuzz"):$PATH" CARGO_TARGET_DIR=$folder/build RUSTC_BOOTSTRAP=1 \
        cargo fuzz build --fuzz-dir . --sanitizer none "$name")
done
PORTVAKT_SEEDS=$folder/corpus cargo test --workspace --features sandbox --lib --test it -- --exact \
    properties::no_bytes_get_the_better_of_a_parser signature::tests::seeds::signed_lists_of_each_scheme_verify

# run NAME: fuzzes one target for this CPU time.
run() {
    local name=$1 log=$folder/$1.log program used=0 took status=0
    program=$(echo "$folder"/build/*/release/"$name")
    mkdir -p "$folder/corpus/$name"
    : >"$log"
    TIMEFORMAT='%0U %0S'
    while [ $status -eq 0 ] && [ $used -lt $((minutes * 60)) ]; do
        took=$({ time "$program" "$folder/corpus/$name" -max_total_time=$((minutes * 60 - used)) -max_len=65536 -rss_limit_mb=2048 \
            -artifact_prefix="$folder/faults/$name-" -print_final_stats=1 >>"$log" 2>&1; } 2>&1) || status=$?
        used=$((used + ${took/ /+}))
    done
    # Of the last piece: what was reached, and kept.
    awk -v name="$name" -v used=$used -v status=$status '
        /^stat::number_of_executed_units:/ { executions += $2 }
        /^stat::peak_rss_mb:/ && $2 > memory { memory = $2 }
        /^stat::slowest_unit_time_sec:/ && $2 > slowest { slowest = $2 }
        / cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") edges = $(i + 1); if ($i == "corp:") kept = $(i + 1) } }
        END { printf "%-14s %6.1f CPU minutes, %11d executions, %6d edges, %s kept, %d s the slowest, %d MB at most%s\n",
            name, used / 60, executions, edges, kept, slowest, memory, status ? ": A FAULT, see " name ".log" : "" }' "$log"
    return $status
}

export -f run
export folder minutes
printf '%s\n' "$@" | xargs -P "$(nproc)" -I '{}' bash -c 'run {}'
