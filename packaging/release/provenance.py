#!/usr/bin/env python3
"""Writes provenance.json of a release: an in-toto statement with SLSA's provenance 1.0 about every other file in its folder.

Usage: packaging/release/provenance.py FOLDER ADVISORIES
  ADVISORIES   the commit of the RustSec database that the dependencies were checked with
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# The packages of Debian that decide about bytes of the release: what compiles, links and packs, and what images contain.
PACKAGES = ["binutils", "ca-certificates", "cmake", "dpkg", "gcc", "git", "gzip", "libc6", "libgcc-s1", "libssl3", "libssl-dev", "python3",
            "tar", "xz-utils"]


def run(*command, check=True):
    return subprocess.run(command, cwd=REPOSITORY, check=check, stdout=subprocess.PIPE, stderr=None if check else subprocess.DEVNULL).stdout


def sha256(content):
    return {"sha256": hashlib.sha256(content).hexdigest()}


def main():
    folder, advisories = pathlib.Path(sys.argv[1]), sys.argv[2]
    version = re.search(r'(?m)^version = "(.*)"$', (REPOSITORY / "Cargo.toml").read_text())[1]
    toolchain = run("rustc", "-vV").decode()
    counts = folder / f"portvakt-{version}.profdata"
    skipped = {"provenance.json", "SHA256SUMS", "SHA256SUMS.minisig"}
    files = sorted(file for file in folder.iterdir() if file.name not in skipped)
    packages = run("dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *PACKAGES, check=False).decode().splitlines()
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": sha256(file.read_bytes())} for file in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                # docs/releasing.md describes it.
                "buildType": "https://portvakt.invalid/release/1",
                "externalParameters": {"tag": f"v{version}", "maintainer": os.environ.get("PORTVAKT_MAINTAINER", "")},
                "internalParameters": {"packages": packages},
                "resolvedDependencies": [
                    {"name": "source", "uri": f"git+https://portvakt.invalid/portvakt@v{version}",
                     "digest": {"gitCommit": run("git", "rev-parse", "HEAD").decode().strip()}},
                    {"name": "Cargo.lock", "digest": sha256(run("git", "show", "HEAD:Cargo.lock"))},
                    {"name": "toolchain", "digest": {"gitCommit": re.search("commit-hash: (.*)", toolchain)[1]},
                     "annotations": {"rustc": toolchain}},
                    {"name": "counts", "digest": sha256(counts.read_bytes())},
                    {"name": "advisories", "uri": "git+https://github.com/RustSec/advisory-db", "digest": {"gitCommit": advisories}},
                ],
            },
            "runDetails": {"builder": {"id": "https://portvakt.invalid/releaser"}},
        },
    }
    (folder / "provenance.json").write_text(json.dumps(statement, indent=1) + "\n")


main()
