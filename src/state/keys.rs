//! Keyed hashes, which stand in a store in place of a PSU-ID, an account, a session id or a request id.
//!
//! HMAC-SHA-256, cut to 128 bits, over the kind of the value and its parts, each with its length in front: no two
//! different values have the same input. Without the key nobody can tell which PSU a row is about, not even by trying
//! all national identity numbers or all UUIDs that were ever seen. Invariant: the key is never shown.

use crate::interface::{
    TppId,
    headers::{CorporateId, PsuId, RequestId, SessionId},
};
use aws_lc_rs::hmac;
use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hasher},
};

/// A keyed hash of a value, 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash([u8; 16]);

/// Puts hashes into maps by their own bits: they are spread evenly, and nobody without the key can choose them.
pub(super) type ByOwnBits = BuildHasherDefault<OwnBits>;

/// A map whose keys are hashes.
pub(super) type HashMapByBits<V> = HashMap<Hash, V, ByOwnBits>;

/// See [`ByOwnBits`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnBits(u64);

impl Hash {
    /// A hash as it was kept.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes to keep.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl std::hash::Hash for Hash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        state.write_u64(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
    }
}

impl Hasher for OwnBits {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = bits;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The key of a store's hashes.
pub struct Keys(hmac::Key);

impl Keys {
    /// Keys from 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// A PSU, by its PSU-ID, whichever TPP it belongs to (SCA-19).
    pub fn psu(&self, psu: PsuId) -> Hash {
        self.hash(b"psu", &[&psu.to_be_bytes()])
    }

    /// A corporate agreement, by its PSU-Corporate-ID.
    pub fn corporate(&self, corporate: CorporateId) -> Hash {
        self.hash(b"corporate", &[&corporate.to_be_bytes()])
    }

    /// A TPP-Session-ID of a TPP.
    pub fn session(&self, tpp: &TppId, session: &SessionId) -> Hash {
        self.hash(b"session", &[tpp.as_bytes(), session.as_bytes()])
    }

    /// An account, by its percent-decoded id (QUO-15).
    pub fn account(&self, account: &str) -> Hash {
        self.hash(b"account", &[account.as_bytes()])
    }

    /// An X-Request-ID of a TPP (REP-1).
    pub fn request(&self, tpp: &TppId, id: &RequestId) -> Hash {
        self.hash(b"request", &[tpp.as_bytes(), id.as_bytes()])
    }

    /// The key of a quota (QUO-15): TPP, PSU, corporate id or none, account, operation, and for details that are
    /// counted one by one the transaction.
    pub fn quota(
        &self,
        tpp: &TppId,
        psu: PsuId,
        corporate: Option<CorporateId>,
        operation: &str,
        resources: &[&str],
    ) -> Hash {
        let psu = psu.to_be_bytes();
        let corporate = corporate.map(CorporateId::to_be_bytes);
        let corporate = corporate.as_ref().map_or(&[][..], |bytes| bytes);
        let mut parts = vec![tpp.as_bytes(), &psu, corporate, operation.as_bytes()];
        parts.extend(resources.iter().map(|resource| resource.as_bytes()));
        self.hash(b"quota", &parts)
    }

    /// Anything else, by a kind of its own.
    pub fn hash(&self, kind: &[u8], parts: &[&[u8]]) -> Hash {
        let mut context = hmac::Context::with_key(&self.0);
        for part in std::iter::once(&kind).chain(parts) {
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            context.update(&length.to_be_bytes());
            context.update(part);
        }
        let tag = context.sign();
        let mut short = [0; 16];
        short
            .iter_mut()
            .zip(tag.as_ref())
            .for_each(|(to, from)| *to = *from);
        Hash(short)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keys(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn different_values_have_different_hashes() {
        let keys = Keys::new(&[7; 32]);
        let [one, two] = [1, 2].map(PsuId::from_bits);
        let [tpp, other] = ["PSDNO-FSA-11", "PSDNO-FSA-1"].map(|id| TppId::parse(id).unwrap());
        let firm = CorporateId::from_bits(1);
        let session = |id| SessionId::from_text(id).unwrap();
        let request = RequestId::parse(&HeaderValue::from_static("a")).unwrap();
        let hashes = [
            keys.psu(one),
            keys.psu(two),
            keys.corporate(firm),
            keys.session(&tpp, &session("a")),
            keys.session(&other, &session("1a")),
            keys.request(&tpp, &request),
            keys.account("a"),
            keys.quota(&tpp, one, None, "balance-list", &["a"]),
            keys.quota(&tpp, one, Some(firm), "balance-list", &["a"]),
            keys.quota(&tpp, one, None, "balance-list", &["a", ""]),
            Keys::new(&[8; 32]).psu(one),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert_eq!(hashes.iter().position(|other| other == hash), Some(index));
        }
        assert_eq!(keys.psu(one), Keys::new(&[7; 32]).psu(one));
        assert_eq!(format!("{keys:?}"), "Keys(***)");
    }
}
