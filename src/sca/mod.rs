//! An SCA that is under way: the link that starts it, the token in the link, and the redirect that ends it.
//!
//! Nothing is stored of an SCA before it is completed (SCA-12): the link carries it whole, sealed, so strangers cannot
//! fill the state and any replica finishes what another began. Invariants: the content that [`Links::open`] returns was written by a
//! gateway of this environment that holds one of the token keys, and not altered since; no one without a key reads
//! anything in a token but the id of its key; a national identity number is in none, since [`Pending`] has no place for
//! one (HDR-12). Deliberately not here: whether an SCA is needed (admission), whether a token is spent (the store), and
//! who completes it (the control listener).

mod key_id;
mod keys;
mod links;
mod pending;
mod redirect;
mod rotate;
mod seals;
mod settings;
mod token;

pub use keys::{KeyFault, TokenKeys};
pub use links::{Links, Opened, TokenFault};
pub use pending::Pending;
pub use redirect::{Failure, completed, failed};
pub use rotate::{Rotated, rotate};
pub use seals::{MOST_SEALS, SEALS_ALERT, SealFault, SealsFault, check as check_seals};
pub use settings::{PsuPresent, ScaSettings, UnknownPsu};
