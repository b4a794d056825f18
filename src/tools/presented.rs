//! Reads a certificate from a file: a value of TPP-Signature-Certificate, or PEM or DER.
//!
//! The gateway's own parser decides (CRT-1); deviations that only a file can have are noted. A private key in the same file is
//! never read: only its label is looked for.

use crate::trust::decode::PresentedCertificates;
use crate::trust::{CertificateFault, decode};

/// The start of every PEM block, of any type.
const ARMOUR: &[u8] = b"-----BEGIN ";

/// The end of every PEM label.
const DASHES: &[u8] = b"-----";

/// What the labels of private keys have in common: of PKCS#8 with or without a passphrase, RSA, EC, and OpenSSH.
const PRIVATE_KEY: &[u8] = b"PRIVATE KEY";

/// The start of a saved header line.
const NAME: &[u8] = b"tpp-signature-certificate:";

/// Reads the certificates of a file, and notes deviations from what the gateway accepts.
///
/// # Errors
/// [`CertificateFault::Malformed`].
pub(super) fn read(
    file: &[u8],
) -> Result<(PresentedCertificates, Vec<&'static str>), CertificateFault> {
    let mut notes = Vec::new();
    // DER starts with a SEQUENCE whose length takes two bytes; no base64 and no PEM has such bytes.
    if file.starts_with(&[0x30, 0x82]) {
        notes.push("the file is DER; the header takes its base64");
        let leaf = file.to_vec();
        return Ok((
            PresentedCertificates {
                leaf,
                pool: Vec::new(),
            },
            notes,
        ));
    }
    let value = match file.split_at_checked(NAME.len()) {
        Some((name, value)) if name.eq_ignore_ascii_case(NAME) => value,
        _ => file,
    };
    let value = value.trim_ascii();
    if value.is_empty() {
        return Err(CertificateFault::Malformed("it is empty".into()));
    }
    match decode::decode(value) {
        Err(_) if is_other_pem(value) => Err(CertificateFault::Malformed(
            "it is PEM, but of something else: a certificate stands between BEGIN CERTIFICATE and END CERTIFICATE".into(),
        )),
        Err(_) if holds_certificates(&armoured(value)) => {
            notes.push(
                "more text stands around the certificate than the header takes, which is 1 KiB",
            );
            Ok((decode::decode(&armoured(value))?, notes))
        }
        Err(fault) => {
            let joined: Vec<u8> = value
                .iter()
                .copied()
                .filter(|byte| !byte.is_ascii_whitespace())
                .collect();
            let presented = decode::decode(&joined).map_err(|_| fault)?;
            notes.push("the base64 stands on several lines; the header takes it on one");
            Ok((presented, notes))
        }
        Ok(presented) => Ok((presented, notes)),
    }
}

/// Whether a file also has a private key in PEM. Only the labels are read.
pub(super) fn has_private_key(file: &[u8]) -> bool {
    let mut rest = file;
    while let Some((_, after)) = decode::split(rest, ARMOUR) {
        let label = decode::split(after, DASHES).map_or(after, |(label, _)| label);
        if memchr::memmem::find(label, PRIVATE_KEY).is_some() {
            return true;
        }
        rest = after;
    }
    false
}

/// The certificates of a PEM text without other content: a private key, or OpenSSL's text output.
fn armoured(text: &[u8]) -> Vec<u8> {
    let (mut certificates, mut rest) = (Vec::new(), text);
    while let Some((_, after)) = decode::split(rest, decode::BEGIN)
        && let Some((content, after)) = decode::split(after, decode::END)
    {
        certificates.extend([decode::BEGIN, content, decode::END].concat());
        rest = after;
    }
    certificates
}

fn holds_certificates(armoured: &[u8]) -> bool {
    !armoured.is_empty() && decode::decode(armoured).is_ok()
}

/// PEM without a certificate, in most cases the private key of the same pair.
fn is_other_pem(value: &[u8]) -> bool {
    let holds = |text| memchr::memmem::find(value, text).is_some();
    holds(ARMOUR) && !holds(b"-----BEGIN CERTIFICATE-----")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine, engine::general_purpose::STANDARD};

    #[test]
    fn spellings() {
        let der = [&[0x30, 0x82, 1, 0][..], &[7; 100]].concat();
        let base64 = STANDARD.encode(&der);
        let lines = format!("{}\n{}\n", &base64[..64], &base64[64..]);
        let pem = format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n");
        for (file, notes) in [
            (der.clone(), 1),
            (base64.clone().into_bytes(), 0),
            (format!("{base64}\n").into_bytes(), 0),
            (
                format!("TPP-Signature-Certificate: {base64}\r\n").into_bytes(),
                0,
            ),
            (lines.into_bytes(), 1),
            (pem.clone().into_bytes(), 0),
            (STANDARD.encode(pem).into_bytes(), 0),
        ] {
            let (presented, found) = read(&file).unwrap();
            assert_eq!((presented.leaf, found.len()), (der.clone(), notes));
        }
    }

    #[test]
    fn a_private_key_is_known_by_its_label() {
        for label in [
            "PRIVATE KEY",
            "ENCRYPTED PRIVATE KEY",
            "RSA PRIVATE KEY",
            "EC PRIVATE KEY",
        ] {
            let key = format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
            let file =
                format!("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n{key}");
            assert!(has_private_key(file.as_bytes()), "{label}");
            assert!(has_private_key(key.as_bytes()), "{label}");
        }
        for file in [
            "-----BEGIN CERTIFICATE-----\nPRIVATE KEY\n-----END CERTIFICATE-----\n",
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            "PRIVATE KEY",
            "-----BEGIN ",
            "",
        ] {
            assert!(!has_private_key(file.as_bytes()), "{file}");
        }
    }

    #[test]
    fn other_pem_types_are_named() {
        for (file, why) in [
            (&b""[..], "it is empty"),
            (b" \r\n", "it is empty"),
            (b"TPP-Signature-Certificate:\r\n", "it is empty"),
            (
                b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
                "of something else",
            ),
            (b"-----BEGIN CERTIFICATE-----\nAAAA", "it is cut off"),
            (b"hello, world", "not base64: at byte 5"),
        ] {
            let fault = read(file).unwrap_err().to_string();
            assert!(fault.contains(why), "{fault}");
        }
    }
}
