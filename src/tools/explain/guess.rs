//! Searches for the string or the algorithm with which the signature verifies, which identifies the caller's mistake.
//!
//! Invariant: this module admits nothing. The pipeline has decided; this only diagnoses.

use super::judge::JudgedRequest;
use crate::{
    hex,
    interface::{
        base64_fault::Base64Fault,
        headers::{self, encoded_word, signature::Signature},
    },
    tools::saved::SavedRequest,
    trust::Certificate,
};
use aws_lc_rs::signature::{
    RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// The string over which the signature verifies, and the mistake.
pub(super) fn meant(
    request: &SavedRequest,
    judged: &JudgedRequest,
    theirs: Option<&[u8]>,
) -> Vec<String> {
    let Some(found) = Material::of(request, judged) else {
        return Vec::new();
    };
    if let Some(theirs) = theirs {
        if found.verifies(theirs) {
            return vec!["the signature verifies over the string in your file: key and padding are right, only the string differs".to_owned()];
        }
        if found.verifies(theirs.trim_ascii_end()) {
            return vec!["the signature verifies over the string in your file without its last line end: key and padding are right, only the string differs".to_owned()];
        }
    }
    let strings = found
        .variants()
        .into_iter()
        .filter(|(_, string)| found.verifies(string))
        .map(|(text, _)| format!("the signature verifies over the same string {text}"));
    strings.chain(found.otherwise(found.ours)).collect()
}

/// The mistake if the string is right.
pub(super) fn beyond(request: &SavedRequest, judged: &JudgedRequest, ours: &[u8]) -> String {
    if let Some(why) = no_base64(request) {
        return format!("the value of signature in Signature cannot be read: {why}");
    }
    let found = Material::of(request, judged).and_then(|found| found.otherwise(ours));
    found.unwrap_or_else(|| {
        "sign with the private key of the certificate that is sent, PKCS#1 v1.5 with SHA-256 over the string itself".to_owned()
    })
}

/// Why the value of signature is no base64 (SIG-9).
fn no_base64(request: &SavedRequest) -> Option<Base64Fault> {
    let header = request.headers.get(&headers::SIGNATURE.name)?;
    let header = encoded_word::decode(header.as_bytes()).ok()?;
    let signature = Signature::parse(&header).ok()?;
    Base64Fault::judge(signature.signature).err()
}

struct Material<'a> {
    certificate: &'a Certificate,
    signature: Vec<u8>,
    listed: Vec<String>,
    ours: &'a [u8],
}

impl<'a> Material<'a> {
    fn of(request: &'a SavedRequest, judged: &'a JudgedRequest) -> Option<Self> {
        let header = request.headers.get(&headers::SIGNATURE.name)?;
        let header = encoded_word::decode(header.as_bytes()).ok()?;
        let signature = Signature::parse(&header).ok()?;
        Some(Self {
            certificate: judged.record.certificate()?,
            signature: STANDARD.decode(signature.signature).ok()?,
            listed: signature.headers.into_iter().map(str::to_owned).collect(),
            ours: judged.signing_string.as_deref()?,
        })
    }

    fn verifies(&self, string: &[u8]) -> bool {
        self.certificate
            .key()
            .verify_sig(string, &self.signature)
            .is_ok()
    }

    fn variants(&self) -> Vec<(&'static str, Vec<u8>)> {
        let text = self.ours;
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let with = |change: &dyn Fn(usize, &[u8]) -> Vec<u8>| {
            let changed = lines
                .iter()
                .enumerate()
                .map(|(index, line)| change(index, line));
            changed.collect::<Vec<_>>().join(&b'\n')
        };
        let as_listed = |index: usize, line: &[u8]| {
            let name = self
                .listed
                .get(index)
                .map_or(&b""[..], |name| name.as_bytes());
            [name, line.get(name.len()..).unwrap_or_default()].concat()
        };
        let unspaced = |_: usize, line: &[u8]| replace_first(line, b": ", b":");
        let capital_method = |_: usize, line: &[u8]| match line.strip_prefix(b"(request-target): ")
        {
            Some(target) => {
                let end = memchr::memchr(b' ', target).unwrap_or_default();
                let (method, path) = target.split_at_checked(end).unwrap_or((target, &[]));
                [
                    b"(request-target): ",
                    method.to_ascii_uppercase().as_slice(),
                    path,
                ]
                .concat()
            }
            None => line.to_vec(),
        };
        let without_query = |_: usize, line: &[u8]| {
            let is_target = line.starts_with(b"(request-target): ");
            let path = line.split(|byte| is_target && *byte == b'?').next();
            path.unwrap_or_default().to_vec()
        };
        vec![
            (
                "with a newline at the end: leave that out",
                [text, b"\n"].concat(),
            ),
            (
                "with CRLF between its lines: separate them by a single LF",
                lines.join(&b"\r\n"[..]),
            ),
            (
                "with CRLF after every line: separate them by a single LF, with none at the end",
                [lines.join(&b"\r\n"[..]).as_slice(), b"\r\n"].concat(),
            ),
            (
                "with header names as they stand in headers: write them in lower case",
                with(&as_listed),
            ),
            ("without the space after the colon", with(&unspaced)),
            (
                "with the method in upper case: write it in lower case",
                with(&capital_method),
            ),
            (
                "without the query: sign path and query",
                with(&without_query),
            ),
            (
                "with a backslash and an n for each newline",
                lines.join(&b"\\n"[..]),
            ),
        ]
        .into_iter()
        .filter(|(_, variant)| variant != text)
        .collect()
    }

    /// Another padding or hash, over the right string.
    fn otherwise(&self, string: &[u8]) -> Option<String> {
        let others: [(&'static dyn VerificationAlgorithm, &str); 4] = [
            (&RSA_PSS_2048_8192_SHA256, "RSA-PSS"),
            (&RSA_PKCS1_2048_8192_SHA512, "SHA-512"),
            (&RSA_PKCS1_2048_8192_SHA384, "SHA-384"),
            (&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, "SHA-1"),
        ];
        let made = others.into_iter().find(|(algorithm, _)| {
            let key = UnparsedPublicKey::new(*algorithm, self.certificate.key());
            key.verify(string, &self.signature).is_ok()
        });
        if let Some((_, name)) = made {
            return Some(format!(
                "the signature was made with {name}; rsa-sha256 is PKCS#1 v1.5 with SHA-256"
            ));
        }
        let digest = Sha256::digest(string);
        (self.verifies(&digest) || self.verifies(hex::encode(&digest).as_bytes())).then(|| {
            "the signature is over the SHA-256 of the string: RSA-SHA256 hashes by itself, so hand it the string".to_owned()
        })
    }
}

fn replace_first(line: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    match memchr::memmem::find(line, what) {
        Some(at) => {
            let (before, after) = line.split_at_checked(at).unwrap_or((line, &[]));
            [before, by, after.get(what.len()..).unwrap_or_default()].concat()
        }
        None => line.to_vec(),
    }
}
