import base64, hashlib, jwt  # PyJWT and cryptography

def sha256(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()

def verify(assertion, keys, method, target, headers, body):
    """The claims of a Gateway-Assertion, where the gateway made it for this very request. Headers by lower-case name, as
    WSGI and http.server give them: decoded as Latin-1, a character for each byte."""
    kid = jwt.get_unverified_header(assertion)["kid"]
    key = jwt.PyJWKSet.from_dict(keys)[kid]
    claims = jwt.decode(assertion, key, algorithms=["ES256"], issuer="portvakt", audience="core")
    names = [name for name in ("signature", "x-psu-identity", "psu-context") if name in headers]
    sent = [(name.encode(), headers[name].encode("latin-1").strip(b" \t")) for name in names]
    found = [claims.get(name) for name in ("method", "target", "body_sha256", "headers_sha256")]
    if found != [method, target, sha256(body), sha256(b"".join(b"%s: %s\n" % line for line in sent))]:
        raise ValueError("the assertion was made for another request")
    return claims
