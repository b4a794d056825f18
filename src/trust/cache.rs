//! The cache of judged certificates (CRT-12).
//!
//! Invariants: the cache keeps a certificate only after a signature by it has verified, because certificates are public and anybody can
//! encode one in any number of header values; the key is the SHA-256 of the certificate's DER, without surrounding text and pool; each
//! cache is bounded in bytes. A cached certificate needs no pool, because its chain is already built. Deliberately not here: the rules by
//! which a certificate is judged.

use super::{
    CandidateCertificate, Certificate, CertificateFault,
    decode::{self, PresentedCertificates},
    digests::{Digest, Digests, sha256},
    judgement,
};
use moka::sync::Cache;
use portvakt_base::{clock::Timestamp, values};
use portvakt_interface::TppId;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The capacity, in bytes, of each of the two caches of certificates: by digest and by header value. That is about 2 000 certificates; a
/// country has a few hundred TPPs.
const CERTIFICATES_KEPT: u64 = 32 * 1024 * 1024;

/// The memory of a certificate beside its encoded bytes, in bytes: key, validity of the chain, revocation sources.
const CERTIFICATE_TAKES: usize = 8 * 1024;

/// The capacity of the cache of refusals, in bytes: about 8 000 refusals.
const REFUSALS_KEPT: u64 = 4 * 1024 * 1024;

/// The memory of a cached refusal, in bytes, with the overhead of the cache.
const REFUSAL_TAKES: u32 = 512;

/// The lifetime of a cached refusal. It is short, so that a refusal caused by lack of memory is judged again soon.
const REFUSALS_LAST: Duration = Duration::from_secs(60);

/// Cached verdicts on certificates.
#[derive(Clone, Debug)]
pub(super) struct CertificateCache {
    /// Certificates by which a signature has verified, by the digest of their DER.
    proven: Cache<Digest, Arc<Certificate>>,
    /// The same certificates by the header value that carried them: a lookup costs less than decoding.
    spellings: Cache<Arc<[u8]>, Arc<Certificate>>,
    /// Refusals that do not depend on the time. A fault found after the chain was built depends on the certificate alone; a fault of the
    /// chain depends on the pool too, so another caller's pool must not cause the refusal of a TPP's certificate.
    refused: Cache<Digest, CertificateFault>,
}

impl CertificateCache {
    pub(super) fn new() -> Self {
        Self {
            proven: Cache::builder()
                .max_capacity(CERTIFICATES_KEPT)
                .weigher(|_, certificate: &Arc<Certificate>| weight(certificate, &[]))
                .build(),
            spellings: Cache::builder()
                .max_capacity(CERTIFICATES_KEPT)
                .weigher(|spelling: &Arc<[u8]>, certificate: &Arc<Certificate>| {
                    weight(certificate, spelling)
                })
                .build(),
            refused: Cache::builder()
                .max_capacity(REFUSALS_KEPT)
                .weigher(|_, _| REFUSAL_TAKES)
                .time_to_live(REFUSALS_LAST)
                .build(),
        }
    }

    /// The certificate cached under this header value, if its chain is valid at `now`.
    pub(super) fn spelled(&self, presented: &[u8], now: Timestamp) -> Option<Arc<Certificate>> {
        let certificate = self.spellings.get(presented)?;
        certificate
            .judge_validity(now)
            .is_ok()
            .then_some(certificate)
    }

    /// The cached certificate, the cached refusal, or the keys of a certificate that is not cached. A certificate that is valid itself but
    /// whose cached chain has expired counts as not cached: another certification path may be valid.
    pub(super) fn find(
        &self,
        shown: &PresentedCertificates,
        now: Timestamp,
    ) -> Result<Result<Arc<Certificate>, Digests>, CertificateFault> {
        let leaf = sha256(&[&shown.leaf]);
        if let Some(certificate) = self.proven.get(&leaf) {
            let own = certificate.validity().get(..1).unwrap_or_default();
            judgement::validity(own, now)?;
            if certificate.judge_validity(now).is_ok() {
                return Ok(Ok(certificate));
            }
        }
        let digests = Digests::of(leaf, &shown.pool);
        let refused = self.refused.get(&digests.leaf);
        let refused = refused.or_else(|| self.refused.get(&digests.with_pool));
        refused.map_or(Ok(Err(digests)), Err)
    }

    pub(super) fn insert(&self, digest: Digest, certificate: Arc<Certificate>) {
        self.proven.insert(digest, certificate);
    }

    pub(super) fn refuse(&self, shown: &Digests, fault: &CertificateFault) {
        let digest = match fault {
            CertificateFault::WrongType(_) | CertificateFault::NotPsd2(_) => shown.leaf,
            CertificateFault::Untrusted(_)
            | CertificateFault::Path(_)
            | CertificateFault::OfCa
            | CertificateFault::Unqualified(_)
            | CertificateFault::Ungranted
            | CertificateFault::Malformed(_)
            | CertificateFault::NotDer(_)
            | CertificateFault::Weak(_) => shown.with_pool,
            CertificateFault::Expired(..) | CertificateFault::NotYetValid(..) => return,
        };
        self.refused.insert(digest, fault.clone());
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Arc<Certificate>> {
        self.proven.iter().map(|(_, certificate)| certificate)
    }
}

fn weight(certificate: &Certificate, spelling: &[u8]) -> u32 {
    // The header value and the parsed fields: about four times the header value.
    let bytes = certificate.presented().len().saturating_mul(4);
    let bytes = bytes.saturating_add(spelling.len());
    u32::try_from(bytes.saturating_add(CERTIFICATE_TAKES)).unwrap_or(u32::MAX)
}

/// The result of a lookup of a request's certificate, before its signature is verified.
#[derive(Debug)]
pub enum CertificateLookup {
    /// A cached certificate: a signature by it has verified in an earlier request. That proves nothing about this request.
    Cached(IdentifiedCertificate),
    /// A certificate that is not cached: its chain must be built.
    Unproven(CandidateCertificate),
}

/// The certificate in a request, chained to an anchor. Only [`Self::verify`] proves that the caller holds its private key.
#[derive(Clone, Debug)]
pub struct IdentifiedCertificate {
    certificate: Arc<Certificate>,
    cached_by: CachedBy,
}

values! {
    /// The place where an accepted certificate was found, for telemetry.
    pub enum CertificateSource {
        /// The connection showed the same header value before.
        Connection = "connection",
        /// The header value was in the cache.
        HeaderValue = "header_value",
        /// The certificate was in the cache, under another header value.
        Certificate = "certificate",
        /// No cache had the certificate, so its chain was built.
        Presented = "none",
    }
}

/// The key by which the cache held the certificate.
#[derive(Clone, Debug)]
enum CachedBy {
    /// The connection's [`CertificateSlot`].
    Connection,
    /// This header value.
    HeaderValue(Arc<[u8]>),
    /// The DER of the certificate, under another header value than this one.
    Certificate(Arc<[u8]>),
    /// The cache did not have the certificate; this is the digest of its DER.
    Nothing(Digest),
}

impl IdentifiedCertificate {
    /// A certificate that the cache did not have, with the digest of its DER.
    pub(super) fn chained(certificate: Certificate, digest: Digest) -> Self {
        Self {
            certificate: Arc::new(certificate),
            cached_by: CachedBy::Nothing(digest),
        }
    }

    pub(super) const fn in_slot(certificate: Arc<Certificate>) -> Self {
        Self {
            certificate,
            cached_by: CachedBy::Connection,
        }
    }

    pub(super) fn spelled(certificate: Arc<Certificate>, presented: &[u8]) -> Self {
        Self {
            cached_by: CachedBy::HeaderValue(certificate.spelling(presented)),
            certificate,
        }
    }

    pub(super) fn known(certificate: Arc<Certificate>, presented: &[u8]) -> Self {
        Self {
            cached_by: CachedBy::Certificate(certificate.spelling(presented)),
            certificate,
        }
    }

    /// The judged certificate.
    pub const fn certificate(&self) -> &Arc<Certificate> {
        &self.certificate
    }

    /// The place where the certificate was found.
    pub const fn source(&self) -> CertificateSource {
        match self.cached_by {
            CachedBy::Connection => CertificateSource::Connection,
            CachedBy::HeaderValue(_) => CertificateSource::HeaderValue,
            CachedBy::Certificate(_) => CertificateSource::Certificate,
            CachedBy::Nothing(_) => CertificateSource::Presented,
        }
    }

    /// Verifies a signature of `message`; `None` if the signature is not by the certificate's key (SIG-9).
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Option<VerifiedSignature> {
        let verified = self.certificate.key().verify_sig(message, signature);
        verified.is_ok().then(|| VerifiedSignature(self.clone()))
    }
}

/// The proof that a signature by a certificate has verified. Only [`IdentifiedCertificate::verify`] makes one.
#[derive(Debug)]
pub struct VerifiedSignature(IdentifiedCertificate);

impl VerifiedSignature {
    /// The certificate, if it has signed nothing else on this day; days are counted from 1970-01-01, in UTC. It costs a request one load of
    /// an atomic. A certificate that is judged anew, as after a reload, may be returned once more.
    pub fn first_of_day(&self, day: u64) -> Option<&Arc<Certificate>> {
        let certificate = &self.0.certificate;
        certificate.begins_day(day).then_some(certificate)
    }

    /// The certificate, and the pool that came with it in this request; on a connection that repeats its header value, the pool that came
    /// with it first.
    ///
    /// # Errors
    /// None in fact: the header value was decoded before the signature was verified.
    pub fn certificates(&self) -> Result<PresentedCertificates, CertificateFault> {
        match &self.0.cached_by {
            CachedBy::HeaderValue(presented) | CachedBy::Certificate(presented) => {
                decode::decode(presented)
            }
            CachedBy::Connection | CachedBy::Nothing(_) => self.0.certificate.certificates(),
        }
    }

    /// Caches the certificate, for the connection and for all connections.
    pub(super) fn keep(&self, cache: &CertificateCache, slot: Option<&CertificateSlot>) {
        let IdentifiedCertificate {
            certificate,
            cached_by,
        } = &self.0;
        let spelling = match cached_by {
            CachedBy::Connection => return,
            CachedBy::HeaderValue(spelling) | CachedBy::Certificate(spelling) => {
                Arc::clone(spelling)
            }
            CachedBy::Nothing(_) => certificate.spelling(certificate.presented()),
        };
        if let CachedBy::Nothing(digest) = cached_by {
            cache.insert(*digest, Arc::clone(certificate));
        }
        if !matches!(cached_by, CachedBy::HeaderValue(_)) {
            let spelling = Arc::clone(&spelling);
            cache.spellings.insert(spelling, Arc::clone(certificate));
        }
        if let Some(slot) = slot {
            slot.put(SlotEntry {
                certificate: Arc::clone(certificate),
                spelling,
            });
        }
    }
}

/// The certificate of the last request on a connection whose signature verified. A TPP repeats its certificate in each request, and
/// comparing the header value costs a tenth of a cache lookup.
#[derive(Debug, Default)]
pub struct CertificateSlot(Mutex<Option<SlotEntry>>);

/// The content of a [`CertificateSlot`]. It has at most 16 KiB of its own, the longest header value.
#[derive(Debug)]
struct SlotEntry {
    certificate: Arc<Certificate>,
    /// The header value; shared with the certificate if both are the same value.
    spelling: Arc<[u8]>,
}

impl CertificateSlot {
    /// Whether no signature on the connection has verified.
    pub fn is_empty(&self) -> bool {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.is_none()
    }

    /// The TPP whose signature on the connection has verified last.
    pub fn tpp(&self) -> Option<TppId> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|held| held.certificate.tpp_id().clone())
    }

    /// The certificate by which a signature on the connection has verified last, if it is the one that is presented.
    pub fn shown_again(&self, presented: &[u8]) -> Option<Arc<Certificate>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_ref()?;
        (*held.spelling == *presented).then(|| Arc::clone(&held.certificate))
    }

    pub(super) fn get(&self, presented: &[u8], generation: u64) -> Option<Arc<Certificate>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_ref()?;
        let is_it = held.certificate.is_of(generation) && *held.spelling == *presented;
        is_it.then(|| Arc::clone(&held.certificate))
    }

    fn put(&self, held: SlotEntry) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }
}

/// The cached certificates of TPPs, each of which has signed a request; telemetry reads their expiry.
#[derive(Clone, Debug)]
pub struct VerifiedCertificates(pub(super) CertificateCache);

impl VerifiedCertificates {
    /// The number of certificates.
    pub fn count(&self) -> usize {
        self.0.all().count()
    }

    /// At most `most` certificates with their notAfter, the earliest first; each serial number of a TPP once.
    pub fn first_to_end(&self, most: usize) -> Vec<(Timestamp, Arc<Certificate>)> {
        let ends = self.0.all().filter_map(|certificate| {
            let end = certificate.validity().first()?.not_after;
            Some((end, certificate))
        });
        let mut ends: Vec<_> = ends.collect();
        ends.sort_by_key(|(end, _)| *end);
        let mut named = HashSet::new();
        ends.retain(|(_, certificate)| {
            named.insert((certificate.tpp_id().clone(), certificate.serial_hex()))
        });
        ends.truncate(most);
        ends
    }
}

// This module needs the development PKI.
#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]
mod tests {
    use super::*;
    use crate::{Anchors, Trust};
    use base64::{Engine, engine::general_purpose::STANDARD};
    use openssl::{hash::MessageDigest, pkey::PKey, sign::Signer, x509::X509};
    use portvakt_development_pki as pki;

    const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

    fn trusted() -> (Trust, String, Vec<u8>) {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let tpp = root.issue(&pki::LeafSpec::default()).unwrap();
        let key = PKey::private_key_from_pem(tpp.key_pem.as_bytes()).unwrap();
        let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
        let signature = signer.sign_oneshot_to_vec(b"message").unwrap();
        let anchors =
            Anchors::of_operator(vec![X509::from_der(root.der()).unwrap()], vec![]).unwrap();
        (Trust::new(anchors), STANDARD.encode(&tpp.der), signature)
    }

    fn armoured(base64: &str, around: &str) -> String {
        format!("{around}-----BEGIN CERTIFICATE-----{base64}-----END CERTIFICATE-----")
    }

    #[test]
    fn what_is_kept_is_weighed() {
        let (trust, base64, signature) = trusted();
        for number in 0..20_000 {
            // A TPP that signs its requests, with a different encoding of its certificate in each.
            let around = format!("{number:01000}");
            let presented = armoured(&base64, &around);
            let slot = CertificateSlot::default();
            let identified = trust.identify(presented.as_bytes(), None, NOW).unwrap();
            let verified = identified.verify(b"message", &signature).unwrap();
            trust.keep(&verified, Some(&slot));
            // Simulates this number of certificates.
            let mut digest = Digest::default();
            digest[..4].copy_from_slice(&u32::to_be_bytes(number));
            let certificate = Arc::clone(identified.certificate());
            trust.cache.insert(digest, certificate);
            trust.cache.refuse(
                &Digests::of(digest, &[]),
                &CertificateFault::NotPsd2("".into()),
            );
        }
        let CertificateCache {
            proven,
            spellings,
            refused,
        } = &trust.cache;
        proven.run_pending_tasks();
        spellings.run_pending_tasks();
        refused.run_pending_tasks();
        assert!((1 << 20..=CERTIFICATES_KEPT).contains(&proven.weighted_size()));
        assert!((1 << 20..=CERTIFICATES_KEPT).contains(&spellings.weighted_size()));
        assert!((1 << 20..=REFUSALS_KEPT).contains(&refused.weighted_size()));
    }

    #[test]
    fn a_certificate_is_noted_once_a_day() {
        let (trust, base64, signature) = trusted();
        let identified = trust.identify(base64.as_bytes(), None, NOW).unwrap();
        let verified = identified.verify(b"message", &signature).unwrap();
        trust.keep(&verified, None);
        let noted = verified.first_of_day(20_000).unwrap();
        assert!(noted.certificates().unwrap().pool.is_empty());
        // Another request, by the cached certificate.
        let identified = trust.identify(base64.as_bytes(), None, NOW).unwrap();
        let verified = identified.verify(b"message", &signature).unwrap();
        let is_noted = |day| verified.first_of_day(day).is_some();
        let days = [20_000, 20_001, 20_001, 20_002];
        assert_eq!(days.map(is_noted), [false, true, false, true]);
    }

    #[test]
    fn nothing_is_kept_without_a_signature() {
        let (trust, base64, signature) = trusted();
        let slot = CertificateSlot::default();
        let find = |presented: &str| trust.find(presented.as_bytes(), Some(&slot), NOW).unwrap();
        for number in 0..3 {
            let CertificateLookup::Unproven(candidate) =
                find(&armoured(&base64, &number.to_string()))
            else {
                panic!("it is known");
            };
            let identified = trust.chain(candidate, NOW).unwrap();
            assert!(identified.verify(b"another message", &signature).is_none());
        }
        let identified = trust.identify(base64.as_bytes(), Some(&slot), NOW).unwrap();
        trust.keep(
            &identified.verify(b"message", &signature).unwrap(),
            Some(&slot),
        );
        let cached_by = |presented: &str| match find(presented) {
            CertificateLookup::Cached(identified) => identified.cached_by,
            CertificateLookup::Unproven(_) => panic!("it is not known"),
        };
        assert!(matches!(cached_by(&base64), CachedBy::Connection));
        assert!(matches!(
            cached_by(&armoured(&base64, "x")),
            CachedBy::Certificate(_)
        ));
        let elsewhere = trust.find(base64.as_bytes(), None, NOW).unwrap();
        let CertificateLookup::Cached(elsewhere) = elsewhere else {
            panic!("it is not known");
        };
        assert!(matches!(elsewhere.cached_by, CachedBy::HeaderValue(_)));
        let long = "x".repeat(super::super::MAX_PRESENTED + 1);
        assert!(trust.find(long.as_bytes(), None, NOW).is_err());
    }
}
