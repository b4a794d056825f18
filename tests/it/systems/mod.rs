//! Tests that need other programs, or more than seconds: `make test-systems` runs them, `make test` does not.
//!
//! Each test is `#[ignore = "make test-systems"]`. A missing tool fails its test: `.ci/needs.sh systems` has tried to install
//! the tools, so the caller must learn that one is missing.

/// Raw requests in front of other servers.
mod corpus;
/// The short form of `make edge`.
mod edge;
/// Other parsers read admitted requests in the same way.
mod oracle;
/// The dashboards, rules and alerts on a Prometheus, and the commands of the runbooks.
mod prometheus;
/// TLS as testssl.sh sees it.
mod testssl;

use std::{path::Path, process::Command};

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
];

/// A library of Java that Debian has, and the package.
const JARS: &[(&str, &str)] = &[
    ("jackson-databind.jar", "libjackson2-databind-java"),
    ("gson.jar", "libgoogle-gson-java"),
];

/// The folder in which Debian keeps the libraries of Java.
const JAVA: &str = "/usr/share/java";

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
