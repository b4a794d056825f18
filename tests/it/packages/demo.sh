#!/bin/bash
# The demonstration from an unpacked image, as image.sh runs the gateway's: read-only, without privileges, with loopback alone.
#
# Usage: unshare --user --map-root-user --mount --net --pid --fork demo.sh ROOT REPOSITORY WORK
set -euo pipefail

root=$1 work=$3

ip link set lo up
mkdir -p "$work/state" "$root/proc" "$root/dev"
echo "127.0.0.1 localhost" >"$root/etc/hosts"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$work/state" "$root/var/lib/portvakt"
TMPDIR=/var/lib/portvakt unshare --user --map-user=65532 --map-group=65532 --root="$root" --wd=/ \
    /usr/bin/portvakt-sandbox demo --config /usr/share/portvakt/demo/gateway.yaml --certs /var/lib/portvakt/certs --once
echo "== everything went as expected"
