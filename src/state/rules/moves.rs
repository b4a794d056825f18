//! A TPP that changed its identity (CTL-4).

use crate::{
    Block, BlockHash, Keys, Move, MoveEnded, MoveHash, Moved,
    change::Change,
    moves::MOST_FORMERS,
    rows::{RowKey, Rows},
};
use portvakt_interface::{ForbiddenTpp, TppId};

/// A move by the bank.
pub(crate) struct NewMove {
    from: MoveHash,
    to: MoveHash,
    moved: Move,
}

/// The end of a move.
pub(crate) struct EndedMove {
    key: MoveHash,
    from: TppId,
    to: TppId,
    /// The blocks of the new identity, with the keys of the same blocks of the former one.
    blocks: Vec<(BlockHash, BlockHash)>,
}

impl NewMove {
    pub(crate) fn new(keys: &Keys, moved: Move) -> Self {
        Self {
            from: keys.moved(&moved.from),
            to: keys.moved(&moved.to),
            moved,
        }
    }
}

impl Change for NewMove {
    type Outcome = Moved;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.extend([
            RowKey::Move(self.from),
            RowKey::Move(self.to),
            RowKey::AllMoves,
        ]);
    }

    /// A TPP is moved to one that is not moved itself, so that no circle arises, and has so few former identities that all are counted (QUO-1).
    fn decide(&self, rows: &mut Rows) -> Moved {
        let Move { from, to, .. } = &self.moved;
        match rows.moves.get(self.from) {
            Some(moved) if moved.to == *to => return Moved::Before,
            Some(_) => return Moved::Elsewhere,
            None => {}
        }
        match rows.moves.get(self.to) {
            Some(moved) if moved.to == *from => return Moved::Reverse,
            Some(_) => return Moved::TargetMoved,
            None => {}
        }
        let moves = rows.all_moves();
        let formers = moves.formers(to).chain(moves.formers(from));
        if formers.count() >= MOST_FORMERS {
            return Moved::TooMany;
        }
        rows.moves.put(self.from, self.moved.clone());
        Moved::Done
    }
}

impl EndedMove {
    /// `blocks` are those of the new identity.
    pub(crate) fn new(keys: &Keys, from: &TppId, to: &TppId, blocks: &[Block]) -> Self {
        let former = ForbiddenTpp::of(from);
        let blocks = blocks.iter().map(|block| {
            let of = |tpp| keys.block(tpp, block.scope);
            (of(&block.tpp), of(&former))
        });
        Self {
            key: keys.moved(from),
            from: from.clone(),
            to: to.clone(),
            blocks: blocks.collect(),
        }
    }
}

impl Change for EndedMove {
    type Outcome = MoveEnded;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.extend([RowKey::Move(self.key), RowKey::AllMoves]);
        for (of_new, of_former) in &self.blocks {
            keys.extend([RowKey::Block(*of_new), RowKey::Block(*of_former)]);
        }
    }

    /// Blocks of the new identity hold for both: nobody said whose they are, and the times of calls do not order them, because a clock may have
    /// stepped back. Of two blocks of the same scope the one that ends later stays.
    fn decide(&self, rows: &mut Rows) -> MoveEnded {
        let moved = rows.moves.get(self.key).filter(|moved| moved.to == self.to);
        if moved.is_none() {
            return MoveEnded::Before;
        }
        for (of_new, of_former) in &self.blocks {
            let Some(block) = rows.blocks.get(*of_new).cloned() else {
                continue;
            };
            let own = rows.blocks.get(*of_former);
            if own.is_none_or(|own| own.ends_before(&block)) {
                let tpp = ForbiddenTpp::of(&self.from);
                rows.blocks.put(*of_former, Block { tpp, ..block });
            }
        }
        rows.moves.remove(self.key);
        MoveEnded::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockScope;
    use portvakt_base::clock::Timestamp;

    const NEW: &str = "PSDNO-FSA-9";

    fn tpp(name: &str) -> TppId {
        TppId::parse(name).unwrap()
    }

    fn keys() -> Keys {
        Keys::new(&[7; 32])
    }

    fn moved(from: &str, to: &str) -> Move {
        Move {
            from: tpp(from),
            to: tpp(to),
            since: Timestamp::from_unix(1_000),
        }
    }

    /// Rows as an engine loads them for a change, where these moves are stored.
    fn loaded(change: &impl Change, moves: &[Move], blocks: &[Block]) -> Rows {
        let (mut rows, mut wanted) = (Rows::default(), Vec::new());
        for moved in moves {
            rows.moves
                .load(keys().moved(&moved.from), Some(moved.clone()));
        }
        for block in blocks {
            let key = keys().block(&block.tpp, block.scope);
            rows.blocks.load(key, Some(block.clone()));
        }
        change.keys(&mut wanted);
        for key in wanted {
            match key {
                RowKey::Move(key) if !rows.moves.has(key) => rows.moves.load(key, None),
                RowKey::Block(key) if !rows.blocks.has(key) => rows.blocks.load(key, None),
                RowKey::AllMoves => rows.has_all_moves = true,
                _ => {}
            }
        }
        rows
    }

    /// QUO-1: the moves are counted where they are written, not where a process remembers them.
    #[test]
    fn a_fourth_former_identity_is_refused_on_the_rows_of_its_transaction() {
        let names = ["PSDNO-FSA-1", "PSDNO-FSA-2", "PSDNO-FSA-3"];
        let three = names.map(|name| moved(name, NEW));
        let fourth = NewMove::new(&keys(), moved("PSDNO-FSA-4", NEW));
        let mut rows = loaded(&fourth, &three, &[]);
        assert_eq!(fourth.decide(&mut rows), Moved::TooMany);
        assert!(rows.is_complete() && rows.changed_moves().next().is_none());
        let mut rows = loaded(&fourth, &three[..2], &[]);
        assert_eq!(fourth.decide(&mut rows), Moved::Done);
        // Of two moves in one batch the second sees the first.
        let fifth = NewMove::new(&keys(), moved("PSDNO-FSA-5", NEW));
        rows.moves.load(keys().moved(&tpp("PSDNO-FSA-5")), None);
        assert_eq!(fifth.decide(&mut rows), Moved::TooMany);
        assert!(rows.is_complete());
        // Former identities of the TPP that moves are counted too.
        let chain = NewMove::new(&keys(), moved(NEW, "PSDNO-FSA-10"));
        let mut rows = loaded(&chain, &three, &[]);
        assert_eq!(chain.decide(&mut rows), Moved::TooMany);
    }

    //= CTL-4 refused
    #[test]
    fn a_move_leads_to_an_identity_that_is_not_moved_itself() {
        let (one, two, three) = ("PSDNO-FSA-1", "PSDNO-FSA-2", "PSDNO-FSA-3");
        for (stored, outcome) in [
            (moved(two, one), Moved::Reverse),
            (moved(two, three), Moved::TargetMoved),
            (moved(one, two), Moved::Before),
            (moved(one, three), Moved::Elsewhere),
        ] {
            let change = NewMove::new(&keys(), moved(one, two));
            let mut rows = loaded(&change, &[stored], &[]);
            assert_eq!(change.decide(&mut rows), outcome);
            assert!(rows.is_complete() && rows.changed_moves().next().is_none());
        }
    }

    #[test]
    fn a_move_that_was_counted_without_all_rows_is_not_written() {
        let change = NewMove::new(&keys(), moved("PSDNO-FSA-1", NEW));
        let mut rows = loaded(&change, &[], &[]);
        rows.has_all_moves = false;
        change.decide(&mut rows);
        assert!(!rows.is_complete());
    }

    /// CTL-2: neither a clock that stepped back nor a shorter block of the former identity loses a block.
    #[test]
    fn the_end_of_a_move_loses_no_block() {
        let at = Timestamp::from_unix;
        let block = |name: &str, since, until| Block {
            tpp: ForbiddenTpp::of(&tpp(name)),
            scope: BlockScope::All,
            reason: "fraud".into(),
            since: at(since),
            until,
        };
        let former = "PSDNO-FSA-1";
        for (own, new, left) in [
            (None, (900, None), None),
            (None, (1_100, Some(at(2_000))), Some(at(2_000))),
            (Some(Some(at(1_500))), (900, None), None),
            (
                Some(Some(at(1_500))),
                (1_100, Some(at(2_000))),
                Some(at(2_000)),
            ),
            (
                Some(Some(at(2_500))),
                (1_100, Some(at(2_000))),
                Some(at(2_500)),
            ),
            (Some(None), (1_100, Some(at(2_000))), None),
        ] {
            let of_new = block(NEW, new.0, new.1);
            let mut blocks = vec![of_new.clone()];
            blocks.extend(own.map(|until| block(former, 800, until)));
            let ended = EndedMove::new(&keys(), &tpp(former), &tpp(NEW), &[of_new]);
            let mut rows = loaded(&ended, &[moved(former, NEW)], &blocks);
            assert_eq!(ended.decide(&mut rows), MoveEnded::Done);
            let key = keys().block(&ForbiddenTpp::of(&tpp(former)), BlockScope::All);
            assert_eq!(rows.blocks.get(key).unwrap().until, left);
        }
    }
}
