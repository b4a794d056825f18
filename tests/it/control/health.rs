//! `portvakt health`, as a container without a shell asks.

use crate::harness::{Gate, Program, eventually};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn health(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    command.arg("health").args(arguments).output().unwrap()
}

fn status(arguments: &[&str]) -> Option<i32> {
    health(arguments).status.code()
}

fn started(gate: &Gate) -> Program {
    let mut program = gate.program();
    let program = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Program(program.unwrap())
}

fn write_token(folder: &Path, name: &str, token: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, token).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn it_is_that_of_readyz() {
    let gate = Gate::builder().for_program();
    let config = gate.folder().join("gateway.yaml");
    let control = format!("address: {}", gate.control_address());
    let keys = "readiness_token_file: readiness.token";
    let yaml = gate.yaml();
    let yaml = yaml.replace(&control, &format!("{control}\n  {keys}"));
    fs::write(&config, yaml).unwrap();
    let token = write_token(gate.folder(), "readiness.token", TOKEN);
    let other = write_token(gate.folder(), "other.token", &TOKEN.replace('0', "9"));
    let config = config.to_str().unwrap();
    let url = format!("http://{}/", gate.control_address());

    let nobody = health(&["--config", config]);
    assert_eq!(nobody.status.code(), Some(1), "{nobody:?}");
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert!(
        said.contains("no answer") && said.contains("refused"),
        "{said}"
    );

    let program = started(&gate);
    eventually("the gateway is healthy", || {
        status(&["--config", config]) == Some(0)
    });
    let healthy = health(&["--url", &url, "--token-file", &token]);
    assert_eq!(healthy.status.code(), Some(0), "{healthy:?}");
    let said = String::from_utf8(healthy.stdout).unwrap();
    assert!(said.starts_with("200 {\"ready\":true"), "{said}");
    // Without the token, and with another.
    assert_eq!(status(&["--url", &url]), Some(1));
    assert_eq!(status(&["--url", &url, "--token-file", &other]), Some(1));
    program.stop();
    assert_eq!(status(&["--config", config]), Some(1));
}

#[test]
fn it_reaches_a_unix_socket() {
    let gate = Gate::builder().for_program();
    let config = gate.folder().join("gateway.yaml");
    let control = format!("address: {}", gate.control_address());
    let yaml = gate.yaml().replace(&control, "socket: control.sock");
    fs::write(&config, yaml).unwrap();
    let _program = started(&gate);
    let config = config.to_str().unwrap();
    eventually("the gateway is healthy", || {
        status(&["--config", config]) == Some(0)
    });
}

#[test]
fn a_question_that_cannot_be_asked_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let missing = missing.to_str().unwrap();
    let url = "https://localhost:9";
    for arguments in [
        vec![],
        vec!["--config", missing],
        vec!["--config", missing, "--url", url],
        vec!["--url", url, "--cacert", missing],
        vec!["--url", url, "--token-file", missing],
    ] {
        assert_eq!(status(&arguments), Some(2), "{arguments:?}");
    }
}
