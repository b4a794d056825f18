//! Groups of endpoints on real processes: endpoints that are killed, frozen, resetting, failing and slow; TLS with client certificates to
//! nginx, HAProxy and Go.

use crate::harness::{
    Answer, Call, Gate, Program, Protocol, check_error, eventually, free_address, let_pass,
    server_pki,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};
use tempfile::TempDir;

fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/systems/upstreams");
    folder.join(name)
}

/// A core in Python, as a process.
struct Core {
    address: SocketAddr,
    folder: TempDir,
    process: Program,
}

impl Core {
    fn start() -> Self {
        let (address, folder) = (free_address(), TempDir::new().unwrap());
        fs::write(folder.path().join("mode"), "ok").unwrap();
        let process = Self::process(address, folder.path());
        Self {
            address,
            folder,
            process,
        }
    }

    fn process(address: SocketAddr, folder: &Path) -> Program {
        let mut python = Command::new("python3");
        python
            .arg(source("core.py"))
            .arg(address.port().to_string());
        python.args([folder.join("mode"), folder.join("seen")]);
        let process = Program(python.stderr(Stdio::null()).spawn().unwrap());
        eventually("Python listens", || TcpStream::connect(address).is_ok());
        process
    }

    fn set(&self, mode: &str) {
        // In one step: the core reads the file at each request.
        let new = self.folder.path().join("new");
        fs::write(&new, mode).unwrap();
        fs::rename(new, self.folder.path().join("mode")).unwrap();
    }

    fn signal(&self, signal: &str) {
        let id = self.process.0.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// The payments that it got, by X-Request-ID.
    fn payments(&self) -> Vec<String> {
        let seen = fs::read_to_string(self.folder.path().join("seen")).unwrap_or_default();
        let ids = seen.lines().filter_map(|line| line.strip_prefix("POST "));
        ids.map(str::to_owned).collect()
    }
}

/// A way to fail, and the way back.
struct Fault {
    name: &'static str,
    begin: fn(&mut Core),
    end: fn(&mut Core),
}

const FAULTS: [Fault; 5] = [
    Fault {
        name: "killed",
        begin: |core| core.process.end(),
        end: |core| core.process = Core::process(core.address, core.folder.path()),
    },
    Fault {
        name: "frozen",
        begin: |core| core.signal("-STOP"),
        end: |core| core.signal("-CONT"),
    },
    Fault {
        name: "resetting",
        begin: |core| core.set("reset"),
        end: |core| core.set("ok"),
    },
    Fault {
        name: "answering 500",
        begin: |core| core.set("error"),
        end: |core| core.set("ok"),
    },
    Fault {
        name: "slow",
        begin: |core| core.set("slow"),
        end: |core| core.set("ok"),
    },
];

/// Sends requests until it is over; counts those that were sent while `strict` and failed.
fn load(
    gate: &Gate,
    call: &Call,
    over: &AtomicBool,
    strict: &AtomicBool,
    counts: &[AtomicUsize; 2],
) {
    while !over.load(Ordering::Relaxed) {
        let is_strict = strict.load(Ordering::Relaxed);
        let answer = gate.send_sealed(&gate.seal(call), Protocol::Http1).unwrap();
        if is_strict {
            counts[0].fetch_add(1, Ordering::Relaxed);
            if answer.status != 200 {
                counts[1].fetch_add(1, Ordering::Relaxed);
                println!("{} {}", answer.status, answer.reason());
            }
        }
        let_pass(Duration::from_millis(10));
    }
}

//= FWD-3 accepted
//= FWD-4 accepted
#[test]
#[ignore = "make test-systems"]
fn an_endpoint_fails_in_every_way_and_no_payment_is_sent_twice() {
    let mut cores = [Core::start(), Core::start()];
    let [first, second] = [0, 1].map(|index: usize| cores[index].address);
    let gate = Gate::builder()
        .groups(&format!(
            "{{core: {{endpoints: [{{address: '{first}'}}, {{address: '{second}'}}], read_timeout: 1s, timeout: 3s, \
               health: {{path: /health, interval: 300ms, timeout: 300ms, healthy_after: 1}}, \
               ejection: {{failures: 3, time: 1s, recovery: 1s}}}}}}"
        ))
        .threads(2)
        .for_program();
    let log = gate.folder().join("events.log");
    let mut program = gate.program();
    let output = File::create(&log).unwrap();
    program.stdout(Stdio::null()).stderr(output);
    let mut program = Program(program.spawn().unwrap());
    assert!(gate.is_up(&mut program.0), "it does not start");
    let state =
        |member: &str| -> Value { gate.control("/readyz").json()["endpoints"][0][member].clone() };
    let up = || {
        let endpoint = format!("endpoint=\"{first}\"");
        gate.metric_now("portvakt_upstream_endpoint_up", &[&endpoint])
    };
    let lines = |text: &str| fs::read_to_string(&log).unwrap().matches(text).count();
    for fault in &FAULTS {
        let (over, strict) = (AtomicBool::new(false), AtomicBool::new(false));
        let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let unhealthy = lines("an endpoint is unhealthy");
        thread::scope(|scope| {
            let (gate, over, strict, counts) = (&gate, &over, &strict, &counts);
            let payments = [AtomicUsize::new(0), AtomicUsize::new(0)];
            let workers = [
                scope.spawn(move || load(gate, &Call::accounts(), over, strict, counts)),
                scope.spawn(move || load(gate, &Call::plain(), over, strict, counts)),
                scope.spawn(move || {
                    load(
                        gate,
                        &Call::payment(),
                        over,
                        &AtomicBool::new(false),
                        &payments,
                    );
                }),
            ];
            let_pass(Duration::from_millis(500));
            (fault.begin)(&mut cores[0]);
            eventually(fault.name, || state("up") == 0);
            eventually(fault.name, || up() < 0.1);
            eventually(fault.name, || lines("an endpoint is unhealthy") > unhealthy);
            // Requests that were under way may still wait for their time-outs.
            let_pass(Duration::from_secs(2));
            strict.store(true, Ordering::Relaxed);
            eventually("forty GETs", || counts[0].load(Ordering::Relaxed) >= 40);
            strict.store(false, Ordering::Relaxed);
            let_pass(Duration::from_millis(1_500));
            (fault.end)(&mut cores[0]);
            eventually("it returns", || up() > 0.9);
            over.store(true, Ordering::Relaxed);
            for worker in workers {
                worker.join().unwrap();
            }
        });
        let [sent, failed] = counts.map(AtomicUsize::into_inner);
        println!("{}: {sent} GETs, {failed} failed", fault.name);
        assert_eq!(failed, 0, "{}", fault.name);
    }
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for id in cores.iter().flat_map(Core::payments) {
        *times.entry(id).or_default() += 1;
    }
    println!("{} payments", times.len());
    assert!(times.len() > 50);
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert!(lines("an endpoint is ejected") > 0);
}

/// The certificates of the core and of the gateway.
struct Pki(TempDir);

impl Pki {
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Fills a configuration.
    fn fill(&self, config: &str, port: u16, server: &str) -> PathBuf {
        let text = fs::read_to_string(source(config)).unwrap();
        let text = text
            .replace(
                "CERTIFICATE_WITH_KEY",
                &self.path(&format!("{server}.both")),
            )
            .replace("CERTIFICATE", &self.path(&format!("{server}.pem")))
            .replace("KEY", &self.path(&format!("{server}.key")))
            .replace("CLIENT_CA", &self.path("ca.pem"))
            .replace("FOLDER", self.0.path().to_str().unwrap())
            .replace("PORT", &port.to_string());
        let path = self.0.path().join(format!("{server}-{config}"));
        fs::write(&path, text).unwrap();
        path
    }
}

/// Starts a server with a certificate.
type Start = fn(&Pki, u16, &str) -> Command;

fn nginx(pki: &Pki, port: u16, server: &str) -> Command {
    let mut nginx = Command::new("/usr/sbin/nginx");
    nginx.arg("-c").arg(pki.fill("nginx.conf", port, server));
    nginx
}

fn haproxy(pki: &Pki, port: u16, server: &str) -> Command {
    let mut haproxy = Command::new("/usr/sbin/haproxy");
    haproxy
        .args(["-db", "-f"])
        .arg(pki.fill("haproxy.cfg", port, server));
    haproxy
}

fn go(pki: &Pki, port: u16, server: &str) -> Command {
    let program = pki.0.path().join("core");
    if !program.exists() {
        let mut build = Command::new("go");
        build
            .args(["build", "-o"])
            .arg(&program)
            .arg(source("core.go"));
        build.env("GOCACHE", pki.0.path().join("cache"));
        assert!(build.status().unwrap().success(), "go build");
    }
    let mut core = Command::new(program);
    core.arg(port.to_string());
    core.args(
        [&format!("{server}.pem"), &format!("{server}.key"), "ca.pem"].map(|name| pki.path(name)),
    );
    core
}

//= FWD-3 accepted
//= FWD-3 refused
//= ERR-4 refused
#[test]
#[ignore = "make test-systems"]
fn tls_with_client_certificates() {
    let servers: [(&str, Start); 3] = [("nginx", nginx), ("HAProxy", haproxy), ("Go", go)];
    for (name, start) in servers {
        let pki = Pki(server_pki());
        let [port, expired] = [free_address().port(), free_address().port()];
        let running = [("server", port), ("expired", expired)].map(|(server, port)| {
            let mut command = start(&pki, port, server);
            let program = Program(command.stderr(Stdio::null()).spawn().unwrap());
            eventually(name, || TcpStream::connect(("127.0.0.1", port)).is_ok());
            program
        });
        let own = format!(
            "certificate: {}, key: {}",
            pki.path("client.pem"),
            pki.path("client.key")
        );
        let ca = format!("ca: {}", pki.path("ca.pem"));
        let other = format!("ca: {}", pki.path("other.pem"));
        for (case, port, tls, reason) in [
            ("right", port, format!("{ca}, name: localhost, {own}"), None),
            ("by its address", port, format!("{ca}, {own}"), None),
            (
                "another name",
                port,
                format!("{ca}, name: core.bank.internal, {own}"),
                Some("not valid for name"),
            ),
            ("expired", expired, format!("{ca}, {own}"), Some("expired")),
            (
                "unknown CA",
                port,
                format!("{other}, {own}"),
                Some("UnknownIssuer"),
            ),
            ("no client certificate", port, ca.clone(), Some("")),
        ] {
            let what = format!("{name}: {case}");
            let (answers, log, failures) = through(port, &tls);
            match reason {
                None => {
                    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
                    assert_eq!(statuses, [200; 4], "{what}");
                    assert_eq!(failures, 0.0);
                }
                // With TLS 1.3, the client learns after its handshake that its certificate is missing. nginx answers 400.
                Some("") => {
                    let refused = |answer: &Answer| answer.status == 400 || answer.status >= 502;
                    assert!(answers.iter().all(refused), "{what}");
                }
                Some(reason) => {
                    for answer in &answers {
                        check_error(&what, answer, 502, "SYSTEM_ERROR", "upstream-unreachable");
                    }
                    assert!(log.contains("TLS to an endpoint failed"), "{what}: {log}");
                    assert!(log.contains(reason), "{what}: {log}");
                    assert!(failures >= 4.0, "{what}");
                }
            }
            println!("{what}: as expected");
        }
        drop(running);
    }
}

/// Two GETs and two payments through a gateway with this TLS to the core; what it logged, and its failures of TLS.
fn through(port: u16, tls: &str) -> (Vec<Answer>, String, f64) {
    let gate = Gate::builder()
        .groups(&format!(
            "{{core: {{endpoints: [{{address: '127.0.0.1:{port}'}}], tls: {{{tls}}}}}}}"
        ))
        .for_program();
    let log = gate.folder().join("events.log");
    let mut program = gate.program();
    program
        .stdout(Stdio::null())
        .stderr(File::create(&log).unwrap());
    let mut program = Program(program.spawn().unwrap());
    let is_up = gate.is_up(&mut program.0);
    assert!(is_up, "{}", fs::read_to_string(&log).unwrap());
    let calls = [
        Call::accounts(),
        Call::payment(),
        Call::accounts(),
        Call::payment(),
    ];
    let answers = calls.map(|call| gate.send(&call, Protocol::Http1));
    let failures = gate.metric_now("portvakt_upstream_failures_total", &["kind=\"tls\""]);
    drop(program);
    (answers.into(), fs::read_to_string(&log).unwrap(), failures)
}
