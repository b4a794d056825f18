//! The development PKI: certificate authorities, eIDAS leaf certificates and TLS server certificates, generated on demand.
//!
//! Invariant: a certificate contains exactly the values of its specification, valid or not, so that a test can change one fact at
//! a time. The sandbox, tests and benchmarks use this crate; no program that is deployed contains it.
//! Deliberately not here: files and folders (`mint` writes those), SHA-1 signatures (rcgen has none), certificates for any real
//! use.
//!
//! The crate knows nothing of Portvakt, so that unit tests of every crate can use it, and code under test never makes its own certificates:
//!
//! ```compile_fail,E0432
//! use portvakt_base::clock;
//! ```
//!
//! ```compile_fail,E0432
//! use portvakt_interface::TppId;
//! ```
//!
//! ```compile_fail,E0432
//! use portvakt_trust::Trust;
//! ```

mod der;
mod spec;

pub use self::der::{der, der_oid, der_sequence, der_utf8};
pub use self::spec::{
    CaSpec, Extension, Key, LeafSpec, ORGANIZATION_IDENTIFIER, QC_STATEMENTS, QcType, Role,
};
pub use rcgen::{ExtendedKeyUsagePurpose, KeyUsagePurpose};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams,
    CrlDistributionPoint, CustomExtension, DistinguishedName, DnType, DnValue, IsCa, Issuer,
    KeyIdMethod, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, PublicKeyData,
    RevokedCertParams, RsaKeySize, SanType, SerialNumber, SignatureAlgorithm,
};
use std::hash::{BuildHasher, Hasher};
use std::{collections::hash_map::RandomState, fmt};
use time::OffsetDateTime;

/// A certificate with its private key.
#[derive(Clone)]
pub struct Issued {
    /// The certificate, DER.
    pub der: Vec<u8>,
    /// The certificate, PEM.
    pub pem: String,
    /// The private key, PEM: PKCS#8 if it was generated here, otherwise as given.
    pub key_pem: String,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued")
            .field("pem", &self.pem)
            .field("key_pem", &"***")
            .finish()
    }
}

/// A certificate authority that can issue: a root or an issuing CA.
pub struct Ca {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    /// A self-signed root.
    pub fn root(spec: &CaSpec) -> Result<Self, PkiFault> {
        let (params, key) = (ca_params(spec)?, ca_key(&spec.key)?);
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    /// A CA below this one.
    pub fn issue_ca(&self, spec: &CaSpec) -> Result<Self, PkiFault> {
        let (params, key) = (ca_params(spec)?, ca_key(&spec.key)?);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Self {
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    /// An eIDAS leaf with exactly the values of the specification.
    pub fn issue(&self, spec: &LeafSpec) -> Result<Issued, PkiFault> {
        self.certify(&leaf_params(spec)?, &spec.key)
    }

    /// A TLS server certificate for `localhost` and `127.0.0.1`.
    pub fn issue_server(
        &self,
        key: &Key,
        not_before: OffsetDateTime,
        not_after: OffsetDateTime,
    ) -> Result<Issued, PkiFault> {
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, "localhost");
        let mut params = params(subject, [not_before, not_after]);
        params.subject_alt_names = vec![
            SanType::DnsName("localhost".try_into()?),
            SanType::IpAddress(std::net::Ipv4Addr::LOCALHOST.into()),
        ];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.is_ca = IsCa::ExplicitNoCa;
        self.certify(&params, key)
    }

    /// A CRL of this CA, DER, that revokes the given serial numbers (as in [`LeafSpec::serial`]) as of `this_update` (CRT-6).
    pub fn crl(
        &self,
        revoked: &[Vec<u8>],
        this_update: OffsetDateTime,
        next_update: OffsetDateTime,
    ) -> Result<Vec<u8>, PkiFault> {
        let revoked_certs = revoked.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(serial.clone()),
            revocation_time: this_update,
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update,
            next_update,
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: revoked_certs.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(params.signed_by(&self.issuer)?.der().to_vec())
    }

    /// The CA's own certificate, DER.
    pub fn der(&self) -> &[u8] {
        self.certificate.der()
    }

    /// The CA's own certificate, PEM.
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    fn certify(&self, params: &CertificateParams, key: &Key) -> Result<Issued, PkiFault> {
        let (certificate, key_pem) = match key {
            Key::RsaPem(pem) => (
                params.signed_by(
                    &GivenRsa(der::rsa_public_key(pem).ok_or(PkiFault::Key)?),
                    &self.issuer,
                )?,
                pem.clone(),
            ),
            _ => {
                let pair = ca_key(key)?;
                (params.signed_by(&pair, &self.issuer)?, pair.serialize_pem())
            }
        };
        Ok(Issued {
            der: certificate.der().to_vec(),
            pem: certificate.pem(),
            key_pem,
        })
    }
}

/// The reason why a certificate could not be made.
#[derive(Debug)]
pub enum PkiFault {
    /// rcgen refused the parameters or the key.
    Certificate(rcgen::Error),
    /// The given key is not an RSA private key in PEM.
    Key,
}

impl fmt::Display for PkiFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(fault) => write!(f, "the certificate cannot be made: {fault}"),
            Self::Key => f.write_str("the given key is no RSA private key in PEM"),
        }
    }
}

impl std::error::Error for PkiFault {}

impl From<rcgen::Error> for PkiFault {
    fn from(fault: rcgen::Error) -> Self {
        Self::Certificate(fault)
    }
}

/// The values that every certificate has: subject, validity, serial number and the key of its issuer.
fn params(
    subject: DistinguishedName,
    [not_before, not_after]: [OffsetDateTime; 2],
) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    (params.not_before, params.not_after) = (not_before, not_after);
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(drawn_serial());
    params
}

fn ca_params(spec: &CaSpec) -> Result<CertificateParams, PkiFault> {
    let subject = name(
        &spec.country,
        &spec.organization,
        spec.organization_identifier.as_deref(),
        &spec.common_name,
    )?;
    let mut params = params(subject, [spec.not_before, spec.not_after]);
    params.is_ca = IsCa::Ca(spec.path_length.map_or(
        BasicConstraints::Unconstrained,
        BasicConstraints::Constrained,
    ));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    publish(&mut params, &spec.crl_urls, &spec.ocsp_urls);
    Ok(params)
}

/// Adds the addresses of revocation data: the CRL distribution point and authorityInfoAccess (RFC 5280, 4.2.1.13 and 4.2.2.1).
fn publish(params: &mut CertificateParams, crls: &[String], responders: &[String]) {
    if !crls.is_empty() {
        params.crl_distribution_points = vec![CrlDistributionPoint {
            uris: crls.to_vec(),
        }];
    }
    if !responders.is_empty() {
        let access: Vec<_> = responders
            .iter()
            .map(|url| {
                let ocsp = der_oid(&[1, 3, 6, 1, 5, 5, 7, 48, 1]);
                der_sequence(&[ocsp, der(0x86, url.as_bytes())])
            })
            .collect();
        let access = der_sequence(&access);
        params
            .custom_extensions
            .push(CustomExtension::from_oid_content(
                &[1, 3, 6, 1, 5, 5, 7, 1, 1],
                access,
            ));
    }
}

fn leaf_params(spec: &LeafSpec) -> Result<CertificateParams, PkiFault> {
    let subject = name(
        &spec.country,
        &spec.organization,
        spec.organization_identifier.as_deref(),
        &spec.common_name,
    )?;
    let mut params = params(subject, [spec.not_before, spec.not_after]);
    params.is_ca = if spec.is_ca {
        IsCa::Ca(BasicConstraints::Unconstrained)
    } else {
        IsCa::ExplicitNoCa
    };
    params.key_usages.clone_from(&spec.key_usages);
    params
        .extended_key_usages
        .clone_from(&spec.extended_key_usages);
    if let Some(serial) = &spec.serial {
        params.serial_number = Some(SerialNumber::from(serial.clone()));
    }
    publish(&mut params, &spec.crl_urls, &spec.ocsp_urls);
    params.custom_extensions.extend(qc_statements(spec));
    for extra in &spec.extra_extensions {
        let mut extension = CustomExtension::from_oid_content(&extra.oid, extra.content.clone());
        extension.set_criticality(extra.critical);
        params.custom_extensions.push(extension);
    }
    Ok(params)
}

/// C, O, organizationIdentifier and CN, in that order. The country is a PrintableString, as RFC 5280 requires.
fn name(
    country: &str,
    organization: &str,
    identifier: Option<&str>,
    common_name: &str,
) -> Result<DistinguishedName, PkiFault> {
    let mut name = DistinguishedName::new();
    name.push(
        DnType::CountryName,
        DnValue::PrintableString(country.try_into()?),
    );
    name.push(DnType::OrganizationName, organization);
    if let Some(identifier) = identifier {
        name.push(
            DnType::CustomDnType(ORGANIZATION_IDENTIFIER.to_vec()),
            identifier,
        );
    }
    name.push(DnType::CommonName, common_name);
    Ok(name)
}

fn qc_statements(spec: &LeafSpec) -> Option<CustomExtension> {
    let mut statements = Vec::new();
    if spec.qc_compliance {
        statements.push(der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 1])]));
    }
    if let Some(qc_type) = spec.qc_type {
        let arc = match qc_type {
            QcType::Esign => 1,
            QcType::Eseal => 2,
            QcType::Web => 3,
        };
        let types = der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 6, arc])]);
        statements.push(der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 6]), types]));
    }
    if let Some(roles) = &spec.roles {
        statements.push(psd2_statement(roles, &spec.nca_name, &spec.nca_id));
    }
    (!statements.is_empty())
        .then(|| CustomExtension::from_oid_content(&QC_STATEMENTS, der_sequence(&statements)))
}

fn psd2_statement(roles: &[Role], nca_name: &str, nca_id: &str) -> Vec<u8> {
    let roles: Vec<Vec<u8>> = roles
        .iter()
        .map(|role| {
            let (arc, name) = role.last_arc_and_name();
            der_sequence(&[der_oid(&[0, 4, 0, 19495, 1, arc]), der_utf8(name)])
        })
        .collect();
    let info = der_sequence(&[der_sequence(&roles), der_utf8(nca_name), der_utf8(nca_id)]);
    der_sequence(&[der_oid(&[0, 4, 0, 19495, 2]), info])
}

/// Sixteen bytes that differ between certificates. Development serials must be distinct, not unpredictable.
fn drawn_serial() -> SerialNumber {
    let half = || RandomState::new().build_hasher().finish();
    let number = (u128::from(half()) << 64 | u128::from(half())) >> 1;
    SerialNumber::from(number.to_be_bytes().to_vec())
}

fn ca_key(key: &Key) -> Result<KeyPair, PkiFault> {
    Ok(match key {
        Key::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?,
        Key::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072)?,
        Key::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096)?,
        Key::EcP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?,
        Key::RsaPem(pem) => KeyPair::from_pem_and_sign_algo(pem, &PKCS_RSA_SHA256)?,
    })
}

/// The public key of a given RSA key. The leaf never signs here, so a key that aws-lc would refuse can still be certified.
struct GivenRsa(Vec<u8>);

impl PublicKeyData for GivenRsa {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_RSA_SHA256
    }
}
