//! The facts that telemetry takes: of a request that has ended, of the configuration in use, and of the gateway at a scrape.

use crate::{
    admission::{Outcome, Record},
    clock::Timestamp,
    interface::{headers::RequestId, operations::Environment},
    state::Counters,
    trust::{Registers, Revocation, VerifiedCertificates},
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
    /// The head of the core's answer, if there was one.
    pub core: Option<CoreAnswered>,
    /// The time of its end.
    pub at: Timestamp,
}

/// The head of the core's answer.
#[derive(Clone, Copy, Debug)]
pub struct CoreAnswered {
    /// The core's own status.
    pub status: u16,
    /// From choosing the upstream to the head of its answer.
    pub took: Duration,
}

/// The gateway at a scrape of its metrics.
#[derive(Debug)]
pub struct Scrape<'a> {
    /// The time.
    pub now: Timestamp,
    /// The counters of the store.
    pub state: Counters,
    /// Each condition of readiness, and whether it fails.
    pub not_ready: [(&'static str, bool); 4],
    /// The configuration in use.
    pub configuration: ConfigurationFacts<'a>,
}

/// The facts of the current configuration that metrics show.
#[derive(Debug)]
pub struct ConfigurationFacts<'a> {
    /// The environment.
    pub environment: Environment,
    /// When the configuration was taken into use.
    pub since: Timestamp,
    /// Ends of validity: the listener's own certificate, and the earliest of each set of anchors.
    pub ends: Vec<(&'static str, Timestamp)>,
    /// The certificates of TPPs by which a signature has verified.
    pub seen: VerifiedCertificates,
    /// The registers; `None` if they are not checked.
    pub registers: Option<&'a Registers>,
    /// The revocation check; `None` if revocation is not checked.
    pub revocation: Option<&'a Revocation>,
    /// The number of tokens that each key of SCA links has sealed, by key id.
    pub seals: Vec<(String, u64)>,
    /// The number of SCA links that were made since the start.
    pub sca_started: u64,
}
