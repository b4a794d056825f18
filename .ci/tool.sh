#!/bin/sh
# Prints the path of a program of crates.io, in the version that is named here, and compiles it into the target folder where it is missing.
#
# Usage: .ci/tool.sh mdbook | cargo-fuzz | cargo-mutants
set -eu
case ${1:-} in
mdbook) version=0.5.4 options="--no-default-features --features search" ;;
cargo-fuzz) version=0.13.2 options= ;;
cargo-mutants) version=26.2.0 options= ;;
*) echo "usage: .ci/tool.sh mdbook | cargo-fuzz | cargo-mutants" >&2 && exit 2 ;;
esac
tools="${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/tools"
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
case $1 in
cargo-mutants) set -- "$1" mutants ;; # It answers as cargo's own command only.
esac
# shellcheck disable=SC2086 # Nothing, or one word.
case $("$tools/bin/$1" ${2:-} --version 2>/dev/null) in
"$1 $version" | "$1 v$version") ;;
*)
    # shellcheck disable=SC2086 # Options, one per word.
    CARGO_TARGET_DIR=$tools/build cargo install --locked --force --root "$tools" --version "$version" $options "$1" >&2
    rm -rf "$tools/build"
    ;;
esac
echo "$tools/bin/$1"
