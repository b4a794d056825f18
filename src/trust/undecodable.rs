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

/// The same in the encoding of HTML forms, where a blank is a plus sign.
const ARMOUR_IN_FORM: &[u8] = b"-----BEGIN+";

/// Some form of it, of other dashes.
const NEARLY_ARMOUR: &[u8] = b"BEGIN CERTIFICATE";

/// The beginning of base64 of base64, and of most certificates: a SEQUENCE with a length of two octets.
const BASE64_OF_DER: &[u8] = b"MII";

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

/// The fault of a long text around a certificate of a PEM text.
pub(super) fn around(text: &[u8]) -> CertificateFault {
    let mut marks = memmem::find_iter(text, ARMOUR);
    let is_private = |at: usize| label(text, at).is_some_and(is_of_private_key);
    malformed(match marks.any(is_private) {
        true => PRIVATE_KEY_BESIDE,
        false => "more than 1 KiB of text stands around a certificate of the PEM text",
    })
}

/// The label of the armour that begins here.
fn label(text: &[u8], at: usize) -> Option<&[u8]> {
    let label = text.get(at.saturating_add(ARMOUR.len())..)?;
    label.get(..memmem::find(label, b"-").unwrap_or(label.len()))
}

fn is_of_private_key(label: &[u8]) -> bool {
    label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE+KEY")
}

/// What a PEM text holds instead of a certificate.
fn other_armour(text: &[u8]) -> Option<&'static str> {
    let at = memmem::find(text, ARMOUR).or_else(|| memmem::find(text, ARMOUR_IN_FORM));
    let Some(at) = at else {
        return memmem::find(text, NEARLY_ARMOUR).map(|_| {
            "it looks like PEM, but a certificate begins with -----BEGIN CERTIFICATE-----, with five hyphens on each side"
        });
    };
    let label = label(text, at)?;
    Some(match label {
        _ if is_of_private_key(label) => PRIVATE_KEY,
        _ if label.ends_with(b"PUBLIC KEY") || label.ends_with(b"PUBLIC+KEY") => PUBLIC_KEY,
        _ if label.ends_with(b"CERTIFICATE REQUEST") => {
            "a certificate must stand here, and this is a certificate request: send the certificate that the CA issued for it"
        }
        b"PKCS7" | b"CMS" => {
            "a certificate must stand here, and this is a PKCS#7 container: take the TPP's certificate out of it"
        }
        b"X509 CRL" => "a certificate must stand here, and this is a revocation list",
        _ => {
            "a certificate must stand here, and the label after BEGIN is another one: a certificate begins with -----BEGIN CERTIFICATE-----"
        }
    })
}

const PRIVATE_KEY: &str = "a certificate must stand here, and this is a private key: the key is compromised, because it was sent; revoke its certificate and make a new key";

const PRIVATE_KEY_BESIDE: &str = "beside the certificate stands a private key: the key is compromised, because it was sent; revoke its certificate and make a new key";

const PUBLIC_KEY: &str = "a certificate must stand here, and this is a public key: send the certificate that the CA issued for it";

/// What DER holds instead of a certificate.
fn kind(der: &[u8]) -> Option<&'static str> {
    let content = Element::only(der)?.content_of(tag::SEQUENCE)?;
    let [first, second, third] = firsts(content);
    let first = first?;
    let next = second.map(|second| second.tag);
    match (first.tag, next, third.map(|third| third.tag)) {
        (tag::OBJECT_IDENTIFIER, ..) => Some("it is a PKCS#7 container, not a certificate"),
        (tag::INTEGER, Some(tag::SEQUENCE), _) if first.content == [3] => Some(
            "a certificate must stand here, and this is a PKCS#12 container: if it holds the private key, the key is compromised, because it was sent",
        ),
        (tag::INTEGER, Some(tag::INTEGER), None) => Some(PUBLIC_KEY),
        (tag::INTEGER, Some(tag::SEQUENCE | OCTET_STRING | tag::INTEGER), _) => Some(PRIVATE_KEY),
        (tag::SEQUENCE, Some(tag::BIT_STRING), None) => Some(PUBLIC_KEY),
        (tag::SEQUENCE, Some(tag::SEQUENCE), Some(tag::BIT_STRING)) => signed(first.content),
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
        ATTRIBUTES_OF_A_REQUEST if content.starts_with(&[tag::INTEGER, 1, 0]) => {
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
    #[allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
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
                "this is a private key: the key is compromised",
            ),
            (
                &pem("EC PRIVATE KEY", "AAAA"),
                "this is a private key: the key is compromised",
            ),
            (
                &pem("ENCRYPTED PRIVATE KEY", "AAAA"),
                "this is a private key: the key is compromised",
            ),
            (
                "-----BEGIN+PRIVATE+KEY-----%0AAAAA%0A-----END+PRIVATE+KEY-----",
                "this is a private key: the key is compromised",
            ),
            (
                &(pem("RSA PRIVATE KEY", &"A".repeat(1_600)) + &pem("CERTIFICATE", "AAAA")),
                "beside the certificate stands a private key: the key is compromised",
            ),
            (
                &(pem("CERTIFICATE", "AAAA") + &pem("PRIVATE KEY", &"A".repeat(1_600))),
                "beside the certificate stands a private key: the key is compromised",
            ),
            (
                &(pem("CERTIFICATE", "AAAA") + &"x".repeat(1_600)),
                "more than 1 KiB of text",
            ),
            (&pem("PUBLIC KEY", "AAAA"), "and this is a public key: send"),
            (
                &pem("RSA PUBLIC KEY", "AAAA"),
                "and this is a public key: send",
            ),
            (
                &pem("NEW CERTIFICATE REQUEST", "AAAA"),
                "and this is a certificate request: send",
            ),
            (&pem("PKCS7", "AAAA"), "and this is a PKCS#7 container"),
            (&pem("X509 CRL", "AAAA"), "and this is a revocation list"),
            (
                &pem("TRUSTED KEY", "AAAA"),
                "the label after BEGIN is another one",
            ),
            ("----BEGIN CERTIFICATE----AAAA", "five hyphens"),
            ("-----BEGIN CERTIFICATE-----AAAA", "it is cut off"),
            (
                "-----BEGIN CERTIFICATE-----AAAA-----END-----",
                "ends with another mark",
            ),
            (&of(b"MIIB"), "base64 of base64"),
            (
                &of(pem("PUBLIC KEY", "AAAA").as_bytes()),
                "and this is a public key: send",
            ),
            (
                &of(&[0x30, 5, 2, 1, 0, 0x30, 0]),
                "this is a private key: the key is compromised",
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
