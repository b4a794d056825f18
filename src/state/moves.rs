//! TPPs that changed their organizationIdentifier (CTL-4), as every gateway of the state holds them in memory beside the blocks.
//!
//! A move changes no row of a PSU. It says that what was bound to one identity belongs to another from now on: rows keep the identity under
//! which they were written, and their quotas are counted under it, so that the end of a move undoes it. Invariant: no TPP is
//! moved to itself, by whatever way.

use portvakt_base::clock::Timestamp;
use portvakt_interface::{ForbiddenTpp, TppId};
use std::collections::BTreeMap;

/// The most quotas whose calls count beside those of another: one of calls of unknown PSUs, and those of former identities.
pub(super) const BESIDE: usize = 4;

/// The most former identities of a TPP: the calls of all of them are counted together (QUO-1).
pub(super) const MOST_FORMERS: usize = BESIDE - 1;

/// A TPP that has another identity now, by the bank's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The former identity.
    pub from: TppId,
    /// The identity to which bindings, consents, quota and blocks belong now.
    pub to: TppId,
    /// The time of the call.
    pub since: Timestamp,
}

/// The outcome of moving a TPP (CTL-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It is moved.
    Done,
    /// It had been moved before: nothing changed.
    Before,
    /// The other one had been moved to it, which only the end of that move changes: nothing changed.
    Reverse,
    /// The TPP would have too many former identities: nothing changed.
    TooMany,
    /// It had been moved to another identity: nothing changed.
    Elsewhere,
    /// The identity to which it should be moved had been moved itself: nothing changed.
    TargetMoved,
}

/// The outcome of ending a move (CTL-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveEnded {
    /// Each identity has its own again.
    Done,
    /// There is no such move: nothing changed.
    Before,
}

/// The identity under which a row was written. [`Moves::owner`] alone says which TPP the row belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrittenAs(TppId);

impl WrittenAs {
    /// The identity of a row that is written or read.
    pub(super) const fn new(tpp: TppId) -> Self {
        Self(tpp)
    }

    /// The identity as it is stored, and as the keys of quotas are hashed: perhaps a former one of the row's TPP.
    pub(super) const fn as_stored(&self) -> &TppId {
        &self.0
    }
}

/// The moves of a moment, by the former identity.
#[derive(Clone, Debug, Default)]
pub struct Moves(BTreeMap<TppId, (TppId, Timestamp)>);

impl Moves {
    /// The moves of these rows.
    pub fn new<'a>(moves: impl Iterator<Item = &'a Move>) -> Self {
        Self(
            moves
                .map(|it| (it.from.clone(), (it.to.clone(), it.since)))
                .collect(),
        )
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether exactly this TPP has another identity now.
    pub(super) fn is_former(&self, tpp: &TppId) -> bool {
        self.0.contains_key(tpp)
    }

    /// The TPP to which a row belongs.
    pub(super) fn owner<'t>(&'t self, written: &'t WrittenAs) -> &'t TppId {
        self.last(&written.0).0
    }

    /// The TPP to which everything belongs that was written under an identity: for readers outside of the store.
    pub fn owner_of<'t>(&'t self, written: &'t TppId) -> &'t TppId {
        self.last(written).0
    }

    /// The time of the move by which a row belongs to its TPP; `None` if the TPP wrote it under the same identity.
    pub(super) fn owned_since(&self, written: &WrittenAs) -> Option<Timestamp> {
        self.last(&written.0).1
    }

    /// The last identity after one, and the time of the move to it.
    fn last<'t>(&'t self, tpp: &'t TppId) -> (&'t TppId, Option<Timestamp>) {
        let mut last = (tpp, None);
        // As many steps as there are moves: rows that an operator wrote by hand may lead in a circle.
        for _ in 0..self.0.len() {
            match self.0.get(last.0) {
                Some((next, since)) => last = (next, Some(*since)),
                None => break,
            }
        }
        last
    }

    /// The former identities whose rows belong to a TPP now.
    pub(super) fn formers<'t>(&'t self, tpp: &'t TppId) -> impl Iterator<Item = &'t TppId> {
        let formers = self.0.keys();
        formers.filter(move |former| *former != tpp && self.last(former).0 == tpp)
    }

    /// The TPPs to which a block of an identity, in whatever spelling, applies by a move.
    pub(super) fn owners_of(&self, tpp: &ForbiddenTpp) -> Vec<ForbiddenTpp> {
        let formers = self.0.keys().filter(|former| tpp.names(former));
        let mut owners: Vec<_> = formers
            .map(|former| ForbiddenTpp::of(self.last(former).0))
            .filter(|owner| owner != tpp)
            .collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The former identities that a call means which takes something away from a TPP, in whatever spelling.
    pub(super) fn formers_of(&self, tpp: &ForbiddenTpp) -> impl Iterator<Item = &TppId> {
        let formers = self.0.keys();
        formers.filter(|former| tpp.names(self.last(former).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tpp(name: &str) -> TppId {
        TppId::parse(&format!("PSDNO-FSA-{name}")).unwrap()
    }

    fn moves(moves: &[(&str, &str)]) -> Moves {
        let moves: Vec<_> = moves
            .iter()
            .map(|(from, to)| Move {
                from: tpp(from),
                to: tpp(to),
                since: Timestamp::from_unix(1),
            })
            .collect();
        Moves::new(moves.iter())
    }

    #[test]
    fn rows_belong_to_the_last_identity() {
        let moves = moves(&[("1", "2"), ("2", "3"), ("4", "3")]);
        let written = |name| WrittenAs::new(tpp(name));
        for name in ["1", "2", "3", "4"] {
            assert_eq!(*moves.owner(&written(name)), tpp("3"), "{name}");
            assert_eq!(*moves.owner_of(&tpp(name)), tpp("3"), "{name}");
        }
        assert_eq!(*moves.owner(&written("5")), tpp("5"));
        assert_eq!(moves.owned_since(&written("3")), None);
        assert!(moves.owned_since(&written("1")).is_some());
        let formers = |name| moves.formers(&tpp(name)).cloned().collect::<Vec<_>>();
        assert_eq!(formers("3"), [tpp("1"), tpp("2"), tpp("4")]);
        assert_eq!(formers("2"), []);
        assert!(moves.is_former(&tpp("2")) && !moves.is_former(&tpp("3")));
    }

    #[test]
    fn a_circle_that_somebody_wrote_by_hand_ends() {
        let moves = moves(&[("1", "2"), ("2", "1")]);
        let _ = moves.owner(&WrittenAs::new(tpp("1")));
        assert_eq!(moves.formers(&tpp("3")).count(), 0);
    }
}
