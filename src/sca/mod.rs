//! A pending SCA: the link that starts it, the token in the link, and the redirect that ends it.
//!
//! Nothing is stored of an SCA before it is completed (SCA-12): the link carries the whole SCA, sealed. So unauthenticated callers cannot
//! fill the state, and any replica can finish an SCA of another. Invariants: a gateway of this environment that holds one of the token keys
//! wrote the content that [`Links::open`] returns, and nobody altered it; without a key only the id of the key is readable in a token; no
//! token has a national identity number, because [`Pending`] has no field for it (HDR-12). Deliberately not here: whether an SCA is needed
//! (admission), whether a token is spent (the store), and the completion of the SCA (the control listener).

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

#[cfg(test)]
mod exhaustive;
