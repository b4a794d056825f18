//! The access log: one line of JSON for each request, on standard output.
//!
//! A line contains no path, no query, no body, and no header value except X-Request-ID, so no personal data.

use super::{events::LineCounters, facts::Finished};
use crate::{
    admission::{Check, Outcome, Stage, Verdict},
    clock::{Stopwatch, Timestamp},
    interface::{Reason, headers::RequestId, operations::Operation},
    trust::{Certificate, Tolerated},
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::{
    io::{self, Write},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

/// The capacity of the queue, in lines.
const QUEUE: usize = 8 * 1024;

/// The writer waits this long to batch lines: waking it for each line costs a request more than the line itself. On a single
/// core, long batches delay requests.
const GATHER: Duration = Duration::from_millis(1);

/// The timeout for the last lines when the log is dropped.
const LAST_WITHIN: Duration = Duration::from_secs(5);

/// The interval of attempts to enqueue when the queue is full.
const RETRY: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct AccessLog {
    queue: SyncSender<Entry>,
    counters: LineCounters,
}

/// An entry of the writer's queue.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all entries are lines; boxing them would add an allocation per request"
)]
enum Entry {
    Line(Line),
    /// The sender of this entry waits; the writer drops it once all lines before it are written.
    Flush {
        _until: SyncSender<()>,
    },
}

impl AccessLog {
    pub(super) fn to_standard_output(counters: LineCounters) -> Self {
        let (queue, lines) = sync_channel(QUEUE);
        let counted = counters.clone();
        std::thread::spawn(move || write_all(&lines, &mut io::stdout(), &counted));
        Self { queue, counters }
    }

    /// Enqueues a line. If there is no place, the line is dropped and counted.
    pub(super) fn write(&self, finished: &Finished<'_>) {
        let line = Entry::Line(Line::of(finished));
        if self.queue.try_send(line).is_err() {
            self.counters.dropped.inc();
        }
    }

    /// Waits until the queued lines are written. False on a timeout: the reader of standard output is stuck.
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
impl Drop for AccessLog {
    fn drop(&mut self) {
        self.flush(LAST_WITHIN);
    }
}

/// Writes lines in batches. Lines that standard output refuses are only counted: there is no other channel for them.
fn write_all(lines: &Receiver<Entry>, output: &mut impl Write, counters: &LineCounters) {
    let mut text = Vec::new();
    while let Ok(first) = lines.recv() {
        std::thread::sleep(GATHER);
        let (mut flushes, mut count) = (Vec::new(), 0_u64);
        for entry in std::iter::once(first).chain(lines.try_iter().take(QUEUE)) {
            match entry {
                Entry::Line(line) => {
                    // Serialising a line cannot fail; if it did, a partial line would end with the newline.
                    let _ = serde_json::to_writer(&mut text, &line);
                    text.push(b'\n');
                    count = count.saturating_add(1);
                }
                flush @ Entry::Flush { .. } => flushes.push(flush),
            }
        }
        let written = output.write_all(&text).and_then(|()| output.flush());
        let counter = if written.is_ok() {
            &counters.written
        } else {
            &counters.failed
        };
        counter.inc_by(count);
        text.clear();
    }
}

/// The fields of a line, collected on the request's path and written by the log's thread.
#[derive(Debug)]
struct Line {
    at: Timestamp,
    request_id: Option<RequestId>,
    operation: Option<Arc<Operation>>,
    certificate: Option<Arc<Certificate>>,
    outcome: Outcome,
    status: Option<u16>,
    checks: Vec<Check>,
    upstream: Option<Duration>,
    whole: Duration,
    operator: Option<String>,
    revocation_unknown: bool,
    register_stale: bool,
}

impl Line {
    fn of(finished: &Finished<'_>) -> Self {
        let record = finished.record;
        Self {
            at: finished.at,
            request_id: finished.request_id.cloned(),
            operation: record.operation().cloned(),
            certificate: record.certificate().cloned(),
            outcome: finished.outcome,
            status: finished.status,
            checks: record.checks().to_vec(),
            upstream: finished.core.map(|core| core.took),
            whole: record.elapsed(),
            operator: finished.operator.map(str::to_owned),
            revocation_unknown: record.revocation_is_unknown(),
            register_stale: record.register_is_stale(),
        }
    }
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (outcome, reason) = match self.outcome {
            Outcome::Forwarded(_) => ("forwarded", None),
            Outcome::Answered => ("answered", None),
            Outcome::Refused(reason) => ("refused", Some(reason)),
            Outcome::Failed(reason) => ("failed", Some(reason)),
            Outcome::Abandoned => ("abandoned", None),
        };
        let id = self.request_id.as_ref().map(RequestId::as_str);
        // Certificates are public: before the signature verifies, one names its subject but does not authenticate the sender.
        let shown = self
            .certificate
            .as_ref()
            .map(|certificate| certificate.tpp_id().as_str());
        let signed = self
            .checks
            .iter()
            .any(|check| check.stage == Stage::Signature && check.verdict == Verdict::Held);
        let operation = self.operation.as_ref().map(|operation| &operation.name);
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("time", &self.at.unix())?;
        line.serialize_entry("request_id", &id)?;
        line.serialize_entry("operation", &operation)?;
        line.serialize_entry("tpp", &shown.filter(|_| signed))?;
        line.serialize_entry("outcome", outcome)?;
        line.serialize_entry("reason", &reason.map(Reason::slug))?;
        line.serialize_entry("status", &self.status)?;
        line.serialize_entry("whole_us", &self.whole.as_micros())?;
        line.serialize_entry("upstream_us", &self.upstream.map(|took| took.as_micros()))?;
        line.serialize_entry("checks_us", &Took(&self.checks))?;
        if let Some(shown) = shown.filter(|_| !signed) {
            line.serialize_entry("shown_tpp", shown)?;
        }
        let waived = |check: &Check| check.verdict.waived().map(Reason::slug);
        let observed: Vec<_> = self.checks.iter().filter_map(waived).collect();
        if !observed.is_empty() {
            line.serialize_entry("observed", &observed)?;
        }
        let certificate = self.certificate.iter();
        let tolerated: Vec<_> = certificate
            .flat_map(|certificate| certificate.tolerated().iter())
            .map(Tolerated::name)
            .collect();
        if !tolerated.is_empty() {
            line.serialize_entry("tolerated", &tolerated)?;
        }
        if self.register_stale {
            line.serialize_entry("register", "stale")?;
        }
        if self.revocation_unknown {
            line.serialize_entry("revocation", "unknown")?;
        }
        if let Some(operator) = &self.operator {
            line.serialize_entry("operator", operator)?;
        }
        line.end()
    }
}

/// The duration of each check in microseconds, by its name.
struct Took<'a>(&'a [Check]);

impl Serialize for Took<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let took = |check: &Check| (check.stage.name(), check.took.as_micros());
        serializer.collect_map(self.0.iter().map(took))
    }
}
