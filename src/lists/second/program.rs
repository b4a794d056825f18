//! The program of the second verifier, run with bounds on its time and on what is read of its words.
//!
//! Invariant: when its verdict is known, or nobody waits for it any more, neither the program runs nor a process that it has started,
//! unless that one has left its process group.

use crate::certificate::Certificate;
use portvakt_base::clock::Stopwatch;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

/// The attributes by which the references of a list find what is signed.
const IDS: [&str; 2] = [
    "http://uri.etsi.org/01903/v1.3.2#:SignedProperties",
    "http://uri.etsi.org/02231/v2#:TrustServiceStatusList",
];

/// How long the program may take for one list.
const LIMIT: Duration = Duration::from_secs(60);

/// The time between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// The highest status of a program that has come to a verdict (POSIX, 2.8.2).
const MAX_STATUS: i32 = 125;

/// The most bytes that are read of what it says.
const MAX_SAID: u64 = 64 * 1024;

/// The program xmlsec1, or one that takes the same arguments.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Its path, or its name in the folders of `PATH`.
    pub(crate) path: PathBuf,
    /// How long it may take for one list.
    pub(crate) limit: Duration,
}

/// What the program says of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It accepts the list.
    Accepts,
    /// It does not, and says this.
    Refuses(String),
    /// It has not ended in time, and was killed.
    TooSlow,
    /// It was killed by a signal, or could not be executed: it has judged nothing. The text says which.
    Broken(String),
}

impl Program {
    /// A program that may take 60 seconds for one list.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path, limit: LIMIT }
    }

    /// Asks the program whether a list is signed by this signer.
    ///
    /// # Errors
    /// It cannot be run.
    pub(crate) fn ask(&self, list: &[u8], signer: &Certificate) -> io::Result<Verdict> {
        let folder = tempfile::tempdir()?;
        let [file, pem, said] =
            ["list.xml", "signer.pem", "said"].map(|name| folder.path().join(name));
        fs::write(&file, list)?;
        fs::write(&pem, signer.pem())?;
        let mut command = Command::new(&self.path);
        command
            .args([
                "--verify",
                "--enabled-key-data",
                "key-name",
                "--pubkey-cert-pem",
            ])
            .arg(&pem)
            .args(["--enabled-reference-uris", "empty,same-doc"])
            .args(IDS.iter().flat_map(|id| ["--id-attr:Id", *id]))
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // A file, since a program that says much would wait for a pipe to be read.
            .stderr(File::create(&said)?);
        match Running::start(&mut command)?.wait(self.limit)? {
            None => Ok(Verdict::TooSlow),
            Some(status) if status.success() => Ok(Verdict::Accepts),
            Some(status) if is_broken(status) => Ok(Verdict::Broken(status.to_string())),
            Some(status) => first_line(&said, status).map(Verdict::Refuses),
        }
    }
}

/// Whether a status says that the program was killed, or that a shell around it could not execute it or saw it killed: 126 and above.
fn is_broken(status: ExitStatus) -> bool {
    status.signal().is_some() || status.code().is_some_and(|code| code > MAX_STATUS)
}

/// A program that runs, in a process group of its own. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// Whether its status was taken: its number may be another process's from then on.
    is_reaped: bool,
}

impl Running {
    /// Starts a program.
    ///
    /// # Errors
    /// It cannot be run.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self {
            child: command.process_group(0).spawn()?,
            is_reaped: false,
        })
    }

    /// Waits for the end of the program; kills it at the limit, and then there is no status.
    fn wait(mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let began = Stopwatch::start();
        let mut has_ended = self.has_ended()?;
        while !has_ended && began.elapsed() < limit {
            thread::sleep(PAUSE);
            has_ended = self.has_ended()?;
        }
        let status = self.end()?;
        Ok(has_ended.then_some(status))
    }

    /// Whether the program has ended. Its status stays, so that its number remains that of its group.
    fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = waitid(WaitId::Pid(self.number()), options)?;
        Ok(ended.is_some())
    }

    /// Kills what is left of the group, and takes the status of the program.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if !self.is_reaped {
            // It fails where nothing is left.
            let _ = kill_process_group(self.number(), Signal::KILL);
            self.is_reaped = true;
        }
        self.child.wait()
    }

    fn number(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_reaped {
            let _ = self.end();
        }
    }
}

/// The first line of what the program said, or its status if it said nothing.
fn first_line(said: &Path, status: ExitStatus) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(said)?.take(MAX_SAID).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.map_or_else(|| status.to_string(), str::to_owned);
    Ok(line.chars().take(200).collect())
}
