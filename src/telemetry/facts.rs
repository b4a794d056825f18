//! The facts that telemetry takes: of a request that has ended, and of the configuration in use.

use crate::{
    admission::{Outcome, Record},
    clock::Timestamp,
    interface::headers::RequestId,
    trust::{Registers, VerifiedCertificates, revocation::Counters as RevocationCounters},
};
use std::time::Duration;

/// A request that has ended.
#[derive(Debug)]
pub struct Finished<'a> {
    /// The record of its checks.
    pub record: &'a Record,
    /// The outcome.
    pub outcome: Outcome,
    /// The status of the answer, if one was sent.
    pub status: Option<u16>,
    /// X-Request-ID, if it is well-formed.
    pub request_id: Option<&'a RequestId>,
    /// Details for the operator only.
    pub operator: Option<&'a str>,
    /// From choosing the upstream to the head of its answer.
    pub upstream: Option<Duration>,
    /// The time of its end.
    pub at: Timestamp,
}

/// The facts of the current configuration that metrics show.
#[derive(Debug)]
pub struct ConfigurationFacts<'a> {
    /// When the configuration was taken into use.
    pub since: Timestamp,
    /// Ends of validity: the listener's own certificate, and the earliest of each set of anchors.
    pub ends: Vec<(&'static str, Timestamp)>,
    /// The certificates of TPPs by which a signature has verified.
    pub seen: VerifiedCertificates,
    /// The registers; `None` if they are not checked.
    pub registers: Option<&'a Registers>,
    /// The counters of revocation; `None` if it is not checked.
    pub revocation: Option<&'a RevocationCounters>,
    /// The number of tokens that each key of SCA links has sealed, by key id.
    pub seals: Vec<(String, u64)>,
}
