//! A running peer: its start, its CPU time, memory and metrics, and its stop.
//!
//! Invariant: it ends with this program. Deliberately not here: its configuration (stage.rs).

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// A program that runs until it is dropped.
pub struct Running {
    child: Child,
    /// Its port on the loopback address.
    pub port: u16,
    /// The port of Portvakt's control listener.
    pub control: Option<u16>,
}

impl Running {
    /// Starts a program and waits until it listens.
    pub fn start(mut command: Command, port: u16, log: &Path) -> Self {
        let log = fs::File::create(log).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let child = command.spawn().unwrap();
        let waiting = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(
                waiting.elapsed() < Duration::from_secs(60),
                "{command:?} does not listen"
            );
            sleep(Duration::from_millis(10));
        }
        sleep(Duration::from_millis(200));
        Self {
            child,
            port,
            control: None,
        }
    }

    /// The number of commits to disk and their total seconds; zeros for a peer without such metrics.
    pub fn commits(&self) -> [f64; 2] {
        [
            "portvakt_state_batch_seconds_count",
            "portvakt_state_batch_seconds_sum",
        ]
        .map(|name| self.metric(name).unwrap_or_default())
    }

    /// The sum over a metric's series; `None` for a peer without metrics.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let metrics = ask(self.control?, "GET /metrics HTTP/1.1", "");
        let series = metrics.lines().filter_map(|line| line.strip_prefix(name));
        let values = series.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
        Some(
            values
                .reduce(|one, other| one + other)
                .expect("the metric is there"),
        )
    }

    /// The CPU time of all its threads, by the kernel's accounting.
    pub fn cpu(&self) -> Duration {
        let tasks = self.tasks();
        let spent = tasks.iter().filter_map(|task| {
            let first = fs::read_to_string(task.join("schedstat")).ok()?;
            first.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(spent.sum())
    }

    /// Lowers the priority of all its threads.
    pub fn lower_priority(&self) {
        for task in self.tasks() {
            let id = task.file_name().unwrap().to_owned();
            let lowered = Command::new("renice")
                .args(["-n", "10", "-p"])
                .arg(id)
                .stdout(Stdio::null())
                .status();
            assert!(lowered.is_ok_and(|status| status.success()), "renice");
        }
    }

    /// The resident memory of its processes, in KiB.
    pub fn resident(&self) -> u64 {
        let tasks = self.tasks();
        // The tasks of one process share their memory.
        let processes: BTreeSet<_> = tasks
            .iter()
            .filter_map(|task| Some(task.parent()?.with_file_name("status")))
            .collect();
        let resident = processes.iter().filter_map(|status| {
            let status = fs::read_to_string(status).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            line?.split_whitespace().next()?.parse::<u64>().ok()
        });
        resident.sum()
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// The folders of all threads of the process and its children.
    fn tasks(&self) -> Vec<PathBuf> {
        let mut ids = vec![self.child.id()];
        let mut folders = Vec::new();
        while let Some(id) = ids.pop() {
            let Ok(tasks) = fs::read_dir(format!("/proc/{id}/task")) else {
                continue;
            };
            for task in tasks.flatten() {
                let children = fs::read_to_string(task.path().join("children"));
                let children = children.unwrap_or_default();
                ids.extend(children.split(' ').filter_map(|id| id.parse::<u32>().ok()));
                folders.push(task.path());
            }
        }
        folders
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        // SIGINT stops at once, and nginx stops its workers too. After SIGTERM, Portvakt would first wait for its load balancers.
        let _ = Command::new("kill").args(["-INT", &id]).status();
        for _ in 0..100 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command; the kernel ends it when this program ends.
pub fn ending_with_this() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    command
}

/// A port of the loopback address on which nothing listens.
pub fn free_port() -> u16 {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.local_addr().unwrap().port()
}

/// The bearer token of the control listener in production.
pub const CONTROL_TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Sends a request to the control listener.
pub fn ask(control: u16, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, control)).unwrap();
    write!(
        stream,
        "{head}\r\nHost: localhost\r\nAuthorization: Bearer {CONTROL_TOKEN}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
