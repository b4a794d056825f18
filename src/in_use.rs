//! The current configuration as one value, which a reload replaces (CRT-8).
//!
//! Invariant: a request, a handshake and a call of the control listener load the value once, at their beginning, and use that
//! value to their end, so none of them mixes two configurations. One question is asked of the value at that moment, too: whether a TPP is
//! turned away since ([`Present`]). Deliberately not here: settings that only a restart changes
//! ([`Fixed`]), state, counters, and the reload itself (`gateway`).

use crate::{
    admission::{
        Enforcement, Snapshot,
        standing::{Listed, Present, Question},
    },
    clock::Timestamp,
    config::{
        ControlAccess, Fixed, ReadFiles, Reloadable, ServerCertificates, TicketKeys, TrustBundle,
        Warning,
    },
    expiring::{Expiring, Finding, Level},
    interface::{
        Refusal,
        openapi::page::{self, Document},
    },
    sca::{Links, MOST_SEALS, SEALS_ALERT},
    signing::{AnswerSigning, AssertionSigner},
    telemetry::{ConfigurationFacts, EndpointFacts, Handles, Telemetry},
    trust::Revocation,
    upstreams::Upstreams,
};
use arc_swap::ArcSwap;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

/// The current configuration; replaced on reload.
pub type Current = ArcSwap<InUse>;

/// Everything that a reload replaces.
#[derive(Debug)]
pub struct InUse {
    /// The policy, catalogue and trust that judge requests.
    pub snapshot: Snapshot,
    /// The groups of the core's endpoints.
    pub upstreams: Arc<Upstreams>,
    /// The SCA links, and the tokens of pending SCA.
    pub links: Arc<Links>,
    /// Signs assertions for the core, and has the public keys that the control listener shows (FWD-1); `None` without assertions.
    pub assertion_signer: Option<Arc<AssertionSigner>>,
    /// Signs answers (SIG-12), if that is configured.
    pub response_signing: Option<AnswerSigning>,
    /// The metrics of the operations in the snapshot's catalogue.
    pub handles: Handles,
    /// The certificates of the public listener, and their keys.
    pub certificates: Arc<ServerCertificates>,
    /// The keys of TLS session tickets that replicas share; `None` if each process has its own.
    pub ticket_keys: Option<Arc<TicketKeys>>,
    /// The access rules of the control listener.
    pub control: ControlAccess,
    /// The OpenAPI description of the interface.
    pub openapi: Value,
    /// The description as callers without a signature get it; empty if they get none.
    pub documents: Vec<Document>,
    /// The bundle of trust anchors, if there is one.
    pub bundle: Option<TrustBundle>,
    /// The files that the configuration was read from.
    pub files: ReadFiles,
    /// The conditions of the configuration that the operator should change, now or at some time.
    pub warnings: Vec<Warning>,
    /// The time at which the configuration was taken into use.
    pub since: Timestamp,
    /// The keys whose values in the file are not those of the process: they need a restart.
    pub needs_restart: Vec<&'static str>,
}

impl Present for Current {
    fn judge(&self, question: &Question<'_>) -> Result<Listed, Refusal> {
        question.judge(&self.load().snapshot)
    }
}

impl InUse {
    /// Builds the current configuration from `settings`. `links`, `assertion_signer` and `upstreams` must be those of `settings`.
    pub fn new(
        fixed: &Fixed,
        settings: Reloadable,
        links: Links,
        assertion_signer: Option<AssertionSigner>,
        upstreams: Arc<Upstreams>,
        telemetry: &Telemetry,
        now: Timestamp,
    ) -> Self {
        let openapi = settings.openapi(fixed);
        warn_of_observed(&settings.snapshot.policy.enforcement);
        // Destructured without `..`: each new reloadable setting must be used or ignored here explicitly.
        let Reloadable {
            certificates,
            ticket_keys,
            control,
            upstreams: _,
            sca: _,
            assertion: _,
            response_signing,
            snapshot,
            trust,
            operations: _,
            warnings,
            files,
        } = settings;
        Self {
            handles: telemetry.handles(&snapshot.catalogue),
            snapshot,
            upstreams,
            links: Arc::new(links),
            assertion_signer: assertion_signer.map(Arc::new),
            response_signing,
            certificates,
            ticket_keys,
            control,
            documents: match fixed.listener.description {
                true => page::documents(&openapi).into(),
                false => Vec::new(),
            },
            openapi,
            bundle: trust.bundle,
            files,
            warnings,
            since: now,
            needs_restart: Vec::new(),
        }
    }

    /// The facts of this configuration that metrics show.
    pub fn facts(&self, now: Timestamp) -> ConfigurationFacts<'_> {
        let trust = &self.snapshot.trust;
        ConfigurationFacts {
            environment: self.snapshot.policy.environment,
            since: self.since,
            shown: self.files.shown.as_ref(),
            ends: self.ends(),
            findings: self.findings(now),
            seen: trust.seen(),
            bundle: self.bundle.as_ref(),
            registers: self.snapshot.registers.as_deref(),
            revocation: trust.revocation().map(Arc::as_ref),
            seals: self.links.sealed().collect(),
            observed: self.snapshot.policy.enforcement.observed(),
            sca_links: self.links.made(),
            endpoints: self.endpoints(),
        }
    }

    /// When the first of each kind ends.
    fn ends(&self) -> BTreeMap<Expiring, Timestamp> {
        let mut ends = BTreeMap::new();
        for (of, end) in self.warnings.iter().filter_map(Warning::end) {
            let first = ends.entry(of).or_insert(end);
            *first = end.min(*first);
        }
        ends
    }

    /// What has ended or is full, or is soon, of all that this configuration uses; disks are not part of it.
    pub fn findings(&self, now: Timestamp) -> Vec<Finding> {
        let files = self.warnings.iter();
        let files = files.filter_map(|warning| warning.finding(now));
        let keys = self.links.sealed();
        let keys = keys.filter_map(|(key, count)| seals_finding(&key, count));
        let revocation = self.snapshot.trust.revocation();
        let revocation = revocation.and_then(|revocation| revocation_finding(revocation, now));
        files.chain(keys).chain(revocation).collect()
    }

    fn endpoints(&self) -> Vec<EndpointFacts> {
        let groups = self.upstreams.groups().iter();
        let facts = groups.flat_map(|group| {
            let states = group.states().into_iter();
            states.map(|state| EndpointFacts {
                of: state.of,
                is_up: state.usable > 0,
                failures: state.failures,
            })
        });
        facts.collect()
    }
}

/// A key of SCA links that has sealed many tokens, or as many as it may.
pub fn seals_finding(key: &str, count: u64) -> Option<Finding> {
    let (level, text) = match count {
        MOST_SEALS.. => (Level::Over, "2^32 tokens and seals no more: no SCA begins"),
        SEALS_ALERT.. => (Level::Soon, "2^31 of at most 2^32 tokens"),
        _ => return None,
    };
    let text =
        format!("sca.token_keys: the key {key} has sealed {text}; run \"portvakt sca rotate-key\"");
    Some(Finding {
        of: Expiring::TokenKey,
        level,
        text,
    })
}

/// Requests that are refused because no source tells whether a certificate is revoked, or answers that nobody renews.
fn revocation_finding(revocation: &Revocation, now: Timestamp) -> Option<Finding> {
    let late = revocation.late().map(|(count, first)| {
        format!(
            "{count} OCSP answers and CRLs are not renewed, the first is to be replaced by {first}"
        )
    });
    let (level, text) = match (revocation.refuses(now), late) {
        (false, None) => return None,
        (false, Some(late)) => (Level::Soon, late),
        (true, late) => {
            let text = "requests are refused with 503, because no source tells whether their certificates are revoked";
            let late = late.map(|late| format!("{text}; {late}"));
            (Level::Over, late.unwrap_or_else(|| text.to_owned()))
        }
    };
    Some(Finding {
        of: Expiring::Revocation,
        level,
        text: format!("revocation: {text}"),
    })
}

/// Warns of checks that are only observed (FWD-6): nobody forgets them after a start or a reload.
fn warn_of_observed(enforcement: &Enforcement) {
    let observed = enforcement.observed();
    if observed.is_empty() {
        return;
    }
    let names = |identity| {
        let checks = observed.iter();
        let checks = checks.filter(|check| check.is_identity() == identity);
        checks
            .map(|check| check.name())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (identity, others) = (names(true), names(false));
    tracing::warn!(%identity, %others, "these checks are only observed: requests that fail them reach the core");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::revocation::RevocationSettings;

    #[test]
    fn a_key_is_rotated_before_it_is_used_up() {
        let level = |count| seals_finding("0000000a", count).map(|finding| finding.level);
        assert_eq!(level(SEALS_ALERT - 1), None);
        assert_eq!(level(SEALS_ALERT), Some(Level::Soon));
        assert_eq!(level(MOST_SEALS), Some(Level::Over));
    }

    #[test]
    fn refusals_by_an_unknown_status_are_found_for_minutes() {
        let revocation = Revocation::new(RevocationSettings::default()).unwrap();
        let at = |seconds| {
            let found = revocation_finding(&revocation, Timestamp::from_unix(seconds));
            found.map(|finding| finding.level)
        };
        assert_eq!(at(1_000), None);
        revocation.refuse(Timestamp::from_unix(1_000));
        assert_eq!([1_000, 1_299].map(at), [Some(Level::Over); 2]);
        assert_eq!(at(1_300), None);
    }
}
