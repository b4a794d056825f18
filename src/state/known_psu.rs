//! A PSU whom the state knows as the TPP's that names it (SCA-3, SCA-17).
//!
//! Invariant: an id becomes known by a row of the state only.

use super::{Claimed, Context, Keys, Known, Psu, rows::BoundPsu};
use portvakt_interface::{
    TppId,
    headers::{CorporateId, PsuId},
};

/// A PSU-ID that is bound to the TPP that names it, with the stored facts.
#[derive(Clone, Debug)]
pub struct KnownPsu {
    id: Known<PsuId>,
    bound: BoundPsu,
}

impl KnownPsu {
    /// The PSU that a TPP names, where `bound` is the row that was sought by this PSU-ID, and belongs to the TPP.
    pub(super) const fn found(psu: Claimed<PsuId>, bound: BoundPsu) -> Self {
        Self {
            id: psu.to_seek(),
            bound,
        }
    }

    /// PSU-ID.
    pub const fn id(&self) -> Known<PsuId> {
        self.id
    }

    /// The stored facts.
    pub fn facts(&self) -> &Psu {
        &self.bound.psu
    }

    /// The identity under which the TPP's calls of a quota for this PSU are counted (QUO-15): its own, or the former one under which the PSU
    /// was bound (CTL-4).
    pub const fn counted_as(&self) -> &TppId {
        self.bound.written.as_stored()
    }

    /// An agreement that the request names, if the PSU has it (SCA-17), with its context.
    pub fn agreement(
        &self,
        keys: &Keys,
        agreement: Claimed<CorporateId>,
    ) -> Option<(Known<CorporateId>, &Context)> {
        let sought = agreement.to_seek();
        let context = self.facts().context(Some(keys.corporate(sought)))?;
        Some((sought, context))
    }

    /// A PSU of this TPP with these facts, for tests of their judgement.
    #[cfg(feature = "sandbox")]
    pub fn with_facts(id: PsuId, tpp: TppId, facts: Psu) -> Self {
        let psu = std::sync::Arc::new(facts);
        let written = crate::moves::WrittenAs::new(tpp);
        Self::found(Claimed::by_tpp(id), BoundPsu { written, psu })
    }
}
