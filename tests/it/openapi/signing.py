"""Signs what schemathesis sends, as a TPP does (a module of hooks: SCHEMATHESIS_HOOKS).

Certificate and key are named by PORTVAKT_CERTIFICATE and PORTVAKT_KEY (PEM), a PSU that the gateway knows by PORTVAKT_PSU.
Whatever schemathesis leaves out stays out. What it cannot know is put in the place of what it made up, where that has the
right form: who the PSU is, an id that was not used before, the time, digests, the check digits of IBANs.
"""

import base64
import hashlib
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


class Signed(requests.auth.AuthBase):
    def __call__(self, request):
        headers = request.headers
        body = request.body or b""
        if isinstance(body, str):
            body = body.encode()
        if body:
            body = with_checks(body)
            request.prepare_body(body, None)
        replace(headers, "Digest", lambda _: "SHA-256=" + base64.b64encode(hashlib.sha256(body).digest()).decode())
        replace(headers, "Date", lambda _: formatdate(usegmt=True))
        replace(headers, "TPP-Signature-Certificate", lambda _: shown)
        replace(headers, "X-Request-ID", lambda value: str(uuid.uuid4()) if ID.fullmatch(value) else value)
        replace(headers, "PSU-ID", lambda value: os.environ["PORTVAKT_PSU"] if UUID.fullmatch(value) else value)
        replace(headers, "TPP-Redirect-URI", redirect)
        names = [name for name in SIGNED if name in headers]
        lines = [f"(request-target): {request.method.lower()} {request.path_url}".encode()]
        lines += [name.encode() + b": " + raw(headers[name]).strip(b" \t") for name in names]
        signature = base64.b64encode(key.sign(b"\n".join(lines), padding.PKCS1v15(), hashes.SHA256())).decode()
        listed = " ".join(["(request-target)", *names])
        signature = f'keyId="{key_id}",algorithm="rsa-sha256",headers="{listed}",signature="{signature}"'
        replace(headers, "Signature", lambda _: signature)
        return request


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
