#!/bin/sh
# Checks the dependencies by deny.toml: duplicates, licences, sources. Advisories are not checked here: their database is a separate
# repository, and its changes must not make a build fail. `cargo deny check advisories` checks them.
#
# Usage: .ci/deny.sh [--install]
# With --install a missing cargo-deny is built into the target folder, within 10 minutes. Without cargo-deny the exit code is 75: skipped.
set -eu

skipped=75
tools="${CARGO_TARGET_DIR:-target}/tools"
PATH="$PATH:$(mkdir -p "$tools" && cd "$tools" && pwd)/bin"
export PATH

if ! command -v cargo-deny >/dev/null && [ "${1:-}" = --install ]; then
    echo "installing cargo-deny into $tools"
    timeout 600 cargo install --locked --root "$tools" cargo-deny || echo "cargo-deny could not be installed (status $?)" >&2
fi

if ! command -v cargo-deny >/dev/null; then
    echo "skipped: cargo-deny is not installed (cargo install --locked cargo-deny)" >&2
    exit $skipped
fi

cargo deny --locked check --hide-inclusion-graph bans licenses sources
