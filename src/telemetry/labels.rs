//! The labels of metrics, and their values.
//!
//! Invariant: the values are a closed set, or the description says what bounds them.

use super::values::{CutCause, FailureKind};
use crate::{
    admission::{ObservableCheck, Stage},
    interface::headers::accept_fix,
    trust::{CertificateSource, Tolerated, revocation::Counters as RevocationCounters},
};

/// A label.
#[derive(Debug)]
pub(super) struct Label {
    /// The name.
    pub(super) name: &'static str,
    /// The values.
    pub(super) values: Values,
}

impl Label {
    /// Whether this may be its value.
    pub(super) fn allows(&self, value: &str) -> bool {
        match self.values {
            Values::Closed(values) | Values::AtFirstUse(values) => values().contains(&value),
            Values::Bounded(_) => true,
        }
    }
}

/// The values of a label.
#[derive(Debug)]
pub(super) enum Values {
    /// A closed set: a series for each value exists from the start, so that its first increase is seen.
    Closed(fn() -> Vec<&'static str>),
    /// A closed set, of which series appear with their first sample.
    AtFirstUse(fn() -> Vec<&'static str>),
    /// A bounded set, as described.
    #[cfg_attr(
        not(test),
        allow(dead_code, reason = "a test makes the document of it")
    )]
    Bounded(&'static str),
}

/// The label of a request that matched no operation, of a status that was not sent, and of no fault.
pub(super) const NONE: &str = "none";

/// The label of everything beyond a bound.
pub(super) const OTHER: &str = "other";

/// The outcomes of a request.
pub(super) const OUTCOMES: [&str; 6] = [
    "forwarded",
    "answered",
    "refused",
    "failed",
    "abandoned",
    "cut",
];

/// The classes of a status, from 100.
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The sides that have to act, beside [`NONE`].
pub(super) const SIDES: [&str; 3] = ["caller", "gateway", "core"];

macro_rules! labels {
    ($($id:ident = $name:literal $kind:ident($values:expr);)+) => {
        $(pub(super) static $id: Label = Label { name: $name, values: Values::$kind($values) };)+
    };
}

labels! {
    OPERATION = "operation" Bounded("an operation of the catalogue, `none` for an unknown path and for a request that was refused before its path was read, or `other` beyond a bound");
    GROUP = "group" Bounded("a group of operations, or `none`");
    OUTCOME = "outcome" AtFirstUse(|| OUTCOMES.to_vec());
    STATUS = "status" AtFirstUse(|| CLASSES.into_iter().chain([NONE]).collect());
    CORE_STATUS = "status" AtFirstUse(|| CLASSES.to_vec());
    SIDE = "fault" AtFirstUse(|| SIDES.into_iter().chain([NONE]).collect());
    REASON = "reason" Bounded("a reason of [refusals.md](refusals.md)");
    OPERATION_REASON = "reason" Bounded("a reason of [refusals.md](refusals.md), or `other` beyond a bound");
    CHECK = "check" Closed(|| Stage::timed().map(Stage::name).collect());
    OBSERVED_CHECK = "check" AtFirstUse(|| ObservableCheck::ALL.iter().map(|check| check.name()).collect());
    PROVES = "proves" Closed(|| vec!["identity", "other"]);
    DIRECTION = "direction" Closed(|| vec!["ahead", "behind"]);
    TOLERATED = "fault" Closed(|| Tolerated::ALL.iter().map(|fault| fault.name()).collect());
    FIX = "fix" Closed(|| accept_fix::TABLE.iter().map(|fix| fix.name).collect());
    TPP = "tpp" Bounded("the first TPPs that it counted whose signature verified: 100, or 40 for unsigned targets and for calls without a session; then `other`");
    HANDSHAKE = "outcome" AtFirstUse(|| vec!["done", "resumed", "failed", "too_slow", "bad_proxy_header"]);
    VERSION = "version" AtFirstUse(|| vec!["1.2", "1.3", NONE]);
    CUT = "cause" Closed(|| CutCause::ALL.iter().map(|cause| cause.name()).collect());
    SHED_WHO = "who" Closed(|| vec!["connection", "request"]);
    FAILURE = "kind" Closed(|| FailureKind::ALL.iter().map(|kind| kind.name()).collect());
    UPSTREAM = "upstream" Bounded("a group of endpoints of the configuration, or `other`");
    ENDPOINT = "endpoint" Bounded("one of the first 4 endpoints of the configuration, or `other` for the rest");
    USE = "kind" Closed(|| vec!["new", "reused"]);
    PLACE = "place" AtFirstUse(|| vec!["location", "content-location", "link", "other", "body"]);
    DONE = "done" AtFirstUse(|| vec!["made-relative", "removed", "passed"]);
    CACHE = "cache" Closed(|| CertificateSource::ALL.iter().map(|source| source.name()).collect());
    ENDS = "of" AtFirstUse(|| vec![
        "listener", "listener_ocsp", "response_signing", "control", "control_ca", "upstream", "upstream_ca",
        "anchor", "intermediate", "client_anchor",
    ]);
    SERIAL = "serial" Bounded("the serial number in hexadecimal");
    FETCH = "result" Closed(|| RevocationCounters::RESULTS.to_vec());
    ISSUER = "issuer" Bounded("the name of the CA");
    SOURCE = "from" Bounded("an address, or `file`");
    QUOTA = "event" Closed(|| vec!["taken", "refused", "given_back"]);
    SCA = "event" Closed(|| vec!["link", "started", "completed", "failed", "expired"]);
    BY = "by" Closed(|| vec!["completion", "bind", "learning"]);
    KEY = "key" Bounded("the id of a key");
    TABLE = "table" AtFirstUse(|| vec!["psu", "quota", "page", "request", "token", "block"]);
    CAUSE = "cause" Closed(|| vec!["stopping", "listener", "state", "sca", "upstreams", "audit"]);
    DEGRADATION = "cause" Closed(|| vec!["access_log", "event_log", "audit"]);
    RELOAD = "result" Closed(|| vec!["taken", "refused"]);
    UPGRADE = "result" Closed(|| vec!["taken_over", "failed"]);
    LINES = "result" Closed(|| vec!["written", "dropped", "failed"]);
    FOLDER = "folder" AtFirstUse(|| vec!["state", "audit", "logs"]);
    BUILD = "version" Bounded("the version of the program");
    COMMIT = "commit" Bounded("the commit, or `not recorded`");
    ENVIRONMENT = "environment" AtFirstUse(|| vec!["sandbox", "production"]);
}
