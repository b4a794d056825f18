"""Signs each request of an httpx client: httpx.Client(auth=TppSignature("tpp.pem", "tpp.key"))."""

import base64
import email.utils
import hashlib
import uuid

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

SIGNED = ("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class TppSignature(httpx.Auth):
    requires_request_body = True

    def __init__(self, certificate_file: str, key_file: str):
        certificate = x509.load_pem_x509_certificate(open(certificate_file, "rb").read())
        self.key = serialization.load_pem_private_key(open(key_file, "rb").read(), None)
        self.certificate = b64(certificate.public_bytes(serialization.Encoding.DER))
        self.key_id = f"SN={certificate.serial_number:X},CA={certificate.issuer.rfc4514_string()}"

    def auth_flow(self, request: httpx.Request):
        headers = request.headers
        headers["Date"] = email.utils.formatdate(usegmt=True)
        headers.setdefault("X-Request-ID", str(uuid.uuid4()))
        if request.content:
            headers["Digest"] = "SHA-256=" + b64(hashlib.sha256(request.content).digest())
        lines = {"(request-target)": f"{request.method.lower()} {request.url.raw_path.decode()}"}
        lines |= {name: headers[name] for name in SIGNED if name in headers}
        text = "\n".join(f"{name}: {value}" for name, value in lines.items()).encode()
        signature = b64(self.key.sign(text, PKCS1v15(), hashes.SHA256()))
        value = f'keyId="{self.key_id}",algorithm="rsa-sha256",headers="{" ".join(lines)}",signature="{signature}"'
        headers["Signature"] = value if value.isascii() else f"=?utf-8?B?{b64(value.encode())}?="
        headers["TPP-Signature-Certificate"] = self.certificate
        yield request
