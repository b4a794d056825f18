//! What the store knows of a PSU: from the memory of this process, or by asking the engine.
//!
//! Invariant: a fact by which a request is forwarded has the moment as of which it is known ([`Dated`]). Deliberately not here: changes.

use super::{
    Bind, Bound, Claimed, Dated, Known, KnownPsu, Named, Psu, PsuHash, PsuRef, Removal, StateStore,
    Unavailable,
    change::Change,
    engine::Engine,
    rows,
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
        let facts = self.cached(self.keys.psu(psu.to_seek()), tpp).await?;
        Ok(facts.map(|facts| facts.map(|facts| KnownPsu::found(psu, facts))))
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
        let facts = self.read(self.keys.psu(psu.to_seek()), tpp).await?;
        Ok(facts.map(|facts| facts.map(|facts| KnownPsu::found(psu, facts))))
    }

    /// A PSU of a TPP, by the bank's word; possibly from the cache. Without its moment, nothing can be forwarded by it.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn psu(&self, who: PsuRef<'_>) -> Result<Option<Arc<Psu>>, Unavailable> {
        let known = self.cached(self.keys.psu(who.psu), who.tpp).await;
        known.map(|known| known.fact)
    }

    /// A PSU of a TPP, never from the cache. Without its moment, nothing can be forwarded by it.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn psu_now(&self, who: PsuRef<'_>) -> Result<Option<Arc<Psu>>, Unavailable> {
        let known = self.read(self.keys.psu(who.psu), who.tpp).await;
        known.map(|known| known.fact)
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
        Ok(bound.fact.map(|bound| bound.tpp))
    }

    /// What [`StateStore::bind`] would change: the same decision, on rows that are not written.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn would_bind(&self, bind: &Bind<'_>) -> Result<Bound, Unavailable> {
        let psu = self.keys.psu(bind.who.psu);
        let mut rows = rows::Rows::default();
        rows.psus.load(psu, self.engine.psu(psu).await?.fact);
        Ok(NewBinding::by_bank(&self.keys, bind).decide(&mut rows))
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
    ) -> Result<Dated<Option<Arc<Psu>>>, Unavailable> {
        match self.process.cached_psu(psu) {
            Some(bound) => Ok(bound.map(|bound| (bound.tpp == *tpp).then_some(bound.psu))),
            None => self.read(psu, tpp).await,
        }
    }

    async fn read(
        &self,
        psu: PsuHash,
        tpp: &TppId,
    ) -> Result<Dated<Option<Arc<Psu>>>, Unavailable> {
        let stored = self.engine.psu(psu).await?;
        Ok(stored.map(|bound| {
            let bound = bound.filter(|bound| bound.tpp == *tpp);
            bound.map(|bound| bound.psu)
        }))
    }
}
