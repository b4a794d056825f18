//! The settings of the state in PostgreSQL.

use std::{path::PathBuf, time::Duration};

/// The section `state.postgres` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresSettings {
    /// Hosts, database, user, and the password unless a file has it. All hosts belong to one cluster; the gateway uses the primary among
    /// them.
    pub server: tokio_postgres::Config,
    /// The file of the password; `None` if `server` has it, or the database does not ask for one.
    pub password: Option<PathBuf>,
    /// TLS to the database; `None` for Unix sockets and for a network that is protected otherwise.
    pub tls: Option<PostgresTls>,
    /// The number of connections that write.
    pub pool: usize,
    /// Whether a database without a synchronous standby is refused.
    pub require_sync: bool,
    /// The answers from memory while the database is not heard.
    pub reads: StaleReads,
    /// A fault that a test plants, to show that its checks find it.
    #[cfg(feature = "sandbox")]
    pub planted: Option<PlantedFault>,
    /// The time that a caller waits for an answer: a test in which a standby is missing needs more.
    #[cfg(feature = "sandbox")]
    pub patience: Duration,
}

/// The time that a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A fault of the engine that a test can plant. No deployed build has a way to select one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// Callers are answered before the commit is confirmed.
    AnswerBeforeCommit,
    /// A commit whose outcome is unknown is decided again without asking.
    BlindRetry,
    /// Former primaries are used.
    NoFencing,
    /// Changes of PSUs wake no other gateway.
    LostNotify,
}

/// TLS to the database. The server's certificate must be valid for the host name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresTls {
    /// The CA certificates (PEM) that the server's certificate chains to.
    pub ca: PathBuf,
    /// The client's certificate chain and key (PEM), if the server asks for them.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The use of cached PSUs while the database has not been heard for a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleReads {
    /// They are not used: requests that need them are refused.
    Refuse,
    /// They are used: a session that ended or a consent that was withdrawn at another gateway stays valid here meanwhile.
    Allow,
}

impl PostgresSettings {
    /// The default number of connections that write.
    pub const POOL: usize = 4;

    /// The defaults for a server.
    pub fn new(server: tokio_postgres::Config) -> Self {
        Self {
            server,
            password: None,
            tls: None,
            pool: Self::POOL,
            require_sync: false,
            reads: StaleReads::Refuse,
            #[cfg(feature = "sandbox")]
            planted: None,
            #[cfg(feature = "sandbox")]
            patience: PATIENCE,
        }
    }

    /// The time that a caller waits for an answer.
    #[cfg(feature = "sandbox")]
    pub(super) const fn patience(&self) -> Duration {
        self.patience
    }

    /// The time that a caller waits for an answer.
    #[cfg(not(feature = "sandbox"))]
    #[expect(clippy::unused_self, reason = "a test's build has its own")]
    pub(super) const fn patience(&self) -> Duration {
        PATIENCE
    }

    /// Whether a test planted this fault.
    #[cfg(feature = "sandbox")]
    pub(super) fn has_planted(&self, fault: PlantedFault) -> bool {
        self.planted == Some(fault)
    }

    /// Never: a deployed build has no faults to plant.
    #[cfg(not(feature = "sandbox"))]
    pub(super) const fn has_planted(&self, _: PlantedFault) -> bool {
        false
    }
}
