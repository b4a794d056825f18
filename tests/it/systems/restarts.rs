//! Restarts behind HAProxy, upgrades by hand-over, and reloads, all under load: no request fails, and each has one line in the access log.

use crate::{
    harness::{Gate, Program, Reply, Seen, ended, eventually, free_address, to_files},
    reload::{alternate_configurations, many_reloads},
    upgrade::{
        load::{Load, Size},
        many_upgrades,
    },
};
use portvakt::clock::Stopwatch;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// The calls of the rolling restart.
const CALLS: usize = 10_000;

/// The clients: about as many calls wait for the core at once.
const SIZE: Size = Size {
    http1: 60,
    http2: 8,
    streams: 40,
};

//= CRT-8 accepted
//= CRT-8 refused
#[test]
#[ignore = "make test-systems"]
fn a_thousand_reloads() {
    many_reloads(1_000);
    alternate_configurations(1_000);
}

//= FWD-4 accepted
#[test]
#[ignore = "make test-systems"]
fn fifty_upgrades() {
    many_upgrades(50);
}

/// A gateway of the pair, and its configuration.
struct Replica {
    config: PathBuf,
    control: SocketAddr,
    program: Program,
    /// Its name in the balancer.
    name: &'static str,
}

impl Replica {
    fn start(gate: &Gate, config: &Path, control: SocketAddr, name: &'static str) -> Self {
        let mut program = Command::new(gate.program().get_program());
        program.args(["serve", "--config"]).arg(config);
        let program = to_files(&mut program, config).spawn();
        let replica = Self {
            config: config.to_owned(),
            control,
            program: Program(program.unwrap()),
            name,
        };
        eventually("the control listener", || {
            TcpStream::connect(control).is_ok()
        });
        replica
    }

    /// SIGTERM, the end of the process, a new process, and its return to the balancer.
    fn restart(&mut self, gate: &Gate, balancer: &Balancer) {
        self.stop("-TERM");
        let config = self.config.clone();
        *self = Self::start(gate, &config, self.control, self.name);
        eventually("the balancer to use it", || balancer.uses(self.name));
    }

    fn stop(&mut self, signal: &str) {
        self.program.signal(signal);
        assert!(ended(&mut self.program.0).success());
    }
}

/// 0.1 to 20 s, most of them short: the exponent of a number in X-Request-ID is uniform.
fn slow(seen: &Seen) -> Reply {
    let id = seen.header("x-request-id").unwrap_or_default();
    let digits = u32::from_str_radix(&id[..4], 16).unwrap_or_default();
    let seconds = 0.1 * 200_f64.powf(f64::from(digits) / 65_535.0);
    Reply::json(200, "{}").after(Duration::from_secs_f64(seconds))
}

/// Two gateways on one state behind HAProxy, which asks /readyz each second.
//= FWD-4 accepted
#[test]
#[ignore = "make test-systems"]
fn a_rolling_restart_behind_haproxy() {
    let gate = Gate::builder()
        .line("rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}")
        .line("shutdown: {lame_duck: 5s}")
        .listener("max_connections: 2000\n  max_connections_per_address: off")
        .upstream("max_in_flight: 1000\n  max_in_flight_per_tpp: 1000")
        .for_program();
    gate.upstream().reply(Reply::Suited(slow));
    let first = gate.folder().join("gateway.yaml");
    let second = gate.folder().join("second.yaml");
    let (address, control) = (free_address(), free_address());
    let yaml = gate
        .yaml()
        .replace(&gate.address().to_string(), &address.to_string());
    let yaml = yaml.replace(&gate.control_address().to_string(), &control.to_string());
    fs::write(&second, yaml).unwrap();
    let mut replicas = [
        Replica::start(&gate, &first, gate.control_address(), "first"),
        Replica::start(&gate, &second, control, "second"),
    ];
    let servers = [(gate.address(), gate.control_address()), (address, control)];
    let balancer = Balancer::start(gate.folder(), ["first", "second"], servers);
    for replica in &replicas {
        eventually("the balancer", || balancer.uses(replica.name));
    }

    let watch = Stopwatch::start();
    let load = Load::at(&gate, balancer.address, SIZE);
    let mut restarts = 0;
    while restarts < replicas.len() || load.answered() < CALLS {
        let replica = restarts % replicas.len();
        replicas[replica].restart(&gate, &balancer);
        restarts += 1;
    }
    let answered = load.end();
    println!(
        "{restarts} restarts, {} requests, {:?}",
        answered.len(),
        watch.elapsed()
    );
    for replica in &mut replicas {
        replica.stop("-INT");
    }
    let mut lines = BTreeMap::<String, usize>::new();
    for config in [&first, &second] {
        for line in fs::read_to_string(config.with_extension("log"))
            .unwrap()
            .lines()
        {
            let line: Value = serde_json::from_str(line).unwrap();
            *lines
                .entry(line["request_id"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    for id in &answered {
        assert_eq!(lines.get(id), Some(&1), "{id}");
    }
    assert_eq!(lines.len(), answered.len());
}

/// HAProxy in front of two gateways: it passes TLS on.
struct Balancer {
    address: SocketAddr,
    /// The socket that tells what HAProxy knows of its servers.
    socket: PathBuf,
    _program: Program,
}

impl Balancer {
    fn start(folder: &Path, names: [&str; 2], servers: [(SocketAddr, SocketAddr); 2]) -> Self {
        let (address, socket) = (free_address(), folder.join("haproxy.sock"));
        let servers = names.iter().zip(servers).map(|(name, (public, control))| {
            let port = control.port();
            format!("  server {name} {public} check port {port} inter 1s fall 2 rise 1\n")
        });
        let config = format!(
            "global\n  maxconn 2000\n  stats socket {}\n\
             defaults\n  mode tcp\n  timeout connect 5s\n  timeout check 5s\n  timeout client 60s\n  timeout server 60s\n  \
             retries 3\n  option redispatch\n\
             listen gateway\n  bind {address}\n  balance roundrobin\n  option httpchk GET /readyz\n{}",
            socket.display(),
            servers.collect::<String>()
        );
        let path = folder.join("haproxy.cfg");
        fs::write(&path, config).unwrap();
        let mut program = Command::new("/usr/sbin/haproxy");
        program.arg("-db").arg("-f").arg(&path);
        let program = Program(to_files(&mut program, &path).spawn().unwrap());
        eventually("HAProxy", || {
            TcpStream::connect(address).is_ok() && UnixStream::connect(&socket).is_ok()
        });
        Self {
            address,
            socket,
            _program: program,
        }
    }

    /// Whether the last check of a server succeeded, and HAProxy sends connections to it.
    fn uses(&self, name: &str) -> bool {
        self.column(name, "check_status") == "L7OK" && self.column(name, "status").starts_with("UP")
    }

    fn column(&self, name: &str, column: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(b"show stat\n").unwrap();
        let mut table = String::new();
        stream.read_to_string(&mut table).unwrap();
        let mut lines = table.lines().map(|line| line.split(','));
        let place = lines.next().unwrap().position(|title| title == column);
        let line = lines.find(|line| line.clone().nth(1) == Some(name));
        line.unwrap().nth(place.unwrap()).unwrap().to_owned()
    }
}
