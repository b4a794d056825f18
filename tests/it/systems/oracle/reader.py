"""Reads what the gateway admits, as Python does, and as servers do that are built otherwise.

A line is "kind TAB base64"; the answer is a line of JSON, [[reader, {name: [texts]} or {"fault": [text]}], ...].
Arguments: the paths of a body that are compared, and the names of a query, each separated by commas.
"""

import base64
import email
import email.policy
import json
import posixpath
import re
import sys
import unicodedata
import urllib.parse as url

PATHS, NAMES = sys.argv[1].split(","), sys.argv[2].split(",")


def fold(text):
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def pick(value, key=lambda name: name):
    found = {}
    for path in PATHS:
        at = value
        for name in path.split("."):
            at = at.get(key(name)) if isinstance(at, dict) else None
        if isinstance(at, str):
            found[path] = [at]
        elif path == "paymentIds" and isinstance(at, list):
            found[path] = [one for one in at if isinstance(one, str)]
    return found


def first(pairs):
    return dict(reversed(pairs))


def folded(pairs):
    return {fold(name): value for name, value in pairs}


def cut(pairs):
    return {name.split("\0")[0]: value for name, value in pairs}


def body(raw):
    text = raw.decode("utf-8")
    yield "json", lambda: pick(json.loads(raw))
    yield "the first wins", lambda: pick(json.loads(text, object_pairs_hook=first))
    yield "folded", lambda: pick(json.loads(text, object_pairs_hook=folded), fold)
    yield "until NUL", lambda: pick(json.loads(text, object_pairs_hook=cut))


def plain(name):
    return name


def php(name):
    name = name.split("\0")[0].lstrip(" ")
    return name.split("[")[0].replace(".", "_").replace(" ", "_") if name[:1] != "[" else name


def relaxed(name):
    return re.sub(r"[-._\s]", "", fold(name))


def member(name):
    return [part for part in re.split(r"[.\[\]]", name) if part][-1:] or [""]


def parameters(pairs, read=plain, last=False, names=lambda name: name):
    found = {}
    for name, value in pairs:
        for known in NAMES:
            if read(name) == names(known) and (last or known not in found):
                found[known] = [value]
    return found


def parts(text, at, decode=True):
    pieces = [piece.partition("=")[::2] for piece in re.split(at, text) if piece]
    read = url.unquote_plus if decode else plain
    return [(read(name), read(value)) for name, value in pieces]


def query(raw):
    text = raw.decode("ascii")
    pairs = url.parse_qsl(text, keep_blank_values=True)
    once = url.unquote_plus(text)
    yield "the first wins", lambda: parameters(pairs)
    yield "the last wins", lambda: parameters(pairs, last=True)
    for reader, others in [
        ("split at ;", parts(text, "[&;]")),
        ("split at ?", parts(text, "[&?]")),
        ("decoded first", parts(once, "[&;]", decode=False)),
        ("decoded twice", parts(once, "[&;]")),
        ("cut at NUL", [(name.split("\0")[0], value) for name, value in pairs]),
        ("trimmed", [(name.strip(), value.strip()) for name, value in pairs]),
        ("PHP", [(php(name), value) for name, value in pairs]),
        ("by member", [(member(name)[0], value) for name, value in pairs]),
        ("Spring's default", [(name.lstrip("!_"), value) for name, value in pairs]),
    ]:
        for last in (False, True):
            yield reader, lambda others=others, last=last: parameters(others, last=last)
    for reader, read in [("without case", fold), ("relaxed", relaxed)]:
        for last in (False, True):
            yield reader, lambda read=read, last=last: parameters(pairs, read, last, read)


def segments(path, read=url.unquote):
    return {"segments": [read(segment) for segment in path.split("/")[1:]]}


def path(raw):
    text = raw.decode("ascii")
    split = url.urlsplit(text).path
    once = url.unquote(split)
    yield "urllib", lambda: segments(split)
    yield "decoded first", lambda: segments(once, plain)
    yield "decoded twice", lambda: segments(split, lambda one: url.unquote(url.unquote(one)))
    yield "a space for +", lambda: segments(split.replace("+", "%2B"), url.unquote_plus)
    yield "normalised", lambda: segments(posixpath.normpath(once), plain)
    yield "Windows", lambda: segments(once.replace("\\", "/"), plain)
    yield "without parameters", lambda: segments(split, lambda one: url.unquote(one).split(";")[0])
    yield "trimmed", lambda: segments(split, lambda one: url.unquote(one).strip().strip("\ufeff"))
    yield "NFKC", lambda: segments(split, lambda one: unicodedata.normalize("NFKC", url.unquote(one)))
    yield "until NUL", lambda: segments(once.split("\0")[0], plain)


def host(raw):
    split = url.urlsplit(raw.decode("ascii"))
    port = [] if split.port is None else [str(split.port)]
    yield "urllib", lambda: {"host": [split.hostname or ""], "port": port}


def kind_of(media, charset):
    spelt = {"utf8": "utf-8"}
    found = {"media": [media.lower()]}
    if charset is not None:
        found["charset"] = [spelt.get(charset.lower(), charset.lower())]
    return found


def of_message(raw, policy):
    head = email.message_from_bytes(b"Content-Type: " + raw + b"\n\n", policy=policy)
    return kind_of(head.get_content_type(), head.get_content_charset())


def obeyed(raw, pattern):
    text = raw.decode("latin-1")
    found = re.search(pattern, text, re.IGNORECASE)
    return kind_of(re.split("[;,]", text)[0].strip(), found and found.group(1))


def content_type(raw):
    yield "email", lambda: of_message(raw, email.policy.HTTP)
    yield "email of old", lambda: of_message(raw, email.policy.compat32)
    yield "requests", lambda: obeyed(raw, r"charset\*?[0-9]*\*?\s*=\s*[\"']*([^\s\"';,]*)")
    yield "the last one", lambda: obeyed(raw, r".*charset=[\"']*([^\s\"';,]*)")


KINDS = {"body": body, "query": query, "path": path, "host": host, "content-type": content_type}


def answer(read):
    try:
        return read()
    except Exception as fault:  # What it refuses it cannot misread.
        return {"fault": [repr(fault)]}


for line in sys.stdin:
    kind, _, raw = line.rstrip("\n").partition("\t")
    try:
        readers = [["Python, " + name, answer(read)] for name, read in KINDS[kind](base64.b64decode(raw))]
    except Exception as fault:
        readers = [["Python", {"fault": [repr(fault)]}]]
    sys.stdout.write(json.dumps(readers) + "\n")
