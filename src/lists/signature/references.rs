//! SignedInfo: how it is canonicalized and signed, and its two references.

use super::{
    algorithm::{Algorithm, Hash},
    properties::Properties,
    shape::{DS, exactly, none_in},
};
use crate::{
    canonical::{EXCLUSIVE, write_canonical},
    certificate::decode_base64,
    fault::Refusal,
    tree::Element,
};
use aws_lc_rs::digest;

const ENVELOPED: &str = "http://www.w3.org/2000/09/xmldsig#enveloped-signature";

/// The Type of the reference to the signed properties.
const SIGNED_PROPERTIES: &str = "http://uri.etsi.org/01903#SignedProperties";

/// SignedInfo of the profile: its references are to the root and to the signed properties.
#[derive(Debug)]
pub(super) struct SignedInfo<'a> {
    element: Element<'a>,
    algorithm: Algorithm,
    to_root: Reference<'a>,
    to_properties: Reference<'a>,
}

/// A reference: the digest that it states.
#[derive(Debug)]
struct Reference<'a> {
    element: Element<'a>,
    hash: Hash,
    digest: Vec<u8>,
}

impl<'a> SignedInfo<'a> {
    /// Reads SignedInfo of a signature over this root and these properties.
    ///
    /// # Errors
    /// It is not of the profile.
    pub(super) fn of(
        element: Element<'a>,
        root: Element<'a>,
        properties: &Properties<'a>,
    ) -> Result<Self, Refusal> {
        let names = [
            (DS, "CanonicalizationMethod"),
            (DS, "SignatureMethod"),
            (DS, "Reference"),
            (DS, "Reference"),
        ];
        let [canonicalization, method, first, second] = exactly(element, names)?;
        check_algorithm(canonicalization, EXCLUSIVE)?;
        let algorithm = Algorithm::of(method)?;
        let is_properties = |it: Element<'_>| it.attribute(None, "Type") == Some(SIGNED_PROPERTIES);
        let (to_root, to_properties) = match (is_properties(first), is_properties(second)) {
            (false, true) => (first, second),
            (true, false) => (second, first),
            (true, true) => return Err(second.refuse("a second reference to SignedProperties")),
            (false, false) => return Err(second.refuse("no reference to SignedProperties")),
        };
        check_root_uri(to_root, root)?;
        let uri = to_properties.attribute(None, "URI").unwrap_or_default();
        let id = properties.signed.attribute(None, "Id").unwrap_or_default();
        if id.is_empty() || uri.strip_prefix('#') != Some(id) {
            return Err(to_properties.refuse(format_args!(
                "the reference to SignedProperties names {uri:?}, not those of this signature"
            )));
        }
        Ok(Self {
            element,
            algorithm,
            to_root: Reference::of(to_root, &[ENVELOPED, EXCLUSIVE])?,
            to_properties: Reference::of(to_properties, &[EXCLUSIVE])?,
        })
    }

    /// The signature algorithm.
    pub(super) const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The bytes that are signed.
    pub(super) fn canonical(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_canonical(self.element, None, &mut |text| {
            bytes.extend_from_slice(text.as_bytes());
        });
        bytes
    }

    /// Compares the digests of the root without the signature, and of the signed properties.
    ///
    /// # Errors
    /// One differs.
    pub(super) fn check_digests(
        &self,
        root: Element<'a>,
        signature: Element<'a>,
        properties: &Properties<'a>,
    ) -> Result<(), Refusal> {
        if !self.to_root.has_digest_of(root, Some(signature)) {
            return Err(self.to_root.element.refuse(
                "the list was altered after it was signed: its digest is not the one that is signed",
            ));
        }
        if !self.to_properties.has_digest_of(properties.signed, None) {
            return Err(self.to_properties.element.refuse(
                "SignedProperties were altered after they were signed: their digest is not the one that is signed",
            ));
        }
        Ok(())
    }
}

impl<'a> Reference<'a> {
    /// Reads a reference, which must have exactly these transforms.
    fn of(element: Element<'a>, transforms: &[&str]) -> Result<Self, Refusal> {
        let names = [
            (DS, "Transforms"),
            (DS, "DigestMethod"),
            (DS, "DigestValue"),
        ];
        let [stated, method, value] = exactly(element, names)?;
        let mut found = stated.children();
        for expected in transforms {
            match found.next() {
                Some(transform) if transform.is(DS, "Transform") => {
                    check_algorithm(transform, expected)?;
                }
                _ => return Err(stated.refuse(format_args!("no transform {expected}"))),
            }
        }
        if let Some(other) = found.next() {
            return Err(other.refuse("a transform that this profile has not"));
        }
        Ok(Self {
            element,
            hash: Hash::of(method)?,
            digest: decode_base64(&value.text()).map_err(|fault| value.refuse(fault.what()))?,
        })
    }

    /// Whether an element without `omitted` has the stated digest.
    fn has_digest_of(&self, target: Element<'_>, omitted: Option<Element<'_>>) -> bool {
        let mut context = digest::Context::new(self.hash.algorithm());
        write_canonical(target, omitted, &mut |text| context.update(text.as_bytes()));
        context.finish().as_ref() == self.digest
    }
}

/// Checks that a reference is to the whole document or to the root by its Id, and of no type.
fn check_root_uri(reference: Element<'_>, root: Element<'_>) -> Result<(), Refusal> {
    let uri = reference.attribute(None, "URI");
    let id = root.attribute(None, "Id").filter(|id| !id.is_empty());
    let is_root = match uri {
        Some("") => true,
        Some(uri) => id.is_some() && uri.strip_prefix('#') == id,
        None => false,
    };
    let kind = reference.attribute(None, "Type").unwrap_or_default();
    match (is_root, kind) {
        (true, "") => Ok(()),
        (true, _) => Err(reference.refuse(format_args!("a reference of the type {kind:?}"))),
        (false, _) => Err(reference.refuse(format_args!(
            "a reference to {:?}, which is not the root of the list",
            uri.unwrap_or_default()
        ))),
    }
}

/// Checks that a method or transform is this one, without parameters.
fn check_algorithm(method: Element<'_>, expected: &str) -> Result<(), Refusal> {
    let found = method.attribute(None, "Algorithm").unwrap_or_default();
    if found != expected {
        return Err(method.refuse(format_args!(
            "{} {found:?}: only {expected} is accepted here",
            method.local()
        )));
    }
    none_in(method)
}
