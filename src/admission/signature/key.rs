//! The texts about the key of a signature (SIG-3, SIG-4, SIG-9, ERR-10): keyId against the certificate that was sent.
//!
//! A text names the certificate by its TPP and its serial number, which the caller sent in it. It repeats nothing of keyId but the part of
//! an issuer that differs. Only refused requests come here.

use crate::{
    interface::{base64_fault::Base64Fault, headers::signature::Signature},
    trust::Certificate,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::ops::RangeInclusive;

/// The lengths of signatures by keys of 2048 to 4096 bits (SIG-5), in bytes.
const SIGNATURE_LENGTHS: RangeInclusive<usize> = 256..=512;

/// SIG-9: the text about a signature that is one, of another string or another key.
const NOT_OVER_THE_STRING: &str = "it does not verify over the signing string that the gateway built from the request and the list in headers";

/// SIG-3: the serial number in keyId is not that of the certificate.
pub(super) fn other_serial(certificate: &Certificate, signature: &Signature<'_>) -> String {
    let hex = certificate.serial_hex();
    if certificate.has_decimal_serial(signature.serial) {
        return format!(
            "the serial number in keyId is that of the certificate, but in decimal: write it in hexadecimal, SN={hex}"
        );
    }
    let issuer = match certificate.has_issuer(signature.issuer) {
        Ok(()) => ", though its issuer is the one in keyId",
        Err(_) => "",
    };
    format!(
        "keyId has another serial number than the certificate in TPP-Signature-Certificate, which is that of {}, SN={hex} in hexadecimal{issuer}; where you sign with the key of another one, send that certificate",
        certificate.tpp_id()
    )
}

/// SIG-9, ERR-10: the cause for which a signature does not verify.
pub(super) fn not_verified(certificate: &Certificate, signature: &Signature<'_>) -> String {
    if let Err(why) = Base64Fault::judge(signature.signature) {
        return format!("the value of signature cannot be read: {why}");
    }
    let length = STANDARD
        .decode(signature.signature)
        .map_or(0, |bytes| bytes.len());
    let (least, most) = (SIGNATURE_LENGTHS.start(), SIGNATURE_LENGTHS.end());
    if !SIGNATURE_LENGTHS.contains(&length) {
        return format!(
            "the value of signature has {length} bytes; keys of 2048 to 4096 bits make {least} to {most}"
        );
    }
    let (tpp, hex) = (certificate.tpp_id(), certificate.serial_hex());
    match certificate.signature_length() {
        Some(own) if own != length => format!(
            "it was not made with the key of the certificate in TPP-Signature-Certificate, that of {tpp}, SN={hex}: it has {length} bytes, and that key makes {own}"
        ),
        _ => format!(
            "{NOT_OVER_THE_STRING}, by the key of the certificate in TPP-Signature-Certificate, that of {tpp}, SN={hex}; compare your signing string with the gateway's byte by byte, whose lines are joined by LF alone; where they are the same, you sign with the key of another certificate, or send the wrong one"
        ),
    }
}
