#!/bin/sh
# Counts the instructions of one request, warm or refused, and holds them against benches/instructions.txt: more than 3 % above fails.
#
# Usage: .ci/instructions.sh [--bless]
# With --bless the figures just counted are written to that file. Whoever does so says in the commit what they bought.
# Where valgrind is missing (unless CI=true: that fails), or the figures were taken with another compiler or for another machine, the end is 75: skipped.
#
# The figures are absolute, so that a little more with every change is found too, and they are counts, so that a busy machine
# changes nothing. What they are:
# - of the build that tests use (the dev profile: what runs often at opt-level 2, our code at 1, assertions on). It is there already, and a
#   change that makes it do more work makes a release do more work too. They say nothing about how fast a release is; `make bench` does;
# - of benches/instructions.rs: from the opened record to the head for the upstream and the metrics, the mean of 200 requests;
# - the verification of the signature stands apart and is taken off the others. It is the larger half, it is not ours, and beside it
#   3 % of what is ours would not be seen.
# - what is refused is what a caller can cost who has proven nothing, from the opened record to the metrics. Its verification is in it:
#   unsigned (no Signature), unknown-path (404), bad-signature (of a certificate that is known), new-spelling (the same, in words that
#   were never seen) and unknown-certificate (one that does not chain; OpenSSL's part of it is that of the machine's OpenSSL).
# They are the same on every x86-64 machine with AVX2: valgrind shows programs one such processor, without AVX-512 and the SHA
# extensions, whatever it runs on. The keys are new in every run; that, and the seeds of hash maps, move them by less than 0.1 %.
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
# A later patch of the same compiler makes the same code.
compiler=$(rustc --version | cut -d. -f1,2)
if [ "${1:-}" != --bless ]; then
    taken=$(sed -n 's/^# with: //p' $file)
    [ "$taken" = "$compiler" ] || skip "the figures were taken with $taken, this is $compiler: .ci/instructions.sh --bless takes new ones"
fi

program=$(cargo build --features sandbox --bench instructions --message-format=json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\/instructions-[^"]*\)".*/\1/p')
[ -n "$program" ] || exit 1
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

verify=$(count verify)
get=$(($(count get) - verify))
post=$(($(count post) - verify))
refused="unsigned unknown-path bad-signature new-spelling unknown-certificate"
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
verification $verify
$(printf %s "$costs")
END
fi

printf '%-19s %10s %10s %9s\n' instructions counted committed more
failed=0
# judge NAME COUNTED
judge() {
    committed=$(sed -n "s/^$1 //p" $file)
    awk -v name="$1" -v counted="$2" -v committed="$committed" -v limit=$limit 'BEGIN {
        more = (counted / committed - 1) * 100
        printf "%-19s %10d %10d %+8.1f%%\n", name, counted, committed, more
        exit more > limit
    }' || failed=1
}
judge GET "$get"
judge POST "$post"
judge verification "$verify"
for kind in $refused; do
    judge "$kind" "$(printf %s "$costs" | sed -n "s/^$kind //p")"
done
echo "with the verification, a GET is $((get + verify)) and a POST $((post + verify))"

if [ $failed -ne 0 ]; then
    echo "A request costs over $limit % more than what was committed. Find out why: callgrind_annotate shows where." >&2
    echo "If it must be so: .ci/instructions.sh --bless, and say in the commit what it buys." >&2
    exit 1
fi
