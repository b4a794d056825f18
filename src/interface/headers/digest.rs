//! `Digest` (DIG-1): SHA-256 or SHA-512 of the body as it was received (RFC 3230, RFC 5843).

use crate::base64_fault::Base64Fault;
use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256, Sha512};
use std::cell::OnceCell;

/// A fault of a Digest header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestFault {
    /// None of the listed algorithms is SHA-256 or SHA-512.
    Unsupported,
    /// A listed value is not the base64 of a hash of that length.
    Malformed(Algorithm),
    /// A listed value is not the hash of the body.
    Mismatch(Algorithm),
}

/// The hashes that the interface knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-256, 32 bytes.
    Sha256,
    /// SHA-512, 64 bytes.
    Sha512,
}

impl Algorithm {
    /// The name in the interface.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA-256",
            Self::Sha512 => "SHA-512",
        }
    }

    fn named(name: &[u8]) -> Option<Self> {
        [Self::Sha256, Self::Sha512]
            .into_iter()
            .find(|algorithm| name.eq_ignore_ascii_case(algorithm.name().as_bytes()))
    }

    /// Decodes a listed value and compares it with the body's hash.
    fn check(self, listed: &[u8], hashes: &Hashes<'_>) -> Result<(), DigestFault> {
        let hash: &[u8] = match self {
            Self::Sha256 => hashes
                .sha256
                .get_or_init(|| Sha256::digest(hashes.body).into()),
            Self::Sha512 => hashes
                .sha512
                .get_or_init(|| Sha512::digest(hashes.body).into()),
        };
        let mut decoded = [0_u8; 66];
        match STANDARD.decode_slice(listed, &mut decoded) {
            Ok(length) if length != hash.len() => Err(DigestFault::Malformed(self)),
            Ok(length) if decoded.get(..length) == Some(hash) => Ok(()),
            Ok(_) => Err(DigestFault::Mismatch(self)),
            Err(_) => Err(DigestFault::Malformed(self)),
        }
    }
}

/// The hashes of the body, each computed at most once.
struct Hashes<'a> {
    body: &'a [u8],
    sha256: OnceCell<[u8; 32]>,
    sha512: OnceCell<[u8; 64]>,
}

/// Checks a Digest header against the body: each known algorithm must match, and at least one must be known (DIG-1).
///
/// # Errors
/// The first fault.
pub fn check(header: &[u8], body: &[u8]) -> Result<(), DigestFault> {
    let hashes = Hashes {
        body,
        sha256: OnceCell::new(),
        sha512: OnceCell::new(),
    };
    let mut known = false;
    for instance in header.split(|byte| *byte == b',').map(super::trim) {
        let mut halves = instance.splitn(2, |byte| *byte == b'=');
        let (name, value) = (
            halves.next().unwrap_or_default(),
            halves.next().unwrap_or_default(),
        );
        if let Some(algorithm) = Algorithm::named(name) {
            known = true;
            algorithm.check(value, &hashes)?;
        }
    }
    if known {
        Ok(())
    } else {
        Err(DigestFault::Unsupported)
    }
}

/// The reason why the value of this algorithm is not the base64 of its hash (ERR-10): that of the first such value.
pub fn form_fault(header: &[u8], algorithm: Algorithm) -> String {
    let name = algorithm.name();
    let expected = match algorithm {
        Algorithm::Sha256 => 32,
        Algorithm::Sha512 => 64,
    };
    let values = header.split(|byte| *byte == b',').filter_map(|instance| {
        let instance = super::trim(instance);
        let at = memchr::memchr(b'=', instance)?;
        let (found, value) = instance.split_at_checked(at)?;
        let is_named = Algorithm::named(found) == Some(algorithm);
        is_named.then(|| value.get(1..).unwrap_or_default())
    });
    for value in values {
        let is_hex = value.len() == 2 * expected && value.iter().all(u8::is_ascii_hexdigit);
        if is_hex {
            return format!("the hash after {name}= is hexadecimal; it must be base64");
        }
        if let Err(fault) = Base64Fault::judge(value) {
            return format!("the hash after {name}= cannot be read: {fault}");
        }
        let length = STANDARD.decode(value).map_or(0, |hash| hash.len());
        if length != expected {
            return format!("the hash after {name}= has {length} bytes; {name} has {expected}");
        }
    }
    format!("no hash stands after {name}=")
}

/// The reason why a header has no known algorithm (ERR-10).
pub const fn unsupported_fault(header: &[u8]) -> &'static str {
    match header {
        [] => "it is empty; it must be SHA-256=<base64 of the hash>, or SHA-512",
        _ => {
            "it has neither SHA-256= nor SHA-512= with a hash behind it, as in SHA-256=<base64 of the hash>"
        }
    }
}

/// The Digest header of a body, with SHA-256.
pub fn sha256(body: &[u8]) -> String {
    format!("SHA-256={}", STANDARD.encode(Sha256::digest(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests() {
        const NOTHING: &str = "SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        let sha512 = format!("sha-512={}", STANDARD.encode(Sha512::digest(b"{}")));
        let both = format!("{}, {sha512}", sha256(b"{}"));
        let one_wrong = format!("{},{sha512}", sha256(b"[]"));
        let with_unknown = format!("MD5=abc, {sha512}");
        let table: [(&str, &[u8], Result<(), DigestFault>); 12] = [
            (NOTHING, b"", Ok(())),
            (
                NOTHING,
                b"{}",
                Err(DigestFault::Mismatch(Algorithm::Sha256)),
            ),
            (&sha512, b"{}", Ok(())),
            (&both, b"{}", Ok(())),
            (
                &one_wrong,
                b"{}",
                Err(DigestFault::Mismatch(Algorithm::Sha256)),
            ),
            (&with_unknown, b"{}", Ok(())),
            ("MD5=abc", b"", Err(DigestFault::Unsupported)),
            ("", b"", Err(DigestFault::Unsupported)),
            (
                "SHA-256=",
                b"",
                Err(DigestFault::Malformed(Algorithm::Sha256)),
            ),
            (
                "SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
                b"",
                Err(DigestFault::Malformed(Algorithm::Sha256)),
            ),
            // Hashes that start with a zero byte or end in other bytes that a careless reader drops.
            (
                "SHA-256=/+aYMXhHOyScUgJvw5jbKzdrntfqfdjwhestzCAfJ9c=",
                br#"{"paymentIds":["00000293"]}"#,
                Ok(()),
            ),
            (
                "SHA-256=AD/AvoCElcv5VSjx6ZTTqutga8m3ltRBZLlLNcEXskk=",
                br#"{"paymentIds":["00000699"]}"#,
                Ok(()),
            ),
        ];
        for (header, body, expected) in table {
            assert_eq!(check(header.as_bytes(), body), expected, "{header}");
        }
        assert_eq!(check(&[b'='; 10_000], b""), Err(DigestFault::Unsupported));
        assert!(check(format!("SHA-512={}", "A".repeat(10_000)).as_bytes(), b"").is_err());
    }
}
