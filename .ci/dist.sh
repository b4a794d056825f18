#!/bin/sh
# Builds the programs for deployment, and prints their folder.
#
# The programs are built twice: first with counters that are filled under a load, then with those counts (profile-guided
# optimisation), which saves about a tenth of the CPU of a request. The counts are kept in the target folder and reused until
# `cargo clean`, until a dependency or the compiler changes (functions then have other names, and the counts would not match),
# or until --train measures them again. If the counts cannot be measured, the programs are built without them, and the script
# prints the reason.
#
# The same commit, compiler and counts give the same program in any folder: paths of this machine are replaced in it. Counts differ
# each time that they are measured; those of a release are among its files (docs/releasing.md).
#
# Usage: .ci/dist.sh [--train | --counts FILE] [--bench] [--packages]
#   --train         measure the counts again
#   --counts FILE   build with these counts
#   --bench         build too what compares it with peers: portvakt-bench, portvakt-bare, portvakt-edge
#   --packages      build portvakt-sandbox and portvakt-lists too, which are packages of their own
set -eu
train=if-needed bench="" also="" counts_file=""
while [ $# -gt 0 ]; do
    case $1 in
    --train) train=yes ;;
    --counts) train=no counts_file=$(realpath --canonicalize-existing "$2") && shift ;;
    --bench) bench=yes ;;
    --packages) also=yes ;;
    *) echo "usage: .ci/dist.sh [--train | --counts FILE] [--bench] [--packages]" >&2 && exit 2 ;;
    esac
    shift
done
# Compilers would see some of these folders by the name of a link and some by what it leads to.
cd -P "$(dirname "$0")/.."
CARGO_HOME=$(realpath --canonicalize-missing "${CARGO_HOME:-$HOME/.cargo}")
export CARGO_HOME

# `portvakt --version` and portvakt_build_info show the commit, without the tags, which not every copy has.
PORTVAKT_COMMIT=$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo "not recorded")
export PORTVAKT_COMMIT

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
target=$(cd -P "$target" && pwd)
host=$(rustc -vV | sed -n 's/^host: //p')
counts=$target/counts
built=$host/dist

# The sources of the crates must be in their folders before these are named below.
cargo fetch --locked --quiet --target "$host" >&2

# The folders of this machine by fixed names, of which the last that fits applies. Cargo leaves RUSTFLAGS out of its hashes where they
# have such an option, so that names of functions do not depend on the path of the counts either.
renamed() {
    echo "$1$PWD=/portvakt" "$1$target=/target"
    for registry in "$CARGO_HOME"/registry/src/*; do
        echo "$1$registry=/registry"
    done
    echo "$1$(rustc --print sysroot)/lib/rustlib/src/rust=/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')"
}
rust_paths=$(renamed --remap-path-prefix= | tr '\n' ' ')
c_paths=$(renamed -ffile-prefix-map= | tr '\n' ' ')

# build FOLDER FLAGS OPTION...: with an explicit target, so that the flags do not apply to build scripts. The gateway is built
# by itself: its features would otherwise be those of what is built beside it. C compilers take SOURCE_DATE_EPOCH for today.
build() {
    folder=$1 flags=$2
    shift 2
    CARGO_TARGET_DIR=$folder RUSTFLAGS="${RUSTFLAGS:-} $rust_paths $flags" CFLAGS="${CFLAGS:-} $c_paths" CXXFLAGS="${CXXFLAGS:-} $c_paths" \
        SOURCE_DATE_EPOCH=0 cargo build --locked --profile dist --target "$host" "$@" >&2
}
gateway="--bin portvakt"
peers="--features bench --bin portvakt-bench --bin portvakt-bare --bin portvakt-edge"
sandbox="--features sandbox --bin portvakt-sandbox"
lists="--package portvakt-lists --bin portvakt-lists"

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

if [ "$train" = yes ] || { [ "$train" = if-needed ] && [ "$(names)" != "$(cat "$counts/names" 2>/dev/null)" ]; }; then
    if ! train; then
        echo "built without counts: they could not be taken" >&2
        rm -rf "$counts"
    fi
fi
counts_file=${counts_file:-$counts/merged}
flags=
[ ! -e "$counts_file" ] || flags=-Cprofile-use=$counts_file
# shellcheck disable=SC2086 # Options, one per word.
build "$target" "$flags" $gateway
# shellcheck disable=SC2086 # As above.
[ -z "$bench" ] || build "$target" "$flags" $peers
# shellcheck disable=SC2086 # As above.
[ -z "$also" ] || build "$target" "$flags" $sandbox
# The counts are those of the gateway: no function of this program is among them.
# shellcheck disable=SC2086 # As above.
[ -z "$also" ] || build "$target" "" $lists
echo "$target/$built"
