//! The CRLs of NIST's PKITS (sections 4.4, 4.14 and 4.15 above all), read as files of a configuration.
//!
//! .ci/pkits.sh finds or fetches them; where they cannot be had, the test says so and is skipped, and fails on CI.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says why it is skipped"
)]

use super::{Revocation, RevocationSettings, RevocationStatus};
use crate::{Anchors, CertificateTypes};
use openssl::x509::X509;
use portvakt_base::clock::Timestamp;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

/// Good paths of which nobody can say that they are good without what is not supported, each with the reason. They are "unknown",
/// which the policy refuses, or "revoked": never "good" by half of the truth.
const UNKNOWN: &[(&str, &str)] = &[
    ("ValidSeparateCertificateandCRLKeys", KEYS),
    ("ValidBasicSelfIssued", KEYS),
    ("ValidSelfIssued", KEYS),
    ("ValidDNnameConstraintsTest19", KEYS),
    ("ValiddistributionPoint", POINTS),
    (
        "ValidonlySomeReasons",
        "lists for some reasons only are refused",
    ),
    ("ValidIDPwithindirectCRL", "indirect lists are refused"),
    ("ValidcRLIssuer", "indirect lists are refused"),
    (
        "ValiddeltaCRL",
        "delta lists are refused: what one takes back stays revoked, and the complete list beside it may have run out",
    ),
];

/// A path that only a delta list revokes; the complete list, which is current, does not. Deltas are not fetched (CRT-6).
const BY_DELTA_ONLY: &str = "InvaliddeltaCRLTest4";

const KEYS: &str = "a list must be signed by the very key that signed the certificate";
const POINTS: &str = "the list's distribution point is named relative to its issuer";

/// The suite's folder, from .ci/pkits.sh, which fetches it once. On CI it must be there.
fn folder() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/pkits.sh");
    let asked = Command::new(script).output().unwrap();
    if asked.status.success() {
        let folder = String::from_utf8(asked.stdout).unwrap();
        return Some(folder.trim().into());
    }
    let why = String::from_utf8_lossy(&asked.stderr);
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
    println!("skipped: {why}");
    None
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, fs::read(path).unwrap())
    };
    paths.iter().map(read).collect()
}

//= CRT-6 accepted
//= CRT-6 refused
#[test]
fn lists_are_judged_as_nist_says() {
    let Some(folder) = folder() else { return };
    let (mut authorities, mut ends, mut root) = (Vec::new(), Vec::new(), None);
    for (name, der) in files(&folder.join("certs")) {
        let certificate = X509::from_der(&der).unwrap();
        match name.strip_suffix("EE") {
            Some(case) => ends.push((case.to_owned(), der)),
            None if name == "TrustAnchorRootCertificate" => root = Some(certificate),
            None => authorities.push(certificate),
        }
    }
    let anchors = Anchors::of_operator(root.into_iter().collect(), authorities).unwrap();
    let lists = files(&folder.join("crls"));
    let revocation = Revocation::new(RevocationSettings {
        lists: lists.into_iter().map(|(_, list)| list).collect(),
        ..RevocationSettings::default()
    })
    .unwrap();
    let (mut good, mut bad, mut unknown, mut faults) = (0, 0, 0, Vec::new());
    for (name, der) in &ends {
        // What is no chain needs no list.
        let Ok(members) = anchors.members(der, &[], CertificateTypes::default(), NOW) else {
            continue;
        };
        let sources = {
            let others = |issuer: &_| anchors.other_keys(issuer, members.last(), NOW);
            revocation.sources(&members, others).unwrap()
        };
        let standing = sources.standing(NOW, Duration::ZERO);
        let decided_by_lists = [
            "CRL",
            "Revoked",
            "distributionPoint",
            "onlyContains",
            "onlySome",
            "SerialNumber",
        ];
        if name.starts_with("Invalid") {
            // A list must not make any of these good; some are bad for another reason (a policy, a time).
            if decided_by_lists.iter().any(|part| name.contains(part)) {
                bad += 1;
                if standing == RevocationStatus::Good && name != BY_DELTA_ONLY {
                    faults.push(format!("{name} is good"));
                }
            }
        } else if standing == RevocationStatus::Good {
            good += 1;
        } else if let Some((_, why)) = UNKNOWN.iter().find(|(part, _)| name.starts_with(part)) {
            unknown += 1;
            println!("{name}: {why}: {standing:?}");
        } else {
            faults.push(format!("{name}: {standing:?}"));
        }
    }
    println!("{good} good, {bad} bad, {unknown} unknown");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(good > 80 && bad > 35, "{good} {bad}");
}
