//! The current configuration as one value, which a reload replaces (CRT-8).
//!
//! Invariant: a request, a handshake and a call of the control listener load the value once, at their beginning, and use that
//! value to their end, so none of them mixes two configurations. Deliberately not here: settings that only a restart changes
//! ([`Fixed`]), state, counters, and the reload itself (`gateway`).

use crate::{
    admission::Snapshot,
    clock::Timestamp,
    config::{ControlAccess, Fixed, ReadFiles, Reloadable},
    sca::Links,
    telemetry::{ConfigurationFacts, Handles, Telemetry},
    trust,
};
use arc_swap::ArcSwap;
use rustls::sign::CertifiedKey;
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
    /// The certificate of the public listener, and its key.
    pub identity: Arc<CertifiedKey>,
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
        // Destructured without `..`: each new reloadable setting must be used or ignored here explicitly.
        let Reloadable {
            identity,
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
            identity,
            control,
            openapi,
            files,
            since: now,
        }
    }

    /// The facts of this configuration that metrics show.
    pub fn facts(&self) -> ConfigurationFacts<'_> {
        let trust = &self.snapshot.trust;
        let own = self.identity.cert.first();
        let own = own.and_then(|own| trust::end_of(own));
        ConfigurationFacts {
            since: self.since,
            ends: trust
                .ends()
                .chain(own.map(|end| ("listener", end)))
                .collect(),
            seen: trust.seen(),
            registers: self.snapshot.registers.as_deref(),
            revocation: trust
                .revocation()
                .map(|revocation| &**revocation.counters()),
            seals: self.links.sealed().collect(),
        }
    }
}
