//! The content of a link (SCA-12).

use crate::interface::{
    TppId,
    headers::{CorporateId, PsuContext, PsuId, RedirectUri, SessionId},
    operations::Environment,
};
use crate::state::{Claimed, Known};
use std::fmt;

/// An SCA that a request started and that is not finished yet (SCA-12).
///
/// `Debug` shows neither PSU nor agreement nor session.
#[derive(Clone, PartialEq, Eq)]
pub struct Pending {
    /// The environment in which the SCA was started.
    pub environment: Environment,
    /// The TPP's identity (CRT-4).
    pub tpp: TppId,
    /// The TPP's name in its certificate; empty if there is none, and in a token of an earlier version.
    pub tpp_name: String,
    /// TPP-Session-ID: the TPP's, or one that the gateway issued (SCA-9).
    pub session: SessionId,
    /// TPP-Redirect-URI, as it was signed (HDR-8).
    pub redirect_uri: RedirectUri,
    /// TPP-Redirect-Preferred (SCA-15).
    pub preferred: bool,
    /// The operation that started the SCA, by its name in the catalogue.
    pub operation: String,
    /// The path of the payment or basket that the PSU signs.
    pub resource: Option<String>,
    /// Whether an account information or consent operation started the SCA, which then also asks for consent (SCA-18).
    pub asks_consent: bool,
    /// PSU-Context, if the request has one.
    pub context: Option<PsuContext>,
    /// PSU-Corporate-ID: the agreement that the TPP says was chosen (SCA-17). The bank decides.
    pub corporate: Option<Claimed<CorporateId>>,
    /// PSU-ID, only if it is bound to this TPP (SCA-3).
    pub psu: Option<Known<PsuId>>,
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
