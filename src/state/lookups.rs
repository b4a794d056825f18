//! What the store knows of a PSU: from the memory of this process, or by asking the engine.
//!
//! Invariant: a fact by which a request is forwarded has the moment as of which it is known ([`Dated`]). Deliberately not here: changes.

use super::{
    Bind, Bound, Claimed, Dated, Known, KnownPsu, Named, Psu, PsuHash, PsuRef, Removal, StateStore,
    Unavailable,
    change::Change,
    engine::Engine,
    rows::{self, BoundPsu, RowKey},
    rules::{LastRemoval, NewBinding},
};
use portvakt_interface::{TppId, headers::PsuId};
use std::sync::Arc;

impl StateStore {
    /// The PSU that a TPP names (SCA-3), possibly from the cache: a permission may be based on it, but a refusal must be checked again with
    /// [`StateStore::find_now`].
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn find(
        &self,
        tpp: &TppId,
        psu: Claimed<PsuId>,
    ) -> Result<Dated<Option<KnownPsu>>, Unavailable> {
        let bound = self.cached(self.keys.psu(psu.to_seek()), tpp).await?;
        Ok(bound.map(|bound| bound.map(|bound| KnownPsu::found(psu, bound))))
    }

    /// The PSU that a TPP names, never from the cache.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn find_now(
        &self,
        tpp: &TppId,
        psu: Claimed<PsuId>,
    ) -> Result<Dated<Option<KnownPsu>>, Unavailable> {
        let bound = self.read(self.keys.psu(psu.to_seek()), tpp).await?;
        Ok(bound.map(|bound| bound.map(|bound| KnownPsu::found(psu, bound))))
    }

    /// A PSU of a TPP, by the bank's word; possibly from the cache. Without its moment, nothing can be forwarded by it.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn psu(&self, who: PsuRef<'_>) -> Result<Option<Arc<Psu>>, Unavailable> {
        let known = self.cached(self.keys.psu(who.psu), who.tpp).await?;
        self.unless_former(who.tpp, known.fact).await
    }

    /// A PSU of a TPP, never from the cache. Without its moment, nothing can be forwarded by it.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn psu_now(&self, who: PsuRef<'_>) -> Result<Option<Arc<Psu>>, Unavailable> {
        let known = self.read(self.keys.psu(who.psu), who.tpp).await?;
        self.unless_former(who.tpp, known.fact).await
    }

    /// Whether a PSU-ID is bound to any TPP (SCA-19); never from the cache.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn is_taken(&self, psu: Claimed<PsuId>) -> Result<bool, Unavailable> {
        let bound = self.engine.psu(self.keys.psu(psu.to_seek())).await?;
        Ok(bound.fact.is_some())
    }

    /// The TPP that a PSU-ID is bound to, by the bank's word; never from the cache.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn tpp_of(&self, psu: Known<PsuId>) -> Result<Option<TppId>, Unavailable> {
        let bound = self.engine.psu(self.keys.psu(psu)).await?;
        let Some(bound) = bound.fact else {
            return Ok(None);
        };
        let standing = self.blocks_now().await?;
        Ok(Some(standing.moves().owner(&bound.written).clone()))
    }

    /// What [`StateStore::bind`] would change: the same decision, on rows that are not written.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn would_bind(&self, bind: &Bind<'_>) -> Result<Bound, Unavailable> {
        let psu = self.keys.psu(bind.who.psu);
        let standing = self.blocks_now().await?;
        let binding = NewBinding::by_bank(&self.keys, standing.moves(), bind);
        let mut rows = rows::Rows::default();
        rows.psus.load(psu, self.engine.psu(psu).await?.fact);
        for (key, moved) in self.engine.standing().await?.fact.moves {
            rows.moves.load(key, Some(moved));
        }
        let mut keys = Vec::new();
        binding.keys(&mut keys);
        for key in keys {
            if let RowKey::Move(key) = key
                && !rows.moves.has(key)
            {
                rows.moves.load(key, None);
            }
        }
        Ok(binding.decide(&mut rows))
    }

    /// The last time that the bank took something of a PSU back: to be read before a request whose answer may teach goes to the core.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn last_removal(&self, psu: Named<PsuId>) -> Result<Removal, Unavailable> {
        let psu = self.keys.psu(psu.to_seek());
        self.engine.commit(LastRemoval(psu)).await
    }

    async fn cached(
        &self,
        psu: PsuHash,
        tpp: &TppId,
    ) -> Result<Dated<Option<BoundPsu>>, Unavailable> {
        match self.process.cached_psu(psu) {
            Some(bound) => self.of_tpp(bound.map(Some), tpp).await,
            None => self.read(psu, tpp).await,
        }
    }

    async fn read(
        &self,
        psu: PsuHash,
        tpp: &TppId,
    ) -> Result<Dated<Option<BoundPsu>>, Unavailable> {
        let stored = self.engine.psu(psu).await?;
        self.of_tpp(stored, tpp).await
    }

    /// The PSU, unless the TPP has another identity now (CTL-4).
    async fn unless_former(
        &self,
        tpp: &TppId,
        bound: Option<BoundPsu>,
    ) -> Result<Option<Arc<Psu>>, Unavailable> {
        let Some(bound) = bound else {
            return Ok(None);
        };
        let standing = self.blocks_now().await?;
        let is_own = !standing.moves().is_former(tpp);
        Ok(is_own.then(|| bound.facts(standing.moves())))
    }

    /// The PSU if it is the TPP's, by this identity or by a former one (CTL-4). A request of a TPP that has another identity now is refused
    /// with those of blocked ones.
    async fn of_tpp(
        &self,
        stored: Dated<Option<BoundPsu>>,
        tpp: &TppId,
    ) -> Result<Dated<Option<BoundPsu>>, Unavailable> {
        let is_own = match &stored.fact {
            Some(bound) if bound.written.as_stored() != tpp => {
                let standing = self.blocks_now().await?;
                standing.moves().owner(&bound.written) == tpp
            }
            Some(_) | None => true,
        };
        Ok(stored.map(|bound| bound.filter(|_| is_own)))
    }
}
