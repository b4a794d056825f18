//! What the service manager is told: which process serves, and that it goes on (systemd's `WatchdogSec`).

use super::Family;
use crate::harness::{Gate, LIMIT, eventually};
use std::{os::unix::net::UnixDatagram, process::Command, thread};

/// The next message, which is waited for.
fn message(manager: &UnixDatagram) -> String {
    let mut message = [0; 512];
    let length = manager.recv(&mut message).unwrap();
    String::from_utf8(message[..length].to_vec()).unwrap()
}

/// Waits until a process is ready, and returns what it said then.
fn ready(manager: &UnixDatagram) -> String {
    loop {
        let said = message(manager);
        if said.contains("READY=1") {
            return said;
        }
        // The process before goes on telling until it hands over.
        assert_eq!(said.trim(), "WATCHDOG=1");
    }
}

#[test]
fn the_watchdog_hears_of_the_process_that_serves() {
    let gate = Gate::builder().for_program();
    let path = gate.folder().join("manager");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(LIMIT)).unwrap();
    let mut program = Command::new("sh");
    // The service manager names the process that it watches, which a successor is not.
    program
        .args([
            "-c",
            r#"export WATCHDOG_PID=$$; exec "$0" serve --config "$1""#,
        ])
        .arg(gate.program().get_program())
        .arg(gate.folder().join("gateway.yaml"))
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "300000");
    let family = Family::of(gate, program);
    let main = |id: u32| format!("MAINPID={id}");
    assert!(ready(&manager).contains(&main(family.processes()[0])));
    for _ in 0..3 {
        assert_eq!(message(&manager).trim(), "WATCHDOG=1");
    }

    // Messages are read all the time: a process waits while its manager has some ten that are unread.
    let said = thread::scope(|scope| {
        let upgrade = scope.spawn(|| family.upgrade());
        let mut said = None;
        while !upgrade.is_finished() {
            let one = message(&manager);
            if one.contains("READY=1") {
                said = Some(one);
            } else {
                assert!(said.is_some() || one.trim() == "WATCHDOG=1", "{one}");
            }
        }
        upgrade.join().unwrap();
        said.unwrap_or_else(|| ready(&manager))
    });
    manager.set_nonblocking(true).unwrap();
    let drain = || while manager.recv(&mut [0; 512]).is_ok() {};
    eventually("the end of the old process", || {
        drain();
        family.processes().len() == 1
    });
    assert!(said.contains(&main(family.processes()[0])), "{said}");
    drain();
    manager.set_nonblocking(false).unwrap();
    for _ in 0..3 {
        assert_eq!(message(&manager).trim(), "WATCHDOG=1");
    }
}
