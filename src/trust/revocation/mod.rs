//! Whether a certificate of a chain is revoked (CRT-6, CRT-11, CRT-12).
//!
//! ```text
//! chained certificate ─ Sources: for each member below the anchor, its OCSP responders and CRLs
//!                          │ judged at every request, from what they said last: no lock, no hashing, no waiting
//!                          └ only where one of them never answered yet: ask, and wait at most two seconds
//! engine (a thread) ─ fetches, verifies, swaps in; refreshes before nextUpdate what requests rest on
//!                          └ keeps what was fetched on disk, and after a restart judges it anew before anything is fetched
//! ```
//!
//! Invariants: an address is used only where the operator wrote it or where a certificate that chains to an anchor names it; what a
//! source says counts only where the issuer of the certificate vouches for it; a source that says "revoked" outweighs all others.
//! Deliberately not here: what an unreachable source means (the policy's matter), and caIssuers, which is never fetched.

// Which addresses of the network may be called.
mod network;
// Fetching within bounds.
mod fetch;

// Which signatures are worth verifying.
mod algorithm;
// What a list says.
mod crl;
// What a responder says.
mod ocsp;

// Where a certificate's revocation is published.
mod member;

// What is asked, and what is said.
mod question;
// What was said, on disk, and the thread that reads and writes it.
mod copies;
mod disk;
// How often one that failed is asked again.
mod backoff;
// A source and what it said last.
mod source;
// Which sources tell of a certificate, and what is known from them.
mod sources;
// The thread that asks.
mod engine;

// What telemetry reads.
mod counters;

pub use counters::Counters;
pub use fetch::SourceUrl;
pub(crate) use network::is_public;
pub use network::{InvalidNetwork, Network};

pub(crate) use sources::ChainSources;

use super::Certificate;
use crate::clock::{Clock, Timestamp};
use crl::Crl;
use disk::DiskThread;
use engine::{Engine, EngineContext};
use fetch::Fetcher;
use openssl::x509::{X509, X509Ref};
use sources::SourceCache;
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

/// How long a request waits for what is not known yet (CRT-11).
const COLD_WAIT: Duration = Duration::from_secs(2);

/// Why a source could not be used. The texts are the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceFault {
    /// Its address is not one that may be called.
    #[error("its address is loopback, private or otherwise not public")]
    Forbidden,
    /// It cannot be connected to, or failed a moment ago.
    #[error("it cannot be reached")]
    Unreachable,
    /// It does not answer in time.
    #[error("it did not answer in 5 s")]
    Slow,
    /// It answers with another status than 200; redirects are not followed.
    #[error("it answered with status {0}")]
    Status(u16),
    /// Its answer does not end.
    #[error("its answer is larger than 5 MiB")]
    TooLarge,
    /// What it says does not count.
    #[error("{0}")]
    Invalid(&'static str),
}

/// What the operator decides.
#[derive(Debug)]
pub struct RevocationSettings {
    /// How long what a source said is used after its nextUpdate, while nothing newer can be had.
    pub stale: Duration,
    /// How long an OCSP answer is used at most, whatever its nextUpdate and `stale` say (CRT-6).
    pub ocsp_max_age: Duration,
    /// The folder in which what was fetched is kept, so that a restart does not begin cold; none where it is not kept.
    pub copies: Option<PathBuf>,
    /// Networks that may be called though they are not public.
    pub private_addresses: Vec<Network>,
    /// Where the certificates of an issuer are asked for, whatever they say themselves.
    pub addresses: Vec<IssuerAddresses>,
    /// Lists from files, PEM or DER.
    pub lists: Vec<Vec<u8>>,
}

impl Default for RevocationSettings {
    fn default() -> Self {
        Self {
            stale: Duration::ZERO,
            ocsp_max_age: ocsp::MAX_AGE,
            copies: None,
            private_addresses: Vec::new(),
            addresses: Vec::new(),
            lists: Vec::new(),
        }
    }
}

/// The addresses of an issuer, instead of those in the certificates that it issued.
#[derive(Debug)]
pub struct IssuerAddresses {
    /// The issuer.
    pub issuer: X509,
    /// Its OCSP responders; those in the certificates where `None`, and none are asked where it is empty.
    pub ocsp: Option<Vec<SourceUrl>>,
    /// The same for its CRLs.
    pub crl: Option<Vec<SourceUrl>>,
}

/// Whether a certificate is revoked, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationStatus {
    /// No member of the chain is.
    Good,
    /// One is, since then: the certificate itself at depth 0.
    Revoked {
        /// How far above the certificate.
        depth: usize,
        /// Since when.
        since: Timestamp,
    },
    /// For one of them a source that never answered is being asked: until it has answered or failed, nobody passes.
    Awaited {
        /// How far above the certificate.
        depth: usize,
    },
    /// For one of them nobody can say.
    Unknown {
        /// How far above the certificate.
        depth: usize,
    },
}

impl RevocationStatus {
    /// That of two chains together: revoked comes before awaited, awaited before unknown, and the first of two alike.
    pub(crate) const fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() {
            other
        } else {
            self
        }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Unknown { .. } => 1,
            Self::Awaited { .. } => 2,
            Self::Revoked { .. } => 3,
        }
    }
}

/// Judges whether certificates are revoked.
#[derive(Debug)]
pub struct Revocation {
    cache: Arc<SourceCache>,
    counters: Arc<Counters>,
    fetcher: Fetcher,
    engine: OnceLock<Engine>,
}

impl Revocation {
    /// Nothing is fetched before [`Revocation::start`].
    ///
    /// # Errors
    /// The HTTP client cannot be made: the machine's own trust anchors, for https addresses, cannot be read.
    pub fn new(settings: RevocationSettings) -> Result<Self, reqwest::Error> {
        // reqwest is built without a provider of its own. A second installation fails, and the first one stays: that is what is wanted.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Ok(Self {
            fetcher: Fetcher::new(&settings.private_addresses)?,
            cache: Arc::new(SourceCache::new(settings)),
            counters: Arc::default(),
            engine: OnceLock::new(),
        })
    }

    /// Whether both were made by the same settings: what one knows then holds for the other.
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

    /// Where what was fetched is kept.
    pub fn copies(&self) -> Option<&Path> {
        self.cache.settings().copies.as_deref()
    }

    /// Whether a file's list could count at all: delta and indirect ones cannot.
    ///
    /// # Errors
    /// Why not.
    pub fn inspect(list: &[u8]) -> Result<(), SourceFault> {
        Crl::inspect(list)
    }

    /// Starts the thread that fetches, by this clock. A second call changes nothing.
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

    /// What telemetry reads.
    pub const fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Counts a request that is let pass though nothing is known.
    pub fn let_pass(&self) {
        self.counters.passed();
    }

    /// Where the members of a chain (the anchor last) are asked for. `others` gives the certificates of a CA's other keys, by which its
    /// lists may be signed too, each with those above it.
    pub(super) fn sources(
        &self,
        chain: &[X509],
        others: impl Fn(&X509Ref) -> Vec<crl::Chain>,
    ) -> Result<ChainSources, SourceFault> {
        self.cache.sources(chain, others)
    }

    /// What is known of a certificate at a moment; nothing is asked. It is what a warm request pays.
    pub fn standing(&self, certificate: &Certificate, now: Timestamp) -> RevocationStatus {
        certificate
            .sources()
            .map_or(RevocationStatus::Unknown { depth: 0 }, |sources| {
                sources.standing(now, self.cache.settings().stale)
            })
    }

    /// Judges a chain at a moment, from what is known; where a source never answered, or none of them can say, asks and waits, at most
    /// two seconds.
    pub(crate) async fn judge(&self, sources: &ChainSources, now: Timestamp) -> RevocationStatus {
        match sources.standing(now, self.cache.settings().stale) {
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
            // In this order: what is said is there before its attempt is over.
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

#[cfg(test)]
mod tests;
