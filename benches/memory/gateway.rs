//! The gateway as a process, with a core that answers every request with two bytes.

use super::tpps::Tpps;
use portvakt::private_file;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// A running gateway. Dropping it kills the process.
pub(super) struct Gateway {
    child: Child,
    pub(super) address: SocketAddr,
    _folder: TempDir,
}

impl Gateway {
    /// Starts the gateway with one worker thread and default settings, except limits that would stop a measurement.
    pub(super) fn start(tpps: &Tpps) -> Self {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["anchors", "intermediates"] {
            fs::create_dir(path(name)).unwrap();
        }
        fs::write(path("anchors/root.pem"), &tpps.root).unwrap();
        fs::write(path("intermediates/issuing.pem"), &tpps.issuing).unwrap();
        fs::write(path("server.pem"), &tpps.server.pem).unwrap();
        private_file::make(&path("server.key"), tpps.server.key_pem.as_bytes()).unwrap();
        let [address, control] = [free_address(), free_address()];
        let core = core();
        fs::write(
            path("gateway.yaml"),
            format!(
                "environment: sandbox\n\
                 rates: {{per_address: off, chains_per_address: off, chains: off, per_tpp: 100000}}\n\
                 listener:\n  address: {address}\n  certificate: server.pem\n  key: server.key\n  threads: 1\n  keepalive: 1h\n\
                 \x20 max_connections_per_address: off\n  overload_delay: off\n  first_byte_timeout: 60s\n  preface_timeout: 60s\n\
                 control:\n  address: {control}\n\
                 upstream:\n  address: {core}\n\
                 trust:\n  anchors: anchors\n  intermediates: intermediates\n\
                 state:\n  file: state/portvakt.db\n  hash_key: state/hash.key\n\
                 sca:\n  page: https://bank.example/sca\n  token_keys: sca.keys\n"
            ),
        )
        .unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_portvakt"))
            .args(["serve", "--config"])
            .arg(path("gateway.yaml"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(address).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "it does not start");
            thread::sleep(Duration::from_millis(20));
        }
        Self {
            child,
            address,
            _folder: folder,
        }
    }

    /// The resident memory of the process, in KiB.
    pub(super) fn resident(&self) -> u64 {
        // Waits for work in progress.
        thread::sleep(Duration::from_millis(500));
        let rollup = fs::read_to_string(self.proc("smaps_rollup")).unwrap();
        let line = rollup.lines().find(|line| line.starts_with("Rss:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse().unwrap()
    }

    /// The CPU time of all threads of the process.
    pub(super) fn cpu(&self) -> Duration {
        let threads = fs::read_dir(self.proc("task")).unwrap();
        let nanos = threads.map(|thread| -> u64 {
            let spent = fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
            spent.split_whitespace().next().unwrap().parse().unwrap()
        });
        Duration::from_nanos(nanos.sum())
    }

    fn proc(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.child.id()))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Serves each connection of the gateway with a thread, until this program ends.
fn core() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || answer(&stream));
        }
    });
    address
}

/// Answers each complete head; no request has a body.
fn answer(mut stream: &TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    while lines
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        if line == b"\r\n" {
            let answer =
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
            if stream.write_all(answer).is_err() {
                return;
            }
        }
        line.clear();
    }
}
