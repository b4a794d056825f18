//! One source of revocation facts, and what it said last: an OCSP responder about one certificate, or one CRL.
//!
//! A cell is shared by every certificate that rests on it. What it said is swapped whole, so a request reads it without a lock and
//! never sees half of a refresh; and nothing older ever replaces what is newer.

use super::{
    Fault,
    crl::{Crl, Scope, Signers, certificate as read_certificate},
    fetch::{Address, Fetcher},
    ocsp,
    sources::{Directory, Sources},
};
use crate::clock::Timestamp;
use arc_swap::ArcSwapOption;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

/// A fact is refreshed at half of its lifetime, and at the latest after this many seconds: a revocation shows that soon.
const REFRESH_AT_MOST: u64 = 3_600;

/// After a failure the next attempt waits this many seconds, twice as many after each further one.
const FIRST_PAUSE: u64 = 10;

/// The longest such pause, in seconds.
const LONGEST_PAUSE: u64 = 600;

/// What is asked of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// The state of one certificate (DER) of a CA.
    Ocsp {
        certificate: Arc<[u8]>,
        signers: Signers,
    },
    /// The list of a CA.
    Crl { signers: Signers, scope: Scope },
}

/// A question, and where it is answered; `None` for a file of the configuration.
pub(super) type Key = (Option<Address>, Question);

/// What a source said.
#[derive(Debug)]
pub(super) enum Said {
    /// An answer, and where the revocation of the responder's own certificate is known from, where that is to be known.
    Answer(ocsp::Answer, Option<Sources>),
    /// A list, and the same for the key that signed it.
    List(Crl, Option<Sources>),
}

impl Said {
    const fn this_update(&self) -> Timestamp {
        match self {
            Self::Answer(answer, _) => answer.this_update,
            Self::List(list, _) => list.this_update,
        }
    }

    pub(super) const fn next_update(&self) -> Timestamp {
        match self {
            Self::Answer(answer, _) => answer.next_update,
            Self::List(list, _) => list.next_update,
        }
    }

    /// Since when a certificate is revoked.
    pub(super) fn revoked(&self, serial: &[u8]) -> Option<Timestamp> {
        match self {
            Self::Answer(answer, _) => answer.revoked,
            Self::List(list, _) => list.revoked(serial),
        }
    }

    /// The name of the issuer, where it is a list.
    pub(super) fn list_of(&self) -> Option<&str> {
        match self {
            Self::Answer(..) => None,
            Self::List(list, _) => Some(&list.issuer_name),
        }
    }

    /// Where the revocation of the one who signed it is known from; `None` for the issuing CA's very key.
    pub(super) const fn signer(&self) -> Option<&Sources> {
        match self {
            Self::Answer(_, signer) | Self::List(_, signer) => signer.as_ref(),
        }
    }
}

/// An address that is called by one at a time, and left alone for a while after it failed.
#[derive(Debug, Default)]
pub(super) struct Gate {
    turn: tokio::sync::Mutex<()>,
    pause: Pause,
}

/// When the next attempt may be made.
#[derive(Debug, Default)]
struct Pause {
    until: AtomicU64,
    failures: AtomicU32,
}

impl Pause {
    fn is_over(&self, now: Timestamp) -> bool {
        now.unix() >= self.until.load(Ordering::Relaxed)
    }

    fn begin(&self, now: Timestamp) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).min(10);
        let pause = FIRST_PAUSE.saturating_mul(1 << failures).min(LONGEST_PAUSE);
        self.until
            .store(now.unix().saturating_add(pause), Ordering::Relaxed);
    }

    fn end(&self) {
        self.failures.store(0, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
    }
}

/// A source.
#[derive(Debug)]
pub(super) struct Cell {
    key: Key,
    gate: Arc<Gate>,
    said: ArcSwapOption<Said>,
    /// When a request last rested on it.
    used: AtomicU64,
    refresh_at: AtomicU64,
    pause: Pause,
    under_way: AtomicBool,
}

impl Cell {
    /// A source that was not asked yet.
    pub(super) fn new(key: Key, gate: Arc<Gate>) -> Self {
        Self {
            key,
            gate,
            said: ArcSwapOption::empty(),
            used: AtomicU64::new(0),
            refresh_at: AtomicU64::new(0),
            pause: Pause::default(),
            under_way: AtomicBool::new(false),
        }
    }

    /// A file of the configuration: it said what it says.
    pub(super) fn of_file(key: Key, said: Said) -> Self {
        let cell = Self::new(key, Arc::default());
        cell.said.store(Some(Arc::new(said)));
        cell
    }

    /// What it said last.
    pub(super) fn said(&self) -> arc_swap::Guard<Option<Arc<Said>>> {
        self.said.load()
    }

    /// What is to be asked before what it said counts.
    pub(super) fn to_be_known(&self, now: Timestamp) -> Vec<Arc<Self>> {
        let said = self.said();
        let signer = said.as_ref().and_then(|said| said.signer());
        signer.map_or_else(Vec::new, |own| own.unknown(now, Duration::ZERO))
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

    /// Whether it is being asked.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Acquire)
    }

    /// Takes the right to ask it, where it may be asked now; [`Cell::ask`] gives it back.
    pub(super) fn take(&self, now: Timestamp) -> bool {
        self.key.0.is_some()
            && self.pause.is_over(now)
            && self.gate.pause.is_over(now)
            && !self.under_way.swap(true, Ordering::AcqRel)
    }

    /// Whether what it said should be replaced soon.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        now.unix() >= self.refresh_at.load(Ordering::Relaxed)
    }

    /// Where it is asked, for the log.
    pub(super) fn address(&self) -> Option<&Address> {
        self.key.0.as_ref()
    }

    /// Asks it, and keeps what it says. [`Cell::take`] came before.
    pub(super) async fn ask(
        &self,
        fetcher: &Fetcher,
        directory: &Arc<Directory>,
        now: Timestamp,
    ) -> Result<(), Fault> {
        let _under_way = UnderWay(&self.under_way);
        let fetched = {
            let _turn = self.gate.turn.lock().await;
            // While it waited for its turn, the address may have failed somebody else.
            if !self.gate.pause.is_over(now) {
                return Err(Fault::Unreachable);
            }
            let fetched = self.fetch(fetcher).await;
            match &fetched {
                Ok(_) => self.gate.pause.end(),
                Err(_) => self.gate.pause.begin(now),
            }
            fetched?
        };
        let said = match self.read(fetched, directory, now).await {
            Ok(said) => said,
            Err(fault) => {
                self.pause.begin(now);
                return Err(fault);
            }
        };
        self.pause.end();
        self.keep(said, now);
        Ok(())
    }

    async fn fetch(&self, fetcher: &Fetcher) -> Result<Vec<u8>, Fault> {
        let (Some(address), question) = &self.key else {
            return Err(Fault::Unreachable);
        };
        match question {
            Question::Crl { .. } => fetcher.get(address).await,
            Question::Ocsp {
                certificate,
                signers,
            } => {
                let (certificate, issuer) = (read_certificate(certificate)?, signers.issuer()?);
                let request = ocsp::request(&certificate, &issuer)
                    .map_err(|_| Fault::Invalid("OpenSSL cannot write the request"))?;
                fetcher.post(address, request).await
            }
        }
    }

    /// Verifies what was fetched, off the thread that fetches: a list may have a hundred thousand entries.
    async fn read(
        &self,
        bytes: Vec<u8>,
        directory: &Arc<Directory>,
        now: Timestamp,
    ) -> Result<Said, Fault> {
        let (question, directory) = (self.key.1.clone(), Arc::clone(directory));
        let read = move || question.read(&bytes, &directory, now);
        let said = tokio::task::spawn_blocking(read)
            .await
            .map_err(|_| Fault::Invalid("reading it failed"))??;
        if now > said.next_update() {
            return Err(Fault::Invalid("it was to be replaced before now"));
        }
        let is_older = self
            .said
            .load()
            .as_ref()
            .is_some_and(|known| said.this_update() < known.this_update());
        if is_older {
            return Err(Fault::Invalid(
                "it is older than what the source said before",
            ));
        }
        Ok(said)
    }

    fn keep(&self, said: Said, now: Timestamp) {
        let lifetime = said.next_update().unix().saturating_sub(now.unix());
        let refresh = now
            .unix()
            .saturating_add((lifetime / 2).min(REFRESH_AT_MOST));
        self.refresh_at.store(refresh, Ordering::Relaxed);
        self.said.store(Some(Arc::new(said)));
    }
}

impl Question {
    fn read(&self, bytes: &[u8], directory: &Directory, now: Timestamp) -> Result<Said, Fault> {
        match self {
            Self::Ocsp {
                certificate,
                signers,
            } => {
                let (certificate, issuer) = (read_certificate(certificate)?, signers.issuer()?);
                let answer = ocsp::read(bytes, &certificate, &issuer, now)?;
                let own = answer.responder.as_deref();
                let own = own
                    .map(|own| directory.of_responder(own, &issuer))
                    .transpose()?;
                Ok(Said::Answer(answer, own))
            }
            Self::Crl { signers, scope } => {
                let list = Crl::read(bytes, signers, scope)?;
                if list.this_update.unix() > now.unix().saturating_add(ocsp::AHEAD) {
                    return Err(Fault::Invalid("the CRL is of the future"));
                }
                directory.vouched(list)
            }
        }
    }
}

/// However an attempt ends, the next one can be made.
struct UnderWay<'a>(&'a AtomicBool);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let at = Timestamp::from_unix;
        let pause = Pause::default();
        assert!(pause.is_over(at(0)));
        for (now, until) in [(100, 110), (110, 130), (130, 170)] {
            pause.begin(at(now));
            assert!(!pause.is_over(at(until - 1)) && pause.is_over(at(until)));
        }
        for _ in 0..20 {
            pause.begin(at(1_000));
        }
        assert!(!pause.is_over(at(1_599)) && pause.is_over(at(1_600)));
        pause.end();
        assert!(pause.is_over(at(0)));
    }
}
