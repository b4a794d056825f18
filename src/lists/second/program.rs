//! The program of the second verifier, run with bounds on its time and on what is read of its words.

use crate::certificate::Certificate;
use portvakt_base::clock::Stopwatch;
use std::{
    fs::{self, File},
    io::{self, Read as _},
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
        let mut child = Command::new(&self.path)
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
            .stderr(File::create(&said)?)
            .spawn()?;
        match wait(&mut child, self.limit)? {
            None => Ok(Verdict::TooSlow),
            Some(status) if status.success() => Ok(Verdict::Accepts),
            Some(status) => first_line(&said, status).map(Verdict::Refuses),
        }
    }
}

/// Waits for the end of the program; kills it at the limit, and then there is no status.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let began = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(PAUSE);
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
