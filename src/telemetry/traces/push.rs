//! The thread that pushes spans in batches (OTLP 1, "OTLP/HTTP", binary protobuf).
//!
//! Invariants: no redirect, no proxy of the environment, and nothing of the collector's answer is shown; a collector that fails is said once,
//! until it takes spans again. Deliberately not here: what is in a span.

use super::{
    message::{ExportRequest, ExportResponse, KeyValue, Resource, ResourceSpans, ScopeSpans, Span},
    queue::{Counts, Entry, QUEUE},
};
use crate::{causes, clock::Stopwatch, config::TraceSettings};
use prost::Message;
use reqwest::{Client, Response, StatusCode, Url, header::CONTENT_TYPE, redirect};
use std::{
    io,
    sync::{Arc, atomic::Ordering, mpsc::Receiver},
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};

/// The time-out of a push. While it lasts, the queue takes further requests.
const DEADLINE: Duration = Duration::from_secs(5);

/// The pusher waits this long to batch requests; a flush ends the wait.
const GATHER: Duration = Duration::from_secs(1);

/// The most requests in a push: some 2 000 spans, and half a megabyte.
const BATCH: usize = 512;

/// The longest answer that is read, in bytes.
const MOST_ANSWER: usize = 16 * 1024;

/// The reason why traces cannot be pushed at all.
#[derive(Debug, thiserror::Error)]
pub enum TraceFault {
    /// The HTTP client cannot be made. It verifies https by the machine's own CA certificates, which are missing or unreadable.
    #[error(
        "no HTTP client ({}): install the CA certificates of the system (package ca-certificates), or name a PEM file of CA certificates in the environment variable SSL_CERT_FILE",
        causes::describe(.0)
    )]
    Client(#[from] reqwest::Error),
    /// The thread or its runtime cannot start.
    #[error("the thread that pushes cannot start: {0}")]
    Thread(#[from] io::Error),
}

/// The reason why a push failed.
#[derive(Debug, thiserror::Error)]
enum PushFault {
    #[error("no answer: {}", causes::describe(.0))]
    NoAnswer(#[source] reqwest::Error),
    #[error("the collector answered {}", .0.as_u16())]
    Status(StatusCode),
    #[error("the collector's answer cannot be read, or is longer than {MOST_ANSWER} bytes")]
    Answer,
    #[error("the collector rejected {0} spans")]
    Rejected(u64),
}

/// Pushes spans.
pub(super) struct Pusher {
    client: Client,
    runtime: Runtime,
    endpoint: Url,
    counts: Arc<Counts>,
    has_failed: bool,
}

impl Pusher {
    pub(super) fn new(settings: &TraceSettings, counts: Arc<Counts>) -> Result<Self, TraceFault> {
        // The client takes the process's provider; another part of the process may have installed it.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .http1_only()
            .timeout(DEADLINE)
            .build()?;
        Ok(Self {
            client,
            runtime: Builder::new_current_thread().enable_all().build()?,
            endpoint: settings.endpoint.url().clone(),
            counts,
            has_failed: false,
        })
    }

    /// Starts the thread, which ends when the queue's sender is dropped.
    pub(super) fn start(self, entries: Receiver<Entry>) -> Result<(), TraceFault> {
        let thread = std::thread::Builder::new().name("traces".into());
        thread.spawn(move || self.run(&entries))?;
        Ok(())
    }

    fn run(mut self, entries: &Receiver<Entry>) {
        let (mut spans, mut flushes) = (Vec::new(), Vec::new());
        while let Ok(first) = entries.recv() {
            let mut next = Some(first);
            let mut requests = 0_usize;
            let waited = Stopwatch::start();
            while let Some(entry) = next.take() {
                match entry {
                    Entry::Request(request) => {
                        requests = requests.saturating_add(1);
                        request.append_to(&mut spans);
                    }
                    flush @ Entry::Flush { .. } => flushes.push(flush),
                }
                if requests < BATCH && flushes.is_empty() {
                    let left = GATHER.saturating_sub(waited.elapsed());
                    next = entries.recv_timeout(left).ok();
                }
            }
            if !spans.is_empty() {
                self.push(std::mem::take(&mut spans));
            }
            flushes.clear();
        }
    }

    /// Pushes and counts spans.
    fn push(&mut self, spans: Vec<Span>) {
        let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
        let body = request(spans).encode_to_vec();
        let push = self.client.post(self.endpoint.clone());
        let push = push
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(body);
        let result = self.runtime.block_on(async {
            // The time-out begins within the runtime.
            let answer = push.send().await;
            judge(answer.map_err(|error| PushFault::NoAnswer(error.without_url()))?).await
        });
        let failed = match &result {
            Ok(()) => 0,
            Err(PushFault::Rejected(rejected)) => count.min(*rejected),
            Err(_) => count,
        };
        self.counts.failed.fetch_add(failed, Ordering::Relaxed);
        let written = count.saturating_sub(failed);
        self.counts.written.fetch_add(written, Ordering::Relaxed);
        self.note(result.err());
    }

    /// Says that the collector fails, or takes spans again, once each.
    fn note(&mut self, fault: Option<PushFault>) {
        match fault {
            Some(fault) if !self.has_failed => {
                tracing::warn!(%fault, queue = QUEUE, "spans cannot be pushed to traces.endpoint; requests go on");
                self.has_failed = true;
            }
            None if self.has_failed => {
                tracing::info!("spans are pushed to traces.endpoint again");
                self.has_failed = false;
            }
            _ => {}
        }
    }
}

/// The body of a push.
fn request(spans: Vec<Span>) -> ExportRequest {
    let resource = Resource {
        attributes: vec![
            KeyValue::new("service.name", "portvakt"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ],
    };
    ExportRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![ScopeSpans { spans }],
        }],
    }
}

/// Whether all spans of a push were taken.
async fn judge(mut answer: Response) -> Result<(), PushFault> {
    if answer.status() != StatusCode::OK {
        return Err(PushFault::Status(answer.status()));
    }
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|_| PushFault::Answer)? {
        body.extend_from_slice(&part);
        if body.len() > MOST_ANSWER {
            return Err(PushFault::Answer);
        }
    }
    let answer = ExportResponse::decode(body.as_slice()).map_err(|_| PushFault::Answer)?;
    let rejected = answer.partial_success.map_or(0, |part| part.rejected_spans);
    match u64::try_from(rejected) {
        Ok(0) | Err(_) => Ok(()),
        Ok(rejected) => Err(PushFault::Rejected(rejected)),
    }
}
