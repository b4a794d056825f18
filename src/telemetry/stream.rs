//! A stream of log lines: a bounded queue, and the thread that writes its lines in batches.
//!
//! Invariants: the sender never waits; each line is written, dropped or failed, and is counted as one of them; and where the queue is full,
//! the lines of one subject drop none of another ([`super::reserve`]). Deliberately not here: the members of a line.

use super::{
    left_out::{self, LeftOut},
    reserve::Reserve,
    sink::{LogFault, Sink},
    subject::Subject,
};
use crate::{
    clock::{LogTime, Stopwatch},
    config::LogOutput,
    write_fault::WriteFault,
};
use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

/// The capacity of the queue, in lines.
const QUEUE: usize = 8 * 1024;

/// The writer waits this long to batch lines: waking it for each line costs a request more than the line itself. On a single
/// core, long batches delay requests.
const GATHER: Duration = Duration::from_millis(1);

/// The timeout for the last lines when the stream is dropped, and when the process ends: the reader of their pipe may have stopped.
pub const LAST_WITHIN: Duration = Duration::from_secs(5);

/// The interval of attempts to enqueue when the queue is full.
const RETRY: Duration = Duration::from_millis(5);

/// A line.
pub(super) trait JsonLine: Send + 'static {
    /// Appends the line to a text, without its end.
    fn append_to(&self, text: &mut Vec<u8>);

    /// Whose line it is (FWD-8).
    fn subject(&self) -> Subject;
}

/// A stream of lines of one kind.
#[derive(Debug)]
pub(super) struct LineStream<L> {
    queue: SyncSender<Entry<L>>,
    shared: Arc<Shared<L>>,
}

/// The numbers of lines by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineCounts {
    /// Written.
    pub(super) written: u64,
    /// Dropped, because the queue was full, and the places of their subject beside it.
    pub(super) dropped: u64,
    /// Refused by the destination, such as a full disk.
    pub(super) failed: u64,
}

/// The parts that the thread shares with the senders.
#[derive(Debug)]
struct Shared<L> {
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    /// The failure of the last write.
    fault: Mutex<Option<WriteFault>>,
    /// Who waits for the file to be opened again.
    reopen: Mutex<Option<SyncSender<Result<(), String>>>>,
    /// The failure of the last attempt to do so: lines go into the file that was open before.
    moved: Mutex<Option<WriteFault>>,
    /// The lines for which the queue has no place.
    reserve: Reserve<L>,
}

impl<L> Default for Shared<L> {
    fn default() -> Self {
        Self {
            written: AtomicU64::default(),
            dropped: AtomicU64::default(),
            failed: AtomicU64::default(),
            fault: Mutex::default(),
            reopen: Mutex::default(),
            moved: Mutex::default(),
            reserve: Reserve::default(),
        }
    }
}

/// An entry of the writer's queue.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all entries are lines; boxing them would add an allocation per request"
)]
enum Entry<L> {
    Line(L),
    LeftOut(LeftOut),
    /// The sender of this entry waits; the writer drops it once all lines before it are written.
    Flush {
        _until: SyncSender<()>,
    },
    /// Wakes the writer.
    Wake,
}

impl<L: JsonLine> LineStream<L> {
    /// Opens the destination and starts the writer.
    ///
    /// # Errors
    /// The file cannot be opened, or the thread cannot start.
    pub(super) fn open(name: &str, output: LogOutput) -> Result<Self, LogFault> {
        let sink = Sink::open(output.clone())?;
        let (queue, entries) = sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            sink,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new().name(name.into());
        thread
            .spawn(move || writer.run(&entries))
            .map_err(|error| LogFault { output, error })?;
        Ok(Self { queue, shared })
    }

    /// Enqueues a line. If neither the queue nor its subject has a place, the line is dropped and counted.
    pub(super) fn write(&self, line: L) {
        if let Err(TrySendError::Full(entry) | TrySendError::Disconnected(entry)) =
            self.queue.try_send(Entry::Line(line))
        {
            self.keep(entry);
        }
    }

    #[cold]
    fn keep(&self, entry: Entry<L>) {
        let is_kept = match entry {
            Entry::Line(line) => self.shared.reserve.keep(line.subject(), line),
            Entry::LeftOut(_) | Entry::Flush { .. } | Entry::Wake => false,
        };
        if !is_kept {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Enqueues a line that says what was left out. False if there is no place.
    pub(super) fn say(
        &self,
        of: &'static str,
        subject: &Subject,
        omitted: u64,
        at: LogTime,
    ) -> bool {
        let line = LeftOut {
            at,
            of,
            subject: subject.clone(),
            omitted,
        };
        self.queue.try_send(Entry::LeftOut(line)).is_ok()
    }

    /// Says which lines were dropped, of the subjects for which a minute has passed; of all at the end of the process (FWD-8).
    pub(super) fn say_dropped(&self, is_end: bool, at: LogTime) {
        let shares = self.shared.reserve.shares();
        for (subject, omitted) in shares.due(is_end) {
            if !self.say(left_out::QUEUE, &subject, omitted, at) {
                shares.put_back(subject, omitted);
            }
        }
    }

    /// Opens the file by its name again, before the next line, and waits for the writer to have done so.
    ///
    /// # Errors
    /// The reason why lines go into the file that was open before, or why it is not known where they go.
    pub(super) fn reopen(&self, within: Duration) -> Result<(), String> {
        let (done, result) = sync_channel(1);
        *locked(&self.shared.reopen) = Some(done);
        // If the queue is full, the writer is awake.
        let _ = self.queue.try_send(Entry::Wake);
        result.recv_timeout(within).unwrap_or_else(|_| {
            let seconds = within.as_secs();
            Err(format!(
                "its writer did not open the file within {seconds} s: the disk, or the reader of a pipe, takes nothing"
            ))
        })
    }
}

impl<L> LineStream<L> {
    /// The numbers of lines since the start.
    pub(super) fn counts(&self) -> LineCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LineCounts {
            written: of(&self.shared.written),
            dropped: of(&self.shared.dropped),
            failed: of(&self.shared.failed),
        }
    }

    /// Why the last lines could not be written, or were not written into the file that the log has now; `None` if they were.
    pub(super) fn fault(&self) -> Option<WriteFault> {
        let fault = locked(&self.shared.fault).clone();
        fault.or_else(|| locked(&self.shared.moved).clone())
    }

    /// Waits until the queued lines are written. False on a timeout: the reader of the lines is stuck.
    pub(super) fn flush(&self, within: Duration) -> bool {
        let waited = Stopwatch::start();
        let (until, flushed) = sync_channel(0);
        let mut entry = Entry::Flush { _until: until };
        loop {
            let left = within.saturating_sub(waited.elapsed());
            match self.queue.try_send(entry) {
                Ok(()) => break,
                Err(TrySendError::Full(back)) if !left.is_zero() => entry = back,
                Err(_) => return false,
            }
            std::thread::sleep(RETRY);
        }
        let left = within.saturating_sub(waited.elapsed());
        flushed.recv_timeout(left) == Err(RecvTimeoutError::Disconnected)
    }
}

/// Flushes the last lines before the process ends.
impl<L> Drop for LineStream<L> {
    fn drop(&mut self) {
        self.flush(LAST_WITHIN);
    }
}

/// The thread that writes.
struct Writer<L> {
    sink: Sink,
    shared: Arc<Shared<L>>,
}

impl<L: JsonLine> Writer<L> {
    /// Writes lines in batches, until the stream is dropped.
    fn run(mut self, entries: &Receiver<Entry<L>>) {
        let mut text = Vec::new();
        while let Ok(first) = entries.recv() {
            std::thread::sleep(GATHER);
            let (mut flushes, mut count) = (Vec::new(), 0_u64);
            for entry in std::iter::once(first).chain(entries.try_iter().take(QUEUE)) {
                match entry {
                    Entry::Line(line) => {
                        line.append_to(&mut text);
                        text.push(b'\n');
                        count = count.saturating_add(1);
                    }
                    Entry::LeftOut(line) => {
                        line.append_to(&mut text);
                        text.push(b'\n');
                        count = count.saturating_add(1);
                    }
                    flush @ Entry::Flush { .. } => flushes.push(flush),
                    Entry::Wake => {}
                }
            }
            for line in self.shared.reserve.take() {
                line.append_to(&mut text);
                text.push(b'\n');
                count = count.saturating_add(1);
            }
            let asked = locked(&self.shared.reopen).take();
            if let Some(done) = asked {
                // Who asked may have left: the fault stays.
                let _ = done.send(self.reopen());
            }
            if count > 0 {
                self.write(&text, count);
            }
            text.clear();
        }
    }

    /// Writes and counts lines.
    fn write(&mut self, lines: &[u8], count: u64) {
        let (done, result) = self.sink.write(lines);
        self.note(result.err());
        let written = if done == lines.len() {
            count
        } else {
            let whole = lines.get(..done).unwrap_or_default();
            u64::try_from(memchr::memchr_iter(b'\n', whole).count()).unwrap_or(count)
        };
        let failed = count.saturating_sub(written);
        self.shared.written.fetch_add(written, Ordering::Relaxed);
        self.shared.failed.fetch_add(failed, Ordering::Relaxed);
    }

    fn reopen(&mut self) -> Result<(), String> {
        let fault = self.sink.reopen().err().map(|fault| {
            let text = format!(
                "{fault}; lines go into the file that was open before, until SIGUSR1 opens this one"
            );
            WriteFault::new(&fault.error, text)
        });
        locked(&self.shared.moved).clone_from(&fault);
        fault.map_or(Ok(()), |fault| Err(fault.text))
    }

    fn note(&self, error: Option<io::Error>) {
        let fault = error.map(|error| WriteFault::new(&error, error.to_string()));
        *locked(&self.shared.fault) = fault;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::reserve::OWN;
    use crate::write_fault::WriteCause;
    use std::{collections::HashMap, fs, fs::File, io::Read};

    impl JsonLine for &'static str {
        fn append_to(&self, text: &mut Vec<u8>) {
            text.extend_from_slice(self.as_bytes());
        }

        fn subject(&self) -> Subject {
            Subject::Network(self.len())
        }
    }

    /// FWD-8: a reader takes nothing while one subject fills the queue: the lines of another are all written, and a line says how many were
    /// dropped of the first.
    #[test]
    fn the_noise_of_one_drops_no_line_of_another() {
        const NOISE: &str =
            "{\"noise\":\"..........................................................\"}";
        const QUIET: &str = "{}";
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        // Both ends, so that opening waits for nobody.
        let mut reader = File::options().read(true).write(true).open(&fifo).unwrap();
        let stream = LineStream::open("stuck", LogOutput::File(fifo)).unwrap();
        let mut sent = 0_u64;
        // More than the pipe, the batch that the writer has and the queue take.
        while stream.counts().dropped < 100 {
            stream.write(NOISE);
            sent += 1;
        }
        for _ in 0..OWN {
            stream.write(QUIET);
        }
        let dropped = stream.counts().dropped;
        assert_eq!(dropped, 100, "no line of the quiet one");
        stream.say_dropped(true, LogTime::from_unix_milliseconds(0));
        let mut lines = HashMap::<String, u64>::new();
        let mut text = String::new();
        let (mut bytes, mut left_out) = (vec![0; 64 * 1024], None);
        while lines.values().sum::<u64>() < sent - dropped + u64::from(OWN) || left_out.is_none() {
            if left_out.is_none() {
                // The queue has places again at some time.
                stream.say_dropped(true, LogTime::from_unix_milliseconds(0));
            }
            let count = reader.read(&mut bytes).unwrap();
            text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            while let Some((line, rest)) = text.split_once('\n') {
                match line.contains("left-out") {
                    true => left_out = Some(line.to_owned()),
                    false => *lines.entry(line.to_owned()).or_default() += 1,
                }
                text = rest.to_owned();
            }
        }
        assert_eq!(lines.get(QUIET), Some(&u64::from(OWN)));
        let left_out = left_out.unwrap();
        let expected = format!(
            "\"of\":\"queue\",\"network\":{},\"omitted\":100",
            NOISE.len()
        );
        assert!(left_out.contains(&expected), "{left_out}");
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let full = LogOutput::File("/dev/full".into());
        let stream = LineStream::open("full", full).unwrap();
        for _ in 0..5 {
            stream.write("a");
        }
        assert!(stream.flush(LAST_WITHIN));
        let counts = stream.counts();
        assert_eq!((counts.written, counts.failed), (0, 5));
        let fault = stream.fault().unwrap();
        assert_eq!(fault.cause, WriteCause::NoSpace);
        assert!(fault.text.contains("No space left"), "{fault}");
    }

    #[test]
    fn a_file_is_followed_after_it_was_moved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let moved = folder.path().join("log.1");
        let stream = LineStream::open("moved", LogOutput::File(path.clone())).unwrap();
        stream.write("a");
        assert!(stream.flush(LAST_WITHIN));
        fs::rename(&path, &moved).unwrap();
        stream.reopen(LAST_WITHIN).unwrap();
        stream.write("b");
        assert!(stream.flush(LAST_WITHIN));
        assert_eq!(fs::read_to_string(&moved).unwrap(), "a\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "b\n");
        assert_eq!(stream.counts().written, 2);
        assert_eq!(stream.fault(), None);
    }

    /// The file that was open before takes the lines, and the fault stays until the file is opened.
    #[test]
    fn a_file_that_cannot_be_opened_again_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let moved = folder.path().join("moved");
        fs::create_dir(&logs).unwrap();
        let path = logs.join("log");
        let stream = LineStream::open("unwritable", LogOutput::File(path.clone())).unwrap();
        fs::rename(&logs, &moved).unwrap();
        let fault = stream.reopen(LAST_WITHIN).unwrap_err();
        assert!(
            fault.contains("lines go into the file that was open before"),
            "{fault}"
        );
        stream.write("a");
        assert!(stream.flush(LAST_WITHIN));
        let kept = stream.fault().unwrap();
        assert_eq!((kept.cause, kept.text), (WriteCause::NoFolder, fault));
        assert_eq!(fs::read_to_string(moved.join("log")).unwrap(), "a\n");
        fs::create_dir(&logs).unwrap();
        stream.reopen(LAST_WITHIN).unwrap();
        assert_eq!(stream.fault(), None);
        stream.write("b");
        assert!(stream.flush(LAST_WITHIN));
        assert_eq!(fs::read_to_string(&path).unwrap(), "b\n");
    }

    #[test]
    fn a_missing_folder_is_said_at_once() {
        let path = tempfile::tempdir().unwrap().path().join("none/log");
        assert!(LineStream::<&str>::open("none", LogOutput::File(path)).is_err());
    }
}
