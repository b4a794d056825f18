//! A keyed hash of a value, and maps with such keys.
//!
//! Each kind of value has its own type of hash: a hash of a PSU is not a key of a quota. Deliberately not here: the computation of hashes,
//! which [`Keys`](super::Keys) does.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hasher},
    marker::PhantomData,
};

/// A hash of a value of kind `K`, 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash<K>([u8; 16], PhantomData<K>);

/// The trait bounds of a kind, for rows that are generic over it.
pub(super) trait HashKind: Copy + Ord + Send + Sync + 'static {
    /// Whether changes of rows with such a key may have events (CTL-3).
    const HAS_EVENTS: bool;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $hash:ident = Hash<$kind:ident>, events: $events:literal;)*) => {$(
        /// A kind of hash. No value has this type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $kind {}

        impl HashKind for $kind {
            const HAS_EVENTS: bool = $events;
        }

        $(#[$doc])*
        pub type $hash = Hash<$kind>;
    )*

        /// The names of all kinds.
        #[cfg(test)]
        pub(super) const KINDS: &[&str] = &[$(stringify!($kind)),*];
    };
}

kinds! {
    /// Of a PSU-ID.
    PsuHash = Hash<OfPsu>, events: true;
    /// Of a PSU-Corporate-ID.
    CorporateHash = Hash<OfCorporate>, events: false;
    /// Of the bank's own key for its customer (CTL-1).
    CustomerHash = Hash<OfCustomer>, events: false;
    /// Of a TPP-Session-ID of a TPP.
    SessionHash = Hash<OfSession>, events: false;
    /// Of an account's id.
    AccountHash = Hash<OfAccount>, events: false;
    /// Of an X-Request-ID of a TPP.
    RequestHash = Hash<OfRequest>, events: false;
    /// Of the parts of a quota's key (QUO-15).
    QuotaHash = Hash<OfQuota>, events: false;
    /// Of a list that is read page by page (QUO-13).
    ListHash = Hash<OfList>, events: false;
    /// Of the id of an SCA's token (SCA-12), or the key of a mark among the spent tokens.
    TokenHash = Hash<OfToken>, events: false;
    /// Of a TPP and the scope of its block (CTL-2).
    BlockHash = Hash<OfBlock>, events: true;
    /// Of a TPP that has another identity now (CTL-4).
    MoveHash = Hash<OfMove>, events: false;
    /// Of all reported facts about the end of an SCA (SCA-12).
    ReportHash = Hash<OfReport>, events: false;
}

/// Uses the bits of a hash as its map hash: they are evenly distributed, and nobody can choose them without the key.
pub(super) type ByOwnBits = BuildHasherDefault<OwnBits>;

/// A map whose keys are hashes of one kind.
pub(super) type HashMapByBits<K, V> = HashMap<Hash<K>, V, ByOwnBits>;

/// See [`ByOwnBits`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnBits(u64);

impl<K> Hash<K> {
    /// A hash from its stored bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes, PhantomData)
    }

    /// The bytes to store. Nobody else sees them: a hash of a hash would hang on the level of the hash key.
    pub(super) const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

#[cfg(feature = "sandbox")]
impl<K> Hash<K> {
    /// The bytes as they are stored, for tests and benchmarks that look into the tables.
    pub const fn stored_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl PsuHash {
    /// The bytes from which the audit makes a pseudonym. It asks for those of every level.
    pub const fn audited_bytes(&self) -> &[u8; 16] {
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
