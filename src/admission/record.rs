//! What was judged, found and measured on one request: the one source of the log line and the metrics.
//!
//! It holds no personal data: no header value but X-Request-ID, no path, no body.

use super::{Admitted, Grant, Judged, Policy, Registered, Tpp};
use crate::{
    clock::{Clock, Stopwatch, Timestamp},
    interface::{Reason, Refusal, headers::accept_fix::Fixes, operations::Operation},
    trust::{Certificate, Tolerated},
};
use std::{sync::Arc, time::Duration};

macro_rules! stages {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// A check of the pipeline, in its order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Stage { $($(#[$doc])* $variant),+ }

        impl Stage {
            /// Every stage, in the order of the pipeline.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in logs.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

stages! {
    /// Path and method.
    Match = "match",
    /// Framing and headers.
    Envelope = "envelope",
    /// The query.
    Query = "query",
    /// The Date header.
    Date = "date",
    /// The rate of the address.
    AddressRate = "address-rate",
    /// The certificate.
    Certificate = "certificate",
    /// The role that it carries.
    Role = "role",
    /// The signature.
    Signature = "signature",
    /// The rate of the TPP.
    TppRate = "tpp-rate",
    /// Whether the TPP is registered.
    Register = "register",
    /// Whether the certificate is revoked.
    Revocation = "revocation",
    /// The host that TPP-Redirect-URI names.
    Redirect = "redirect",
    /// The body, read whole.
    Body = "body",
    /// The digest of the body.
    Digest = "digest",
    /// What the body says.
    Payload = "payload",
    /// The PSU's consent and session.
    Sca = "sca",
    /// The request id and the quota.
    Claim = "claim",
}

impl Stage {
    /// Whether its time is measured. What only compares takes less than reading the clock: its time counts to the next
    /// stage that is measured.
    const fn is_timed(self) -> bool {
        matches!(
            self,
            Self::Match
                | Self::Envelope
                | Self::Certificate
                | Self::Signature
                | Self::Revocation
                | Self::Body
                | Self::Payload
                | Self::Sca
                | Self::Claim
        )
    }
}

/// One check on one request.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Which.
    pub stage: Stage,
    /// What came of it.
    pub verdict: Verdict,
    /// What it cost; zero where that is not measured.
    pub took: Duration,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Held,
    /// It does not hold.
    Refused(Reason),
    /// It does not hold and was let pass (FWD-6).
    Waived(Reason),
    /// It had nothing to judge by.
    Skipped,
}

impl Verdict {
    /// The reason that was let pass.
    pub const fn waived(self) -> Option<Reason> {
        match self {
            Self::Waived(reason) => Some(reason),
            Self::Held | Self::Refused(_) | Self::Skipped => None,
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was forwarded, and this status of the upstream went back.
    Forwarded(u16),
    /// The gateway refused it.
    Refused(Reason),
    /// The gateway answered it by itself (SCA-20).
    Answered,
    /// It was admitted, but the upstream or the gateway failed it.
    Failed(Reason),
    /// The client went away before it had an answer.
    Abandoned,
}

/// Everything worth knowing of one request.
#[derive(Debug)]
pub struct Record {
    clock: Clock,
    received: Timestamp,
    watch: Stopwatch,
    lap: Stopwatch,
    checks: Vec<Check>,
    operation: Option<Arc<Operation>>,
    certificate: Option<Arc<Certificate>>,
    named_fixes: Fixes,
    unsigned_target: bool,
    without_session: bool,
    unknown_revocation: bool,
    stale_register: bool,
}

impl Record {
    /// Opens the record of a request whose head has just been received.
    pub fn open(clock: &Clock) -> Self {
        let watch = Stopwatch::start();
        Self {
            clock: clock.clone(),
            received: clock.now(),
            watch,
            lap: watch,
            checks: Vec::with_capacity(Stage::ALL.len()),
            operation: None,
            certificate: None,
            named_fixes: Fixes::default(),
            unsigned_target: false,
            without_session: false,
            unknown_revocation: false,
            stale_register: false,
        }
    }

    /// When the head was received: what the request is judged as of.
    pub const fn received(&self) -> Timestamp {
        self.received
    }

    /// What time it is now: after the body, time has passed.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time since the head was received.
    pub fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Each check that was made, in order.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// What all checks cost together, reading the body included.
    pub fn judging(&self) -> Duration {
        self.checks.iter().map(|check| check.took).sum()
    }

    /// The operation, where the path named one.
    pub const fn operation(&self) -> Option<&Arc<Operation>> {
        self.operation.as_ref()
    }

    /// The TPP's certificate, once it was judged. Until a signature verified it is only what the caller shows:
    /// certificates are public.
    pub const fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.as_ref()
    }

    /// By name, what was let pass that a strict gateway would refuse.
    pub fn tolerated(&self) -> impl Iterator<Item = Tolerated> + '_ {
        let certificate = self.certificate.as_ref();
        certificate
            .into_iter()
            .flat_map(|certificate| certificate.tolerated().iter())
    }

    /// Whether it was admitted though nobody could say whether its certificate is revoked (CRT-6).
    pub const fn revocation_is_unknown(&self) -> bool {
        self.unknown_revocation
    }

    /// Whether it was admitted by a register past its maximum age (CRT-7).
    pub const fn register_is_stale(&self) -> bool {
        self.stale_register
    }

    /// The fixes that an admitted request named (HDR-16).
    pub const fn named_fixes(&self) -> Fixes {
        self.named_fixes
    }

    /// The TPP of an admitted request that left its (request-target) unsigned (SIG-15). Its signature verified: nobody
    /// else can be counted under its name.
    pub fn left_target_unsigned(&self) -> Option<&str> {
        let certificate = self.certificate.as_ref();
        certificate
            .filter(|_| self.unsigned_target)
            .map(|certificate| certificate.tpp_id())
    }

    /// The TPP of an admitted request that reads account information with the PSU present and without a session
    /// (QUO-14): PSU-IP-Address alone is what the TPP says.
    pub fn had_no_session(&self) -> Option<&str> {
        let certificate = self.certificate.as_ref();
        certificate
            .filter(|_| self.without_session)
            .map(|certificate| certificate.tpp_id())
    }

    /// Whether this check was made and holds.
    pub fn holds(&self, stage: Stage) -> bool {
        self.checks
            .iter()
            .any(|check| check.stage == stage && check.verdict == Verdict::Held)
    }

    pub(super) fn matched<T>(
        &mut self,
        found: Result<(Arc<Operation>, T), Refusal>,
    ) -> Result<(Arc<Operation>, T), Refusal> {
        let found = self.held(Stage::Match, found)?;
        self.operation = Some(Arc::clone(&found.0));
        Ok(found)
    }

    pub(super) fn identified(&mut self, tpp: &Judged<Tpp>) {
        self.certificate = tpp.held().map(|tpp| Arc::clone(tpp.certificate()));
    }

    /// Notes what is counted of a request that was admitted.
    pub(super) fn admitted(&mut self, named_fixes: Fixes, admitted: &Admitted) {
        self.named_fixes = named_fixes;
        self.unknown_revocation = admitted
            .unrevoked()
            .is_some_and(|unrevoked| !unrevoked.is_known());
        self.stale_register = admitted.registered().is_some_and(Registered::is_by_stale);
        self.unsigned_target = admitted.tpp().is_some()
            && admitted
                .signed()
                .is_some_and(|signed| !signed.covers_request_target());
        self.without_session = admitted.grant().is_some_and(Grant::without_session);
    }

    /// Notes a check that is never waived, because nothing after it could be judged without it.
    pub(super) fn held<T>(
        &mut self,
        stage: Stage,
        result: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.note(
            stage,
            result
                .as_ref()
                .err()
                .map_or(Verdict::Held, |refusal| Verdict::Refused(refusal.reason())),
        );
        result
    }

    /// Notes a check, and lets its refusal pass where the policy observes it.
    pub(super) fn judge<T>(
        &mut self,
        stage: Stage,
        policy: &Policy,
        result: Result<T, Refusal>,
    ) -> Result<Judged<T>, Refusal> {
        match result {
            Ok(evidence) => {
                self.note(stage, Verdict::Held);
                Ok(Judged::Held(evidence))
            }
            Err(refusal) => match policy.waiver(&refusal) {
                Some(waiver) => {
                    self.note(stage, Verdict::Waived(refusal.reason()));
                    Ok(Judged::Waived(Box::new(refusal), waiver))
                }
                None => {
                    self.note(stage, Verdict::Refused(refusal.reason()));
                    Err(refusal)
                }
            },
        }
    }

    /// Notes a check that had nothing to judge by.
    pub(super) fn skip<T>(&mut self, stage: Stage) -> Judged<T> {
        self.note(stage, Verdict::Skipped);
        Judged::without_evidence()
    }

    fn note(&mut self, stage: Stage, verdict: Verdict) {
        let took = if stage.is_timed() {
            self.lap.lap()
        } else {
            Duration::ZERO
        };
        self.checks.push(Check {
            stage,
            verdict,
            took,
        });
    }
}
