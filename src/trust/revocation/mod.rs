//! Whether a certificate of a chain is revoked (CRT-6, CRT-11, CRT-12).
//!
//! ```text
//! chained certificate ─ ChainSources: for each member below the anchor, its OCSP responders and CRLs
//!                          │ judged at every request from their last answers: no lock, no hashing, no waiting
//!                          └ only if a source has never answered: ask, and wait at most two seconds
//! engine (a thread) ─ fetches, verifies and replaces answers; refreshes the sources in use before nextUpdate
//!                          └ keeps copies of answers on disk; after a restart verifies the copies before it fetches
//! ```
//!
//! Invariants: every address comes from the configuration or from a certificate that chains to an anchor; an answer counts only if the
//! issuer of the certificate signed the answer or delegated its signer; "revoked" from one source outweighs all other answers.
//! Deliberately not here: the consequence of an unreachable source, which the policy decides, and caIssuers, which is never fetched.

// The settings.
mod settings;

// IP addresses that may be called.
mod network;
// The HTTP client, with its limits, and its faults.
mod fault;
mod fetch;

// The accepted signature algorithms.
mod algorithm;
// CRLs.
mod crl;
// OCSP responses.
mod ocsp;

// The OCSP and CRL addresses in a certificate.
mod member;

// Questions to sources, and their answers.
mod answer;
mod question;
// Copies of answers on disk, and the thread that reads and writes them.
mod copies;
mod disk;
// The backoff after failures.
mod backoff;
// A source and its last answer.
mod source;
// All sources; those of a chain, and the revocation status from their answers.
mod cache;
mod sources;
mod status;
// The thread that asks the sources.
mod context;
mod engine;
mod priority;

// The counters for telemetry.
mod counters;

pub use counters::{Counters, FetchResult};
pub use fault::SourceFault;
pub use fetch::{NoClient, SourceUrl};
pub use network::is_public;
pub use settings::{IssuerAddresses, RevocationSettings};
pub use status::RevocationStatus;

pub use sources::ChainSources;

use super::Validity;
use cache::SourceCache;
use context::EngineContext;
use counters::{FROM_FILE, Lists};
use crl::Crl;
use disk::DiskThread;
use engine::Engine;
use fetch::Fetcher;
use openssl::x509::{X509, X509Ref};
use portvakt_base::clock::{Clock, Timestamp};
use std::{
    io,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// The longest time that a request waits for a source that has never answered (CRT-11).
const COLD_WAIT: Duration = Duration::from_secs(2);

/// The revocation check.
#[derive(Debug)]
pub struct Revocation {
    cache: Arc<SourceCache>,
    counters: Arc<Counters>,
    fetcher: Fetcher,
    engine: OnceLock<Engine>,
}

impl Revocation {
    /// A revocation check by these settings. It fetches nothing before [`Revocation::start`].
    ///
    /// # Errors
    /// [`NoClient`].
    pub fn new(settings: RevocationSettings) -> Result<Self, NoClient> {
        // reqwest is built without a provider of its own. A second installation fails and keeps the first provider, as intended.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Ok(Self {
            fetcher: Fetcher::new(&settings.private_addresses)?,
            cache: Arc::new(SourceCache::new(settings)),
            counters: Arc::default(),
            engine: OnceLock::new(),
        })
    }

    /// Whether both have the same settings, so that the answers of one are valid for the other.
    pub fn is_set_like(&self, other: &Self) -> bool {
        let (own, other) = (self.cache.settings(), other.cache.settings());
        let is_same = |(own, other): (&IssuerAddresses, &IssuerAddresses)| {
            own.issuer.to_der().ok() == other.issuer.to_der().ok()
                && (&own.ocsp, &own.crl) == (&other.ocsp, &other.crl)
        };
        own.stale == other.stale
            && own.ocsp_max_age == other.ocsp_max_age
            && own.copies == other.copies
            && own.private_addresses == other.private_addresses
            && own.lists == other.lists
            && own.addresses.len() == other.addresses.len()
            && own.addresses.iter().zip(&other.addresses).all(is_same)
    }

    /// The folder of the copies; `None` if no copies are kept.
    pub fn copies(&self) -> Option<&Path> {
        self.cache.settings().copies.as_deref()
    }

    /// Checks that a CRL from a file is of a supported kind: not a delta CRL and not an indirect one. Returns the period from its thisUpdate
    /// to its nextUpdate.
    ///
    /// # Errors
    /// The reason why the CRL is not supported.
    pub fn inspect(list: &[u8]) -> Result<Validity, SourceFault> {
        Crl::inspect(list).map(|(_, period)| period)
    }

    /// The nextUpdate of each CRL of a file, and of each that was fetched and is in use, by the name of its issuer and its address or
    /// `file`: those that end first, at most [`Counters::MOST_LISTS`].
    pub fn lists(&self) -> Vec<((String, String), Timestamp)> {
        let mut all = Lists::clone(&self.counters.lists());
        for (issuer, end) in self.cache.file_ends() {
            let key = (issuer.clone(), FROM_FILE.to_owned());
            let first = all.entry(key).or_insert(*end);
            *first = (*first).min(*end);
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(_, end)| *end);
        all.truncate(Counters::MOST_LISTS);
        all
    }

    /// Answers in use that were due for a refresh long ago: how many, and when the first of them ends.
    pub fn late(&self) -> Option<(u64, Timestamp)> {
        self.counters.late()
    }

    /// Counts a request that was refused because its revocation status is unknown.
    pub fn refuse(&self, now: Timestamp) {
        self.counters.refused(now);
    }

    /// Whether requests were refused so in the last minutes.
    pub fn refuses(&self, now: Timestamp) -> bool {
        self.counters.refuses(now)
    }

    /// Starts the thread that fetches. A second call has no effect.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(&self, clock: &Clock) -> io::Result<()> {
        if self.engine.get().is_none() {
            let engine = Engine::start(EngineContext {
                cache: Arc::clone(&self.cache),
                counters: Arc::clone(&self.counters),
                fetcher: self.fetcher.clone(),
                clock: clock.clone(),
                disk: self.copies().map(DiskThread::start).transpose()?,
            })?;
            let _ = self.engine.set(engine);
        }
        Ok(())
    }

    /// How long an answer is used after its nextUpdate.
    pub fn stale(&self) -> Duration {
        self.cache.settings().stale
    }

    /// The counters for telemetry.
    pub const fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Counts a request that passed with unknown revocation status.
    pub fn let_pass(&self) {
        self.counters.passed();
    }

    /// The sources of the members of a chain (the anchor last). `others` returns the certification paths of a CA's other keys, which
    /// may sign the CA's CRLs too.
    pub(super) fn sources(
        &self,
        chain: &[X509],
        others: impl Fn(&X509Ref) -> Vec<crl::Chain>,
    ) -> Result<ChainSources, SourceFault> {
        self.cache.sources(chain, others)
    }

    /// The revocation status of a chain from the last answers; asks no source.
    pub(super) fn standing(&self, sources: &ChainSources, now: Timestamp) -> RevocationStatus {
        sources.standing(now, self.cache.settings().stale)
    }

    /// The revocation status of a chain. If a source has never answered, or none can tell the status, asks the sources and waits for at
    /// most two seconds.
    pub async fn judge(&self, sources: &ChainSources, now: Timestamp) -> RevocationStatus {
        match self.standing(sources, now) {
            RevocationStatus::Unknown { .. } | RevocationStatus::Awaited { .. } => {
                self.ask(sources, now).await
            }
            known => known,
        }
    }

    async fn ask(&self, sources: &ChainSources, now: Timestamp) -> RevocationStatus {
        let stale = self.cache.settings().stale;
        let Some(engine) = self.engine.get() else {
            return sources.standing(now, stale);
        };
        let mut finished = engine.finished();
        finished.mark_unchanged();
        for cell in sources.to_be_asked(now, stale) {
            engine.ask(&cell, now);
        }
        let deadline = tokio::time::sleep(COLD_WAIT);
        tokio::pin!(deadline);
        loop {
            // In this order: an attempt stores its answer before it ends.
            let waits = sources
                .to_be_asked(now, stale)
                .iter()
                .any(|cell| cell.is_worth_waiting_for());
            let standing = sources.standing(now, stale);
            let is_known = matches!(
                standing,
                RevocationStatus::Good | RevocationStatus::Revoked { .. }
            );
            if is_known || !waits {
                return standing;
            }
            tokio::select! {
                changed = finished.changed() => if changed.is_err() { return standing },
                () = &mut deadline => return standing,
            }
        }
    }
}

/// Verifies an OCSP response about a certificate of the gateway itself, which it sends in TLS handshakes. Returns the period in which
/// clients accept the response.
///
/// # Errors
/// The issuer, or a responder of the issuer, did not sign the response; or it is not about this certificate, or does not say good.
pub fn own_response(
    response: &[u8],
    certificate: &X509Ref,
    issuer: &X509Ref,
) -> Result<Validity, SourceFault> {
    ocsp::read_own(response, certificate, issuer)
}

#[cfg(test)]
mod tests;
