//! A PSU whom the state knows as the TPP's that names it (SCA-3, SCA-17).
//!
//! Invariant: an id becomes known by a row of the state only.

use super::{Claimed, Context, Keys, Known, Psu};
use portvakt_interface::headers::{CorporateId, PsuId};
use std::sync::Arc;

/// A PSU-ID that is bound to the TPP that names it, with the stored facts.
#[derive(Clone, Debug)]
pub struct KnownPsu {
    id: Known<PsuId>,
    facts: Arc<Psu>,
}

impl KnownPsu {
    /// The PSU that a TPP names, where `facts` are of the row that was sought by this PSU-ID, and the row is bound to the TPP.
    pub(super) const fn found(psu: Claimed<PsuId>, facts: Arc<Psu>) -> Self {
        Self {
            id: psu.to_seek(),
            facts,
        }
    }

    /// PSU-ID.
    pub const fn id(&self) -> Known<PsuId> {
        self.id
    }

    /// The stored facts.
    pub fn facts(&self) -> &Psu {
        &self.facts
    }

    /// An agreement that the request names, if the PSU has it (SCA-17), with its context.
    pub fn agreement(
        &self,
        keys: &Keys,
        agreement: Claimed<CorporateId>,
    ) -> Option<(Known<CorporateId>, &Context)> {
        let sought = agreement.to_seek();
        let context = self.facts.context(Some(keys.corporate(sought)))?;
        Some((sought, context))
    }

    /// A PSU with these facts, for tests of their judgement.
    #[cfg(feature = "sandbox")]
    pub fn with_facts(id: PsuId, facts: Psu) -> Self {
        Self::found(Claimed::by_tpp(id), Arc::new(facts))
    }
}
