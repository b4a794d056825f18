//! The current configuration as one value, which a reload replaces (CRT-8).
//!
//! Invariant: a request, a handshake and a call of the control listener load the value once, at their beginning, and use that
//! value to their end, so none of them mixes two configurations. Deliberately not here: settings that only a restart changes
//! ([`Fixed`]), state, counters, and the reload itself (`gateway`).

use crate::{
    admission::Snapshot,
    clock::Timestamp,
    config::{ControlAccess, Fixed, ReadFiles, Reloadable, ServerCertificates, TicketKeys},
    sca::Links,
    telemetry::{ConfigurationFacts, Handles, Telemetry},
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
    /// The files that the configuration was read from.
    pub files: ReadFiles,
    /// The time at which the configuration was taken into use.
    pub since: Timestamp,
}

impl InUse {
    /// Builds the current configuration from `settings`. `links` must be those of `settings`.
    pub fn new(
        fixed: &Fixed,
        settings: Reloadable,
        links: Links,
        telemetry: &Telemetry,
        now: Timestamp,
    ) -> Self {
        let openapi = settings.openapi(fixed);
        if settings
            .certificates
            .ocsp_end()
            .is_some_and(|end| end < now)
        {
            tracing::warn!("an OCSP response of the listener has ended, and is not sent");
        }
        // Destructured without `..`: each new reloadable setting must be used or ignored here explicitly.
        let Reloadable {
            certificates,
            ticket_keys,
            control,
            sca: _,
            snapshot,
            trust: _,
            operations: _,
            files,
        } = settings;
        Self {
            handles: telemetry.handles(&snapshot.catalogue),
            snapshot,
            links: Arc::new(links),
            certificates,
            ticket_keys,
            control,
            openapi,
            files,
            since: now,
        }
    }

    /// The facts of this configuration that metrics show.
    pub fn facts(&self) -> ConfigurationFacts<'_> {
        let trust = &self.snapshot.trust;
        let own = [
            ("listener", self.certificates.end()),
            ("listener_ocsp", self.certificates.ocsp_end()),
        ];
        let own = own.into_iter().filter_map(|(of, end)| Some((of, end?)));
        ConfigurationFacts {
            environment: self.snapshot.policy.environment,
            since: self.since,
            ends: trust.ends().chain(own).collect(),
            seen: trust.seen(),
            registers: self.snapshot.registers.as_deref(),
            revocation: trust.revocation().map(Arc::as_ref),
            seals: self.links.sealed().collect(),
            sca_started: self.links.started(),
        }
    }
}
