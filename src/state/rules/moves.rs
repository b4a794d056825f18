//! A TPP that changed its identity (CTL-4).

use crate::{
    Block, BlockHash, Keys, Move, MoveEnded, MoveHash, Moved,
    change::Change,
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
        keys.extend([RowKey::Move(self.from), RowKey::Move(self.to)]);
    }

    /// A TPP is moved to one that is not moved itself, so that no circle arises.
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
        keys.push(RowKey::Move(self.key));
        for (of_new, of_former) in &self.blocks {
            keys.extend([RowKey::Block(*of_new), RowKey::Block(*of_former)]);
        }
    }

    /// Blocks that were made of the new identity since the move hold for both: nobody said whose they are.
    fn decide(&self, rows: &mut Rows) -> MoveEnded {
        let moved = rows.moves.get(self.key).filter(|moved| moved.to == self.to);
        let Some(since) = moved.map(|moved| moved.since) else {
            return MoveEnded::Before;
        };
        for (of_new, of_former) in &self.blocks {
            let made_since = rows
                .blocks
                .get(*of_new)
                .filter(|block| block.since >= since);
            let Some(block) = made_since.cloned() else {
                continue;
            };
            if rows.blocks.get(*of_former).is_none() {
                let tpp = ForbiddenTpp::of(&self.from);
                rows.blocks.put(*of_former, Block { tpp, ..block });
            }
        }
        rows.moves.remove(self.key);
        MoveEnded::Done
    }
}
