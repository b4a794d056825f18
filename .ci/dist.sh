#!/bin/sh
# Builds the programs as they are deployed, and prints the folder that they are in.
#
# They are built twice: once so that they count what they do under a load, and once more with those counts (profile-guided
# optimisation), which saves about a tenth of the CPU of a request. The counts are kept in the target folder and used again
# until `cargo clean`, until a dependency or the compiler is another (functions then have other names, and the counts would be
# of nothing), or until --train takes them anew. Where they can't be taken, the programs are built without, and it is
# said why.
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
host=$(rustc -vV | sed -n 's/^host: //p')
counts=$target/counts
built=$host/dist

# build FOLDER FLAGS: with a named target, so that the flags are not for build scripts.
build() {
    CARGO_TARGET_DIR=$1 RUSTFLAGS="${RUSTFLAGS:-} $2" \
        cargo build --profile dist --features bench --target "$host" \
        --bin portvakt --bin portvakt-bench --bin portvakt-bare >&2
}

# Prints a program that reads what this compiler counts: its own, or one of LLVM 19 or later, which write the same form.
merger() {
    for program in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" \
        llvm-profdata-22 llvm-profdata-21 llvm-profdata-20 llvm-profdata-19; do
        if command -v "$program" >/dev/null; then
            echo "$program"
            return
        fi
    done
}

# What the names of functions depend on.
names() {
    { rustc -vV && cat Cargo.toml Cargo.lock; } | cksum
}

# Takes the counts, of the gateway and of the `bare` that it is compared with.
train() {
    merge=$(merger)
    if [ -z "$merge" ]; then
        echo "there is no llvm-profdata (rustup component add llvm-tools, or Debian's llvm-19)" >&2
        return 1
    fi
    rm -rf "$counts" && mkdir "$counts"
    build "$target/counting" "-Cprofile-generate=$counts" || return
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
if [ -e "$counts/merged" ]; then
    build "$target" "-Cprofile-use=$counts/merged"
else
    build "$target" ""
fi
echo "$target/$built"
