//! Reports inner addresses to the operator: each is counted, and of the answers to one TPP a few per minute are logged (FWD-8).

use crate::{
    gateway::exchange::Exchange,
    telemetry::{AddressAction, AddressPlace, Telemetry},
};
use std::sync::Arc;
use tracing::Level;

/// Reports inner addresses.
#[derive(Debug)]
pub(in crate::gateway) struct AddressReport {
    telemetry: Arc<Telemetry>,
}

impl AddressReport {
    pub(in crate::gateway) const fn new(telemetry: Arc<Telemetry>) -> Self {
        Self { telemetry }
    }

    /// Counts an inner address in the answer of this exchange, and logs it if its subject has a place for it.
    pub(in crate::gateway) fn report(
        &self,
        place: AddressPlace,
        action: AddressAction,
        exchange: &Exchange<'_>,
    ) {
        self.telemetry.inner_address(place, action);
        let cause = "inner-address";
        if self
            .telemetry
            .has_event(Level::WARN, cause, exchange.subject())
        {
            let operation = exchange
                .operation()
                .map(|operation| operation.name.as_str());
            tracing::warn!(
                operation,
                place = place.name(),
                done = action.name(),
                "an answer of the core names a host that only the bank's network has"
            );
        }
    }
}
