//! Blocks of TPPs by the bank's calls (CTL-2).

use crate::{
    Block, BlockHash, BlockScope, Blocked, Keys, Lifted,
    change::Change,
    rows::{RowKey, Rows},
};
use portvakt_interface::ForbiddenTpp;

/// A block that the bank makes, or changes.
pub(crate) struct NewBlock {
    key: BlockHash,
    block: Block,
}

/// A block that the bank takes back.
pub(crate) struct LiftedBlock(BlockHash);

/// One block for each TPP, in whatever spelling, and each scope.
fn key(keys: &Keys, tpp: &ForbiddenTpp, scope: BlockScope) -> BlockHash {
    keys.block(tpp, scope)
}

impl NewBlock {
    pub(crate) fn new(keys: &Keys, block: Block) -> Self {
        Self {
            key: key(keys, &block.tpp, block.scope),
            block,
        }
    }
}

impl LiftedBlock {
    pub(crate) fn new(keys: &Keys, tpp: &ForbiddenTpp, scope: BlockScope) -> Self {
        Self(key(keys, tpp, scope))
    }
}

impl Change for NewBlock {
    type Outcome = Blocked;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.push(RowKey::Block(self.key));
    }

    fn decide(&self, rows: &mut Rows) -> Blocked {
        let outcome = match rows.blocks.get(self.key) {
            None => Blocked::New,
            // The time of the first call stays.
            Some(stored)
                if (&stored.reason, stored.until) == (&self.block.reason, self.block.until) =>
            {
                return Blocked::Before;
            }
            Some(_) => Blocked::Changed,
        };
        rows.blocks.put(self.key, self.block.clone());
        outcome
    }
}

impl Change for LiftedBlock {
    type Outcome = Lifted;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.push(RowKey::Block(self.0));
    }

    fn decide(&self, rows: &mut Rows) -> Lifted {
        if rows.blocks.get(self.0).is_none() {
            return Lifted::Unknown;
        }
        rows.blocks.remove(self.0);
        Lifted::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portvakt_base::clock::Timestamp;
    use portvakt_interface::TppId;

    //= CTL-2 accepted
    #[test]
    fn a_block_ends_as_the_last_call_said_and_a_lifted_one_is_gone() {
        let (keys, tpp) = (
            Keys::new(&[7; 32]),
            ForbiddenTpp::of(&TppId::parse("PSDNO-FSA-1").unwrap()),
        );
        let block = |until: u64| Block {
            tpp: tpp.clone(),
            scope: BlockScope::All,
            reason: "fraud".into(),
            since: Timestamp::from_unix(1),
            until: Some(Timestamp::from_unix(until)),
        };
        let key = keys.block(&tpp, BlockScope::All);
        let mut rows = Rows::default();
        rows.blocks.load(key, None);
        for (until, outcome) in [
            (10, Blocked::New),
            (10, Blocked::Before),
            (20, Blocked::Changed),
        ] {
            assert_eq!(
                NewBlock::new(&keys, block(until)).decide(&mut rows),
                outcome
            );
            assert_eq!(rows.blocks.get(key), Some(&block(until)));
        }
        let lift = LiftedBlock::new(&keys, &tpp, BlockScope::All);
        assert_eq!(lift.decide(&mut rows), Lifted::Done);
        assert_eq!(rows.blocks.get(key), None);
        assert_eq!(lift.decide(&mut rows), Lifted::Unknown);
    }
}
