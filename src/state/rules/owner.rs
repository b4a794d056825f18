//! The TPP that a PSU belongs to: by its identity, or by a former one (SCA-3, SCA-19, CTL-4).

use crate::{
    Keys, MoveHash, Psu, PsuHash, PsuRef,
    moves::{Moves, WrittenAs},
    rows::{BoundPsu, RowKey, Rows},
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;
use std::sync::Arc;

/// A PSU and the TPP that it is bound to, if the change is permitted.
pub(super) struct Owner {
    tpp: (TppId, MoveHash),
    /// Its former identities (CTL-4).
    formers: Vec<(TppId, MoveHash)>,
    pub(super) psu: PsuHash,
}

impl Owner {
    pub(super) fn new(keys: &Keys, moves: &Moves, who: PsuRef<'_>) -> Self {
        let name = |tpp: &TppId| (tpp.clone(), keys.moved(tpp));
        Self {
            tpp: name(who.tpp),
            formers: moves.formers(who.tpp).map(name).collect(),
            psu: keys.psu(who.psu),
        }
    }

    /// Adds the keys of all rows that the other functions read.
    pub(super) fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.push(RowKey::Psu(self.psu));
        keys.extend(self.names().map(|(_, key)| RowKey::Move(*key)));
    }

    pub(super) fn owns(&self, rows: &Rows, bound: &BoundPsu) -> bool {
        self.has(rows, bound.written.as_stored())
    }

    /// Whether nothing can be bound to the TPP, because it has another identity now (CTL-4).
    pub(super) fn is_former(&self, rows: &Rows) -> bool {
        !self.has(rows, &self.tpp.0)
    }

    /// A newly bound PSU, without session and context.
    pub(super) fn bound(&self, last_sca: Option<Timestamp>, learned: bool) -> BoundPsu {
        BoundPsu {
            written: WrittenAs::new(self.tpp.0.clone()),
            psu: Arc::new(Psu {
                learned,
                last_sca,
                session: None,
                contexts: Vec::new(),
                customer: None,
                pseudonym: None,
                consents_ended: None,
            }),
        }
    }

    /// The TPP's identity, and the former ones that lead to it, each with the key of its move.
    fn names(&self) -> impl Iterator<Item = &(TppId, MoveHash)> {
        std::iter::once(&self.tpp).chain(&self.formers)
    }

    /// Whether rows that were written under an identity belong to the TPP. The moves of all names were loaded.
    fn has(&self, rows: &Rows, written: &TppId) -> bool {
        let mut at = written;
        for _ in self.names() {
            let Some((_, key)) = self.names().find(|(name, _)| name == at) else {
                return false;
            };
            match rows.moves.get(*key) {
                None => return *at == self.tpp.0,
                Some(moved) => at = &moved.to,
            }
        }
        false
    }
}

/// The row of a PSU that the bank binds to a TPP, with its last SCA moved forward. A binding that was only learned is replaced with
/// everything that belongs to it, whichever TPP has it. `None` if the bank bound the PSU to another TPP (SCA-19).
pub(super) fn bind_to(rows: &Rows, owner: &Owner, last_sca: Option<Timestamp>) -> Option<BoundPsu> {
    match rows.psus.get(owner.psu) {
        _ if owner.is_former(rows) => None,
        Some(bound) if owner.owns(rows, bound) => Some(bound.with(|psu| {
            psu.last_sca = psu.last_sca.max(last_sca);
            psu.learned = false;
        })),
        Some(bound) if !bound.psu.learned => None,
        Some(_) | None => Some(owner.bound(last_sca, false)),
    }
}
