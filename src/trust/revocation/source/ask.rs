//! Asking a source: its copy on disk first, then its address. Checks whether the answer counts.

use super::Source;
use crate::revocation::{
    SourceFault,
    answer::SourceAnswer,
    cache::SourceCache,
    context::EngineContext,
    copies::DiskCopy,
    crl::{Crl, certificate as read_certificate},
    disk::DiskThread,
    fetch::Fetcher,
    ocsp::{self, Status},
    question::Question,
};
use portvakt_base::clock::Timestamp;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// The longest time, in seconds, until an answer is refreshed; it is refreshed earlier at half of its lifetime. A revocation takes effect
/// within this time.
const REFRESH_AT_MOST: u64 = 3_600;

/// The result of asking a source.
#[derive(Debug)]
pub(in crate::revocation) enum AskOutcome {
    /// The answer was fetched and may be copied to disk.
    Fetched(DiskCopy),
    /// The answer was fetched, and the responder does not know the certificate.
    Unknown(DiskCopy),
    /// The answer was read from disk; a fetch follows as soon as possible.
    FromDisk,
}

impl Source {
    /// Asks the source and stores its answer. [`Source::take`] must have returned true. If there is no answer yet, a copy on disk is read first:
    /// it is verified like a fetched answer, and the fetch follows at the next tick.
    pub(in crate::revocation) async fn ask(
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
        let read = move || (read(&question, &bytes, &cache, now), bytes);
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

/// Parses and verifies an answer that was fetched or read from disk.
fn read(
    question: &Question,
    bytes: &[u8],
    cache: &SourceCache,
    now: Timestamp,
) -> Result<SourceAnswer, SourceFault> {
    match question {
        Question::Ocsp {
            certificate,
            signers,
        } => {
            let (certificate, issuer) = (read_certificate(certificate)?, signers.issuer()?);
            let max_age = cache.settings().ocsp_max_age;
            let answer = ocsp::read(bytes, &certificate, &issuer, max_age, now)?;
            let own = answer.responder.as_deref();
            let own = own
                .map(|own| cache.of_responder(own, &issuer))
                .transpose()?;
            Ok(SourceAnswer::Ocsp(answer, own))
        }
        Question::Crl { signers, scope } => {
            let list = Crl::read(bytes, signers, scope)?;
            if list.this_update.unix() > now.unix().saturating_add(ocsp::AHEAD) {
                return Err(SourceFault::Invalid("the CRL is of the future"));
            }
            cache.vouched(list)
        }
    }
}

/// Ends an attempt on drop, so that the next one can start.
struct UnderWay<'a>(&'a AtomicBool);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
