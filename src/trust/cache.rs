//! Which certificates are kept ready, and what keeps them (CRT-12).
//!
//! Invariants: a certificate is kept only once a signature by it has verified, because certificates are public and each has as many
//! spellings as a stranger likes; it is kept by the SHA-256 of its own DER, whatever stood around it and came with it; and what is kept
//! is weighed. A known certificate needs no pool: its chain was found. Deliberately not here: how a certificate is judged.

use super::{Certificate, CertificateFault, Trust, decode::PresentedCertificates, judgement};
use crate::clock::Timestamp;
use aws_lc_rs::{
    digest::{Context, SHA256},
    signature::ParsedPublicKey,
};
use moka::sync::Cache;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How many bytes of TPP certificates are kept ready, twice: by their digests, and by the spellings that they were shown in. It is
/// some 2 000 of them; a country has a few hundred TPPs.
const CERTIFICATES_KEPT: u64 = 32 * 1024 * 1024;

/// What a certificate takes in memory beside its bytes: its key, its chain's validity, where its revocation is published.
const CERTIFICATE_TAKES: usize = 8 * 1024;

/// How many bytes of refusals are remembered: some 8 000 of them.
const REFUSALS_KEPT: u64 = 4 * 1024 * 1024;

/// What a refusal takes in memory, its place in the cache included.
const REFUSAL_TAKES: u32 = 512;

/// How long a refusal is remembered: what only failed for want of memory is judged again soon.
const REFUSALS_LAST: Duration = Duration::from_secs(60);

/// The SHA-256 of a certificate's DER; of one and its pool, that of the digests of all.
pub(super) type Digest = [u8; 32];

/// What a request shows, as it is looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digests {
    leaf: Digest,
    /// Whether a chain is found can depend on the pool.
    with_pool: Digest,
}

impl Digests {
    fn of(leaf: Digest, pool: &[Vec<u8>]) -> Self {
        let pool: Vec<_> = pool.iter().map(|der| sha256(&[der])).collect();
        let mut all: Vec<&[u8]> = vec![b"with its pool", &leaf];
        all.extend(pool.iter().map(|digest| digest.as_slice()));
        Self {
            with_pool: sha256(&all),
            leaf,
        }
    }
}

fn sha256(parts: &[&[u8]]) -> Digest {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut out = [0; 32];
    for (out, byte) in out.iter_mut().zip(context.finish().as_ref()) {
        *out = *byte;
    }
    out
}

/// Verdicts that are remembered, by digests.
#[derive(Clone, Debug)]
pub(super) struct CertificateCache {
    /// Those by which a signature has verified.
    proven: Cache<Digest, Arc<Certificate>>,
    /// The same by the header's values that showed them when they signed: comparing costs less than decoding.
    spellings: Cache<Arc<[u8]>, Arc<Certificate>>,
    /// Refusals that no time can change. What was found once it had chained to an anchor rests on the certificate alone; why it does not
    /// chain, on its pool too: a stranger's pool must not be held against a TPP.
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

    /// The certificate that a TPP has signed by while it showed it so, valid at a moment.
    pub(super) fn spelled(&self, presented: &[u8], now: Timestamp) -> Option<Arc<Certificate>> {
        let certificate = self.spellings.get(presented)?;
        certificate
            .judge_validity(now)
            .is_ok()
            .then_some(certificate)
    }

    /// What is known of a certificate at a moment: one that is kept, or why it is refused. Nothing is known of one whose kept chain is
    /// not valid any more while it is so itself: another way to an anchor may hold.
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

    fn insert(&self, digest: Digest, certificate: Arc<Certificate>) {
        self.proven.insert(digest, certificate);
    }

    fn refuse(&self, shown: &Digests, fault: &CertificateFault) {
        let digest = match fault {
            CertificateFault::WrongType(_) | CertificateFault::NotPsd2(_) => shown.leaf,
            CertificateFault::Untrusted(_)
            | CertificateFault::Malformed(_)
            | CertificateFault::Weak(_) => shown.with_pool,
            CertificateFault::Expired(_) | CertificateFault::NotYetValid(_) => return,
        };
        self.refused.insert(digest, fault.clone());
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Arc<Certificate>> {
        self.proven.iter().map(|(_, certificate)| certificate)
    }
}

fn weight(certificate: &Certificate, spelling: &[u8]) -> u32 {
    // The spelling that showed it, and what was made of it.
    let bytes = certificate.presented().len().saturating_mul(4);
    let bytes = bytes.saturating_add(spelling.len());
    u32::try_from(bytes.saturating_add(CERTIFICATE_TAKES)).unwrap_or(u32::MAX)
}

/// What a request's certificate is to the gateway before its signature is looked at.
#[derive(Debug)]
pub enum CertificateLookup {
    /// One that is kept: a signature by it has verified before, which says nothing of this request.
    Cached(IdentifiedCertificate),
    /// Any other: it costs a chain.
    Unproven(CandidateCertificate),
}

/// A certificate that could be a TPP's, as far as it was cheap to see.
#[derive(Debug)]
pub struct CandidateCertificate {
    pub(super) presented: Arc<[u8]>,
    pub(super) certificates: PresentedCertificates,
    digests: Digests,
    pub(super) key: ParsedPublicKey,
}

impl CandidateCertificate {
    /// Judges what needs no chain.
    pub(super) fn read(
        presented: &[u8],
        certificates: PresentedCertificates,
        digests: Digests,
    ) -> Result<Self, CertificateFault> {
        let (certificate, rest) = judgement::read(&certificates.leaf)?;
        judgement::ends(rest)?;
        judgement::algorithms_agree(&certificate)?;
        let key = judgement::signing_key(&certificate)?;
        judgement::is_no_ca(&certificate)?;
        Ok(Self {
            presented: presented.into(),
            certificates,
            digests,
            key,
        })
    }

    /// Judges the rest: the chain to an anchor, and what the certificate says.
    ///
    /// # Errors
    /// The first fault, in the order of the rules.
    pub fn chain(
        self,
        trust: &Trust,
        now: Timestamp,
    ) -> Result<IdentifiedCertificate, CertificateFault> {
        let digests = self.digests;
        let judged = Certificate::judge(self, trust, now);
        let certificate = judged.inspect_err(|fault| trust.cache.refuse(&digests, fault))?;
        Ok(IdentifiedCertificate {
            certificate: Arc::new(certificate),
            cached_by: CachedBy::Nothing(digests.leaf),
        })
    }

    /// Judges one by which a signature has verified before, and keeps it where it holds.
    pub(super) fn rejudge(self, trust: &Trust, now: Timestamp) {
        let digest = self.digests.leaf;
        if let Ok(IdentifiedCertificate { certificate, .. }) = self.chain(trust, now) {
            trust.cache.insert(digest, certificate);
        }
    }
}

/// The certificate that a request shows, chained to an anchor. That the caller holds its key only a signature shows.
#[derive(Clone, Debug)]
pub struct IdentifiedCertificate {
    certificate: Arc<Certificate>,
    cached_by: CachedBy,
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

    /// The certificate.
    pub const fn certificate(&self) -> &Arc<Certificate> {
        &self.certificate
    }

    /// The proof that whoever signed this message holds the certificate's key; `None` where the signature does not verify (SIG-9).
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Option<VerifiedSignature> {
        let verified = self.certificate.key().verify_sig(message, signature);
        verified.is_ok().then(|| VerifiedSignature(self.clone()))
    }
}

/// A signature by a certificate has verified. Only [`IdentifiedCertificate::verify`] makes one.
#[derive(Debug)]
pub struct VerifiedSignature(IdentifiedCertificate);

impl VerifiedSignature {
    /// Keeps the certificate ready, for the connection and for all.
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

/// The last certificate by which a request of a connection was signed. A TPP shows the same one again and again: comparing it byte by
/// byte costs a tenth of looking it up.
#[derive(Debug, Default)]
pub struct CertificateSlot(Mutex<Option<SlotEntry>>);

/// What a slot holds: 16 KiB of its own at most, since a header is no longer.
#[derive(Debug)]
struct SlotEntry {
    certificate: Arc<Certificate>,
    /// The header's value; shared with the certificate where it is the one that showed it first.
    spelling: Arc<[u8]>,
}

impl CertificateSlot {
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

/// The certificates of TPPs whose signature verified: what telemetry reads.
#[derive(Clone, Debug)]
pub struct VerifiedCertificates(pub(super) CertificateCache);

impl VerifiedCertificates {
    /// Those that end first, with when they do: so many at most, and each serial number of a TPP once.
    pub fn first_to_end(&self, most: usize) -> Vec<(Timestamp, Arc<Certificate>)> {
        let ends = self.0.all().filter_map(|certificate| {
            let end = certificate.validity().first()?.not_after;
            Some((end, certificate))
        });
        let mut ends: Vec<_> = ends.collect();
        ends.sort_by_key(|(end, _)| *end);
        let mut named = HashSet::new();
        ends.retain(|(_, certificate)| {
            named.insert((certificate.tpp_id().to_owned(), certificate.serial_hex()))
        });
        ends.truncate(most);
        ends
    }
}

// It needs the development PKI.
#[cfg(all(test, feature = "sandbox"))]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]
mod tests {
    use super::*;
    use crate::{development_pki as pki, trust::Anchors};
    use base64::{Engine, engine::general_purpose::STANDARD};
    use openssl::{hash::MessageDigest, pkey::PKey, sign::Signer, x509::X509};

    const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

    fn trusted() -> (Trust, String, Vec<u8>) {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let tpp = root.issue(&pki::LeafSpec::default()).unwrap();
        let key = PKey::private_key_from_pem(tpp.key_pem.as_bytes()).unwrap();
        let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
        let signature = signer.sign_oneshot_to_vec(b"message").unwrap();
        let anchors = Anchors::new(vec![X509::from_der(root.der()).unwrap()], vec![]).unwrap();
        (Trust::new(anchors), STANDARD.encode(&tpp.der), signature)
    }

    fn armoured(base64: &str, around: &str) -> String {
        format!("{around}-----BEGIN CERTIFICATE-----{base64}-----END CERTIFICATE-----")
    }

    #[test]
    fn what_is_kept_is_weighed() {
        let (trust, base64, signature) = trusted();
        for number in 0..20_000 {
            // A TPP that signs, and spells its certificate anew each time.
            let around = format!("{number:01000}");
            let presented = armoured(&base64, &around);
            let slot = CertificateSlot::default();
            let identified = trust.identify(presented.as_bytes(), None, NOW).unwrap();
            let verified = identified.verify(b"message", &signature).unwrap();
            trust.keep(&verified, Some(&slot));
            // As if it had as many certificates.
            let mut digest = Digest::default();
            digest[..4].copy_from_slice(&u32::to_be_bytes(number));
            let certificate = Arc::clone(identified.certificate());
            trust.cache.insert(digest, certificate);
            trust
                .cache
                .refuse(&Digests::of(digest, &[]), &CertificateFault::NotPsd2(""));
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
            let identified = candidate.chain(&trust, NOW).unwrap();
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
