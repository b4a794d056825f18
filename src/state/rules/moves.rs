//! A TPP that changed its identity (CTL-4).

use crate::{
    Keys, Move, MoveHash, Moved,
    change::Change,
    rows::{RowKey, Rows},
};

/// A move by the bank, or the end of one.
pub(crate) struct NewMove {
    from: MoveHash,
    to: MoveHash,
    moved: Move,
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
        if rows
            .moves
            .get(self.to)
            .is_some_and(|moved| moved.to == *from)
        {
            rows.moves.remove(self.to);
            return Moved::Undone;
        }
        match rows.moves.get(self.from) {
            Some(moved) if moved.to == *to => return Moved::Before,
            Some(_) => return Moved::Elsewhere,
            None => {}
        }
        if rows.moves.get(self.to).is_some() {
            return Moved::TargetMoved;
        }
        rows.moves.put(self.from, self.moved.clone());
        Moved::Done
    }
}
