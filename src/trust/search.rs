//! The search for a certification path over several issuers of the same name (CRT-2).

use super::{
    CertificateFault,
    path::{CertificationPath, store_of, verify},
};
use openssl::{
    error::ErrorStack,
    x509::{X509, X509VerifyResult},
};

/// The maximum number of signatures that one search verifies. A CA with two keys takes two.
const MAX_SIGNATURES: u8 = 16;

/// The longest issuer key, in bits: verification with a longer key can take milliseconds.
const MAX_KEY: u32 = 8192;

/// The maximum number of complete paths that one search verifies.
const MAX_PATHS: u8 = 8;

/// The longest path, in members below the anchor: the end-entity certificate and its intermediates.
const MAX_MEMBERS: usize = 9;

/// Tries issuers of the same name one by one, because OpenSSL follows only the first: a CA has several certificates, with several keys,
/// and not all of them lead to an anchor. The cost is bounded, because the caller chooses the certificates.
pub(super) struct Search<'a> {
    anchors: &'a [&'a X509],
    pool: &'a [&'a X509],
    /// Whether a valid path is wanted.
    accepts: &'a dyn Fn(&[X509]) -> bool,
    signatures: u8,
    paths: u8,
}

impl<'a> Search<'a> {
    pub(super) const fn new(
        anchors: &'a [&'a X509],
        pool: &'a [&'a X509],
        accepts: &'a dyn Fn(&[X509]) -> bool,
    ) -> Self {
        Self {
            anchors,
            pool,
            accepts,
            signatures: MAX_SIGNATURES,
            paths: MAX_PATHS,
        }
    }

    /// A wanted path to an anchor that OpenSSL accepts; `None` if there was no choice of issuers, or no path is valid and wanted.
    pub(super) fn find(
        mut self,
        leaf: &'a X509,
    ) -> Result<Option<CertificationPath>, CertificateFault> {
        let found = if self.has_choice(leaf) {
            self.extend(&mut vec![leaf])
        } else {
            Ok(None)
        };
        // A failed verification leaves an error in OpenSSL's queue, which TLS would take for its own.
        drop(ErrorStack::get());
        found
    }

    /// Whether a certificate on the path has several issuers by name. Verifies no signature.
    fn has_choice(&self, leaf: &'a X509) -> bool {
        let (mut path, mut child) = (vec![leaf], leaf);
        while path.len() <= MAX_MEMBERS {
            let issuers: Vec<_> = self.issuers(&path, child).collect();
            let Some(((issuer, is_anchor), others)) = issuers.split_first() else {
                return false;
            };
            // A copy of an anchor in the pool is not another issuer.
            if others.iter().any(|(other, _)| other != issuer) {
                return true;
            }
            if *is_anchor {
                return false;
            }
            path.push(issuer);
            child = issuer;
        }
        false
    }

    /// The possible issuers of a certificate, by subject and key identifier, anchors first.
    fn issuers(&self, path: &[&'a X509], child: &X509) -> impl Iterator<Item = (&'a X509, bool)> {
        let (anchors, pool) = (self.anchors, self.pool);
        let anchors = anchors.iter().map(|anchor| (*anchor, true));
        let pool = pool.iter().map(|other| (*other, false));
        anchors
            .chain(pool)
            .filter(move |(issuer, _)| issuer.issued(child) == X509VerifyResult::OK)
            .filter(move |(issuer, _)| !path.contains(issuer))
    }

    /// Extends a path by each issuer that signed its last member.
    fn extend(
        &mut self,
        path: &mut Vec<&'a X509>,
    ) -> Result<Option<CertificationPath>, CertificateFault> {
        let (Some(leaf), Some(child)) = (path.first().copied(), path.last().copied()) else {
            return Ok(None);
        };
        let issuers: Vec<_> = self.issuers(path, child).collect();
        for (issuer, is_anchor) in issuers {
            if self.signatures == 0 || self.paths == 0 {
                return Ok(None);
            }
            self.signatures = self.signatures.saturating_sub(1);
            let key = issuer.public_key().ok();
            let key = key.filter(|key| key.bits() <= MAX_KEY);
            if !key.is_some_and(|key| child.verify(&key).unwrap_or(false)) {
                continue;
            }
            let found = if is_anchor {
                self.paths = self.paths.saturating_sub(1);
                let store = store_of(&[issuer])?;
                let verified = verify(&store, leaf, path.get(1..).unwrap_or_default())?;
                let is_wanted = verified.fault.is_none() && (self.accepts)(&verified.members);
                is_wanted.then_some(verified)
            } else if path.len() < MAX_MEMBERS {
                path.push(issuer);
                let found = self.extend(path)?;
                path.pop();
                found
            } else {
                None
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

// It needs the development PKI.
#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
mod tests {
    use super::*;
    use openssl::rsa::Rsa;
    use portvakt_development_pki as pki;
    use time::{Duration, macros::datetime};

    /// Certificates of one CA, each of which could have issued each other: more ways than anybody may ask for.
    #[test]
    fn what_a_stranger_has_searched_is_bounded() {
        let key = Rsa::generate(2048).unwrap().private_key_to_pem().unwrap();
        let key = pki::Key::RsaPem(String::from_utf8(key).unwrap());
        let ca = |days: i64| {
            let spec = pki::CaSpec {
                key: key.clone(),
                not_after: datetime!(2040-01-01 0:00 UTC) + Duration::days(days),
                ..pki::CaSpec::development_root()
            };
            pki::Ca::root(&spec).unwrap()
        };
        let leaf = ca(0).issue(&pki::LeafSpec::default()).unwrap();
        let leaf = X509::from_der(&leaf.der).unwrap();
        let pool: Vec<_> = (0..8)
            .map(|days| X509::from_der(ca(days).der()).unwrap())
            .collect();
        let shown: Vec<_> = pool.iter().collect();
        let mut search = Search::new(&[], &shown, &|_| true);
        assert!(search.has_choice(&leaf));
        assert!(search.extend(&mut vec![&leaf]).unwrap().is_none());
        assert_eq!(search.signatures, 0);
        // One of them is an anchor: it is found at once.
        let find = |accepts: &dyn Fn(&[X509]) -> bool| {
            let search = Search::new(&shown[7..], &shown[..7], accepts);
            search.find(&leaf).unwrap()
        };
        assert_eq!(find(&|_| true).unwrap().members.len(), 2);
        // Longer paths lead to it too, but nobody wants any of them.
        let seen = std::cell::Cell::new(0);
        let refuses = |_: &[X509]| {
            seen.set(seen.get() + 1);
            false
        };
        assert!(find(&refuses).is_none());
        assert!(
            (2..=usize::from(MAX_PATHS)).contains(&seen.get()),
            "{seen:?}"
        );
    }
}
