//! Certificate revocation lists (RFC 5280, section 5): complete and direct ones only.
//!
//! A CRL is valid if a key of the issuer of the certificate signed it (RFC 5280, 6.3.3 f), if its scope covers the certificate, and if it has
//! no unknown critical extension. Delta CRLs, indirect CRLs and CRLs for some reasons only are refused (CRT-6), because they are not
//! complete. A [`Crl`] holds a sorted table of serial numbers, so that a lookup parses nothing.

use super::{SourceFault, algorithm};
use crate::{
    Validity,
    der::{Element, tag},
};
use openssl::x509::{X509, X509Crl, X509KeyUsage, X509Ref};
use portvakt_base::clock::Timestamp;
use std::{cmp::Ordering, sync::Arc};
use x509_parser::{
    extensions::X509Extension,
    prelude::FromDer,
    revocation_list::{CertificateRevocationList, RevokedCertificate},
    time::ASN1Time,
};

const CRL_NUMBER: &str = "2.5.29.20";
const REASON: &str = "2.5.29.21";
const INVALIDITY_DATE: &str = "2.5.29.24";
const DELTA_INDICATOR: &str = "2.5.29.27";
const ISSUING_POINT: &str = "2.5.29.28";
const CERTIFICATE_ISSUER: &str = "2.5.29.29";
const AUTHORITY_KEY: &str = "2.5.29.35";

/// A verified CRL.
#[derive(Debug)]
pub(super) struct Crl {
    /// The name of the issuer, for display.
    pub(super) issuer_name: String,
    pub(super) this_update: Timestamp,
    pub(super) next_update: Timestamp,
    /// The certification path of the signer, if another key of the CA than that of the issuing certificate signed the CRL. Its revocation
    /// status is judged elsewhere.
    pub(super) signer: Option<Chain>,
    /// Serial number (the content of the INTEGER) and revocation date, sorted by serial number.
    revoked: Box<[(Box<[u8]>, Timestamp)]>,
}

/// The certificates that a CRL must cover.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// Certificates of CAs, or of end entities.
    pub(super) of_ca: bool,
    /// The names of the distribution points in the certificate, each the DER of a GeneralName.
    pub(super) points: Vec<Box<[u8]>>,
}

/// The keys that may sign a CRL: that of the issuing certificate, and the other keys of the same CA.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Signers {
    /// The issuing certificate, DER.
    issuer: Arc<[u8]>,
    others: Arc<[Chain]>,
}

/// The certification path of a CA's other key: DER, the anchor last.
pub(crate) type Chain = Arc<[Vec<u8>]>;

impl Signers {
    pub(super) fn new(issuer: Arc<[u8]>, others: Vec<Chain>) -> Self {
        Self {
            issuer,
            others: others.into(),
        }
    }

    /// The certificate of the issuing CA.
    pub(super) fn issuer(&self) -> Result<X509, SourceFault> {
        certificate(&self.issuer)
    }

    /// The certificate of the issuing CA, DER.
    pub(super) fn issuer_der(&self) -> &[u8] {
        &self.issuer
    }

    /// The path of the other key that signed the CRL; its certificate must have the key usage cRLSign.
    fn other(&self, signed_by: impl Fn(&X509Ref) -> bool) -> Option<&Chain> {
        self.others.iter().find(|chain| {
            let other = chain.first().and_then(|der| certificate(der).ok());
            other.is_some_and(|other| {
                let usage = other.key_usage();
                usage.is_some_and(|usage| usage.contains(X509KeyUsage::CRL_SIGN))
                    && signed_by(&other)
            })
        })
    }
}

/// Parses a certificate (DER) with OpenSSL.
pub(super) fn certificate(der: &[u8]) -> Result<X509, SourceFault> {
    X509::from_der(der).map_err(|_| SourceFault::Invalid("OpenSSL cannot read the certificate"))
}

impl Crl {
    /// Parses a CRL (DER or PEM), and verifies its signature and its scope.
    pub(super) fn read(
        bytes: &[u8],
        signers: &Signers,
        scope: &Scope,
    ) -> Result<Self, SourceFault> {
        let der = to_der(bytes)?;
        let (rest, list) = CertificateRevocationList::from_der(&der)
            .map_err(|_| SourceFault::Invalid("it is no CRL"))?;
        if !rest.is_empty() {
            return Err(SourceFault::Invalid("bytes follow the CRL"));
        }
        is_complete(&list)?;
        covers(&list, scope)?;
        let this_update = timestamp(list.last_update());
        let next_update = next_update(&list)?;
        let issuer = signers.issuer()?;
        let signer = match is_signed(&der, &list, &issuer) {
            Ok(()) => None,
            Err(fault) => {
                let signed_by = |other: &X509Ref| is_signed(&der, &list, other).is_ok();
                Some(signers.other(signed_by).ok_or(fault)?.clone())
            }
        };
        let mut revoked: Vec<_> = list.iter_revoked_certificates().map(entry).collect();
        revoked.sort_unstable();
        Ok(Self {
            issuer_name: list.issuer().to_string(),
            this_update,
            next_update,
            signer,
            revoked: revoked.into(),
        })
    }

    /// Checks that the bytes are a CRL of a supported kind, without its signer, so that a start finds the faults of files. Returns the name
    /// of its issuer, for display, and the period from thisUpdate to nextUpdate.
    pub(super) fn inspect(bytes: &[u8]) -> Result<(String, Validity), SourceFault> {
        let der = to_der(bytes)?;
        let (_, list) = CertificateRevocationList::from_der(&der)
            .map_err(|_| SourceFault::Invalid("it is no CRL"))?;
        is_complete(&list)?;
        let period = Validity {
            not_before: timestamp(list.last_update()),
            not_after: next_update(&list)?,
        };
        Ok((list.issuer().to_string(), period))
    }

    /// The issuer name (DER) of a CRL.
    pub(super) fn issuer(bytes: &[u8]) -> Option<Vec<u8>> {
        let list = X509Crl::from_der(&to_der(bytes).ok()?).ok()?;
        list.issuer_name().to_der().ok()
    }

    /// The revocation date of a certificate by its serial number (the content of the INTEGER); `None` if it is not revoked.
    pub(super) fn revoked(&self, serial: &[u8]) -> Option<Timestamp> {
        let order = |(listed, _): &(Box<[u8]>, Timestamp)| -> Ordering { (**listed).cmp(serial) };
        let found = self.revoked.binary_search_by(order).ok()?;
        self.revoked.get(found).map(|(_, since)| *since)
    }
}

fn next_update(list: &CertificateRevocationList<'_>) -> Result<Timestamp, SourceFault> {
    let found = list.next_update().map(timestamp);
    found.ok_or(SourceFault::Invalid("the CRL has no nextUpdate"))
}

fn to_der(bytes: &[u8]) -> Result<std::borrow::Cow<'_, [u8]>, SourceFault> {
    if !bytes.trim_ascii_start().starts_with(b"-----BEGIN") {
        return Ok(bytes.into());
    }
    X509Crl::from_pem(bytes)
        .and_then(|list| list.to_der())
        .map(Into::into)
        .map_err(|_| SourceFault::Invalid("it is no CRL in PEM"))
}

/// Refuses delta CRLs, indirect CRLs and unknown critical extensions.
fn is_complete(list: &CertificateRevocationList<'_>) -> Result<(), SourceFault> {
    for extension in list.extensions() {
        match extension.oid.to_id_string().as_str() {
            DELTA_INDICATOR => {
                return Err(SourceFault::Invalid(
                    "it is a delta CRL, which is not supported: configure the address of the complete one",
                ));
            }
            ISSUING_POINT | CRL_NUMBER | AUTHORITY_KEY => {}
            _ if extension.critical => {
                return Err(SourceFault::Invalid(
                    "the CRL has an unknown critical extension",
                ));
            }
            _ => {}
        }
    }
    let unknown = |entry: &RevokedCertificate<'_>| entry.extensions().iter().find_map(in_entry);
    list.iter_revoked_certificates()
        .find_map(unknown)
        .map_or(Ok(()), |why| Err(SourceFault::Invalid(why)))
}

fn in_entry(extension: &X509Extension<'_>) -> Option<&'static str> {
    match extension.oid.to_id_string().as_str() {
        REASON | INVALIDITY_DATE => None,
        CERTIFICATE_ISSUER => Some(INDIRECT),
        _ => extension
            .critical
            .then_some("an entry of the CRL has an unknown critical extension"),
    }
}

const INDIRECT: &str = "it is an indirect CRL, which is not supported: configure the address of one that the issuing CA signs";

/// The issuing distribution point (RFC 5280, 5.2.5): the CRL must cover this kind of certificate, this distribution point and all reasons.
fn covers(list: &CertificateRevocationList<'_>, scope: &Scope) -> Result<(), SourceFault> {
    let mut points = list
        .extensions()
        .iter()
        .filter(|extension| extension.oid.to_id_string() == ISSUING_POINT);
    let Some(point) = points.next() else {
        return Ok(());
    };
    let malformed = SourceFault::Invalid("the CRL's issuing distribution point cannot be read");
    let mut parts = Element::only(point.value)
        .and_then(|whole| whole.content_of(tag::SEQUENCE))
        .filter(|_| points.next().is_none())
        .ok_or(malformed)?;
    while !parts.is_empty() {
        let part = Element::take(&mut parts).ok_or(malformed)?;
        let is_set = part.content.iter().any(|byte| *byte != 0);
        match part.tag {
            // distributionPoint
            0xa0 if !names_of(part.content)
                .iter()
                .any(|name| scope.points.contains(name)) =>
            {
                return Err(SourceFault::Invalid(
                    "the CRL is that of another distribution point",
                ));
            }
            0xa0 => {}
            // onlyContainsUserCerts, onlyContainsCACerts
            0x81 if is_set && scope.of_ca => {
                return Err(SourceFault::Invalid(
                    "the CRL does not cover certificates of CAs",
                ));
            }
            0x82 if is_set && !scope.of_ca => {
                return Err(SourceFault::Invalid(
                    "the CRL covers certificates of CAs only",
                ));
            }
            // onlySomeReasons
            0x83 => return Err(SourceFault::Invalid("the CRL covers some reasons only")),
            0x84 if is_set => return Err(SourceFault::Invalid(INDIRECT)),
            // onlyContainsAttributeCerts
            0x85 if is_set => {
                return Err(SourceFault::Invalid(
                    "the CRL covers attribute certificates only",
                ));
            }
            0x81 | 0x82 | 0x84 | 0x85 => {}
            _ => return Err(malformed),
        }
    }
    Ok(())
}

/// The names of a DistributionPointName, each the DER of a GeneralName; empty for nameRelativeToCRLIssuer.
pub(super) fn names_of(point_name: &[u8]) -> Vec<Box<[u8]>> {
    let Some(full) = Element::only(point_name).and_then(|name| name.content_of(0xa0)) else {
        return Vec::new();
    };
    let (mut rest, mut names) = (full, Vec::new());
    while let Some(name) = Element::take(&mut rest) {
        names.push(name.whole.into());
    }
    names
}

fn is_signed(
    der: &[u8],
    list: &CertificateRevocationList<'_>,
    issuer: &X509Ref,
) -> Result<(), SourceFault> {
    if list.signature_algorithm != list.tbs_cert_list.signature
        || !algorithm::is_sound(&list.signature_algorithm)
    {
        return Err(SourceFault::Invalid(
            "the CRL is signed by MD5, SHA-1 or an unknown algorithm",
        ));
    }
    if issuer
        .key_usage()
        .is_some_and(|usage| !usage.contains(X509KeyUsage::CRL_SIGN))
    {
        return Err(SourceFault::Invalid("the issuing CA may not sign CRLs"));
    }
    let openssl = |_| SourceFault::Invalid("OpenSSL cannot read the CRL");
    let signed = X509Crl::from_der(der).map_err(openssl)?;
    let same = signed
        .issuer_name()
        .try_cmp(issuer.subject_name())
        .map_err(openssl)?;
    if same != Ordering::Equal {
        return Err(SourceFault::Invalid("the CRL names another issuer"));
    }
    let key = issuer.public_key().map_err(openssl)?;
    match signed.verify(&key) {
        Ok(true) => Ok(()),
        _ => Err(SourceFault::Invalid(
            "the CRL's signature is not the issuing CA's",
        )),
    }
}

fn entry(entry: &RevokedCertificate<'_>) -> (Box<[u8]>, Timestamp) {
    (entry.raw_serial().into(), timestamp(entry.revocation_date))
}

/// Converts a time; a time before 1970 becomes the epoch.
fn timestamp(time: ASN1Time) -> Timestamp {
    Timestamp::from_unix(u64::try_from(time.timestamp()).unwrap_or_default())
}
