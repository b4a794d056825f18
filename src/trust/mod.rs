//! Certificate to TPP: from the bytes of TPP-Signature-Certificate to what is known of the one who sent it.
//!
//! Only facts are cached here: what the certificate says and to which anchor it chains. Whether it is valid now and
//! whether its roles suffice is judged on every request, in admission (CRT-12).

// From a header's bytes to DER (CRT-1).
pub mod decode;
// The little DER that is read by hand.
mod der;

// Distinguished names, compared as names (SIG-4).
pub mod name;
// QcStatements and the PSD2 statement (CRT-3, CRT-4).
pub mod qc;

// What a sandbox lets pass in test certificates.
pub mod tolerance;

// Chains to a trust anchor (CRT-2, CRT-10).
pub mod chain;

// Whether a member of a chain is revoked (CRT-6, CRT-11).
pub mod revocation;

// Who is registered, for what and where (CRT-7).
pub mod register;

// One rule each, over a certificate that was read.
pub(crate) mod judgement;

// What a certificate says.
pub mod certificate;

// The certificate of the TLS connection (TLS-3).
pub mod website;

pub use certificate::{Certificate, Roles, Validity};
pub use chain::Anchors;
pub(crate) use chain::end_of;
pub use qc::CertificateTypes;
pub use register::Registers;
pub use revocation::Revocation;
pub use tolerance::{CertificatePolicy, Tolerated};
pub use website::{Shown, Website};

use crate::{clock::Timestamp, interface::Reason};
use moka::sync::Cache;
use openssl::x509::{X509, X509Ref};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Why a certificate does not identify a TPP. The texts are the operator's; what the caller reads is the reason's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// CRT-1, CRT-10: it cannot be read.
    #[error("{0}")]
    Malformed(&'static str),
    /// SIG-5: its key is not accepted.
    #[error("{0}")]
    Weak(String),
    /// CRT-2, CRT-9, CRT-10: it does not chain to an anchor.
    #[error("{0}")]
    Untrusted(String),
    /// CRT-2: it, or one above it, has expired.
    #[error("expired at {}", .0.unix())]
    Expired(Timestamp),
    /// CRT-2: it, or one above it, is not valid yet.
    #[error("not valid before {}", .0.unix())]
    NotYetValid(Timestamp),
    /// CRT-3: it is no eIDAS certificate of an accepted type.
    #[error("{0}")]
    WrongType(&'static str),
    /// CRT-4: it carries no PSD2 identity.
    #[error("{0}")]
    NotPsd2(&'static str),
}

impl CertificateFault {
    /// The reason that a caller is given for it.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Malformed(_) => Reason::CertificateMalformed,
            Self::Weak(_) => Reason::CertificateWeak,
            Self::Untrusted(_) => Reason::CertificateUntrusted,
            Self::Expired(_) => Reason::CertificateExpired,
            Self::NotYetValid(_) => Reason::CertificateNotYetValid,
            Self::WrongType(_) => Reason::CertificateWrongType,
            Self::NotPsd2(_) => Reason::CertificateNotPsd2,
        }
    }

    /// Whether no other time would change it (CRT-12). Whether a certificate leads to an anchor is judged without regard
    /// to the time, and with every certificate that could help: only other anchors would change that, and with them
    /// comes another [`Trust`].
    const fn is_lasting(&self) -> bool {
        match self {
            Self::Malformed(_)
            | Self::Weak(_)
            | Self::Untrusted(_)
            | Self::WrongType(_)
            | Self::NotPsd2(_) => true,
            Self::Expired(_) | Self::NotYetValid(_) => false,
        }
    }
}

/// How many TPP certificates are kept ready. A country has a few hundred TPPs; one more costs a chain.
const CERTIFICATES_KEPT: u64 = 10_000;

/// How many refused certificates are remembered: 32 bytes and a few words each.
const REFUSALS_KEPT: u64 = 10_000;

/// How long a refusal is remembered: what only failed for want of memory is judged again soon.
const REFUSALS_LAST: Duration = Duration::from_secs(60);

/// Everything by which certificates are judged, and the certificates that chained to it.
#[derive(Debug)]
pub struct Trust {
    anchors: Anchors,
    /// Those of QWACs, where they are others (TLS-3).
    client_anchors: Option<Anchors>,
    policy: CertificatePolicy,
    types: CertificateTypes,
    revocation: Option<Arc<Revocation>>,
    /// Refusals that no time can change (CRT-12), by the SHA-256 of what was presented.
    refused: Cache<[u8; 32], CertificateFault>,
    known: Cache<Box<[u8]>, Arc<Certificate>>,
    /// Tells certificates that were judged by these anchors from those of a Trust before a reload (CRT-12).
    generation: u64,
}

impl Trust {
    /// Trust in these anchors.
    pub fn new(anchors: Anchors) -> Self {
        static GENERATION: AtomicU64 = AtomicU64::new(0);
        Self {
            anchors,
            client_anchors: None,
            policy: CertificatePolicy::Strict,
            types: CertificateTypes::default(),
            revocation: None,
            refused: Cache::builder()
                .max_capacity(REFUSALS_KEPT)
                .time_to_live(REFUSALS_LAST)
                .build(),
            known: Cache::new(CERTIFICATES_KEPT),
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The same trust, in certificates that are read by another policy.
    pub fn with_policy(mut self, policy: CertificatePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The same trust, where requests are signed by certificates of these types only (CRT-3).
    pub fn with_types(mut self, types: CertificateTypes) -> Self {
        self.types = types;
        self
    }

    /// The same trust, where the certificates of TLS connections chain to these anchors; `None` for the same ones (TLS-3).
    pub fn with_client_anchors(mut self, anchors: Option<Anchors>) -> Self {
        self.client_anchors = anchors;
        self
    }

    /// The same trust, in certificates whose revocation is checked (CRT-6), or not. What sources said before a reload stays known
    /// where the new trust is given the old [`Revocation`].
    pub fn with_revocation(mut self, revocation: Option<Arc<Revocation>>) -> Self {
        self.revocation = revocation;
        self
    }

    /// What tells whether certificates are revoked; `None` where that is not checked.
    pub const fn revocation(&self) -> Option<&Arc<Revocation>> {
        self.revocation.as_ref()
    }

    /// When the first anchor of each set ends: those of seals (`anchor`) and, where they are others, of QWACs (`client_anchor`).
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, Timestamp)> {
        let clients = self.client_anchors.as_ref().and_then(Anchors::first_end);
        let sets = [
            ("anchor", self.anchors.first_end()),
            ("client_anchor", clients),
        ];
        sets.into_iter()
            .filter_map(|(name, end)| end.map(|end| (name, end)))
    }

    /// The TPP certificates that are kept ready, now and later.
    pub fn seen(&self) -> Seen {
        Seen(self.known.clone())
    }

    /// The anchors, and none of what was remembered by them.
    pub fn into_anchors(self) -> Anchors {
        self.anchors
    }

    /// The certificate in a header's value, chained to an anchor and valid at `now` (CRT-1 to CRT-4, CRT-10).
    ///
    /// The connection's slot is looked at first, then the cache; only a certificate that is new costs a chain.
    ///
    /// # Errors
    /// The first fault, in the order of the rules.
    pub fn identify(
        &self,
        presented: &[u8],
        slot: Option<&Slot>,
        now: Timestamp,
    ) -> Result<Arc<Certificate>, CertificateFault> {
        if let Some(slot) = slot {
            if let Some(certificate) = slot.get(presented, self.generation)
                && certificate.judge_validity(now).is_ok()
            {
                return Ok(certificate);
            }
            let certificate = self.look_up(presented, now)?;
            slot.put(&certificate);
            return Ok(certificate);
        }
        self.look_up(presented, now)
    }

    /// The certificate of a TLS connection, chained to an anchor and valid at `now` (TLS-3).
    ///
    /// # Errors
    /// The first fault, in the order of the rules.
    pub fn website(&self, shown: &Shown, now: Timestamp) -> Result<Arc<Website>, CertificateFault> {
        shown.judge(self, now)
    }

    /// Where the revocation of a chain's members is known from; `None` where it is not checked.
    fn sources(
        &self,
        anchors: &Anchors,
        members: &[X509],
        now: Timestamp,
    ) -> Result<Option<revocation::Sources>, CertificateFault> {
        let others = |issuer: &X509Ref| anchors.other_keys(issuer, members.last(), now);
        self.revocation
            .as_ref()
            .map(|revocation| revocation.sources(members, others))
            .transpose()
            .map_err(|fault| CertificateFault::Untrusted(fault.to_string()))
    }

    fn look_up(
        &self,
        presented: &[u8],
        now: Timestamp,
    ) -> Result<Arc<Certificate>, CertificateFault> {
        // One that is not valid any more is chained anew: another path to an anchor may hold.
        if let Some(certificate) = self
            .known
            .get(presented)
            .filter(|certificate| certificate.judge_validity(now).is_ok())
        {
            return Ok(certificate);
        }
        let digest = sha256(presented);
        if let Some(fault) = self.refused.get(&digest) {
            return Err(fault);
        }
        let judged = Certificate::judge(presented, self, now);
        let certificate = match judged {
            Ok(certificate) => Arc::new(certificate),
            Err(fault) => {
                if fault.is_lasting() {
                    self.refused.insert(digest, fault.clone());
                }
                return Err(fault);
            }
        };
        self.known
            .insert(presented.into(), Arc::clone(&certificate));
        Ok(certificate)
    }
}

/// The certificates that chained to an anchor and are kept ready: what telemetry reads.
#[derive(Clone, Debug)]
pub struct Seen(Cache<Box<[u8]>, Arc<Certificate>>);

impl Seen {
    /// Those that end first, with when they do: so many at most.
    pub fn first_to_end(&self, most: usize) -> Vec<(Timestamp, Arc<Certificate>)> {
        let ends = self.0.iter().filter_map(|(_, certificate)| {
            let end = certificate.validity().first()?.not_after;
            Some((end, certificate))
        });
        let mut ends: Vec<_> = ends.collect();
        ends.sort_by_key(|(end, _)| *end);
        ends.truncate(most);
        ends
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    for (out, byte) in out.iter_mut().zip(digest.as_ref()) {
        *out = *byte;
    }
    out
}

/// The last certificate that a connection showed. A TPP shows the same one again and again: comparing it byte by byte
/// costs a tenth of looking it up.
#[derive(Debug, Default)]
pub struct Slot(Mutex<Option<Arc<Certificate>>>);

impl Slot {
    fn get(&self, presented: &[u8], generation: u64) -> Option<Arc<Certificate>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref()
            .filter(|certificate| certificate.is(presented, generation))
            .cloned()
    }

    fn put(&self, certificate: &Arc<Certificate>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(certificate));
    }
}
