"""Signs what schemathesis sends, as a TPP does (a module of hooks: SCHEMATHESIS_HOOKS).

Certificate and key are named by PORTVAKT_CERTIFICATE and PORTVAKT_KEY (PEM). PORTVAKT_KNOWN is a JSON object of what exists: "psu", a
PSU-ID that the gateway knows; and where a bank stands behind the gateway, "session", a TPP-Session-ID, "paths", pairs of a pattern and a
path, and "members", values of a body's members. Three of four requests get these.
Whatever schemathesis leaves out of the parameters stays out. What it cannot know is put in the place of what it made up, where that has the
right form: who the PSU is, an id that was not used before, the time, digests, the check digits of IBANs.
"""

import base64
import hashlib
import itertools
import json
import os
import re
import uuid
import zlib
from email.utils import formatdate

import requests
import schemathesis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding

SIGNED = ["date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri"]
UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
ID = re.compile(r"[!-~]{1,128}")
IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{8,30}")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def read(name):
    with open(os.environ[name], "rb") as file:
        return file.read()


certificate = x509.load_pem_x509_certificate(read("PORTVAKT_CERTIFICATE"))
key = serialization.load_pem_private_key(read("PORTVAKT_KEY"), None)
key_id = f"SN={certificate.serial_number:X},CA={certificate.issuer.rfc4514_string()}"
turns = itertools.count()
known = json.loads(os.environ["PORTVAKT_KNOWN"])
shown = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()


def raw(value):
    """A header's value as it goes over the wire."""
    return value if isinstance(value, bytes) else value.encode("latin-1", "replace")


def with_checks(body):
    """A payment whose IBANs have the right check digits, and whose day has not passed."""
    try:
        payment = json.loads(body)
    except ValueError:
        return body
    if not isinstance(payment, dict):
        return body
    changed = False
    for name in ["creditorAccount", "debtorAccount"]:
        account = payment.get(name)
        iban = account.get("iban") if isinstance(account, dict) else None
        if isinstance(iban, str) and IBAN.fullmatch(iban):
            digits = "".join(str(int(letter, 36)) for letter in iban[4:] + iban[:2] + "00")
            account["iban"] = f"{iban[:2]}{98 - int(digits) % 97:02}{iban[4:]}"
            changed = True
    day = payment.get("requestedExecutionDate")
    if isinstance(day, str) and DAY.fullmatch(day) and day[5:7] in ("01", "12"):
        payment["requestedExecutionDate"] = "2099" + day[4:]
        changed = True
    return json.dumps(payment).encode() if changed else body


def with_known_path(url):
    """A URL whose ids exist."""
    scheme, separator, rest = url.partition("://")
    authority, _, target = rest.partition("/")
    path, mark, query = target.partition("?")
    for pattern, exists in known.get("paths", []):
        if re.fullmatch(pattern, "/" + path):
            path = exists[1:]
            break
    return f"{scheme}{separator}{authority}/{path}{mark}{query}"


def with_known_members(body):
    """A body whose accounts and other values exist."""
    try:
        value = json.loads(body)
    except ValueError:
        return body
    if not isinstance(value, dict):
        return body
    found = {name: member for name, member in known.get("members", {}).items() if name in value}
    return json.dumps(value | found).encode() if found else body


class Signed(requests.auth.AuthBase):
    def __call__(self, request):
        headers = request.headers
        body = request.body or b""
        if isinstance(body, str):
            body = body.encode()
        exists = next(turns) % 4 > 0
        if exists:
            request.url = with_known_path(request.url)
        if body:
            body = with_checks(with_known_members(body) if exists else body)
            request.prepare_body(body, None)
            headers["Digest"] = "SHA-256=" + base64.b64encode(hashlib.sha256(body).digest()).decode()
        headers["Date"] = formatdate(usegmt=True)
        headers["TPP-Signature-Certificate"] = shown
        replace(headers, "X-Request-ID", lambda value: str(uuid.uuid4()) if ID.fullmatch(value) else value)
        replace(headers, "PSU-ID", lambda value: known["psu"] if UUID.fullmatch(value) else value)
        replace(headers, "TPP-Session-ID", lambda value: known.get("session", value))
        replace(headers, "PSU-IP-Address", address)
        replace(headers, "TPP-Redirect-URI", redirect)
        names = [name for name in SIGNED if name in headers]
        lines = [f"(request-target): {request.method.lower()} {request.path_url}".encode()]
        lines += [name.encode() + b": " + raw(headers[name]).strip(b" \t") for name in names]
        signature = base64.b64encode(key.sign(b"\n".join(lines), padding.PKCS1v15(), hashes.SHA256())).decode()
        listed = " ".join(["(request-target)", *names])
        signature = f'keyId="{key_id}",algorithm="rsa-sha256",headers="{listed}",signature="{signature}"'
        headers["Signature"] = signature
        return request


def address(value):
    """Every other one: those that are made up from a pattern hardly ever are one."""
    return "192.0.2.7" if zlib.crc32(value.encode()) % 2 else value


def redirect(value):
    """Every other one that begins like a URI: those that are made up from a pattern hardly ever are one."""
    made_up = value.lower().startswith("http") and zlib.crc32(value.encode()) % 2
    return "https://tpp.example/back" if made_up else value


def replace(headers, name, value):
    if name in headers:
        found = headers[name]
        found = found.decode("latin-1") if isinstance(found, bytes) else found
        headers[name] = value(found)


schemathesis.auth.set_from_requests(Signed())
