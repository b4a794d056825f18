#!/bin/sh
# Verifies a release of Portvakt, without a network: the signature of SHA256SUMS, every file by its sum, and that the files come from the
# commit, the Cargo.lock, the toolchain and the counts that the provenance names. Status 0: all fits. 1: a line says what does not.
#
# Usage: verify-release.sh --key FILE [--source CLONE [--rebuild]] [FOLDER]
#   FOLDER           the files of the release; without it, the folder of this script
#   --key FILE       the public key of the releaser, which you did not get together with the release
#   --source CLONE   a clone of the repository at the commit of the release: it must be that commit, with this machine's toolchain that of the release
#   --rebuild        build the release from the clone too, and compare each file. docs/releasing.md says what that needs
#
# Needs minisign and Python 3. Whoever can change a release can change this script in it: run the one of a source that you trust.
set -eu
# cd would go elsewhere.
unset CDPATH
fail() {
    echo "not verified: $*" >&2
    exit 1
}
usage="usage: verify-release.sh --key FILE [--source CLONE [--rebuild]] [FOLDER]"
key="" source="" rebuild="" folder=""
while [ $# -gt 0 ]; do
    case $1 in
    --key) key=$(realpath "${2:?$usage}") && shift ;;
    --source) source=$(realpath "${2:?$usage}") && shift ;;
    --rebuild) rebuild=yes ;;
    -*) echo "$usage" >&2 && exit 2 ;;
    *) folder=$1 ;;
    esac
    shift
done
[ -n "$key" ] && { [ -z "$rebuild" ] || [ -n "$source" ]; } || { echo "$usage" >&2 && exit 2; }
cd -- "${folder:-$(dirname -- "$0")}"
folder=$(pwd)
export LC_ALL=C

command -v minisign >/dev/null || fail "minisign is not installed"
signed=$(minisign -V -Q -p "$key" -m SHA256SUMS) || fail "SHA256SUMS has no signature of this key"
# The first line of a signature is not signed, and minisign reads no line behind the fourth.
{ [ "$(head -n 1 SHA256SUMS.minisig)" = "untrusted comment: signature of a release of Portvakt" ] && [ "$(wc -l <SHA256SUMS.minisig)" -eq 4 ]; } ||
    fail "SHA256SUMS.minisig was changed"
# A link leads to what can change later.
[ -z "$(find . -mindepth 1 ! -type f -print -quit)" ] || fail "the folder has something that is no file"
sha256sum --check --strict --quiet SHA256SUMS || fail "a file is not the one that was signed"
listed=$(sed 's/^[0-9a-f]* [ *]//' SHA256SUMS | sort)
present=$(find . -mindepth 1 ! -name SHA256SUMS ! -name SHA256SUMS.minisig -printf '%P\n' | sort)
[ "$listed" = "$present" ] || fail "the folder has files that SHA256SUMS does not list"

python3 - "$signed" "$source" <<'EOF' || fail "the provenance is not that of these files"
import hashlib, json, pathlib, subprocess, sys, tarfile

signed, source = sys.argv[1:]

def sha256(content):
    return hashlib.sha256(content).hexdigest()

def same(what, found, stated):
    if found != stated:
        sys.exit(f"{what}: {found!r}, but the provenance states {stated!r}")

statement = json.loads(pathlib.Path("provenance.json").read_bytes())
build = statement["predicate"]["buildDefinition"]
inputs = {each["name"]: each for each in build["resolvedDependencies"]}
tag, commit = build["externalParameters"]["tag"], inputs["source"]["digest"]["gitCommit"]
lock, toolchain = inputs["Cargo.lock"]["digest"]["sha256"], inputs["toolchain"]["annotations"]["rustc"]
name = "portvakt-" + tag.removeprefix("v")

same("the signature", signed, f"portvakt {tag} {commit}")
lines = pathlib.Path("SHA256SUMS").read_text().splitlines()
sums = {line[66:]: line[:64] for line in lines if line[66:] != "provenance.json"}
same("SHA256SUMS", sums, {each["name"]: each["digest"]["sha256"] for each in statement["subject"]})
same("the counts", sha256(pathlib.Path(name + ".profdata").read_bytes()), inputs["counts"]["digest"]["sha256"])
with tarfile.open(name + ".tar.gz") as archive:
    same("the commit of the source", archive.pax_headers.get("comment"), commit)
    same("Cargo.lock of the source", sha256(archive.extractfile(name + "/Cargo.lock").read()), lock)
bills = sorted(pathlib.Path().glob("*.cdx.json"))
programs = ("portvakt", "portvakt-lists", "portvakt-sandbox")
same("CycloneDX documents", [bill.name for bill in bills], [f"{each}-{tag.removeprefix('v')}.cdx.json" for each in programs])
for bill in bills:
    facts = {each["name"]: each["value"] for each in json.loads(bill.read_bytes())["metadata"]["properties"]}
    same(f"the commit of {bill}", facts["portvakt:commit"], commit)
    same(f"the toolchain of {bill}", facts["portvakt:toolchain"], toolchain)
for image in sorted(pathlib.Path().glob("*.oci.tar")):
    with tarfile.open(image) as archive:
        read = lambda path: json.loads(archive.extractfile(path).read())
        blob = lambda described: read("./blobs/" + described["digest"].replace(":", "/"))
        config = blob(blob(read("./index.json")["manifests"][0])["config"])
    same(f"the commit of {image}", config["config"]["Labels"]["org.opencontainers.image.revision"], commit)
if source:
    run = lambda *command: subprocess.run(command, cwd=source, check=True, stdout=subprocess.PIPE).stdout
    same("the commit of the clone", run("git", "rev-parse", "HEAD").decode().strip(), commit)
    same("changed files of the clone", run("git", "status", "--porcelain").decode(), "")
    same("Cargo.lock of the clone", sha256(run("git", "show", "HEAD:Cargo.lock")), lock)
    same("the toolchain of this machine", run("rustc", "-vV").decode(), toolchain)
EOF

if [ -n "$rebuild" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    parameter() {
        python3 -c 'import json; print(json.load(open("provenance.json"))["predicate"]["buildDefinition"]'"$1"')'
    }
    # Other packages of Debian can give other bytes.
    parameter '["internalParameters"]["packages"]' | tr -d "[]'" | sed 's/, */\n/g' | while read -r package version; do
        here=$(dpkg-query --show --showformat '${Version}' "$package" 2>/dev/null || echo none)
        [ "$here" = "$version" ] || echo "note: $package is $here here, and was $version for the release" >&2
    done
    git clone --quiet "$source" "$work/source"
    # Tools that were compiled already.
    mkdir "$work/source/target" && [ ! -e "$source/target/tools" ] || ln -s "$source/target/tools" "$work/source/target/tools"
    counts=$(echo "$folder"/portvakt-*.profdata)
    maintainer=$(parameter '["externalParameters"]["maintainer"]')
    (
        unset CARGO_TARGET_DIR PORTVAKT_MAINTAINER
        [ -z "$maintainer" ] || export PORTVAKT_MAINTAINER="$maintainer"
        "$work/source/.ci/artefacts.sh" --counts "$counts" --out "$work/out" >&2
    ) || fail "the release cannot be built from the clone"
    different=
    for file in $listed; do
        [ "$file" = provenance.json ] || cmp "$file" "$work/out/$file" || different="$different $file"
    done
    [ -z "$different" ] || fail "not what the clone builds:$different"
fi
echo "verified: ${signed}"
