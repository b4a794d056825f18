//! TPPs whose identities differ in spaces and dashes: what permits is matched exactly, what forbids forgives.

use super::{breach::issue as tpp, passes};
use crate::harness::{Call, Gate, Protocol, accepted, needs_sca, refused};
use std::{fs, path::Path};

const NAMED: &str = "PSDNO-FSA-123456";
const ALIKE: [&str; 2] = ["PSDNO-FSA-123-456", "PSDNO-FSA-12 34 56"];
const BAD: &str = r#"{"instructedAmount":{"amount":"1","currency":"NOK"}}"#;

/// A set permits its own checks to exactly its TPP, and withholds those of every caller from each spelling.
//= FWD-6 accepted
//= FWD-6 refused
#[test]
fn a_set_permits_exactly_and_withholds_from_every_spelling() {
    let section = "observe: {checks: [date], tpps: {psdno-fsa-123456: [payload]}}";
    let gate = Gate::builder().line(section).start();
    let payment = |identity: &str| Call::payment().by(&tpp(identity)).json(BAD);
    let late = |identity: &str| {
        let call = Call::plain().off_by(-300).only(Protocol::Http1);
        call.by(&tpp(identity))
    };
    let (_, seen) = passes(&gate, &payment(NAMED));
    assert_eq!(seen.header("gateway-observed"), Some("payload-invalid"));
    for alike in ALIKE {
        let call = payment(alike);
        refused(&gate, &call, 400, "FORMAT_ERROR", "payload-invalid");
        refused(&gate, &late(alike), 400, "FORMAT_ERROR", "date-skewed");
    }
    refused(&gate, &late(NAMED), 400, "FORMAT_ERROR", "date-skewed");
    let (_, seen) = passes(&gate, &late("PSDNO-FSA-999999"));
    assert_eq!(seen.header("gateway-observed"), Some("date-skewed"));
}

/// SCA is waived for one TPP: another one reads no account without the PSU's consent.
//= FWD-6 accepted
//= FWD-6 refused
#[test]
fn sca_is_waived_for_exactly_one_tpp() {
    let section = format!("observe: {{tpps: {{{NAMED}: [sca]}}}}");
    let gate = Gate::builder().strangers().line(&section).start();
    let unknown = |identity: &str| Call::accounts().by(&tpp(identity));
    passes(&gate, &unknown(NAMED));
    for alike in ALIKE {
        needs_sca(&gate, &unknown(alike));
    }
}

/// The bank's own list allows exactly the TPPs that it names, and blocks every spelling; a TPP's hosts are those of every spelling.
//= FWD-6 accepted
//= FWD-6 refused
#[test]
fn lists_of_the_bank() {
    let local = "\
allow:
- {tpp: PSDNO-FSA-123456, roles: [PSP_AI, PSP_PI]}
- {tpp: PSDNO-FSA-777-777, roles: [PSP_AI]}
block:
- {tpp: PSDNO-FSA-777777}
";
    let gate = Gate::builder()
        .file("tpps.yaml", local)
        .line("registers: {check: on, local: tpps.yaml}")
        .line("redirect_hosts: {PSDNO-FSA-12-3456: [tpp.example]}")
        .start();
    let plain = |identity: &str| Call::plain().by(&tpp(identity));
    accepted(&gate, &plain(NAMED));
    for alike in ALIKE {
        let answer = refused(&gate, &plain(alike), 403, "FORBIDDEN", "tpp-not-registered");
        let body = answer.json().to_string();
        let hint = "the bank's own list allows PSDNO-FSA-123456, which is another spelling";
        assert!(body.contains(hint), "{body}");
    }
    for blocked in ["PSDNO-FSA-777-777", "PSDNO-FSA-777777", "PSDNO-FSA-7 77777"] {
        refused(&gate, &plain(blocked), 403, "FORBIDDEN", "tpp-blocked");
    }
    let elsewhere = plain(NAMED).with("TPP-Redirect-URI", "https://evil.example/");
    refused(&gate, &elsewhere, 400, "FORMAT_ERROR", "header-malformed");
    for near in ["https://tpp.example./", "https://www.tpp.example/"] {
        let call = plain(NAMED).with("TPP-Redirect-URI", near);
        refused(&gate, &call, 400, "FORMAT_ERROR", "header-malformed");
    }
}

/// Where the sources read a TPP's identity that the operator or the bank wrote: the file, and how often it permits and forbids. Each place has
/// a row of the table in docs/configuration.md.
const PLACES: [(&str, usize, usize, &[&str]); 7] = [
    ("config/observe.rs", 1, 0, &["`observe.tpps`"]),
    ("config/policy.rs", 0, 1, &["`redirect_hosts`"]),
    (
        "config/registers/mod.rs",
        1,
        1,
        &[
            "`allow` of `registers.local`",
            "`block` of `registers.local`",
        ],
    ),
    (
        "control/accesses.rs",
        0,
        1,
        &["`tpp` of `/psu/withdraw` and `/psu/unbind`"],
    ),
    (
        "control/moves.rs",
        2,
        0,
        &["`from` and `to` of `/tpp/move`"],
    ),
    (
        "control/psu.rs",
        1,
        1,
        &[
            "`tpp` of `/psu/bind`, `/psu/read` and an import",
            "`tpp` of `/psu/withdraw` and `/psu/unbind`",
        ],
    ),
    (
        "control/tpp.rs",
        0,
        1,
        &["`tpp` of `/tpp/block` and `/tpp/unblock`"],
    ),
];

/// No key and no member reads an identity in a third way, and the table in docs/configuration.md has them all.
#[test]
fn the_table_of_keys_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["config", "control"] {
        collect(
            &root.join("src"),
            &root.join("src").join(folder),
            &mut found,
        );
    }
    found.sort();
    let expected = PLACES.map(|(file, permits, forbids, _)| (file.to_owned(), permits, forbids));
    assert_eq!(
        found, expected,
        "name the new place in docs/configuration.md"
    );
    let page = fs::read_to_string(root.join("docs/configuration.md")).unwrap();
    let (_, section) = page.split_once("## Names of TPPs").unwrap();
    let section = section.split("\n## ").next().unwrap();
    for row in PLACES.iter().flat_map(|(_, _, _, rows)| *rows) {
        assert!(section.contains(&format!("| {row} |")), "{row}");
    }
}

/// The files that read identities, with the number of places that permit and that forbid.
fn collect(source: &Path, folder: &Path, found: &mut Vec<(String, usize, usize)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(source, &path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let name = path.strip_prefix(source).unwrap().display().to_string();
        // The readers themselves.
        if name == "config/value.rs"
            || name == "control/members.rs"
            || name.contains("settings_tests")
        {
            continue;
        }
        assert!(
            !code.contains("TppId::parse"),
            "{name}: say whether it permits or forbids"
        );
        let permits = code.matches(".permitted_tpp()").count()
            + code.matches("members::permitted_tpp").count();
        let forbids = code.matches(".forbidden_tpp()").count()
            + code.matches("members::forbidden_tpp").count();
        if permits + forbids > 0 {
            found.push((name, permits, forbids));
        }
    }
}
