#!/bin/sh
# Builds the packages for deployment in dist/: four Debian packages, two OCI images, and manifests for Kubernetes.
#
# Usage: .ci/package.sh [--program FILE | --counts FILE] [--version VERSION] [--out DIR]
#   --program FILE     package this portvakt, and portvakt-sandbox and portvakt-lists beside it; without it, .ci/dist.sh builds them
#   --counts FILE      give these to .ci/dist.sh
#   --version VERSION  of the Debian packages; without it, that of Cargo.toml, and the commit unless it has the tag of the release
#   --out DIR          in place of dist/
#
# The same programs and the same commit give the same bytes, in any folder, at any time and under any umask: each file has the time of
# the commit, owner 0:0 and a mode that is set here, and files are written in the order of their names.
#
# Needs dpkg-dev, binutils and Python of Debian 12. Names of libraries and their versions are those of this machine: build on the oldest
# Debian that is served.
set -eu
repository=$(cd "$(dirname "$0")/.." && pwd)

program="" counts="" version="" out=$repository/dist
while [ $# -gt 0 ]; do
    case $1 in
    --program) program=$(realpath "$2") ;;
    --counts) counts=$(realpath "$2") ;;
    --version) version=$2 ;;
    --out) out=$2 ;;
    *) echo "usage: .ci/package.sh [--program FILE | --counts FILE] [--version VERSION] [--out DIR]" >&2 && exit 2 ;;
    esac
    shift 2
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$repository"
[ -n "$program" ] || program=$(.ci/dist.sh --packages ${counts:+--counts "$counts"})/portvakt
sandbox=$(dirname "$program")/portvakt-sandbox
lists=$(dirname "$program")/portvakt-lists

# What differs between machines and users.
umask 022
export LC_ALL=C TZ=UTC0
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
architecture=$(dpkg --print-architecture)
maintainer="${PORTVAKT_MAINTAINER:-The authors of Portvakt <portvakt@packages.invalid>}"
number=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
if [ -z "$version" ]; then
    version=$number-1
    # "~" sorts before the release; later commits sort behind earlier ones.
    [ "$(git describe --exact-match --tags 2>/dev/null)" = "v$number" ] ||
        version="$number~$(date -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M).$(git rev-parse --short=12 HEAD)-1"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

. packaging/debian/build.sh
debian_packages

. packaging/oci/build.sh
images

. packaging/kubernetes/build.sh
manifests

(cd "$out" && sha256sum -- *.deb *.oci.tar *.tar.gz >SHA256SUMS && ls -l)
