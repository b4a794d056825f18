//! Reports inner addresses to the operator: each is counted, and at most one per minute is logged.

use crate::{clock::Timestamp, interface::operations::Operation, telemetry::Telemetry};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

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
    /// The minute of the last log line.
    logged: AtomicU64,
}

impl AddressReport {
    pub(in crate::gateway) const fn new(telemetry: Arc<Telemetry>) -> Self {
        Self {
            telemetry,
            logged: AtomicU64::new(0),
        }
    }

    /// Counts an inner address in an answer, and logs it if this minute has no line yet.
    pub(in crate::gateway) fn report(
        &self,
        place: AddressPlace,
        action: AddressAction,
        operation: Option<&Operation>,
        now: Timestamp,
    ) {
        let (place, done) = (place.name(), action.name());
        self.telemetry.inner_address(place, done);
        let minute = now.unix() / 60;
        if self.logged.swap(minute, Ordering::Relaxed) != minute {
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
