//! The store's functions for blocks of TPPs (CTL-2).

use super::{
    Block, Blocked, Blocks, StateStore, Unavailable, blocks::Standing, engine::Engine,
    rules::NewBlock,
};
use std::sync::Arc;

/// The most times that the engine is asked for one answer: it may be too old already where the engine is slow.
const ASKS: usize = 3;

impl StateStore {
    /// The blocks of TPPs in the memory of this process (CTL-2): for an early refusal. [`StateStore::blocks_now`] decides, alone where memory
    /// may not be used.
    pub fn blocks(&self) -> Arc<Blocks> {
        self.process.current_blocks().unwrap_or_default()
    }

    /// The blocks of TPPs (CTL-2), at most a second old: from memory where it may be used, and otherwise from the engine.
    ///
    /// # Errors
    /// The store is unavailable, or answers too slowly.
    pub async fn blocks_now(&self) -> Result<Arc<Blocks>, Unavailable> {
        for _ in 0..ASKS {
            if let Some(blocks) = self.process.current_blocks() {
                return Ok(blocks);
            }
            let standing = self.engine.standing().await?;
            if standing.as_of.is_fresh() {
                let Standing { blocks, moves } = &standing.fact;
                let blocks = blocks.iter().map(|(_, block)| block);
                let moves = moves.iter().map(|(_, moved)| moved);
                return Ok(Arc::new(Blocks::new(blocks, moves)));
            }
        }
        Err(Unavailable("the state answers too slowly".into()))
    }

    /// Every block of a TPP, never from memory; also those that have ended.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn list_blocks(&self) -> Result<Vec<Block>, Unavailable> {
        let blocks = self.engine.standing().await?.fact.blocks.into_iter();
        Ok(blocks.map(|(_, block)| block).collect())
    }

    /// Blocks a TPP (CTL-2). When this function returns, the block applies in this process.
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn block(&self, block: Block) -> Result<Blocked, Unavailable> {
        self.engine.commit(NewBlock::new(&self.keys, block)).await
    }
}
