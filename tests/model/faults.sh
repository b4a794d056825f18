#!/usr/bin/env bash
# Plants faults in the rules of the state, its caches, clock and fence, one after the other, and requires that a model of src/state/model
# finds each. Most of what no model has, such as the pages of a list, blocks and moves, the unit tests must find: such a patch begins with
# "Found by: the unit tests".
#
# Every patch of tests/model/faults adds a fault that is there while PORTVAKT_FAULT names it. All of them are applied in a copy, which is
# built once, in a target folder of its own: cargo would take its programs for those of the source. A patch that no longer applies fails:
# adapt it to the source.
#
# Usage: tests/model/faults.sh [NAME...]
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
copy=$target/model-faults
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard -- Cargo.toml Cargo.lock src benches tests/it/main.rs |
    tar --create --null --files-from=- | tar --extract --directory "$copy"
for patch in tests/model/faults/*.patch; do
    patch --quiet --strip=1 --fuzz=2 --no-backup-if-mismatch --directory "$copy" <"$patch" ||
        { echo "$patch does not apply" >&2 && exit 1; }
done

optimised=()
for crate in base interface state; do
    optimised+=(--config "profile.dev.package.portvakt-$crate.opt-level=1")
done
program=$(cd "$copy" && CARGO_TARGET_DIR=$target/model-faults-build cargo test "${optimised[@]}" --locked -p portvakt-state --lib --no-run \
    --message-format=json-render-diagnostics |
    sed -n 's/.*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*/\1/p')
[ -n "$program" ] || { echo "the copy does not build" >&2 && exit 1; }

models() {
    PORTVAKT_FAULT=$1 "$program" model:: --skip planted_fault --test-threads=1 2>&1 &&
        PORTVAKT_FAULT=$1 "$program" model::ids::systems model::psu::systems --ignored --skip planted_fault --skip too_late --test-threads=1 2>&1
}

unit_tests() {
    PORTVAKT_FAULT=$1 "$program" rules:: fence:: --skip model:: 2>&1
}

run() {
    if grep -qsx "Found by: the unit tests" "tests/model/faults/$1.patch"; then unit_tests "$1"; else models "$1"; fi
}

output=$(models none && unit_tests none) || { echo "$output" >&2 && echo "the tests fail without a fault" >&2 && exit 1; }
missed=0
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(cd tests/model/faults && ls | sed -n 's/^\([^_].*\)\.patch$/\1/p')
[ ${#names[@]} -gt 0 ] || { echo "there is no fault" >&2 && exit 1; }
for name in "${names[@]}"; do
    [ -e "tests/model/faults/$name.patch" ] || { echo "tests/model/faults has no $name.patch" >&2 && exit 2; }
    status=0
    output=$(run "$name") || status=$?
    # The first test that failed.
    found=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' <<<"$output" | head -n 1)
    if [ $status -ne 101 ] || [ -z "$found" ]; then
        missed=$((missed + 1))
        found="NOT FOUND"
    else
        # Its property.
        found+=": $(grep -o -m 1 'Unexpected "[^"]*"\|Discovery for "[^"]*" not found\|a decision read a row that is not its\|panicked at src/[^:]*:[0-9]*' <<<"$output" || true)"
    fi
    printf '%-45s %s\n' "$name" "$found"
done
echo "${#names[@]} faults, $missed not found"
[ "$missed" -eq 0 ]
