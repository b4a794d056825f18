//! Processes that tests start.

use super::waiting::ended;
use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A child process that is killed when it is dropped, if not before.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    /// The CPU time of the process, in microseconds; the kernel's resolution is 10 ms.
    pub(crate) fn cpu_time(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks = |index: usize| fields[index].parse::<u64>().unwrap();
        (ticks(11) + ticks(12)) * 10_000
    }

    /// Sends a signal, as kill(1) names it: `-HUP`.
    pub(crate) fn signal(&self, signal: &str) {
        signal_to(self.0.id(), signal);
    }

    /// SIGTERM. Waits for the end, which must be a good one.
    pub(crate) fn stop(mut self) {
        self.signal("-TERM");
        assert!(ended(&mut self.0).success());
    }

    /// SIGKILL.
    pub(crate) fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends a signal to a process.
pub(crate) fn signal_to(process: u32, signal: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args([signal, &process.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Lets a program append its access log to `<path>.log` and its events to `<path>.events`.
pub(crate) fn to_files<'a>(program: &'a mut Command, path: &Path) -> &'a mut Command {
    let file = |kind: &str| {
        let mut file = File::options();
        let file = file.create(true).append(true);
        Stdio::from(file.open(path.with_extension(kind)).unwrap())
    };
    program.stdout(file("log")).stderr(file("events"))
}
