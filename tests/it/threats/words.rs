//! The table "The source of each header" of docs/threat-model.md: it names every header that the code reads, and says where its value goes.

use super::DOCUMENT;
use crate::harness::{Call, Gate, Protocol, needs_sca};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use portvakt::interface::headers;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The places that a value can reach, as the table names them.
const PLACES: [&str; 7] = [
    "state",
    "assertion",
    "audit",
    "log",
    "span",
    "label",
    "token",
];

/// The headers of the table, in lower case, each with the places of its row.
fn table() -> BTreeMap<String, BTreeSet<&'static str>> {
    let (_, section) = DOCUMENT.split_once("## The source of each header").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &'static str| {
        let mut cells = line.split('|').skip(1).map(str::trim);
        let name = cells.next().unwrap().trim_matches('`').to_lowercase();
        let (source, places) = (cells.next().unwrap(), cells.next().unwrap());
        assert!(!source.is_empty(), "{name}");
        let places = places.split(", ").filter(|place| *place != "none");
        let places: BTreeSet<_> = places.collect();
        let others = places.iter().find(|place| !PLACES.contains(place));
        assert_eq!(others, None, "{name}");
        (name, places)
    };
    rows.map(row).collect()
}

/// The folders of the source that judge or answer requests.
const OF_REQUESTS: [&str; 8] = [
    "admission",
    "audit",
    "control",
    "gateway",
    "sca",
    "signing",
    "state",
    "telemetry",
];

/// The text of every file of these folders of the source, without its tests.
fn sources(folders: &[&str]) -> Vec<(PathBuf, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders: Vec<_> = folders.iter().map(|folder| source.join(folder)).collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // The models are tests.
                folders.extend((!path.ends_with("state/model")).then_some(path));
            } else if path.extension().is_some_and(|kind| kind == "rs")
                && !path.ends_with("tests.rs")
            {
                let text = fs::read_to_string(&path).unwrap();
                let (text, _) = text.split_once("\n#[cfg(test)]").unwrap_or((&text, ""));
                // A function for tests alone, as in `KnownPsu`.
                let mut parts = text.split("\n    #[cfg(feature = \"sandbox\")]\n");
                let code = parts.next().unwrap_or_default().to_owned();
                let rest = parts.filter_map(|part| Some(part.split_once("\n    }\n")?.1));
                found.push((path, rest.fold(code, |code, part| code + part)));
            }
        }
    }
    found
}

/// The headers of the interface's table that the code names as `headers::NAME`, and the core's Gateway- headers.
fn read_by_the_code() -> BTreeSet<String> {
    let written: BTreeMap<String, &str> = headers::TABLE
        .iter()
        .map(|header| {
            (
                header.written.to_uppercase().replace('-', "_"),
                header.written,
            )
        })
        .collect();
    let mut read = BTreeSet::new();
    for (path, text) in sources(&OF_REQUESTS) {
        for after in text.split("headers::").skip(1) {
            let name = after
                .split(|c: char| !(c.is_ascii_uppercase() || c == '_'))
                .next();
            let header = name.and_then(|name| written.get(name));
            read.extend(header.map(|header| header.to_lowercase()));
        }
        // The gateway's own headers for the core begin alike; only these two files read the core's.
        if path.ends_with("gateway/settle.rs") || path.ends_with("state/word.rs") {
            let names = text.split("from_static(\"").skip(1);
            read.extend(names.filter_map(|name| Some(name.split_once('"')?.0.to_owned())));
        }
    }
    read
}

/// A header that code begins to read fails here until the table names its source.
#[test]
fn every_header_that_the_code_reads_has_a_source() {
    let written: BTreeSet<_> = table().into_keys().collect();
    assert_eq!(read_by_the_code(), written);
}

/// The functions that cross the border between a claim and a fact, and the files that may call them.
const CROSSINGS: [(&str, &[&str]); 5] = [
    (
        "Claimed::by_tpp",
        &["admission/envelope/forms.rs", "sca/token.rs"],
    ),
    ("to_show", &["control/sca.rs", "sca/token.rs"]),
    (
        "to_seek",
        &["state/keys.rs", "state/known_psu.rs", "state/lookups.rs"],
    ),
    ("Known::by_bank", &["control/members.rs", "tools/audit.rs"]),
    ("Known::by_own_seal", &["sca/token.rs"]),
];

/// SCA-17, SCA-22: a known value comes from the bank, the core, a row of the state or a sealed token, and a claim is shown to the bank alone.
#[test]
fn only_these_files_make_claims_and_facts() {
    let everywhere = ["config", "tools", "trust", "upstreams", "interface"];
    let sources = sources(&[&OF_REQUESTS[..], &everywhere].concat());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (function, files) in CROSSINGS {
        let calls = sources
            .iter()
            .filter(|(path, text)| !path.ends_with("state/word.rs") && text.contains(function));
        let found: BTreeSet<_> = calls
            .map(|(path, _)| path.strip_prefix(&root).unwrap().to_str().unwrap())
            .collect();
        let may: BTreeSet<_> = files.iter().copied().collect();
        assert_eq!(found, may, "{function}");
    }
}

const PSU: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const FIRM: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c33ff";

/// Headers with values that are found again.
const MARKED: [(&str, &str); 8] = [
    ("PSU-ID", PSU),
    ("PSU-Corporate-ID", FIRM),
    ("TPP-Session-ID", "marked-session"),
    ("TPP-Redirect-URI", "https://tpp.example/marked"),
    ("X-Request-ID", "marked-request"),
    ("PSU-IP-Address", "203.0.113.77"),
    ("PSU-IP-Port", "37747"),
    ("PSU-Device-ID", "3f2504e0-4f89-41d3-9a0c-0305e82c7777"),
];

/// The value of each header is in the assertion exactly where the table says so.
#[test]
fn an_assertion_has_the_words_that_the_table_says() {
    let gate = Gate::builder()
        .strangers()
        .line("assertion: {key: state/assertion.key}")
        .start();
    let tpp = gate.world().both.id().unwrap();
    gate.introduce(json!({ "tpp": tpp, "psu_id": PSU, "psu_corporate_id": FIRM }));
    let mut call = Call::payment().only(Protocol::Http1);
    for (name, value) in MARKED {
        call = call.with(name, value);
    }
    gate.upstream().take();
    let answer = gate.send(&call, Protocol::Http1);
    assert!((200..300).contains(&answer.status), "{:?}", answer.json());
    let seen = gate.upstream().take().remove(0);
    let claims = seen.header("gateway-assertion").unwrap().split('.').nth(1);
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims.unwrap()).unwrap();
    let claims = String::from_utf8(claims).unwrap();
    // The link in Gateway-Sca-Redirect is sealed: it shows no value.
    let table = table();
    for (name, value) in MARKED {
        let said = table.get(&name.to_lowercase());
        let said = said.is_some_and(|places| places.contains("assertion"));
        assert_eq!(claims.contains(value), said, "{name}: {claims}");
    }
}

/// The value of each header is in the token of a link, as the bank reads it, exactly where the table says so.
#[test]
fn a_token_has_the_words_that_the_table_says() {
    let gate = Gate::builder().strangers().start();
    let mut call = Call::accounts().only(Protocol::Http1);
    for (name, value) in MARKED {
        call = call.with(name, value);
    }
    let answer = needs_sca(&gate, &call);
    let answer = answer.json();
    let href = answer["_links"]["scaRedirect"]["href"].as_str().unwrap();
    let (_, request) = href.split_once("request=").unwrap();
    let read = gate
        .tell("/sca/read", &json!({ "request": request }))
        .json();
    let done = json!({ "request": request, "psu_id": PSU, "context": "CORPORATE", "psu_corporate_id": FIRM });
    let back = gate.tell("/sca/complete", &done).json();
    let back = back["redirect_uri"].as_str().unwrap();
    let (back, added) = back.split_at("https://tpp.example/marked".len());
    // PSU-ID and agreement of the redirect are the bank's words.
    let session = added
        .split('&')
        .find(|pair| pair.starts_with("tpp-session-id"));
    let shown = [&read.to_string(), back, session.unwrap()].concat();
    let table = table();
    for (name, value) in MARKED {
        let said = table.get(&name.to_lowercase());
        // The token names only a PSU who is bound: this one is not.
        let said = said.is_some_and(|places| places.contains("token") && name != "PSU-ID");
        assert_eq!(shown.contains(value), said, "{name}: {shown}");
    }
    assert_eq!(read["psu_known"], Value::Bool(false));
}
