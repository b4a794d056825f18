//! Records of the audit about finished requests: refusals, failures, and the outcome of those whose forwarding was recorded; and about
//! refused calls of the control listener.
//!
//! Invariant: callers cannot fill the disk, and none hides another: each TPP, and unverified callers of each network, have a share of the
//! refusals of a second ([`super::shares`]). Deliberately not here: the record before a request is forwarded, which the gateway waits for.

use super::{
    facts::Finished,
    shares::{Most, Shares},
    subject::Subject,
};
use crate::{
    admission::{Outcome, Stage},
    audit::{Audit, AuditEvent, AuditKind},
    interface::{Reason, TppId, headers::RequestId},
};
use std::{net::IpAddr, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

/// The records of refusals in a second, of callers whose signature verified: of one TPP alone at most 50.
const VERIFIED: Most = Most {
    own: 5,
    common: 45,
    within: SECOND,
};

/// The same, of callers who only show a certificate, as anybody can: of one network alone at most ten.
const UNVERIFIED: Most = Most {
    own: 2,
    common: 8,
    within: SECOND,
};

/// The same, of calls of the control listener: anybody who reaches its port can be refused. Of one caller alone at most ten.
const CALLS: Most = Most {
    own: 4,
    common: 6,
    within: SECOND,
};

/// Counts the records of refusals.
#[derive(Debug)]
pub(super) struct RefusalRecords {
    verified: Shares,
    unverified: Shares,
    calls: Shares,
}

impl Default for RefusalRecords {
    fn default() -> Self {
        Self {
            verified: Shares::new(VERIFIED),
            unverified: Shares::new(UNVERIFIED),
            calls: Shares::new(CALLS),
        }
    }
}

impl RefusalRecords {
    /// Records a finished request, if the audit is to have it.
    pub(super) fn record(&self, finished: &Finished<'_>, audit: &Audit) {
        if finished.is_audited {
            audit.record(event(finished, audit, AuditKind::Outcome));
            return;
        }
        let kind = match finished.outcome {
            Outcome::Refused(_) => AuditKind::Refused,
            Outcome::Failed(_) => AuditKind::Failed,
            Outcome::Forwarded(_) | Outcome::Answered | Outcome::Abandoned(_) | Outcome::Cut(_) => {
                return;
            }
        };
        // A refusal without a TPP's certificate proves nothing about anybody later, and such refusals would fill the disk.
        if finished.record.shown_tpp().is_none() {
            return;
        }
        let subject = finished.subject();
        let shares = match subject {
            Subject::Tpp(_) => &self.verified,
            _ => &self.unverified,
        };
        if shares.take_in(audit.is_crowded(), subject) {
            audit.record(event(finished, audit, kind));
        }
    }

    /// Records a refused call of the control listener.
    pub(super) fn record_call(
        &self,
        audit: &Audit,
        caller: Option<IpAddr>,
        event: impl FnOnce() -> AuditEvent,
    ) {
        let subject = Subject::network(caller);
        if self.calls.take_in(audit.is_crowded(), subject) {
            audit.record(event());
        }
    }

    /// Records the number of omitted records of each subject for which it is due.
    pub(super) fn record_left_out(&self, audit: &Audit, is_end: bool) {
        let kinds = [
            ("refusals", &self.verified),
            ("refusals", &self.unverified),
            ("calls", &self.calls),
        ];
        for (of, shares) in kinds {
            for (subject, omitted) in shares.due(is_end) {
                let event = audit.event(AuditKind::LeftOut).with("of", of);
                let event = match &subject {
                    Subject::Tpp(tpp) => event.with("tpp", tpp.as_str()),
                    Subject::OtherTpps | Subject::Gateway => event,
                    Subject::Network(share) => event.with("network", *share),
                };
                audit.record(event.with("omitted", omitted));
            }
        }
    }
}

fn event(finished: &Finished<'_>, audit: &Audit, kind: AuditKind) -> AuditEvent {
    let record = finished.record;
    let tpp = record.shown_tpp().map(TppId::as_str);
    let name = match finished.record.holds(Stage::Signature) {
        true => "tpp",
        false => "shown_tpp",
    };
    let operation = record.operation().map(|operation| operation.name.as_str());
    let id = finished.id.map(|id| id.to_string());
    let trace = finished.trace.map(|trace| trace.trace_id().to_string());
    audit
        .event(kind)
        .with_some(name, tpp)
        .with_some("operation", operation)
        .with_some("request_id", finished.request_id.map(RequestId::as_str))
        .with_some("id", id)
        .with_some("trace_id", trace)
        .with("outcome", finished.outcome.kind().name())
        .with_some("reason", finished.outcome.reason().map(Reason::slug))
        .with_some("operator", finished.operator)
        .with_some("status", finished.status)
        .with_some("upstream", finished.endpoint.map(|to| to.upstream.as_str()))
        .with_some("endpoint", finished.endpoint.map(|to| to.endpoint.as_str()))
        .with_some(
            "upstream_status",
            finished.core.and_then(|core| core.status),
        )
}
