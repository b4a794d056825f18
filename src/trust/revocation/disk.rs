//! The thread that reads and writes copies of answers.
//!
//! If the disk hangs, only this thread hangs. A read waits for at most half a second; a write that the queue cannot take is dropped. One
//! thread does both, so that writes of one copy stay in order.

use super::{
    SourceFault,
    copies::{CopyFolder, DiskCopy},
    priority::step_back,
};
use std::{io, path::Path, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// The longest wait for a read: a part of the two seconds that a request waits (CRT-11), so that the rest is left for a fetch.
const WAIT: Duration = Duration::from_millis(500);

/// The length of the queue; jobs beyond it are dropped. At start there is one job for each source of the first second.
const MOST_WAITING: usize = 1_024;

/// The maximum number of queued writes, each of at most 5 MiB. A write beyond it is dropped, and the copy before stays.
const MOST_WRITES: usize = 32;

/// The handle of the thread. The thread ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub(super) struct DiskThread(mpsc::Sender<Job>);

#[derive(Debug)]
enum Job {
    Read(String, oneshot::Sender<Option<Vec<u8>>>),
    Write(DiskCopy),
    Discard(String, SourceFault),
}

impl DiskThread {
    /// Starts the thread for the copies in this folder.
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

    /// The copy of this name; `None` if there is none or the disk is too slow.
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

    /// Queues a copy to be written.
    pub(super) fn write(&self, copy: DiskCopy) {
        if MOST_WAITING.saturating_sub(self.0.capacity()) < MOST_WRITES {
            self.ask(Job::Write(copy));
        } else {
            tracing::warn!("the disk is too slow to keep a copy of revocation data");
        }
    }

    /// Queues the removal of a copy that is not valid.
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
                // The reader may have timed out.
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
