//! The reasons that the caller's proof of identity gives: the signature, the certificate, the registers.

use super::entry::Guide;
use crate::Reason;

pub(super) const fn signing(reason: Reason) -> Guide {
    match reason {
        Reason::SignatureMissing => Guide {
            rules: "SIG-1",
            when: "The request has no Signature header.",
            remedy: "Sign every request, reads too, with the key of the certificate in TPP-Signature-Certificate.",
            example: "A GET without Signature",
        },
        Reason::SignatureMalformed => Guide {
            rules: "SIG-2, SIG-6, SIG-10",
            when: "The Signature header is not the four parts keyId, algorithm, headers and signature, or its list of headers is none. Where it is RFC 2047 encoded words, they cannot be decoded.",
            remedy: "Write keyId=\"SN=...,CA=...\",algorithm=\"rsa-sha256\",headers=\"...\",signature=\"...\", each part once and in quotation marks, and list only headers that the request has.",
            example: "algorithm=rsa-sha256 without quotation marks",
        },
        Reason::SignatureKeyMismatch => Guide {
            rules: "SIG-3, SIG-4",
            when: "keyId names another certificate than the one in TPP-Signature-Certificate: by its serial number or by its issuer.",
            remedy: "Take both from the certificate that is sent: the serial number in hexadecimal, the issuer as RFC 2253 writes it. Any spelling of the name passes; the order of its parts counts. Where they are those of the certificate that you sign with, send that certificate.",
            example: "SN=<the serial number in decimal>, or CA=<the subject>",
        },
        Reason::SignatureAlgorithmUnsupported => Guide {
            rules: "SIG-5",
            when: "The algorithm is not rsa-sha256.",
            remedy: "Sign with RSA PKCS#1 v1.5 and SHA-256, and say so: algorithm=\"rsa-sha256\".",
            example: "algorithm=\"hs2019\"",
        },
        Reason::SignatureCoverage => Guide {
            rules: "SIG-7, SIG-14",
            when: "A header that must be signed is in the request and not in the list of signed headers.",
            remedy: "List and sign the headers that the fault names.",
            example: "A request with PSU-ID, and headers=\"date x-request-id\"",
        },
        _ => Guide {
            rules: "SIG-9",
            when: "The value of signature is not canonical base64 or has the length of no key, or the signature does not verify over the signing string that the gateway builds from the request. The fault says which.",
            remedy: "Where it does not verify, compare your signing string with the gateway's, which the sandbox sends as signingString: one `name: value` per line in the order of the list, names in lower case, single newlines, none at the end. Then look for what changed the request after it was signed. Where the two strings are the same, the key is that of another certificate: the fault names the one that was sent.",
            example: "A Date that the HTTP client wrote anew after signing",
        },
    }
}

pub(super) const fn certificate(reason: Reason) -> Guide {
    match reason {
        Reason::CertificateMalformed => Guide {
            rules: "CRT-1, CRT-10",
            when: "TPP-Signature-Certificate is not a certificate in one of the accepted spellings, or a PEM text holds more than 8, or more than 1 KiB of text stands around one in it.",
            remedy: "Send the base64 of the DER certificate on one line, and nothing else. A private key that was sent is compromised: have its certificate revoked, and make a new key.",
            example: "The base64 of a key",
        },
        Reason::CertificateExpired => Guide {
            rules: "CRT-2",
            when: "The certificate, or one above it, has expired.",
            remedy: "Renew it, and sign with the new key.",
            example: "A certificate that ended yesterday",
        },
        Reason::CertificateNotYetValid => Guide {
            rules: "CRT-2",
            when: "The certificate, or one above it, is not valid yet.",
            remedy: "Wait for the moment that the fault names, or use the earlier certificate until then.",
            example: "A certificate that begins tomorrow",
        },
        Reason::CertificateWeak => Guide {
            rules: "SIG-5",
            when: "The certificate's key is not RSA with 2048 to 4096 bits and an odd exponent of 65537 to 2^32.",
            remedy: "Order a certificate for an RSA key of 2048 bits or more.",
            example: "An EC key, or RSA with 1024 bits",
        },
        Reason::CertificateWrongType => Guide {
            rules: "CRT-3",
            when: "The certificate is no qualified certificate for electronic seals or website authentication, or of a type that this gateway does not take; or the EU's trusted lists grant its issuer no service for that type, or say that it is not qualified; or its key may not sign.",
            remedy: "Use the QSealC, not a certificate for electronic signatures or an ordinary TLS certificate. If it is one, ask your trust service provider what its trusted list says of it.",
            example: "QcType esign",
        },
        Reason::CertificateNotPsd2 => Guide {
            rules: "CRT-4",
            when: "The certificate has no PSD2 statement with roles and an authority <country>-<NCA>, or its organizationIdentifier is not PSD<country>-<NCA>-<id>.",
            remedy: "Order the certificate as one for PSD2 (ETSI TS 119 495).",
            example: "organizationIdentifier NTRNO-123456789",
        },
        Reason::CertificateRevoked => Guide {
            rules: "CRT-6",
            when: "The issuer revoked the certificate, or that of a CA above it: its OCSP responder or its CRL says so.",
            remedy: "Get a new certificate, with a new key.",
            example: "a certificate whose key was reported lost",
        },
        _ => Guide {
            rules: "CRT-2, CRT-9, CRT-10",
            when: "The certificate does not chain to a trust anchor of this environment, or something in the chain forbids it: a CA flag, a weak hash, a constraint. Test certificates never pass in production.",
            remedy: "Use a certificate of a qualified trust service provider, of this environment. If its CA is new, tell the bank: its operator sees the reason in the log.",
            example: "A self-signed certificate",
        },
    }
}

pub(super) const fn registration(reason: Reason) -> Guide {
    match reason {
        Reason::CertificateIdentityMismatch => Guide {
            rules: "TLS-3",
            when: "A certificate was shown when the TLS connection was made, and its organizationIdentifier is not that of TPP-Signature-Certificate.",
            remedy: "Connect with the QWAC of the TPP that signs, or, where the bank does not require one, without a certificate.",
            example: "The QWAC of PSDNO-FSA-111111, and the QSealC of PSDNO-FSA-222222",
        },
        Reason::RoleMissing => Guide {
            rules: "CRT-5",
            when: "The certificate lacks the role that the operation needs: PSP_AI for account information, PSP_PI for payments, baskets and the registration of a PSU.",
            remedy: "Use a certificate with that role.",
            example: "GET /v1/accounts with PSP_PI only",
        },
        Reason::TppNotRegistered => Guide {
            rules: "CRT-7",
            when: "The registers that the bank uses (the EBA's, others such as a national one, and a list of its own) do not have the TPP of the certificate in this role for the bank's country; or its authorisation was withdrawn.",
            remedy: "Compare the organizationIdentifier of your certificate with your entries in the registers, that of the EBA and that of your competent authority: authority, national id, services by country. Where an entry is missing or wrong, ask your competent authority; banks, which are not in the EBA's register, ask this bank.",
            example: "An account information service that is registered for its home country only",
        },
        _ => Guide {
            rules: "CRT-7",
            when: "The bank has put the TPP on its list of those that it does not serve, also while the body of this request was under way.",
            remedy: "Ask the bank why. Links that were given before are void.",
            example: "A TPP whose key was reported lost, until it has a new certificate",
        },
    }
}
