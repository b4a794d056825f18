//! Certification paths as OpenSSL builds and verifies them (CRT-2, CRT-10), and the validity of their members.
//!
//! Deliberately not here: the choice of the anchors and of the untrusted certificates.

use super::{CertificateFault, PathFault, Validity};
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
use portvakt_base::clock::Timestamp;

/// The security level at which RSA and DSA keys under 2048 bits, MD5 and SHA-1 fail (CRT-10; SSL_CTX_set_security_level).
pub(super) const SECURITY_LEVEL: i32 = 2;

/// The maximum depth of a chain; eIDAS chains have two to four members.
const MAX_DEPTH: i32 = 8;

/// A certification path (RFC 5280, 6.1), complete or partial.
pub struct CertificationPath {
    /// The end-entity certificate first.
    pub members: Vec<X509>,
    /// The reason why the path is not valid or does not lead to an anchor.
    pub fault: Option<CertificateFault>,
}

impl CertificationPath {
    /// The validity of each member.
    pub fn validity(&self) -> Result<Vec<Validity>, CertificateFault> {
        validity(&self.members)
    }
}

/// An OpenSSL store of a few anchors, with the parameters of chain verification.
pub(super) fn store_of(anchors: &[&X509]) -> Result<X509Store, CertificateFault> {
    store(anchors).map_err(failed)
}

fn store(anchors: &[&X509]) -> Result<X509Store, ErrorStack> {
    let mut parameters = X509VerifyParam::new()?;
    // A trusted list names the CA that issues, not its root: an anchor need not be self-signed.
    parameters.set_flags(X509VerifyFlags::PARTIAL_CHAIN | X509VerifyFlags::NO_CHECK_TIME)?;
    parameters.set_auth_level(SECURITY_LEVEL);
    parameters.set_depth(MAX_DEPTH);
    let mut store = X509StoreBuilder::new()?;
    store.set_param(&parameters)?;
    for anchor in anchors {
        store.add_cert((*anchor).clone())?;
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
            let found = context.error();
            CertificateFault::Path(PathFault {
                why: found.error_string(),
                number: found.as_raw(),
                depth: context.error_depth(),
            })
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

/// The validity of each member of a chain.
pub(super) fn validity(members: &[X509]) -> Result<Vec<Validity>, CertificateFault> {
    members
        .iter()
        .map(|member| validity_of(member))
        .collect::<Result<_, _>>()
        .map_err(failed)
}

/// The period in which a certificate is valid.
pub fn validity_of(certificate: &X509Ref) -> Result<Validity, ErrorStack> {
    Ok(Validity {
        not_before: timestamp(certificate.not_before())?,
        not_after: timestamp(certificate.not_after())?,
    })
}

/// Converts a time; a time before 1970 becomes the epoch.
fn timestamp(time: &Asn1TimeRef) -> Result<Timestamp, ErrorStack> {
    let since = Asn1Time::from_unix(0)?.diff(time)?;
    let seconds = i64::from(since.days)
        .saturating_mul(86_400)
        .saturating_add(i64::from(since.secs));
    Ok(Timestamp::from_unix(
        u64::try_from(seconds).unwrap_or_default(),
    ))
}
