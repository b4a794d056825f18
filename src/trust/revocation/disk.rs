//! The thread on which copies are read and written.
//!
//! It is one of its own, since a disk may hang: then this thread does, and nothing else. Whoever reads waits for half a second and goes
//! on without; what the thread cannot take is not written. One thread does both, so that the newer of two copies stays.

use super::{
    SourceFault,
    copies::{CopyFolder, DiskCopy},
    engine::step_back,
};
use std::{io, path::Path, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// How long a copy is waited for: a part of the two seconds that a request waits (CRT-11), so that a fetch has the rest.
const WAIT: Duration = Duration::from_millis(500);

/// As many jobs wait; more are not done. At a start there is one for each source of the first second.
const MOST_WAITING: usize = 1_024;

/// Copies that wait to be written, each of 5 MiB at most. One more is not written: what stands there is the one before.
const MOST_WRITES: usize = 32;

/// The way to the thread. It ends when the last of these is dropped.
#[derive(Clone, Debug)]
pub(super) struct DiskThread(mpsc::Sender<Job>);

#[derive(Debug)]
enum Job {
    Read(String, oneshot::Sender<Option<Vec<u8>>>),
    Write(DiskCopy),
    Discard(String, SourceFault),
}

impl DiskThread {
    /// Starts the thread, for copies in this folder.
    pub(super) fn start(folder: &Path) -> io::Result<Self> {
        let (disk, jobs) = mpsc::channel(MOST_WAITING);
        let copies = CopyFolder::new(folder.to_owned());
        std::thread::Builder::new()
            .name("revocation-disk".into())
            .spawn(move || {
                step_back();
                work(&copies, jobs);
            })?;
        Ok(Self(disk))
    }

    /// What a source said, if that was kept and can be had soon.
    pub(super) async fn read(&self, name: &str) -> Option<Vec<u8>> {
        let (answer, copy) = oneshot::channel();
        self.ask(Job::Read(name.to_owned(), answer));
        match tokio::time::timeout(WAIT, copy).await {
            Ok(copy) => copy.ok().flatten(),
            Err(_) => {
                tracing::warn!("the disk is too slow to read a copy of revocation data");
                None
            }
        }
    }

    /// Keeps what a source said. Nobody waits for it.
    pub(super) fn write(&self, copy: DiskCopy) {
        if MOST_WAITING.saturating_sub(self.0.capacity()) < MOST_WRITES {
            self.ask(Job::Write(copy));
        } else {
            tracing::warn!("the disk is too slow to keep a copy of revocation data");
        }
    }

    /// Removes a copy that does not count.
    pub(super) fn discard(&self, name: String, why: SourceFault) {
        self.ask(Job::Discard(name, why));
    }

    fn ask(&self, job: Job) {
        if self.0.try_send(job).is_err() {
            tracing::warn!("the disk is too slow for copies of revocation data");
        }
    }
}

fn work(copies: &CopyFolder, mut jobs: mpsc::Receiver<Job>) {
    let mut held = None;
    while let Some(job) = jobs.blocking_recv() {
        match job {
            Job::Read(name, answer) => {
                // Whoever asked may have gone on.
                let _ = answer.send(copies.read(&name));
            }
            Job::Write(copy) => {
                if let Err(error) = copies.write(&copy, &mut held) {
                    tracing::warn!(%error, "a copy of revocation data cannot be written");
                }
            }
            Job::Discard(name, why) => copies.discard(&name, why),
        }
    }
}
