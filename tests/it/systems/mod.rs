//! Tests that need other programs, or more than seconds: `make test-systems` runs them, `make test` does not.
//!
//! Each of them is `#[ignore = "make test-systems"]`. A tool that is missing fails its test and is never skipped: `.ci/needs.sh systems`
//! installs the tools first, so what is missing here could not be installed, and whoever runs these tests wants to know.

/// Whatever is admitted is read the same by others.
mod oracle;

use std::{path::Path, process::Command};

/// A program that Debian has, how its version is asked for, and the package.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("go", "version", "golang-go"),
    ("javac", "-version", "default-jdk-headless"),
    ("node", "--version", "nodejs"),
    ("python3", "--version", "python3"),
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
