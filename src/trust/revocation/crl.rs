//! Certificate revocation lists (RFC 5280, section 5): complete and direct ones only.
//!
//! A list counts where the issuer of the certificate signed it, by whichever of its keys (RFC 5280, 6.3.3 f), where it covers this kind
//! of certificate, and where nothing in it is critical and unknown. Delta lists, indirect ones and those for some reasons only are refused by name (CRT-6): half of the truth
//! would be taken for the whole. What was read is a sorted table of serial numbers; looking one up costs no parsing.

use super::{SourceFault, algorithm};
use crate::{
    clock::Timestamp,
    trust::der::{Element, tag},
};
use openssl::x509::{X509, X509Crl, X509KeyUsage, X509Ref};
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

/// A list that was read and verified.
#[derive(Debug)]
pub(super) struct Crl {
    /// For people to read.
    pub(super) issuer_name: String,
    pub(super) this_update: Timestamp,
    pub(super) next_update: Timestamp,
    /// Whose other key signed it, if not the very one that signs certificates: whether that one is revoked is another question.
    pub(super) signer: Option<Chain>,
    /// By serial number (the content of the INTEGER), in order.
    revoked: Box<[(Box<[u8]>, Timestamp)]>,
}

/// Which certificates a list must cover to count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// Certificates of CAs, or of end entities.
    pub(super) of_ca: bool,
    /// The names of the distribution points in the certificate, each the DER of a GeneralName.
    pub(super) points: Vec<Box<[u8]>>,
}

/// By whose keys lists may be signed: that of the CA that issued, and the others that the same CA has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Signers {
    /// A certificate, DER.
    issuer: Arc<[u8]>,
    others: Arc<[Chain]>,
}

/// The certificate of a CA's other key, and those above it: DER, the anchor last.
pub(in crate::trust) type Chain = Arc<[Vec<u8>]>;

impl Signers {
    pub(super) fn new(issuer: Arc<[u8]>, others: Vec<Chain>) -> Self {
        Self {
            issuer,
            others: others.into(),
        }
    }

    /// The CA that issued.
    pub(super) fn issuer(&self) -> Result<X509, SourceFault> {
        certificate(&self.issuer)
    }

    /// The certificate of the CA that issued, DER.
    pub(super) fn issuer_der(&self) -> &[u8] {
        &self.issuer
    }

    /// The other key by which a list is signed, if one of those that say that they may sign lists.
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

/// The certificate in DER, read by OpenSSL.
pub(super) fn certificate(der: &[u8]) -> Result<X509, SourceFault> {
    X509::from_der(der).map_err(|_| SourceFault::Invalid("OpenSSL cannot read the certificate"))
}

impl Crl {
    /// Reads a list (DER or PEM) that the CA must have signed, for the certificates of a scope.
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
        let next_update = list
            .next_update()
            .ok_or(SourceFault::Invalid("the CRL has no nextUpdate"))?;
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
            next_update: timestamp(next_update),
            signer,
            revoked: revoked.into(),
        })
    }

    /// Whether these bytes are a list that could count for somebody: what is refused whoever signed it is found at start.
    pub(super) fn inspect(bytes: &[u8]) -> Result<(), SourceFault> {
        let der = to_der(bytes)?;
        let (_, list) = CertificateRevocationList::from_der(&der)
            .map_err(|_| SourceFault::Invalid("it is no CRL"))?;
        is_complete(&list)
    }

    /// The name (DER) of a list's issuer.
    pub(super) fn issuer(bytes: &[u8]) -> Option<Vec<u8>> {
        let list = X509Crl::from_der(&to_der(bytes).ok()?).ok()?;
        list.issuer_name().to_der().ok()
    }

    /// Since when a certificate is revoked, by the content of its serial number.
    pub(super) fn revoked(&self, serial: &[u8]) -> Option<Timestamp> {
        let order = |(listed, _): &(Box<[u8]>, Timestamp)| -> Ordering { (**listed).cmp(serial) };
        let found = self.revoked.binary_search_by(order).ok()?;
        self.revoked.get(found).map(|(_, since)| *since)
    }
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

/// Nothing in it says that it is a part of something, or something that nobody here knows.
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

/// The issuing distribution point (RFC 5280, 5.2.5): the list must cover this kind of certificate, from this point, for all reasons.
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

/// The names of a DistributionPointName, each the DER of a GeneralName; none where it is relative to the issuer's.
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

/// A time before 1970 is the epoch.
fn timestamp(time: ASN1Time) -> Timestamp {
    Timestamp::from_unix(u64::try_from(time.timestamp()).unwrap_or_default())
}
