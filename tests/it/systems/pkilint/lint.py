"""Lints certificates by pkilint's ETSI linter, in one process: TYPE FILE [TYPE FILE ...]. Prints a line for each error: FILE, a tab, its code."""

import contextlib
import io
import json
import sys

from pkilint.bin import lint_etsi_cert

for kind, path in zip(sys.argv[1::2], sys.argv[2::2]):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        lint_etsi_cert.main(["lint", "-t", kind, "-s", "ERROR", "-f", "JSON", path])
    for result in json.loads(said.getvalue())["results"]:
        for finding in result["finding_descriptions"]:
            print(path, finding["code"], sep="\t")
