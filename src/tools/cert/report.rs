//! The content of a certificate, for people.

use super::faults::Finding;
use crate::{
    clock::Timestamp,
    hex,
    interface::headers::date,
    terminal::tame,
    tools::tpp::in_ascii,
    trust::{Validity, judgement, name::Name, path::CertificationPath},
};
use openssl::x509::X509;
use std::io::{self, Write};
use x509_parser::{
    certificate::X509Certificate, oid_registry::OidRegistry, public_key::PublicKey,
    x509::SubjectPublicKeyInfo,
};

const SECONDS_OF_A_DAY: u64 = 86_400;

pub(super) fn write(
    certificate: &X509Certificate<'_>,
    path: &CertificationPath,
    whose: Option<&str>,
    at: Timestamp,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut row = |name: &str, value: &str| writeln!(out, "{name:<16}{}", tame(value));
    row("identifier", &identifier(certificate))?;
    row("name", &judgement::tpp_name(certificate))?;
    match judgement::statements(certificate) {
        Ok(statements) => {
            let says = |held: bool, text| if held { text } else { "no" };
            row("QcCompliance", says(statements.qualified, "yes"))?;
            let kinds = [(statements.eseal, "eseal"), (statements.web, "web")];
            let kinds: Vec<_> = kinds
                .iter()
                .filter(|(held, _)| *held)
                .map(|(_, name)| *name)
                .collect();
            row(
                "QcType",
                &or_none(&kinds.join(", "), "neither eseal nor web"),
            )?;
            if let Some(psd2) = &statements.psd2 {
                row("roles", &or_none(&psd2.roles.to_string(), "none"))?;
                row("authority", &format!("{} ({})", psd2.nca_id, psd2.nca_name))?;
            } else {
                row("roles", "no PSD2 statement")?;
            }
        }
        Err(fault) => row("QcStatements", &fault.to_string())?,
    }
    if let Some(own) = path
        .validity()
        .ok()
        .and_then(|validity| validity.first().copied())
    {
        row("valid", &validity(own, at))?;
    }
    let serial = judgement::serial_hex(certificate.raw_serial());
    row("serial", &format!("SN={}", or_none(&serial, "00")))?;
    if let Ok(issuer) = judgement::issuer(certificate) {
        let issuer = format!("CA={issuer}");
        row("issuer", &issuer)?;
        if !issuer.is_ascii() {
            row("  in ASCII", &in_ascii(&issuer))?;
        }
    }
    row("key", &key(certificate.public_key()))?;
    row("key usage", &usage(certificate))?;
    row("signed with", &algorithm(certificate))?;
    chain(path, whose, out)
}

pub(super) fn write_faults(
    faults: &[Finding],
    has_anchors: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if faults.is_empty() {
        writeln!(out, "\nno fault")?;
    } else {
        let plural = if faults.len() == 1 { "" } else { "s" };
        writeln!(out, "\n{} fault{plural}:", faults.len())?;
    }
    for fault in faults {
        writeln!(out, "  {} ({})", fault.reason.slug(), fault.rule)?;
        writeln!(out, "    {}", tame(&fault.text))?;
        writeln!(out, "    {}", fault.clause)?;
    }
    let chain = if has_anchors { "" } else { "the chain, " };
    writeln!(out, "not judged: {chain}revocation, registers")
}

/// The path, from the certificate upwards.
fn chain(path: &CertificationPath, whose: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    for (depth, member) in path.members.iter().enumerate() {
        let name = if depth == 0 { "chain" } else { "" };
        writeln!(out, "{name:<16}{depth}  {}", tame(&subject(member)))?;
    }
    let end = match (whose, &path.fault) {
        (Some(folder), None) => format!("an anchor of {folder}"),
        (Some(folder), Some(_)) => format!("no anchor of {folder}"),
        (None, _) => "not looked for: name anchors with --config or --anchors".to_owned(),
    };
    writeln!(out, "{:<16}{end}", "ends in")
}

fn subject(member: &X509) -> String {
    let name = member.subject_name().to_der().ok();
    let name = name.and_then(|der| Name::from_der(&der).ok());
    name.map_or_else(
        || "a name that cannot be read".to_owned(),
        |name| name.to_string(),
    )
}

/// The text as in the certificate, valid or not.
fn identifier(certificate: &X509Certificate<'_>) -> String {
    let mut found = certificate
        .subject()
        .iter_by_oid(&judgement::ORGANIZATION_IDENTIFIER);
    let text = found.next().and_then(|attribute| attribute.as_str().ok());
    text.unwrap_or("none").to_owned()
}

fn validity(own: Validity, at: Timestamp) -> String {
    let days = |from: Timestamp, to: Timestamp| match from.distance(to) / SECONDS_OF_A_DAY {
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    };
    let left = if at < own.not_before {
        format!("begins in {}", days(at, own.not_before))
    } else if at > own.not_after {
        format!("ended {} ago", days(at, own.not_after))
    } else {
        format!("{} left", days(at, own.not_after))
    };
    let (from, to) = (date::format(own.not_before), date::format(own.not_after));
    format!("{from} to {to} ({left} at {})", date::format(at))
}

fn key(info: &SubjectPublicKeyInfo<'_>) -> String {
    match info.parsed() {
        Ok(PublicKey::RSA(key)) => {
            let hex = hex::encode(judgement::without_leading_zeros(key.exponent));
            let exponent =
                u64::from_str_radix(&hex, 16).map_or(format!("0x{hex}"), |value| value.to_string());
            format!("RSA, {} bits, exponent {exponent}", bits(key.modulus))
        }
        Ok(PublicKey::EC(point)) => format!("EC, {} bits", point.key_size()),
        Ok(_) | Err(_) => info.algorithm.algorithm.to_id_string(),
    }
}

/// The length of a big-endian number in bits.
fn bits(number: &[u8]) -> usize {
    let number = judgement::without_leading_zeros(number);
    let spare = number.first().map_or(0, |byte| byte.leading_zeros());
    let bits = number.len().saturating_mul(8);
    bits.saturating_sub(usize::try_from(spare).unwrap_or_default())
}

fn usage(certificate: &X509Certificate<'_>) -> String {
    let Ok(Some(extension)) = certificate.key_usage() else {
        return "none".to_owned();
    };
    let usage = extension.value;
    let named = [
        (usage.digital_signature(), "digitalSignature"),
        (usage.non_repudiation(), "nonRepudiation"),
        (usage.key_encipherment(), "keyEncipherment"),
        (usage.data_encipherment(), "dataEncipherment"),
        (usage.key_agreement(), "keyAgreement"),
        (usage.key_cert_sign(), "keyCertSign"),
        (usage.crl_sign(), "cRLSign"),
    ];
    let held = named.iter().filter(|(held, _)| *held);
    or_none(
        &held.map(|(_, name)| *name).collect::<Vec<_>>().join(", "),
        "none",
    )
}

fn algorithm(certificate: &X509Certificate<'_>) -> String {
    let oid = &certificate.signature_algorithm.algorithm;
    let registry = OidRegistry::default().with_crypto();
    registry
        .get(oid)
        .map_or_else(|| oid.to_id_string(), |entry| entry.sn().to_owned())
}

fn or_none(text: &str, none: &str) -> String {
    if text.is_empty() { none } else { text }.to_owned()
}
