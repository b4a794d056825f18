//! A trusted list (ETSI TS 119 612, list versions 5 and 6), read from a tree whose signature was verified.
//!
//! Invariant: a [`TrustedList`] is made from [`Signed`] only. Before the signature is verified, [`Claim`] says whose list a file claims to
//! be, which serves to choose the signers and nothing else. Deliberately not here: which services become anchors (`anchors`), and
//! what a list may be after another (`import`).

// The names of the standard.
pub mod names;
// Text, numbers and times.
mod value;

// Whose list it is, its number and its times.
mod scheme;
// Certificates and keys by which services and signers are identified.
mod identity;
// Where other lists are, and who signs them.
mod pointer;
// Providers, services, their states.
mod qualification;
mod service;

pub use identity::Identity;
pub use pointer::Pointer;
pub use portvakt_trust::qualification::{Assert, Criteria, KeyUsageBit, Qualification};
pub use scheme::{ListType, Scheme, Version};
pub use service::{CA_QC, Extensions, GRANTED, Service, State};

use crate::{
    fault::Refusal,
    signature::{Signed, SigningCertificate},
    tree::{Document, Element},
};
use names::{SIGNATURE, TAG, TSL};

/// A list whose signature was verified.
#[derive(Clone, Debug)]
pub struct TrustedList {
    /// Whose list it is, its number and its times.
    pub scheme: Scheme,
    /// Pointers to other lists in XML.
    pub pointers: Vec<Pointer>,
    /// The services.
    pub services: Vec<Service>,
}

impl TrustedList {
    /// Reads a verified list.
    ///
    /// # Errors
    /// It is not of the profile.
    pub fn read(signed: &Signed<'_>) -> Result<Self, Refusal> {
        let root = signed.root();
        check_root(&root)?;
        let information = root.required(TSL, "SchemeInformation")?;
        let scheme = Scheme::read(&information)?;
        // Version 6 requires signatures of EN 319 132-1.
        let is_old = signed.signing_certificate() == SigningCertificate::V1;
        if scheme.version == Version::Six && is_old {
            let what =
                "SigningCertificate in the signature; list version 6 requires SigningCertificateV2";
            return Err(Refusal::new(what));
        }
        let pointers = information.optional(TSL, "PointersToOtherTSL")?;
        let providers = root.optional(TSL, "TrustServiceProviderList")?;
        Ok(Self {
            pointers: match pointers {
                Some(pointers) => pointer::read(&pointers)?,
                None => Vec::new(),
            },
            services: match providers {
                Some(providers) => service::read(&providers, scheme.version)?,
                None => Vec::new(),
            },
            scheme,
        })
    }
}

/// Whose list a file claims to be, before its signature is verified.
#[derive(Clone, Debug)]
pub struct Claim(Scheme);

impl Claim {
    /// Reads the claim of a file.
    ///
    /// # Errors
    /// It is no trusted list, or its scheme information is not of the profile.
    pub fn read(document: &Document) -> Result<Self, Refusal> {
        let root = document.root();
        check_root(&root)?;
        Scheme::read(&root.required(TSL, "SchemeInformation")?).map(Self)
    }

    /// The type of the list.
    pub const fn list_type(&self) -> ListType {
        self.0.list_type
    }

    /// The country of the list.
    pub fn territory(&self) -> &str {
        &self.0.territory
    }

    /// The number of the issue.
    pub const fn sequence(&self) -> u64 {
        self.0.sequence
    }

    /// The addresses of information on the scheme.
    pub fn information(&self) -> &[String] {
        &self.0.information
    }
}

/// Where a list of lists that was not verified says that lists are: addresses to fetch from, which prove nothing.
///
/// # Errors
/// It is no list of lists, or a pointer is malformed.
pub fn claimed_pointers(document: &Document) -> Result<Vec<Pointer>, Refusal> {
    let information = document.root().required(TSL, "SchemeInformation")?;
    pointer::read(&information.required(TSL, "PointersToOtherTSL")?)
}

fn check_root(root: &Element<'_>) -> Result<(), Refusal> {
    if !root.is(TSL, "TrustServiceStatusList") {
        return Err(root.refuse(format_args!(
            "the root is {} of the namespace \"{}\", not TrustServiceStatusList of \"{TSL}\"",
            root.local(),
            root.namespace()
        )));
    }
    match root.attribute(None, "TSLTag") {
        Some(TAG) => {}
        _ => return Err(root.refuse(format_args!("the attribute TSLTag is not {TAG}"))),
    }
    for child in root.children() {
        match (child.namespace(), child.local()) {
            (TSL, "SchemeInformation" | "TrustServiceProviderList") | (SIGNATURE, "Signature") => {}
            (_, other) => return Err(child.refuse(format_args!("{other} in the root element"))),
        }
    }
    Ok(())
}
