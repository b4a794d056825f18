//! The content of a certificate, for people.

use super::{
    faults::Finding,
    judges::{Judges, ListedPaths},
    passing::{self, Verdict},
    usage, vouched,
};
use crate::{
    admission::role_suffices,
    clock::Timestamp,
    hex,
    interface::{
        headers::date,
        operations::{Operation, builtin},
    },
    terminal::tame,
    tools::tpp::in_ascii,
    trust::{
        Roles, Validity, judgement,
        name::Name,
        path::CertificationPath,
        qc::{Psd2Statement, QcStatements},
    },
};
use openssl::x509::X509;
use std::{
    io::{self, Write},
    sync::Arc,
};
use x509_parser::{
    certificate::X509Certificate, oid_registry::OidRegistry, public_key::PublicKey,
    x509::SubjectPublicKeyInfo,
};

const SECONDS_OF_A_DAY: u64 = 86_400;

/// A certificate, and what was found about it.
pub(super) struct Subject<'a> {
    pub(super) certificate: &'a X509Certificate<'a>,
    pub(super) judges: &'a Judges,
    /// The path by the anchors of certificates that sign.
    pub(super) signing: &'a CertificationPath,
    /// The paths by the trusted lists alone; `None` without a bundle.
    pub(super) listed: Option<&'a ListedPaths<'a>>,
    /// The decisions on both uses; `None` without anchors.
    pub(super) verdicts: Option<(&'a Verdict, &'a Verdict)>,
}

pub(super) fn write(subject: &Subject<'_>, at: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let Subject {
        certificate,
        judges,
        signing,
        ..
    } = *subject;
    let mut row = |name: &str, value: &str| writeln!(out, "{name:<16}{}", tame(value));
    row("identifier", &identifier(certificate))?;
    row("name", &judgement::tpp_name(certificate))?;
    let statements = judgement::statements(certificate);
    match &statements {
        Ok(statements) => {
            for (name, text) in statement_rows(statements, subject) {
                row(&name, &text)?;
            }
        }
        Err(fault) => row("QcStatements", &fault.to_string())?,
    }
    let own = signing
        .validity()
        .ok()
        .and_then(|validity| validity.first().copied());
    if let Some(own) = own {
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
    row("key usage", &usage::key_usage(certificate))?;
    let is_web = statements.is_ok_and(|statements| statements.web);
    let issued = own.map(|own| own.not_before);
    let extended = usage::extended(certificate, is_web, issued);
    for (line, text) in extended.iter().enumerate() {
        row(if line == 0 { "extended usage" } else { "" }, text)?;
    }
    row("signed with", &algorithm(certificate))?;
    chain(signing, judges.anchors.as_deref(), out)?;
    for (name, text) in passing::rows(judges, subject.verdicts) {
        writeln!(out, "{name:<16}{}", tame(&text))?;
    }
    Ok(())
}

/// The rows about QcStatements: what the certificate claims, who vouches for it, and what its roles permit.
fn statement_rows(statements: &QcStatements, subject: &Subject<'_>) -> Vec<(String, String)> {
    let says = |held: bool| if held { "yes" } else { "no" };
    let kinds = [(statements.eseal, "eseal"), (statements.web, "web")];
    let kinds = kinds.iter().filter(|(held, _)| *held);
    let kinds: Vec<_> = kinds.map(|(_, name)| *name).collect();
    let kinds = or_none(&kinds.join(", "), "neither eseal nor web");
    let mut rows = vec![
        ("QcCompliance", says(statements.qualified).to_owned()),
        ("QcType", kinds),
        ("QcSSCD", says(statements.sscd).to_owned()),
    ];
    let Subject {
        judges,
        signing,
        listed,
        ..
    } = *subject;
    rows.extend(vouched::rows(statements, judges, signing, listed));
    let owned = |(name, text): (&str, String)| (name.to_owned(), text);
    let mut rows: Vec<_> = rows.into_iter().map(owned).collect();
    match &statements.psd2 {
        Some(psd2) => rows.extend(psd2_rows(psd2, judges)),
        None => rows.push(("roles".to_owned(), "no PSD2 statement".to_owned())),
    }
    rows
}

fn psd2_rows(psd2: &Psd2Statement, judges: &Judges) -> Vec<(String, String)> {
    let own = builtin();
    let operations: Vec<&Operation> = match &judges.configured {
        Some(configured) => {
            let operations = configured.catalogue.operations().iter();
            operations.map(Arc::as_ref).collect()
        }
        None => own.iter().collect(),
    };
    let roles = or_none(&psd2.roles.to_string(), "none");
    let mut rows = vec![("roles".to_owned(), roles)];
    for role in psd2.roles.each() {
        let name = role.to_string();
        let meaning = match name.as_str() {
            "PSP_AS" => "account servicing; ",
            "PSP_PI" => "payment initiation; ",
            "PSP_AI" => "account information; ",
            "PSP_IC" => "issuing of card-based payment instruments; ",
            _ => "",
        };
        let text = format!("{meaning}permits {}", permitted(role, &operations));
        rows.push((format!("  {name}"), text));
    }
    let authority = format!("{} ({})", psd2.nca_id, psd2.nca_name);
    rows.push(("authority".to_owned(), authority));
    rows
}

/// The groups of the operations that a role suffices for (CRT-5).
fn permitted(role: Roles, operations: &[&Operation]) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for operation in operations {
        if role_suffices(role, operation.role) && !groups.contains(&operation.group.as_str()) {
            groups.push(&operation.group);
        }
    }
    or_none(&groups.join(", "), "no operation")
}

/// Writes the faults of both uses; `client` is `None` where the certificate is judged as that of a signature only.
pub(super) fn write_faults(
    signing: &[Finding],
    client: Option<&[Finding]>,
    has_anchors: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_list("", signing, out)?;
    if let Some(client) = client {
        write_list(" for mutual TLS", client, out)?;
    }
    let chain = if has_anchors { "" } else { "the chain, " };
    writeln!(out, "not judged: {chain}revocation, registers")
}

fn write_list(of_use: &str, faults: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    if faults.is_empty() {
        writeln!(out, "\nno fault{of_use}")?;
    } else {
        let plural = if faults.len() == 1 { "" } else { "s" };
        writeln!(out, "\n{} fault{plural}{of_use}:", faults.len())?;
    }
    for fault in faults {
        writeln!(out, "  {} ({})", fault.reason.slug(), fault.rule)?;
        writeln!(out, "    {}", tame(&fault.text))?;
        writeln!(out, "    {}", fault.clause)?;
    }
    Ok(())
}

/// The path, from the certificate upwards.
fn chain(path: &CertificationPath, whose: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    for (depth, member) in path.members.iter().enumerate() {
        let name = if depth == 0 { "chain" } else { "" };
        writeln!(out, "{name:<16}{depth}  {}", tame(&subject(member)))?;
    }
    let end = match (whose, &path.fault) {
        (Some(folder), Some(fault)) if !fault.is_by_lists() => format!("no anchor of {folder}"),
        (Some(folder), _) => format!("an anchor of {folder}"),
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
