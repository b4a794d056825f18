#!/bin/sh
# Runs a command beside a PostgreSQL server with a synchronous standby, and removes both afterwards.
#
# Usage: .ci/postgres.sh COMMAND [ARGUMENT...]
# The command finds the server's settings in PORTVAKT_BENCH_POSTGRES. Both servers write as in production (fsync is on), and listen on a
# Unix socket in a folder of their own, below TMPDIR.
set -eu

# Debian keeps the programs out of PATH.
PATH=/usr/lib/postgresql/15/bin:/usr/lib/postgresql/16/bin:/usr/lib/postgresql/17/bin:/usr/lib/postgresql/18/bin:$PATH
if ! command -v initdb >/dev/null || ! command -v pg_basebackup >/dev/null; then
    echo "PostgreSQL is not installed: .ci/needs.sh tests" >&2
    exit 1
fi

folder=$(mktemp -d)
# PostgreSQL refuses root.
as=
if [ "$(id -u)" -eq 0 ]; then
    chown postgres "$folder"
    as="runuser -u postgres --"
fi

# run PROGRAM ARGUMENT...: a program of PostgreSQL.
run() {
    (cd "$folder" && $as "$@") >>"$folder.log" 2>&1 || { cat "$folder.log" >&2; exit 1; }
}

end() {
    for server in primary standby; do
        [ ! -e "$folder/$server/postmaster.pid" ] || run pg_ctl -D "$folder/$server" -m immediate stop
    done
    rm -rf "$folder" "$folder.log"
}
trap end EXIT
trap 'exit 130' INT TERM

run initdb -D "$folder/primary" -U portvakt -A trust --no-sync -E UTF8 --locale=C
cat >>"$folder/primary/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$folder'
shared_buffers = 1GB
max_wal_size = 8GB
END
run pg_ctl -D "$folder/primary" -w -l "$folder/primary.log" start
run pg_basebackup -h "$folder" -U portvakt -R -X stream -c fast --no-sync -D "$folder/standby"
echo "port = 5433" >>"$folder/standby/postgresql.conf"
run pg_ctl -D "$folder/standby" -w -l "$folder/standby.log" start
run psql -h "$folder" -U portvakt -d postgres -c "ALTER SYSTEM SET synchronous_standby_names = '*'" -c "SELECT pg_reload_conf()"

PORTVAKT_BENCH_POSTGRES="host=$folder user=portvakt dbname=postgres" "$@"
