//! Tests that need other programs, or more than seconds: `make test-systems` runs them, `make test` does not.
//!
//! Each test is `#[ignore = "make test-systems"]`. A missing tool fails its test: `.ci/needs.sh systems` has tried to install
//! the tools, so the caller must learn that one is missing.

/// The audit under kills, and on a disk that fails.
mod audit;
/// The simulated bank's pages in a browser.
mod browser;
/// Generated clients, and the interceptors of the guide for TPPs.
mod clients;
/// Raw requests in front of other servers.
mod corpus;
/// The short form of `make edge`.
mod edge;
/// Gateways on PostgreSQL whose primary is lost.
mod failover;
/// docs/tpp/operations.md.
mod guide;
/// Keys in an HSM.
mod hsm;
/// The logs on a disk that fails.
mod logs;
/// The first production gateway, by the page for operators.
mod operations;
/// Other parsers read admitted requests in the same way.
mod oracle;
/// pkilint's findings beside those of `portvakt cert`.
mod pkilint;
/// The dashboards, rules and alerts on a Prometheus, and the commands of the runbooks.
mod prometheus;
/// A register of the real size, replaced under load.
mod registers;
/// Restarts behind a balancer, upgrades and reloads under load.
mod restarts;
/// The hash key is rotated under load.
mod rotation;
/// The size of rows in PostgreSQL.
mod rows;
/// schemathesis against the simulated bank.
mod schemathesis;
/// TLS as sslyze sees it.
mod sslyze;
/// TLS as testssl.sh sees it.
mod testssl;
/// Spans, read by the messages that OpenTelemetry publishes.
mod traces;
/// Endpoints that fail, and TLS to cores.
mod upstreams;

use std::{collections::BTreeSet, path::Path, process::Command};

/// A program of Debian, its version command, and its package.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("go", "version", "golang-go"),
    ("javac", "-version", "default-jdk-headless"),
    ("node", "--version", "nodejs"),
    ("python3", "--version", "python3"),
    ("/usr/sbin/nginx", "-v", "nginx"),
    ("/usr/sbin/apache2", "-v", "apache2"),
    ("/usr/sbin/haproxy", "-v", "haproxy"),
    ("prometheus", "--version", "prometheus"),
    ("promtool", "--version", "prometheus"),
    ("jq", "--version", "jq"),
    ("curl", "--version", "curl"),
    ("testssl", "--version", "testssl.sh"),
    ("chromium", "--version", "chromium"),
    ("strace", "-V", "strace"),
    ("etcd", "--version", "etcd-server"),
    ("patroni", "--version", "patroni python3-etcd"),
    ("xmlsec1", "--version", "xmlsec1"),
    ("softhsm2-util", "--version", "softhsm2"),
    ("p11-kit", "--help", "p11-kit p11-kit-modules"),
    ("opensc-tool", "--version", "opensc"),
];

/// A library of Java that Debian has, and the package.
const JARS: &[(&str, &str)] = &[
    ("jackson-databind.jar", "libjackson2-databind-java"),
    ("gson.jar", "libgoogle-gson-java"),
];

/// The folder in which Debian keeps the libraries of Java.
const JAVA: &str = "/usr/share/java";

/// What the tests demand is what the script installs: a machine on which something was installed by hand shows no difference.
#[test]
fn every_tool_is_installed_by_the_script() {
    let script = include_str!("../../../.ci/needs.sh");
    let (_, rest) = script.split_once("missing_for_systems() {").unwrap();
    let (installed, _) = rest.split_once("\n}\n").unwrap();
    let installed: BTreeSet<_> = installed
        .split(|c: char| c.is_whitespace() || c == '\'')
        .collect();
    let programs = PROGRAMS.iter().map(|(_, _, packages)| *packages);
    let jars = JARS.iter().map(|(_, package)| *package);
    for package in programs.chain(jars).flat_map(str::split_whitespace) {
        // Python itself runs the script's own checks.
        assert!(
            package == "python3" || installed.contains(package),
            "{package}"
        );
    }
}

#[test]
#[ignore = "make test-systems"]
fn every_tool_is_here() {
    let mut missing = Vec::new();
    for (program, version, package) in PROGRAMS {
        let asked = Command::new(program).arg(version).output();
        if !asked.is_ok_and(|output| output.status.success()) {
            missing.push(*package);
        }
    }
    for (jar, package) in JARS {
        if !Path::new(JAVA).join(jar).is_file() {
            missing.push(*package);
        }
    }
    assert!(
        missing.is_empty(),
        "apt-get install -y --no-install-recommends {}",
        missing.join(" ")
    );
}
