#!/bin/bash
# The life of the packages on a Debian 12 of their own, whose first process is systemd: tests/it/packages.rs boots it.
#
# Usage: try.sh OLD NEW OLDER, folders with packages of the same schema of the state, of two versions; and of a version with an earlier
# schema, if there is one. Ends with status 0 where everything went as expected.
set -euo pipefail

old=$1 new=$2 older=$3
page=/usr/share/doc/portvakt/docs/operations.md
service=portvakt.service

step() {
    printf '\n== %s\n' "$*"
}

# On a failure: what the gateway said, and the units.
explain() {
    tail -n 20 /var/log/portvakt/events.log || true
    journalctl --no-pager --lines=60 || true
    systemctl status --no-pager "$service" || true
}
trap 'echo "failed in line $LINENO: $BASH_COMMAND"; explain' ERR

# blocks FROM TO: the commands of the page from one step to the next.
blocks() {
    sed -n "/^\*\*$1\./,/^\*\*$2\./p" "$page" | sed -n '/^```sh$/,/^```$/p' | sed '/^```/d'
}

# until_it COMMAND...: waits until a command succeeds.
until_it() {
    for _ in $(seq 600); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    echo "a wait ran out: $*"
    return 1
}

# not COMMAND...: fails where the command succeeds. ("!" alone does not end a script.)
not() {
    if "$@"; then
        echo "this must fail: $*"
        return 1
    fi
}

main() {
    systemctl show --property=MainPID --value $service
}

call() {
    portvakt tpp call --cert /etc/portvakt/tpp/seal.pem --key /etc/portvakt/tpp/seal.key --cacert /etc/portvakt/ca/ca.pem --psu-present \
        -H "Host: api.bank.example:8443" -H "PSU-ID: $psu" GET https://localhost:8443/v1/accounts
}

answers() {
    call >/run/answer && grep -q '^200' /run/answer
}

ready() {
    portvakt health --config /etc/portvakt/gateway.yaml
}

# A root file system of mmdebstrap has none.
echo "127.0.0.1 localhost" >>/etc/hosts

step "install"
dpkg --install "$old"/*.deb
# The example is not complete, so the package neither enables nor starts the service.
not systemctl --quiet is-active $service
not systemctl --quiet is-enabled $service
status=0
runuser -u portvakt -- portvakt check --config /etc/portvakt/gateway.yaml 2>/run/faults || status=$?
cat /run/faults
[ $status -eq 2 ]
grep -q "tls/server.pem" /run/faults

step "the unit"
systemd-analyze verify --man=no $service portvakt.socket 2>&1 | tee /run/verified
[ ! -s /run/verified ]
# In tenths: docs/install.md.
systemd-analyze security --offline=true --no-pager --threshold=20 $service | tail -n 1

step "try it, by the page about installing"
commands=$(sed -n '/^## Try it$/,$p' /usr/share/doc/portvakt/docs/install.md | sed -n 's/^    //p')
mkdir -m 0777 /tmp/visitor
(cd /tmp/visitor && runuser -u games -- bash -euc "$commands --once") | tail -n 1 | tee /run/demo
grep -q "as expected" /run/demo
rm -r /tmp/visitor

step "the files that the example names, by the page for operators"
cd /etc/portvakt
mkdir ca tpp core
eval "$(blocks 2 4)"
# The folders have the group of the gateway.
chmod 0440 secrets/* tls/server.key
[ "$(stat -c '%U:%G' secrets/control.token)" = root:portvakt ]
# It warns of the trial's CA, and of nothing else.
status=0
runuser -u portvakt -- portvakt check --strict --config /etc/portvakt/gateway.yaml 2>/run/warnings || status=$?
cat /run/warnings
[ $status -eq 1 ]
[ "$(grep '^warning' /run/warnings | grep -vc 'a CA for trials')" -eq 0 ]
eval "$(blocks 5 6)"

step "start"
systemctl enable --now $service
until_it ready
ready
psu=$(cat /proc/sys/kernel/random/uuid)
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
bind_psu() {
    curl -sS --fail-with-body -w '\n' http://127.0.0.1:9100/psu/bind -H 'Content-Type: application/json' \
        -H "Authorization: Bearer $(cat secrets/control.token)" \
        -d "{\"tpp\": \"PSDNO-FSA-123456\", \"psu_id\": \"$psu\", \"last_sca\": \"$now\", \"consent_at\": \"$now\"}"
}
bind_psu
call
answers
[ "$(stat -c '%U %a' /var/lib/portvakt /var/log/portvakt /var/log/portvakt/access.log | tr '\n' ' ')" = \
    "portvakt 700 portvakt 750 portvakt 640 " ]

# load FOLDER: calls until the file FOLDER/stop is there; one line for each call, with its milliseconds.
load() {
    local caller began
    callers=()
    mkdir -p "$1"
    for caller in 1 2 3; do
        while [ ! -e "$1/stop" ]; do
            began=${EPOCHREALTIME/./}
            if call >"$1/answer$caller" 2>&1 && grep -q '^200' "$1/answer$caller"; then
                echo "200 $(((${EPOCHREALTIME/./} - began) / 1000))"
            else
                cat "$1/answer$caller"
            fi
        done >"$1/calls$caller" &
        callers+=($!)
    done
}

# made FOLDER...: the number of calls that were answered with 200.
made() {
    local folder
    for folder; do cat "$folder"/calls*; done | grep -c '^200 ' || true
}

# change FOLDER NAME [CALLS]: installs other packages under load, at least so many calls before and after it, and expects that the process
# changes and no request fails.
change() {
    local before after load=/run/$2 calls=${3:-1}
    before=$(main)
    load "$load"
    while [ "$(made "$load")" -lt "$calls" ]; do sleep 0.1; done
    dpkg --install "$1"/*.deb
    after=$(main)
    [ "$before" != "$after" ]
    # The process before has let go, and the service goes on without it.
    until_it sh -c "! kill -0 $before"
    systemctl --quiet is-active $service
    while [ "$(made "$load")" -lt $((2 * calls)) ]; do sleep 0.1; done
    touch "$load/stop"
    wait "${callers[@]}"
    echo "$2: $(made "$load") calls, the longest $(cat "$load"/calls* | sed -n 's/^200 //p' | sort -n | tail -n 1) ms;" \
        "other lines: $(cat "$load"/calls* | grep -vc '^200 ' || true)"
    [ "$(cat "$load"/calls* | grep -vc '^200 ')" -eq 0 ]
    [ "$(readlink /proc/"$after"/exe)" = /usr/bin/portvakt ]
}

step "upgrade under load"
change "$new" upgrade
dpkg-query --show portvakt

step "back one version, under load"
change "$old" downgrade
change "$new" again

step "10 000 calls through upgrades and downgrades"
round=0
all() {
    made /run/upgrade /run/downgrade /run/again /run/old-* /run/new-*
}
change "$old" old-0 >/dev/null
change "$new" new-0 >/dev/null
while [ "$(all)" -lt 10000 ]; do
    round=$((round + 1))
    change "$old" "old-$round" >/dev/null
    change "$new" "new-$round" >/dev/null
done
echo "$(all) calls, none failed; $((2 * round + 5)) changes of the process"
[ "$(systemctl show --property=NRestarts --value $service)" = 0 ]

step "a version that does not start leaves the one before"
sed -i.good 's/^system: /sytem: /' gateway.yaml
before=$(main)
not dpkg --install "$old"/portvakt_*.deb 2>/run/refused
cat /run/refused
grep -q "the version before goes on" /run/refused
[ "$(main)" = "$before" ]
answers
mv gateway.yaml.good gateway.yaml
dpkg --configure portvakt
[ "$(main)" != "$before" ]
dpkg --install "$new"/*.deb

step "a state that cannot be converted leaves the version before"
schema() {
    sqlite3 "${1:-/var/lib/portvakt/portvakt.db}" "PRAGMA user_version${2:-}"
}
state=/var/lib/portvakt/portvakt.db
known=$(schema)
before=$(main)
# The tables of the last step are there already.
schema $state "=$((known - 1))"
not dpkg --install "$new"/portvakt_*.deb 2>/run/refused
cat /run/refused
grep -q "the version before goes on" /run/refused
journalctl --no-pager --unit=$service | grep "to migrate a copy of it failed"
[ "$(main)" = "$before" ]
answers
not ls $state.*
schema $state "=$known"
dpkg --configure portvakt
answers

# back_to_older: by the copy that the conversion has made, as docs/operations.md says.
back_to_older() {
    systemctl stop $service
    rm $state-wal $state-shm || true
    mv $state.schema-* $state
    dpkg --install --force-confold "$older"/*.deb
    systemctl start $service
    answers
    [ "$(schema)" -lt "$known" ]
}

if [ -d "$older" ]; then
    step "from a version with an earlier schema, under load"
    systemctl stop $service
    rm $state*
    dpkg --install --force-confold "$older"/*.deb
    systemctl start $service
    until_it ready
    bind_psu
    earlier=$(schema)
    [ "$earlier" -lt "$known" ]
    change "$new" converted 5000
    [ "$(schema)" = "$known" ]
    [ "$(stat -c '%U %a' $state.schema-*)" = "portvakt 600" ]

    step "back by the copy, and again"
    for round in 1 2; do
        back_to_older
        change "$new" "converted-again-$round" 50
        [ "$(schema)" = "$known" ]
    done
    rm $state.schema-*
fi

step "reload"
systemctl reload $service
until_it grep -rq '"kind":"reloaded"' /var/lib/portvakt/audit

step "logrotate"
lines=$(wc -l </var/log/portvakt/access.log)
logrotate --force /etc/logrotate.d/portvakt
until_it test -e /var/log/portvakt/access.log
answers
until_it test -s /var/log/portvakt/access.log
[ "$(wc -l </var/log/portvakt/access.log.1)" -ge "$lines" ]

step "secrets as credentials of systemd"
mkdir -p /etc/systemd/system/$service.d
cp /usr/share/doc/portvakt/examples/credentials.conf /etc/systemd/system/$service.d/
chown root:root secrets/* && chmod 0600 secrets/*
sed -i.files 's/token_file: secrets\//token_file: ${CREDENTIALS_DIRECTORY}\//' gateway.yaml
systemctl daemon-reload
systemctl restart $service
answers
curl -sS --fail -o /dev/null http://127.0.0.1:9100/metrics -H "Authorization: Bearer $(cat secrets/metrics.token)"
CREDENTIALS_DIRECTORY=/run/credentials/$service portvakt check --no-bind --config gateway.yaml
# The new process after an upgrade has the credentials too.
before=$(main)
systemctl kill --kill-whom=main --signal=USR2 $service
until_it sh -c "[ \$(systemctl show --property=MainPID --value $service) != $before ]"
answers
rm -r /etc/systemd/system/$service.d
mv gateway.yaml.files gateway.yaml
chgrp portvakt secrets/* && chmod 0440 secrets/*
systemctl daemon-reload
systemctl restart $service
answers

step "sockets of systemd"
systemctl stop $service
systemctl start portvakt.socket
systemctl start $service
answers
# A call during a restart waits for the new process.
systemctl restart --no-block $service
until_it answers
systemctl stop portvakt.socket $service

step "the service alone again"
systemctl start $service
answers

step "trusted lists"
lists=portvakt-lists.service
systemd-analyze verify --man=no $lists portvakt-lists.timer 2>&1 | tee /run/verified
[ ! -s /run/verified ]
systemd-analyze security --offline=true --no-pager --threshold=20 $lists | tail -n 1
not systemctl --quiet is-enabled portvakt-lists.timer
# Nothing is fetched before the signers are pinned.
systemctl start $lists
[ "$(systemctl show --property=ConditionResult --value $lists)" = no ]
# There is no network here: the unit fails, and its journal says why.
touch /etc/portvakt-lists/pins/signer.pem
not systemctl start $lists
journalctl --no-pager --unit=$lists | grep "curl: "
[ "$(stat -c '%U %a' /var/lib/portvakt-lists)" = "portvakt-lists 755" ]
portvakt-lists --version
systemctl enable --now portvakt-lists.timer

step "remove"
dpkg --remove portvakt-lists
not systemctl --quiet is-active portvakt-lists.timer
ls /etc/portvakt-lists/pins/signer.pem
dpkg --purge portvakt-lists
not ls /etc/portvakt-lists
not ls /var/lib/portvakt-lists
dpkg --remove portvakt-sandbox portvakt
not systemctl --quiet is-active $service
ls /var/lib/portvakt/portvakt.db /var/lib/portvakt/hash.key gateway.yaml secrets/control.token /var/log/portvakt/access.log

step "purge"
cd /
mkdir -p /etc/systemd/system/$service.d
echo '[Service]' >/etc/systemd/system/$service.d/override.conf
# Audits of other configurations.
install -D /dev/null /var/lib/portvakt/second/audit/salts.db
install -D /dev/null /var/log/portvakt/audit/1/control-00000000000000000001.jsonl
# The logs are on another disk.
mv /var/log/portvakt /srv/logs && ln -s /srv/logs /var/log/portvakt
dpkg --purge portvakt 2>&1 | tee /run/purged
grep -q "the audit stays in /var/lib/portvakt/audit" /run/purged
grep -q "the audit stays in /var/lib/portvakt/second/audit" /run/purged
grep -q "the audit stays in /var/log/portvakt/audit/1" /run/purged
[ "$(ls /var/lib/portvakt | tr '\n' ' ')" = "audit second " ]
[ "$(find /var/lib/portvakt/second -type f)" = /var/lib/portvakt/second/audit/salts.db ]
[ "$(find /srv/logs -type f)" = /srv/logs/audit/1/control-00000000000000000001.jsonl ]
not ls /etc/portvakt
ls /etc/systemd/system/$service.d/override.conf

step "everything went as expected"
