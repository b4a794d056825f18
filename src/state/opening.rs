//! The opening of a store, and what becomes of a state of an earlier schema.
//!
//! Invariant: nothing is migrated that a process of another version uses. Of a file the caller knows that; gateways of a database hold a lock.

use super::{
    OpenFault, StateSettings, StateStore, any_engine::AnyEngine, event_key::EventKey,
    settings::EarlierSchema,
};
use std::sync::atomic::AtomicBool;

impl StateStore {
    /// Opens the state of a configuration; the first start creates its file, its hash key and their folders. A state of an earlier schema is
    /// refused: a process of the version before may use it.
    ///
    /// # Errors
    /// The reason why the state cannot be used. An existing file is not changed.
    pub fn open(settings: &StateSettings) -> Result<Self, OpenFault> {
        Self::open_or_migrate(settings, EarlierSchema::Refused)
    }

    /// The same, but a state of an earlier schema is migrated: for a gateway beside which no other process uses the file. A database is refused
    /// while another gateway uses it.
    ///
    /// # Errors
    /// The reason why the state cannot be used. An existing file is not changed.
    pub fn open_and_migrate(settings: &StateSettings) -> Result<Self, OpenFault> {
        Self::open_or_migrate(settings, EarlierSchema::Migrated)
    }

    fn open_or_migrate(
        settings: &StateSettings,
        earlier: EarlierSchema,
    ) -> Result<Self, OpenFault> {
        let customers = EventKey::read(&settings.events)?;
        let (engine, keys, process) = AnyEngine::open(settings, earlier)?;
        if let Some(key) = &customers {
            process.customer_key.begin(key.check());
        }
        Ok(Self {
            keys: Box::new(keys.with_customers(customers)),
            process,
            engine,
            was_proven: AtomicBool::new(false),
        })
    }

    /// Tries whether [`StateStore::open`] would succeed. Creates no file and no table, and migrates none.
    ///
    /// # Errors
    /// The reason why the state cannot be used.
    pub fn try_open(settings: &StateSettings) -> Result<(), OpenFault> {
        EventKey::read(&settings.events)?;
        AnyEngine::try_open(settings)
    }

    /// Tries whether [`StateStore::open_and_migrate`] would migrate the state, on a copy of the file that is removed afterwards. A process
    /// of the version before may use the state meanwhile. A database is refused: gateways on other machines would go on with it.
    ///
    /// # Errors
    /// The reason why the state cannot be migrated.
    pub fn rehearse(settings: &StateSettings) -> Result<(), OpenFault> {
        EventKey::read(&settings.events)?;
        AnyEngine::rehearse(settings)
    }
}
