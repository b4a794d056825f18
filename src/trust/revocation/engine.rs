//! The thread that asks the sources: it fetches answers for new certificates, and refreshes the answers in use before they expire.
//!
//! The thread has its own runtime, so that waiting for a source or parsing a long CRL does not delay requests. The thread ends when its
//! [`Revocation`](super::Revocation) is dropped.

use super::{
    SourceFault,
    context::EngineContext,
    counters::{Counters, FROM_FILE, Lists},
    priority::step_back,
    source::{Source, ask::AskOutcome},
};
use portvakt_base::clock::Timestamp;
use std::{io, sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};

/// The interval between searches for answers to refresh.
const TICK: Duration = Duration::from_secs(1);

/// A source that no request has used for this many seconds is not refreshed.
const IN_USE: u64 = 86_400;

/// The handle of the thread.
#[derive(Debug)]
pub(super) struct Engine {
    asked: mpsc::UnboundedSender<Arc<Source>>,
    finished: watch::Receiver<u64>,
}

impl Engine {
    /// Starts the thread.
    pub(super) fn start(work: EngineContext) -> io::Result<Self> {
        let (asked, jobs) = mpsc::unbounded_channel();
        let (done, finished) = watch::channel(0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_start(step_back)
            .build()?;
        std::thread::Builder::new()
            .name("revocation".into())
            .spawn(move || {
                step_back();
                runtime.block_on(run(work, jobs, Arc::new(done)));
            })?;
        Ok(Self { asked, finished })
    }

    /// Asks a source, unless it is being asked or its backoff has not ended. The queue holds each source at most once.
    pub(super) fn ask(&self, source: &Arc<Source>, now: Timestamp) {
        if source.take(now) {
            let _ = self.asked.send(Arc::clone(source));
        }
    }

    /// A counter of ended attempts.
    pub(super) fn finished(&self) -> watch::Receiver<u64> {
        self.finished.clone()
    }
}

/// The fault for an OCSP answer "unknown".
const UNKNOWN: SourceFault = SourceFault::Invalid("the responder does not know the certificate");

async fn run(
    work: EngineContext,
    mut jobs: mpsc::UnboundedReceiver<Arc<Source>>,
    done: Arc<watch::Sender<u64>>,
) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            job = jobs.recv() => match job {
                Some(source) => begin(&work, source, &done),
                None => return,
            },
            _ = tick.tick() => refresh(&work, &done),
        }
    }
}

fn begin(work: &EngineContext, source: Arc<Source>, done: &Arc<watch::Sender<u64>>) {
    let (work, done) = (work.clone(), Arc::clone(done));
    tokio::spawn(async move {
        let now = work.clock.now();
        let outcome = source.ask(&work, now).await;
        let (result, copy) = match outcome {
            Ok(AskOutcome::FromDisk) => (None, None),
            Ok(AskOutcome::Fetched(copy)) => (Some(Ok(())), Some(copy)),
            Ok(AskOutcome::Unknown(copy)) => (Some(Err(UNKNOWN)), Some(copy)),
            Err(fault) => (Some(Err(fault)), None),
        };
        if let Some(result) = &result {
            work.counters.fetched(result);
        }
        if let (Some(Err(fault)), Some(address)) = (&result, source.address()) {
            tracing::warn!(%address, %fault, "revocation could not be refreshed");
        }
        // Before the attempt ends, because a request that waits for this answer also waits for the status of its signer.
        for source in source.to_be_known(now) {
            if source.take(now) {
                begin(&work, source, &done);
            }
        }
        done.send_modify(|count| *count = count.wrapping_add(1));
        if let (Some(disk), Some(copy)) = (&work.disk, copy) {
            disk.write(copy);
        }
    });
}

fn refresh(work: &EngineContext, done: &Arc<watch::Sender<u64>>) {
    let now = work.clock.now();
    let (mut sources, mut overdue, mut lists) = (0_u64, 0_u64, Lists::new());
    let mut late: Option<(u64, Timestamp)> = None;
    for source in work.cache.all() {
        if source.used().saturating_add(IN_USE) < now.unix() {
            continue;
        }
        sources = sources.saturating_add(1);
        if let Some(answer) = source.answer().as_ref() {
            overdue = overdue.max(now.unix().saturating_sub(answer.next_update().unix()));
            // A file has a warning of its own.
            if source.address().is_some() && answer.is_late(now) {
                let (count, first) = late.unwrap_or((0, answer.next_update()));
                late = Some((count.saturating_add(1), first.min(answer.next_update())));
            }
            if let Some(issuer) = answer.list_of()
                && lists.len() < Counters::MOST_LISTS
            {
                let from = source
                    .address()
                    .map_or(FROM_FILE.to_owned(), ToString::to_string);
                let next = lists.entry((issuer.to_owned(), from));
                let next = next.or_insert_with(|| answer.next_update());
                *next = answer.next_update().min(*next);
            }
        }
        if source.is_due(now) && source.take(now) {
            begin(work, source, done);
        }
    }
    work.counters.look(sources, overdue, lists, late);
}
