//! The key usages of a certificate, and what a QWAC without clientAuth means.
//!
//! The gateway judges keyUsage of certificates that sign (CRT-3), and extendedKeyUsage of none: the handshake asks only for the private key
//! (`gateway::client_auth`), and OpenSSL builds chains without a purpose (`trust::path`).

use crate::clock::Timestamp;
use x509_parser::{certificate::X509Certificate, extensions::ExtendedKeyUsage};

/// 15 June 2026 in UTC: since then Chrome's policy wants serverAuth alone, first of new CAs.
const SERVER_AUTH_ALONE: Timestamp = Timestamp::from_unix(1_781_481_600);

/// The names in keyUsage.
pub(super) fn key_usage(certificate: &X509Certificate<'_>) -> String {
    let Ok(Some(extension)) = certificate.key_usage() else {
        return "none".to_owned();
    };
    let usage = extension.value;
    held(&[
        (usage.digital_signature(), "digitalSignature"),
        (usage.non_repudiation(), "nonRepudiation"),
        (usage.key_encipherment(), "keyEncipherment"),
        (usage.data_encipherment(), "dataEncipherment"),
        (usage.key_agreement(), "keyAgreement"),
        (usage.key_cert_sign(), "keyCertSign"),
        (usage.crl_sign(), "cRLSign"),
    ])
}

/// The names in extendedKeyUsage, and for a QWAC without clientAuth its consequences, a line each. `issued` is notBefore.
pub(super) fn extended(
    certificate: &X509Certificate<'_>,
    is_web: bool,
    issued: Option<Timestamp>,
) -> Vec<String> {
    let usage = match certificate.extended_key_usage() {
        Ok(Some(extension)) => extension.value,
        Ok(None) => return vec!["none".to_owned()],
        Err(_) => return vec!["it cannot be read".to_owned()],
    };
    let mut lines = vec![names(usage)];
    if is_web && !usage.client_auth && !usage.any {
        if issued.is_some_and(|issued| issued >= SERVER_AUTH_ALONE) {
            lines.push(
                "issued since 15 June 2026, when Chrome's policy began to want serverAuth alone"
                    .to_owned(),
            );
        }
        lines.extend(
            [
                "signatures: no difference, since the gateway judges keyUsage and no extendedKeyUsage",
                "mutual TLS: no difference here, since the gateway judges no extendedKeyUsage; other servers refuse a client without clientAuth:",
                "  ask the QTSP for a QWAC with serverAuth and clientAuth, which ETSI TS 119 495 V1.7.1 allows in PSD2 certificates",
            ]
            .map(str::to_owned),
        );
    }
    lines
}

fn names(usage: &ExtendedKeyUsage<'_>) -> String {
    let known = held(&[
        (usage.any, "anyExtendedKeyUsage"),
        (usage.server_auth, "serverAuth"),
        (usage.client_auth, "clientAuth"),
        (usage.code_signing, "codeSigning"),
        (usage.email_protection, "emailProtection"),
        (usage.time_stamping, "timeStamping"),
        (usage.ocsp_signing, "OCSPSigning"),
    ]);
    let others = usage.other.iter().map(|oid| oid.to_id_string());
    let others = others.collect::<Vec<_>>().join(", ");
    if others.is_empty() {
        known
    } else if known == "none" {
        others
    } else {
        format!("{known}, {others}")
    }
}

fn held(named: &[(bool, &str)]) -> String {
    let held = named.iter().filter(|(held, _)| *held);
    let names: Vec<_> = held.map(|(_, name)| *name).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}
