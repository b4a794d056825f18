//! An SCA that is under way: the link that starts it, the token in the link, and the redirect that ends it.
//!
//! Nothing is stored of an SCA before it is completed (SCA-12): the link carries it whole, sealed, so strangers cannot
//! fill the state and any replica finishes what another began. Invariants: the content that [`Links::open`] returns was written by a
//! gateway of this environment that holds one of the token keys, and not altered since; no one without a key reads
//! anything in a token but the id of its key; a national identity number is in none, since [`Pending`] has no place for
//! one (HDR-12). Deliberately not here: whether an SCA is needed (admission), whether a token is spent (the store), and
//! who completes it (the control listener).

mod keys;
mod links;
mod redirect;
mod rotate;
mod seals;
mod settings;
mod token;

pub use keys::{KeyFault, TokenKeys};
pub use links::{Links, Opened, TokenFault};
pub use redirect::{Failure, completed, failed};
pub use rotate::{Rotated, rotate};
pub use seals::{MOST_SEALS, SEALS_ALERT, SealFault, SealsFault, check as check_seals};
pub use settings::{PsuPresent, ScaSettings, UnknownPsu};

use crate::interface::{
    TppId,
    headers::{CorporateId, PsuContext, PsuId, RedirectUri, SessionId},
    operations::Environment,
};
use std::fmt;

/// An SCA that a request started and that nobody has finished yet (SCA-12).
///
/// `Debug` shows neither PSU nor agreement nor session.
#[derive(Clone, PartialEq, Eq)]
pub struct Pending {
    /// The environment that it was started in.
    pub environment: Environment,
    /// The TPP's identity (CRT-4).
    pub tpp: TppId,
    /// The TPP's name, as its certificate has it; empty where it has none, and in a token of an earlier version.
    pub tpp_name: String,
    /// TPP-Session-ID: the TPP's, or one that the gateway issued (SCA-9).
    pub session: SessionId,
    /// TPP-Redirect-URI, as it was signed (HDR-8).
    pub redirect_uri: RedirectUri,
    /// TPP-Redirect-Preferred (SCA-15).
    pub preferred: bool,
    /// The operation that started it, by its name in the catalogue.
    pub operation: String,
    /// The path of the payment or basket that it is for.
    pub resource: Option<String>,
    /// Whether an account information or consent operation started it: then consent is asked for too (SCA-18).
    pub asks_consent: bool,
    /// PSU-Context, where the request has one.
    pub context: Option<PsuContext>,
    /// PSU-Corporate-ID: the agreement that was chosen (SCA-17).
    pub corporate: Option<CorporateId>,
    /// PSU-ID, only where it is bound to this TPP (SCA-3).
    pub psu: Option<PsuId>,
}

impl fmt::Debug for Pending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pending")
            .field("environment", &self.environment)
            .field("tpp", &self.tpp)
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}
