#!/bin/sh
# Builds a program of the tests with all of our code at opt-level 1, as its dependencies are, and prints its path.
#
# Usage: .ci/optimised.sh instructions | models
#   instructions  what .ci/instructions.sh counts
#   models        the tests of portvakt-state, whose models compute for minutes
# Otherwise our code is built at 0, in half the time. The first also puts the programs, so optimised, in the place of those that tests start.
set -eu
cd "$(dirname "$0")/.."

case ${1:-} in
instructions)
    program=instructions
    set -- build --bench instructions
    ;;
# With the first package too: its features are those that everything else was built with.
models)
    program=portvakt_state
    set -- test --package portvakt --package portvakt-state --lib --no-run
    ;;
*)
    echo "usage: .ci/optimised.sh instructions | models" >&2
    exit 2
    ;;
esac
for crate in $(sed -n 's/^\(portvakt[a-z-]*\) = { opt-level = 0,.*/\1/p' Cargo.toml); do
    set -- "$@" --config "profile.dev.package.$crate.opt-level=1"
done
built=$(cargo "$@" --features sandbox --message-format=json-render-diagnostics)
path=$(printf '%s\n' "$built" | sed -n "s/.*\"executable\":\"\([^\"]*\/$program-[^\"]*\)\".*/\1/p")
[ -n "$path" ] || { echo "$program was not built" >&2 && exit 1; }
printf '%s\n' "$path"
