//! From the bytes of TPP-Signature-Certificate to DER (CRT-1).
//!
//! The interface specifies base64 of the certificate. Real clients also send base64 of a PEM text, a PEM text on one line or with spaces
//! for its newlines, and percent-encoded PEM, also in the encoding of HTML forms. Only a PEM text may hold more than one certificate: the
//! first is the TPP's, the others are an untrusted pool (CRT-10).

use super::{CertificateFault, undecodable};
use base64::{Engine, engine::general_purpose::STANDARD};
use memchr::memmem;
use percent_encoding::percent_decode;
use std::borrow::Cow;

/// The maximum number of certificates. A chain rarely has more than four members.
pub(super) const MAX_CERTIFICATES: usize = 8;

/// The maximum length of the text before a certificate of a PEM text, and after the last one, in bytes: OpenSSL and Java write a few names
/// there.
const MAX_TEXT: usize = 1024;

/// The line before a certificate in PEM.
pub const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
/// The line after it.
pub const END: &[u8] = b"-----END CERTIFICATE-----";

const BEGIN_IN_FORM: &[u8] = b"-----BEGIN+CERTIFICATE-----";
const END_IN_FORM: &[u8] = b"-----END+CERTIFICATE-----";

/// The certificates in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentedCertificates {
    /// The TPP's certificate, DER.
    pub leaf: Vec<u8>,
    /// The other certificates of a PEM text, DER. They are untrusted.
    pub pool: Vec<Vec<u8>>,
}

/// Reads the header's value.
///
/// # Errors
/// [`CertificateFault::Malformed`].
pub fn decode(value: &[u8]) -> Result<PresentedCertificates, CertificateFault> {
    let value: Cow<'_, [u8]> = if value.contains(&b'%') {
        as_armour(percent_decode(value).collect()).into()
    } else {
        value.into()
    };
    if is_pem(&value) {
        return decode_pem(&value);
    }
    let text = value.trim_ascii();
    let bytes = STANDARD
        .decode(text)
        .map_err(|_| undecodable::value(text))?;
    if is_pem(&bytes) {
        decode_pem(&bytes)
    } else {
        Ok(PresentedCertificates {
            leaf: bytes,
            pool: Vec::new(),
        })
    }
}

/// Replaces `+` by a space, because HTML forms and Java's URLEncoder encode a space as `+`. In the PEM armour a `+` can only be a space; in
/// base64 it is a character of the data.
fn as_armour(mut text: Vec<u8>) -> Vec<u8> {
    for (written, mark) in [(BEGIN_IN_FORM, BEGIN), (END_IN_FORM, END)] {
        let places: Vec<_> = memmem::find_iter(&text, written).collect();
        for at in places {
            let end = at.saturating_add(mark.len());
            if let Some(found) = text.get_mut(at..end) {
                found.copy_from_slice(mark);
            }
        }
    }
    text
}

fn is_pem(text: &[u8]) -> bool {
    memmem::find(text, BEGIN).is_some()
}

fn decode_pem(text: &[u8]) -> Result<PresentedCertificates, CertificateFault> {
    let (mut certificates, mut rest) = (Vec::new(), text);
    while let Some((around, after)) = split(rest, BEGIN) {
        is_short(around)?;
        let (content, after) = split(after, END).ok_or_else(|| undecodable::end(after))?;
        if certificates.len() == MAX_CERTIFICATES {
            return Err(CertificateFault::Malformed(
                "the PEM text holds more than 8 certificates".into(),
            ));
        }
        let base64 = content.iter().copied();
        let base64: Vec<u8> = base64.filter(|byte| !byte.is_ascii_whitespace()).collect();
        let decoded = STANDARD.decode(&base64);
        certificates.push(decoded.map_err(|_| undecodable::content(content, &base64))?);
        rest = after;
    }
    is_short(rest)?;
    let mut certificates = certificates.into_iter();
    let leaf = certificates
        .next()
        .ok_or_else(|| CertificateFault::Malformed("the PEM text holds no certificate".into()))?;
    Ok(PresentedCertificates {
        leaf,
        pool: certificates.collect(),
    })
}

/// The text before a mark and the text after it.
pub fn split<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (before, from) = text.split_at_checked(memmem::find(text, mark)?)?;
    Some((before, from.strip_prefix(mark)?))
}

fn is_short(text: &[u8]) -> Result<(), CertificateFault> {
    if text.len() > MAX_TEXT {
        return Err(undecodable::around(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    /// Bytes whose base64 holds `+` and `/`.
    const DER: [u8; 6] = [0xfb, 0xff, 0xfe, 0xfb, 0xef, 0xbe];

    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";

    #[test]
    fn spellings_of_one_certificate() {
        let base64 = STANDARD.encode(DER);
        assert!(base64.contains('+') && base64.contains('/'));
        let (first, second) = base64.split_at(4);
        let pem = format!("{BEGIN}\n{first}\n{second}\n{END}\n");
        let spellings = [
            base64.clone(),
            STANDARD.encode(&pem),
            pem.replace('\n', ""),
            pem.replace('\n', " "),
            pem.replace('\n', "\r\n"),
            utf8_percent_encode(&pem, NON_ALPHANUMERIC).to_string(),
            // A `+` stays a `+`: this is percent-encoding, not the encoding of HTML forms.
            pem.replace('\n', "%0A"),
            // As Java's URLEncoder writes it: in the armour a `+` is a space.
            pem.replace('+', "%2B")
                .replace('/', "%2F")
                .replace(' ', "+")
                .replace('\n', "%0A"),
            utf8_percent_encode(&base64, NON_ALPHANUMERIC).to_string(),
            format!("subject=CN = x issuer=CN = y {}", pem.replace('\n', " ")),
        ];
        for spelling in spellings {
            assert_eq!(
                decode(spelling.as_bytes()),
                Ok(PresentedCertificates {
                    leaf: DER.to_vec(),
                    pool: vec![]
                }),
                "{spelling}"
            );
        }
        let chain = format!("{pem}{}", pem.replace(first, "AAAA"));
        assert_eq!(decode(chain.as_bytes()).unwrap().pool.len(), 1);
        let text = "x".repeat(1_024);
        let around = format!("{text}{BEGIN}AAAA{END}{text}{BEGIN}AAAA{END}{text}");
        assert_eq!(decode(around.as_bytes()).unwrap().pool.len(), 1);
    }

    #[test]
    fn what_is_no_certificate() {
        for bad in [
            "%%%",
            "not base64!",
            BEGIN,
            "-----BEGIN+CERTIFICATE-----AAAA-----END+CERTIFICATE-----",
            "AAA",
            &format!("{BEGIN}&&&{END}"),
            &format!("{BEGIN}AAAA{END}").repeat(9),
            &format!("{}{BEGIN}AAAA{END}", "x".repeat(1_025)),
            &format!("{BEGIN}AAAA{END}{}", "x".repeat(1_025)),
            &format!("{BEGIN}AAAA{END}{}{BEGIN}AAAA{END}", "x".repeat(1_025)),
            &STANDARD.encode(format!("{}{BEGIN}AAAA{END}", "x".repeat(1_025))),
        ] {
            assert!(
                matches!(decode(bad.as_bytes()), Err(CertificateFault::Malformed(_))),
                "{bad}"
            );
        }
    }
}
