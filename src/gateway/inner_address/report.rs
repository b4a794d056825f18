//! Reports inner addresses to the operator: each is counted, and of the answers to one TPP a few per minute are logged (FWD-8).

use crate::{
    interface::operations::Operation,
    telemetry::{Subject, Telemetry},
};
use std::sync::Arc;
use tracing::Level;

/// The position of an inner address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum AddressPlace {
    Location,
    ContentLocation,
    Link,
    /// Any other header.
    Other,
    Body,
}

/// The gateway's action on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum AddressAction {
    /// The host was removed, so the address is relative.
    MadeRelative,
    /// The address was removed.
    Removed,
    /// The address was passed on unchanged.
    Passed,
}

impl AddressPlace {
    /// The label of a metric.
    pub(in crate::gateway) const fn name(self) -> &'static str {
        match self {
            Self::Location => "location",
            Self::ContentLocation => "content-location",
            Self::Link => "link",
            Self::Other => "other",
            Self::Body => "body",
        }
    }
}

impl AddressAction {
    /// The label of a metric.
    pub(in crate::gateway) const fn name(self) -> &'static str {
        match self {
            Self::MadeRelative => "made-relative",
            Self::Removed => "removed",
            Self::Passed => "passed",
        }
    }
}

/// Reports inner addresses.
#[derive(Debug)]
pub(in crate::gateway) struct AddressReport {
    telemetry: Arc<Telemetry>,
}

impl AddressReport {
    pub(in crate::gateway) const fn new(telemetry: Arc<Telemetry>) -> Self {
        Self { telemetry }
    }

    /// Counts an inner address in an answer to this subject, and logs it if the subject has a place for it.
    pub(in crate::gateway) fn report(
        &self,
        place: AddressPlace,
        action: AddressAction,
        operation: Option<&Operation>,
        subject: Subject,
    ) {
        let (place, done) = (place.name(), action.name());
        self.telemetry.inner_address(place, done);
        let cause = "inner-address";
        if self.telemetry.has_event(Level::WARN, cause, subject) {
            let operation = operation.map(|operation| operation.name.as_str());
            tracing::warn!(
                operation,
                place,
                done,
                "an answer of the core names a host that only the bank's network has"
            );
        }
    }
}
