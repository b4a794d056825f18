#!/bin/sh
# Prints the folder of NIST's PKITS (with certs and crls), which three tests use for chains and lists.
#
# The folder is the one that PORTVAKT_PKITS names, that of an installed Python package cryptography_vectors, or the one in the target
# folder, which is fetched once from PyPI and checked by its hash. If none is available, the exit code is 75, with a message.
set -eu
cd "$(dirname "$0")/.."

skipped=75
version=50.0.2
hash=51641f03a3eb4edbe9fb68e3a3574d25f86aa502d06391fffa886330d02778a0

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
folder=$(cd "$target" && pwd)/pkits-$version

# Checks that the folder is complete.
is_there() {
    [ -d "$1/certs" ] && [ -d "$1/crls" ]
}

if [ -n "${PORTVAKT_PKITS:-}" ]; then
    echo "$PORTVAKT_PKITS"
    exit
fi
if is_there "$folder"; then
    echo "$folder"
    exit
fi
installed=$(python3 -c 'import cryptography_vectors as v; print(next(iter(v.__path__)))' 2>/dev/null)/x509/PKITS_data || true
if is_there "$installed"; then
    echo "$installed"
    exit
fi

work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT

fetch() {
    # Debian's Python has pip in virtual environments only.
    python3 -m venv "$work/venv" &&
        echo "cryptography_vectors==$version --hash=sha256:$hash" >"$work/needs" &&
        "$work/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            --require-hashes --dest "$work" --requirement "$work/needs" &&
        python3 - "$work" <<'END'
import pathlib, sys, zipfile
work = pathlib.Path(sys.argv[1])
[wheel] = work.glob("*.whl")
with zipfile.ZipFile(wheel) as files:
    for name in files.namelist():
        folder, _, file = name.partition("/PKITS_data/")
        if file and file.split("/")[0] in ("certs", "crls") and not file.endswith("/"):
            to = work / "pkits" / file
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(files.read(name))
END
}

if ! fetch >&2 || ! is_there "$work/pkits"; then
    echo "PKITS cannot be had: python3 with venv and PyPI are needed (.ci/needs.sh tests), or the folder in PORTVAKT_PKITS" >&2
    exit $skipped
fi
# A concurrent run that was faster has fetched the same files.
mv "$work/pkits" "$folder" 2>/dev/null || is_there "$folder"
rm -rf "$folder/pkits"
echo "$folder"
