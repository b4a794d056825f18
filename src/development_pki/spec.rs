//! Specifications of certificates: plain structures with public fields.
//!
//! Invariant: every default is valid, so that a test names only the one fact that it changes. Deliberately not here: any check. A
//! specification may describe a certificate that no gateway should accept.

use rcgen::{ExtendedKeyUsagePurpose, KeyUsagePurpose, date_time_ymd};
use std::fmt;
use time::OffsetDateTime;

/// qcStatements, RFC 3739 section 3.2.6.
pub const QC_STATEMENTS: [u64; 9] = [1, 3, 6, 1, 5, 5, 7, 1, 3];
/// organizationIdentifier, ETSI EN 319 412-1 section 5.1.4.
pub const ORGANIZATION_IDENTIFIER: [u64; 4] = [2, 5, 4, 97];

/// A payment service provider's role, ETSI TS 119 495 section 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// PSP_AS: account servicing.
    AccountServicing,
    /// PSP_PI: payment initiation.
    PaymentInitiation,
    /// PSP_AI: account information.
    AccountInformation,
    /// PSP_IC: issuing of card-based payment instruments.
    CardIssuing,
}

impl Role {
    pub(super) fn last_arc_and_name(self) -> (u64, &'static str) {
        match self {
            Self::AccountServicing => (1, "PSP_AS"),
            Self::PaymentInitiation => (2, "PSP_PI"),
            Self::AccountInformation => (3, "PSP_AI"),
            Self::CardIssuing => (4, "PSP_IC"),
        }
    }
}

/// The purpose of a qualified certificate, ETSI EN 319 412-5 section 4.2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QcType {
    /// Electronic signatures, of a natural person.
    Esign,
    /// Electronic seals, of a legal person: a QSealC.
    Eseal,
    /// Web site authentication: a QWAC.
    Web,
}

/// The key of a certificate: to be generated, or given.
#[derive(Clone)]
pub enum Key {
    /// A new RSA key of 2048 bits.
    Rsa2048,
    /// A new RSA key of 3072 bits.
    Rsa3072,
    /// A new RSA key of 4096 bits.
    Rsa4096,
    /// A given RSA key, PEM of PKCS#8 or PKCS#1. For a leaf of any size and exponent, weak ones too; for a CA 2048 bits at least.
    RsaPem(String),
    /// A new ECDSA key on P-256.
    EcP256,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rsa2048 => "Rsa2048",
            Self::Rsa3072 => "Rsa3072",
            Self::Rsa4096 => "Rsa4096",
            Self::RsaPem(_) => "RsaPem(***)",
            Self::EcP256 => "EcP256",
        })
    }
}

/// An extension, encoded by the caller.
#[derive(Clone, Debug)]
pub struct Extension {
    /// The extension's object identifier, arc by arc.
    pub oid: Vec<u64>,
    /// Whether it is marked critical.
    pub critical: bool,
    /// The content of extnValue, DER.
    pub content: Vec<u8>,
}

/// The specification of a certificate authority.
#[derive(Clone, Debug)]
pub struct CaSpec {
    /// CN.
    pub common_name: String,
    /// O.
    pub organization: String,
    /// organizationIdentifier (2.5.4.97), if any.
    pub organization_identifier: Option<String>,
    /// C, two letters.
    pub country: String,
    /// The CA's key.
    pub key: Key,
    /// pathLenConstraint, if any.
    pub path_length: Option<u8>,
    /// Addresses of the CRL distribution point in the CA's own certificate, if any.
    pub crl_urls: Vec<String>,
    /// Addresses of OCSP responders in the CA's own certificate, if any.
    pub ocsp_urls: Vec<String>,
    /// The first moment of validity.
    pub not_before: OffsetDateTime,
    /// The last moment of validity.
    pub not_after: OffsetDateTime,
}

impl Default for CaSpec {
    /// An issuing CA with an awkward name, as real ones have: a comma, a letter outside ASCII, an attribute that few programs
    /// know.
    fn default() -> Self {
        Self {
            common_name: "Portvakt Prøve-CA G1".into(),
            organization: "Portvakt Prøve-CA, utvikling".into(),
            organization_identifier: Some("NTRNO-000000000".into()),
            country: "NO".into(),
            key: Key::Rsa2048,
            path_length: Some(0),
            crl_urls: Vec::new(),
            ocsp_urls: Vec::new(),
            not_before: date_time_ymd(2015, 1, 1),
            not_after: date_time_ymd(2045, 1, 1),
        }
    }
}

impl CaSpec {
    /// A root above the default issuing CA.
    pub fn development_root() -> Self {
        Self {
            common_name: "Portvakt Development Root".into(),
            organization: "Portvakt".into(),
            organization_identifier: None,
            path_length: None,
            ..Self::default()
        }
    }
}

/// An eIDAS leaf certificate to be made. The default is a QSealC of a TPP with both roles, right in every respect.
#[derive(Clone, Debug)]
pub struct LeafSpec {
    /// CN of the subject.
    pub common_name: String,
    /// O of the subject.
    pub organization: String,
    /// organizationIdentifier, `PSD<country>-<NCA>-<id>` in a PSD2 certificate (CRT-4).
    pub organization_identifier: Option<String>,
    /// C of the subject, two letters.
    pub country: String,
    /// The roles of the PSD2 statement, ETSI TS 119 495; `None` leaves the statement out, an empty list leaves it without roles.
    pub roles: Option<Vec<Role>>,
    /// nCAName of the PSD2 statement.
    pub nca_name: String,
    /// nCAId of the PSD2 statement, for example `NO-FSA`.
    pub nca_id: String,
    /// Whether QcCompliance (0.4.0.1862.1.1) stands in the qcStatements.
    pub qc_compliance: bool,
    /// QcType (0.4.0.1862.1.6), if any.
    pub qc_type: Option<QcType>,
    /// Key usage; an empty list leaves the extension out.
    pub key_usages: Vec<KeyUsagePurpose>,
    /// Extended key usage; an empty list leaves the extension out.
    pub extended_key_usages: Vec<ExtendedKeyUsagePurpose>,
    /// The first moment of validity.
    pub not_before: OffsetDateTime,
    /// The last moment of validity.
    pub not_after: OffsetDateTime,
    /// The leaf's key.
    pub key: Key,
    /// Whether the "leaf" says of itself that it is a CA (CRT-10).
    pub is_ca: bool,
    /// The serial number, big-endian and positive; `None` draws one.
    pub serial: Option<Vec<u8>>,
    /// Addresses of the CRL distribution point, if any.
    pub crl_urls: Vec<String>,
    /// Addresses of OCSP responders (authorityInfoAccess), if any.
    pub ocsp_urls: Vec<String>,
    /// More extensions, appended as they are: an unknown critical one, say, or malformed qcStatements.
    pub extra_extensions: Vec<Extension>,
}

impl Default for LeafSpec {
    fn default() -> Self {
        Self {
            common_name: "Eksempel TPP".into(),
            organization: "Eksempel Betaling AS".into(),
            organization_identifier: Some("PSDNO-FSA-123456".into()),
            country: "NO".into(),
            roles: Some(vec![Role::PaymentInitiation, Role::AccountInformation]),
            nca_name: "Finanstilsynet".into(),
            nca_id: "NO-FSA".into(),
            qc_compliance: true,
            qc_type: Some(QcType::Eseal),
            key_usages: vec![
                KeyUsagePurpose::DigitalSignature,
                KeyUsagePurpose::ContentCommitment,
            ],
            extended_key_usages: Vec::new(),
            not_before: date_time_ymd(2020, 1, 1),
            not_after: date_time_ymd(2040, 1, 1),
            key: Key::Rsa2048,
            is_ca: false,
            serial: None,
            crl_urls: Vec::new(),
            ocsp_urls: Vec::new(),
            extra_extensions: Vec::new(),
        }
    }
}
