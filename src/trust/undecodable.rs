//! The reason why the bytes of TPP-Signature-Certificate are no certificate (CRT-1, ERR-10): one cause, named by what was sent instead.
//!
//! These functions only see a value that was refused. No text shows a part of it but the place and the kind of a character.

use super::{
    CertificateFault,
    der::{Element, tag},
};
use memchr::memmem;
use portvakt_interface::base64_fault::Base64Fault;

/// The beginning of the armour of every PEM text.
const ARMOUR: &[u8] = b"-----BEGIN ";

/// Some form of it, of other dashes.
const NEARLY_ARMOUR: &[u8] = b"BEGIN CERTIFICATE";

/// The beginning of base64 of base64, and of most certificates: a SEQUENCE with a length of two octets.
const BASE64_OF_DER: &[u8] = b"MII";

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const TIMES: [u8; 2] = [0x17, 0x18];
const ATTRIBUTES_OF_A_REQUEST: u8 = 0xa0;

/// The fault of a value that is neither base64 nor PEM with a certificate.
pub(super) fn value(text: &[u8]) -> CertificateFault {
    if let Some(what) = other_armour(text) {
        return malformed(what);
    }
    if let Some(at) = memmem::find(text, b"\\n") {
        return malformed(escaped(at));
    }
    not_base64(text)
}

/// The fault of a PEM text without an END line.
pub(super) fn end(after: &[u8]) -> CertificateFault {
    malformed(match memmem::find(after, b"-----END") {
        Some(_) => "the PEM text ends with another mark than -----END CERTIFICATE-----",
        None => "the PEM text has no -----END CERTIFICATE-----: it is cut off",
    })
}

/// The fault of a PEM text whose content is not base64. `base64` is the content without its white space.
pub(super) fn content(content: &[u8], base64: &[u8]) -> CertificateFault {
    if let Some(at) = memmem::find(content, b"\\n") {
        return malformed(format!("{} of the text between BEGIN and END", escaped(at)));
    }
    match Base64Fault::judge(base64) {
        Err(fault) => malformed(format!(
            "between BEGIN and END of the PEM text, without its white space: {fault}"
        )),
        Ok(()) => malformed("the PEM text does not hold base64"),
    }
}

/// The fault of bytes that are no certificate; `None` if they have no form that is known.
pub(super) fn bytes(der: &[u8]) -> Option<CertificateFault> {
    let what = match der {
        [] => "it holds no bytes",
        _ if der.starts_with(BASE64_OF_DER) => "it is base64 of base64: encode the DER once",
        _ => other_armour(der).or_else(|| kind(der))?,
    };
    Some(malformed(what))
}

fn malformed(what: impl Into<std::borrow::Cow<'static, str>>) -> CertificateFault {
    CertificateFault::Malformed(what.into())
}

fn escaped(at: usize) -> String {
    format!(
        "it has \\n, a backslash and a letter, for its line ends: send a blank for each, or nothing; the first stands at byte {at}"
    )
}

fn not_base64(text: &[u8]) -> CertificateFault {
    match Base64Fault::judge(text) {
        Err(fault) => malformed(fault.to_string()),
        Ok(()) => malformed("it is not base64"),
    }
}

/// What a PEM text holds instead of a certificate.
fn other_armour(text: &[u8]) -> Option<&'static str> {
    let Some(at) = memmem::find(text, ARMOUR) else {
        return memmem::find(text, NEARLY_ARMOUR).map(|_| {
            "it looks like PEM, but a certificate begins with -----BEGIN CERTIFICATE-----, with five hyphens on each side"
        });
    };
    let label = text.get(at.saturating_add(ARMOUR.len())..)?;
    let label = label.get(..memmem::find(label, b"-").unwrap_or(label.len()))?;
    Some(match label {
        _ if label.ends_with(b"PRIVATE KEY") => PRIVATE_KEY,
        b"PUBLIC KEY" | b"RSA PUBLIC KEY" => "it is PEM of a public key, not of a certificate",
        _ if label.ends_with(b"CERTIFICATE REQUEST") => {
            "it is PEM of a certificate request, not of the certificate that the CA issued"
        }
        b"PKCS7" | b"CMS" => "it is PEM of a PKCS#7 container, not of a certificate",
        _ => "it is PEM of something else: a certificate begins with -----BEGIN CERTIFICATE-----",
    })
}

const PRIVATE_KEY: &str = "it is a private key, which must never be sent: replace this key";

/// What DER holds instead of a certificate.
fn kind(der: &[u8]) -> Option<&'static str> {
    let content = Element::only(der)?.content_of(tag::SEQUENCE)?;
    let [first, second, third] = firsts(content);
    let first = first?;
    let next = second.map(|second| second.tag);
    match (first.tag, next, third.map(|third| third.tag)) {
        (tag::OBJECT_IDENTIFIER, ..) => Some("it is a PKCS#7 container, not a certificate"),
        (INTEGER, Some(tag::SEQUENCE), _) if first.content == [3] => {
            Some("it is a PKCS#12 container, which holds a private key: send the certificate alone")
        }
        (INTEGER, Some(INTEGER), None) => Some("it is a public key, not a certificate"),
        (INTEGER, Some(tag::SEQUENCE | OCTET_STRING | INTEGER), _) => Some(PRIVATE_KEY),
        (tag::SEQUENCE, Some(BIT_STRING), None) => Some("it is a public key, not a certificate"),
        (tag::SEQUENCE, Some(tag::SEQUENCE), Some(BIT_STRING)) => signed(first.content),
        _ => None,
    }
}

/// What is signed instead of a certificate.
fn signed(content: &[u8]) -> Option<&'static str> {
    let mut rest = content;
    let mut fourth = None;
    for _ in 0..4 {
        fourth = Element::take(&mut rest);
    }
    match fourth?.tag {
        ATTRIBUTES_OF_A_REQUEST if content.starts_with(&[INTEGER, 1, 0]) => {
            Some("it is a certificate request, not the certificate that the CA issued")
        }
        found if TIMES.contains(&found) => Some("it is a revocation list, not a certificate"),
        _ => None,
    }
}

fn firsts(content: &[u8]) -> [Option<Element<'_>>; 3] {
    let mut rest = content;
    [(); 3].map(|()| Element::take(&mut rest))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};

    /// The sentence about a value of the header.
    fn said(value: &str) -> String {
        let presented = crate::decode::decode(value.as_bytes());
        let judged = presented.map(|presented| {
            let read = crate::judgement::read(&presented.leaf);
            read.map(drop).expect_err(value)
        });
        match judged {
            Ok(fault) | Err(fault) => fault.to_string(),
        }
    }

    //= ERR-10 refused
    #[test]
    fn each_cause_has_its_sentence() {
        let pem =
            |label: &str, text: &str| format!("-----BEGIN {label}-----{text}-----END {label}-----");
        let of = |der: &[u8]| STANDARD.encode(der);
        let request = [
            0x30, 16, 0x30, 9, 2, 1, 0, 0x30, 0, 0x30, 0, 0xa0, 0, 0x30, 0, 3, 1, 0,
        ];
        let table = [
            ("MIIB%", "at byte 4 stands '%'"),
            (
                "MIIB AAA",
                "at byte 4 stands a blank; it stands on one line",
            ),
            ("MIIB-AAA", "at byte 4 stands '-', of base64url"),
            ("MIIBA", "it has 5 characters"),
            ("MIIB\\nAAA", "the first stands at byte 4"),
            ("", "it holds no bytes"),
            (
                &pem("CERTIFICATE", "\\nAAAA\\n"),
                "a backslash and a letter, for its line ends",
            ),
            (&pem("CERTIFICATE", "AA!A"), "at byte 2 stands '!'"),
            (
                &pem("PRIVATE KEY", "AAAA"),
                "a private key, which must never",
            ),
            (
                &pem("EC PRIVATE KEY", "AAAA"),
                "a private key, which must never",
            ),
            (&pem("PUBLIC KEY", "AAAA"), "PEM of a public key"),
            (
                &pem("NEW CERTIFICATE REQUEST", "AAAA"),
                "PEM of a certificate request",
            ),
            (&pem("PKCS7", "AAAA"), "PEM of a PKCS#7"),
            (&pem("X509 CRL", "AAAA"), "PEM of something else"),
            ("----BEGIN CERTIFICATE----AAAA", "five hyphens"),
            ("-----BEGIN CERTIFICATE-----AAAA", "it is cut off"),
            (
                "-----BEGIN CERTIFICATE-----AAAA-----END-----",
                "ends with another mark",
            ),
            (&of(b"MIIB"), "base64 of base64"),
            (
                &of(pem("PUBLIC KEY", "AAAA").as_bytes()),
                "PEM of a public key",
            ),
            (
                &of(&[0x30, 5, 2, 1, 0, 0x30, 0]),
                "a private key, which must never",
            ),
            (&of(&[0x30, 6, 2, 1, 0, 2, 1, 1]), "a public key"),
            (&of(&[0x30, 5, 2, 1, 3, 0x30, 0]), "PKCS#12"),
            (&of(&[0x30, 3, 6, 1, 42]), "a PKCS#7 container"),
            (&of(&[0x30, 5, 0x30, 0, 3, 1, 0]), "a public key"),
            (&of(&request), "a certificate request"),
            (&of(&[0x30, 3, 1, 1, 0xff]), "no certificate"),
        ];
        for (value, expected) in table {
            let said = said(value);
            assert!(said.contains(expected), "{value}: {said}");
        }
    }
}
