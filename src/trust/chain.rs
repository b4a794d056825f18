//! Chains to a trust anchor (CRT-2, CRT-10), built and verified by OpenSSL: it knows all of RFC 5280, directoryName
//! constraints too.
//!
//! OpenSSL decides signatures, constraints, key usage and unknown critical extensions. Validity is left to us: a
//! chain is remembered, and each of its members is judged at the time of every request.

use super::{CertificateFault, Validity, search::Search};
use crate::clock::Timestamp;
use openssl::{
    asn1::{Asn1Time, Asn1TimeRef},
    error::ErrorStack,
    stack::Stack,
    x509::{
        X509, X509Ref, X509StoreContext,
        store::{X509Store, X509StoreBuilder},
        verify::{X509VerifyFlags, X509VerifyParam},
    },
};
use std::{
    cmp::Ordering,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The security level at which RSA and DSA keys under 2048 bits, MD5 and SHA-1 fail (CRT-10; SSL_CTX_set_security_level).
pub(super) const SECURITY_LEVEL: i32 = 2;

/// Longer chains than this are not built; eIDAS chains have two to four members.
const MAX_DEPTH: i32 = 8;

/// The trust anchors of an environment (CRT-9) and the intermediates that it knows.
pub struct Anchors {
    /// All of them.
    store: X509Store,
    anchors: Vec<X509>,
    intermediates: Vec<X509>,
    first_end: Option<Timestamp>,
    /// Those that are valid at the moment that was asked for last.
    valid: Mutex<Option<Arc<ValidAnchors>>>,
    /// All of them by subject (DER), where several have the same: a CA's certificates with different keys, most often.
    namesakes: HashMap<Vec<u8>, Vec<X509>>,
}

impl std::fmt::Debug for Anchors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Anchors")
            .field("anchors", &self.anchors.len())
            .field("intermediates", &self.intermediates.len())
            .finish()
    }
}

impl Anchors {
    /// Anchors, which are trusted, and intermediates, which are not: they only help to find the way.
    ///
    /// # Errors
    /// What OpenSSL says.
    pub fn new(anchors: Vec<X509>, intermediates: Vec<X509>) -> Result<Self, ErrorStack> {
        let namesakes = namesakes(anchors.iter().chain(&intermediates))?;
        let ends = anchors.iter().filter_map(|anchor| validity_of(anchor).ok());
        let first_end = ends.map(|validity| validity.not_after).min();
        let store = store_of(&anchors)?;
        Ok(Self {
            store,
            anchors,
            intermediates,
            first_end,
            valid: Mutex::new(None),
            namesakes,
        })
    }

    /// The certificates of a CA's other keys, each with those above it: those of its name, valid now, that lead to an anchor of the same name as that of
    /// its own chain. A CA that has changed its key signs its lists with either (RFC 5280, 6.3.3 f); a CA elsewhere that only happens
    /// to have the same name is another one.
    pub(super) fn other_keys(
        &self,
        issuer: &X509Ref,
        anchor: Option<&X509>,
        now: Timestamp,
    ) -> Vec<Arc<[Vec<u8>]>> {
        let named = issuer.subject_name().to_der();
        let Some(all) = named.ok().and_then(|name| self.namesakes.get(&name)) else {
            return Vec::new();
        };
        let others = all.iter().filter(|other| !has_key_of(other, issuer));
        others
            .filter_map(|other| {
                let path = self.members(&other.to_der().ok()?, &[], now).ok()?;
                let valid = validity(&path).ok()?;
                let end = path.last().zip(anchor).is_some_and(|(end, anchor)| {
                    let same = end.subject_name().try_cmp(anchor.subject_name());
                    same.is_ok_and(Ordering::is_eq)
                });
                let holds = end && valid.iter().all(|member| member.contains(now));
                let path = path.iter().map(|member| member.to_der().ok());
                path.collect::<Option<_>>().filter(|_| holds)
            })
            .collect()
    }

    /// When the first of the anchors ends; `None` where there is none.
    pub const fn first_end(&self) -> Option<Timestamp> {
        self.first_end
    }

    /// Chains a certificate (DER) to an anchor, with the help of an untrusted pool, and gives the validity of every
    /// member, the certificate's own first.
    ///
    /// # Errors
    /// [`CertificateFault::Malformed`] or [`CertificateFault::Untrusted`]. Validity is not judged here, but an anchor
    /// or intermediate that is not valid at `now` is used only where no other will do.
    pub fn chain(
        &self,
        leaf: &[u8],
        pool: &[Vec<u8>],
        now: Timestamp,
    ) -> Result<Vec<Validity>, CertificateFault> {
        validity(&self.members(leaf, pool, now)?)
    }

    /// The same, and gives the members: the certificate itself first, the anchor last.
    pub(super) fn members(
        &self,
        leaf: &[u8],
        pool: &[Vec<u8>],
        now: Timestamp,
    ) -> Result<Vec<X509>, CertificateFault> {
        let path = self.path(leaf, pool, now)?;
        path.fault.map_or(Ok(path.members), Err)
    }

    /// The same, with the members, and as far as it can be built where it leads to no anchor.
    pub(crate) fn path(
        &self,
        leaf: &[u8],
        pool: &[Vec<u8>],
        now: Timestamp,
    ) -> Result<CertificationPath, CertificateFault> {
        let unreadable =
            |_| CertificateFault::Malformed("it is not a DER certificate that OpenSSL reads");
        let leaf = X509::from_der(leaf).map_err(unreadable)?;
        let pool = pool
            .iter()
            .map(|der| X509::from_der(der).map_err(unreadable))
            .collect::<Result<Vec<_>, _>>()?;
        let all: Vec<&X509> = pool.iter().chain(&self.intermediates).collect();
        let is_valid = |certificate: &&X509| is_valid(certificate, now);
        let valid: Vec<&X509> = all.iter().copied().filter(is_valid).collect();
        // OpenSSL takes the first issuer that fits by its name, however it ends: those that are not valid are no choice.
        let anchors = self.valid(now).map_err(failed)?;
        let path = verify(&anchors.store, &leaf, &valid)?;
        if path.fault.is_none() {
            return Ok(path);
        }
        if let Some(other) = Search::new(&anchors.anchors, &valid).find(&leaf)? {
            return Ok(other);
        }
        // Where every one is valid, another look would find the same.
        if anchors.anchors.len() == self.anchors.len() && valid.len() == all.len() {
            return Ok(path);
        }
        verify(&self.store, &leaf, &all)
    }

    /// The anchors that are valid at a moment. They are kept as long as they are the same: a list has hundreds.
    fn valid(&self, now: Timestamp) -> Result<Arc<ValidAnchors>, ErrorStack> {
        let mut kept = self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(valid) = kept.as_ref().filter(|valid| valid.during.contains(now)) {
            return Ok(Arc::clone(valid));
        }
        let valid = Arc::new(ValidAnchors::at(&self.anchors, now)?);
        *kept = Some(Arc::clone(&valid));
        Ok(valid)
    }
}

/// The anchors that are valid at a moment.
struct ValidAnchors {
    /// While they are the same.
    during: Validity,
    store: X509Store,
    anchors: Vec<X509>,
}

impl ValidAnchors {
    fn at(all: &[X509], now: Timestamp) -> Result<Self, ErrorStack> {
        let mut during = Validity {
            not_before: Timestamp::from_unix(0),
            not_after: Timestamp::from_unix(u64::MAX),
        };
        for Validity {
            not_before,
            not_after,
        } in all.iter().filter_map(|anchor| validity_of(anchor).ok())
        {
            let ended = Timestamp::from_unix(not_after.unix().saturating_add(1));
            for change in [not_before, ended] {
                if change <= now {
                    during.not_before = during.not_before.max(change);
                } else {
                    let last = Timestamp::from_unix(change.unix().saturating_sub(1));
                    during.not_after = during.not_after.min(last);
                }
            }
        }
        let valid = all.iter().filter(|anchor| is_valid(anchor, now));
        let anchors: Vec<_> = valid.cloned().collect();
        Ok(Self {
            during,
            store: store_of(&anchors)?,
            anchors,
        })
    }
}

/// A store of anchors, and how chains to them are verified.
pub(super) fn store_of(anchors: &[X509]) -> Result<X509Store, ErrorStack> {
    let mut parameters = X509VerifyParam::new()?;
    // A trusted list names the CA that issues, not its root: an anchor need not be self-signed.
    parameters.set_flags(X509VerifyFlags::PARTIAL_CHAIN | X509VerifyFlags::NO_CHECK_TIME)?;
    parameters.set_auth_level(SECURITY_LEVEL);
    parameters.set_depth(MAX_DEPTH);
    let mut store = X509StoreBuilder::new()?;
    store.set_param(&parameters)?;
    for anchor in anchors {
        store.add_cert(anchor.clone())?;
    }
    Ok(store.build())
}

pub(super) fn verify(
    store: &X509Store,
    leaf: &X509Ref,
    pool: &[&X509],
) -> Result<CertificationPath, CertificateFault> {
    let mut untrusted = Stack::new().map_err(failed)?;
    for certificate in pool {
        untrusted.push((*certificate).clone()).map_err(failed)?;
    }
    let mut context = X509StoreContext::new().map_err(failed)?;
    let judged = context.init(store, leaf, &untrusted, |context| {
        let holds = context.verify_cert()?;
        let fault = (!holds).then(|| {
            let (why, depth) = (context.error().error_string(), context.error_depth());
            CertificateFault::Untrusted(format!("{why} (at depth {depth})"))
        });
        let members = context
            .chain()
            .map(|chain| chain.iter().map(ToOwned::to_owned).collect::<Vec<_>>());
        Ok((members.unwrap_or_default(), fault))
    });
    drop(ErrorStack::get());
    let (members, fault) = judged.map_err(failed)?;
    let fault = fault.or_else(|| {
        members
            .is_empty()
            .then(|| CertificateFault::Untrusted("OpenSSL gave no chain".into()))
    });
    Ok(CertificationPath { members, fault })
}

pub(super) fn failed(error: ErrorStack) -> CertificateFault {
    CertificateFault::Untrusted(format!("OpenSSL failed: {error}"))
}

fn is_valid(certificate: &X509Ref, now: Timestamp) -> bool {
    validity_of(certificate).is_ok_and(|validity| validity.contains(now))
}

fn has_key_of(one: &X509Ref, other: &X509Ref) -> bool {
    let keys = one
        .public_key()
        .and_then(|key| Ok((key, other.public_key()?)));
    keys.is_ok_and(|(one, other)| one.public_eq(&other))
}

/// Those of which several have the same subject, by it (DER).
fn namesakes<'a>(
    all: impl Iterator<Item = &'a X509>,
) -> Result<HashMap<Vec<u8>, Vec<X509>>, ErrorStack> {
    let mut named: HashMap<_, Vec<_>> = HashMap::new();
    for certificate in all {
        let name = certificate.subject_name().to_der()?;
        named.entry(name).or_default().push(certificate.clone());
    }
    named.retain(|_, same| same.len() > 1);
    Ok(named)
}

/// A certificate, and those above it as far as they were found.
pub(crate) struct CertificationPath {
    /// The certificate itself first.
    pub(crate) members: Vec<X509>,
    /// Why it leads to no anchor, or not by the rules.
    pub(crate) fault: Option<CertificateFault>,
}

impl CertificationPath {
    /// When each member is valid.
    pub(crate) fn validity(&self) -> Result<Vec<Validity>, CertificateFault> {
        validity(&self.members)
    }
}

/// When each member of a chain is valid.
pub(super) fn validity(members: &[X509]) -> Result<Vec<Validity>, CertificateFault> {
    members
        .iter()
        .map(|member| validity_of(member))
        .collect::<Result<_, _>>()
        .map_err(failed)
}

fn validity_of(certificate: &X509Ref) -> Result<Validity, ErrorStack> {
    Ok(Validity {
        not_before: timestamp(certificate.not_before())?,
        not_after: timestamp(certificate.not_after())?,
    })
}

/// When a certificate (DER) ends; `None` where OpenSSL cannot read it.
pub(crate) fn end_of(der: &[u8]) -> Option<Timestamp> {
    let certificate = X509::from_der(der).ok()?;
    Some(validity_of(&certificate).ok()?.not_after)
}

/// A time before 1970 is the epoch: nothing is judged that far back.
fn timestamp(time: &Asn1TimeRef) -> Result<Timestamp, ErrorStack> {
    let since = Asn1Time::from_unix(0)?.diff(time)?;
    let seconds = i64::from(since.days)
        .saturating_mul(86_400)
        .saturating_add(i64::from(since.secs));
    Ok(Timestamp::from_unix(
        u64::try_from(seconds).unwrap_or_default(),
    ))
}
