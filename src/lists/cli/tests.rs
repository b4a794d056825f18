//! The table of refusals in docs/trust.md: each row has a refusal of the code, and each refusal of the import has a row (CRT-13).

use super::refused;
use std::{fs, os::unix::fs::symlink};

/// The page for people.
const PAGE: &str = include_str!("../../../docs/trust.md");

/// The files from which an import is refused. What the tree, the signature and the list refuse has one row: not of the profile.
const SOURCES: [&str; 12] = [
    include_str!("../cli.rs"),
    include_str!("../certificate.rs"),
    include_str!("../own_way.rs"),
    include_str!("../second.rs"),
    include_str!("../import/mod.rs"),
    include_str!("../import/file.rs"),
    include_str!("../import/pivots.rs"),
    include_str!("../bundle/check.rs"),
    include_str!("../bundle/folder.rs"),
    include_str!("../signature/mod.rs"),
    include_str!("../../trust/bundle/fault.rs"),
    include_str!("../../trust/bundle/beside.rs"),
];

/// The last sources have more refusals than those of an import: of these only what a row names is looked for.
const OF_OTHERS: usize = 3;

/// The rows by the beginning of their reason, and what the refusals of each say.
const ROWS: [(&str, &[&str]); 19] = [
    (
        "altered, signed by none",
        &[
            "signed by none of the {} signers",
            "a second signature",
            "another list than the file claims",
        ],
    ),
    (
        "signed by none of the signers, for the list of lists",
        &[
            "nor by its pivots",
            "is not in the folder of lists; fetch it",
            "a pivot whose address has no name",
            "over 32 pivots",
            "a pivot without a pointer",
        ],
    ),
    (
        "another list than the list of lists of EU",
        &["expected the list of lists of EU"],
    ),
    (
        "the list of lists names no list of a country",
        &["the list of lists names no list of {country}"],
    ),
    (
        "a second list of a country",
        &["a second list of {country}"],
    ),
    (
        "`--leave-out` names a country",
        &[
            "--leave-out {}: there is no such list",
            "--at {at} lies ahead",
        ],
    ),
    ("out of date", &["out of date: its next update"]),
    (
        "issued over an hour after the import",
        &[
            "which is after the bundle was made",
            "its next update was due before that",
            "at most {most} are read",
        ],
    ),
    (
        "older than the last one",
        &["is older than the last one that was imported"],
    ),
    (
        "another file than the one of this number",
        &["is another file than the one of this number"],
    ),
    ("no anchor", &["no anchor: are the national lists"]),
    (
        "a list of the last bundle is missing",
        &["its list was in the last bundle", "over a tenth"],
    ),
    (
        "`current` leads to a folder that is not there",
        &[
            "which is not there",
            "leads to no bundle that can be compared",
            "{MAX_DOCUMENT_BYTES} bytes\"",
            "it is not UTF-8",
            "only an import writes it",
        ],
    ),
    (
        "the newest bundle in the folder of bundles",
        &["no import knows which issues of the lists this bundle had"],
    ),
    (
        "`--out` names a bundle",
        &["it is a bundle, and an import", "another import runs"],
    ),
    (
        "others than its owner may write",
        &[
            "it belongs to another user",
            "lets others than its owner",
            "everybody makes entries in this folder",
        ],
    ),
    (
        "a file of `pins/` is no certificate",
        &[
            "the folder holds no certificate",
            "no PEM certificate in the file",
            "a PEM file of certificates has a",
            "not PEM: ",
            "not base64: ",
            "not an X.509 certificate",
            "bytes follow a certificate",
            "a certificate is longer than 64 KiB",
        ],
    ),
    (
        "a file or folder cannot be read or written",
        &[
            "it cannot be read",
            "it is longer than 16 MiB",
            "it holds over 1000 files",
            "no folder that can be read",
            "cannot be written as YAML",
            "\"{}: {error}\"",
        ],
    ),
    (
        "the second verifier refuses a list",
        &[
            "the second verifier, {name}, ",
            "by which the second verifier is tried",
        ],
    ),
];

/// `--out` names the folder of bundles, or by mistake one of them: each time the last line says what is in use.
//= CRT-13 refused
#[test]
fn which_bundle_is_in_use() {
    let out = tempfile::tempdir().unwrap();
    let last = |name: &str| refused(Vec::new(), &out.path().join(name)).concat();
    let (none, stays) = (
        "nothing was imported: no bundle is in use",
        "nothing was imported: the last bundle stays in use",
    );
    fs::create_dir(out.path().join("2026-07-01T000000Z")).unwrap();
    fs::write(out.path().join("2026-07-01T000000Z/bundle.yaml"), "").unwrap();
    for name in ["", "2026-07-01T000000Z", "elsewhere"] {
        assert_eq!(last(name), none, "{name}");
    }
    symlink("2026-07-01T000000Z", out.path().join("current")).unwrap();
    for name in ["", "current", "2026-07-01T000000Z"] {
        assert_eq!(last(name), stays, "{name}");
    }
    assert_eq!(last("elsewhere"), none);
}

/// The texts of the refusals in a file: the literal behind each, with its quotes.
fn refusals(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for mark in ["Refusal::new(", "Refusal::at(", "#[error(", "vec![format!("] {
        for rest in source.split(mark).skip(1) {
            let rest = rest.trim_start();
            let rest = rest.strip_prefix("format_args!(").unwrap_or(rest);
            let rest = rest.trim_start();
            // A variable: its text stands elsewhere, and a row names it.
            let Some(literal) = rest.strip_prefix('"') else {
                continue;
            };
            // None of them has a quote in it.
            found.push(&rest[..literal.find('"').unwrap() + 2]);
        }
    }
    found
}

//= CRT-13 refused
#[test]
fn the_page_has_each_refusal_of_an_import() {
    let (_, section) = PAGE.split_once("\n## What is refused\n").unwrap();
    let (section, _) = section.split_once("\n### ").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let rows: Vec<_> = rows.skip(1).collect();
    assert_eq!(rows.len(), ROWS.len(), "{rows:#?}");
    for (row, (begin, texts)) in rows.iter().zip(ROWS) {
        assert!(row.starts_with(begin), "{row} has not: {begin}");
        for text in texts {
            let mut sources = SOURCES.iter();
            assert!(sources.any(|it| it.contains(text)), "{text}");
        }
    }
    let texts = ROWS.iter().flat_map(|(_, texts)| texts.iter());
    let texts: Vec<_> = texts.collect();
    let of_import = &SOURCES[..SOURCES.len() - OF_OTHERS];
    for refusal in of_import.iter().flat_map(|source| refusals(source)) {
        // What another fault or file says, with its name before it.
        let is_of_another = ["\"{}: {refusal}\"", "\"{0}\""].contains(&refusal);
        assert!(
            is_of_another || texts.iter().any(|text| refusal.contains(*text)),
            "docs/trust.md, \"What is refused\", has no row of: {refusal}"
        );
    }
}
