//! `portvakt register`: the content of the EBA's register, before the gateway uses it.
//!
//! Invariant: the gateway's own reader reads the file (CRT-7). Deliberately not here: the bank's own list, whose faults `portvakt check`
//! reports with line and column, and downloads.

use crate::{
    clock::Timestamp,
    trust::{
        Registers,
        register::{EbaFault, RegisterSettings},
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
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Shows a register.
///
/// # Errors
/// [`RegisterFault`].
pub fn run(
    command: &RegisterCommand,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<ExitCode, RegisterFault> {
    let RegisterCommand::Check { file, country } = command;
    let registers = read(file, country)?;
    show(file, &registers, now, out)?;
    let findings = findings(&registers, now);
    for finding in &findings {
        writeln!(out, "odd: {finding}")?;
    }
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
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
    registers: &Registers,
    now: Timestamp,
    out: &mut impl Write,
) -> io::Result<()> {
    if let Some(as_of) = registers.as_of() {
        let days = now.unix().saturating_sub(as_of.unix()) / (24 * 3_600);
        writeln!(out, "{}: as of {as_of}, {days} days old", path.display())?;
    }
    if let Some(read) = registers.read() {
        writeln!(
            out,
            "{} institutions, and {} agents, who use the certificate of their institution",
            read.institutions, read.agents
        )?;
    }
    let authorised = registers.listings().filter(|listing| listing.authorised);
    writeln!(
        out,
        "{} identities, {} of them authorised, {} for {}",
        registers.len(),
        authorised.count(),
        with_a_role_here(registers),
        registers.settings().host_country
    )
}

/// The facts that an operator should look at.
fn findings(registers: &Registers, now: Timestamp) -> Vec<String> {
    let settings = registers.settings();
    let mut findings = Vec::new();
    if registers.is_stale(now) {
        let days = settings.max_age.as_secs() / (24 * 3_600);
        findings.push(format!(
            "it is older than {days} days, the default of registers.max_age: the gateway then answers 503, or decides by it with stale: pass"
        ));
    }
    if with_a_role_here(registers) == 0 {
        findings.push(format!(
            "nobody may initiate payments or read accounts in {}: compare --country with registers.host_country",
            settings.host_country
        ));
    }
    let nameless = registers.read().map_or(0, |read| read.without_identity);
    if nameless > 0 {
        findings.push(format!(
            "{nameless} institutions have no authority or no id that a certificate can name: they are never found"
        ));
    }
    let alike = registers.spelled_alike();
    if alike > 0 {
        findings.push(format!(
            "{alike} identities differ from another one only in spaces and dashes: their certificates must have exactly the same spelling"
        ));
    }
    findings
}

fn with_a_role_here(registers: &Registers) -> usize {
    let listings = registers.listings();
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
