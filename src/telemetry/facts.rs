//! The facts that telemetry takes: of a request that has ended, of the configuration in use, and of the gateway at a scrape.

use super::{
    subject::Subject,
    upstreams::{CoreEndpoint, EndpointFacts},
    values::{Degradation, HttpVersion, ReadinessCondition, TlsVersion},
};
use crate::{
    admission::{ObservableCheck, Outcome, Record},
    clock::{LogTime, Timestamp},
    config::{Shown, TrustBundle},
    expiring::{Expiring, Finding},
    interface::{
        headers::{RequestId, trace::TraceContext},
        operations::Environment,
    },
    state::Counters,
    trust::{Registers, Revocation, VerifiedCertificates},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};
use uuid::Uuid;

/// A request that has ended.
#[derive(Debug)]
pub struct Finished<'a> {
    /// The record of its checks.
    pub record: &'a Record,
    /// The outcome.
    pub outcome: Outcome,
    /// The status of the answer, if one was sent.
    pub status: Option<u16>,
    /// `id` of the gateway's own error answer (ERR-1).
    pub id: Option<Uuid>,
    /// X-Request-ID, if it is well-formed.
    pub request_id: Option<&'a RequestId>,
    /// The place in a trace; `None` for a refusal below HTTP.
    pub trace: Option<TraceContext>,
    /// The facts of HTTP and TLS.
    pub http: HttpFacts,
    /// Details for the operator only.
    pub operator: Option<&'a str>,
    /// The core's part, if the core answered or the caller left while it did not.
    pub core: Option<CoreTook>,
    /// The endpoint that the request was sent to last, or to which no connection could be made.
    pub endpoint: Option<&'a Arc<CoreEndpoint>>,
    /// Whether the audit has a record of its forwarding, and takes one of its outcome.
    pub is_audited: bool,
    /// The time of its end.
    pub at: LogTime,
}

impl Finished<'_> {
    /// Whose request it was (FWD-8).
    pub(super) fn subject(&self) -> Subject {
        Subject::of(self.record, self.http.caller)
    }

    /// Whether the caller was sent a whole answer, if any. An answer that failed after its head has no second one of the gateway's.
    pub(super) const fn is_whole(&self) -> bool {
        match self.outcome {
            Outcome::Failed(_) => self.id.is_some(),
            Outcome::Abandoned(_) | Outcome::Cut(_) => false,
            Outcome::Forwarded(_) | Outcome::Answered | Outcome::Refused(_) => true,
        }
    }
}

/// The facts of HTTP and TLS about a request. What is unknown is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HttpFacts {
    /// The method; `other` for one that no standard defines, because a caller chooses its letters.
    pub method: Option<&'static str>,
    /// The version of HTTP.
    pub version: Option<HttpVersion>,
    /// The caller's address, by which evidence is shared out (FWD-8). No log has it.
    pub caller: Option<IpAddr>,
    /// The version of TLS.
    pub tls: Option<TlsVersion>,
    /// The number of bytes of the request's body that were read.
    pub received: Option<u64>,
    /// The number of bytes of the answer's body that were sent.
    pub sent: Option<u64>,
}

/// The time that the core took for the head of its answer, or had until the caller left.
#[derive(Clone, Copy, Debug)]
pub struct CoreTook {
    /// The core's own status; `None` if the caller left before there was one.
    pub status: Option<u16>,
    /// From choosing the upstream to the head of its answer, or until the caller left.
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
    pub not_ready: Vec<(ReadinessCondition, bool)>,
    /// Each fault with which requests are served nevertheless, and whether there is one.
    pub degraded: Vec<(Degradation, bool)>,
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
    /// What it says; `None` if it did not come from a file.
    pub shown: Option<&'a Shown>,
    /// When the first of each kind ends, of what the configuration's files hold.
    pub ends: BTreeMap<Expiring, Timestamp>,
    /// What has ended or is full, or is soon; without disks.
    pub findings: Vec<Finding>,
    /// The certificates of TPPs by which a signature has verified.
    pub seen: VerifiedCertificates,
    /// The bundle of trust anchors; `None` without one.
    pub bundle: Option<&'a TrustBundle>,
    /// The registers; `None` if they are not checked.
    pub registers: Option<&'a Registers>,
    /// The revocation check; `None` if revocation is not checked.
    pub revocation: Option<&'a Revocation>,
    /// The number of tokens that each key of SCA links has sealed, by key id.
    pub seals: Vec<(String, u64)>,
    /// The checks that are only observed.
    pub observed: BTreeSet<ObservableCheck>,
    /// The number of SCA links that were made since the start.
    pub sca_links: u64,
    /// The endpoints of the core.
    pub endpoints: Vec<EndpointFacts>,
}
