#!/usr/bin/env bash
# Changes the code in one place after the other, and reports each change that no unit test of its crate notices.
#
# Usage: tests/mutants/run.sh [FOLDER... | changed [BASE]]
#   FOLDER   such as src/sca, within one crate; without one: the six below
#   changed  only lines that differ from the commit BASE (origin/main), tracked files that are not committed included
#
# SHARD=0/4 takes every fourth change. As many changes are tried at a time as there are cores. The reports stay in target/mutants. A
# change that survives and has no reason in docs/mutants.md fails the run.
set -euo pipefail
cd "$(dirname "$0")/../.."

all=(src/interface/payload src/state/rules src/trust src/signing src/sca src/admission)
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
reports=$target/mutants
mkdir -p "$reports"
mutants=$(.ci/tool.sh cargo-mutants)

folders=("${all[@]}")
options=(--jobs "$(nproc)" --no-shuffle --colors never)
[ -z "${SHARD:-}" ] || options+=(--shard "$SHARD" --sharding round-robin)
if [ "${1:-}" = changed ]; then
    base=${2:-origin/main}
    git rev-parse --quiet --verify "$base^{commit}" >/dev/null || { echo "there is no commit $base: name one, such as changed HEAD~1" >&2 && exit 2; }
    git diff --no-color --no-ext-diff --src-prefix=a/ --dst-prefix=b/ --merge-base "$base" -- src >"$reports/changed.diff"
    options+=(--in-diff "$reports/changed.diff")
    # Of each crate.
    folders=(src src/base src/development_pki src/hsm src/interface src/lists src/sandbox src/state src/trust)
elif [ $# -gt 0 ]; then
    folders=("${@%/}")
    for folder in "${folders[@]}"; do
        [ -d "$folder" ] && [[ $folder = src/* ]] || { echo "$folder is no folder of src" >&2 && exit 2; }
    done
fi

# try FOLDER: tries the changes of a folder, and prints a line of counts and each survivor without a reason.
try() {
    local folder=$1 crate features=() report=$reports/${1//\//-} status=0 found survived explained name
    crate=$folder
    while [ ! -e "$crate/Cargo.toml" ]; do crate=$(dirname "$crate"); done
    ! grep -q '^sandbox = ' "$crate/Cargo.toml" || features=(--features sandbox)
    rm -rf "$report"
    mkdir -p "$report"
    # 2: some survived; 3: some ran out of time, which is noticed too.
    # Each job has a target folder of its own: two copies of the source in one would take each other's programs for theirs.
    env -u CARGO_TARGET_DIR "$mutants" mutants --package "$(sed -n 's/^name = "\(.*\)"$/\1/p' "$crate/Cargo.toml" | head -1)" "${features[@]}" "${options[@]}" \
        --file "$folder/**" --output "$report" -- --lib >"$report/log" 2>&1 || status=$?
    case $status in 0 | 2 | 3) ;; *) cat "$report/log" >&2 && return 1 ;; esac
    # Where no line changed there is no report.
    [ -e "$report/mutants.out/caught.txt" ] || return 0
    count() { cat "${@/#/$report/mutants.out/}" | wc -l; }
    found=$(count caught.txt timeout.txt)
    survived=$(count missed.txt)
    [ $((found + survived)) -gt 0 ] || { echo "$folder: no change that compiles" && return 0; }
    explained=0
    : >"$report/survivors"
    while read -r name; do
        if entry="- \`$(sed -E 's/^([^:]*):[0-9]+:[0-9]+: /\1: /' <<<"$name")\`" \
            awk 'index($0, ENVIRON["entry"]) == 1 { found = 1 } END { exit !found }' docs/mutants.md; then
            explained=$((explained + 1))
        else
            echo "  survived: $name" >>"$report/survivors"
        fi
    done <"$report/mutants.out/missed.txt"
    awk -v folder="$folder" -v found="$found" -v survived="$survived" -v explained=$explained -v unviable="$(count unviable.txt)" 'BEGIN {
        printf "%-24s %5d changes, %4d of them do not compile; %5d found, %3d survived, %3d of them with a reason: %.3f\n",
            folder, found + survived + unviable, unviable, found, survived, explained, found / (found + survived) }'
    cat "$report/survivors"
    [ ! -s "$report/survivors" ]
}

failed=0
for folder in "${folders[@]}"; do
    try "$folder" || failed=1
done
exit $failed
