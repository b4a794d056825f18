//! May the PSU's data be read, or the PSU's money be moved (SCA-8)?
//!
//! Not built: no store keeps consents and sessions yet.

use super::{Judged, Unbuilt};
use crate::state::Store;

/// What the operation needs of the PSU holds: a binding, a consent, a session. Nothing earns one yet.
#[must_use]
#[derive(Debug)]
pub struct Grant {
    _earned: (),
}

pub(super) const fn judge(store: &Store) -> Judged<Grant> {
    match store {
        Store::Stateless | Store::Kept(_) => Judged::unbuilt(Unbuilt::Sca),
    }
}
