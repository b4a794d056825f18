"""Signs as TPPs in Python do: sign.py CERTIFICATE KEY < lines

Each line of standard input is "name: value", in signing order; the first is the request target. "variant<TAB>Signature
value" is written for the library cryptography, and, where it is installed, for httpsig.
"""

import base64
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding

certificate_file, key_file = sys.argv[1:3]
with open(certificate_file, "rb") as file:
    certificate = x509.load_pem_x509_certificate(file.read())
with open(key_file, "rb") as file:
    key_pem = file.read()
lines = [line.split(": ", 1) for line in sys.stdin.read().splitlines()]
names = [name for name, _ in lines]
key_id = f"SN={certificate.serial_number:X},CA={certificate.issuer.rfc4514_string()}"

text = "\n".join(f"{name}: {value}" for name, value in lines).encode()
key = serialization.load_pem_private_key(key_pem, None)
signature = base64.b64encode(key.sign(text, padding.PKCS1v15(), hashes.SHA256())).decode()
print(f'cryptography\tkeyId="{key_id}",algorithm="rsa-sha256",headers="{" ".join(names)}",signature="{signature}"')

try:
    from httpsig import HeaderSigner
except ImportError:
    sys.exit()
method, path = dict(lines)["(request-target)"].split(" ", 1)
signer = HeaderSigner(key_id=key_id, secret=key_pem, algorithm="rsa-sha256", headers=names)
headers = {name: value for name, value in lines if not name.startswith("(")}
signed = signer.sign(headers, method=method, path=path)
print("httpsig\t" + signed["authorization"].removeprefix("Signature "))
