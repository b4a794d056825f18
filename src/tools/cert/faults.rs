//! All faults of a certificate, in the order of the rules, each with the violated clause.

use crate::{
    clock::Timestamp,
    interface::Reason,
    trust::{
        CertificateFault, CertificateTypes, MAX_PRESENTED, judgement, path::CertificationPath,
        qc::QcStatements,
    },
};
use x509_parser::{
    certificate::X509Certificate,
    der_parser::{Oid, oid},
};

/// A fault.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) reason: Reason,
    /// The rule's id in docs/rules.yaml.
    pub(super) rule: &'static str,
    pub(super) text: String,
    /// The violated clause.
    pub(super) clause: &'static str,
}

/// The extensions that path validation supports (OpenSSL's list, without proxies and address blocks).
const UNDERSTOOD: [Oid<'static>; 10] = [
    oid!(2.5.29.15), // keyUsage
    oid!(2.5.29.17), // subjectAltName
    oid!(2.5.29.19), // basicConstraints
    oid!(2.5.29.30), // nameConstraints
    oid!(2.5.29.31), // cRLDistributionPoints
    oid!(2.5.29.32), // certificatePolicies
    oid!(2.5.29.33), // policyMappings
    oid!(2.5.29.36), // policyConstraints
    oid!(2.5.29.37), // extKeyUsage
    oid!(2.5.29.54), // inhibitAnyPolicy
];

/// Signature algorithms with MD5 or SHA-1 (CRT-10).
const BROKEN_HASHES: [Oid<'static>; 4] = [
    oid!(1.2.840.113549.1.1.4), // md5WithRSAEncryption
    oid!(1.2.840.113549.1.1.5), // sha1WithRSAEncryption
    oid!(1.2.840.10045.4.1),    // ecdsa-with-SHA1
    oid!(1.2.840.10040.4.3),    // dsa-with-sha1
];

/// Collects faults.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn judge<T>(
        &mut self,
        rule: &'static str,
        clause: &'static str,
        result: Result<T, CertificateFault>,
    ) -> Option<T> {
        let fault = match result {
            Ok(held) => return Some(held),
            Err(fault) => fault,
        };
        self.0.push(Finding {
            reason: fault.reason(),
            rule,
            text: text(&fault),
            clause,
        });
        None
    }
}

/// The text of a fault, with times for people.
pub(super) fn text(fault: &CertificateFault) -> String {
    match fault {
        CertificateFault::Expired(at, _) => format!("it ended at {}", date(*at)),
        CertificateFault::NotYetValid(at, _) => format!("it begins at {}", date(*at)),
        other => other.to_string(),
    }
}

/// Collects every fault of a certificate that signs. A missing path to an anchor is a fault only if anchors are given, with the types of
/// certificate that may sign.
pub(super) fn of_signing(
    certificate: &X509Certificate<'_>,
    rest: &[u8],
    path: &CertificationPath,
    anchored: Option<CertificateTypes>,
    at: Timestamp,
) -> Vec<Finding> {
    let mut found = Findings::default();
    form(certificate, rest, &mut found);
    found.judge("SIG-4", "RFC 5280 §4.1.2.4", judgement::issuer(certificate));
    found.judge(
        "SIG-5",
        "ETSI TS 119 312",
        judgement::signing_key(certificate).map(drop),
    );
    end_entity(certificate, &mut found);
    if anchored.is_some() {
        leads_to_anchor(path, &mut found);
    }
    validity(path, at, &mut found);
    let statements = statements(certificate, &mut found);
    if let Some(statements) = &statements {
        compliance(statements, &mut found);
        found.judge(
            "CRT-3",
            "ETSI EN 319 412-5 §4.2.3",
            judgement::qc_type(statements, anchored.unwrap_or_default()),
        );
    }
    found.judge(
        "CRT-3",
        "RFC 5280 §4.2.1.3, ETSI EN 319 412-3",
        judgement::key_usage(certificate),
    );
    psd2_identity(certificate, statements.as_ref(), &mut found);
    found.0
}

/// Collects every fault of a QWAC for a TLS connection (TLS-3), by anchors that are given: neither its key nor its key usage is judged.
pub(super) fn of_client(
    certificate: &X509Certificate<'_>,
    rest: &[u8],
    path: &CertificationPath,
    at: Timestamp,
) -> Vec<Finding> {
    let mut found = Findings::default();
    form(certificate, rest, &mut found);
    end_entity(certificate, &mut found);
    leads_to_anchor(path, &mut found);
    validity(path, at, &mut found);
    let statements = statements(certificate, &mut found);
    if let Some(statements) = &statements {
        compliance(statements, &mut found);
        found.judge(
            "TLS-3",
            "ETSI EN 319 412-5 §4.2.3",
            judgement::web(statements),
        );
    }
    psd2_identity(certificate, statements.as_ref(), &mut found);
    found.0
}

fn leads_to_anchor(path: &CertificationPath, found: &mut Findings) {
    let (rule, clause) = match &path.fault {
        Some(CertificateFault::Ungranted) => ("CRT-2, CRT-13", "ETSI TS 119 615"),
        Some(CertificateFault::Unqualified(_)) => ("CRT-3", "ETSI TS 119 612 §5.5.9"),
        _ => ("CRT-2, CRT-9", "RFC 5280 §6.1"),
    };
    found.judge(rule, clause, path.fault.clone().map_or(Ok(()), Err));
}

fn statements(certificate: &X509Certificate<'_>, found: &mut Findings) -> Option<QcStatements> {
    found.judge(
        "CRT-3, CRT-4",
        "RFC 3739 §3.2.6, ETSI EN 319 412-5, ETSI TS 119 495 §5.1",
        judgement::statements(certificate),
    )
}

fn compliance(statements: &QcStatements, found: &mut Findings) {
    found.judge(
        "CRT-3",
        "ETSI EN 319 412-5 §4.2.1",
        judgement::qualified(statements),
    );
}

/// The faults of the PSD2 statement and of organizationIdentifier.
fn psd2_identity(
    certificate: &X509Certificate<'_>,
    statements: Option<&QcStatements>,
    found: &mut Findings,
) {
    if let Some(statements) = statements {
        let psd2 = found.judge("CRT-4", "ETSI TS 119 495 §5.1", judgement::psd2(statements));
        if let Some(psd2) = psd2 {
            found.judge("CRT-4", "ETSI TS 119 495 §5.2.2", judgement::roles(psd2));
            found.judge(
                "CRT-4",
                "ETSI TS 119 495 §5.2.3",
                judgement::authority(psd2),
            );
        }
    }
    found.judge(
        "CRT-4",
        "ETSI TS 119 495 §5.2.1, ETSI EN 319 412-1 §5.1.4",
        judgement::tpp_id(certificate),
    );
}

/// The faults of the certificate's form.
fn form(certificate: &X509Certificate<'_>, rest: &[u8], found: &mut Findings) {
    found.judge(
        "CRT-10",
        "RFC 5280 §4.1: one Certificate in DER, and nothing after it",
        judgement::ends(rest),
    );
    found.judge(
        "CRT-10",
        "RFC 5280 §4.1.1.2: both fields hold the same algorithm",
        judgement::algorithms_agree(certificate),
    );
}

/// The faults that path validation finds in the certificate itself, without a path.
fn end_entity(certificate: &X509Certificate<'_>, found: &mut Findings) {
    found.judge(
        "CRT-10",
        "RFC 5280 §4.2.1.9: cA is for certificates that issue others",
        judgement::is_no_ca(certificate),
    );
    found.judge("CRT-10", "ETSI TS 119 312", hash(certificate));
    found.judge(
        "CRT-2",
        "RFC 5280 §4.2: a critical extension that is not recognised",
        critical(certificate),
    );
}

/// A certificate (DER) that is too long for its header.
pub(super) fn too_long(der: &[u8]) -> Option<Finding> {
    let length = der.len().div_ceil(3).saturating_mul(4);
    (length > MAX_PRESENTED).then(|| Finding {
        reason: Reason::HeadersTooLarge,
        rule: "HTTP-9",
        text: format!("its base64 has {length} bytes, and the header takes {MAX_PRESENTED}"),
        clause: "the gateway's limit",
    })
}

/// The members of the path that are expired or not yet valid.
fn validity(path: &CertificationPath, at: Timestamp, found: &mut Findings) {
    let members = path.validity().unwrap_or_default();
    for (depth, member) in members.iter().enumerate() {
        let clause = if depth == 0 {
            "RFC 5280 §4.1.2.5"
        } else {
            "RFC 5280 §4.1.2.5, of a certificate above it"
        };
        found.judge("CRT-2", clause, judgement::validity(&[*member], at));
    }
}

/// OpenSSL checks this along the whole chain; for the certificate itself, no chain is needed.
fn hash(certificate: &X509Certificate<'_>) -> Result<(), CertificateFault> {
    if BROKEN_HASHES.contains(&certificate.signature_algorithm.algorithm) {
        return Err(CertificateFault::Untrusted(
            "it is signed with MD5 or SHA-1".into(),
        ));
    }
    Ok(())
}

/// OpenSSL also checks this along the whole chain.
fn critical(certificate: &X509Certificate<'_>) -> Result<(), CertificateFault> {
    let unknown: Vec<_> = certificate
        .extensions()
        .iter()
        .filter(|extension| extension.critical && !UNDERSTOOD.contains(&extension.oid))
        .map(|extension| extension.oid.to_id_string())
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(CertificateFault::Untrusted(format!(
        "an extension is critical that path validation does not know: {}",
        unknown.join(", ")
    )))
}

fn date(at: Timestamp) -> String {
    crate::interface::headers::date::format(at)
}
