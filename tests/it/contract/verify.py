import base64, hashlib, jwt  # PyJWT and cryptography

def verify(assertion, keys, method, target, body):
    """The claims of a Gateway-Assertion, where the gateway made it for this very request."""
    kid = jwt.get_unverified_header(assertion)["kid"]
    key = jwt.PyJWKSet.from_dict(keys)[kid]
    claims = jwt.decode(assertion, key, algorithms=["ES256"], issuer="portvakt", audience="core")
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
    if (claims["method"], claims["target"], claims["body_sha256"]) != (method, target, digest):
        raise ValueError("the assertion was made for another request")
    return claims
