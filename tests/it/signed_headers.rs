//! Every list of the headers that must be signed is that of the table (SIG-7): of the tools, the tests, the peers and the documents. A header
//! that were added to the table alone would leave interceptors that sign too little.

use portvakt::interface::headers;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The files that list them all. `tools/tpp` signs by a list of its own, so that a fault of the table does not sign what it demands.
const LISTS: [&str; 12] = [
    "benches/peers/conf/checks.lua",
    "docs/rules.yaml",
    "docs/tpp/signing/TppSignature.java",
    "docs/tpp/signing/tppSignature.ts",
    "docs/tpp/signing/tpp_signature.py",
    "docs/tpp/signing/tpp_signature.sh",
    "docs/tpp/signing/tppsignature.go",
    "docs/upstream-contract.md",
    "src/tools/tpp/sign.rs",
    "src/tools/tpp/tests.rs",
    "tests/it/openapi/signing.py",
    "tests/it/signing.rs",
];

/// The folders in which a list may stand.
const FOLDERS: [&str; 6] = ["benches", "config", "docs", "examples", "src", "tests"];

#[test]
fn every_list_is_that_of_the_table() {
    let signed = headers::SIGNED.map(|header| header.name.as_str());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files);
    }
    let mut found = Vec::new();
    for path in files {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let file = path.strip_prefix(root).unwrap().to_str().unwrap();
        for list in lists(&text, &signed) {
            // One of a single request has no PSU, or no redirect.
            // A list of one request's headers lacks an agreement or a redirect.
            let is_of_all = ["psu-corporate-id", "tpp-redirect-uri"]
                .iter()
                .all(|name| list.iter().any(|listed| listed == name));
            let is_whole = signed
                .iter()
                .zip(&list)
                .all(|(name, listed)| name == listed);
            assert!(
                !is_of_all || is_whole && list.len() >= signed.len(),
                "{file} lists {list:?}, the table {signed:?}"
            );
            if list == signed {
                found.push(file.to_owned());
            }
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(
        found, LISTS,
        "a list more, or one that no longer has them all"
    );
}

/// The lists that begin with the first three of the table: words of a header's name, with nothing but marks or `and` between them.
fn lists(text: &str, signed: &[&str]) -> Vec<Vec<String>> {
    let text = text.to_ascii_lowercase();
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let words = text.split(|letter| !is_of_name(letter));
    let words: Vec<&str> = words
        .filter(|word| !word.is_empty() && *word != "and")
        .collect();
    let is_known = |word: &&&str| headers::find(word).is_some();
    let begins = |at: &usize| words[*at..].starts_with(&signed[..3]);
    let starts = (0..words.len()).filter(begins);
    let list = |at: usize| {
        let names = words[at..].iter().take_while(is_known);
        names.map(|name| (*name).to_owned()).collect()
    };
    starts.map(list).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}

#[test]
fn a_list_is_found_in_any_notation() {
    let signed = headers::SIGNED.map(|header| header.name.as_str());
    let all = signed.map(str::to_owned).to_vec();
    for text in [
        signed.join(" "),
        format!("[\"{}\"]", signed.join("\", \"")),
        format!("({})", signed.join(" | ")),
        format!("over {}, as far as", signed.join(", ")),
    ] {
        assert_eq!(lists(&text, &signed), std::slice::from_ref(&all), "{text}");
    }
    assert_eq!(
        lists("date digest x-request-id psu-id", &signed),
        [["date", "digest", "x-request-id", "psu-id"]]
    );
}
