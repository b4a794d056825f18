//! Certification paths to a trust anchor (CRT-2, CRT-10), built and verified by OpenSSL, which implements RFC 5280 with directoryName
//! constraints.
//!
//! OpenSSL checks signatures, constraints, key usage and unknown critical extensions. This module does not check validity periods: a
//! chain is cached, and each request judges the validity of every member.

use super::{
    CertificateFault, CertificateTypes, Grants, ListedAnchors, Validity,
    path::{CertificationPath, store_of, validity, validity_of, verify},
    search::Search,
};
use openssl::{
    error::ErrorStack,
    x509::{X509, X509Ref},
};
use portvakt_base::clock::Timestamp;
use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The trust anchors of an environment (CRT-9) and its configured intermediates.
///
/// Whoever makes them says whose they are: the operator's own, or those of trusted lists, which come with their services
/// ([`ListedAnchors`]). No other way leads to them:
///
/// ```compile_fail,E0624
/// use portvakt_trust::{Anchors, Grants};
///
/// let anchors = Anchors::with_grants(Vec::new(), Vec::new(), Grants::default());
/// ```
pub struct Anchors {
    /// By the hash of their subjects. OpenSSL gets a store of those that a path may lead to: one of all takes longer than their square.
    anchors: HashMap<u32, Vec<X509>>,
    intermediates: Vec<X509>,
    /// What trusted lists say of the anchors.
    grants: Grants,
    /// Anchors and intermediates that share a subject (DER) with another: usually certificates of one CA with different keys.
    namesakes: HashMap<Vec<u8>, Vec<X509>>,
}

impl std::fmt::Debug for Anchors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Anchors")
            .field("anchors", &self.anchors.values().flatten().count())
            .field("intermediates", &self.intermediates.len())
            .finish()
    }
}

impl Anchors {
    /// Anchors that the operator names: each vouches for every type of certificate, whatever a trusted list says. The anchors of trusted
    /// lists are not such ([`Self::of_lists`]). `intermediates` are not trusted, and only help to build a path.
    ///
    /// # Errors
    /// A failure of OpenSSL.
    pub fn of_operator(anchors: Vec<X509>, intermediates: Vec<X509>) -> Result<Self, ErrorStack> {
        Self::with_grants(anchors, intermediates, Grants::default())
    }

    /// The anchors of trusted lists for these types, with all that the lists say (CRT-3), beside the operator's `own`: each once. An anchor
    /// that the operator names too is the operator's.
    ///
    /// # Errors
    /// A failure of OpenSSL.
    pub fn of_lists(
        listed: &ListedAnchors,
        types: CertificateTypes,
        own: Vec<X509>,
        intermediates: Vec<X509>,
    ) -> Result<Self, ErrorStack> {
        let mut grants = listed.grants().clone();
        for anchor in &own {
            grants.forget(anchor)?;
        }
        let mut seen = HashSet::new();
        let all = own.into_iter().chain(listed.of_types(types).cloned());
        let all = all.filter(|one| one.to_der().is_ok_and(|der| seen.insert(der)));
        Self::with_grants(all.collect(), intermediates, grants)
    }

    /// The anchors of trusted lists alone, for these types: the operator's own among these anchors only help to build a path to them, as the
    /// intermediates do.
    ///
    /// # Errors
    /// A failure of OpenSSL.
    pub fn by_lists_alone(
        &self,
        listed: &ListedAnchors,
        types: CertificateTypes,
    ) -> Result<Self, ErrorStack> {
        let of_lists: HashSet<_> = listed
            .of_types(types)
            .flat_map(|one| one.to_der())
            .collect();
        let own = self.anchors.values().flatten();
        let own = own.filter(|one| one.to_der().is_ok_and(|der| !of_lists.contains(&der)));
        let intermediates = own.chain(&self.intermediates).cloned().collect();
        Self::of_lists(listed, types, Vec::new(), intermediates)
    }

    /// Anchors, and what trusted lists say of them.
    pub(super) fn with_grants(
        anchors: Vec<X509>,
        intermediates: Vec<X509>,
        grants: Grants,
    ) -> Result<Self, ErrorStack> {
        let namesakes = namesakes(anchors.iter().chain(&intermediates))?;
        let mut by_subject: HashMap<_, Vec<_>> = HashMap::new();
        for anchor in anchors {
            let name = anchor.subject_name_hash();
            by_subject.entry(name).or_default().push(anchor);
        }
        Ok(Self {
            anchors: by_subject,
            intermediates,
            grants,
            namesakes,
        })
    }

    /// What trusted lists say of the anchors, but for those that the operator names too.
    pub const fn grants(&self) -> &Grants {
        &self.grants
    }

    /// The certification paths of a CA's other keys. A certificate counts as the same CA's if it has the same subject, is valid now and
    /// leads to an anchor of the same name as the CA's own chain; a CA of the same name under another anchor is a different CA. A CA
    /// that has changed its key may sign its CRLs with either key (RFC 5280, 6.3.3 f).
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
                let any = |_: &[X509]| Ok(());
                let path = self.path_to_anchor(&other.to_der().ok()?, &[], now, &any);
                let path = path.ok()?;
                let path = path.fault.is_none().then_some(path.members)?;
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

    /// Builds the chain of an end-entity certificate (DER) to an anchor, with the help of an untrusted pool. Returns the validity of every
    /// member, the end-entity certificate's first.
    ///
    /// # Errors
    /// [`CertificateFault::Malformed`], [`CertificateFault::Untrusted`], or one that [`CertificateFault::is_by_lists`]. Validity is not judged here, but an anchor
    /// or intermediate that is not valid at `now` is used only if there is no path without it.
    pub fn chain(
        &self,
        leaf: &[u8],
        pool: &[Vec<u8>],
        types: CertificateTypes,
        now: Timestamp,
    ) -> Result<Vec<Validity>, CertificateFault> {
        validity(&self.members(leaf, pool, types, now)?)
    }

    /// The same as [`Self::chain`], but returns the members: the end-entity certificate first, the anchor last.
    pub(super) fn members(
        &self,
        leaf: &[u8],
        pool: &[Vec<u8>],
        types: CertificateTypes,
        now: Timestamp,
    ) -> Result<Vec<X509>, CertificateFault> {
        let path = self.path(leaf, pool, types, now)?;
        path.fault.map_or(Ok(path.members), Err)
    }

    /// The path of an end-entity certificate to an anchor that vouches for it as one of these types; otherwise with its fault, and as far as
    /// it goes.
    pub fn path(
        &self,
        leaf: &[u8],
        pool: &[Vec<u8>],
        types: CertificateTypes,
        now: Timestamp,
    ) -> Result<CertificationPath, CertificateFault> {
        let judge = |members: &[X509]| self.grants.judge(members, types);
        self.path_to_anchor(leaf, pool, now, &judge)
    }

    /// The path of any certificate to an anchor, the first that `judge` accepts. Where there is none: with its fault, and as far as it goes.
    fn path_to_anchor(
        &self,
        leaf: &[u8],
        pool: &[Vec<u8>],
        now: Timestamp,
        judge: &dyn Fn(&[X509]) -> Result<(), CertificateFault>,
    ) -> Result<CertificationPath, CertificateFault> {
        let unreadable = |_| {
            CertificateFault::Malformed("it is not a DER certificate that OpenSSL reads".into())
        };
        let leaf = X509::from_der(leaf).map_err(unreadable)?;
        let pool = pool
            .iter()
            .map(|der| X509::from_der(der).map_err(unreadable))
            .collect::<Result<Vec<_>, _>>()?;
        let all: Vec<&X509> = pool.iter().chain(&self.intermediates).collect();
        let is_valid = |certificate: &&X509| is_valid(certificate, now);
        let valid: Vec<&X509> = all.iter().copied().filter(is_valid).collect();
        // OpenSSL follows the first issuer with a matching name, even to a dead end: so issuers that are not valid are left out.
        let named = self.named_by(&leaf, &all);
        let anchors: Vec<&X509> = named.iter().copied().filter(is_valid).collect();
        let path = judged(verify(&store_of(&anchors)?, &leaf, &valid)?, judge);
        if path.fault.is_none() {
            return Ok(path);
        }
        let accepts = |members: &[X509]| judge(members).is_ok();
        let search = Search::new(&anchors, &valid, &accepts);
        if let Some(other) = search.find(&leaf)? {
            return Ok(other);
        }
        // If all certificates are valid, a second search would find the same path. One that leads to an anchor is not looked for any more.
        let is_complete = path
            .fault
            .as_ref()
            .is_some_and(CertificateFault::is_by_lists);
        let are_all_valid = anchors.len() == named.len() && valid.len() == all.len();
        if is_complete || are_all_valid {
            return Ok(path);
        }
        Ok(judged(verify(&store_of(&named)?, &leaf, &all)?, judge))
    }

    /// The anchors at which a path of these certificates can end: the one that is the end-entity certificate, the issuers by name, and theirs.
    fn named_by(&self, leaf: &X509Ref, pool: &[&X509]) -> Vec<&X509> {
        let mut names = vec![leaf.subject_name_hash(), leaf.issuer_name_hash()];
        names.extend(
            pool.iter()
                .map(|certificate| certificate.issuer_name_hash()),
        );
        let (mut seen, mut named) = (HashSet::new(), Vec::new());
        while let Some(name) = names.pop() {
            if seen.insert(name) {
                let found = self.anchors.get(&name).into_iter().flatten();
                let found: Vec<_> = found.collect();
                names.extend(found.iter().map(|anchor| anchor.issuer_name_hash()));
                named.extend(found);
            }
        }
        named
    }
}

/// A path, with the fault that a judge finds in one without a fault.
fn judged(
    mut path: CertificationPath,
    judge: &dyn Fn(&[X509]) -> Result<(), CertificateFault>,
) -> CertificationPath {
    if path.fault.is_none() {
        path.fault = judge(&path.members).err();
    }
    path
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

/// The certificates that share a subject (DER) with another, by subject.
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
