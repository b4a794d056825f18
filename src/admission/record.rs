//! The notes on one request: each check with its verdict and its time, and the facts that are logged and counted.
//!
//! The record is the only source of the log line and the metrics. It makes no decision: a [`Trial`](super::Trial) does. It holds no
//! personal data: no header value, no path, no body.

use super::{ObservedFault, Stage, Tpp};
use crate::{
    clock::{Stopwatch, Timestamp},
    interface::{Reason, Side, TppId, headers::accept_fix::Fixes, operations::Operation},
    trust::{Certificate, CertificateSource, Tolerated},
};
use portvakt_base::values;
use std::{sync::Arc, time::Duration};

/// One check on one request.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The check.
    pub stage: Stage,
    /// Its verdict.
    pub verdict: Verdict,
    /// The time that the check took; zero if it is not measured.
    pub took: Duration,
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The check passed.
    Held,
    /// The check failed.
    Refused(Reason),
    /// The check failed, and the refusal was waived (FWD-6).
    Waived(Reason),
    /// The check was not made, because its input was missing.
    Skipped,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request was forwarded, and the client got this status of the upstream.
    Forwarded(u16),
    /// The gateway refused the request.
    Refused(Reason),
    /// The gateway answered the request itself (SCA-20).
    Answered,
    /// The request was admitted, but the upstream or the gateway failed.
    Failed(Reason),
    /// The client left before it got all of the answer. The core is at fault if it had owed the answer for long.
    Abandoned(Side),
    /// The gateway ended the connection or the answer before the client got all of it, because of what the client did or did not do, or
    /// because the process ended.
    Cut(Side),
}

values! {
    /// An outcome without its details, for logs and metrics.
    pub enum OutcomeKind {
        /// [`Outcome::Forwarded`]
        Forwarded = "forwarded",
        /// [`Outcome::Answered`]
        Answered = "answered",
        /// [`Outcome::Refused`]
        Refused = "refused",
        /// [`Outcome::Failed`]
        Failed = "failed",
        /// [`Outcome::Abandoned`]
        Abandoned = "abandoned",
        /// [`Outcome::Cut`]
        Cut = "cut",
    }
}

impl Outcome {
    /// The outcome without its details.
    pub const fn kind(self) -> OutcomeKind {
        match self {
            Self::Forwarded(_) => OutcomeKind::Forwarded,
            Self::Answered => OutcomeKind::Answered,
            Self::Refused(_) => OutcomeKind::Refused,
            Self::Failed(_) => OutcomeKind::Failed,
            Self::Abandoned(_) => OutcomeKind::Abandoned,
            Self::Cut(_) => OutcomeKind::Cut,
        }
    }

    /// The reason of a refusal or a failure.
    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Refused(reason) | Self::Failed(reason) => Some(reason),
            Self::Forwarded(_) | Self::Answered | Self::Abandoned(_) | Self::Cut(_) => None,
        }
    }

    /// The side that has to act; `None` if the request was answered as asked. A status of the core that is passed on is the caller's fault
    /// from 400 and the core's from 500.
    pub const fn at_fault(self) -> Option<Side> {
        match self {
            Self::Forwarded(500..) => Some(Side::Core),
            Self::Forwarded(400..) => Some(Side::Caller),
            Self::Forwarded(_) | Self::Answered => None,
            Self::Refused(reason) | Self::Failed(reason) => Some(reason.at_fault()),
            Self::Abandoned(side) | Self::Cut(side) => Some(side),
        }
    }
}

/// The distance of a caller's clock to the gateway's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// Whether the caller's clock is ahead.
    pub is_ahead: bool,
    /// The distance.
    pub seconds: u64,
}

/// The facts about one request.
#[derive(Debug)]
pub struct Record {
    watch: Stopwatch,
    checks: Vec<Check>,
    observed: Vec<(Stage, ObservedFault)>,
    operation: Option<Arc<Operation>>,
    clock_skew: Option<ClockSkew>,
    certificate: Option<Arc<Certificate>>,
    /// The TPP that a refused certificate names.
    claimed: Option<TppId>,
    certificate_source: Option<CertificateSource>,
    admitted: AdmittedFacts,
}

/// The facts of an admitted request that are counted.
#[derive(Debug, Default)]
pub(super) struct AdmittedFacts {
    pub(super) named_fixes: Fixes,
    pub(super) unsigned_target: bool,
    pub(super) without_session: bool,
    pub(super) unknown_revocation: bool,
    pub(super) stale_register: bool,
    pub(super) took_call: bool,
}

impl Record {
    /// Opens the record of a request whose head has just been received.
    pub fn open() -> Self {
        Self {
            watch: Stopwatch::start(),
            checks: Vec::with_capacity(Stage::ALL.len()),
            observed: Vec::new(),
            operation: None,
            clock_skew: None,
            certificate: None,
            claimed: None,
            certificate_source: None,
            admitted: AdmittedFacts::default(),
        }
    }

    /// The stopwatch that was started when the head was received.
    pub(super) const fn opened(&self) -> Stopwatch {
        self.watch
    }

    /// The time since the head was received.
    pub fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Each check that was made, in order.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Every fault that was observed and not refused, each once, in the order of the checks (FWD-6).
    pub fn observed(&self) -> impl Iterator<Item = ObservedFault> + '_ {
        self.observed.iter().map(|(_, fault)| *fault)
    }

    /// The time of all checks together, including reading the body.
    pub fn judging(&self) -> Duration {
        self.checks.iter().map(|check| check.took).sum()
    }

    /// The operation, if the path names one.
    pub const fn operation(&self) -> Option<&Arc<Operation>> {
        self.operation.as_ref()
    }

    /// The distance of the request's Date to the gateway's clock, if the Date could be read. Nothing proves who sent the Date.
    pub const fn clock_skew(&self) -> Option<ClockSkew> {
        self.clock_skew
    }

    /// Where the accepted certificate was found.
    pub const fn certificate_source(&self) -> Option<CertificateSource> {
        self.certificate_source
    }

    /// Whether an admitted request took a call of its quota (QUO-5). A later page is not a call.
    pub const fn took_call(&self) -> bool {
        self.admitted.took_call
    }

    /// The TPP's certificate, once it was judged. Before a signature verified, the certificate proves nothing about the caller, because
    /// certificates are public.
    pub const fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.as_ref()
    }

    /// The faults of the certificate that a strict gateway would refuse and this one tolerates.
    pub fn tolerated(&self) -> impl Iterator<Item = Tolerated> + '_ {
        let certificate = self.certificate.as_ref();
        certificate
            .into_iter()
            .flat_map(|certificate| certificate.tolerated().iter())
    }

    /// Whether the request was admitted with unknown revocation status (CRT-6).
    pub const fn revocation_is_unknown(&self) -> bool {
        self.admitted.unknown_revocation
    }

    /// Whether the request was admitted by a register past its maximum age (CRT-7).
    pub const fn register_is_stale(&self) -> bool {
        self.admitted.stale_register
    }

    /// The fixes that an admitted request named (HDR-16).
    pub const fn named_fixes(&self) -> Fixes {
        self.admitted.named_fixes
    }

    /// The TPP of an admitted request that did not sign its (request-target) (SIG-15). Its signature verified, so no other caller is
    /// counted under its name.
    pub fn left_target_unsigned(&self) -> Option<&TppId> {
        let certificate = self.certificate.as_ref();
        certificate
            .filter(|_| self.admitted.unsigned_target)
            .map(|certificate| certificate.tpp_id())
    }

    /// The TPP of an admitted request that reads account information with the PSU present and without a session (QUO-14): PSU-IP-Address is
    /// then only the TPP's own statement.
    pub fn had_no_session(&self) -> Option<&TppId> {
        let certificate = self.certificate.as_ref();
        certificate
            .filter(|_| self.admitted.without_session)
            .map(|certificate| certificate.tpp_id())
    }

    /// Whether this check was made and passed.
    pub fn holds(&self, stage: Stage) -> bool {
        self.checks
            .iter()
            .any(|check| check.stage == stage && check.verdict == Verdict::Held)
    }

    /// The TPP that the request's certificate names, whether or not the certificate was accepted: anybody can show a TPP's certificate, and
    /// make one with any name.
    pub fn shown_tpp(&self) -> Option<&TppId> {
        let certificate = self.certificate.as_ref();
        let judged = certificate.map(|certificate| certificate.tpp_id());
        judged.or(self.claimed.as_ref())
    }

    /// The TPP, if its signature verified.
    pub(super) fn proven_tpp(&self) -> Option<&TppId> {
        let certificate = self.certificate.as_ref();
        certificate
            .filter(|_| self.holds(Stage::Signature))
            .map(|certificate| certificate.tpp_id())
    }

    /// Notes faults of a check that are only observed.
    pub(super) fn note_observed(&mut self, stage: Stage, faults: &[ObservedFault]) {
        for fault in faults {
            if !self.observed().any(|noted| noted == *fault) {
                self.observed.push((stage, *fault));
            }
        }
    }

    /// Notes faults of SCA that are found after the request was admitted (SCA-13, SCA-19).
    pub fn note_late(&mut self, faults: &[ObservedFault]) {
        self.note_observed(Stage::Sca, faults);
        self.observed.sort_by_key(|(stage, _)| *stage);
    }

    /// Replaces the notes on the observed faults of a check.
    pub(super) fn replace_observed(&mut self, stage: Stage, faults: &[ObservedFault]) {
        self.observed.retain(|(noted, _)| *noted != stage);
        self.note_observed(stage, faults);
        self.observed.sort_by_key(|(stage, _)| *stage);
    }

    /// Replaces the verdict of a check that was noted.
    pub(super) fn replace(&mut self, stage: Stage, verdict: Verdict) {
        let noted = self.checks.iter_mut().find(|check| check.stage == stage);
        if let Some(check) = noted {
            check.verdict = verdict;
        }
    }

    /// Notes the operation that the path and the method name.
    pub(super) fn note_operation(&mut self, operation: &Arc<Operation>) {
        self.operation = Some(Arc::clone(operation));
    }

    /// Notes what is known of a request that is refused before its checks: its operation, and the certificate that it shows.
    pub fn note_unjudged(&mut self, operation: &Arc<Operation>, certificate: Arc<Certificate>) {
        self.note_operation(operation);
        self.certificate = Some(certificate);
    }

    /// Notes the request's Date, and the time at which it is judged.
    pub(super) fn note_date(&mut self, date: Timestamp, now: Timestamp) {
        self.clock_skew = Some(ClockSkew {
            is_ahead: date > now,
            seconds: date.distance(now),
        });
    }

    /// Notes the caller's certificate.
    pub(super) fn note_certificate(&mut self, tpp: &Tpp) {
        self.certificate = Some(Arc::clone(tpp.certificate()));
        self.certificate_source = Some(tpp.identified().source());
    }

    /// Notes the TPP that a refused certificate names.
    pub(super) fn note_claimed(&mut self, tpp: Option<TppId>) {
        self.claimed = tpp;
    }

    /// Notes the facts of an admitted request.
    pub(super) const fn note_admitted(&mut self, facts: AdmittedFacts) {
        self.admitted = facts;
    }

    /// Notes a check, with its verdict and its time.
    pub(super) fn note(&mut self, stage: Stage, verdict: Verdict, took: Duration) {
        self.checks.push(Check {
            stage,
            verdict,
            took,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_at_fault() {
        assert_eq!(Outcome::Forwarded(302).at_fault(), None);
        assert_eq!(Outcome::Answered.at_fault(), None);
        for outcome in [
            Outcome::Forwarded(404),
            Outcome::Abandoned(Side::Caller),
            Outcome::Cut(Side::Caller),
            Outcome::Refused(Reason::ScaRequired),
            Outcome::Refused(Reason::RateLimited),
            Outcome::Refused(Reason::TooManyAtOnce),
        ] {
            assert_eq!(outcome.at_fault(), Some(Side::Caller), "{outcome:?}");
        }
        for reason in [
            Reason::StateUnavailable,
            Reason::RegisterStale,
            Reason::Overloaded,
        ] {
            assert_eq!(Outcome::Refused(reason).at_fault(), Some(Side::Gateway));
        }
        for outcome in [
            Outcome::Forwarded(503),
            Outcome::Abandoned(Side::Core),
            Outcome::Failed(Reason::UpstreamTimeout),
            Outcome::Failed(Reason::UpstreamError),
            Outcome::Failed(Reason::UpstreamUnreachable),
        ] {
            assert_eq!(outcome.at_fault(), Some(Side::Core), "{outcome:?}");
        }
    }
}
