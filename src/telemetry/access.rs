//! The access log: one line of JSON for each request, on standard output.
//!
//! No path, no query, no body and no header value but X-Request-ID stands in it: nothing personal.

use super::Finished;
use crate::{
    admission::{Check, Outcome, Stage, Verdict},
    clock::Timestamp,
    interface::{Reason, headers, operations::Operation},
    trust::{Certificate, Tolerated},
};
use http::HeaderValue;
use serde_json::{Map, Value, json};
use std::{
    io::{self, Write},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Lines that may wait to be written.
const QUEUE: usize = 8 * 1024;

#[derive(Debug)]
pub(super) struct AccessLog {
    queue: Option<SyncSender<Line>>,
    writer: Option<JoinHandle<()>>,
}

impl AccessLog {
    pub(super) fn to_standard_output() -> Self {
        let (queue, lines) = sync_channel(QUEUE);
        let writer = std::thread::spawn(move || write_all(&lines, &mut io::stdout()));
        Self {
            queue: Some(queue),
            writer: Some(writer),
        }
    }

    /// Queues a line. False where it was dropped.
    pub(super) fn write(&self, finished: &Finished<'_>) -> bool {
        self.queue
            .as_ref()
            .is_some_and(|queue| queue.try_send(Line::of(finished)).is_ok())
    }
}

/// The last lines are written before the process ends.
impl Drop for AccessLog {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Writes lines as they come, and flushes when none waits. Where standard output is gone, there is nobody to tell.
fn write_all(lines: &Receiver<Line>, output: &mut impl Write) {
    let mut output = io::BufWriter::new(output);
    while let Ok(line) = lines.recv() {
        let mut next = Some(line);
        while let Some(line) = next {
            let _ = writeln!(output, "{}", line.to_json());
            next = lines.try_recv().ok();
        }
        let _ = output.flush();
    }
}

/// What stands in a line, taken on the request's time and written on the log's.
#[derive(Debug)]
struct Line {
    at: Timestamp,
    request_id: Option<HeaderValue>,
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
            upstream: finished.upstream,
            whole: record.elapsed(),
            operator: finished.operator.map(str::to_owned),
            revocation_unknown: record.revocation_is_unknown(),
            register_stale: record.register_is_stale(),
        }
    }

    fn to_json(&self) -> Value {
        let (outcome, reason) = match self.outcome {
            Outcome::Forwarded(_) => ("forwarded", None),
            Outcome::Answered => ("answered", None),
            Outcome::Refused(reason) => ("refused", Some(reason)),
            Outcome::Failed(reason) => ("failed", Some(reason)),
            Outcome::Abandoned => ("abandoned", None),
        };
        let id = self
            .request_id
            .as_ref()
            .map(|id| String::from_utf8_lossy(headers::trim(id.as_bytes())));
        // Certificates are public: until the signature holds, one only says whose it is, not who sent it.
        let shown = self
            .certificate
            .as_ref()
            .map(|certificate| certificate.tpp_id());
        let signed = self
            .checks
            .iter()
            .any(|check| check.stage == Stage::Signature && check.verdict == Verdict::Held);
        let took: Map<_, _> = self
            .checks
            .iter()
            .map(|check| (check.stage.name().into(), json!(check.took.as_micros())))
            .collect();
        let mut line = json!({
            "time": self.at.unix(),
            "request_id": id,
            "operation": self.operation.as_ref().map(|operation| &operation.name),
            "tpp": shown.filter(|_| signed),
            "outcome": outcome,
            "reason": reason.map(Reason::slug),
            "status": self.status,
            "whole_us": self.whole.as_micros(),
            "upstream_us": self.upstream.map(|took| took.as_micros()),
            "checks_us": took,
        });
        let waived = |check: &Check| check.verdict.waived().map(Reason::slug);
        let observed: Vec<_> = self.checks.iter().filter_map(waived).collect();
        let tolerated: Vec<_> = self
            .certificate
            .iter()
            .flat_map(|certificate| certificate.tolerated().iter())
            .map(Tolerated::name)
            .collect();
        let rare = [
            ("shown_tpp", shown.filter(|_| !signed).map(|id| json!(id))),
            ("observed", (!observed.is_empty()).then(|| json!(observed))),
            (
                "tolerated",
                (!tolerated.is_empty()).then(|| json!(tolerated)),
            ),
            ("register", self.register_stale.then(|| json!("stale"))),
            (
                "revocation",
                self.revocation_unknown.then(|| json!("unknown")),
            ),
            ("operator", self.operator.as_ref().map(|text| json!(text))),
        ];
        if let Some(members) = line.as_object_mut() {
            let present = rare
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)));
            members.extend(present);
        }
        line
    }
}
