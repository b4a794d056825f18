#!/usr/bin/env python3
"""What a program of Portvakt is made of, as cargo, the loader and the sources of the crates say. Python's standard library only.

Usage: packaging/release/bill.py sbom|licences|audit-data [--package NAME]... [--features FEATURES] [--program FILE]
  sbom        a CycloneDX 1.6 document about FILE: crates, C libraries within them, libraries that the loader finds
  licences    the licences of the same crates and C libraries, with their texts
  audit-data  the crates for the section .dep-v0 of the program, in the form of cargo-auditable: zlib over JSON

The output depends on the commit, on FILE and on the libraries that it links, and on nothing else. A crate with C code that the table
below does not have is an error: somebody must look at what it includes.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tomllib
import urllib.parse
import uuid
import zlib

TARGET = "x86_64-unknown-linux-gnu"
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

# C code within a crate: its name, the name that it would have as a library of the system, the file and the pattern of its version, its
# licence, its package URL, and the files of its licence.
CLibrary = collections.namedtuple("CLibrary", "name soname file pattern licence purl texts")
C_LIBRARIES = {
    "aws-lc-sys": CLibrary(
        "AWS-LC", "libaws_lc", "aws-lc/include/openssl/base.h", r'AWSLC_VERSION_NUMBER_STRING "([0-9.]+)"',
        "ISC AND (Apache-2.0 OR ISC) AND Apache-2.0 AND MIT AND BSD-3-Clause", "pkg:github/aws/aws-lc@v{}",
        ["aws-lc/LICENSE", "aws-lc/third_party/fiat/LICENSE"],
    ),
    "libmimalloc-sys": CLibrary(
        "mimalloc", "libmimalloc", "c_src/mimalloc/v3/include/mimalloc.h", r"define MI_MALLOC_VERSION ([0-9]+)([0-9]{2})([0-9]{2})\b",
        "MIT", "pkg:github/microsoft/mimalloc@v{}", ["c_src/mimalloc/v3/LICENSE"],
    ),
    "libsqlite3-sys": CLibrary(
        "SQLite", "libsqlite3", "sqlite3/sqlite3.h", r'define SQLITE_VERSION +"([0-9.]+)"', "blessing", "pkg:generic/sqlite@{}", [],
    ),
    "libz-ng-sys": CLibrary(
        "zlib-ng", "libz", "src/zlib-ng/zlib-ng.h.in", r'define ZLIBNG_VERSION "([0-9.]+)"', "Zlib", "pkg:github/zlib-ng/zlib-ng@{}",
        ["src/zlib-ng/LICENSE.md"],
    ),
    "zstd-sys": CLibrary(
        "Zstandard", "libzstd", "zstd/lib/zstd.h",
        r"define ZSTD_VERSION_MAJOR +([0-9]+)[^Z]*define ZSTD_VERSION_MINOR +([0-9]+)[^Z]*define ZSTD_VERSION_RELEASE +([0-9]+)",
        "BSD-3-Clause OR GPL-2.0-only", "pkg:github/facebook/zstd@v{}", ["zstd/LICENSE"],
    ),
    # C and assembler of BoringSSL, by which the crate goes: it has no version of its own.
    "ring": CLibrary("BoringSSL in ring", "libring", "Cargo.toml", r'\nversion = "([0-9.]+)"', "Apache-2.0 AND ISC", "pkg:cargo/ring@{}",
                     ["LICENSE-BoringSSL", "third_party/fiat/LICENSE"]),
}
# Crates that link a library of the system, by the beginning of its name.
SYSTEM_LIBRARIES = {"openssl-sys": "libssl.so"}
# Crates that build no C code themselves, although they say that they link, or that build it for a feature that no crate here asks for.
NO_C_CODE = {"aws-lc-rs", "signal-hook"}

LICENCE_FILE = re.compile(r"(?i)(un)?licen[cs]e|copying|notice|copyright")


def run(*command):
    return subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True).stdout


def tree(packages, features, edges):
    """The crates of `cargo tree` by name and version, each with those that it depends on; the first one is the program's."""
    chosen = [option for name in packages for option in ("--package", name)]
    lines = run("cargo", "tree", "--locked", *chosen, "--target", TARGET, "--edges", edges, "--features", features, "--prefix", "depth", "--format", " {p}")
    crates, path = {}, []
    for line in filter(None, lines.splitlines()):
        depth, name, version = line.split()[:3]
        crate = (name, version.removeprefix("v"))
        crates.setdefault(crate, set())
        path[int(depth):] = [crate]
        if len(path) > 1:
            crates[path[-2]].add(crate)
    return crates


class Crates:
    """What cargo says of the crates of a program."""

    def __init__(self, packages, features):
        self.all = tree(packages, features, "normal")
        # The others are macros, which run at build time only, and what these use.
        self.linked = tree(packages, features, "normal,no-proc-macro")
        metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET))
        self.packages = {(each["name"], each["version"]): each for each in metadata["packages"]}
        locked = tomllib.loads((REPOSITORY / "Cargo.lock").read_text())["package"]
        self.checksums = {(each["name"], each["version"]): each.get("checksum") for each in locked}

    def folder(self, crate):
        return pathlib.Path(self.packages[crate]["manifest_path"]).parent

    def licence(self, crate):
        licence = self.packages[crate]["license"] or sys.exit(f"{crate}: the manifest names no licence")
        return licence.replace("/", " OR ")

    def c_libraries(self):
        """C code within the linked crates: (crate, library, version)."""
        found = []
        for crate in sorted(self.linked):
            package = self.packages[crate]
            builds = {each["name"] for each in package["dependencies"] if each["kind"] == "build"} & {"cc", "cmake"}
            if not (package["links"] or builds) or crate[0] in SYSTEM_LIBRARIES or crate[0] in NO_C_CODE:
                continue
            library = C_LIBRARIES.get(crate[0]) or sys.exit(f"{crate[0]} builds or links C code: add it to the tables of {__file__}")
            text = (self.folder(crate) / library.file).read_text()
            version = re.search(library.pattern, text) or sys.exit(f"{crate[0]}: {library.file} has no version")
            found.append((crate, library, ".".join(part.lstrip("0") or "0" for part in version.groups())))
        return found


def loaded(program):
    """The libraries that the loader finds for a program, and the version of symbols that it needs of each."""
    names = []
    for line in run("ldd", program).splitlines():
        name = line.split()[0].rsplit("/", 1)[-1]
        if not name.startswith("linux-vdso"):
            names.append(name)
    needs, library = {}, None
    for line in run("objdump", "-p", program).splitlines():
        if line.strip().startswith("required from "):
            library = line.split()[2].rstrip(":")
        elif library and re.fullmatch(r"\s+0x[0-9a-f]+ 0x[0-9a-f]+ [0-9]+ \S+", line):
            needs.setdefault(library, []).append(line.split()[3])
        else:
            library = None
    parts = lambda version: [int(part) for part in re.findall("[0-9]+", version)]
    return {name: max(needs.get(name, []), key=parts, default=None) for name in sorted(names)}


def purl(crate):
    return f"pkg:cargo/{crate[0]}@{urllib.parse.quote(crate[1], safe='')}"


def facts(**values):
    return [{"name": f"portvakt:{name}", "value": value} for name, value in values.items() if value]


def component(crates, crate):
    made = {"type": "library", "bom-ref": purl(crate), "name": crate[0], "version": crate[1], "purl": purl(crate)}
    made["scope"] = "required" if crate in crates.linked else "excluded"
    made["licenses"] = [{"expression": crates.licence(crate)}]
    if crates.checksums[crate]:
        made["hashes"] = [{"alg": "SHA-256", "content": crates.checksums[crate]}]
    made["properties"] = facts(source="cargo")
    return made


def sbom(crates, program):
    libraries = loaded(program)
    root, *others = crates.all
    for name, soname in SYSTEM_LIBRARIES.items():
        is_linked = any(crate[0] == name for crate in crates.linked)
        if is_linked and not any(each.startswith(soname) for each in libraries):
            sys.exit(f"{name} is linked, and the loader finds no {soname}: the tables of {__file__} are wrong")
    components = [component(crates, crate) for crate in sorted(others)]
    uses = {purl(crate): {purl(each) for each in used} for crate, used in crates.all.items()}
    for crate, library, version in crates.c_libraries():
        if any(each.startswith(library.soname + ".so") for each in libraries):
            sys.exit(f"{crate[0]}: the loader finds {library.soname}, so its C code is not in the program")
        reference = f"c:{library.name}"
        components.append({
            "type": "library", "bom-ref": reference, "name": library.name, "version": version, "purl": library.purl.format(version),
            "scope": "required", "licenses": [{"expression": library.licence}], "properties": facts(source="c"),
        })
        uses[purl(crate)].add(reference)
    for name, needs in libraries.items():
        # From the version of symbols that it needs, as long as the name of the library stays.
        components.append({"type": "library", "bom-ref": f"loader:{name}", "name": name, "scope": "required",
                           "properties": facts(source="loader", needs=needs)})
        uses[purl(root)].add(f"loader:{name}")
    toolchain = run("rustc", "-vV")
    release = re.search(r"(?m)^release: (.*)$", toolchain)[1]
    components.append({"type": "library", "bom-ref": "rust:std", "name": "Rust standard library", "version": release, "scope": "required",
                       "licenses": [{"expression": "MIT OR Apache-2.0"}], "properties": facts(source="rustc")})
    uses[purl(root)].add("rust:std")
    content = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()
    commit = run("git", "rev-parse", "HEAD").strip()
    about = {"type": "application", "bom-ref": purl(root), "name": pathlib.Path(program).name, "version": root[1],
             "licenses": [{"expression": "Apache-2.0"}], "hashes": [{"alg": "SHA-256", "content": content}]}
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, commit + content)}",
        "metadata": {"component": about, "properties": facts(commit=commit, toolchain=toolchain, target=TARGET)},
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": sorted(used)} for name, used in sorted(uses.items())],
    }


def licences(crates):
    """A list of crates and C libraries with their licences, and below it each text once, with those that have it."""
    lines, texts = [], {}

    def add(name, licence, files):
        lines.append(f"{name}: {licence}" + ("" if files else " (the source has no file with the text)"))
        for file in sorted(files):
            text = file.read_text(errors="replace").strip()
            texts.setdefault(" ".join(text.split()), (text, []))[1].append(name)

    for crate in sorted(crates.linked):
        if crates.packages[crate]["source"]:
            files = [file for file in crates.folder(crate).iterdir() if file.is_file() and LICENCE_FILE.match(file.name)]
            holders = ", ".join(each.split(" <")[0] for each in crates.packages[crate]["authors"])
            add(" ".join(crate), crates.licence(crate) + ("" if files or not holders else f"; by {holders}"), files)
    for crate, library, version in crates.c_libraries():
        licence = "public domain" if library.licence == "blessing" else library.licence
        add(f"{library.name} {version}", licence, [crates.folder(crate) / file for file in library.texts])
    blocks = [f"{'=' * 80}\n{', '.join(sorted(set(names)))}\n{'=' * 80}\n\n{text}" for text, names in texts.values()]
    head = "Portvakt contains these libraries. Their licences permit that, and demand that these texts go with it."
    return "\n\n".join([head, "\n".join(lines), *blocks]) + "\n"


def audit_data(crates):
    order = sorted(crates.linked)
    packages = []
    for crate in order:
        package = {"name": crate[0], "version": crate[1], "source": "crates.io" if crates.packages[crate]["source"] else "local"}
        used = sorted(order.index(each) for each in crates.linked[crate])
        packages.append(package | ({"dependencies": used} if used else {}))
    packages[order.index(next(iter(crates.linked)))]["root"] = True
    return zlib.compress(json.dumps({"packages": packages}, separators=(",", ":")).encode(), 9)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=["sbom", "licences", "audit-data"])
    parser.add_argument("--package", action="append")
    parser.add_argument("--features", default="")
    parser.add_argument("--program")
    options = parser.parse_args()
    crates = Crates(options.package or ["portvakt"], options.features)
    if options.what == "audit-data":
        sys.stdout.buffer.write(audit_data(crates))
    elif options.what == "licences":
        sys.stdout.write(licences(crates))
    else:
        json.dump(sbom(crates, options.program or parser.error("sbom needs --program")), sys.stdout, indent=1)
        print()


main()
