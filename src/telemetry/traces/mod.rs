//! Traces: the spans of sampled requests, pushed to a collector by OTLP over HTTP.
//!
//! Invariants: a request never waits for the collector; only the ratio, or a trusted proxy, decides which requests have spans; each span
//! is written, dropped or failed, and is counted as one of them. Deliberately not here: retries. A push that failed is not sent again, so
//! that a dead collector costs a fixed amount of memory and no more.

mod message;
mod push;
mod queue;
mod spans;

use super::{facts::Finished, stream::LineCounts};
use crate::{clock::Stopwatch, config::TraceSettings, interface::headers::trace::TraceContext};
use push::Pusher;
pub use push::TraceFault;
use queue::{Counts, Entry, QUEUE};
use spans::TracedRequest;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

/// The interval of attempts to enqueue the end when the queue is full.
const RETRY: Duration = Duration::from_millis(5);

/// The traces of one gateway.
#[derive(Debug)]
pub struct Traces {
    settings: TraceSettings,
    queue: SyncSender<Entry>,
    counts: Arc<Counts>,
}

impl Traces {
    /// Starts the thread that pushes. The collector is not called yet.
    ///
    /// # Errors
    /// No HTTP client can be made, or the thread cannot start.
    pub fn open(settings: TraceSettings) -> Result<Self, TraceFault> {
        let (queue, entries) = sync_channel(QUEUE);
        let counts = Arc::new(Counts::default());
        Pusher::new(&settings, Arc::clone(&counts))?.start(entries)?;
        Ok(Self {
            settings,
            queue,
            counts,
        })
    }

    /// Enqueues the spans of a request, if it is sampled. If there is no place, they are dropped and counted.
    pub(super) fn write(&self, finished: &Finished<'_>) {
        if let Some(trace) = finished.trace.filter(|trace| self.takes(trace)) {
            self.enqueue(TracedRequest::of(finished, trace));
        }
    }

    /// Whether this request has spans: a trusted proxy that sent its trace decides, otherwise the ratio.
    fn takes(&self, trace: &TraceContext) -> bool {
        let by_parent = trace.is_sampled_by_parent();
        by_parent.unwrap_or_else(|| self.settings.ratio.takes(trace.trace()))
    }

    fn enqueue(&self, request: TracedRequest) {
        let count = request.count();
        if self.queue.try_send(Entry::Request(request)).is_err() {
            self.counts.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The numbers of spans since the start.
    pub(super) fn counts(&self) -> LineCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LineCounts {
            written: of(&self.counts.written),
            dropped: of(&self.counts.dropped),
            failed: of(&self.counts.failed),
        }
    }

    /// Waits until the queued spans are pushed. False on a timeout.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        admission::{Outcome, Record},
        clock::LogTime,
        interface::headers::trace::TraceParent,
        telemetry::HttpFacts,
    };
    use http::HeaderValue;
    use message::ExportRequest;
    use prost::Message;
    use std::{
        io::{Read, Write},
        net::TcpListener,
    };

    /// Longer than a push may take, so that only a hang fails.
    const WITHIN: Duration = Duration::from_secs(30);

    fn open(address: &str, ratio: &str) -> Traces {
        let endpoint = format!("http://{address}/v1/traces").parse().unwrap();
        let ratio = ratio.parse().unwrap();
        Traces::open(TraceSettings { endpoint, ratio }).unwrap()
    }

    fn write(traces: &Traces, trace: TraceContext) {
        let record = Record::open();
        traces.write(&Finished {
            record: &record,
            outcome: Outcome::Answered,
            status: Some(200),
            id: None,
            request_id: None,
            trace: Some(trace),
            http: HttpFacts::default(),
            operator: None,
            core: None,
            endpoint: None,
            is_audited: false,
            at: LogTime::from_unix_milliseconds(1_000),
        });
    }

    /// Answers one push; returns its body.
    fn answer(listener: &TcpListener, answer: &[u8]) -> Vec<u8> {
        let (mut stream, _) = listener.accept().unwrap();
        let mut read = Vec::new();
        let mut part = [0; 4096];
        loop {
            let count = stream.read(&mut part).unwrap();
            read.extend_from_slice(&part[..count]);
            let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8(read[..end].to_vec()).unwrap();
            assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
            let head = head.to_lowercase();
            assert!(head.contains("content-type: application/x-protobuf"));
            let (_, length) = head.split_once("content-length: ").unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            if read.len() == end + 4 + length {
                stream.write_all(answer).unwrap();
                return read.split_off(end + 4);
            }
        }
    }

    #[test]
    fn sampled_requests_are_pushed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let traces = open(&listener.local_addr().unwrap().to_string(), "1");
        let collector = std::thread::spawn(move || {
            answer(&listener, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        });
        write(&traces, TraceContext::new(None, 7, 9));
        assert!(traces.flush(WITHIN));
        let pushed = ExportRequest::decode(collector.join().unwrap().as_slice()).unwrap();
        let scope = &pushed.resource_spans[0].scope_spans[0];
        let names: Vec<_> = scope.spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["request", "checks"]);
        let expected = LineCounts {
            written: 2,
            ..LineCounts::default()
        };
        assert_eq!(traces.counts(), expected);
    }

    #[test]
    fn spans_that_the_collector_refuses_have_failed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let traces = open(&listener.local_addr().unwrap().to_string(), "1");
        let collector = std::thread::spawn(move || {
            let partly = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n\x0a\x02\x08\x01";
            answer(&listener, partly);
            answer(&listener, b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n");
        });
        let counts = [(1, 1), (1, 3)];
        for (written, failed) in counts {
            write(&traces, TraceContext::new(None, 7, 9));
            assert!(traces.flush(WITHIN));
            let expected = LineCounts {
                written,
                dropped: 0,
                failed,
            };
            assert_eq!(traces.counts(), expected);
        }
        collector.join().unwrap();
    }

    #[test]
    fn a_collector_that_never_answers_costs_no_request_a_wait() {
        // It accepts connections by its backlog and reads nothing.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let traces = open(&listener.local_addr().unwrap().to_string(), "1");
        for span in 1..10_000 {
            write(&traces, TraceContext::new(None, 7, span));
        }
        assert!(traces.counts().dropped > 0);
        assert!(!traces.flush(Duration::ZERO));
    }

    #[test]
    fn a_trusted_proxy_decides_otherwise_the_ratio() {
        let parent = |flags| {
            let text = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
            TraceParent::parse(&HeaderValue::from_str(&text).unwrap())
        };
        for (ratio, flags, expected) in [
            ("0", None, false),
            ("1", None, true),
            ("0", Some("01"), true),
            ("1", Some("00"), false),
        ] {
            let traces = open("127.0.0.1:9", ratio);
            let trace = TraceContext::new(flags.and_then(parent), u128::MAX, 9);
            assert_eq!(traces.takes(&trace), expected, "{ratio} {flags:?}");
        }
    }
}
