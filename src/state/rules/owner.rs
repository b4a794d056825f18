//! The TPP that a PSU belongs to: by its identity, or by a former one (SCA-3, SCA-19, CTL-4).

use crate::{
    Keys, MoveHash, Psu, PsuHash, PsuRef,
    moves::Moves,
    rows::{BoundPsu, RowKey, Rows},
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;
use std::sync::Arc;

/// A PSU and the TPP that it is bound to, if the change is permitted.
pub(super) struct Owner {
    /// The TPP, and its former identities (CTL-4).
    names: Vec<(TppId, MoveHash)>,
    tpp: TppId,
    pub(super) psu: PsuHash,
}

impl Owner {
    pub(super) fn new(keys: &Keys, moves: &Moves, who: PsuRef<'_>) -> Self {
        Self {
            names: names(keys, moves, who.tpp),
            tpp: who.tpp.clone(),
            psu: keys.psu(who.psu),
        }
    }

    /// Adds the keys of all rows that the other functions read.
    pub(super) fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.push(RowKey::Psu(self.psu));
        keys.extend(self.names.iter().map(|(_, key)| RowKey::Move(*key)));
    }

    pub(super) fn owns(&self, rows: &Rows, bound: &BoundPsu) -> bool {
        belongs(rows, &self.names, &bound.tpp)
    }

    /// Whether nothing can be bound to the TPP, because it has another identity now (CTL-4).
    pub(super) fn is_former(&self, rows: &Rows) -> bool {
        !belongs(rows, &self.names, &self.tpp)
    }

    /// A newly bound PSU, without session and context.
    pub(super) fn bound(&self, last_sca: Option<Timestamp>, learned: bool) -> BoundPsu {
        BoundPsu {
            tpp: self.tpp.clone(),
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

/// Whether rows that were written under an identity belong to the first of these names. The moves of all names were loaded.
fn belongs(rows: &Rows, names: &[(TppId, MoveHash)], written: &TppId) -> bool {
    let Some((owner, _)) = names.first() else {
        return false;
    };
    let mut at = written;
    for _ in names {
        let Some((_, key)) = names.iter().find(|(name, _)| name == at) else {
            return false;
        };
        match rows.moves.get(*key) {
            None => return at == owner,
            Some(moved) => at = &moved.to,
        }
    }
    false
}

/// The names of an owner of rows: its own, and the former ones that lead to it, each with the key of its move.
fn names(keys: &Keys, moves: &Moves, tpp: &TppId) -> Vec<(TppId, MoveHash)> {
    let names = std::iter::once(tpp).chain(moves.formers(tpp));
    names.map(|name| (name.clone(), keys.moved(name))).collect()
}
