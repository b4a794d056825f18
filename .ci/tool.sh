#!/bin/sh
# Prints the path of a program of crates.io, in the version that is named here, and compiles it into the target folder where it is missing.
#
# Usage: .ci/tool.sh mdbook
set -eu
case ${1:-} in
mdbook) version=0.5.4 options="--no-default-features --features search" ;;
*) echo "usage: .ci/tool.sh mdbook" >&2 && exit 2 ;;
esac
tools="${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/tools"
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
if [ "$("$tools/bin/$1" --version 2>/dev/null)" != "$1 v$version" ]; then
    # shellcheck disable=SC2086 # Options, one per word.
    CARGO_TARGET_DIR=$tools/build cargo install --locked --force --root "$tools" --version "$version" $options "$1" >&2
    rm -rf "$tools/build"
fi
echo "$tools/bin/$1"
