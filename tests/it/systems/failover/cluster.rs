//! A primary and its synchronous standby, which fail as the test says.

use crate::harness::{
    Postgres, Proxy, eventually, eventually_is, postgres_command, postgres_programs,
};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::Arc,
};
use tempfile::TempDir;
use tokio_postgres::Config;

/// Runs a server until its standard input ends, and prints its process id.
const KEEPER: &str = r#"
"$1/postgres" -D "$2/data" -c listen_addresses= -c unix_socket_directories="$2" -c fsync=off -c max_connections=200 >>"$2/log" 2>&1 &
server=$!
echo $server
cat >/dev/null
for process in $server $(ps -o pid= --ppid $server); do kill -9 $process; done 2>/dev/null
"#;

/// The way in which a primary is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// All its processes are killed.
    Killed,
    /// All its processes are stopped, and go on after the promotion.
    Stopped,
    /// Nothing reaches it or comes from it; after the promotion it is reachable again, on the same connections.
    Cut,
}

/// A server with its folder, and the proxy through which gateways and the standby reach it.
struct Node {
    folder: TempDir,
    keeper: Child,
    process: u32,
    proxy: Arc<Proxy>,
}

/// A process that receives the primary's log, and confirms it.
pub(super) struct Receiver {
    process: Child,
    _folder: TempDir,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A primary and a standby.
pub(super) struct Cluster {
    programs: PathBuf,
    primary: Node,
    standby: Node,
    /// Whether commits wait for the standby.
    is_synchronous: bool,
}

impl Node {
    fn start(programs: &Path, folder: TempDir) -> Self {
        let proxy = Proxy::start(&folder.path().join(".s.PGSQL.5432"));
        Self::start_behind(programs, folder, Arc::new(proxy))
    }

    fn start_behind(programs: &Path, folder: TempDir, proxy: Arc<Proxy>) -> Self {
        let mut keeper = postgres_command(Path::new("/bin/sh"))
            .args(["-c", KEEPER, "keeper"])
            .arg(programs)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let process = line.trim().parse().unwrap();
        let node = Self {
            folder,
            keeper,
            process,
            proxy,
        };
        Postgres::wait_for(&node.config(), &node.folder.path().join("log"));
        node
    }

    /// The superuser's settings.
    fn config(&self) -> Config {
        let mut config = Config::new();
        config
            .host_path(self.folder.path())
            .user("portvakt")
            .dbname("postgres");
        config
    }

    fn sql(&self, statements: &str) -> Vec<String> {
        Postgres::sql_on(&self.config(), statements).unwrap()
    }

    /// The server's processes.
    fn processes(&self) -> Vec<u32> {
        family(self.process)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        for process in self.processes() {
            signal_process(process, signal);
        }
    }
}

/// A process and its children.
pub(super) fn family(process: u32) -> Vec<u32> {
    let mut found = vec![process];
    for entry in fs::read_dir("/proc").unwrap().map_while(Result::ok) {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        if parent == Some(process) {
            let name = entry.file_name();
            found.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
        }
    }
    found
}

pub(super) fn signal_process(process: u32, signal: rustix::process::Signal) {
    if let Some(process) = rustix::process::Pid::from_raw(process.cast_signed()) {
        let _ = rustix::process::kill_process(process, signal);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

impl Cluster {
    pub(super) fn start(is_synchronous: bool) -> Self {
        let programs = postgres_programs().expect("apt-get install postgresql-15");
        let folder = Postgres::folder_of_owner();
        Postgres::init(&programs, folder.path());
        let primary = Node::start(&programs, folder);
        primary.sql("CREATE ROLE gateway LOGIN; CREATE SCHEMA gateway AUTHORIZATION gateway");
        let standby = Self::copy(&programs, &primary);
        let cluster = Self {
            programs,
            primary,
            standby,
            is_synchronous,
        };
        cluster.wait_for_standby();
        cluster
    }

    /// A new standby of a primary.
    fn copy(programs: &Path, primary: &Node) -> Node {
        let folder = Postgres::folder_of_owner();
        Self::copy_data(programs, primary, folder.path());
        Node::start(programs, folder)
    }

    /// Copies a primary's data, for a standby that follows it.
    fn copy_data(programs: &Path, primary: &Node, folder: &Path) {
        let port = primary.proxy.address().port();
        let copied = postgres_command(&programs.join("pg_basebackup"))
            .args([
                "-U",
                "portvakt",
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
                "--no-sync",
            ])
            .arg("-d")
            .arg(format!(
                "host=127.0.0.1 port={port} sslmode=disable gssencmode=disable"
            ))
            .arg("-D")
            .arg(folder.join("data"))
            .output()
            .unwrap();
        assert!(copied.status.success(), "{copied:?}");
    }

    /// Waits until the standby has everything, and lets commits wait for it.
    fn wait_for_standby(&self) {
        eventually("the standby follows", || {
            self.primary.sql(
                "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND flush_lsn >= pg_current_wal_lsn() - 1000",
            ) == ["1"]
        });
        if self.is_synchronous {
            self.set_standbys("*");
            let state = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
            eventually("the standby is synchronous", || {
                self.primary.sql(state) == ["1"]
            });
            // A commit that waits: everything before is on the standby.
            self.primary
                .sql("CREATE TABLE IF NOT EXISTS even (); DROP TABLE even");
        }
    }

    /// Another standby of the primary, which confirms commits. It ends when the test does.
    pub(super) fn receive(&self) -> Receiver {
        let folder = Postgres::folder_of_owner();
        let process = postgres_command(&self.programs.join("pg_receivewal"))
            .args(["--synchronous", "-U", "portvakt", "-D"])
            .arg(folder.path())
            .arg("-h")
            .arg(self.primary.folder.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually_is("the standbys", vec!["2".to_owned()], || {
            self.primary.sql("SELECT count(*) FROM pg_stat_replication")
        });
        Receiver {
            process,
            _folder: folder,
        }
    }

    /// Runs statements at the primary, as the superuser.
    pub(super) fn sql(&self, statements: &str) {
        self.primary.sql(statements);
    }

    /// Sets the standbys that the primary's commits wait for.
    pub(super) fn set_standbys(&self, names: &str) {
        self.primary.sql(&format!(
            "ALTER SYSTEM SET synchronous_standby_names = '{names}'"
        ));
        self.primary.sql("SELECT pg_reload_conf()");
    }

    /// The gateways' settings: both hosts. The address of each host stays, whichever server listens there.
    pub(super) fn config(&self) -> Config {
        let mut config = Config::new();
        for node in [&self.primary, &self.standby] {
            config.host("127.0.0.1").port(node.proxy.address().port());
        }
        config.user("gateway").dbname("postgres");
        config
    }

    /// Holds what the standby receives back, so that a commit that does not wait for it is lost with the primary.
    pub(super) fn hold_replication(&self) {
        for process in self.standby.processes() {
            let name = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
            if name.contains("walreceiver") {
                signal_process(process, rustix::process::Signal::STOP);
                // It ends when it goes on, and does not read what waits in its socket.
                signal_process(process, rustix::process::Signal::TERM);
            }
        }
    }

    /// The primary is lost.
    pub(super) fn lose(&self, loss: Loss) {
        match loss {
            Loss::Killed => self.primary.signal(rustix::process::Signal::KILL),
            Loss::Stopped => self.primary.signal(rustix::process::Signal::STOP),
            Loss::Cut => self.primary.proxy.freeze(true),
        }
    }

    /// Makes the standby the primary, without a standby of its own.
    pub(super) fn promote(&mut self) {
        for process in self.standby.processes() {
            signal_process(process, rustix::process::Signal::CONT);
        }
        // A query of the standby could be cancelled by its recovery.
        let promoted = postgres_command(&self.programs.join("pg_ctl"))
            .args(["promote", "-D"])
            .arg(self.standby.folder.path().join("data"))
            .output()
            .unwrap();
        assert!(promoted.status.success(), "{promoted:?}");
        std::mem::swap(&mut self.primary, &mut self.standby);
        self.set_standbys("");
    }

    /// The former primary goes on, as it was.
    pub(super) fn resume_former(&self) {
        self.standby.signal(rustix::process::Signal::CONT);
        self.standby.proxy.freeze(false);
    }

    /// Replaces the former primary by a new standby, in the same folder.
    pub(super) fn replace_former(&mut self) {
        self.standby.signal(rustix::process::Signal::KILL);
        let folder = self.standby.folder.path().to_owned();
        let _ = self.standby.keeper.stdin.take();
        let _ = self.standby.keeper.wait();
        let _ = fs::remove_dir_all(folder.join("data"));
        for name in fs::read_dir(&folder).unwrap().map_while(Result::ok) {
            let _ = fs::remove_file(name.path());
        }
        Self::copy_data(&self.programs, &self.primary, &folder);
        let kept = std::mem::replace(&mut self.standby.folder, TempDir::new().unwrap());
        let proxy = Arc::clone(&self.standby.proxy);
        self.standby = Node::start_behind(&self.programs, kept, proxy);
        self.wait_for_standby();
    }
}
