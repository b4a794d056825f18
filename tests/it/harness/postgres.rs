//! A PostgreSQL server of the test's own, in a folder of its own; it ends with the test process, however that ends.

/// A proxy in front of a server.
mod proxy;

use super::{missing, waiting};
pub(crate) use proxy::{Lost, Proxy};
use std::{
    fs,
    io::Write,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Sender, channel},
    },
    thread::JoinHandle,
};
use tempfile::TempDir;

/// The folders of Debian's packages, which are not in PATH.
const DEBIAN: [&str; 4] = [
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/18/bin",
];

/// Runs the server until its standard input ends.
const KEEPER: &str = r#"
"$1/postgres" -D "$2/data" -c unix_socket_directories="$2" -c fsync=off -c max_connections=400 >"$2/log" 2>&1 &
server=$!
cat >/dev/null
kill -QUIT $server
wait $server
rm -rf "$2"
"#;

/// A running server.
pub(crate) struct Postgres {
    folder: TempDir,
    /// The port on 127.0.0.1, and in the name of the Unix socket.
    port: u16,
    /// Ends the server when its standard input is closed.
    keeper: Child,
}

/// The server that all tests of this process share; `None` where PostgreSQL is not installed.
pub(crate) fn postgres() -> Option<&'static Postgres> {
    static SERVER: LazyLock<Option<Postgres>> =
        LazyLock::new(|| Postgres::start(5432, "listen_addresses = ''", |_| {}));
    SERVER.as_ref()
}

/// The folder of the programs.
pub(crate) fn programs() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths)
        .chain(DEBIAN.map(PathBuf::from))
        .find(|folder| {
            ["initdb", "postgres", "pg_basebackup"]
                .iter()
                .all(|name| folder.join(name).is_file())
        })
}

/// The user that runs the server: PostgreSQL refuses root.
fn owner() -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let user = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map(|field| field.parse().unwrap());
        Some((fields.next()?, fields.next()?))
    };
    Some(user("postgres").or_else(|| user("nobody")).unwrap())
}

/// Writes a private file of the user that runs servers.
pub(crate) fn write_of_owner(path: &Path, content: &str) {
    super::write_private(path, content);
    if let Some((user, group)) = owner() {
        chown(path, Some(user), Some(group)).unwrap();
    }
}

/// A command as the user that runs servers.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = owner() {
        command.uid(user).gid(group);
    }
    command.current_dir("/");
    command
}

impl Postgres {
    /// Starts a server with additional settings; `prepare` gets the folder of its data. `None` where PostgreSQL is not installed.
    pub(crate) fn start(port: u16, settings: &str, prepare: impl FnOnce(&Path)) -> Option<Self> {
        let Some(programs) = programs() else {
            missing(
                "no PostgreSQL 15 (initdb, postgres): apt-get install -y --no-install-recommends postgresql-15",
            );
            return None;
        };
        let folder = Self::folder_of_owner();
        Self::init(&programs, folder.path());
        let data = folder.path().join("data");
        let mut file = fs::File::options()
            .append(true)
            .open(data.join("postgresql.conf"))
            .unwrap();
        writeln!(file, "port = {port}\n{settings}").unwrap();
        prepare(&data);
        let keeper = command(Path::new("/bin/sh"))
            .args(["-c", KEEPER, "keeper"])
            .arg(&programs)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            folder,
            port,
            keeper,
        };
        Self::wait_for(&server.config(), &server.folder().join("log"));
        Some(server)
    }

    /// An empty folder of the user that runs servers.
    pub(crate) fn folder_of_owner() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        if let Some((user, group)) = owner() {
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        folder
    }

    /// Makes the data of a server.
    pub(crate) fn init(programs: &Path, folder: &Path) {
        let made = command(&programs.join("initdb"))
            .arg("-D")
            .arg(folder.join("data"))
            .args([
                "-U",
                "portvakt",
                "-A",
                "trust",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C",
            ])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
    }

    /// Waits until a server answers.
    pub(crate) fn wait_for(config: &tokio_postgres::Config, log: &Path) {
        waiting::eventually("PostgreSQL starts", || {
            let log = || fs::read_to_string(log).unwrap_or_default();
            Self::sql_on(config, "SELECT 1").map_err(|fault| format!("{fault}: {}", log()))
        });
    }

    /// An empty schema, and the settings of its owner.
    pub(crate) fn schema(&self) -> tokio_postgres::Config {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!(
            "CREATE ROLE {name} LOGIN; CREATE SCHEMA {name} AUTHORIZATION {name}"
        ));
        let mut config = self.config();
        config.user(&name);
        config
    }

    /// The folder of the server's Unix socket.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server's Unix socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder().join(format!(".s.PGSQL.{}", self.port))
    }

    /// The settings of the superuser.
    pub(crate) fn config(&self) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config
            .host_path(self.folder.path())
            .port(self.port)
            .user("portvakt")
            .dbname("postgres");
        config
    }

    /// Runs statements as the superuser, and returns the first column of the rows.
    pub(crate) fn sql(&self, statements: &str) -> Vec<String> {
        Self::sql_on(&self.config(), statements).unwrap()
    }

    /// Runs statements on any server.
    pub(crate) fn sql_on(
        config: &tokio_postgres::Config,
        statements: &str,
    ) -> Result<Vec<String>, tokio_postgres::Error> {
        let (config, statements) = (config.clone(), statements.to_owned());
        // A thread, because the caller may be in a runtime.
        let asking = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
                tokio::spawn(connection);
                let messages = client.simple_query(&statements).await?;
                let rows = messages.iter().filter_map(|message| match message {
                    tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                });
                Ok(rows.collect())
            })
        });
        asking.join().unwrap()
    }

    /// Begins a transaction, which stays open after these statements until the test ends it.
    pub(crate) fn begin(&self, statements: &str) -> Transaction {
        let (config, statements) = (self.config(), format!("BEGIN; {statements}"));
        let (commit, end) = channel();
        let (begun, has_begun) = channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
                tokio::spawn(connection);
                client.batch_execute(&statements).await.unwrap();
                begun.send(()).unwrap();
                // Without a message the connection ends, and the transaction with it.
                if end.recv().is_ok() {
                    client.batch_execute("COMMIT").await.unwrap();
                }
            });
        });
        waiting::received("a transaction begins", &has_begun);
        Transaction { commit, thread }
    }

    /// Lets the server read its settings again, and waits until new connections have them and the others are told so.
    pub(crate) fn reload(&self) {
        let loaded = || self.sql("SELECT pg_conf_load_time()");
        let before = loaded();
        self.sql("SELECT pg_reload_conf()");
        waiting::eventually("the settings are read", || loaded() != before);
    }
}

/// An open transaction; it is rolled back when it is dropped.
pub(crate) struct Transaction {
    commit: Sender<()>,
    thread: JoinHandle<()>,
}

impl Transaction {
    /// Commits it.
    pub(crate) fn commit(self) {
        self.commit.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut input) = self.keeper.stdin.take() {
            let _ = input.flush();
        }
        let _ = self.keeper.wait();
    }
}
