//! One type for all engines.

#[cfg(feature = "sandbox")]
use super::volatile::Volatile;
use super::{
    Block, BlockHash, Counters, Dated, PsuHash, Unavailable, change::Change, engine::Engine,
    postgres::Postgres, rows::BoundPsu, sqlite::Sqlite,
};
use portvakt_base::clock::Timestamp;

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

impl Engine for AnyEngine {
    async fn psu(&self, psu: PsuHash) -> Result<Dated<Option<BoundPsu>>, Unavailable> {
        each!(self, engine => engine.psu(psu).await)
    }

    async fn blocks(&self) -> Result<Dated<Vec<(BlockHash, Block)>>, Unavailable> {
        each!(self, engine => engine.blocks().await)
    }

    async fn commit<C: Change>(&self, change: C) -> Result<C::Outcome, Unavailable> {
        each!(self, engine => engine.commit(change).await)
    }

    async fn tidy(&self, now: Timestamp) -> Result<u64, Unavailable> {
        each!(self, engine => engine.tidy(now).await)
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
