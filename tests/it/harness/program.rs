//! Processes that tests start.

use super::waiting::{LIMIT, RAN_OUT, ended};
use portvakt::clock::Stopwatch;
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
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

/// The lines that a program writes, read by a thread, so that a program that hangs does not hold up the test for ever.
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    /// The lines of an output.
    pub(crate) fn of(output: impl Read + Send + 'static) -> Self {
        let (line, lines) = channel();
        thread::spawn(move || {
            let read = BufReader::new(output).lines().map_while(Result::ok);
            // The test may have ended.
            read.map_while(|read| line.send(read).ok()).for_each(drop);
        });
        Self(lines)
    }

    /// The next line that meets a condition; `None` if the output ends before.
    #[track_caller]
    pub(crate) fn find(&self, what: &str, is_it: impl Fn(&str) -> bool) -> Option<String> {
        let since = Stopwatch::start();
        loop {
            match self.0.recv_timeout(LIMIT.saturating_sub(since.elapsed())) {
                Ok(line) if is_it(&line) => return Some(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("{RAN_OUT}: no line {what}"),
            }
        }
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
