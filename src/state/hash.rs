//! A keyed hash of a value, and maps by it.
//!
//! Each kind of value has hashes of a type of its own: a hash of a PSU is no key of a quota. Deliberately not here: how a
//! hash is made, which is the matter of [`Keys`](super::Keys).

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hasher},
    marker::PhantomData,
};

/// A hash of a value of kind `K`, 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash<K>([u8; 16], PhantomData<K>);

/// The bounds of a kind where rows are generic over it.
pub(super) trait Kind: Copy + Ord + Send + Sync + 'static {}

macro_rules! kinds {
    ($($(#[$doc:meta])* $hash:ident = Hash<$kind:ident>;)*) => {$(
        /// A kind of hash. No value has this type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $kind {}

        impl Kind for $kind {}

        $(#[$doc])*
        pub type $hash = Hash<$kind>;
    )*};
}

kinds! {
    /// Of a PSU-ID.
    PsuHash = Hash<OfPsu>;
    /// Of a PSU-Corporate-ID.
    CorporateHash = Hash<OfCorporate>;
    /// Of a TPP-Session-ID of a TPP.
    SessionHash = Hash<OfSession>;
    /// Of an account's id.
    AccountHash = Hash<OfAccount>;
    /// Of an X-Request-ID of a TPP.
    RequestHash = Hash<OfRequest>;
    /// Of the parts that a quota is kept by (QUO-15).
    QuotaHash = Hash<OfQuota>;
    /// Of a list that is read page by page (QUO-13).
    ListHash = Hash<OfList>;
    /// The id of an SCA's token. It is random, and stands for itself (SCA-12).
    TokenHash = Hash<OfToken>;
    /// Of everything that was reported of an SCA's end (SCA-12).
    ReportHash = Hash<OfReport>;
}

/// Puts hashes into maps by their own bits: they are spread evenly, and nobody without the key can choose them.
pub(super) type ByOwnBits = BuildHasherDefault<OwnBits>;

/// A map whose keys are hashes of one kind.
pub(super) type HashMapByBits<K, V> = HashMap<Hash<K>, V, ByOwnBits>;

/// See [`ByOwnBits`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnBits(u64);

impl<K> Hash<K> {
    /// A hash as it was kept.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes, PhantomData)
    }

    /// The bytes to keep.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl<K> fmt::Debug for Hash<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Hash").field(&self.0).finish()
    }
}

impl<K> std::hash::Hash for Hash<K> {
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
