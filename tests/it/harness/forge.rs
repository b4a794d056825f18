//! Certificates that no CA should issue: good ones that are edited and signed again, and CAs with a given fault.

use super::{pki::Ca, world::to_pem};
use openssl::{
    asn1::{Asn1Integer, Asn1Object, Asn1OctetString, Asn1Time},
    bn::BigNum,
    hash::MessageDigest,
    pkey::{PKey, Private},
    sign::Signer,
    x509::{
        X509, X509Extension, X509Name,
        extension::{BasicConstraints, KeyUsage},
    },
};

/// The DER of the OIDs sha256WithRSAEncryption, sha1With… and md5With… without the last byte.
const RSA_SIGNATURE: [u8; 10] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];

/// A certificate whose inner and outer signature algorithm are set (the last byte of their OID: 11 SHA-256, 5 SHA-1, 4 MD5), signed
/// again by `issuer_key` with the outer one.
pub(crate) fn resigned(der: &[u8], issuer_key: &str, inner: u8, outer: u8) -> Vec<u8> {
    let (_, certificate) = content(der);
    let (tbs_length, _) = content(certificate);
    let mut tbs = certificate[..tbs_length].to_vec();
    let at = tbs
        .windows(10)
        .position(|window| window == RSA_SIGNATURE)
        .unwrap();
    tbs[at + 10] = inner;
    let digest = match outer {
        11 => MessageDigest::sha256(),
        5 => MessageDigest::sha1(),
        4 => MessageDigest::md5(),
        other => panic!("no digest {other}"),
    };
    let mut signer = Signer::new(digest, &private(issuer_key)).unwrap();
    signer.update(&tbs).unwrap();
    let signature = signer.sign_to_vec().unwrap();
    let algorithm = tlv(0x30, &[&RSA_SIGNATURE[..], &[outer, 0x05, 0x00]].concat());
    tlv(
        0x30,
        &[tbs, algorithm, tlv(0x03, &[&[0][..], &signature].concat())].concat(),
    )
}

/// A certificate whose subject has these organizationIdentifiers and nothing else, signed again by `issuer_key`.
pub(crate) fn identified(der: &[u8], issuer_key: &str, identifiers: &[&str]) -> Vec<u8> {
    let mut subject = X509Name::builder().unwrap();
    for identifier in identifiers {
        subject
            .append_entry_by_text("organizationIdentifier", identifier)
            .unwrap();
    }
    let subject = subject.build().to_der().unwrap();
    let (_, certificate) = content(der);
    let (tbs_length, tbs) = content(certificate);
    let (mut members, mut rest) = (Vec::new(), tbs);
    while !rest.is_empty() {
        let (member, after) = rest.split_at(content(rest).0);
        members.push(member);
        rest = after;
    }
    // version, serialNumber, signature, issuer, validity, subject (RFC 5280, 4.1).
    members[5] = &subject;
    let tbs = tlv(0x30, &members.concat());
    let mut signer = Signer::new(MessageDigest::sha256(), &private(issuer_key)).unwrap();
    signer.update(&tbs).unwrap();
    let signature = tlv(0x03, &[&[0][..], &signer.sign_to_vec().unwrap()].concat());
    let algorithm = &certificate[tbs_length..];
    let algorithm = &algorithm[..content(algorithm).0];
    tlv(0x30, &[&tbs, algorithm, &signature].concat())
}

/// The fault of a CA.
pub(crate) struct Forged {
    /// Whether basicConstraints marks the certificate as a CA.
    pub(crate) is_ca: bool,
    /// pathLenConstraint.
    pub(crate) path_length: Option<u32>,
    /// Whether keyUsage has keyCertSign.
    pub(crate) may_sign: bool,
    /// An additional extension: OID, critical, content.
    pub(crate) extension: Option<(&'static str, bool, Vec<u8>)>,
    /// notBefore and notAfter, `YYYYMMDDhhmmssZ`.
    pub(crate) validity: (&'static str, &'static str),
    /// The digest of the signature.
    pub(crate) digest: MessageDigest,
}

impl Default for Forged {
    /// A CA without a fault.
    fn default() -> Self {
        let validity = ("20150101000000Z", "20450101000000Z");
        Self {
            is_ca: true,
            path_length: None,
            may_sign: true,
            extension: None,
            validity,
            digest: MessageDigest::sha256(),
        }
    }
}

impl Forged {
    /// Another certificate of `ca`, with the same name and key, signed by `issuer`. PEM.
    pub(crate) fn twin_of(&self, ca: &Ca, issuer: &Ca, issuer_key: &str) -> String {
        let (ca, issuer) = (
            X509::from_der(ca.der()).unwrap(),
            X509::from_der(issuer.der()).unwrap(),
        );
        let mut builder = X509::builder().unwrap();
        builder.set_version(2).unwrap();
        builder.set_subject_name(ca.subject_name()).unwrap();
        builder.set_issuer_name(issuer.subject_name()).unwrap();
        builder.set_pubkey(&ca.public_key().unwrap()).unwrap();
        let mut serial = BigNum::new().unwrap();
        serial
            .pseudo_rand(120, openssl::bn::MsbOption::MAYBE_ZERO, true)
            .unwrap();
        builder
            .set_serial_number(&Asn1Integer::from_bn(&serial).unwrap())
            .unwrap();
        builder
            .set_not_before(&Asn1Time::from_str(self.validity.0).unwrap())
            .unwrap();
        builder
            .set_not_after(&Asn1Time::from_str(self.validity.1).unwrap())
            .unwrap();
        let mut constraints = BasicConstraints::new();
        constraints.critical();
        if self.is_ca {
            constraints.ca();
        }
        if let Some(length) = self.path_length {
            constraints.pathlen(length);
        }
        builder
            .append_extension(constraints.build().unwrap())
            .unwrap();
        let mut usage = KeyUsage::new();
        usage.critical();
        if self.may_sign {
            usage.key_cert_sign();
        }
        builder
            .append_extension(usage.crl_sign().build().unwrap())
            .unwrap();
        if let Some((oid, critical, content)) = &self.extension {
            let (oid, content) = (
                Asn1Object::from_str(oid).unwrap(),
                Asn1OctetString::new_from_bytes(content).unwrap(),
            );
            builder
                .append_extension(X509Extension::new_from_der(&oid, *critical, &content).unwrap())
                .unwrap();
        }
        builder.sign(&private(issuer_key), self.digest).unwrap();
        to_pem(&builder.build().to_der().unwrap())
    }
}

fn private(pem: &str) -> PKey<Private> {
    PKey::private_key_from_pem(pem.as_bytes()).unwrap()
}

/// The length of the first value including its tag, and its content.
fn content(der: &[u8]) -> (usize, &[u8]) {
    let (header, length) = match der[1] {
        short @ 0..=0x7f => (2, usize::from(short)),
        0x81 => (3, usize::from(der[2])),
        0x82 => (4, usize::from(u16::from_be_bytes([der[2], der[3]]))),
        other => panic!("a length of {other:#x}"),
    };
    (header + length, &der[header..header + length])
}

fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let head = match length {
        0..=0x7f => vec![tag, u8::try_from(length).unwrap()],
        0x80..=0xff => vec![tag, 0x81, u8::try_from(length).unwrap()],
        _ => [
            &[tag, 0x82][..],
            &u16::try_from(length).unwrap().to_be_bytes(),
        ]
        .concat(),
    };
    [head, content.to_vec()].concat()
}
