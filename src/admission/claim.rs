//! Is this the first use of the request id, and one of the calls that the quota allows (REP-1, QUO-5)?
//!
//! Not built: no store keeps either yet.

use super::{Judged, Unbuilt};
use crate::state::Store;

/// The request id is used for the first time, and the call is one of those that the quota allows, both counted in one
/// step. Nothing earns one yet.
#[must_use]
#[derive(Debug)]
pub struct Claim {
    _earned: (),
}

pub(super) const fn claim(store: &Store) -> Judged<Claim> {
    match store {
        Store::Stateless | Store::Kept(_) => Judged::unbuilt(Unbuilt::Claim),
    }
}
