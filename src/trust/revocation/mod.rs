//! Whether a certificate of a chain is revoked (CRT-6, CRT-11, CRT-12).
//!
//! ```text
//! chained certificate ─ Sources: for each member below the anchor, its OCSP responders and CRLs
//!                          │ judged at every request, from what they said last: no lock, no hashing, no waiting
//!                          └ only where nothing is known yet: ask, and wait at most two seconds
//! engine (a thread) ─ fetches, verifies, swaps in; refreshes before nextUpdate what requests rest on
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

// A source and what it said last.
mod cell;
// The thread that asks.
mod engine;

// What telemetry reads.
mod counters;

pub use counters::Counters;
pub use fetch::Address;
pub use network::{Network, NoNetwork};

use super::Certificate;
use crate::clock::{Clock, Timestamp};
use cell::{Cell, Gate, Key, Question};
use crl::{Crl, Scope};
use engine::{Engine, Work};
use fetch::Fetcher;
use member::Published;
use moka::sync::Cache;
use openssl::x509::{X509, X509Name, X509Ref};
use std::{
    cmp::Ordering,
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// How long a request waits for what is not known yet (CRT-11).
const COLD_WAIT: Duration = Duration::from_secs(2);

/// How many sources are kept: a few for each certificate that is kept ready.
const SOURCES_KEPT: u64 = 20_000;

/// Why a source could not be used. The texts are the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
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
#[derive(Debug, Default)]
pub struct RevocationSettings {
    /// How long what a source said is used after its nextUpdate, while nothing newer can be had.
    pub stale: Duration,
    /// Networks that may be called though they are not public.
    pub private_addresses: Vec<Network>,
    /// Where the certificates of an issuer are asked for, whatever they say themselves.
    pub addresses: Vec<IssuerAddresses>,
    /// Lists from files, PEM or DER.
    pub lists: Vec<Vec<u8>>,
}

/// The addresses of an issuer, instead of those in the certificates that it issued.
#[derive(Debug)]
pub struct IssuerAddresses {
    /// The issuer.
    pub issuer: X509,
    /// Its OCSP responder.
    pub ocsp: Option<Address>,
    /// Its CRL.
    pub crl: Option<Address>,
}

/// Whether a certificate is revoked, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No member of the chain is.
    Good,
    /// One is, since then: the certificate itself at depth 0.
    Revoked {
        /// How far above the certificate.
        depth: usize,
        /// Since when.
        since: Timestamp,
    },
    /// For one of them nobody can say.
    Unknown {
        /// How far above the certificate.
        depth: usize,
    },
}

impl Standing {
    /// That of two chains together: one that is revoked comes before one that is unknown.
    pub(crate) const fn worse(self, other: Self) -> Self {
        match (self, other) {
            (Self::Good, other) | (Self::Unknown { .. }, other @ Self::Revoked { .. }) => other,
            (own, _) => own,
        }
    }
}

/// Judges whether certificates are revoked.
#[derive(Debug)]
pub struct Revocation {
    settings: RevocationSettings,
    /// The names (DER) of the issuers of the settings' lists, in their order.
    list_issuers: Vec<Option<Vec<u8>>>,
    cells: Cache<Key, Arc<Cell>>,
    gates: Cache<Address, Arc<Gate>>,
    counters: Arc<Counters>,
    fetcher: Fetcher,
    engine: OnceLock<Engine>,
}

/// Where the revocation of each member of a chain is known from, the certificate's own first; the anchor has none.
#[derive(Debug)]
pub(crate) struct Sources(Box<[Member]>);

#[derive(Debug)]
struct Member {
    serial: Box<[u8]>,
    cells: Vec<Arc<Cell>>,
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
            list_issuers: settings
                .lists
                .iter()
                .map(|list| Crl::issuer(list))
                .collect(),
            settings,
            cells: Cache::new(SOURCES_KEPT),
            gates: Cache::new(SOURCES_KEPT),
            counters: Arc::default(),
            engine: OnceLock::new(),
        })
    }

    /// Whether both were made by the same settings: what one knows then holds for the other.
    pub fn is_set_like(&self, other: &Self) -> bool {
        let (own, other) = (&self.settings, &other.settings);
        let is_same = |(own, other): (&IssuerAddresses, &IssuerAddresses)| {
            own.issuer.to_der().ok() == other.issuer.to_der().ok()
                && (&own.ocsp, &own.crl) == (&other.ocsp, &other.crl)
        };
        own.stale == other.stale
            && own.private_addresses == other.private_addresses
            && own.lists == other.lists
            && own.addresses.len() == other.addresses.len()
            && own.addresses.iter().zip(&other.addresses).all(is_same)
    }

    /// Whether a file's list could count at all: delta and indirect ones cannot.
    ///
    /// # Errors
    /// Why not.
    pub fn inspect(list: &[u8]) -> Result<(), Fault> {
        Crl::inspect(list)
    }

    /// Starts the thread that fetches, by this clock. A second call changes nothing.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(&self, clock: &Clock) -> io::Result<()> {
        if self.engine.get().is_none() {
            let engine = Engine::start(Work {
                cells: self.cells.clone(),
                counters: Arc::clone(&self.counters),
                fetcher: self.fetcher.clone(),
                clock: clock.clone(),
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

    /// Where the members of a chain (the anchor last) are asked for.
    pub(super) fn sources(&self, chain: &[X509]) -> Result<Sources, Fault> {
        let pairs = chain.iter().zip(chain.iter().skip(1));
        pairs
            .map(|(certificate, issuer)| self.member(certificate, issuer))
            .collect::<Result<_, _>>()
            .map(Sources)
    }

    fn member(&self, certificate: &X509Ref, issuer: &X509Ref) -> Result<Member, Fault> {
        let der = |certificate: &X509Ref| {
            certificate
                .to_der()
                .map(Arc::<[u8]>::from)
                .map_err(|_| Fault::Invalid("OpenSSL cannot write the certificate"))
        };
        let (own, above) = (der(certificate)?, der(issuer)?);
        let mut published = Published::of(&own)?;
        let configured = self.settings.addresses.iter();
        let key = |certificate: &X509Ref| {
            certificate
                .public_key()
                .and_then(|key| key.public_key_to_der())
                .ok()
        };
        let is_issuer = |of: &&IssuerAddresses| {
            key(&of.issuer) == key(issuer)
                && of
                    .issuer
                    .subject_name()
                    .try_cmp(issuer.subject_name())
                    .is_ok_and(Ordering::is_eq)
        };
        for of in configured.filter(is_issuer) {
            if let Some(address) = &of.ocsp {
                published.ocsp = vec![address.clone()];
            }
            if let Some(address) = &of.crl {
                published.crls = vec![address.clone()];
            }
        }
        let ask = |question: Question| move |address: Address| self.cell(address, question.clone());
        let ocsp = published.ocsp.into_iter().map(ask(Question::Ocsp {
            certificate: own,
            issuer: Arc::clone(&above),
        }));
        let crls = published.crls.into_iter().map(ask(Question::Crl {
            issuer: Arc::clone(&above),
            scope: published.scope.clone(),
        }));
        let files = self.files(issuer, &above, &published.scope);
        Ok(Member {
            serial: published.serial,
            cells: ocsp.chain(crls).chain(files).collect(),
        })
    }

    fn cell(&self, address: Address, question: Question) -> Arc<Cell> {
        let gate = self.gates.get_with(address.clone(), Arc::default);
        let key = (Some(address), question);
        self.cells
            .get_with(key.clone(), || Arc::new(Cell::new(key, gate)))
    }

    /// The files' list for this issuer: the first that counts.
    fn files(&self, issuer: &X509Ref, der: &Arc<[u8]>, scope: &Scope) -> Option<Arc<Cell>> {
        if self.settings.lists.is_empty() {
            return None;
        }
        let question = Question::Crl {
            issuer: Arc::clone(der),
            scope: scope.clone(),
        };
        let key = (None, question);
        if let Some(known) = self.cells.get(&key) {
            return Some(known);
        }
        // Reading a list costs as much as it is long: only those in the issuer's name are.
        let name = issuer.subject_name();
        let is_same = |of: &Vec<u8>| {
            let of = X509Name::from_der(of);
            of.is_ok_and(|of| of.try_cmp(name).is_ok_and(Ordering::is_eq))
        };
        let list = self
            .settings
            .lists
            .iter()
            .zip(&self.list_issuers)
            .filter(|(_, of)| of.as_ref().is_some_and(is_same))
            .find_map(|(list, _)| Crl::read(list, issuer, scope).ok())?;
        let cell = Arc::new(Cell::of_file(key.clone(), list));
        self.cells.insert(key, Arc::clone(&cell));
        Some(cell)
    }

    /// What is known of a certificate at a moment; nothing is asked. It is what a warm request pays.
    pub fn standing(&self, certificate: &Certificate, now: Timestamp) -> Standing {
        certificate
            .sources()
            .map_or(Standing::Unknown { depth: 0 }, |sources| {
                sources.standing(now, self.settings.stale)
            })
    }

    /// Judges a chain at a moment, from what is known; where nothing is, asks and waits, at most two seconds.
    pub(crate) async fn judge(&self, sources: &Sources, now: Timestamp) -> Standing {
        match sources.standing(now, self.settings.stale) {
            Standing::Unknown { .. } => self.ask(sources, now).await,
            known => known,
        }
    }

    async fn ask(&self, sources: &Sources, now: Timestamp) -> Standing {
        let Some(engine) = self.engine.get() else {
            return sources.standing(now, self.settings.stale);
        };
        let mut finished = engine.finished();
        finished.mark_unchanged();
        for cell in sources.unknown(now, self.settings.stale) {
            engine.ask(cell, now);
        }
        let deadline = tokio::time::sleep(COLD_WAIT);
        tokio::pin!(deadline);
        loop {
            // In this order: what is said is there before its attempt is over.
            let waits = sources
                .unknown(now, self.settings.stale)
                .any(|cell| cell.is_under_way());
            let standing = sources.standing(now, self.settings.stale);
            if !matches!(standing, Standing::Unknown { .. }) || !waits {
                return standing;
            }
            tokio::select! {
                changed = finished.changed() => if changed.is_err() { return standing },
                () = &mut deadline => return standing,
            }
        }
    }
}

impl Sources {
    /// What is known of a chain at a moment. `stale`: how long what was said counts beyond its nextUpdate.
    fn standing(&self, now: Timestamp, stale: Duration) -> Standing {
        let mut standing = Standing::Good;
        for (depth, member) in self.0.iter().enumerate() {
            match member.standing(now, stale) {
                Known::Good => {}
                Known::Revoked(since) => return Standing::Revoked { depth, since },
                Known::Nothing if standing == Standing::Good => {
                    standing = Standing::Unknown { depth };
                }
                Known::Nothing => {}
            }
        }
        standing
    }

    /// The sources of those members of which nothing is known.
    fn unknown(&self, now: Timestamp, stale: Duration) -> impl Iterator<Item = &Arc<Cell>> {
        self.0
            .iter()
            .filter(move |member| matches!(member.standing(now, stale), Known::Nothing))
            .flat_map(|member| &member.cells)
    }
}

enum Known {
    Good,
    Revoked(Timestamp),
    Nothing,
}

impl Member {
    /// A source that says "revoked" outweighs all others, however old it is: it was said, and nobody took it back.
    fn standing(&self, now: Timestamp, stale: Duration) -> Known {
        let mut known = Known::Nothing;
        for cell in &self.cells {
            cell.touch(now);
            let said = cell.said();
            let Some(said) = said.as_ref() else { continue };
            if let Some(since) = said.revoked(&self.serial) {
                return Known::Revoked(since);
            }
            let until = said.next_update().unix().saturating_add(stale.as_secs());
            if now.unix() <= until {
                known = Known::Good;
            }
        }
        known
    }
}

#[cfg(test)]
mod tests;
