//! The store's functions for TPPs that changed their identity (CTL-4), and for the end of blocks, which follow them.

use super::{
    BlockScope, Lifted, Move, MoveEnded, Moved, StateStore, Unavailable,
    engine::Engine,
    rules::{EndedMove, LiftedBlock, NewMove},
};
use portvakt_interface::{ForbiddenTpp, TppId};

impl StateStore {
    /// Gives everything of a TPP to another identity of the same TPP (CTL-4). When this function returns, it holds in this process.
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn move_tpp(&self, moved: Move) -> Result<Moved, Unavailable> {
        self.engine.commit(NewMove::new(&self.keys, moved)).await
    }

    /// Ends the move of a TPP (CTL-4): each identity has its own again. Blocks of the new one hold for both.
    ///
    /// # Errors
    /// The store is unavailable: nothing changed.
    pub async fn end_move(&self, from: &TppId, to: &TppId) -> Result<MoveEnded, Unavailable> {
        let mut blocks = self.list_blocks().await?;
        blocks.retain(|block| block.tpp.names(to));
        let ended = EndedMove::new(&self.keys, from, to, &blocks);
        self.engine.commit(ended).await
    }

    /// A TPP's identity and its former ones, at most a second old as blocks are; empty where no TPP has another identity.
    ///
    /// # Errors
    /// The store is unavailable, or answers too slowly.
    pub async fn names_of(&self, tpp: &TppId) -> Result<Vec<TppId>, Unavailable> {
        let standing = self.blocks_now().await?;
        let moves = standing.moves();
        if moves.is_empty() {
            return Ok(Vec::new());
        }
        let names = std::iter::once(tpp).chain(moves.formers(tpp));
        Ok(names.cloned().collect())
    }

    /// Whether a call that takes something away from a TPP means this one, by its identity or by a former one, in whatever spelling.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn is_meant(&self, tpp: &ForbiddenTpp, owner: &TppId) -> Result<bool, Unavailable> {
        if tpp.names(owner) {
            return Ok(true);
        }
        let standing = self.blocks_now().await?;
        Ok(standing
            .moves()
            .formers(owner)
            .any(|former| tpp.names(former)))
    }

    /// Whether a TPP has another identity now, so that nothing can be bound to it.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn is_former(&self, tpp: &TppId) -> Result<bool, Unavailable> {
        Ok(self.blocks_now().await?.moves().is_former(tpp))
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
