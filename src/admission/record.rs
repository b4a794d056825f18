//! The notes on one request: each check with its verdict and its time, and the facts that are logged and counted.
//!
//! The record is the only source of the log line and the metrics. It makes no decision: a [`Trial`](super::Trial) does. It holds no
//! personal data: no header value, no path, no body.

use super::{Stage, Tpp};
use crate::{
    clock::{Stopwatch, Timestamp},
    interface::{Reason, TppId, headers::accept_fix::Fixes, operations::Operation},
    trust::{Certificate, CertificateSource, Tolerated},
};
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

impl Verdict {
    /// The reason that was waived.
    pub const fn waived(self) -> Option<Reason> {
        match self {
            Self::Waived(reason) => Some(reason),
            Self::Held | Self::Refused(_) | Self::Skipped => None,
        }
    }
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
    /// The client closed the connection before it got an answer.
    Abandoned,
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
    operation: Option<Arc<Operation>>,
    clock_skew: Option<ClockSkew>,
    certificate: Option<Arc<Certificate>>,
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
            operation: None,
            clock_skew: None,
            certificate: None,
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

    /// Notes the operation that the path and the method name.
    pub(super) fn note_operation(&mut self, operation: &Arc<Operation>) {
        self.operation = Some(Arc::clone(operation));
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
