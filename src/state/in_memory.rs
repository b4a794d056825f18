//! A store in the memory of a process, for tests.

use super::{
    StateSettings, StateStore, VolatileTables, any_engine::AnyEngine, event_key::EventKey,
};
use std::sync::atomic::AtomicBool;

impl StateStore {
    /// Opens tables in the memory of this process; several stores can share them, as processes share a file. For tests.
    pub fn open_volatile(settings: &StateSettings, tables: &VolatileTables) -> Self {
        // Without its key, this engine for tests names no customer.
        let customers = EventKey::read(&settings.events).ok().flatten();
        let recorded = customers.as_ref().map(|key| key.check().to_string());
        let (volatile, process) = tables.open(settings, recorded);
        Self {
            keys: Box::new(tables.keys().with_customers(customers)),
            process,
            engine: AnyEngine::Volatile(Box::new(volatile)),
            was_proven: AtomicBool::new(false),
        }
    }
}
