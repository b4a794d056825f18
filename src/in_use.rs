//! The configuration in use, as one value that a reload replaces (CRT-8).
//!
//! Invariant: a request, a handshake and a call of the control listener take the value once, at their beginning, and go by it to
//! their end; so nothing is judged by parts of two configurations. Deliberately not here: settings that only a restart changes
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

/// The one place that holds the configuration in use.
pub type Current = ArcSwap<InUse>;

/// Everything that a reload replaces, ready to be used.
#[derive(Debug)]
pub struct InUse {
    /// What requests are judged by.
    pub snapshot: Snapshot,
    /// The links by which PSUs authenticate, and the tokens of SCA under way.
    pub links: Arc<Links>,
    /// The metrics of the operations in the snapshot's catalogue.
    pub handles: Handles,
    /// The certificate that the public listener shows, and its key.
    pub identity: Arc<CertifiedKey>,
    /// Who may call the control listener.
    pub control: ControlAccess,
    /// The interface as OpenAPI.
    pub openapi: Value,
    /// The files that all this was read from.
    pub files: ReadFiles,
    /// When it was taken into use.
    pub since: Timestamp,
}

impl InUse {
    /// Settings that are taken into use at this moment by a gateway with these fixed settings. `links` are those of the settings.
    pub fn new(
        fixed: &Fixed,
        settings: Reloadable,
        links: Links,
        telemetry: &Telemetry,
        now: Timestamp,
    ) -> Self {
        let openapi = settings.openapi(fixed);
        // Taken apart without `..`: a setting that a reload replaces must be part of the configuration in use, or be named here.
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

    /// What metrics show of it.
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
