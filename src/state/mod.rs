//! What outlives a request: the PSU's binding, sessions and consents, the quota, request ids, SCA that was completed.
//!
//! On the request's path there are two verbs: [`Store::psu`] looks a PSU up, [`Store::commit`] claims a request id and a
//! call of the quota in one step. Elsewhere: [`Kept::give_back`], [`Kept::finish`], [`Kept::bind`],
//! [`Kept::withdraw`]. Each is one step that happens whole or not at all, across processes and crashes.
//!
//! Invariants: no PSU-ID, account or session id is kept in clear ([`Keys`]); what says "no" is never answered from
//! memory where another process could have said "yes" since. Deliberately not here: what a stored fact permits. That is
//! admission's, which turns it into evidence, and the time is always the caller's.

mod keys;
mod psu;
mod verbs;

pub use keys::{Hash, Keys};
pub use psu::{Accounts, Consent, Context, Psu, Session};
pub use verbs::{
    Asked, Bind, Bound, Completion, Decision, Finish, Finished, Left, Page, PsuRef, QuotaAsked,
    RequestAsked, Taken, Unavailable, Withdraw, Withdrawn,
};

use std::sync::Arc;

/// Where state is kept.
#[derive(Debug, Default)]
pub enum Store {
    /// Nothing is kept, so nothing can be looked up or claimed: for judging a request that is not to be forwarded.
    #[default]
    Stateless,
    /// It is kept.
    Kept(Arc<Kept>),
}

/// State that is kept.
#[derive(Debug)]
pub struct Kept {
    keys: Keys,
}

impl Kept {
    /// The key of its hashes.
    pub const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// A PSU of a TPP (SCA-3), perhaps from memory: what it permits is good, what it does not is to be asked again
    /// with [`Kept::psu_now`].
    ///
    /// # Errors
    /// The store is away.
    pub async fn psu(&self, who: PsuRef<'_>) -> Result<Option<Arc<Psu>>, Unavailable> {
        self.psu_now(who).await
    }

    /// The same, never from memory.
    ///
    /// # Errors
    /// The store is away.
    pub async fn psu_now(&self, _who: PsuRef<'_>) -> Result<Option<Arc<Psu>>, Unavailable> {
        Err(Unavailable("not built".into()))
    }

    /// Takes what a request needs, all or nothing, and answers when it is durable (QUO-5 to QUO-7, REP-1).
    ///
    /// # Errors
    /// The store is away: nothing is taken.
    pub async fn commit(&self, _asked: Asked) -> Result<Decision, Unavailable> {
        Err(Unavailable("not built".into()))
    }

    /// Gives back the call of the quota (QUO-5); where the upstream was never connected the request id too (REP-1).
    /// It is durable when this answers.
    ///
    /// # Errors
    /// The store is away: nothing is given back.
    pub async fn give_back(&self, _taken: &Taken, _connected: bool) -> Result<(), Unavailable> {
        Err(Unavailable("not built".into()))
    }

    /// An SCA ended: its token is spent, and what it gives is kept, in one step (SCA-12).
    ///
    /// # Errors
    /// The store is away: nothing changed.
    pub async fn finish(&self, _finish: Finish<'_>) -> Result<Finished, Unavailable> {
        Err(Unavailable("not built".into()))
    }

    /// Brings a PSU in, or up to date (SCA-19, SCA-21).
    ///
    /// # Errors
    /// The store is away: nothing changed.
    pub async fn bind(&self, _bind: Bind<'_>) -> Result<Bound, Unavailable> {
        Err(Unavailable("not built".into()))
    }

    /// Takes a consent or a session back (SCA-13).
    ///
    /// # Errors
    /// The store is away: nothing changed.
    pub async fn withdraw(
        &self,
        _who: PsuRef<'_>,
        _what: Withdraw,
    ) -> Result<Withdrawn, Unavailable> {
        Err(Unavailable("not built".into()))
    }
}
