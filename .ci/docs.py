#!/usr/bin/env python3
"""Builds the site of the documents by mdBook: the pages of docs/SUMMARY.md, with every file that they link. Prints its folder.

Usage: .ci/docs.py [FOLDER]    (target/docs without it)

The pages stay at their places in the repository, so that their links hold on a repository host as well as on the site. A dead link or
anchor of the site is an error; tests/it/pages.rs finds most of them without mdBook.
"""

import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = pathlib.Path("docs/SUMMARY.md")
LINK = re.compile(r"\]\(([^)\s]+)\)")
BOOK = """[book]
title = "Portvakt"
language = "en"
src = "pages"

[output.html]
no-section-label = true

[output.html.playground]
runnable = false

# One page of all pages, whose links would not hold.
[output.html.print]
enable = false
"""


def targets(page):
    """The files of the repository that a page links."""
    for link in LINK.findall((REPOSITORY / page).read_text()):
        file = link.split("#")[0]
        if file and "://" not in link and not link.startswith("mailto:"):
            yield pathlib.Path(os.path.normpath(page.parent / file))


def stage(folder):
    """The pages, the files that they link, and the list of the pages, by their places in the repository."""
    pages = list(targets(SUMMARY))
    for page in pages:
        for file in targets(page):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / file, folder / file)
    for page in pages:
        path = folder / index(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINK.sub(lambda link: f"]({on_site(link[1])})", (REPOSITORY / page).read_text()))

    def from_root(link):
        return f"]({index(os.path.normpath(SUMMARY.parent / link[1]))})"

    (folder / "SUMMARY.md").write_text(LINK.sub(from_root, (REPOSITORY / SUMMARY).read_text()))


def index(path):
    """The page of a folder: mdBook renames a README.md, but not the links to it."""
    return re.sub("README.md$", "index.md", str(path))


def on_site(link):
    """A link of a page: that to the list of pages, which each page of the site has, leads to the first page."""
    file, *anchor = link.split("#")
    return link if "://" in link else "#".join([index(file.replace("docs/SUMMARY.md", "index.md")), *anchor])


class Page(html.parser.HTMLParser):
    """The ids and the links of a page of the site."""

    def __init__(self, file):
        super().__init__()
        self.ids, self.links = set(), set()
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name"):
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def dead(site):
    pages = {file: Page(file) for file in site.rglob("*.html") if file.name not in ("404.html", "toc.html")}
    for file, page in pages.items():
        for link in sorted(page.links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = pathlib.Path(os.path.normpath(file.parent / urllib.parse.unquote(parts.path))) if parts.path else file
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].ids):
                yield f"{file.relative_to(site)}: {link}"


def main():
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target") / "docs"
    site = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else built).resolve()
    mdbook = subprocess.run([REPOSITORY / ".ci/tool.sh", "mdbook"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        book = pathlib.Path(folder)
        (book / "book.toml").write_text(BOOK)
        stage(book / "pages")
        # mdBook reads settings from such variables too.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MDBOOK_")}
        subprocess.run([mdbook, "build", "--dest-dir", site, book], check=True, stdout=sys.stderr, env=environment)
    links = list(dead(site))
    if links:
        sys.exit("dead links of the site:\n" + "\n".join(links))
    print(site)


main()
