//! Each header of a request is looked up in one function, and each parsed type is constructed in one function.
//!
//! The test reads the source between the listener and the core. The tools, which read saved requests, are excluded, and so is
//! the control listener, whose callers send PSUs in JSON.

use std::{fs, path::Path};

/// The layers on the path of a request.
const LAYERS: [&str; 8] = [
    "admission",
    "gateway",
    "sca",
    "signing",
    "state",
    "telemetry",
    "trust",
    "config",
];

/// Each call that looks up or parses a header, and its only file. X-Request-ID has two: an answer repeats it, even if the
/// request is refused before its headers are judged (ERR-5).
const ONCE: [(&str, &[&str]); 23] = [
    (
        "RequestId::parse",
        // The gateway's are of heads that have no envelope.
        &[
            "admission/envelope/forms.rs",
            "gateway/opening.rs",
            "gateway/parse_fault.rs",
            "gateway/request_head.rs",
            "gateway/request_head.rs",
        ],
    ),
    ("TraceParent::parse", &["gateway/opening.rs"]),
    ("SessionId::parse", &["admission/envelope/forms.rs"]),
    ("RedirectUri::parse", &["admission/envelope/forms.rs"]),
    ("PsuId::parse", &["admission/envelope/forms.rs"]),
    ("CorporateId::parse", &["admission/envelope/forms.rs"]),
    ("PsuContext::parse", &["admission/envelope/forms.rs"]),
    (
        "choices::redirect_preferred",
        &["admission/envelope/forms.rs"],
    ),
    ("choices::is_psu_method", &["admission/envelope/forms.rs"]),
    ("uuid_form::is_valid", &["admission/envelope/forms.rs"]),
    ("network::address", &["admission/envelope/forms.rs"]),
    ("network::port", &["admission/envelope/forms.rs"]),
    ("network::is_location", &["admission/envelope/forms.rs"]),
    ("accept_fix::parse", &["admission/envelope/forms.rs"]),
    ("date::parse", &["admission/envelope/forms.rs"]),
    ("accept::allows_json", &["admission/envelope/content.rs"]),
    ("content::utf8_json", &["admission/envelope/content.rs"]),
    ("content::is_identity", &["admission/envelope/content.rs"]),
    (
        "connection::refused_nomination",
        &["admission/envelope/mod.rs"],
    ),
    (
        "authority::parse",
        &[
            "admission/envelope/mod.rs",
            // Names in the configuration.
            "config/authority.rs",
            "config/endpoints.rs",
        ],
    ),
    ("digest::check", &["admission/body.rs"]),
    ("encoded_word::decode", &["admission/signature.rs"]),
    ("Signature::parse", &["admission/signature.rs"]),
];

/// Headers whose values only the envelope reads.
const OF_THE_ENVELOPE: [&str; 12] = [
    "TPP_SESSION_ID",
    "TPP_REDIRECT_URI",
    "TPP_REDIRECT_PREFERRED",
    "PSU_ID",
    "PSU_CORPORATE_ID",
    "PSU_CONTEXT",
    "PSU_IP_ADDRESS",
    "PSU_IP_PORT",
    "PSU_DEVICE_ID",
    "PSU_HTTP_METHOD",
    "PSU_GEO_LOCATION",
    "DATE",
];

/// Functions that read a request header by the name of a constant.
const FETCHES: [&str; 4] = [".get(&", ".get_filled(&", ".values(&", ".count(&"];

/// Look-ups of headers of the table outside the envelope: 51 before each was parsed once, and at most half of that now.
const MOST_LOOK_UPS: usize = 25;

#[test]
fn each_header_is_parsed_in_one_place() {
    let sources = sources();
    for (call, files) in ONCE {
        let found = sources.iter().flat_map(|(file, text)| {
            let times = calls(text, call);
            std::iter::repeat_n(file.as_str(), times)
        });
        assert_eq!(found.collect::<Vec<_>>(), files, "{call}");
    }
}

/// A function of `interface::headers` that the envelope calls is in the list above.
#[test]
fn every_parser_of_the_envelope_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/interface/headers");
    let exported = fs::read_to_string(root.join("mod.rs")).unwrap();
    let is_exported = |name: &str| {
        let lines = exported.lines().filter(|line| line.starts_with("pub use"));
        lines.flat_map(words).any(|word| word == name)
    };
    let defines = |module: &str, function: &str| {
        let files = [format!("{module}.rs"), format!("{module}/mod.rs")];
        let texts = files.map(|file| fs::read_to_string(root.join(file)).unwrap_or_default());
        let functions = [format!("fn {function}("), format!("fn {function}<")];
        functions
            .iter()
            .any(|function| texts.iter().any(|text| text.contains(function)))
    };
    let mut calls = 0;
    for (file, text) in sources() {
        for word in words(&text).filter(|_| file.starts_with("admission/envelope/")) {
            let Some((of, function)) = word.split_once("::") else {
                continue;
            };
            // The cause of a value that was refused (ERR-10).
            if function.starts_with("fault") {
                continue;
            }
            if function == "parse" && is_exported(of) || defines(of, function) {
                let is_listed = ONCE.iter().any(|(call, _)| *call == word);
                assert!(is_listed, "{word} of {file} belongs in ONCE");
                calls += 1;
            }
        }
    }
    assert!(calls >= 15, "{calls}: the calls are elsewhere");
}

/// The words of a text, where a path is one word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && !"_:".contains(character))
}

#[test]
fn only_the_envelope_fetches_what_it_parses() {
    let outside = outside_the_envelope();
    for header in OF_THE_ENVELOPE {
        for (file, text) in &outside {
            for fetch in FETCHES {
                let fetched = format!("headers::{header}{fetch}");
                assert!(!text.contains(&fetched), "{file} fetches {header}");
            }
            let by_name = format!("(&headers::{header}");
            assert!(!text.contains(&by_name), "{file} fetches {header}");
        }
    }
}

#[test]
fn few_look_a_header_up_again() {
    let look_ups: Vec<_> = outside_the_envelope()
        .into_iter()
        .map(|(file, text)| {
            let by_header = FETCHES.map(|fetch| {
                let fields = ["head.fields)", "self.fields)", "self.head.fields)"];
                fields.map(|fields| text.matches(&format!("{fetch}{fields}")).count())
            });
            let by_name = [
                ".fields.named(",
                ".fields.all(",
                ".fields.present(",
                ".fields.map(",
                "head.host()",
                "self.host()",
                "get_header(&headers::",
                "head.get(&headers::",
                "headers.get(&headers::",
            ];
            let by_name = by_name.map(|call| text.matches(call).count());
            let times: usize = by_header.iter().flatten().chain(&by_name).sum();
            (file, times)
        })
        .filter(|(_, times)| *times > 0)
        .collect();
    let all: usize = look_ups.iter().map(|(_, times)| times).sum();
    println!("{all} look-ups outside the envelope: {look_ups:?}");
    assert!((10..=MOST_LOOK_UPS).contains(&all), "{all}: {look_ups:?}");
}

fn outside_the_envelope() -> Vec<(String, String)> {
    let mut sources = sources();
    sources.retain(|(file, _)| !file.starts_with("admission/envelope/"));
    sources
}

/// The number of times that a function's whole name occurs.
fn calls(text: &str, call: &str) -> usize {
    let begins = |at: usize| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
    };
    let found = text.match_indices(call).map(|(at, _)| at);
    found
        .filter(|at| begins(*at))
        .filter(|at| !text[at + call.len()..].starts_with(|next: char| next.is_alphanumeric()))
        .count()
}

/// Each source file of the layers, in order, without comments, line breaks and tests.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    for layer in LAYERS {
        collect(&root, &root.join(layer), &mut sources);
    }
    sources.sort();
    assert!(sources.len() > 100, "the sources are elsewhere");
    sources
}

fn collect(root: &Path, folder: &Path, sources: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        if path.is_dir() {
            collect(root, &path, sources);
        } else if !name.contains("tests") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let lines = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
            let text = words.join(" ").replace(" .", ".").replace("( ", "(");
            sources.push((name, text));
        }
    }
}
