//! The demo: every flow of the interface through the gateway to the simulated bank, with both programs as separate processes, and what the
//! README lets a newcomer do beside it.

use crate::harness::{Program, eventually_within, free_address};
use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// As long as a slow machine may take for the flows.
const LIMIT: Duration = Duration::from_secs(600);

/// The demo in a folder, with the example's configuration at free ports, and the address of the public listener.
fn start(folder: &Path, options: &[&str]) -> (Program, SocketAddr) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join("config").join(name)).unwrap();
    let [listener, control, core] = [(); 3].map(|()| free_address());
    let config = read("gateway.yaml")
        .replace("127.0.0.1:8443", &listener.to_string())
        .replace("127.0.0.1:8080", &core.to_string())
        .replace("#address: 127.0.0.1:9100", &format!("address: {control}"));
    fs::create_dir_all(folder.join("config")).unwrap();
    fs::write(folder.join("config/gateway.yaml"), config).unwrap();
    fs::write(
        folder.join("config/operations.yaml"),
        read("operations.yaml"),
    )
    .unwrap();
    let program = Command::new(env!("CARGO_BIN_EXE_portvakt-sandbox"))
        .arg("demo")
        .args(options)
        .args(["--config", "config/gateway.yaml", "--certs", "certs"])
        .current_dir(folder)
        .stdout(fs::File::create(folder.join("out")).unwrap())
        .stderr(Stdio::inherit())
        .spawn();
    (Program(program.unwrap()), listener)
}

/// Plays the flows, and waits for the end of the demo.
fn play(folder: &Path) {
    let (mut program, _) = start(folder, &["--once"]);
    let status = eventually_within(LIMIT, "the demo has ended", || {
        program.0.try_wait().unwrap()
    });
    let told = fs::read_to_string(folder.join("out")).unwrap();
    assert!(status.success(), "{told}");
}

//= SBX-9 accepted
#[test]
fn every_flow_runs_through_the_gateway_and_again_on_the_same_state() {
    let folder = tempfile::tempdir().unwrap();
    play(folder.path());
    play(folder.path());
}

/// The commands of a second terminal, as the README has them, but for the port: the last one prints a signed request's 200.
#[test]
fn the_readme_leads_to_a_signed_200() {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme
        .split_once("in the same folder of a second terminal")
        .unwrap();
    let (_, rest) = rest.split_once("answered with 200:\n").unwrap();
    let (commands, _) = rest.split_once("\n## ").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (mut program, listener) = start(folder.path(), &[]);
    eventually_within(LIMIT, "the gateway serves, after its flows", || {
        assert_eq!(program.0.try_wait().unwrap(), None, "the demo has ended");
        let told = fs::read_to_string(folder.path().join("out")).unwrap();
        told.contains("as expected") && TcpStream::connect(listener).is_ok()
    });
    let programs = Path::new(env!("CARGO_BIN_EXE_portvakt")).parent().unwrap();
    let port = listener.port().to_string();
    let output = Command::new("bash")
        // As in a terminal: the first call is answered with 401, which is no end.
        .args(["-u", "-c"])
        .arg(format!(
            "export PATH={}:$PATH\n{}",
            programs.display(),
            commands.replace("8443", &port)
        ))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(
        text.starts_with("200") || text.contains("\n200"),
        "{text}{errors}"
    );
    // Killed, it would leave its gateway behind.
    program.signal("-TERM");
    eventually_within(LIMIT, "the demo has ended", || {
        program.0.try_wait().unwrap()
    });
}
