//! Connections to the primary.
//!
//! All hosts of the settings are tried at once, so that a host that does not answer delays nothing: the others are asked again
//! meanwhile. Of the servers that accept writes, the one with the highest timeline is used. Invariant: no statement of a request runs on
//! a server that the fence refuses, or whose schema, key or state is another one.

pub(super) use super::session::{Session, text};
use super::{
    fence::{Fence, PrimaryIdentity},
    session::{self, Driver},
    settings::{PlantedFault, PostgresSettings},
    standby,
    statements::{PROOF, Statements},
    tls::Tls,
};
use crate::{level::OwnLevel, settings::KEY_ROW};
use portvakt_base::private_file;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_postgres::{Client, Config, config::Host, config::SslMode, types::ToSql};
use uuid::Uuid;

/// The latest schema that this version knows.
pub(super) const SCHEMA: &str = "5";

/// The schemas before, in their order, which a start migrates.
pub(super) const SCHEMAS_BEFORE: [&str; 4] = ["1", "2", "3", "4"];

/// The row of `meta` with the schema.
pub(super) const SCHEMA_ROW: &str = "schema";

/// The setting of a session with the check value of its level.
pub(super) const LEVEL_SETTING: &str = "portvakt.hash_key_check";

/// The time for a host to answer: TLS, a password and the first statements are seven round trips, of up to a quarter of a second.
const CONNECT: Duration = Duration::from_secs(2);

/// The pause before a host that refused is asked again.
const AGAIN: Duration = Duration::from_millis(100);

/// The time to wait for the other hosts when one has answered: a former primary may answer first.
const OTHERS: Duration = Duration::from_millis(150);

/// The time for a server to take a cancellation.
const CANCEL: Duration = Duration::from_millis(300);

/// The maximum size of the password's file.
const MAX_PASSWORD: usize = 4_096;

/// A connection that is ready for the engine's statements.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) statements: Statements,
    pub(super) origin: PrimaryIdentity,
    /// Of this connection alone.
    pub(super) id: Uuid,
    /// Set by a notification of the server.
    pub(super) notified: Arc<Notify>,
    /// The time at which the server's process had read its settings when the connection was opened.
    pub(super) settings_of: String,
    warned: Arc<AtomicBool>,
    _driver: Driver,
}

impl Link {
    /// Whether the server gave a warning since the last call: a commit may not be on the standby.
    pub(super) fn take_warning(&self) -> bool {
        self.warned.swap(false, Ordering::AcqRel)
    }
}

/// Opens connections.
pub(super) struct Connector {
    settings: PostgresSettings,
    pub(super) fence: Fence,
    /// The level of this process, once it is known.
    level: OnceLock<OwnLevel>,
}

impl Connector {
    pub(super) fn new(settings: PostgresSettings) -> Self {
        Self {
            settings,
            fence: Fence::new(),
            level: OnceLock::new(),
        }
    }

    /// Keeps the level of this process. Only connections with it write.
    pub(super) fn set_level(&self, level: OwnLevel) {
        let _ = self.level.set(level);
    }

    /// Compares the check value that the database has.
    ///
    /// # Errors
    /// The database has another level, or had one.
    pub(super) fn judge_level(&self, found: &str) -> Result<(), String> {
        match self.level.get() {
            Some(level) => level.judge(found),
            None => Err("the level of the hash key is not known".to_owned()),
        }
    }

    /// Whether the state was not replaced, and its hash key was not rotated.
    ///
    /// # Errors
    /// The reason for the operator: nothing of the state is used before the next start.
    pub(super) fn check_state(&self) -> Result<(), String> {
        self.fence.check_state()?;
        self.level.get().map_or(Ok(()), OwnLevel::is_current)
    }

    /// A connection to the primary, with the right schema and key.
    ///
    /// # Errors
    /// The reason for the operator.
    pub(super) async fn open(&self) -> Result<Link, String> {
        self.check_state()?;
        let session = self.connect().await?;
        // A setting of the role or of the database applies to new connections: the follower's may be an older one.
        if self.settings.require_sync
            && let Some(reason) = &session.weak_commits
        {
            return Err(standby::refusal(reason));
        }
        let opening = async {
            let (marked, checked, proven, statements) = tokio::join!(
                self.mark(&session),
                self.check(&session),
                self.prove(&session),
                Statements::prepare(&session.client),
            );
            marked?;
            // First: of a state that was replaced, the check value says nothing.
            proven?;
            checked?;
            statements.map_err(|error| text(&error))
        };
        let statements = timeout(CONNECT, opening).await;
        let statements = statements.map_err(|_| slow())??;
        Ok(Link {
            client: session.client,
            statements,
            origin: session.origin,
            id: Uuid::new_v4(),
            notified: session.notified,
            settings_of: session.settings_of,
            warned: session.warned,
            _driver: session.driver,
        })
    }

    /// Whether a connection is open, and no newer primary was seen.
    pub(super) fn is_usable(&self, link: &Link) -> bool {
        !link.client.is_closed()
            && self.fence.is_current(&link.origin)
            && self.check_state().is_ok()
    }

    /// Ends the statement of a connection, if the server can be reached.
    pub(super) async fn cancel(&self, link: &Link) {
        if let Ok(tls) = Tls::new(self.settings.tls.as_ref()) {
            let token = link.client.cancel_token();
            let _ = timeout(CANCEL, token.cancel_query(tls)).await;
        }
    }

    /// Checks that the database has what this gateway committed last.
    async fn prove(&self, session: &Session) -> Result<(), String> {
        let Some(proof) = self.fence.proof() else {
            return Ok(());
        };
        let parameters: [&(dyn ToSql + Sync); 2] = [&proof.id, &proof.at];
        let found = session.client.execute(PROOF, &parameters).await;
        match found.map_err(|error| text(&error))? {
            0 => self.fence.miss(proof, &session.origin),
            _ => Ok(()),
        }
    }

    /// Tells the server the level of the session. After a rotation it refuses to write what one of another level decided, or of none.
    async fn mark(&self, session: &Session) -> Result<(), String> {
        let check = self.level.get().map_or("", OwnLevel::check_value);
        let set = "SELECT set_config($1, $2, false)";
        let parameters: [&(dyn ToSql + Sync); 2] = [&LEVEL_SETTING, &check];
        let done = session.client.execute(set, &parameters).await;
        done.map(drop).map_err(|error| text(&error))
    }

    async fn check(&self, session: &Session) -> Result<(), String> {
        let rows = session
            .client
            .query("SELECT name, value FROM meta", &[])
            .await
            .map_err(|error| text(&error))?;
        let value = |name: &str| {
            let found = rows
                .iter()
                .find(|row| row.try_get::<_, &str>(0).is_ok_and(|found| found == name));
            found.and_then(|row| row.try_get::<_, String>(1).ok())
        };
        match value(SCHEMA_ROW) {
            Some(schema) if schema == SCHEMA => {}
            found => {
                let found = found.unwrap_or_else(|| "none".to_owned());
                return Err(format!(
                    "the database has schema {found}, and this version knows {SCHEMA}"
                ));
            }
        }
        self.judge_level(&value(KEY_ROW).unwrap_or_default())
    }

    /// A connection to the primary, whatever its schema.
    ///
    /// # Errors
    /// The reasons of all hosts.
    pub(super) async fn connect(&self) -> Result<Session, String> {
        let tls = Tls::new(self.settings.tls.as_ref())?;
        let configs = self.hosts()?;
        let silent = Arc::new(AtomicUsize::new(configs.len()));
        let mut hosts = JoinSet::new();
        for config in configs {
            hosts.spawn(ask(config, tls.clone(), Arc::clone(&silent)));
        }
        let fenced = !self.settings.has_planted(PlantedFault::NoFencing);
        let mut best: Option<Session> = None;
        let mut faults = Vec::new();
        loop {
            let next = async { hosts.join_next().await };
            let next = match best {
                None => next.await,
                Some(_) => timeout(OTHERS, next).await.unwrap_or(None),
            };
            match next {
                None => break,
                // A former primary must not end the wait for the new one.
                Some(Ok(Ok(session))) if fenced && !self.fence.is_current(&session.origin) => {
                    faults.extend(self.fence.admit(&session.origin).err());
                }
                Some(Ok(Ok(session))) => {
                    let timeline = best.as_ref().map(|best| best.origin.timeline);
                    if timeline < Some(session.origin.timeline) {
                        best = Some(session);
                    }
                }
                Some(Ok(Err(fault))) => faults.push(fault),
                Some(Err(_)) => faults.push("a connection ended".to_owned()),
            }
        }
        let Some(session) = best else {
            return Err(faults.join("; "));
        };
        if fenced {
            self.fence.admit(&session.origin)?;
        }
        Ok(session)
    }

    /// A connection to one host of the settings, whether it is the primary or not.
    ///
    /// # Errors
    /// The reason for the operator.
    pub(super) async fn connect_to(&self, host: usize) -> Result<(Client, Driver), String> {
        let tls = Tls::new(self.settings.tls.as_ref())?;
        let hosts = self.hosts()?;
        let config = hosts.get(host).ok_or("there is no such host")?;
        session::connect(config, tls, &Arc::default(), &Arc::default()).await
    }

    /// The settings of each host alone.
    fn hosts(&self) -> Result<Vec<Config>, String> {
        let server = &self.settings.server;
        let mut common = Config::new();
        common
            .connect_timeout(CONNECT)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(1))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(5))
            .application_name(server.get_application_name().unwrap_or("portvakt"));
        common.ssl_mode(match self.settings.tls {
            Some(_) => SslMode::Require,
            None => SslMode::Disable,
        });
        if let Some(user) = server.get_user() {
            common.user(user);
        }
        if let Some(name) = server.get_dbname() {
            common.dbname(name);
        }
        if let Some(options) = server.get_options() {
            common.options(options);
        }
        if let Some(password) = server.get_password() {
            common.password(password);
        }
        if let Some(path) = &self.settings.password {
            let password = private_file::read(path, MAX_PASSWORD);
            let password = password.map_err(|fault| format!("{}: {fault}", path.display()))?;
            common.password(password.trim_ascii_end());
        }
        let ports = server.get_ports();
        let with_host = |(index, host): (usize, &Host)| {
            let mut config = common.clone();
            match host {
                Host::Tcp(name) => config.host(name),
                Host::Unix(path) => config.host_path(path),
            };
            let port = ports.get(index).or_else(|| ports.first());
            config.port(port.copied().unwrap_or(5432));
            config
        };
        Ok(server
            .get_hosts()
            .iter()
            .enumerate()
            .map(with_host)
            .collect())
    }
}

/// The host and port of a configuration, for messages.
fn host_name(config: &Config) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts().first() {
        Some(Host::Tcp(name)) => format!("{name}:{port}"),
        Some(Host::Unix(path)) => format!("{}:{port}", path.display()),
        None => port.to_string(),
    }
}

/// Asks a host whether it is the primary, and again while another host is silent: this one may be promoted meanwhile.
async fn ask(config: Config, tls: Tls, silent: Arc<AtomicUsize>) -> Result<Session, String> {
    let once = async || {
        let session = timeout(CONNECT, session::open(&config, tls.clone())).await;
        session.unwrap_or_else(|_| Err(slow()))
    };
    let mut outcome = once().await;
    silent.fetch_sub(1, Ordering::Relaxed);
    while outcome.is_err() && silent.load(Ordering::Relaxed) > 0 {
        sleep(AGAIN).await;
        outcome = once().await;
    }
    outcome.map_err(|fault| format!("{}: {fault}", host_name(&config)))
}

fn slow() -> String {
    format!("no answer for {} s", CONNECT.as_secs())
}
