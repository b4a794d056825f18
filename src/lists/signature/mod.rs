//! The signature of a list, verified over the tree from which the list is then read (ETSI TS 119 612, clause 5.7 and annex B).
//!
//! Invariant: [`Signed`] is made by [`verify`] only, and its root is the element whose digest was compared. The profile is a closed list:
//! one signature, which is the last element of the root; two references, to the root and to the signed properties of this signature;
//! exclusive canonicalization; the algorithms of `algorithm.rs`. All else is refused. Deliberately not here: chains of certificates and
//! their validity, since the signer's certificate must be one that is pinned, byte for byte.

// Which elements may stand where.
mod shape;
// Digests, signature algorithms, keys.
mod algorithm;
// XAdES: the signer's certificate and the time.
mod properties;
// SignedInfo and its two references.
mod references;

#[cfg(test)]
pub(crate) mod tests;

pub use properties::SigningCertificate;

use crate::{
    certificate::{Certificate, decode_base64},
    fault::Refusal,
    tree::{Document, Element},
};
use algorithm::check_key_value;
use properties::Properties;
use references::SignedInfo;
use shape::{DS, exactly};
use std::{borrow::Cow, collections::HashSet};

/// A document whose signature verified.
#[derive(Debug)]
pub struct Signed<'a> {
    root: Element<'a>,
    signer: Certificate,
    signed_at: Option<Cow<'a, str>>,
    signing_certificate: SigningCertificate,
}

impl<'a> Signed<'a> {
    /// The root, all of which is signed but its last element: the signature.
    pub const fn root(&self) -> Element<'a> {
        self.root
    }

    /// The certificate by whose key the signature verified: one of the pinned.
    pub const fn signer(&self) -> &Certificate {
        &self.signer
    }

    /// The time at which the signer says that he signed (SigningTime), as it stands.
    pub fn signed_at(&self) -> Option<&str> {
        self.signed_at.as_deref()
    }

    /// How the signature names its signer. List version 6 allows only V2 (TS 119 612 v2.4.1 asks for EN 319 132-1).
    pub const fn signing_certificate(&self) -> SigningCertificate {
        self.signing_certificate
    }
}

/// Verifies the signature of a document by one of these signers' certificates.
///
/// # Errors
/// The document has no signature or more than one, the signature is not of the profile, its signer is none of these, or the document was
/// altered.
pub fn verify<'a>(document: &'a Document, signers: &[Certificate]) -> Result<Signed<'a>, Refusal> {
    let root = document.root();
    check_ids(root)?;
    let signature = the_signature(root)?;
    let names = [
        (DS, "SignedInfo"),
        (DS, "SignatureValue"),
        (DS, "KeyInfo"),
        (DS, "Object"),
    ];
    let [signed_info, value, key_info, object] = exactly(signature, names)?;
    let id = signature.attribute(None, "Id").unwrap_or_default();
    if id.is_empty() {
        return Err(signature.refuse("a signature without Id"));
    }
    let properties = Properties::of(object, id)?;
    let info = SignedInfo::of(signed_info, root, &properties)?;
    let signer = find_signer(key_info, signers)?;
    let signing_certificate = properties.check_signer(signer)?;
    info.check_digests(root, signature, &properties)?;
    let bytes = decode_base64(&value.text()).map_err(|fault| value.refuse(fault.what()))?;
    info.algorithm()
        .verify(signer, &info.canonical(), &bytes)
        .map_err(|fault| value.refuse(fault.what()))?;
    Ok(Signed {
        root,
        signer: signer.clone(),
        signed_at: properties.signed_at()?,
        signing_certificate,
    })
}

/// Checks that no Id is there twice, in any of its spellings: a reference means one element, whoever resolves it.
fn check_ids(root: Element<'_>) -> Result<(), Refusal> {
    let mut ids = HashSet::new();
    for element in root.descendants() {
        let attributes = element.attributes();
        for attribute in attributes.filter(|it| it.local().eq_ignore_ascii_case("id")) {
            if !ids.insert(attribute.value()) {
                return Err(element.refuse(format_args!(
                    "the Id {:?} is there twice",
                    attribute.value()
                )));
            }
        }
    }
    Ok(())
}

/// The only signature of the document: the last element of the root.
fn the_signature(root: Element<'_>) -> Result<Element<'_>, Refusal> {
    let mut all = root
        .descendants()
        .filter(|element| element.is(DS, "Signature"));
    let first = all
        .next()
        .ok_or_else(|| Refusal::new("the list is not signed"))?;
    if let Some(second) = all.next() {
        return Err(second.refuse("a second signature"));
    }
    match root.children().last() {
        Some(last) if last == first => Ok(first),
        _ => Err(first.refuse("a signature that is not the last element of the root")),
    }
}

/// The pinned certificate that KeyInfo has. Others of its chain may stand beside it.
fn find_signer<'s>(
    key_info: Element<'_>,
    signers: &'s [Certificate],
) -> Result<&'s Certificate, Refusal> {
    let mut found = None;
    let mut stated = Vec::new();
    let mut key_value = None;
    for part in key_info.children() {
        if part.is(DS, "KeyValue") && key_value.is_none() {
            key_value = Some(part);
        } else if part.is(DS, "X509Data") {
            stated.extend(part.children().filter(|it| it.is(DS, "X509Certificate")));
        } else {
            return Err(part.refuse(format_args!(
                "{} in KeyInfo, which this profile has not",
                part.local()
            )));
        }
    }
    let mut strangers = Vec::new();
    for element in stated {
        let certificate = Certificate::from_base64(&element.text())
            .map_err(|fault| element.refuse(fault.what()))?;
        match signers.iter().find(|signer| **signer == certificate) {
            Some(signer) if found.is_none() => found = Some(signer),
            Some(_) => {
                return Err(element.refuse("a second certificate of a pinned signer in KeyInfo"));
            }
            None => strangers.push(certificate.signer_name()),
        }
    }
    let signer = found.ok_or_else(|| {
        key_info.refuse(format_args!(
            "signed by none of the {} signers that may sign this list: KeyInfo has {}",
            signers.len(),
            match strangers.is_empty() {
                true => "no certificate".to_owned(),
                false => strangers.join("; "),
            }
        ))
    })?;
    match key_value {
        Some(value) => check_key_value(value, signer).map(|()| signer),
        None => Ok(signer),
    }
}
