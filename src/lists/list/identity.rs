//! The digital identities of services and of signers (TS 119 612, clause 5.5.3): certificates, and keys in other forms.

use super::names::{SIGNATURE, SIGNATURE_11, TSL};
use crate::{
    certificate::{Certificate, decode_base64, listed_key},
    fault::Refusal,
    tree::Element,
};
use portvakt_trust::KeyHash;

/// By what a list identifies a service.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The certificates that can be read.
    pub certificates: Vec<Certificate>,
    /// How many certificates cannot be read.
    pub unreadable: usize,
    /// The keys of all certificates, also of those that cannot be read, and of each `ds:KeyValue`, as far as they can be compared.
    pub keys: Vec<KeyHash>,
    /// How many certificates and `ds:KeyValue` have no key that can be compared.
    pub keyless: usize,
}

impl Identity {
    /// Reads an element `ServiceDigitalIdentity`.
    pub(crate) fn read(identity: &Element<'_>) -> Self {
        let mut read = Self::default();
        for id in ids(identity) {
            let key = match (id.namespace(), id.local()) {
                (TSL, "X509Certificate") => read.take_certificate(&id),
                (SIGNATURE, "KeyValue") => key_of_value(&id),
                _ => continue,
            };
            match key {
                Some(key) => read.keys.push(key),
                None => read.keyless = read.keyless.saturating_add(1),
            }
        }
        read
    }

    /// Takes a certificate, and returns its key.
    fn take_certificate(&mut self, element: &Element<'_>) -> Option<KeyHash> {
        let der = decode_base64(&element.text()).ok();
        let key = der.as_deref().and_then(listed_key);
        match der.and_then(|der| Certificate::from_der(der).ok()) {
            Some(certificate) => self.certificates.push(certificate),
            None => self.unreadable = self.unreadable.saturating_add(1),
        }
        key
    }
}

/// What stands in the elements `DigitalId`.
fn ids<'a>(identity: &Element<'a>) -> impl Iterator<Item = Element<'a>> {
    let ids = identity
        .children()
        .filter(|child| child.is(TSL, "DigitalId"));
    ids.flat_map(|id| id.children())
}

/// The certificates of an element `ServiceDigitalIdentity`, or why one cannot be read.
pub(crate) fn certificates(identity: &Element<'_>) -> Vec<Result<Certificate, Refusal>> {
    let found = ids(identity).filter(|id| id.is(TSL, "X509Certificate"));
    let read = |element: Element<'_>| {
        Certificate::from_base64(&element.text()).map_err(|fault| element.refuse(fault.what()))
    };
    found.map(read).collect()
}

/// The key of an element `ds:KeyValue` (XML Signature 1.1, clause 4.5.2): the numbers of RSA, or a point on a curve that has a name.
fn key_of_value(element: &Element<'_>) -> Option<KeyHash> {
    let value = element.children().next()?;
    let bytes = |parent: &Element<'_>, namespace, local| {
        let number = parent.required(namespace, local).ok()?;
        decode_base64(&number.text()).ok()
    };
    match (value.namespace(), value.local()) {
        (SIGNATURE, "RSAKeyValue") => {
            let modulus = bytes(&value, SIGNATURE, "Modulus")?;
            let exponent = bytes(&value, SIGNATURE, "Exponent")?;
            KeyHash::of_rsa_numbers(&modulus, &exponent)
        }
        (SIGNATURE_11, "ECKeyValue") => {
            let curve = value.required(SIGNATURE_11, "NamedCurve").ok()?;
            let curve = curve.attribute(None, "URI")?.strip_prefix("urn:oid:")?;
            KeyHash::of_point(curve, &bytes(&value, SIGNATURE_11, "PublicKey")?)
        }
        _ => None,
    }
}
