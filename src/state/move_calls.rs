//! The store's functions for TPPs that changed their identity (CTL-4), and for the end of blocks, which follow them.

use super::{
    BlockScope, Lifted, Move, Moved, StateStore, Unavailable,
    engine::Engine,
    rules::{LiftedBlock, NewMove},
};
use portvakt_interface::ForbiddenTpp;

impl StateStore {
    /// Gives everything of a TPP to another identity of the same TPP (CTL-4). When this function returns, it holds in this process.
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn move_tpp(&self, moved: Move) -> Result<Moved, Unavailable> {
        self.engine.commit(NewMove::new(&self.keys, moved)).await
    }

    /// Every move, never from memory.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn list_moves(&self) -> Result<Vec<Move>, Unavailable> {
        let standing = self.engine.standing().await?;
        let moves = standing.fact.moves.into_iter();
        Ok(moves.map(|(_, moved)| moved).collect())
    }

    /// The former identities of a TPP, in every spelling: blocks of them are its own.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn formers_of(&self, tpp: &ForbiddenTpp) -> Result<Vec<ForbiddenTpp>, Unavailable> {
        let standing = self.blocks_now().await?;
        let formers = standing.moves().formers_of(tpp);
        Ok(formers.map(ForbiddenTpp::of).collect())
    }

    /// Takes a block of a TPP back (CTL-2), in whatever spelling its identity is written, and those of its former identities (CTL-4).
    ///
    /// # Errors
    /// The store is unavailable: blocks of former identities may be gone.
    pub async fn unblock(
        &self,
        tpp: &ForbiddenTpp,
        scope: BlockScope,
    ) -> Result<Lifted, Unavailable> {
        let mut outcome = Lifted::Unknown;
        let formers = self.formers_of(tpp).await?;
        for tpp in formers.iter().chain([tpp]) {
            let lifted = LiftedBlock::new(&self.keys, tpp, scope);
            if self.engine.commit(lifted).await? == Lifted::Done {
                outcome = Lifted::Done;
            }
        }
        Ok(outcome)
    }
}
