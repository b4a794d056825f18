//! The store's functions for one customer of the bank: what all TPPs may do in the customer's name (CTL-1).

use super::{
    AccessChange, AccessesOf, CustomerAccess, CustomerAccesses, CustomerKey, Known, PsuHash,
    StateStore, Unavailable,
    engine::Engine,
    rows::BoundPsu,
    rules::{Forgotten, NarrowedAccess, Used},
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::{
    TppId,
    headers::{CorporateId, PsuId},
};

/// The most PSU-IDs of a customer in one list.
const LISTED: u32 = 1_000;

/// The number of PSU-IDs in one step of a withdrawal.
const STEP: u32 = 500;

impl StateStore {
    /// The PSU-IDs of a customer of the bank (CTL-1), never from the cache.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn accesses_of(
        &self,
        customer: &CustomerKey,
    ) -> Result<CustomerAccesses, Unavailable> {
        let customer = self.keys.customer(customer);
        let mut found = self.engine.psus_of(customer, None, LISTED + 1).await?;
        let listed = usize::try_from(LISTED).unwrap_or(usize::MAX);
        let more = found.len() > listed;
        found.truncate(listed);
        let standing = self.blocks_now().await?;
        let access = |(psu, bound): (PsuHash, BoundPsu)| {
            let tpp = standing.moves().owner(&bound.written).clone();
            let facts = bound.facts(standing.moves());
            CustomerAccess { tpp, facts, psu }
        };
        Ok(CustomerAccesses {
            accesses: found.into_iter().map(access).collect(),
            more,
        })
    }

    /// Withdraws or narrows consents of a customer of the bank (CTL-1), in steps of some hundred PSU-IDs, each atomic. Returns an entry for
    /// each PSU-ID that is concerned, also where nothing ended.
    ///
    /// # Errors
    /// The store is unavailable: the steps before are done.
    pub async fn withdraw_accesses(
        &self,
        of: AccessesOf<'_>,
    ) -> Result<Vec<AccessChange>, Unavailable> {
        let customer = self.keys.customer(of.customer);
        let tpps = match of.tpp {
            Some(tpp) => {
                let mut tpps = self.formers_of(tpp).await?;
                tpps.push(tpp.clone());
                Some(tpps)
            }
            None => None,
        };
        let standing = self.blocks_now().await?;
        let mut changes = Vec::new();
        let mut after = None;
        loop {
            let found = self.engine.psus_of(customer, after, STEP).await?;
            let Some((last, _)) = found.last() else {
                return Ok(changes);
            };
            after = Some(*last);
            let psus = found.into_iter().map(|(psu, _)| psu).collect();
            let latest = self.process.clock.latest();
            let withdrawal = NarrowedAccess::new(&self.keys, of, tpps.clone(), psus, latest)?;
            let changed = self.engine.commit(withdrawal).await?.into_iter();
            changes.extend(changed.map(|change| AccessChange {
                tpp: standing.moves().owner(&change.written).clone(),
                psu: change.psu,
                ended: change.ended,
                narrowed: change.narrowed,
            }));
        }
    }

    /// Takes a customer's key off every PSU-ID (CTL-1). Bindings, sessions and consents stay. Returns the PSU-IDs that had it.
    ///
    /// # Errors
    /// The store is unavailable: the key may be gone from some of them.
    pub async fn forget_customer(
        &self,
        customer: &CustomerKey,
    ) -> Result<Vec<(TppId, PsuHash)>, Unavailable> {
        let customer = self.keys.customer(customer);
        let standing = self.blocks_now().await?;
        let mut forgotten = Vec::new();
        let mut after = None;
        loop {
            let found = self.engine.psus_of(customer, after, STEP).await?;
            let Some((last, _)) = found.last() else {
                return Ok(forgotten);
            };
            after = Some(*last);
            let psus = found.into_iter().map(|(psu, _)| psu).collect();
            let change = Forgotten { customer, psus };
            let done = self.engine.commit(change).await?.into_iter();
            let owner = |written| standing.moves().owner(&written).clone();
            forgotten.extend(done.map(|(written, psu)| (owner(written), psu)));
        }
    }

    /// Notes the day (UTC) on which a TPP used a context of a PSU (CTL-1). A day that is known already is not written again.
    ///
    /// # Errors
    /// The store is unavailable: the day is not written.
    pub async fn note_use(
        &self,
        psu: Known<PsuId>,
        corporate: Option<Known<CorporateId>>,
        at: Timestamp,
    ) -> Result<(), Unavailable> {
        let used = Used {
            psu: self.keys.psu(psu),
            corporate: corporate.map(|id| self.keys.corporate(id)),
            day: at.day(),
        };
        self.engine.commit(used).await
    }
}
