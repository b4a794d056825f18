//! What each reason means and what to do about it: the text behind `portvakt explain REASON` and docs/refusals.md.
//!
//! It says more than an answer can and knows nothing of any request. A reason that stands in no group of it does not compile.

use super::Reason;
use std::fmt::Write;

/// The guide to one reason.
#[derive(Clone, Copy, Debug)]
pub struct Guide {
    /// The rules that it stands for.
    pub rules: &'static str,
    /// When it is given.
    pub when: &'static str,
    /// What the one who reads it does.
    pub remedy: &'static str,
    /// A request that gets it.
    pub example: &'static str,
}

impl Reason {
    /// The reason with this slug.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.slug() == slug)
    }

    /// What it means and what to do.
    pub const fn guide(self) -> Guide {
        match self {
            Self::OperationUnknown
            | Self::MethodNotAllowed
            | Self::ProductUnknown
            | Self::MediaTypeUnsupported
            | Self::NotAcceptable
            | Self::BodyTooLarge
            | Self::MalformedRequest
            | Self::BodyUnexpected
            | Self::RequestTimeout
            | Self::HeadersTooLarge => transport(self),
            Self::HeaderMissing
            | Self::HeaderMalformed
            | Self::CorporateIdMissing
            | Self::HeaderDuplicated
            | Self::DateSkewed
            | Self::DigestMismatch
            | Self::DigestUnsupported => headers(self),
            Self::SignatureMissing
            | Self::SignatureMalformed
            | Self::SignatureKeyMismatch
            | Self::SignatureAlgorithmUnsupported
            | Self::SignatureCoverage
            | Self::SignatureMismatch => signing(self),
            Self::CertificateMalformed
            | Self::CertificateUntrusted
            | Self::CertificateExpired
            | Self::CertificateNotYetValid
            | Self::CertificateWeak
            | Self::CertificateWrongType
            | Self::CertificateNotPsd2
            | Self::CertificateIdentityMismatch
            | Self::RoleMissing
            | Self::TppNotRegistered
            | Self::TppBlocked
            | Self::CertificateRevoked => certificate(self),
            Self::ScaRequired
            | Self::AccountUnknown
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::RequestReplayed => state(self),
            Self::HistoryTooOld
            | Self::QueryMalformed
            | Self::PeriodInverted
            | Self::QueryMissing => query(self),
            Self::PayloadMalformed | Self::PayloadInvalid => payload(self),
            Self::UpstreamError
            | Self::UpstreamUnreachable
            | Self::UpstreamTimeout
            | Self::RegisterStale
            | Self::RevocationUnavailable
            | Self::Overloaded
            | Self::StateUnavailable
            | Self::Internal => failure(self),
        }
    }
}

const fn transport(reason: Reason) -> Guide {
    match reason {
        Reason::OperationUnknown => Guide {
            rules: "HTTP-1",
            when: "No operation has this path in this environment. Paths are compared in their letter case, and what stands under /v1/sandbox exists in the sandbox only.",
            remedy: "Compare the path with the interface's list of operations, the version in front included.",
            example: "GET /v1/account instead of GET /v1/accounts",
        },
        Reason::MethodNotAllowed => Guide {
            rules: "HTTP-2",
            when: "The path is known, but not with this method.",
            remedy: "Use one of the methods in the Allow header of the answer.",
            example: "DELETE /v1/accounts, which is answered with Allow: GET",
        },
        Reason::ProductUnknown => Guide {
            rules: "HTTP-3",
            when: "The payment product in the path is none of the interface's.",
            remedy: "Use norwegian-domestic-credit-transfers, norwegian-cross-border-credit-transfers or instant-norwegian-credit-transfers-straks.",
            example: "POST /v1/payments/sepa-credit-transfers",
        },
        Reason::MediaTypeUnsupported => Guide {
            rules: "HTTP-4",
            when: "The body is announced as something other than JSON in UTF-8, or with a content coding.",
            remedy: "Send Content-Type: application/json, and neither another charset nor Content-Encoding.",
            example: "Content-Type: application/xml",
        },
        Reason::NotAcceptable => Guide {
            rules: "HTTP-5",
            when: "The Accept header allows no JSON, and nothing else is ever answered.",
            remedy: "Accept application/json, or leave the header out.",
            example: "Accept: text/html",
        },
        Reason::BodyTooLarge => Guide {
            rules: "HTTP-6",
            when: "The body has more bytes than the limit, which the fault names.",
            remedy: "Send a smaller body. Bodies of this interface stay far below the limit.",
            example: "65537 bytes where 65536 pass",
        },
        Reason::BodyUnexpected => Guide {
            rules: "HTTP-8",
            when: "The operation takes no body, and the request has one other than an empty JSON object.",
            remedy: "Send no body, or Content-Length: 0 where your client insists on a length.",
            example: "A GET with a body",
        },
        Reason::RequestTimeout => Guide {
            rules: "HTTP-9",
            when: "The body did not arrive within the gateway's time limit.",
            remedy: "Send the whole body at once after the head. If it keeps happening, look at the network between.",
            example: "Content-Length: 500, after which 200 bytes follow",
        },
        Reason::HeadersTooLarge => Guide {
            rules: "HTTP-9",
            when: "TPP-Signature-Certificate is longer than 16 KiB.",
            remedy: "Send the base64 of the DER certificate and nothing else: it has under 4 KiB.",
            example: "A PEM text with a whole bundle of CAs",
        },
        _ => Guide {
            rules: "HTTP-7, HTTP-10, FWD-2",
            when: "Two servers could read the request in two ways: its framing, its path, or a Connection header that takes away what must arrive. Where the HTTP layer itself refuses, the answer has no body.",
            remedy: "The fault says what is ambiguous. Mostly a path was put together carelessly: no empty or dot segments, no trailing slash, no percent-encoding of letters, digits and - . _ ~, and ids as the bank gave them out, without white space, percent signs or semicolons",
            example: "GET /v1//accounts, or Content-Length beside Transfer-Encoding",
        },
    }
}

const fn headers(reason: Reason) -> Guide {
    match reason {
        Reason::HeaderMissing => Guide {
            rules: "HDR-1 to HDR-5, HDR-13, DIG-2",
            when: "Headers that the operation requires are missing or empty. All of them are named at once.",
            remedy: "Add each header that the faults name.",
            example: "A payment without PSU-IP-Address",
        },
        Reason::CorporateIdMissing => Guide {
            rules: "HDR-14",
            when: "PSU-Context is CORPORATE and PSU-ID is sent, but PSU-Corporate-ID is not, so that it is open for which corporation the PSU acts.",
            remedy: "Send the psu-corporate-id that came with the redirect after SCA; GET /v1/agreements lists the PSU's agreements.",
            example: "GET /v1/accounts with PSU-ID and PSU-Context: CORPORATE only",
        },
        Reason::HeaderDuplicated => Guide {
            rules: "HDR-15",
            when: "A header stands twice that decides who asks for what.",
            remedy: "Send it once. A proxy of your own may be adding one.",
            example: "Two X-Request-ID headers",
        },
        Reason::DateSkewed => Guide {
            rules: "DAT-2",
            when: "The Date header is more than 60 seconds from the gateway's clock when the head has come, or when the whole body has.",
            remedy: "Compare with the Date of the answer. Synchronise the clock, sign requests when they are sent, not before, and send the body at once.",
            example: "A request that waited 61 seconds in a queue",
        },
        Reason::DigestMismatch => Guide {
            rules: "DIG-1",
            when: "The Digest header is not the digest of the body that was received.",
            remedy: "Digest exactly the bytes that are sent: nothing may format the JSON anew afterwards. The value is base64, not hexadecimal.",
            example: "A body with a newline that the digest does not know of",
        },
        Reason::DigestUnsupported => Guide {
            rules: "DIG-1",
            when: "The Digest header names neither SHA-256 nor SHA-512.",
            remedy: "Send Digest: SHA-256=<base64 of the hash>.",
            example: "Digest: MD5=...",
        },
        _ => Guide {
            rules: "HDR-5, HDR-7 to HDR-12, HDR-14, HDR-16, DAT-1",
            when: "Headers do not have the form that the interface gives them. All of them are named at once.",
            remedy: "Each fault says what would pass.",
            example: "Date: Sunday, 06-Nov-94 08:49:37 GMT",
        },
    }
}

const fn query(reason: Reason) -> Guide {
    match reason {
        Reason::HistoryTooOld => Guide {
            rules: "QUO-8",
            when: "PSU-IP-Address is missing, and the transactions that are asked for begin more than 90 days ago.",
            remedy: "Ask for 90 days or less, or ask while the PSU is present and send PSU-IP-Address.",
            example: "dateFrom=2020-01-01 without PSU-IP-Address",
        },
        Reason::PeriodInverted => Guide {
            rules: "QRY-2",
            when: "The first day of the period is after its last.",
            remedy: "Exchange the two, or leave one out.",
            example: "dateFrom=2026-02-01&dateTo=2026-01-01",
        },
        Reason::QueryMissing => Guide {
            rules: "QRY-4",
            when: "Query parameters that the operation requires are missing. No operation of the interface requires one; those that a bank adds may.",
            remedy: "Add each parameter that the faults name.",
            example: "An operation of the bank's own without its parameter",
        },
        _ => Guide {
            rules: "QRY-1, QRY-3",
            when: "Query parameters do not have the form that the interface gives them, a name stands twice or is nearly one of the interface's, a semicolon stands in the query, or a parameter is not taken without the PSU. All of them are named at once.",
            remedy: "Each fault says what would pass. Names are compared in their letter case; a semicolon in a value is written %3B.",
            example: "dateFrom=01.02.2026, datefrom=2026-02-01, or limit=0",
        },
    }
}

const fn payload(reason: Reason) -> Guide {
    match reason {
        Reason::PayloadMalformed => Guide {
            rules: "PAY-1",
            when: "The body is not one JSON value in UTF-8: its syntax, something behind it, a byte order mark, half a surrogate pair. Or two servers could read it in two ways: an object has two members of one name. Or it is nested more than 32 levels deep.",
            remedy: "The fault gives line and column. Write the body with a JSON library, in UTF-8.",
            example: "{\"amount\": \"1.00\", \"amount\": \"2.00\"}",
        },
        _ => Guide {
            rules: "PAY-2 to PAY-14, PAY-17",
            when: "Members of the body are missing or do not have the values that the interface gives them. All of them are named at once, with their paths. So are members whose names some servers would read as one of the interface's (InstructedAmount), and texts with control characters or bidirectional overrides. A requestedExecutionDate that is wrong or has passed has the code EXECUTION_DATE_INVALID.",
            remedy: "Each fault says what would pass. Leave out what you have no value for: null is no value.",
            example: "{\"amount\": \"100\", \"currency\": \"NOK\"}: NOK has 2 fraction digits, 100.00",
        },
    }
}

const fn signing(reason: Reason) -> Guide {
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
            remedy: "Take both from the certificate that is sent: the serial number in hexadecimal, the issuer as RFC 2253 writes it. Any spelling of the name passes; the order of its parts counts.",
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
            when: "The signature does not verify over the signing string that the gateway builds from the request.",
            remedy: "Compare your signing string with the gateway's, which the sandbox sends as signingString: one `name: value` per line in the order of the list, names in lower case, single newlines, none at the end. Then look for what changed the request after it was signed.",
            example: "A Date that the HTTP client wrote anew after signing",
        },
    }
}

const fn certificate(reason: Reason) -> Guide {
    match reason {
        Reason::CertificateMalformed => Guide {
            rules: "CRT-1, CRT-10",
            when: "TPP-Signature-Certificate is not a certificate in one of the accepted spellings, or a PEM text holds more than 8, or more than 1 KiB of text stands around one in it.",
            remedy: "Send the base64 of the DER certificate on one line, and nothing else.",
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
            when: "The certificate is no qualified certificate for electronic seals or website authentication, or of a type that this gateway does not take, or its key may not sign.",
            remedy: "Use the QSealC, not a certificate for electronic signatures or an ordinary TLS certificate.",
            example: "QcType esign",
        },
        Reason::CertificateNotPsd2 => Guide {
            rules: "CRT-4",
            when: "The certificate has no PSD2 statement with roles and an authority <country>-<NCA>, or its organizationIdentifier is not PSD<country>-<NCA>-<id>.",
            remedy: "Order the certificate as one for PSD2 (ETSI TS 119 495).",
            example: "organizationIdentifier NTRNO-123456789",
        },
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
            when: "The registers that the bank uses, the EBA's and a list of its own, do not have the TPP of the certificate in this role for the bank's country; or its authorisation was withdrawn.",
            remedy: "Compare the organizationIdentifier of your certificate with your entry in the EBA's register: authority, national id, services by country. Where the entry is missing or wrong, ask your competent authority; banks, which are not in that register, ask this bank.",
            example: "An account information service that is registered for its home country only",
        },
        Reason::TppBlocked => Guide {
            rules: "CRT-7",
            when: "The bank has put the TPP on its list of those that it does not serve.",
            remedy: "Ask the bank why.",
            example: "A TPP whose key was reported lost, until it has a new certificate",
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

const fn state(reason: Reason) -> Guide {
    match reason {
        Reason::ScaRequired => Guide {
            rules: "SCA-1 to SCA-9, SCA-16 to SCA-18, QUO-9, QUO-10",
            when: "The PSU has not authenticated for this: there is no PSU-ID, it is not one that this bank gave to this TPP, the consent is missing, withdrawn or too old, or TPP-Session-ID is not the valid session. The fault says which.",
            remedy: "Send the PSU's browser to the address in _links.scaRedirect. Afterwards the PSU comes back to TPP-Redirect-URI with psu-id; send that in PSU-ID, and the same TPP-Session-ID for an hour.",
            example: "GET /v1/accounts without PSU-ID",
        },
        Reason::AccountUnknown => Guide {
            rules: "SCA-18",
            when: "The PSU's consent names accounts, and the one in the path is none of them. Whether the bank has such an account is not said.",
            remedy: "Take account ids from GET /v1/accounts as this PSU has it. Where the PSU wants to share another account, send POST /v1/consents and the PSU to the link in its answer.",
            example: "GET /v1/accounts/{id}/balances of an account that was not chosen when the PSU consented",
        },
        Reason::QuotaExceeded => Guide {
            rules: "QUO-1 to QUO-3",
            when: "Without PSU-IP-Address an account's balances, transaction list and transaction details can each be read four times in any 24 hours, and four calls were made.",
            remedy: "Wait for the seconds in Retry-After. RateLimit tells with every answer how many calls are left. While the PSU is present, send PSU-IP-Address: there is no such limit then.",
            example: "The fifth GET /v1/accounts/{id}/balances of a day without PSU-IP-Address",
        },
        Reason::RateLimited => Guide {
            rules: "QUO-12",
            when: "More requests came from one address, or from one TPP, than the gateway takes in a second.",
            remedy: "Wait for the seconds in Retry-After, and spread requests over time.",
            example: "A thousand requests at once",
        },
        _ => Guide {
            rules: "REP-1",
            when: "A request of this TPP with the same X-Request-ID was forwarded: within the last 24 hours where it changed something, as long as its Date could pass where it did not.",
            remedy: "Give each call an X-Request-ID of its own, a repeated one too. A payment that was repeated may have been taken the first time: read its status.",
            example: "A client library that repeats a request as it was",
        },
    }
}

const fn failure(reason: Reason) -> Guide {
    match reason {
        Reason::UpstreamError => Guide {
            rules: "ERR-6",
            when: "The service behind the gateway answered with an error that was not JSON. The status is the service's.",
            remedy: "Do what the status says. The operator finds the cause in the service.",
            example: "An error page in HTML",
        },
        Reason::UpstreamUnreachable => Guide {
            rules: "ERR-4",
            when: "The service behind the gateway could not be reached, or broke off.",
            remedy: "Try again later with a new X-Request-ID. A payment that was under way may have been taken: read its status before sending it again.",
            example: "The service is restarting",
        },
        Reason::UpstreamTimeout => Guide {
            rules: "ERR-4",
            when: "The service behind the gateway did not answer in time.",
            remedy: "Try again later with a new X-Request-ID. A payment that was under way may have been taken: read its status before sending it again.",
            example: "The service is overloaded",
        },
        Reason::RegisterStale => Guide {
            rules: "CRT-7",
            when: "The gateway's copy of the EBA's register is older than it may be, and is not to be relied on.",
            remedy: "Try again after the seconds in Retry-After. If it stays so, tell the bank: its operators have to put a newer register in place.",
            example: "The daily download of the register has failed for a week",
        },
        Reason::RevocationUnavailable => Guide {
            rules: "CRT-6, CRT-11",
            when: "The OCSP responder or the CRL of the certificate's issuer, or of a CA above it, has not answered yet; or it cannot be had, or does not know the certificate, and the gateway is not to let requests pass without.",
            remedy: "Try again after the seconds in Retry-After. If it stays so, tell the bank: its operators see which address does not answer.",
            example: "The issuer's responder is down",
        },
        Reason::Overloaded => Guide {
            rules: "ERR-4, QUO-12",
            when: "The gateway is busy or about to stop, or more certificates that it does not know came than it takes in a second. One is known once a request that it signed was verified.",
            remedy: "Try again after the seconds in Retry-After.",
            example: "A restart",
        },
        Reason::StateUnavailable => Guide {
            rules: "ERR-4, REP-1",
            when: "The gateway cannot reach the records that it judges by: sessions, consents, calls that were made. Nothing was forwarded.",
            remedy: "Try again after the seconds in Retry-After, with the same X-Request-ID if you like: it was not used.",
            example: "The gateway's disk is full",
        },
        _ => Guide {
            rules: "ERR-4",
            when: "The gateway failed.",
            remedy: "Tell the bank, with the id of the answer and X-Request-ID.",
            example: "A fault in the gateway",
        },
    }
}

/// docs/refusals.md: every reason, in the order of the rules.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Refusals\n\n\
         Every reason that an answer of the gateway can give, in the order of the rules. The reason is the member `reason`\n\
         of the answer and of each of its faults, the field `reason` of the log line and the label of the metric.\n\
         `portvakt explain REASON` prints the same. Made from the table of reasons; `PORTVAKT_BLESS=1 make test` writes it anew.\n",
    );
    for reason in Reason::ALL {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n## {}\n\n{}", reason.slug(), describe(*reason));
    }
    text
}

/// The guide to one reason, in Markdown.
pub fn describe(reason: Reason) -> String {
    let Guide {
        rules,
        when,
        remedy,
        example,
    } = reason.guide();
    let (status, title) = (reason.status(), reason.title());
    let code = reason.code().map_or_else(
        || "with `_links` and no code".to_owned(),
        |code| format!("`{}`", code.as_str()),
    );
    format!(
        "{title}\n\n- **Answer:** {status} {code} ({rules})\n- **When:** {when}\n- **What to do:** {remedy}\n- **Example:** {example}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, fs, path::Path};

    #[test]
    fn docs_refusals_is_what_the_table_says() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/refusals.md");
        if env::var_os("PORTVAKT_BLESS").is_some() {
            fs::write(&path, markdown()).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == markdown(),
            "docs/refusals.md is not what the table says: PORTVAKT_BLESS=1 make test"
        );
    }

    #[test]
    fn a_slug_names_its_reason() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_slug(reason.slug()), Some(*reason));
        }
        assert_eq!(Reason::from_slug("nothing"), None);
    }
}
