//! `portvakt register`: the content of the EBA's register before the gateway uses it, and what all registers say of one TPP.
//!
//! Invariant: the gateway's own reader reads the files, and its own check judges the TPP (CRT-7, CRT-14). Deliberately not here: the faults
//! of the configuration, which `portvakt check` reports with line and column; blocks by `POST /tpp/block`, which the state has; downloads.

use super::moment;
use crate::{
    admission::would_be_registered,
    clock::Timestamp,
    config::{ConfigFaults, Settings},
    interface::{Refusal, TppId, operations::Role},
    trust::{
        Registers, Roles,
        register::{EbaFault, Listing, Register, RegisterSettings},
    },
};
use clap::Subcommand;
use std::{
    fs::File,
    io::{self, BufReader, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// `portvakt register …`
#[derive(Debug, Subcommand)]
pub enum RegisterCommand {
    /// Show the age and the entries of the EBA's register, and what is odd. Exits with 0, with 1 if something is odd, or with 2 if
    /// the file is unusable.
    Check {
        /// The EBA's export, JSON.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The country of the bank (registers.host_country), two capitals.
        #[arg(long, value_name = "COUNTRY", default_value = "NO")]
        country: String,
    },
    /// Show what each register says of a TPP, and whether its requests would pass. Exits with 0 if it is registered in a role, with 1 if
    /// in none, or with 2 if the configuration is unusable.
    Show {
        /// The TPP's organizationIdentifier, such as PSDNO-FSA-123456.
        #[arg(value_name = "TPP")]
        tpp: String,
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Judge the age of the registers as of this moment: seconds since 1970, or RFC 3339. Default: now.
        #[arg(long, value_name = "TIME", value_parser = moment::parse)]
        at: Option<Timestamp>,
    },
}

/// The reason why a register cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum RegisterFault {
    /// The file cannot be read.
    #[error("{0} cannot be read: {1}")]
    File(PathBuf, io::Error),
    /// The file is not the EBA's export.
    #[error("{0}: {1}")]
    NotEba(PathBuf, EbaFault),
    /// The TPP is not an organizationIdentifier.
    #[error("expected a TPP such as PSDNO-FSA-123456: {0}")]
    NoTpp(String),
    /// The configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// The configuration checks no register.
    #[error("{0}: registers.check is off: every TPP passes without a register")]
    Off(PathBuf),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Shows a register, or what the registers say of a TPP.
///
/// # Errors
/// [`RegisterFault`].
pub fn run(
    command: &RegisterCommand,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<ExitCode, RegisterFault> {
    let (file, country) = match command {
        RegisterCommand::Check { file, country } => (file, country),
        RegisterCommand::Show { tpp, config, at } => {
            let settings = Settings::load(config).map_err(RegisterFault::Config)?;
            let registers = settings.reloadable.snapshot.registers;
            let registers = registers.ok_or_else(|| RegisterFault::Off(config.clone()))?;
            return show_tpp(tpp, &registers, at.unwrap_or(now), out);
        }
    };
    let registers = read(file, country)?;
    let mut findings = Vec::new();
    for register in registers.each() {
        show(file, register, country, now, out)?;
        findings.extend(odd(register, country, now));
    }
    for finding in &findings {
        writeln!(out, "odd: {finding}")?;
    }
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Shows what each register says of a TPP, and what follows for each role.
fn show_tpp(
    tpp: &str,
    registers: &Registers,
    at: Timestamp,
    out: &mut impl Write,
) -> Result<ExitCode, RegisterFault> {
    let id = TppId::parse(tpp).ok_or_else(|| RegisterFault::NoTpp(TppId::fault(tpp)))?;
    let country = &registers.settings().host_country;
    writeln!(out, "{id} at {at}")?;
    for register in registers.each() {
        let (name, as_of, until) = (register.name(), register.as_of(), register.good_until());
        let old = if register.is_stale(at) {
            ", too old since then"
        } else {
            ""
        };
        let says = said(register.find(&id), country);
        writeln!(out, "{name}, of {as_of}, good until {until}{old}: {says}")?;
    }
    let found = registers.find(&id);
    let own = match (found.blocked, found.allowed.is_empty()) {
        (true, _) => "blocks it".to_owned(),
        (false, false) => format!("allows {}", found.allowed),
        (false, true) => "has no entry".to_owned(),
    };
    writeln!(out, "the bank's own list: {own}")?;
    let mut is_registered = false;
    for (role, needed) in [
        ("PSP_AI", Role::AccountInformation),
        ("PSP_PI", Role::PaymentInitiation),
    ] {
        match would_be_registered(&id, Roles::ALL, needed, registers, at) {
            Ok(()) => {
                is_registered = true;
                writeln!(out, "{role}: registered")?;
            }
            Err(refusal) => writeln!(out, "{role}: {}", refused(&refusal))?,
        }
    }
    writeln!(
        out,
        "not judged: the roles in its certificate, and blocks by POST /tpp/block"
    )?;
    Ok(if is_registered {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn said(listed: Option<Listing>, country: &str) -> String {
    match listed {
        None => "not listed".to_owned(),
        Some(listed) if !listed.authorised => "its authorisation was withdrawn".to_owned(),
        Some(listed) if !listed.here.is_empty() => format!("{} in {country}", listed.here),
        Some(listed) if !listed.elsewhere.is_empty() => {
            format!("{} in other countries, not in {country}", listed.elsewhere)
        }
        Some(_) => "without a role of this interface".to_owned(),
    }
}

fn refused(refusal: &Refusal) -> String {
    let (status, reason) = (refusal.status(), refusal.reason().slug());
    let texts = refusal.faults().iter().map(|fault| fault.text.as_str());
    let texts: Vec<_> = texts.chain(refusal.operator()).collect();
    format!("refused with {status} {reason}: {}", texts.join("; "))
}

fn read(path: &Path, country: &str) -> Result<Registers, RegisterFault> {
    let open = || {
        let file = File::open(path)?;
        let modified = file.metadata()?.modified()?;
        Ok((file, Timestamp::from(modified)))
    };
    let (file, modified) = open().map_err(|error| RegisterFault::File(path.into(), error))?;
    let mut registers = Registers::new(RegisterSettings {
        host_country: country.to_owned(),
        ..RegisterSettings::default()
    });
    registers
        .take_eba(BufReader::new(file), modified)
        .map_err(|fault| RegisterFault::NotEba(path.into(), fault))?;
    Ok(registers)
}

fn show(
    path: &Path,
    register: &Register,
    country: &str,
    now: Timestamp,
    out: &mut impl Write,
) -> io::Result<()> {
    let as_of = register.as_of();
    let days = now.unix().saturating_sub(as_of.unix()) / (24 * 3_600);
    writeln!(out, "{}: as of {as_of}, {days} days old", path.display())?;
    let counts = register.counts();
    writeln!(
        out,
        "{} institutions, and {} agents, who use the certificate of their institution",
        counts.institutions, counts.agents
    )?;
    let authorised = register.listings().filter(|listing| listing.authorised);
    writeln!(
        out,
        "{} identities, {} of them authorised, {} for {country}",
        register.len(),
        authorised.count(),
        with_a_role_here(register),
    )
}

/// The facts that an operator should look at.
fn odd(register: &Register, country: &str, now: Timestamp) -> Vec<String> {
    let mut findings = Vec::new();
    if register.is_stale(now) {
        let days = register.max_age().as_secs() / (24 * 3_600);
        findings.push(format!(
            "it is older than {days} days, the default of registers.max_age: the gateway then answers 503, or decides by it with stale: pass"
        ));
    }
    if with_a_role_here(register) == 0 {
        findings.push(format!(
            "nobody may initiate payments or read accounts in {country}: compare --country with registers.host_country"
        ));
    }
    let nameless = register.counts().without_identity;
    if nameless > 0 {
        findings.push(format!(
            "{nameless} institutions have no authority or no id that a certificate can name: they are never found"
        ));
    }
    let alike = register.spelled_alike();
    if alike > 0 {
        findings.push(format!(
            "{alike} identities differ from another one only in spaces and dashes: their certificates must have exactly the same spelling"
        ));
    }
    findings
}

fn with_a_role_here(register: &Register) -> usize {
    let listings = register.listings();
    listings.filter(|listing| !listing.here.is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The status and the output for a file of these institutions: NCA, id and the services in `NO`.
    fn checked(institutions: &[(&str, &str, &[&str])], at: u64) -> (ExitCode, String) {
        let entity = |(owner, id, services): &(&str, &str, &[&str])| {
            json!({
                "CA_OwnerID": owner, "EntityCode": format!("{owner}!{id}!x"), "EntityType": "PSD_PI",
                "Properties": [{"ENT_NAT_REF_COD": id}, {"ENT_AUT": ["2019-01-01"]}],
                "Services": [{"NO": services}], "__EBA_EntityVersion": "20260101000000000",
            })
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eba.json");
        let entities: Vec<_> = institutions.iter().map(entity).collect();
        std::fs::write(&file, json!([[], entities]).to_string()).unwrap();
        let mut out = Vec::new();
        let command = RegisterCommand::Check {
            file,
            country: "NO".to_owned(),
        };
        let status = run(&command, Timestamp::from_unix(at), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        (status, text.split_once(": ").unwrap().1.to_owned())
    }

    /// 2026-01-01T00:00:00Z, the version of the test's register.
    const AS_OF: u64 = 1_767_225_600;

    #[test]
    fn a_register_is_counted_and_its_oddities_are_named() {
        let both: &[&str] = &["PS_070", "PS_080"];
        let (status, text) = checked(
            &[("NO_FSA", "1", both), ("NO_FSA", "2", &[])],
            AS_OF + 90_000,
        );
        assert_eq!(
            text,
            "as of 2026-01-01T00:00:00Z, 1 days old\n\
             2 institutions, and 0 agents, who use the certificate of their institution\n\
             2 identities, 2 of them authorised, 1 for NO\n"
        );
        assert_eq!(status, ExitCode::SUCCESS);
        let institutions = [
            ("NO_FSA", "1-2", &[][..]),
            ("NO_FSA", "12", &[]),
            ("NO_FSA", "", &[]),
        ];
        let (status, text) = checked(&institutions, AS_OF + 30 * 86_400);
        let odd: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("odd: "))
            .collect();
        assert_eq!(status, ExitCode::FAILURE);
        let starts = [
            "odd: it is older than 7 days",
            "odd: nobody may initiate payments",
            "odd: 1 institutions have no authority",
            "odd: 2 identities differ",
        ];
        assert_eq!(odd.len(), starts.len(), "{text}");
        assert!(
            odd.iter()
                .zip(starts)
                .all(|(odd, start)| odd.starts_with(start)),
            "{text}"
        );
    }

    #[test]
    fn an_unusable_register_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eba.json");
        let check = || {
            let command = RegisterCommand::Check {
                file: file.clone(),
                country: "NO".to_owned(),
            };
            let fault = run(&command, Timestamp::from_unix(AS_OF), &mut Vec::new()).unwrap_err();
            fault.to_string()
        };
        assert!(check().contains("eba.json cannot be read: "));
        std::fs::write(&file, "[[], [").unwrap();
        assert!(check().contains("eba.json: it is not the EBA's export: "));
    }
}
