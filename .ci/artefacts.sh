#!/bin/sh
# Builds the files of a release, without its provenance and its signature, in an empty folder: packages, images and manifests, the CycloneDX
# documents, the licences, the site, the source, and what verifies them. The same commit, toolchain, counts and packages of Debian give the
# same bytes.
#
# Usage: .ci/artefacts.sh --counts FILE --out DIR
set -eu
counts="" out=""
while [ $# -gt 0 ]; do
    case $1 in
    --counts) counts=$(realpath --canonicalize-existing "$2") ;;
    --out) out=$(realpath "$2") ;;
    *) counts="" && break ;;
    esac
    shift 2
done
[ -n "$counts" ] && [ -n "$out" ] || { echo "usage: .ci/artefacts.sh --counts FILE --out DIR" >&2 && exit 2; }
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC0
# Settings of this user that would change the programs. Those of the machine (where cargo fetches, and with how many jobs) do not.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CFLAGS CXXFLAGS LDFLAGS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=portvakt-$version
time=$(git log -1 --format=%ct)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

.ci/package.sh --counts "$counts" --version "$version-1" --out "$out"
cp "$counts" "$out/$name.profdata"
# By the programs as their packages install them.
for program in portvakt portvakt-sandbox portvakt-lists; do
    dpkg-deb --fsys-tarfile "$out/${program}_$version-1_$(dpkg --print-architecture).deb" | tar -xO "./usr/bin/$program" >"$work/$program"
    chmod 755 "$work/$program"
done
packaging/release/bill.py sbom --program "$work/portvakt" >"$out/$name.cdx.json"
packaging/release/bill.py sbom --program "$work/portvakt-sandbox" --features sandbox >"$out/portvakt-sandbox-$version.cdx.json"
packaging/release/bill.py sbom --program "$work/portvakt-lists" --package portvakt-lists >"$out/portvakt-lists-$version.cdx.json"
packaging/release/bill.py licences --package portvakt --package portvakt-lists --features sandbox >"$out/$name-third-party-licences.txt"
git -c tar.umask=022 archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$out/$name.tar.gz"
.ci/docs.py "$work/$name-docs" >&2
tar --format=ustar --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go=rX \
    --directory "$work" --create "$name-docs" | gzip -9n >"$out/$name-docs.tar.gz"
cp packaging/release/verify-release.sh "$out"
# Of the packages only: .ci/seal.sh writes that of the release.
rm "$out/SHA256SUMS"
