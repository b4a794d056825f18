//! One type for all engines.

#[cfg(feature = "sandbox")]
use super::volatile::Volatile;
use super::{
    Counters, CustomerHash, Dated, EngineSettings, Keys, OpenFault, PsuHash, StateSettings,
    Unavailable, blocks::Standing, change::Change, engine::Engine, outbox::Outbox,
    postgres::Postgres, process::Process, rows::BoundPsu, rules::Table, settings::EarlierSchema,
    sqlite::Sqlite, sweep::Step,
};
use portvakt_base::clock::Timestamp;
use std::sync::Arc;

/// The engine of an open store.
pub(super) enum AnyEngine {
    /// A file on one machine.
    Sqlite(Box<Sqlite>),
    /// A database that several gateways share.
    Postgres(Box<Postgres>),
    /// The memory of this process, for tests.
    #[cfg(feature = "sandbox")]
    Volatile(Box<Volatile>),
}

impl AnyEngine {
    /// Opens the engine of these settings, with the key of its hashes and the memory that it keeps current.
    pub(super) fn open(
        settings: &StateSettings,
        earlier: EarlierSchema,
    ) -> Result<(Self, Keys, Arc<Process>), OpenFault> {
        match &settings.engine {
            EngineSettings::Sqlite => {
                let (engine, keys, process) = Sqlite::open(settings, earlier)?;
                Ok((Self::Sqlite(Box::new(engine)), keys, process))
            }
            EngineSettings::Postgres(server) => {
                let (engine, keys, process) = Postgres::open(settings, server, earlier)?;
                Ok((Self::Postgres(Box::new(engine)), keys, process))
            }
        }
    }

    /// Tries whether [`AnyEngine::open`] would succeed.
    pub(super) fn try_open(settings: &StateSettings) -> Result<(), OpenFault> {
        match &settings.engine {
            EngineSettings::Sqlite => Sqlite::try_open(settings),
            EngineSettings::Postgres(server) => Postgres::try_open(settings, server),
        }
    }

    /// Tries whether an earlier schema can be migrated. That of a database which others use cannot.
    pub(super) fn rehearse(settings: &StateSettings) -> Result<(), OpenFault> {
        match &settings.engine {
            EngineSettings::Sqlite => Sqlite::rehearse(settings),
            EngineSettings::Postgres(_) => Err(OpenFault::PostgresEarlier),
        }
    }

    /// Whether gateways on other machines use the same state.
    pub(super) const fn is_shared(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            Self::Postgres(_) => true,
            #[cfg(feature = "sandbox")]
            Self::Volatile(_) => false,
        }
    }

    /// Whether only a restart of this process makes it use a shared state again.
    pub(super) fn needs_restart(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            Self::Postgres(postgres) => postgres.needs_restart(),
            #[cfg(feature = "sandbox")]
            Self::Volatile(_) => false,
        }
    }
}

/// Calls a method of the selected engine.
macro_rules! each {
    ($self:ident, $engine:ident => $call:expr) => {
        match $self {
            AnyEngine::Sqlite($engine) => $call,
            AnyEngine::Postgres($engine) => $call,
            #[cfg(feature = "sandbox")]
            AnyEngine::Volatile($engine) => $call,
        }
    };
}

/// Waits for a method of the selected engine. The future of a database is large and waits for a network anyway: on the heap, it does not
/// make each admission larger, whatever its engine is.
macro_rules! wait {
    ($self:ident, $engine:ident => $call:expr) => {
        match $self {
            AnyEngine::Sqlite($engine) => $call.await,
            AnyEngine::Postgres($engine) => Box::pin($call).await,
            #[cfg(feature = "sandbox")]
            AnyEngine::Volatile($engine) => $call.await,
        }
    };
}

impl Engine for AnyEngine {
    async fn psu(&self, psu: PsuHash) -> Result<Dated<Option<BoundPsu>>, Unavailable> {
        wait!(self, engine => engine.psu(psu))
    }

    async fn psus_of(
        &self,
        customer: CustomerHash,
        after: Option<PsuHash>,
        most: u32,
    ) -> Result<Vec<(PsuHash, BoundPsu)>, Unavailable> {
        wait!(self, engine => engine.psus_of(customer, after, most))
    }

    async fn standing(&self) -> Result<Dated<Standing>, Unavailable> {
        wait!(self, engine => engine.standing())
    }

    async fn events(&self, after: u64, most: u32) -> Result<Outbox, Unavailable> {
        wait!(self, engine => engine.events(after, most))
    }

    async fn commit<C: Change>(&self, change: C) -> Result<C::Outcome, Unavailable> {
        wait!(self, engine => engine.commit(change))
    }

    async fn sweep(
        &self,
        table: Table,
        now: Timestamp,
        is_first: bool,
    ) -> Result<Step, Unavailable> {
        wait!(self, engine => engine.sweep(table, now, is_first))
    }

    fn health(&self) -> Result<(), Unavailable> {
        each!(self, engine => engine.health())
    }

    fn has_written(&self) -> bool {
        each!(self, engine => engine.has_written())
    }

    fn counters(&self) -> Counters {
        each!(self, engine => engine.counters())
    }
}
