//! The thread that writes the audit: batches of records, one synchronisation of a file for each batch and class.
//!
//! Invariants: a caller that waits is answered when its record is durable, or cannot be written; a record that nobody waits for is
//! tried again while the disk refuses it, and is never dropped here: [`super::places`] bounds how many wait. Deliberately not here: which
//! requests must wait.

use super::{
    chain::Chain,
    event::{AuditEvent, AuditKind, Class, Members},
    pseudonyms::{self, Erasure, Pseudonyms},
    retire,
    shared::{AuditUnavailable, Shared},
};
use crate::{
    clock::{Clock, LogTime, Stopwatch},
    config::AuditSettings,
    hex,
    write_fault::{WriteCause, WriteFault},
};
use std::{
    fs::File,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// The most records of a batch.
const BATCH: usize = 1_024;

/// Records that nobody waits for are written at most this long after the first of them.
const GATHER: Duration = Duration::from_millis(20);

/// The interval of work without records: erasures, and attempts to write again after a failure.
const TICK: Duration = Duration::from_secs(1);

/// The interval of checkpoints in the log of events, and of looking for files to delete.
const HOUR: Duration = Duration::from_secs(3_600);

/// A job of the queue.
pub(super) enum Job {
    /// A record, and the channel to the caller that waits for it.
    Record(AuditEvent, Option<Reply>),
    /// The sender waits; the writer drops the channel when everything before it was tried.
    Flush(#[allow(dead_code, reason = "what listens ends with it")] SyncSender<()>),
}

/// The channel to a caller that waits.
pub(super) type Reply = oneshot::Sender<Result<(), AuditUnavailable>>;

/// The state of the thread.
pub(super) struct Writer {
    pub(super) chains: Vec<Chain>,
    pub(super) pseudonyms: Pseudonyms,
    pub(super) shared: Arc<Shared>,
    pub(super) clock: Clock,
    /// The name of the folder of these chains, for checkpoints.
    pub(super) name: String,
    /// The settings, for folders that no process writes to any more.
    pub(super) settings: AuditSettings,
    /// Held while this process appends to these chains.
    pub(super) _lock: File,
}

/// A batch of one class.
type Batch = Vec<(AuditEvent, Option<Reply>)>;

impl Writer {
    /// Writes until the queue is closed.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let mut kept = Batch::new();
        let (mut hour, mut tick) = (Stopwatch::start(), Stopwatch::start());
        self.shared.begin_work();
        self.note_erasures();
        self.checkpoint();
        loop {
            let mut flushes = Vec::new();
            let mut batch = std::mem::take(&mut kept);
            let tried = batch.len();
            self.shared.end_work();
            let is_open = gather(jobs, &mut batch, &mut flushes);
            self.shared.begin_work();
            if !is_open {
                self.write(batch, tried);
                break;
            }
            if tick.elapsed() >= TICK {
                tick = Stopwatch::start();
                self.note_erasures();
            }
            if !batch.is_empty() || self.shared.is_failing() {
                kept = self.write(batch, tried);
            }
            if kept.len() >= BATCH {
                // They leave no place to gather others, and the disk needs time.
                std::thread::sleep(TICK);
            }
            drop(flushes);
            if hour.elapsed() >= HOUR {
                hour = Stopwatch::start();
                self.retire();
                self.checkpoint();
            }
        }
        self.checkpoint();
    }

    /// Writes a batch, class by class, whose first `tried` records the disk has refused before. Returns the records to try again.
    ///
    /// A class that failed gets a record in any case: while it fails, requests may be refused, so that none would come.
    fn write(&mut self, batch: Batch, tried: usize) -> Batch {
        let mut again = Batch::new();
        let failing = self.shared.failed_classes();
        for class in Class::ALL {
            let own = batch.iter().map(|(event, _)| event);
            let own: Vec<_> = own.filter(|event| event.kind.class() == class).collect();
            // The results are noted in `shared`.
            if !own.is_empty() {
                let _ = self.append(class, &own);
            } else if failing.contains(&class) {
                let event = AuditEvent::new(AuditKind::Resumed, self.clock.log_time());
                if self.append(class, &[&event]).is_ok() {
                    self.shared.count_written();
                }
            }
        }
        let failed: Vec<Class> = self.shared.failed_classes();
        for (place, (event, reply)) in batch.into_iter().enumerate() {
            let class = event.kind.class();
            let result = match failed.contains(&class) {
                true => Err(AuditUnavailable),
                false => Ok(()),
            };
            if result.is_err() && place >= tried {
                self.shared.count_failed();
            }
            if result.is_err() && reply.is_none() {
                again.push((event, None));
                continue;
            }
            self.shared.places.give_back(event.kind);
            if result.is_ok() {
                self.shared.count_written();
            }
            if let Some(reply) = reply {
                let _ = reply.send(result);
            }
        }
        again
    }

    /// Appends records to the chain of a class, and notes the result.
    fn append(&mut self, class: Class, events: &[&AuditEvent]) -> Result<(), WriteFault> {
        self.shared.begin_work();
        let result = self.try_append(class, events);
        self.shared.note(class, result.as_ref().err().cloned());
        result
    }

    fn try_append(&mut self, class: Class, events: &[&AuditEvent]) -> Result<(), WriteFault> {
        let mut records = Vec::new();
        if events.iter().any(|event| event.psu.is_some()) {
            // A PSU may have been erased since: its pseudonym must not be used again.
            let looked = self.pseudonyms.has_changed();
            looked.map_err(|error| pseudonyms::fault(&error))?;
        }
        for event in events {
            records.push(record(event, &mut self.pseudonyms)?);
            // A PSU without records costs a commit. A disk that takes many is slow, it does not hang.
            self.shared.begin_work();
        }
        let now = self.clock.log_time();
        let chain = self.chains.iter_mut().find(|chain| chain.class() == class);
        let chain = chain.ok_or_else(|| WriteFault {
            cause: WriteCause::Other,
            text: "there is no such chain".to_owned(),
        })?;
        let appended = chain.append(now, &records);
        appended.map_err(|error| WriteFault::new(&error, format!("{}: {error}", class.name())))
    }

    /// Puts erasures by other processes into the chain.
    fn note_erasures(&mut self) {
        let noted = (|| {
            self.pseudonyms.has_changed()?;
            self.pseudonyms.erasures()
        })();
        let erasures = match noted {
            Ok(erasures) if erasures.is_empty() => return,
            Ok(erasures) => erasures,
            Err(error) => {
                tracing::warn!(%error, "the salts of the audit cannot be read");
                return;
            }
        };
        let event = |erasure: &Erasure| {
            let pseudonym = erasure.pseudonym.clone();
            AuditEvent::new(AuditKind::Erased, erasure.at).with("psu", pseudonym)
        };
        let events: Vec<_> = erasures.iter().map(event).collect();
        let events: Vec<_> = events.iter().collect();
        if self.append(Class::Psus, &events).is_ok() {
            if let Err(error) = self.pseudonyms.noted(&erasures) {
                tracing::warn!(%error, "an erasure may be noted twice in the audit");
            }
            erasures.iter().for_each(|_| self.shared.count_written());
        }
    }

    /// Deletes files whose records are older than they must be kept, also in folders that no process writes to any more.
    fn retire(&mut self) {
        let now = self.clock.log_time();
        let note = |result: Result<u64, String>| match result {
            Ok(count) => (0..count).for_each(|_| self.shared.count_written()),
            Err(error) => tracing::warn!(error, "old files of the audit cannot be deleted"),
        };
        for class in Class::ALL {
            self.shared.begin_work();
            note(retire::retire(&mut self.chains, class, now));
        }
        let progress = || self.shared.begin_work();
        note(retire::retire_left_folders(&self.settings, now, progress));
    }

    /// Writes the end of each chain to the log of events, which other machines collect: a tail that is cut off later is missed there.
    fn checkpoint(&self) {
        for chain in &self.chains {
            let tail = chain.tail();
            if tail.seq > 0 {
                let name = format!("{}/{}", self.name, chain.class().name());
                let hash = hex::encode(&tail.hash);
                tracing::info!(chain = name, seq = tail.seq, hash, "audit checkpoint");
            }
        }
    }
}

/// The members of a record after `prev`, with the pseudonym of its PSU.
fn record(event: &AuditEvent, pseudonyms: &mut Pseudonyms) -> Result<Members, WriteFault> {
    let mut members = Members::default();
    members.add("time", event.at.to_string());
    members.add("kind", event.kind.name());
    if let Some(psu) = event.psu {
        let pseudonym = pseudonyms.of(psu);
        let pseudonym = pseudonym.map_err(|error| pseudonyms::fault(&error))?;
        members.add("psu", pseudonym);
    }
    members.extend(&event.members);
    Ok(members)
}

/// Collects a batch: until somebody waits for a record, for [`GATHER`], or for [`TICK`] where nothing comes. False if the queue is closed.
fn gather(jobs: &Receiver<Job>, batch: &mut Batch, flushes: &mut Vec<Job>) -> bool {
    let mut within = TICK;
    let watch = Stopwatch::start();
    while batch.len() < BATCH {
        match jobs.recv_timeout(within) {
            Ok(Job::Record(event, reply)) => {
                let is_awaited = reply.is_some();
                batch.push((event, reply));
                if is_awaited {
                    within = Duration::ZERO;
                }
            }
            Ok(flush @ Job::Flush(_)) => {
                flushes.push(flush);
                within = Duration::ZERO;
            }
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        within = within.min(GATHER.saturating_sub(watch.elapsed().min(GATHER)));
    }
    true
}

/// The time of a record, where no clock of the gateway is at hand.
pub(super) fn now() -> LogTime {
    Clock::System.log_time()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        audit::{files, verify},
        clock::Timestamp,
        state::PsuHash,
    };
    use std::{fs, path::Path};

    const DAY: u64 = 86_400;

    fn writer(audit: &Path, clock: &Clock) -> Writer {
        let folder = audit.join("1");
        fs::create_dir_all(&folder).unwrap();
        let keep = Duration::from_secs(3 * DAY);
        let mut settings = AuditSettings::new(audit.to_owned());
        for kept in [
            &mut settings.keep_psus,
            &mut settings.keep_payments,
            &mut settings.keep_refusals,
            &mut settings.keep_control,
        ] {
            *kept = keep;
        }
        Writer {
            chains: Chain::open_all(&folder, &settings).unwrap(),
            settings,
            pseudonyms: Pseudonyms::open(audit).unwrap(),
            shared: Arc::default(),
            clock: clock.clone(),
            name: "1".into(),
            _lock: File::create(folder.join("lock")).unwrap(),
        }
    }

    fn bound(clock: &Clock, psu: u8) -> (AuditEvent, Option<Reply>) {
        let event = AuditEvent::new(AuditKind::Bound, clock.log_time());
        (event.about(PsuHash::from_bytes([psu; 16])), None)
    }

    #[test]
    fn old_files_are_deleted_and_the_chain_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let start = 1_767_225_600;
        let clock = Clock::standing(Timestamp::from_unix(start));
        let mut writer = writer(folder.path(), &clock);
        for day in 0..8 {
            clock.set(Timestamp::from_unix(start + day * DAY));
            assert!(
                writer
                    .write(vec![bound(&clock, 1), bound(&clock, 2)], 0)
                    .is_empty()
            );
        }
        let own = || files::of_class(&folder.path().join("1"), Class::Psus).unwrap();
        assert_eq!(own().len(), 8, "a file for each day");
        let last = (own()[2].clone(), fs::read(&own()[2]).unwrap());
        writer.retire();
        // Those of the last three days, and the day before, whose last record could be younger.
        assert_eq!(own().len(), 5);
        writer.retire();
        assert_eq!(own().len(), 5);
        // A crash has kept the last of the files from being deleted.
        fs::write(&last.0, &last.1).unwrap();
        assert_eq!(verify(folder.path(), &[]).unwrap().findings, []);
        writer.retire();
        let verified = verify(folder.path(), &[]).unwrap();
        assert_eq!(verified.findings, []);
        // Without the record, the files are missing.
        for file in files::of_class(&folder.path().join("1"), Class::Control).unwrap() {
            fs::remove_file(file).unwrap();
        }
        let verified = verify(folder.path(), &[]).unwrap();
        assert!(verified.findings[0].text.contains("no record says"));
    }

    /// The folder of a process that has ended, as after an upgrade.
    #[test]
    fn old_files_of_another_process_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let start = 1_767_225_600;
        let clock = Clock::standing(Timestamp::from_unix(start));
        let other = folder.path().join("2");
        fs::create_dir_all(&other).unwrap();
        let mut writer = writer(folder.path(), &clock);
        let own = std::mem::replace(
            &mut writer.chains,
            Chain::open_all(&other, &writer.settings).unwrap(),
        );
        for day in 0..3 {
            clock.set(Timestamp::from_unix(start + day * DAY));
            assert!(writer.write(vec![bound(&clock, 1)], 0).is_empty());
        }
        writer.chains = own;
        clock.set(Timestamp::from_unix(start + 30 * DAY));
        let left = || files::of_class(&other, Class::Psus).unwrap().len();
        let lock = files::lock(&other).unwrap();
        writer.retire();
        assert_eq!(left(), 3, "its process runs");
        drop(lock);
        writer.retire();
        assert_eq!(left(), 1);
        assert_eq!(verify(folder.path(), &[]).unwrap().findings, []);
    }

    #[test]
    fn an_erasure_is_noted_also_under_load() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::standing(Timestamp::from_unix(1_767_225_600));
        let writer = writer(folder.path(), &clock);
        let (queue, jobs) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || writer.run(&jobs));
        let record = || {
            let (event, reply) = bound(&clock, 1);
            queue.send(Job::Record(event, reply)).unwrap();
        };
        let text = || {
            let files = files::of_class(&folder.path().join("1"), Class::Psus).unwrap();
            files
                .iter()
                .map(|file| fs::read_to_string(file).unwrap())
                .collect::<String>()
        };
        let mut other = Pseudonyms::open(folder.path()).unwrap();
        let psu = PsuHash::from_bytes([1; 16]);
        let mut erased = None;
        // Always less than a second from one record to the next.
        for _ in 0..6_000 {
            record();
            std::thread::sleep(Duration::from_millis(10));
            if erased.is_none() && text().contains("bound") {
                erased = other.erase(psu, false, clock.log_time()).unwrap();
            }
            if text().contains("erased") {
                break;
            }
        }
        assert!(
            text().contains("erased"),
            "a wait ran out: no erasure is noted"
        );
        let erased = erased.unwrap();
        let of = |line: &&str| line.contains(&erased);
        let text = text();
        let noted = text.lines().find(|line| line.contains("erased"));
        assert!(noted.is_some_and(|line| of(&line)), "{text}");
        record();
        drop(queue);
        thread.join().unwrap();
        let after = text_after(&folder.path().join("1"), &text);
        assert!(
            after.contains("bound") && !after.contains(&erased),
            "{after}"
        );
    }

    /// The lines of PSUs after those of `before`.
    fn text_after(folder: &Path, before: &str) -> String {
        let files = files::of_class(folder, Class::Psus).unwrap();
        let text: String = files
            .iter()
            .map(|file| fs::read_to_string(file).unwrap())
            .collect();
        text.strip_prefix(before).unwrap().to_owned()
    }

    /// While the disk hangs, nothing fails: the time that the thread takes tells it.
    #[test]
    fn a_disk_that_hangs_is_a_failing_one() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::standing(Timestamp::from_unix(1_767_225_600));
        let writer = writer(folder.path(), &clock);
        let shared = Arc::clone(&writer.shared);
        // SQLite opens a journal that it finds, and opening a FIFO waits for its other end.
        let journal = folder.path().join("salts.db-journal");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &journal, kind, mode, 0).unwrap();
        let (queue, jobs) = std::sync::mpsc::channel();
        let watch = Stopwatch::start();
        let thread = std::thread::spawn(move || writer.run(&jobs));
        while !shared.is_failing() {
            assert!(
                watch.elapsed() < Duration::from_secs(60),
                "a wait ran out: nothing says so"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(watch.elapsed() > Duration::from_secs(4));
        assert_eq!(shared.fault().unwrap().text, "the disk does not answer");
        // The disk answers again.
        let away = folder.path().join("away");
        fs::rename(&journal, &away).unwrap();
        File::options().write(true).open(&away).unwrap();
        let (event, _) = bound(&clock, 1);
        let (reply, written) = oneshot::channel();
        queue.send(Job::Record(event, Some(reply))).unwrap();
        assert_eq!(written.blocking_recv().unwrap(), Ok(()));
        assert!(!shared.is_failing());
        assert_eq!(shared.fault(), None);
        drop(queue);
        thread.join().unwrap();
    }

    /// The writer drops none: those who send them have taken their places.
    #[test]
    fn all_records_wait_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::standing(Timestamp::from_unix(1_767_225_600));
        let mut writer = writer(folder.path(), &clock);
        let (own, away) = (folder.path().join("1"), folder.path().join("away"));
        fs::rename(&own, &away).unwrap();
        let many = 20_000;
        let records = (0..many).map(|_| bound(&clock, 1)).collect();
        let kept = writer.write(records, 0);
        let counts = writer.shared.counts();
        assert_eq!((kept.len(), counts.failed), (many, 20_000));
        assert_eq!((counts.written, counts.dropped), (0, 0));
        fs::rename(&away, &own).unwrap();
        assert!(writer.write(kept, many).is_empty());
        assert_eq!(writer.shared.counts().written, 20_000);
    }

    #[test]
    fn records_wait_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::standing(Timestamp::from_unix(1_767_225_600));
        let mut writer = writer(folder.path(), &clock);
        assert!(writer.write(vec![bound(&clock, 1)], 0).is_empty());
        // The next file cannot be made.
        clock.set(Timestamp::from_unix(1_767_225_600 + DAY));
        let (own, away) = (folder.path().join("1"), folder.path().join("away"));
        fs::rename(&own, &away).unwrap();
        let (reply, mut awaited) = oneshot::channel();
        let (event, _) = bound(&clock, 2);
        let kept = writer.write(vec![bound(&clock, 1), (event, Some(reply))], 0);
        assert_eq!(awaited.try_recv().unwrap(), Err(AuditUnavailable));
        assert_eq!((kept.len(), writer.shared.is_failing()), (1, true));
        let counts = |writer: &Writer| {
            let counts = writer.shared.counts();
            (counts.written, counts.failed, counts.dropped)
        };
        assert_eq!(counts(&writer), (1, 2, 0), "also the one that waits");
        // A second attempt is not a second failure.
        let kept = writer.write(kept, 1);
        assert_eq!((kept.len(), counts(&writer)), (1, (1, 2, 0)));
        fs::rename(&away, &own).unwrap();
        assert!(writer.write(kept, 1).is_empty());
        assert!(!writer.shared.is_failing());
        assert_eq!(counts(&writer), (2, 2, 0));
        let verified = verify(folder.path(), &[]).unwrap();
        assert_eq!((verified.lines, verified.findings), (2, Vec::new()));
    }
}
