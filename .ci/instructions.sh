#!/bin/sh
# Counts the instructions of one request, warm or refused, and compares them with benches/instructions.txt: more than 3 % above fails, and
# for the store's thread more than a third.
#
# Usage: .ci/instructions.sh [--bless]
# With the path of the program that is counted in INSTRUCTIONS (.ci/optimised.sh instructions prints it), nothing is built.
# With --bless the new figures are written to that file. The commit must then say what the additional instructions are for.
# .ci/postgres.sh .ci/instructions.sh counts with the state in PostgreSQL, beside the figures of SQLite; the store's thread is not counted.
# The exit code is 75 (skipped) if valgrind is missing (with CI=true that fails), or if the figures belong to another compiler or machine.
#
# The figures are absolute, so that many small increases are found too, and they are counts, so that a busy machine does not change
# them. Their definition:
# - the build is that of the tests, with all of our code at opt-level 1, as the dependencies are (assertions on). The dependencies are built
#   already, and additional work there is additional work in a release too. The figures do not measure the speed of a release; `make bench`
#   does;
# - benches/instructions.rs is measured: from the opened record to the head for the upstream and the metrics, the mean of 200 requests, of
#   20 where the gateway signs with an RSA key;
# - the verification of the signature is a separate figure and is subtracted from the others. It is the larger half, it is library code,
#   and it would hide a change of 3 % in our code;
# - an access line is counted on two threads: the request's, as the difference of a GET with an access log (to /dev/null) and an audit to
#   one without, and the log's, which formats and writes it. Of an accepted GET the audit has no record. Together they must not cost more
#   than 3 % of a GET with its verification. Spans are counted in the same way, with no collector that takes them: where one GET in a
#   hundred has spans, they must not cost more than 1 % of all;
# - a claim is that of a call without the PSU and that of a payment's id, each in a transaction of its own, on the caller's thread;
#   claim-store, in SQLite, is what the store's thread does for it, with its start and with what it does every second, which is more on a
#   slow machine: a third more fails;
# - refused requests are those of an unauthenticated caller, from the opened record to the metrics, with their verification:
#   unsigned (no Signature), unknown-path (404), bad-signature (of a known certificate), new-spelling (the same, in a new spelling of
#   the certificate) and unknown-certificate (one without a chain; this includes the machine's OpenSSL);
# - the others are what a caller can cause besides: the answer to a ClientHello, by the gateway's kind of key; the chain of a client
#   certificate; the signature of an answer; the HTTP/2 library's part of one request. docs/sizing.md names them, and a test compares.
# The figures are the same on every x86-64 machine with AVX2: valgrind simulates such a processor, without AVX-512 and the SHA
# extensions. The keys are new in every run; they, and the seeds of hash maps, change the figures by less than 0.1 %.
set -eu
cd "$(dirname "$0")/.."

skipped=75
file=benches/instructions.txt
limit=3 # per cent

skip() {
    echo "skipped: $1" >&2
    exit $skipped
}

if ! command -v valgrind >/dev/null; then
    [ "${CI:-}" != true ] || { echo "valgrind is not installed, and CI=true: .ci/needs.sh tests" >&2 && exit 1; }
    skip "valgrind is not installed"
fi
[ "$(uname -sm)" = "Linux x86_64" ] && grep -qw avx2 /proc/cpuinfo || skip "the figures are for Linux on x86-64 with AVX2"
# A later patch release of the same compiler generates the same code.
compiler=$(rustc --version | cut -d. -f1,2)
if [ "${1:-}" != --bless ]; then
    taken=$(sed -n 's/^# with: //p' $file)
    [ "$taken" = "$compiler" ] || skip "the figures were taken with $taken, this is $compiler: .ci/instructions.sh --bless takes new ones"
fi

# A build while tests run puts other programs in the place of those that they start, so .ci/run builds before.
program=${INSTRUCTIONS:-$(.ci/optimised.sh instructions)}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# count NAME: the instructions of one round.
count() {
    if ! rounds=$(valgrind --tool=callgrind --toggle-collect='instructions::counted*' --callgrind-out-file="$folder/$1" \
        "$program" "$1" 2>"$folder/log"); then
        cat "$folder/log" >&2
        exit 1
    fi
    awk -v rounds="$rounds" '/^totals:/ { printf "%d", $2 / rounds }' "$folder/$1"
}

# thread NAME PART: the instructions of another thread, which runs this part of the code, for each of the rounds, counted or not.
thread() {
    rounds=$(valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file="$folder/$1-thread" "$program" "$1" 2>"$folder/log")
    own=$(grep -l "$2" "$folder/$1"-thread-* | grep -v -- '-01$')
    awk -v rounds=$((2 * rounds)) '/^totals:/ { printf "%d", $2 / rounds }' "$own"
}

verify=$(count verify)
get=$(($(count get) - verify))
post=$(($(count post) - verify))
claim=$(count claim)
store=
[ -n "${PORTVAKT_BENCH_POSTGRES:-}" ] || store=$(thread claim sqlite::writer::write_all)
known_store=$(sed -n 's/^claim-store //p' $file)
refused="unsigned unknown-path bad-signature bad-signature-rsa4096 new-spelling unknown-certificate
handshake handshake-rsa2048 handshake-rsa4096 client-chain signed-answer-rsa2048 signed-answer-rsa4096 http2"
costs=
for kind in $refused; do
    costs="$costs$kind $(count "$kind")
"
done

if [ "${1:-}" = --bless ]; then
    cat >$file <<END
# Instructions of one request, as .ci/instructions.sh counts them; it says what they are, and with --bless it writes this file.
# with: $compiler
GET $get
POST $post
claim $claim
claim-store ${store:-$known_store}
verification $verify
$(printf %s "$costs")
END
fi

printf '%-22s %10s %10s %9s\n' instructions counted committed more
failed=0
# judge NAME COUNTED [LIMIT]
judge() {
    committed=$(sed -n "s/^$1 //p" $file)
    awk -v name="$1" -v counted="$2" -v committed="$committed" -v limit="${3:-$limit}" 'BEGIN {
        more = (counted / committed - 1) * 100
        printf "%-22s %10d %10d %+8.1f%%\n", name, counted, committed, more
        exit more > limit
    }' || failed=1
}
judge GET "$get"
judge POST "$post"
judge claim "$claim"
[ -z "$store" ] || judge claim-store "$store" 33
judge verification "$verify"
for kind in $refused; do
    judge "$kind" "$(printf %s "$costs" | sed -n "s/^$kind //p")"
done
# logged: the cost of an access line. traced: that of spans.
logged() {
    own=$(count get-logged) && line=$(thread get-logged telemetry::access::Line) || return 1
    own=$((own - verify - get))
    awk -v own="$own" -v line="$line" -v whole=$((get + verify)) -v limit=$limit 'BEGIN {
        share = (own + line) / whole * 100
        printf "access log and audit of a GET: %d on its thread, %d on the thread of the log, %.1f %% of it\n", own, line, share
        exit share > limit
    }'
}
traced() {
    own=$(count get-traced) && spans=$(thread get-traced telemetry::traces::push) || return 1
    own=$((own - verify - get))
    awk -v own="$own" -v spans="$spans" -v whole=$((get + verify)) 'BEGIN {
        share = (own + spans) / whole
        printf "spans of a GET: %d on its thread, %d on the thread that pushes; of one in a hundred GETs: %.2f %% of all\n", own, spans, share
        exit share > 1
    }'
}
# A busy machine wakes the other thread for each line, where it takes several at once otherwise: what is too much is counted again.
for cost in logged traced; do
    $cost || $cost || $cost || failed=1
done
echo "with the verification, a GET is $((get + verify)) and a POST $((post + verify))"

if [ $failed -ne 0 ]; then
    echo "A request costs over $limit % more than what was committed (claim-store: a third), its line in the access log over $limit % of it, or its spans over 1 %. Find out why: callgrind_annotate shows where." >&2
    echo "If it must be so: .ci/instructions.sh --bless, and say in the commit what it buys." >&2
    exit 1
fi
