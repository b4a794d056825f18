//! Records of the audit about calls of the control listener.

use super::{context::Call, fault::ApiFault};
use crate::{
    audit::{AuditEvent, AuditKind},
    interface::{ForbiddenTpp, TppId, headers::PsuId},
    state::{ConsentAccounts, Known, PsuHash},
};

impl Call<'_> {
    /// A record about a PSU of a TPP.
    pub(super) fn event(
        self,
        kind: AuditKind,
        tpp: &TppId,
        psu: Option<Known<PsuId>>,
    ) -> AuditEvent {
        self.about(kind, tpp.as_str(), psu)
    }

    /// The same about a TPP that the call takes something from, in every spelling.
    pub(super) fn event_against(
        self,
        kind: AuditKind,
        tpp: &ForbiddenTpp,
        psu: Option<Known<PsuId>>,
    ) -> AuditEvent {
        self.about(kind, tpp.as_str(), psu)
    }

    fn about(self, kind: AuditKind, tpp: &str, psu: Option<Known<PsuId>>) -> AuditEvent {
        let context = self.context;
        let event = context.telemetry.audit().event(kind);
        let event = event.with("tpp", tpp);
        match psu {
            Some(psu) => event.about(context.store.keys().psu(psu)),
            None => event,
        }
    }

    /// A record about a PSU of a TPP that the caller names by another key, and the state by its keyed hash.
    pub(super) fn event_by_hash(self, kind: AuditKind, tpp: &TppId, psu: PsuHash) -> AuditEvent {
        self.about(kind, tpp.as_str(), None).about(psu)
    }

    /// Keeps records of one class. If the audit is required, all of them are durable on return: its writer takes them in their order, and
    /// writes those that the disk refused before together with the next ones.
    ///
    /// # Errors
    /// As of [`Self::record`].
    pub(super) async fn record_all(self, mut events: Vec<AuditEvent>) -> Result<(), ApiFault> {
        let Some(last) = events.pop() else {
            return Ok(());
        };
        let audit = self.context.telemetry.audit();
        for event in events {
            audit.record(event);
        }
        self.record(last).await
    }

    /// Keeps a record. If the audit is required, the record is durable on return.
    ///
    /// # Errors
    /// It is not durable yet. The change was made, so the record waits for the disk; the caller repeats its call.
    pub(super) async fn record(self, event: AuditEvent) -> Result<(), ApiFault> {
        let audit = self.context.telemetry.audit();
        let recorded = audit.record_durably(event.clone()).await;
        recorded.map_err(|_| {
            // The writer tries a record again only if nobody waits for it. After a time-out it may write both.
            audit.record(event);
            ApiFault::Unavailable
        })
    }
}

/// The accounts of a consent, in a word.
pub(super) const fn consent(consent: Option<&ConsentAccounts>) -> &'static str {
    match consent {
        None => "none",
        Some(ConsentAccounts::All) => "all",
        Some(ConsentAccounts::Named(_)) => "named",
    }
}
