"""A page on which a customer of the bank sees which TPPs have access, and withdraws it (docs/permissions.md).

    python3 examples/permissions/page.py control.sock 127.0.0.1:8082

The first argument is the Unix socket of the gateway's control listener (`control: {socket: control.sock}`). A login in front of this page
authenticates the customer and sets the header X-Customer: nobody may reach the page past the login. A real page takes the accounts from
the bank's own records, and has a form for each agreement of a company.
"""

import html
import http.client
import http.server
import json
import socket
import sys
import urllib.parse

ACCOUNTS = {"a-1": "Everyday account", "a-2": "Savings account"}


class Control(http.client.HTTPConnection):
    """A connection to the control listener's socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def call(path, body):
    """Makes a call; returns its status and its answer."""
    control = Control(sys.argv[1])
    try:
        control.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = control.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        control.close()


def grouped(accesses):
    """One entry for each TPP. A TPP that changed its identity may have a PSU-ID under each, and both have its new identity here: a form of
    one of them would narrow the other too."""
    tpps = {}
    for access in accesses:
        tpp = tpps.setdefault(access["tpp"], {**access, "contexts": []})
        tpp["tpp_name"] = tpp["tpp_name"] or access["tpp_name"]
        tpp["contexts"] += access["contexts"]
    return tpps.values()


def shown(access):
    """One TPP: its name, its consents, and the forms to withdraw or to narrow them."""
    text = html.escape
    tpp = text(access["tpp"])
    lines = [f"<h2>{text(access['tpp_name'] or access['tpp'])}</h2>"]
    named = set()
    for context in access["contexts"]:
        consent, used = context["consent"], context["last_used"] or "not known"
        if consent is None:
            lines.append(f"<p>{context['context']}: no consent. Last used: {used}</p>")
            continue
        ends = consent["ends"] or "not known"
        names = [one["account"] for one in consent["named"] if one["included"]]
        named.update(names)
        accounts = ", ".join(text(ACCOUNTS[name]) for name in names) or "none of yours here"
        if consent["accounts"] == "all":
            accounts = "all accounts"
        since = f"since {consent['given']}, until {ends}. Last used: {used}"
        lines.append(f"<p>{context['context']}: {accounts}, {since}</p>")
    hidden = f'<input type=hidden name=tpp value="{tpp}">'
    box = '<label><input type=checkbox name=left value="{}" checked>{}</label>'
    boxes = "".join(box.format(text(one), text(ACCOUNTS[one])) for one in sorted(named))
    if boxes:
        lines.append(f"<form method=post>{hidden}{boxes}<button name=do value=narrow>Keep these accounts only</button></form>")
    lines.append(f"<form method=post>{hidden}<button name=do value=withdraw>Withdraw</button></form>")
    return "\n".join(lines)


class Page(http.server.BaseHTTPRequestHandler):
    """The page of the customer that the login names."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        status, answer = call("/psu/list", {"customer": self.headers["X-Customer"], "accounts": sorted(ACCOUNTS)})
        if status == 404:
            return self.answer(200, "<h1>No TPP has access</h1>")
        if status != 200:
            return self.answer(503, "<h1>Try again later</h1>")
        more = "<p>There are more.</p>" if answer["more"] else ""
        return self.answer(200, "<h1>Who has access</h1>" + "\n".join(map(shown, grouped(answer["accesses"]))) + more)

    def do_POST(self):
        # A page of another origin must not withdraw by the customer's login.
        if self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return self.answer(403, "<h1>Not from this page</h1>")
        length = min(int(self.headers.get("Content-Length", 0)), 65536)
        form = urllib.parse.parse_qs(self.rfile.read(length).decode())
        body = {"customer": self.headers["X-Customer"], "tpp": form["tpp"][0]}
        # Without a ticked account nothing remains: then everything is withdrawn.
        if form["do"] == ["narrow"] and "left" in form:
            body["accounts_left"] = form["left"]
        status, _ = call("/psu/withdraw", body)
        if status != 200:
            return self.answer(503, "<h1>Try again later</h1>")
        return self.answer(303, "", [("Location", "/")])

    def answer(self, status, text, headers=()):
        body = f"<!doctype html><meta charset=utf-8><title>Access</title>{text}".encode()
        self.send_response(status)
        own = [("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"), ("Content-Length", str(len(body)))]
        for name, value in [*own, *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    host, port = sys.argv[2].rsplit(":", 1)
    http.server.ThreadingHTTPServer((host, int(port)), Page).serve_forever()
