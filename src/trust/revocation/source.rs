//! One revocation source and its last answer: an OCSP responder for one certificate, or one CRL.
//!
//! All certificates with the same source share one [`Source`]. An answer is replaced atomically, so a request reads it without a lock; an
//! older answer never replaces a newer one.

use super::{
    SourceFault,
    backoff::{AddressState, Backoff},
    copies::DiskCopy,
    crl::certificate as read_certificate,
    disk::DiskThread,
    engine::EngineContext,
    fetch::{Fetcher, SourceUrl},
    ocsp::{self, Status},
    question::{Key, Question, SourceAnswer},
    sources::SourceCache,
};
use crate::clock::Timestamp;
use arc_swap::ArcSwapOption;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// The longest time, in seconds, until an answer is refreshed; it is refreshed earlier at half of its lifetime. A revocation takes effect
/// within this time.
const REFRESH_AT_MOST: u64 = 3_600;

/// An OCSP responder for one certificate, or a CRL.
#[derive(Debug)]
pub(super) struct Source {
    key: Key,
    address_state: Arc<AddressState>,
    answer: ArcSwapOption<SourceAnswer>,
    /// The time, in Unix seconds, when a request last used the source.
    used: AtomicU64,
    refresh_at: AtomicU64,
    backoff: Backoff,
    under_way: AtomicBool,
    /// Whether an attempt has failed since the start. Used only until the first answer.
    failed: AtomicBool,
    /// Whether the copy on disk was looked up.
    looked_up: AtomicBool,
}

/// The state of a source that has never answered (CRT-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The first attempt is running.
    Awaited,
    /// An attempt failed, or the source cannot be asked now.
    Failed,
    /// No attempt was made.
    Unasked,
}

/// The result of asking a source.
#[derive(Debug)]
pub(super) enum AskOutcome {
    /// The answer was fetched and may be copied to disk.
    Fetched(DiskCopy),
    /// The answer was fetched, and the responder does not know the certificate.
    Unknown(DiskCopy),
    /// The answer was read from disk; a fetch follows as soon as possible.
    FromDisk,
}

impl Source {
    /// A source that was not asked yet, without an answer.
    pub(super) fn new(key: Key, address_state: Arc<AddressState>) -> Self {
        Self {
            key,
            address_state,
            answer: ArcSwapOption::empty(),
            used: AtomicU64::new(0),
            refresh_at: AtomicU64::new(0),
            backoff: Backoff::default(),
            under_way: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            looked_up: AtomicBool::new(false),
        }
    }

    /// A source with a fixed answer, from a file of the configuration.
    pub(super) fn of_file(key: Key, answer: SourceAnswer) -> Self {
        let source = Self::new(key, Arc::default());
        source.answer.store(Some(Arc::new(answer)));
        source
    }

    /// The last answer.
    pub(super) fn answer(&self) -> arc_swap::Guard<Option<Arc<SourceAnswer>>> {
        self.answer.load()
    }

    /// The sources to be asked before the last answer counts: those of its signer.
    pub(super) fn to_be_known(&self, now: Timestamp) -> Vec<Arc<Self>> {
        let answer = self.answer();
        let signer = answer.as_ref().and_then(|answer| answer.signer());
        signer.map_or_else(Vec::new, |own| own.to_be_asked(now, Duration::ZERO))
    }

    /// The reason why there is no answer. `under_way` is read first: an attempt stores its answer or its failure before it ends.
    pub(super) fn no_answer(&self) -> NoAnswer {
        let is_under_way = self.under_way.load(Ordering::Acquire);
        let is_silent = self.answer.load().is_none();
        match (self.failed.load(Ordering::Acquire), is_under_way) {
            // An answer came after the caller looked: the source counts as awaited.
            _ if !is_silent => NoAnswer::Awaited,
            (true, _) => NoAnswer::Failed,
            (false, true) => NoAnswer::Awaited,
            (false, false) => NoAnswer::Unasked,
        }
    }

    /// Whether the source is a CRL.
    pub(super) const fn is_list(&self) -> bool {
        matches!(self.key.1, Question::Crl { .. })
    }

    /// Records that a request uses the source.
    pub(super) fn touch(&self, now: Timestamp) {
        // A load is cheaper than a store that takes the cache line away from other cores.
        if self.used.load(Ordering::Relaxed) != now.unix() {
            self.used.store(now.unix(), Ordering::Relaxed);
        }
    }

    /// The time, in Unix seconds, when a request last used the source.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether the source is being asked and has not failed before. The policy decides about sources that have only failed.
    pub(super) fn is_worth_waiting_for(&self) -> bool {
        self.under_way.load(Ordering::Acquire) && self.no_answer() != NoAnswer::Failed
    }

    /// Acquires the right to ask the source, if its backoff has ended; [`Source::ask`] gives it back.
    pub(super) fn take(&self, now: Timestamp) -> bool {
        if !self.backoff.is_over(now) || !self.address_state.backoff.is_over(now) {
            // A failure of the address for another source counts as a failure of this source.
            self.failed.store(true, Ordering::Release);
            return false;
        }
        self.key.0.is_some() && !self.under_way.swap(true, Ordering::AcqRel)
    }

    /// Whether the answer is due for a refresh.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        now.unix() >= self.refresh_at.load(Ordering::Relaxed)
    }

    /// The address, for the log; `None` for a file.
    pub(super) fn address(&self) -> Option<&SourceUrl> {
        self.key.0.as_ref()
    }

    /// Asks the source and stores its answer. [`Source::take`] must have returned true. If there is no answer yet, a copy on disk is read first:
    /// it is verified like a fetched answer, and the fetch follows at the next tick.
    pub(super) async fn ask(
        &self,
        work: &EngineContext,
        now: Timestamp,
    ) -> Result<AskOutcome, SourceFault> {
        let _under_way = UnderWay(&self.under_way);
        let (fetcher, cache) = (&work.fetcher, &work.cache);
        if let Some(disk) = &work.disk
            && !self.looked_up.swap(true, Ordering::Relaxed)
            && self.answer.load().is_none()
            && let Some(answer) = self.look_up(disk, cache, now).await
        {
            self.answer.store(Some(Arc::new(answer)));
            return Ok(AskOutcome::FromDisk);
        }
        let asked = self.ask_anew(fetcher, cache, now).await;
        if asked.is_err() {
            self.failed.store(true, Ordering::Release);
        }
        asked
    }

    async fn ask_anew(
        &self,
        fetcher: &Fetcher,
        cache: &Arc<SourceCache>,
        now: Timestamp,
    ) -> Result<AskOutcome, SourceFault> {
        let fetched = {
            let _turn = self.address_state.turn.lock().await;
            // While this source waited for its turn, the address may have failed for another source.
            if !self.address_state.backoff.is_over(now) {
                return Err(SourceFault::Unreachable);
            }
            let fetched = self.fetch(fetcher).await;
            match &fetched {
                Ok(_) => self.address_state.backoff.end(),
                Err(_) => self.address_state.backoff.begin(now),
            }
            fetched?
        };
        let outcome = self.read(fetched, cache, now).await;
        let (answer, bytes) = outcome.inspect_err(|_| self.backoff.begin(now))?;
        let copy = DiskCopy {
            name: self.key.1.copy_name(self.key.0.as_ref()),
            bytes,
        };
        if answer.answers(|status| status == Status::Unknown) {
            // The responder may know the certificate soon: it is asked again with the backoff of a failure.
            self.backoff.begin(now);
            self.refresh_at.store(0, Ordering::Relaxed);
            self.answer.store(Some(Arc::new(answer)));
            return Ok(AskOutcome::Unknown(copy));
        }
        self.backoff.end();
        self.keep(answer, now);
        Ok(AskOutcome::Fetched(copy))
    }

    /// The answer in the copy on disk, if there is a valid copy.
    async fn look_up(
        &self,
        disk: &DiskThread,
        cache: &Arc<SourceCache>,
        now: Timestamp,
    ) -> Option<SourceAnswer> {
        let name = self.key.1.copy_name(self.key.0.as_ref());
        let bytes = disk.read(&name).await?;
        match self.read(bytes, cache, now).await {
            Ok((answer, _)) => Some(answer),
            Err(fault) => {
                disk.discard(name, fault);
                None
            }
        }
    }

    async fn fetch(&self, fetcher: &Fetcher) -> Result<Vec<u8>, SourceFault> {
        let (Some(address), question) = &self.key else {
            return Err(SourceFault::Unreachable);
        };
        match question {
            Question::Crl { .. } => fetcher.get(address).await,
            Question::Ocsp {
                certificate,
                signers,
            } => {
                let (certificate, issuer) = (read_certificate(certificate)?, signers.issuer()?);
                let request = ocsp::request(&certificate, &issuer)
                    .map_err(|_| SourceFault::Invalid("OpenSSL cannot write the request"))?;
                fetcher.post(address, request).await
            }
        }
    }

    /// Verifies an answer on a blocking thread: a CRL may have a hundred thousand entries.
    async fn read(
        &self,
        bytes: Vec<u8>,
        cache: &Arc<SourceCache>,
        now: Timestamp,
    ) -> Result<(SourceAnswer, Vec<u8>), SourceFault> {
        let (question, cache) = (self.key.1.clone(), Arc::clone(cache));
        let read = move || (question.read(&bytes, &cache, now), bytes);
        let (answer, bytes) = tokio::task::spawn_blocking(read)
            .await
            .map_err(|_| SourceFault::Invalid("reading it failed"))?;
        let answer = answer?;
        if now > answer.next_update() {
            return Err(SourceFault::Invalid("it was to be replaced before now"));
        }
        if let Some(known) = self.answer.load().as_ref() {
            if answer.this_update() < known.this_update() {
                return Err(SourceFault::Invalid(
                    "it is older than what the source said before",
                ));
            }
            let is_revoked = |status| matches!(status, Status::Revoked(_));
            if known.answers(is_revoked) && answer.answers(|status| status == Status::Unknown) {
                return Err(SourceFault::Invalid(
                    "the responder does not know a certificate that it said was revoked",
                ));
            }
        }
        Ok((answer, bytes))
    }

    fn keep(&self, answer: SourceAnswer, now: Timestamp) {
        let lifetime = answer.next_update().unix().saturating_sub(now.unix());
        let refresh = now
            .unix()
            .saturating_add((lifetime / 2).min(REFRESH_AT_MOST));
        self.refresh_at.store(refresh, Ordering::Relaxed);
        self.answer.store(Some(Arc::new(answer)));
    }
}

/// Ends an attempt on drop, so that the next one can start.
struct UnderWay<'a>(&'a AtomicBool);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
