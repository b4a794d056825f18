#!/bin/sh
# Adds provenance, sums and signature to the files of a release, and verifies the whole as its readers do.
#
# Usage: .ci/seal.sh --key SECRET --public KEY --advisories COMMIT FOLDER
set -eu
usage() { echo "usage: .ci/seal.sh --key SECRET --public KEY --advisories COMMIT FOLDER" >&2 && exit 2; }
[ $# -eq 7 ] && [ "$1 $3 $5" = "--key --public --advisories" ] || usage
secret=$(realpath "$2") public=$(realpath "$4") advisories=$6
folder=$(cd "$7" && pwd)
cd "$(dirname "$0")/.."

packaging/release/provenance.py "$folder" "$advisories"
tag=v$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
cd "$folder"
rm -f SHA256SUMS SHA256SUMS.minisig
# shellcheck disable=SC2035 # Names of a release begin with a letter.
LC_ALL=C sha256sum -- * >"$folder.sums" && mv "$folder.sums" SHA256SUMS
commit=$(git -C "$OLDPWD" rev-parse HEAD)
minisign -S -q -s "$secret" -m SHA256SUMS -c "signature of a release of Portvakt" -t "portvakt $tag $commit"
"$OLDPWD/packaging/release/verify-release.sh" --key "$public" "$folder"
