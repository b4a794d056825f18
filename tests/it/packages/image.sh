#!/bin/bash
# A gateway from an unpacked image, as a container runtime runs it: without privileges, on a read-only root, with loopback alone.
#
# Usage: unshare --user --map-root-user --mount --net --pid --fork image.sh ROOT REPOSITORY WORK
#   ROOT        the unpacked image
#   REPOSITORY  with docs/operations.md and config/production.yaml
#   WORK        an empty folder
# Ends with status 0 where everything went as expected.
set -euo pipefail

root=$1 repository=$2 work=$3
page=$repository/docs/operations.md
trap 'echo "failed in line $LINENO: $BASH_COMMAND"; cat "$work/events" || true' ERR

# blocks FROM TO: the commands of the page from one step to the next.
blocks() {
    sed -n "/^\*\*$1\./,/^\*\*$2\./p" "$page" | sed -n '/^```sh$/,/^```$/p' | sed '/^```/d'
}

until_it() {
    for _ in $(seq 600); do
        ! "$@" >"$work/tried" 2>&1 || return 0
        sleep 0.1
    done
    echo "a wait ran out: $*"
    cat "$work/tried"
    return 1
}

# inside PROGRAM ARGUMENT...: runs a program of the image as its user. As root of the namespace it could write where it must not.
inside() {
    unshare --user --map-user=65532 --map-group=65532 --root="$root" --wd=/ "$@"
}

echo "== what a runtime brings along"
ip link set lo up
mkdir -p "$work/etc" "$work/state" "$root/proc" "$root/dev"
echo "127.0.0.1 localhost" >"$root/etc/hosts"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$work/etc" "$root/etc/portvakt"
mount --bind "$work/state" "$root/var/lib/portvakt"

echo "== the configuration, by the page for operators"
cp "$repository/config/production.yaml" "$work/etc/gateway.yaml"
cd "$work/etc"
mkdir tls secrets anchors crls registers ca tpp core
eval "$(blocks 2 4)"
# nginx as root of the namespace would give its folders to a user that the namespace does not have.
eval "$(blocks 5 6 | sed "s#/etc/portvakt#$work/etc#g; s#^/usr/sbin/nginx#unshare --user --map-user=65532 &#")"
# It warns of the CA of the trial, which --strict would not accept.
inside /usr/bin/portvakt check --config /etc/portvakt/gateway.yaml

echo "== start"
not_ready=0
inside /usr/bin/portvakt health --config /etc/portvakt/gateway.yaml || not_ready=$?
[ $not_ready -eq 1 ]
# Process 1 of a namespace of its own, as in a container.
unshare --pid --fork unshare --user --map-user=65532 --map-group=65532 --root="$root" --wd=/ \
    /usr/bin/portvakt serve --config /etc/portvakt/gateway.yaml >"$work/access" 2>"$work/events" &
runtime=$!
until_it inside /usr/bin/portvakt health --config /etc/portvakt/gateway.yaml
inside /usr/bin/portvakt health --url http://127.0.0.1:9100
curl -sS --fail http://127.0.0.1:9100/readyz
echo

echo "== a signed 200"
psu=$(cat /proc/sys/kernel/random/uuid)
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
curl -sS --fail-with-body -w '\n' http://127.0.0.1:9100/psu/bind -H 'Content-Type: application/json' \
    -H "Authorization: Bearer $(cat secrets/control.token)" \
    -d "{\"tpp\": \"PSDNO-FSA-123456\", \"psu_id\": \"$psu\", \"last_sca\": \"$now\", \"consent_at\": \"$now\"}"
inside /usr/bin/portvakt tpp call --cert /etc/portvakt/tpp/seal.pem --key /etc/portvakt/tpp/seal.key \
    --cacert /etc/portvakt/ca/ca.pem --psu-present -H "Host: api.bank.example:8443" -H "PSU-ID: $psu" \
    GET https://localhost:8443/v1/accounts | tee "$work/answer"
grep -q '^200' "$work/answer"

echo "== stop, by the image's STOPSIGNAL"
gateway=$(ps -o pid= --ppid $runtime | tr -d ' ')
# As root of this namespace the process is a child of ours.
kill -TERM "$gateway"
wait $runtime
kill "$core"
echo "== everything went as expected"
