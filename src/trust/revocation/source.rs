//! One source of revocation facts, and what it said last: an OCSP responder about one certificate, or one CRL.
//!
//! A cell is shared by every certificate that rests on it. What it said is swapped whole, so a request reads it without a lock and
//! never sees half of a refresh; and nothing older ever replaces what is newer.

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

/// A fact is refreshed at half of its lifetime, and at the latest after this many seconds: a revocation shows that soon.
const REFRESH_AT_MOST: u64 = 3_600;

/// A source.
#[derive(Debug)]
pub(super) struct Source {
    key: Key,
    address_state: Arc<AddressState>,
    answer: ArcSwapOption<SourceAnswer>,
    /// When a request last rested on it.
    used: AtomicU64,
    refresh_at: AtomicU64,
    backoff: Backoff,
    under_way: AtomicBool,
    /// Whether an attempt has failed since the start. It matters until there is an answer.
    failed: AtomicBool,
    /// Whether its copy on disk was looked for.
    looked_up: AtomicBool,
}

/// What a source that never answered is to a request (CRT-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It is being asked for the first time.
    Awaited,
    /// It was asked, and failed; or it cannot be asked now.
    Failed,
    /// Nobody has asked it.
    Unasked,
}

/// How a source came to say what it says.
#[derive(Debug)]
pub(super) enum AskOutcome {
    /// It was fetched, and may be kept.
    Fetched(DiskCopy),
    /// The same, and the responder does not know the certificate.
    Unknown(DiskCopy),
    /// It was kept on disk, and is to be fetched as soon as may be.
    FromDisk,
}

impl Source {
    /// A source that was not asked yet.
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

    /// A file of the configuration: it said what it says.
    pub(super) fn of_file(key: Key, answer: SourceAnswer) -> Self {
        let source = Self::new(key, Arc::default());
        source.answer.store(Some(Arc::new(answer)));
        source
    }

    /// What it said last.
    pub(super) fn answer(&self) -> arc_swap::Guard<Option<Arc<SourceAnswer>>> {
        self.answer.load()
    }

    /// What is to be asked before what it said counts.
    pub(super) fn to_be_known(&self, now: Timestamp) -> Vec<Arc<Self>> {
        let answer = self.answer();
        let signer = answer.as_ref().and_then(|answer| answer.signer());
        signer.map_or_else(Vec::new, |own| own.to_be_asked(now, Duration::ZERO))
    }

    /// Why it has said nothing. It is read before what it said: an attempt that ends keeps what was said, or that it failed, first.
    pub(super) fn no_answer(&self) -> NoAnswer {
        let is_under_way = self.under_way.load(Ordering::Acquire);
        let is_silent = self.answer.load().is_none();
        match (self.failed.load(Ordering::Acquire), is_under_way) {
            // An answer came since the caller looked: it is waited for as if it came now.
            _ if !is_silent => NoAnswer::Awaited,
            (true, _) => NoAnswer::Failed,
            (false, true) => NoAnswer::Awaited,
            (false, false) => NoAnswer::Unasked,
        }
    }

    /// Whether it is a list.
    pub(super) const fn is_list(&self) -> bool {
        matches!(self.key.1, Question::Crl { .. })
    }

    /// Notes that a request rests on it.
    pub(super) fn touch(&self, now: Timestamp) {
        // A load is cheaper than a store that takes the cache line away from other cores.
        if self.used.load(Ordering::Relaxed) != now.unix() {
            self.used.store(now.unix(), Ordering::Relaxed);
        }
    }

    /// When a request last rested on it.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether it is being asked, and is none that only ever failed: of those the policy decides, however often they are asked again.
    pub(super) fn is_worth_waiting_for(&self) -> bool {
        self.under_way.load(Ordering::Acquire) && self.no_answer() != NoAnswer::Failed
    }

    /// Takes the right to ask it, where it may be asked now; [`Source::ask`] gives it back.
    pub(super) fn take(&self, now: Timestamp) -> bool {
        if !self.backoff.is_over(now) || !self.address_state.backoff.is_over(now) {
            // The address failed somebody else: that is as if it had failed this one.
            self.failed.store(true, Ordering::Release);
            return false;
        }
        self.key.0.is_some() && !self.under_way.swap(true, Ordering::AcqRel)
    }

    /// Whether what it said should be replaced soon.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        now.unix() >= self.refresh_at.load(Ordering::Relaxed)
    }

    /// Where it is asked, for the log.
    pub(super) fn address(&self) -> Option<&SourceUrl> {
        self.key.0.as_ref()
    }

    /// Asks it, and keeps what it says. [`Source::take`] came before. What was kept on disk is taken first, where nothing is known: it is
    /// judged as if it had just been fetched, and the fetch follows at the next tick.
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
            // While it waited for its turn, the address may have failed somebody else.
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
            // It may know the certificate in a moment: it is asked as often as one that fails.
            self.backoff.begin(now);
            self.refresh_at.store(0, Ordering::Relaxed);
            self.answer.store(Some(Arc::new(answer)));
            return Ok(AskOutcome::Unknown(copy));
        }
        self.backoff.end();
        self.keep(answer, now);
        Ok(AskOutcome::Fetched(copy))
    }

    /// What it said before a restart, if that was kept and counts.
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

    /// Verifies what was fetched or kept, off the thread that fetches: a list may have a hundred thousand entries.
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

/// However an attempt ends, the next one can be made.
struct UnderWay<'a>(&'a AtomicBool);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
