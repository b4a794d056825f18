//! The demo: every flow of the interface through the gateway to the simulated bank, with both programs as separate processes.

use crate::harness::{Program, eventually_within, free_address};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// Plays the demo in a folder, with the example's configuration at free ports.
fn play(folder: &Path) {
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
    let mut program = Program(
        Command::new(env!("CARGO_BIN_EXE_portvakt-sandbox"))
            .args([
                "demo",
                "--once",
                "--config",
                "config/gateway.yaml",
                "--certs",
                "certs",
            ])
            .current_dir(folder)
            .stdout(fs::File::create(folder.join("out")).unwrap())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap(),
    );
    let limit = Duration::from_secs(600);
    let status = eventually_within(limit, "the demo has ended", || {
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
