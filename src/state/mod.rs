//! What outlives a request: the PSU's binding, sessions and consents, the quota, request ids.
//!
//! [`Store`] is an enum over its kinds, so that the request's path needs no boxed future. There is one kind yet: none.
//! The SQLite one and the Redis one become variants of it.

use crate::admission::{Claim, Judged, Unbuilt};

/// Where state is kept.
#[derive(Debug, Default)]
pub enum Store {
    /// Nothing is kept: nothing can be claimed, and every claim says so.
    #[default]
    Stateless,
}

impl Store {
    /// Claims the first use of a request id and one call of the quota, all or nothing (REP-1, QUO-5).
    pub const fn claim(&self) -> Judged<Claim> {
        match self {
            Self::Stateless => Judged::unbuilt(Unbuilt::Claim),
        }
    }
}
