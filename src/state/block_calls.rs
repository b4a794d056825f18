//! The store's functions for blocks of TPPs (CTL-2).

use super::{
    Block, BlockScope, Blocked, Blocks, Lifted, StateStore, Unavailable,
    engine::Engine,
    rules::{LiftedBlock, NewBlock},
};
use portvakt_interface::ForbiddenTpp;
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
            let blocks = self.engine.blocks().await?;
            if blocks.as_of.is_fresh() {
                let blocks = blocks.fact.into_iter().map(|(_, block)| block);
                return Ok(Arc::new(Blocks::new(blocks)));
            }
        }
        Err(Unavailable("the state answers too slowly".into()))
    }

    /// Every block of a TPP, never from memory; also those that have ended.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn list_blocks(&self) -> Result<Vec<Block>, Unavailable> {
        let blocks = self.engine.blocks().await?;
        Ok(blocks.fact.into_iter().map(|(_, block)| block).collect())
    }

    /// Blocks a TPP (CTL-2). When this function returns, the block applies in this process.
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn block(&self, block: Block) -> Result<Blocked, Unavailable> {
        self.engine.commit(NewBlock::new(&self.keys, block)).await
    }

    /// Takes a block of a TPP back (CTL-2), in whatever spelling its identity is written.
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn unblock(
        &self,
        tpp: &ForbiddenTpp,
        scope: BlockScope,
    ) -> Result<Lifted, Unavailable> {
        let lifted = LiftedBlock::new(&self.keys, tpp, scope);
        self.engine.commit(lifted).await
    }
}
