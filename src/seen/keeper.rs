//! The thread that reads the file at start, and writes it: at most once a minute, and at the stop, if the certificates have changed.
//!
//! If the disk hangs, only this thread hangs. Processes that share a folder share the file: each adds what the others have written.

use super::{
    ending::{SeenEvent, Spoken},
    file::{self, FoundCertificates},
    record::{SeenRecord, day_of},
    shared::SeenCertificates,
};
use crate::clock::Clock;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The shortest time between two writes.
const BETWEEN_WRITES: Duration = Duration::from_secs(60);

/// The longest wait for the last write: only a disk that takes nothing makes it as long.
pub const LAST_WITHIN: Duration = Duration::from_secs(1);

/// Keeps certificates in a file. Dropping it writes them a last time.
#[derive(Debug)]
pub struct SeenKeeper(Arc<SeenCertificates>);

impl SeenKeeper {
    /// Starts the thread. `on_event` is called for each TPP of the file at once, for each TPP that was not seen within 30 days before, a minute after its request at the latest,
    /// and for each certificate that ends within 30 days: once in a process, when the first certificate of a day is noted at the latest.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(
        seen: Arc<SeenCertificates>,
        path: PathBuf,
        clock: Clock,
        on_event: impl Fn(SeenEvent) + Send + 'static,
    ) -> io::Result<Self> {
        let of_thread = Arc::clone(&seen);
        std::thread::Builder::new()
            .name("seen-certificates".into())
            .spawn(move || {
                let mut file = KeptFile::new(path);
                file.restore(&of_thread);
                work(&of_thread, &mut file, &clock, &on_event);
                of_thread.mark_stopped();
            })?;
        Ok(Self(seen))
    }
}

impl Drop for SeenKeeper {
    fn drop(&mut self) {
        if !self.0.stop(LAST_WITHIN) {
            tracing::warn!("the disk is too slow to keep the certificates that were seen");
        }
    }
}

fn work(
    seen: &SeenCertificates,
    file: &mut KeptFile,
    clock: &Clock,
    on_event: &impl Fn(SeenEvent),
) {
    let mut spoken = Spoken::default();
    let before = seen.tpps(clock.now()).into_iter();
    before.map(SeenEvent::Before).for_each(on_event);
    loop {
        let (changed, is_last) = seen.wait_for_change();
        if let Some(record) = changed {
            let now = clock.now();
            let new = seen.take_new().into_iter().map(SeenEvent::New);
            new.for_each(on_event);
            let ending = spoken.take_ending(&record, now).into_iter();
            ending.for_each(on_event);
            let today = day_of(now);
            seen.forget(today);
            if !file.write(record, today) {
                seen.mark_changed();
            }
        }
        if is_last {
            return;
        }
        seen.pause(BETWEEN_WRITES);
    }
}

/// The file. A fault is logged once, until a write succeeds.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: PathBuf,
    /// Whether it could not be read.
    is_unread: bool,
    /// Whether it could not be written.
    is_faulty: bool,
}

impl KeptFile {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self {
            path,
            is_unread: false,
            is_faulty: false,
        }
    }

    /// Reads the file at start.
    pub(super) fn restore(&mut self, seen: &SeenCertificates) {
        let found = self.read();
        if found.damaged > 0 {
            let (path, lines) = (self.shown(), found.damaged);
            tracing::warn!(%path, lines, "lines of the certificates that were seen are damaged; what cannot be read of them is left out");
        }
        seen.restore(found.certificates);
    }

    /// Writes a record, and what another process has written; returns whether that succeeded.
    pub(super) fn write(&mut self, mut record: SeenRecord, today: u64) -> bool {
        for others in self.read().certificates {
            record.add(others);
        }
        record.forget(today);
        match file::write(&self.path, &record) {
            Ok(()) => (self.is_unread, self.is_faulty) = (false, false),
            Err(error) => {
                if !std::mem::replace(&mut self.is_faulty, true) {
                    let path = self.shown();
                    tracing::warn!(%path, %error, "the certificates that were seen cannot be written; portvakt-lists does not learn who would lose trust");
                }
                return false;
            }
        }
        true
    }

    /// What the file has; nothing if it cannot be read, or others may write it: it is replaced at the next write.
    fn read(&mut self) -> FoundCertificates {
        file::read(&self.path).unwrap_or_else(|error| {
            if !std::mem::replace(&mut self.is_unread, true) {
                let path = self.shown();
                tracing::warn!(%path, %error, "the certificates that were seen cannot be read; the file begins anew");
            }
            FoundCertificates::default()
        })
    }

    fn shown(&self) -> std::path::Display<'_> {
        Path::display(&self.path)
    }
}
