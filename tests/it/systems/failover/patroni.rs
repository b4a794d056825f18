//! QUO-1, REP-1, SCA-4: three servers under Patroni and etcd, whose primary's machine is lost under load again and again.
//!
//! `PORTVAKT_PATRONI` is the number of losses in each mode (`make failover`).

use super::{
    Run,
    cluster::{Loss, family, signal_process},
};
use crate::harness::{
    LIMIT, Postgres, eventually_within, free_address, let_pass_async, postgres_command,
    postgres_programs,
};
use portvakt::clock::Stopwatch;
use rustix::process::Signal;
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::Ordering,
    time::Duration,
};
use tempfile::TempDir;
use tokio_postgres::Config;

/// Runs a program until its standard input ends, then kills it and the server that it started in the folder.
const KEEPER: &str = r#"
folder=$1
shift
"$@" >>"$folder/log" 2>&1 &
program=$!
cat >/dev/null
kill -9 $program
[ ! -s "$folder/data/postmaster.pid" ] || kill -9 $(head -1 "$folder/data/postmaster.pid")
"#;

/// A program with its folder; it ends with this value.
struct Kept {
    keeper: Child,
}

impl Kept {
    fn start(folder: &Path, program: &str, arguments: &[&str]) -> Self {
        let keeper = postgres_command(Path::new("/bin/sh"))
            .args(["-c", KEEPER, "keeper"])
            .arg(folder)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { keeper }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// A machine: Patroni and its server.
struct Node {
    folder: TempDir,
    address: SocketAddr,
    /// Patroni's own interface.
    rest: SocketAddr,
    patroni: Option<Kept>,
}

impl Node {
    fn new(number: usize, etcd: SocketAddr, is_strict: bool) -> Self {
        let programs = postgres_programs().expect("apt-get install postgresql-15");
        let folder = Postgres::folder_of_owner();
        let [address, rest] = [free_address(), free_address()];
        let path = folder.path().display();
        let text = include_str!("patroni.yaml")
            .replace("NAME", &format!("db{number}"))
            .replace("ETCD", &etcd.to_string())
            .replace("REST", &rest.to_string())
            .replace("ADDRESS", &address.to_string())
            .replace("STRICT", &is_strict.to_string())
            .replace("PROGRAMS", programs.to_str().unwrap())
            .replace("FOLDER", &path.to_string());
        crate::harness::write_of_owner(&folder.path().join("patroni.yaml"), &text);
        let mut node = Self {
            folder,
            address,
            rest,
            patroni: None,
        };
        node.start();
        node
    }

    fn start(&mut self) {
        // First, because its keeper ends the server of the folder.
        drop(self.patroni.take());
        let file = self.folder.path().join("patroni.yaml");
        let patroni = Kept::start(
            self.folder.path(),
            "/usr/bin/patroni",
            &[file.to_str().unwrap()],
        );
        self.patroni = Some(patroni);
    }

    /// Whether Patroni has ended by itself: its first start fails where the server takes too long. A service manager would start it again.
    fn has_given_up(&self) -> bool {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let last = log.lines().rfind(|line| !line.is_empty());
        last.is_some_and(|line| line.starts_with("patroni.exceptions."))
    }

    fn sql(&self, statements: &str) -> Vec<String> {
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(self.address.port())
            .user("portvakt")
            .dbname("postgres")
            .connect_timeout(Duration::from_secs(1));
        Postgres::sql_on(&config, statements).unwrap_or_default()
    }

    /// Whether Patroni has recorded a synchronous standby: it promotes no other.
    fn has_recorded_standby(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.rest)?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.write_all(b"GET /cluster HTTP/1.0\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        ask().is_ok_and(|text| text.contains("\"sync_standby\""))
    }

    /// Sends a signal to everything that runs on the machine.
    fn signal(&self, signal: Signal) {
        let patroni = self.patroni.iter().flat_map(|patroni| {
            // The keeper's children, without the keeper.
            family(patroni.keeper.id()).into_iter().skip(1)
        });
        let mut processes: Vec<u32> = patroni.flat_map(family).collect();
        let file = fs::read_to_string(self.folder.path().join("data/postmaster.pid"));
        let server = file
            .ok()
            .and_then(|text| text.lines().next()?.parse::<u32>().ok());
        processes.extend(server.into_iter().flat_map(family));
        for process in processes {
            signal_process(process, signal);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        self.signal(Signal::KILL);
    }
}

/// Three machines, and etcd.
struct Machines {
    nodes: Vec<Node>,
    _etcd: Kept,
    _folder: TempDir,
}

impl Machines {
    fn start(is_strict: bool) -> Self {
        let folder = Postgres::folder_of_owner();
        let [client, peer] = [free_address(), free_address()];
        let [clients, peers] = [client, peer].map(|address| format!("http://{address}"));
        let data = folder.path().join("etcd");
        let etcd = Kept::start(
            folder.path(),
            "/usr/bin/etcd",
            &[
                "--name=etcd",
                "--data-dir",
                data.to_str().unwrap(),
                "--listen-client-urls",
                &clients,
                "--advertise-client-urls",
                &clients,
                "--listen-peer-urls",
                &peers,
                "--initial-advertise-peer-urls",
                &peers,
                "--initial-cluster",
                &format!("etcd={peers}"),
                "--enable-v2=true",
                "--unsafe-no-fsync",
            ],
        );
        let nodes = (1..4).map(|number| Node::new(number, client, is_strict));
        let mut machines = Self {
            nodes: nodes.collect(),
            _etcd: etcd,
            _folder: folder,
        };
        let primary = machines.wait_for_standbys();
        machines.nodes[primary]
            .sql("CREATE ROLE gateway LOGIN; CREATE SCHEMA gateway AUTHORIZATION gateway");
        machines
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        for node in &self.nodes {
            config.host("127.0.0.1").port(node.address.port());
        }
        config.user("gateway").dbname("postgres");
        config
    }

    /// Waits for a primary other than the lost one.
    fn wait_for_primary(&self, lost: Option<usize>) -> usize {
        eventually_within(2 * LIMIT, "there is a primary", || {
            let mut nodes = self.nodes.iter().enumerate();
            let found = nodes.find(|(number, node)| {
                Some(*number) != lost && node.sql("SELECT pg_is_in_recovery()") == ["f"]
            });
            found.map(|(number, _)| number).ok_or_else(|| self.logs())
        })
    }

    /// Waits until both standbys follow, and commits wait for one of them.
    fn wait_for_standbys(&mut self) -> usize {
        let followed = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'
            HAVING count(*) = 2 AND bool_or(sync_state IN ('sync', 'quorum'))";
        eventually_within(3 * LIMIT, "the standbys follow", || {
            for node in self.nodes.iter_mut().filter(|node| node.has_given_up()) {
                node.start();
            }
            let primary = self.wait_for_primary(None);
            let node = &self.nodes[primary];
            let is_so = node.sql(followed) == ["1"] && node.has_recorded_standby();
            is_so.then_some(primary).ok_or_else(|| self.logs())
        })
    }

    /// The last lines of each machine's log.
    fn logs(&self) -> String {
        let logs = self.nodes.iter().map(|node| {
            let text = fs::read_to_string(node.folder.path().join("log")).unwrap_or_default();
            let lines: Vec<_> = text.lines().rev().take(15).collect();
            lines.into_iter().rev().collect::<Vec<_>>().join("\n")
        });
        logs.collect::<Vec<_>>().join("\n\n")
    }
}

async fn lose_machines(is_strict: bool, count: u64) {
    let mut machines = tokio::task::block_in_place(|| Machines::start(is_strict));
    let run = Run::start(machines.config(), None);
    let callers = run.call();
    let mut times = Vec::new();
    for failover in 0..count {
        run.round.store(failover, Ordering::Relaxed);
        let_pass_async(Duration::from_millis(500)).await;
        let loss = [Loss::Killed, Loss::Stopped][failover as usize % 2];
        let lost = tokio::task::block_in_place(|| machines.wait_for_standbys());
        let watch = Stopwatch::start();
        machines.nodes[lost].signal(match loss {
            Loss::Killed => Signal::KILL,
            _ => Signal::STOP,
        });
        let primary = tokio::task::block_in_place(|| machines.wait_for_primary(Some(lost)));
        let promoted = watch.elapsed();
        // With strict mode a commit waits until Patroni has a standby again.
        machines.nodes[primary].sql("CREATE TABLE IF NOT EXISTS even (); DROP TABLE even");
        let commits = watch.elapsed();
        let back = run.back().await;
        println!(
            "{failover}: {loss:?}, strict {is_strict}: promoted after {promoted:?}, commits after {commits:?}, service back {back:?} later"
        );
        times.push(back);
        match loss {
            Loss::Killed => machines.nodes[lost].start(),
            _ => machines.nodes[lost].signal(Signal::CONT),
        }
        run.back().await;
    }
    // While the lost machine returns, a commit may still wait for a standby for long, and a question would go without an answer.
    for _ in 0..20 {
        let_pass_async(Duration::from_millis(500)).await;
        run.back().await;
    }
    assert_eq!(run.check(callers).await, [""; 0]);
    times.sort();
    println!(
        "strict {is_strict}: service back after a median of {:?}, {:?} at most",
        times[times.len() / 2],
        times.last().unwrap()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-systems"]
async fn failovers_by_patroni_lose_and_repeat_nothing() {
    let installed = |program: &str| Command::new(program).arg("--version").output().is_ok();
    assert!(
        installed("patroni") && installed("etcd"),
        "apt-get install -y --no-install-recommends patroni python3-etcd etcd-server"
    );
    let count = std::env::var("PORTVAKT_PATRONI").map_or(2, |count| count.parse().unwrap());
    for is_strict in [true, false] {
        lose_machines(is_strict, count).await;
    }
}
