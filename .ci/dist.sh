#!/bin/sh
# Builds the programs for deployment, and prints their folder.
#
# The programs are built twice: first with counters that are filled under a load, then with those counts (profile-guided
# optimisation), which saves about a tenth of the CPU of a request. The counts are kept in the target folder and reused until
# `cargo clean`, until a dependency or the compiler changes (functions then have other names, and the counts would not match),
# or until --train measures them again. If the counts cannot be measured, the programs are built without them, and the script
# prints the reason.
#
# Usage: .ci/dist.sh [--train | --bench | --sandbox]
#   --bench     build too what compares it with peers: portvakt-bench, portvakt-bare, portvakt-edge
#   --sandbox   build portvakt-sandbox too, which is a package of its own and not deployed
set -eu
cd "$(dirname "$0")/.."

# `portvakt --version` and portvakt_build_info show the commit.
PORTVAKT_COMMIT=$(git describe --always --dirty --abbrev=12 2>/dev/null || echo "not recorded")
export PORTVAKT_COMMIT

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
host=$(rustc -vV | sed -n 's/^host: //p')
counts=$target/counts
built=$host/dist

# build FOLDER FLAGS OPTION...: with an explicit target, so that the flags do not apply to build scripts. The gateway is built
# by itself: its features would otherwise be those of what is built beside it.
build() {
    folder=$1 flags=$2
    shift 2
    CARGO_TARGET_DIR=$folder RUSTFLAGS="${RUSTFLAGS:-} $flags" cargo build --profile dist --target "$host" "$@" >&2
}
gateway="--bin portvakt"
peers="--features bench --bin portvakt-bench --bin portvakt-bare --bin portvakt-edge"
sandbox="--features sandbox --bin portvakt-sandbox"

# Prints a program that reads the counts of this compiler: its own, or one of LLVM 19 or later, which use the same format.
merger() {
    for program in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" \
        llvm-profdata-22 llvm-profdata-21 llvm-profdata-20 llvm-profdata-19; do
        if command -v "$program" >/dev/null; then
            echo "$program"
            return
        fi
    done
}

# The inputs that determine the names of functions.
names() {
    { rustc -vV && cat Cargo.toml Cargo.lock src/Cargo.toml src/*/Cargo.toml; } | cksum
}

# Measures the counts, of the gateway and of the baseline `bare`.
train() {
    merge=$(merger)
    if [ -z "$merge" ]; then
        echo "there is no llvm-profdata (rustup component add llvm-tools, or Debian's llvm-19)" >&2
        return 1
    fi
    rm -rf "$counts" && mkdir "$counts"
    # shellcheck disable=SC2086 # Options, one per word.
    build "$target/counting" "-Cprofile-generate=$counts" $gateway &&
        build "$target/counting" "-Cprofile-generate=$counts" $peers || return
    bench=$target/counting/$built/portvakt-bench
    "$bench" get post http2 --only bare,Portvakt --rounds 1 --seconds 1 >&2 || return
    "$bench" durable refused --rounds 1 --seconds 1 >&2 || return
    "$merge" merge -o "$counts/merged" "$counts"/*.profraw || return
    names >"$counts/names"
}

if [ "${1:-}" = --train ] || [ "$(names)" != "$(cat "$counts/names" 2>/dev/null)" ]; then
    if ! train; then
        echo "built without counts: they could not be taken" >&2
        rm -rf "$counts"
    fi
fi
flags=
[ ! -e "$counts/merged" ] || flags=-Cprofile-use=$counts/merged
# shellcheck disable=SC2086 # Options, one per word.
build "$target" "$flags" $gateway
# shellcheck disable=SC2086 # As above.
case ${1:-} in
--bench) build "$target" "$flags" $peers ;;
--sandbox) build "$target" "$flags" $sandbox ;;
esac
echo "$target/$built"
