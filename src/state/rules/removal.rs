//! What the bank took back from a PSU, so that an answer of the core that was under way then teaches nothing (SCA-13, SCA-19, SCA-22).
//!
//! A binding that was taken back leaves no row of the PSU, and an earlier answer of the core would bind it again. So each removal leaves a mark
//! with a random value among the spent tokens, which live in every engine: who learns read the mark before the request went to the core, and
//! learns nothing where it is another one now. No clock is compared.
//!
//! The key of a mark hangs on the level of the hash key, so the marks before a rotation are not found after it. Nobody needs them: who read
//! one before the rotation can write nothing after it.

use crate::{
    PsuHash, ReportHash, TokenHash, Unavailable,
    change::Change,
    hash::Hash,
    rows::{RowKey, Rows, TokenRow},
};
use portvakt_base::clock::Timestamp;
use sha2::{Digest, Sha256};

/// The seconds for which a mark is kept, besides those of every spent token: far longer than a request is under way.
const KEPT: u64 = 7 * 86_400;

/// The last removal of something of a PSU before a moment; of none, where there was none in a week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Removal(Option<ReportHash>);

/// The mark of a removal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    at: TokenHash,
    row: TokenRow,
}

impl Mark {
    /// A new mark of a PSU; `latest` is the latest time that the state knows of.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub(crate) fn new(psu: PsuHash, latest: Timestamp) -> Result<Self, Unavailable> {
        let mut value = [0; 16];
        aws_lc_rs::rand::fill(&mut value)
            .map_err(|_| Unavailable("the system gives no random bytes".into()))?;
        Ok(Self {
            at: key(psu),
            row: TokenRow {
                said: Hash::from_bytes(value),
                expires: Timestamp::from_unix(latest.unix().saturating_add(KEPT)),
            },
        })
    }

    pub(super) const fn key(&self) -> RowKey {
        RowKey::Token(self.at)
    }

    pub(super) fn put(&self, rows: &mut Rows) {
        rows.tokens.put(self.at, self.row);
    }
}

impl Change for Mark {
    type Outcome = ();

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.push(self.key());
    }

    fn decide(&self, rows: &mut Rows) {
        self.put(rows);
    }
}

/// The last removal of a PSU, read: changes nothing.
pub(crate) struct LastRemoval(pub(crate) PsuHash);

impl Change for LastRemoval {
    type Outcome = Removal;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.push(RowKey::Token(key(self.0)));
    }

    fn decide(&self, rows: &mut Rows) -> Removal {
        Removal::of(rows, self.0)
    }
}

impl Removal {
    /// The last one of a PSU, among these rows.
    pub(super) fn of(rows: &Rows, psu: PsuHash) -> Self {
        Self(rows.tokens.get(key(psu)).map(|mark| mark.said))
    }
}

/// The key of the mark. The hash of a PSU is keyed, so this one needs no key.
pub(super) fn key(psu: PsuHash) -> TokenHash {
    let digest = Sha256::new()
        .chain_update(b"taken back")
        .chain_update(psu.as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    for (byte, of) in bytes.iter_mut().zip(digest) {
        *byte = of;
    }
    Hash::from_bytes(bytes)
}
