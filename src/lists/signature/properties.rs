//! The qualifying properties of a signature (XAdES, ETSI EN 319 132-1): which certificate signed, and when.

use super::{
    algorithm::certificate_digest,
    shape::{DS, exactly},
};
use crate::{
    certificate::{Certificate, decode_base64},
    fault::Refusal,
    tree::Element,
};
use std::borrow::Cow;

/// The namespace of XAdES 1.3.2.
pub(super) const XADES: &str = "http://uri.etsi.org/01903/v1.3.2#";

/// The signed properties of a signature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Properties<'a> {
    /// The element that the second reference must name.
    pub(super) signed: Element<'a>,
    /// SignedSignatureProperties.
    signature: Element<'a>,
}

/// The element that names the signer's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningCertificate {
    /// SigningCertificate (XAdES 1.3.2).
    V1,
    /// SigningCertificateV2 (ETSI EN 319 132-1), the only one that list version 6 allows.
    V2,
}

impl<'a> Properties<'a> {
    /// Reads the Object of a signature with this Id. UnsignedProperties may stand in it: no one reads them.
    ///
    /// # Errors
    /// It holds anything but the QualifyingProperties of this signature.
    pub(super) fn of(object: Element<'a>, signature_id: &str) -> Result<Self, Refusal> {
        let [qualifying] = exactly(object, [(XADES, "QualifyingProperties")])?;
        let target = qualifying.attribute(None, "Target").unwrap_or_default();
        if target.strip_prefix('#') != Some(signature_id) {
            return Err(qualifying.refuse(format_args!(
                "QualifyingProperties of another signature: their Target is {target:?}"
            )));
        }
        let signed = qualifying.required(XADES, "SignedProperties")?;
        qualifying.optional(XADES, "UnsignedProperties")?;
        let stranger = qualifying
            .children()
            .find(|child| *child != signed && !child.is(XADES, "UnsignedProperties"));
        match stranger {
            None => Ok(Self {
                signed,
                signature: signed.required(XADES, "SignedSignatureProperties")?,
            }),
            Some(other) => Err(other.refuse(format_args!(
                "{} in QualifyingProperties, which this profile has not",
                other.local()
            ))),
        }
    }

    /// The time at which the signer says that he signed.
    pub(super) fn signed_at(&self) -> Result<Option<Cow<'a, str>>, Refusal> {
        let time = self.signature.optional(XADES, "SigningTime")?;
        Ok(time.map(|time| time.text()))
    }

    /// Checks that a certificate is the one that the properties name as the signer's.
    ///
    /// # Errors
    /// They name another, or none, or name it in both ways.
    pub(super) fn check_signer(&self, signer: &Certificate) -> Result<SigningCertificate, Refusal> {
        let v1 = self.signature.optional(XADES, "SigningCertificate")?;
        let v2 = self.signature.optional(XADES, "SigningCertificateV2")?;
        let (found, version) = match (v1, v2) {
            (Some(found), None) => (found, SigningCertificate::V1),
            (None, Some(found)) => (found, SigningCertificate::V2),
            (None, None) => {
                return Err(self.signature.refuse(
                    "neither SigningCertificate nor SigningCertificateV2 in the signed properties",
                ));
            }
            (Some(_), Some(second)) => {
                return Err(second.refuse("SigningCertificate beside SigningCertificateV2"));
            }
        };
        // The first is the signer's; those of its chain may follow (EN 319 132-1, 5.2.2).
        let first = found.children().next();
        let first = first.filter(|first| first.is(XADES, "Cert"));
        let first = first.ok_or_else(|| found.refuse("no Cert in SigningCertificate"))?;
        let digest = first.required(XADES, "CertDigest")?;
        let [method, value] = exactly(digest, [(DS, "DigestMethod"), (DS, "DigestValue")])?;
        let stated = decode_base64(&value.text()).map_err(|fault| value.refuse(fault.what()))?;
        if certificate_digest(method, signer)?.as_ref() != stated {
            return Err(found.refuse(
                "SigningCertificate has the digest of another certificate than the signer's",
            ));
        }
        Ok(version)
    }
}
