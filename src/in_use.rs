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
    config::{ControlAccess, Fixed, ReadFiles, Reloadable, ServerCertificates, TicketKeys},
    interface::{
        Refusal,
        openapi::page::{self, Document},
    },
    sca::Links,
    telemetry::{CertificateUse, ConfigurationFacts, EndpointFacts, Handles, Telemetry},
    upstreams::Upstreams,
};
use arc_swap::ArcSwap;
use serde_json::Value;
use std::sync::Arc;

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
    /// The files that the configuration was read from.
    pub files: ReadFiles,
    /// When the certificate that signs answers ends; `None` if answers are not signed. Only a restart changes it.
    pub answer_signer_end: Option<Timestamp>,
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
    /// Builds the current configuration from `settings`. `links` and `upstreams` must be those of `settings`.
    pub fn new(
        fixed: &Fixed,
        settings: Reloadable,
        links: Links,
        upstreams: Arc<Upstreams>,
        telemetry: &Telemetry,
        now: Timestamp,
    ) -> Self {
        let openapi = settings.openapi(fixed);
        let signing = fixed.response_signing.as_ref();
        warn_of_observed(&settings.snapshot.policy.enforcement);
        // Destructured without `..`: each new reloadable setting must be used or ignored here explicitly.
        let Reloadable {
            certificates,
            ticket_keys,
            control,
            upstreams: _,
            sca: _,
            snapshot,
            trust: _,
            operations: _,
            warnings: _,
            files,
        } = settings;
        Self {
            handles: telemetry.handles(&snapshot.catalogue),
            snapshot,
            upstreams,
            links: Arc::new(links),
            certificates,
            ticket_keys,
            control,
            documents: match fixed.listener.description {
                true => page::documents(&openapi).into(),
                false => Vec::new(),
            },
            openapi,
            files,
            answer_signer_end: signing.and_then(|signing| signing.signer.end()),
            since: now,
            needs_restart: Vec::new(),
        }
    }

    /// The facts of this configuration that metrics show.
    pub fn facts(&self) -> ConfigurationFacts<'_> {
        let trust = &self.snapshot.trust;
        ConfigurationFacts {
            environment: self.snapshot.policy.environment,
            since: self.since,
            shown: self.files.shown.as_ref(),
            ends: self.ends(),
            seen: trust.seen(),
            registers: self.snapshot.registers.as_deref(),
            revocation: trust.revocation().map(Arc::as_ref),
            seals: self.links.sealed().collect(),
            observed: self.snapshot.policy.enforcement.observed(),
            sca_links: self.links.made(),
            endpoints: self.endpoints(),
        }
    }

    /// The end of the certificate of each kind that ends first.
    fn ends(&self) -> Vec<(CertificateUse, Timestamp)> {
        let tls = self.control.tls.as_ref();
        let [control, control_ca] = tls.map_or([None; 2], |tls| tls.ends);
        let groups = self.upstreams.groups().iter();
        let upstream = groups.filter_map(|group| Some(group.settings().tls.as_ref()?.ends));
        let upstream: Vec<_> = upstream.collect();
        let first = |of: fn(&[Option<Timestamp>; 2]) -> Option<Timestamp>| {
            upstream.iter().filter_map(of).min()
        };
        let [anchor, intermediate, client_anchor] = self.snapshot.trust.ends();
        let all = [
            (CertificateUse::Anchor, anchor),
            (CertificateUse::Intermediate, intermediate),
            (CertificateUse::ClientAnchor, client_anchor),
            (CertificateUse::Listener, self.certificates.end()),
            (CertificateUse::ListenerOcsp, self.certificates.ocsp_end()),
            (CertificateUse::ResponseSigning, self.answer_signer_end),
            (CertificateUse::Control, control),
            (CertificateUse::ControlCa, control_ca),
            (CertificateUse::Upstream, first(|[own, _]| *own)),
            (CertificateUse::UpstreamCa, first(|[_, ca]| *ca)),
        ];
        let all = all.into_iter();
        all.filter_map(|(of, end)| Some((of, end?))).collect()
    }

    fn endpoints(&self) -> Vec<EndpointFacts> {
        let groups = self.upstreams.groups().iter();
        let facts = groups.flat_map(|group| {
            let states = group.states().into_iter();
            states.map(|state| EndpointFacts {
                upstream: group.settings().name.clone(),
                endpoint: state.endpoint,
                is_up: state.usable > 0,
                failures: state.failures,
            })
        });
        facts.collect()
    }
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
