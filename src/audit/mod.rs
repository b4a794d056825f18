//! The audit: what the bank must be able to show, in files whose lines are chained by hashes (docs/audit.md).
//!
//! Invariants: a PSU is named by a pseudonym that can be erased; where the audit is required, a change is in it, durably, before the core
//! gets the request, and no request is served while it cannot be written. Deliberately not here: the moments of records, which stand
//! where things happen.

// The records.
mod event;

// The files: one chain for each class of records.
mod chain;
mod files;

// The names of PSUs.
mod pseudonyms;

// The thread that writes, and deletes old files; and the places of records that wait for it.
mod places;
mod retire;
mod shared;
mod writer;

// Reading: proof, and search.
mod search;
mod verify;

pub use event::{AuditEvent, AuditKind, Class};
pub use search::{Found, Wanted, files_of, search};
pub use shared::{AuditCounts, AuditUnavailable};
pub use verify::{Checkpoint, Finding, Verified, checkpoints, verify};

use crate::{
    clock::{Clock, LogTime},
    config::AuditSettings,
    private_file,
    state::PsuHash,
    write_fault::WriteFault,
};
use chain::Chain;
use pseudonyms::Pseudonyms;
use shared::{PATIENCE, Shared};
use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::oneshot;
use writer::{Job, Reply, Writer};

/// The most processes that write to one folder at once: two during an upgrade.
const PROCESSES: u32 = 16;

/// The timeout for the last records when the audit is closed.
pub const LAST_WITHIN: Duration = Duration::from_secs(5);

/// The audit cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{0}: {1}")]
pub struct AuditFault(PathBuf, io::Error);

impl AuditFault {
    /// The folder cannot be used, for this reason.
    pub fn new(folder: &Path, error: io::Error) -> Self {
        Self(folder.to_owned(), error)
    }
}

/// The audit of one gateway. The default is off: it has no files.
#[derive(Debug, Default)]
pub struct Audit(Option<Open>);

#[derive(Debug)]
struct Open {
    queue: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    is_required: bool,
    clock: Clock,
}

impl Audit {
    /// Opens the audit; the first start makes its folder.
    ///
    /// # Errors
    /// The folder cannot be used, or a file is no audit.
    pub fn open(settings: &AuditSettings, clock: &Clock) -> Result<Self, AuditFault> {
        let fault = |error| AuditFault(settings.folder.clone(), error);
        private_file::make_folder_of(&settings.folder.join("1")).map_err(fault)?;
        let pseudonyms = Pseudonyms::open(&settings.folder);
        let pseudonyms = pseudonyms.map_err(|error| fault(io::Error::other(error)))?;
        let (number, folder, lock) = own_folder(&settings.folder).map_err(fault)?;
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            chains: Chain::open_all(&folder, settings).map_err(fault)?,
            settings: settings.clone(),
            pseudonyms,
            shared: Arc::clone(&shared),
            clock: clock.clone(),
            name: number.to_string(),
            _lock: lock,
        };
        let (queue, jobs) = channel();
        let thread = std::thread::Builder::new().name("audit".into());
        let thread = thread.spawn(move || writer.run(&jobs)).map_err(fault)?;
        Ok(Self(Some(Open {
            queue: Some(queue),
            thread: Some(thread),
            shared,
            is_required: settings.required,
            clock: clock.clone(),
        })))
    }

    /// A record of something that happens now.
    pub fn event(&self, kind: AuditKind) -> AuditEvent {
        let at = self
            .0
            .as_ref()
            .map_or_else(writer::now, |open| open.clock.log_time());
        AuditEvent::new(kind, at)
    }

    /// Whether records are kept.
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Enqueues a record and does not wait.
    pub fn record(&self, event: AuditEvent) {
        if let Some(open) = &self.0
            && open.has_place(event.kind)
        {
            open.send(event, None);
        }
    }

    /// Whether so many records of refusals wait for the disk that no subject may have more than its share of them (FWD-8).
    pub fn is_crowded(&self) -> bool {
        let open = self.0.as_ref();
        open.is_some_and(|open| open.shared.places.is_crowded())
    }

    /// Enqueues a record. If the audit is required, the record is durable on return.
    ///
    /// # Errors
    /// The audit is required and the record is not durable.
    pub async fn record_durably(&self, event: AuditEvent) -> Result<(), AuditUnavailable> {
        let Some(open) = &self.0 else {
            return Ok(());
        };
        match open.has_place(event.kind) {
            true => open.write(event).await,
            false if open.is_required => Err(AuditUnavailable),
            false => Ok(()),
        }
    }

    /// Enqueues the record of a request that will be forwarded, as [`Audit::record_durably`] does, if there is a place for it and for its
    /// outcome. Then it calls `begun`: from there on, the request must have an outcome.
    ///
    /// # Errors
    /// There is no place, whether the audit is required or not; or it is required, and the record is not durable. The request must not be
    /// forwarded.
    pub async fn record_forwarding(
        &self,
        event: AuditEvent,
        begun: impl FnOnce(),
    ) -> Result<(), AuditUnavailable> {
        let Some(open) = &self.0 else {
            return Ok(());
        };
        if !open.shared.places.take(event.kind) {
            return Err(AuditUnavailable);
        }
        begun();
        open.write(event).await
    }

    /// Whether requests must be refused, because the audit is required and cannot be written.
    pub fn refuses(&self) -> bool {
        let open = self.0.as_ref();
        let failing = open.filter(|open| open.is_required && open.shared.is_failing());
        failing.inspect(|open| open.shared.log_hang()).is_some()
    }

    /// Whether the audit is required, and why it cannot be written.
    pub fn fault(&self) -> Option<(bool, WriteFault)> {
        let open = self.0.as_ref()?;
        Some((open.is_required, open.shared.fault()?))
    }

    /// Whether requests may rely on it: it is not required, or a record has been durable since it was opened.
    pub fn is_proven(&self) -> bool {
        let open = self.0.as_ref();
        open.is_none_or(|open| !open.is_required || open.shared.counts().written > 0)
    }

    /// The numbers of records since the start.
    pub fn counts(&self) -> AuditCounts {
        let open = self.0.as_ref();
        open.map(|open| open.shared.counts()).unwrap_or_default()
    }

    /// Waits until the records so far were tried to be written. False on a timeout.
    pub fn flush(&self, within: Duration) -> bool {
        self.0.as_ref().is_none_or(|open| open.flush(within))
    }
}

impl Open {
    /// Takes the place of a record; one without a place is counted as dropped.
    fn has_place(&self, kind: AuditKind) -> bool {
        let is_taken = self.shared.places.take(kind);
        if !is_taken {
            self.shared.count_dropped();
        }
        is_taken
    }

    /// Enqueues a record that has a place. If the audit is required, the record is durable on return.
    async fn write(&self, event: AuditEvent) -> Result<(), AuditUnavailable> {
        if !self.is_required {
            self.send(event, None);
            return Ok(());
        }
        let (reply, written) = oneshot::channel();
        self.send(event, Some(reply));
        match tokio::time::timeout(PATIENCE, written).await {
            Ok(Ok(written)) => written,
            Ok(Err(_)) | Err(_) => Err(AuditUnavailable),
        }
    }

    /// Enqueues a record that has a place. The queue is open as long as this value, and its thread ends with it.
    fn send(&self, event: AuditEvent, reply: Option<Reply>) {
        let queue = self.queue.as_ref();
        let is_sent = queue.is_some_and(|queue| queue.send(Job::Record(event, reply)).is_ok());
        if !is_sent {
            self.shared.count_dropped();
        }
    }

    fn flush(&self, within: Duration) -> bool {
        let (until, flushed) = sync_channel(0);
        let queue = self.queue.as_ref();
        queue.is_some_and(|queue| queue.send(Job::Flush(until)).is_ok())
            && flushed.recv_timeout(within) == Err(RecvTimeoutError::Disconnected)
    }
}

/// Writes the last records before the process ends.
impl Drop for Open {
    fn drop(&mut self) {
        let is_flushed = self.flush(LAST_WITHIN);
        self.queue = None;
        // A disk that does not answer must not keep the process.
        if let Some(thread) = self.thread.take().filter(|_| is_flushed) {
            let _ = thread.join();
        }
    }
}

/// The first folder of chains that no other process has locked. A process has chains of its own, because a chain has one writer: during
/// an upgrade the old process goes on with its chains.
fn own_folder(audit: &Path) -> io::Result<(u32, PathBuf, File)> {
    for number in 1..=PROCESSES {
        let folder = audit.join(number.to_string());
        match files::lock(&folder) {
            Ok(lock) => return Ok((number, folder, lock)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let text = format!("{PROCESSES} processes write to this folder already");
    Err(io::Error::other(text))
}

/// Erases a PSU from an audit: nothing leads from the PSU-ID to its records any more. `psu` are its hashes of every level of the hash key.
/// Returns the pseudonyms; none if there are no records, unless the PSU `was_bound`: then the record of the erasure is the only one.
///
/// # Errors
/// The file of salts cannot be changed. What was erased before stays erased.
pub fn erase(
    audit: &Path,
    psu: &[PsuHash],
    was_bound: bool,
    at: LogTime,
) -> Result<Vec<String>, AuditFault> {
    with_salts(audit, |pseudonyms| {
        let mut erased = Vec::new();
        for hash in psu {
            erased.extend(pseudonyms.erase(*hash, false, at)?);
        }
        if let (true, Some(hash)) = (erased.is_empty(), psu.last()) {
            erased.extend(pseudonyms.erase(*hash, was_bound, at)?);
        }
        Ok(erased)
    })
}

/// The pseudonyms of a PSU, by its hashes of every level of the hash key; none if there are no records.
///
/// # Errors
/// The file of salts cannot be read.
pub fn pseudonyms(audit: &Path, psu: &[PsuHash]) -> Result<Vec<String>, AuditFault> {
    with_salts(audit, |pseudonyms| {
        let found = psu.iter().map(|hash| pseudonyms.find(*hash));
        found.filter_map(Result::transpose).collect()
    })
}

fn with_salts(
    audit: &Path,
    ask: impl FnOnce(&mut Pseudonyms) -> rusqlite::Result<Vec<String>>,
) -> Result<Vec<String>, AuditFault> {
    let fault = |error| AuditFault(audit.to_owned(), error);
    match fs::metadata(audit) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.map_err(fault)?,
    };
    let asked = Pseudonyms::open(audit).and_then(|mut pseudonyms| ask(&mut pseudonyms));
    asked.map_err(|error| fault(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Receiver;

    /// An audit whose thread does nothing, as with a disk that hangs.
    fn hanging(is_required: bool) -> (Audit, Receiver<Job>) {
        let (queue, jobs) = channel();
        let open = Open {
            queue: Some(queue),
            thread: None,
            shared: Arc::default(),
            is_required,
            clock: Clock::System,
        };
        (Audit(Some(open)), jobs)
    }

    /// Noise of every kind leaves out no record of a request that is forwarded; one without a place is not forwarded (FWD-8).
    #[tokio::test]
    async fn no_record_of_a_forwarded_request_is_left_out() {
        let (audit, jobs) = hanging(false);
        for kind in [
            AuditKind::Refused,
            AuditKind::Failed,
            AuditKind::Call,
            AuditKind::Bound,
        ] {
            for _ in 0..20_000 {
                audit.record(audit.event(kind));
            }
        }
        let noise = audit.counts().dropped;
        let mut forwarded = 0;
        for _ in 0..10_000 {
            let mut has_begun = false;
            let event = audit.event(AuditKind::Forwarding);
            let recorded = audit.record_forwarding(event, || has_begun = true).await;
            assert_eq!(recorded.is_ok(), has_begun);
            forwarded += usize::from(has_begun);
        }
        assert_eq!(forwarded, 8_192);
        for _ in 0..forwarded {
            audit.record(audit.event(AuditKind::Outcome));
        }
        assert_eq!(audit.counts().dropped, noise, "only noise was left out");
        let kinds = jobs.try_iter().filter_map(|job| match job {
            Job::Record(event, _) => Some(event.kind),
            Job::Flush(_) => None,
        });
        let kinds = kinds.collect::<Vec<_>>();
        for kind in [AuditKind::Forwarding, AuditKind::Outcome] {
            assert_eq!(kinds.iter().filter(|it| **it == kind).count(), forwarded);
        }
    }
}
