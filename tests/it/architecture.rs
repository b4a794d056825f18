//! The structure of the source that no compiler keeps: the order of the layers within the gateway, circular imports in every crate, the
//! folders that import pingora, and the length of files. The manifests keep the layers between crates.
//!
//! Each rule is also tested with planted files, which shows that one wrong line makes the rule fail. Clippy's lint `too_many_lines`
//! (clippy.toml) limits the length of functions. Not here: the imports of tests.

mod built_once;
mod faults;
mod imports;
mod lexer;
mod linked;
mod pauses;

use imports::{Files, files_that_name, imports};
use lexer::{Token, lines_without_tests, tokens};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
};

/// The folders and files of the gateway's crate, lowest first: each imports only those before it.
const LAYERS: [&str; 14] = [
    "sca",
    "signing",
    "seen",
    "admission",
    "expiring",
    "config",
    "audit",
    "telemetry",
    "upstreams",
    "in_use",
    "control",
    "gateway",
    "tools",
    "cli",
];

/// The crates, by their folders.
const CRATES: [&str; 12] = [
    "src",
    "src/base",
    "src/development_pki",
    "src/hsm",
    "src/interface",
    "src/lists",
    "src/sandbox",
    "src/state",
    "src/trust",
    "benches/edge",
    "benches/memory",
    "benches/peers",
];

/// The maximum number of lines of a file, without its tests.
const MAX_LINES: usize = 400;

/// The only circle: an answer has the sources of its signer's chain, and a source has an answer.
const CIRCLES: [&str; 1] = ["revocation/answer.rs revocation/sources.rs revocation/source.rs"];

#[test]
fn a_layer_imports_only_those_below_it() {
    assert_eq!(against_the_layers(&sources("src")), [""; 0]);
}

#[test]
fn only_gateway_and_upstreams_know_pingora() {
    assert_eq!(pingora_outside_gateway(&sources("src")), [""; 0]);
}

#[test]
fn only_the_terminal_writes_to_one() {
    let crates = CRATES.iter().filter(|folder| folder.starts_with("src"));
    let found = crates.flat_map(|folder| other_ways_to_a_terminal(&sources(folder)));
    assert_eq!(found.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn no_other_files_import_each_other_in_a_circle() {
    let found = CRATES.map(sources).iter().flat_map(circles).collect();
    assert_eq!(BTreeSet::from(CIRCLES.map(str::to_owned)), found);
}

#[test]
fn files_are_short() {
    let long: Vec<_> = CRATES.map(sources).iter().flat_map(long_files).collect();
    assert_eq!(long, [""; 0], "{MAX_LINES} lines at most");
}

/// A crate that no test of this file sees would break every rule unseen.
#[test]
fn every_crate_is_listed() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let (_, members) = manifest.split_once("\nmembers = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let found: BTreeSet<_> = members.split('"').skip(1).step_by(2).collect();
    let listed = CRATES
        .into_iter()
        .filter(|folder| folder.starts_with("src"));
    assert_eq!(found, listed.collect());
}

/// Imports from a higher layer, and files that belong to no layer.
fn against_the_layers(files: &Files) -> Vec<String> {
    let layer = |file: &str| {
        let name = file.split('/').next().unwrap().trim_end_matches(".rs");
        LAYERS.iter().position(|layer| *layer == name)
    };
    let imports = imports(files);
    let wrong = imports
        .iter()
        .filter(|(from, to)| from != "lib.rs" && layer(from) < layer(to));
    let wrong = wrong.map(|(from, to)| format!("{from} imports {to}"));
    // The stubs of the programs are no modules of the library.
    let known = ["lib.rs", "main.rs", "portvakt-sandbox.rs"];
    let of_none = files
        .keys()
        .filter(|file| layer(file).is_none() && !known.contains(&file.as_str()));
    wrong
        .chain(of_none.map(|file| format!("{file} is in no layer")))
        .collect()
}

fn pingora_outside_gateway(files: &Files) -> Vec<String> {
    let mut found = files_that_name(files, "pingora");
    found.retain(|file| !file.starts_with("gateway/") && !file.starts_with("upstreams/"));
    found
}

/// Files that reach a standard stream in another way than by `Terminal`, which escapes control characters. The logs are lines of JSON.
fn other_ways_to_a_terminal(files: &Files) -> Vec<String> {
    let names = |text: &str| {
        let tokens = tokens(text);
        tokens.iter().enumerate().any(|(at, token)| {
            let before = at.checked_sub(1).map(|at| &tokens[at]);
            let is_macro = tokens.get(at + 1) == Some(&Token::Sign('!'))
                && ["print", "println", "eprint", "eprintln", "dbg"]
                    .iter()
                    .any(|name| token.is(name));
            // `.stdout` is a member of a child process.
            let is_stream =
                before != Some(&Token::Sign('.')) && (token.is("stdout") || token.is("stderr"));
            is_macro || is_stream
        })
    };
    let exempt = ["terminal.rs", "telemetry/sink.rs"];
    let is_test = |file: &str| file.ends_with("tests.rs") || file.contains("tests/");
    let programs = files
        .iter()
        .filter(|(file, _)| !exempt.contains(&file.as_str()) && !is_test(file));
    let found = programs.filter(|(_, text)| names(text));
    found.map(|(file, _)| file.clone()).collect()
}

/// The shortest circle of imports through each file, as `a.rs b.rs c.rs`, where the first file imports the second and the last the
/// first.
fn circles(files: &Files) -> BTreeSet<String> {
    let imports = imports(files);
    let mut imported: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in &imports {
        imported.entry(from).or_default().push(to);
    }
    let found = imported.keys().filter_map(|file| circle(file, &imported));
    found.map(|circle| circle.join(" ")).collect()
}

/// The shortest circle through a file, with its first file in alphabetical order in front.
fn circle<'f>(file: &'f str, imported: &BTreeMap<&'f str, Vec<&'f str>>) -> Option<Vec<&'f str>> {
    let mut paths = VecDeque::from([vec![file]]);
    let mut seen = BTreeSet::new();
    while let Some(path) = paths.pop_front() {
        for next in imported.get(path[path.len() - 1]).into_iter().flatten() {
            if *next == file {
                let first = path.iter().enumerate().min_by_key(|(_, file)| **file)?.0;
                let mut circle = path;
                circle.rotate_left(first);
                return Some(circle);
            }
            if seen.insert(*next) {
                paths.push_back([path.as_slice(), &[*next]].concat());
            }
        }
    }
    None
}

fn long_files(files: &Files) -> BTreeSet<String> {
    let is_test = |file: &str| {
        let mut parts = file.trim_end_matches(".rs").split('/');
        parts.any(|part| part == "tests" || part.ends_with("_tests"))
    };
    let long = files
        .iter()
        .filter(|(file, text)| !is_test(file) && lines_without_tests(text) > MAX_LINES);
    long.map(|(file, _)| file.clone()).collect()
}

/// The files of a crate, without those of crates below its folder.
fn sources(folder: &str) -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Files::new();
    collect(&root, &root, &mut files);
    files
}

fn collect(root: &Path, folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.join("Cargo.toml").exists() {
                collect(root, &path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            files.insert(name.to_owned(), fs::read_to_string(&path).unwrap());
        }
    }
}

/// A small crate that keeps every rule, with one line appended to one of its files.
fn planted(file: &str, line: &str) -> Files {
    let planted = [
        ("lib.rs", "mod sca; mod admission; mod gateway;"),
        (
            "sca/mod.rs",
            "mod code; pub use code::Code; // use crate::admission::Chain;",
        ),
        (
            "sca/code.rs",
            "pub struct Code; const TEXT: &str = \"use pingora::Error;\";",
        ),
        (
            "admission/mod.rs",
            "mod chain; mod name; pub use chain::Chain;",
        ),
        (
            "admission/chain.rs",
            "use super::name; use crate::sca::Code; pub(crate) struct Chain;",
        ),
        (
            "admission/name.rs",
            "pub fn read<'a>(text: &'a str) { let quote = '\"'; }",
        ),
        (
            "gateway/mod.rs",
            "mod gate; use crate::admission::{self, Chain as TheChain};",
        ),
        ("gateway/gate.rs", "use pingora::{Error, Result};"),
    ];
    let mut files: Files = planted
        .map(|(name, text)| (name.to_owned(), format!("{text}\n")))
        .into();
    files.get_mut(file).unwrap().push_str(line);
    files
}

#[test]
fn a_planted_crate_breaks_no_rule() {
    let files = planted("lib.rs", "");
    assert_eq!(against_the_layers(&files), [""; 0]);
    assert_eq!(pingora_outside_gateway(&files), [""; 0]);
    assert_eq!(circles(&files), BTreeSet::new());
    assert_eq!(long_files(&files), BTreeSet::new());
}

#[test]
fn one_line_breaks_the_layers() {
    let table = [
        (
            "sca/code.rs",
            "use crate::admission::Chain;",
            "admission/chain.rs",
        ),
        (
            "sca/mod.rs",
            "pub use crate::gateway::{gate::{self, Gate}};",
            "gateway/gate.rs",
        ),
        (
            "admission/name.rs",
            "fn f() { crate::gateway::gate::open(); }",
            "gateway/gate.rs",
        ),
        (
            "admission/name.rs",
            "use super::super::gateway;",
            "gateway/mod.rs",
        ),
        (
            "admission/mod.rs",
            "#[cfg(not(test))] use crate::gateway::X;",
            "gateway/mod.rs",
        ),
    ];
    for (file, line, to) in table {
        let expected = format!("{file} imports {to}");
        let found = against_the_layers(&planted(file, line));
        assert!(found.contains(&expected), "{line}: {found:?}");
    }
    let tests = "#[cfg(test)]\nmod tests {\n    use crate::gateway::X;\n}\n";
    assert_eq!(
        against_the_layers(&planted("admission/mod.rs", tests)),
        [""; 0]
    );
    let mut files = planted("lib.rs", "mod other;");
    files.insert("other.rs".into(), String::new());
    assert_eq!(against_the_layers(&files), ["other.rs is in no layer"]);
}

#[test]
fn one_line_breaks_the_rule_of_pingora() {
    for line in [
        "use pingora::Result;",
        "use pingora::{server::ShutdownWatch, Error};",
        "fn f() -> Result<(), Box<pingora::Error>> { Ok(()) }",
        "use ::pingora as proxy;",
        "use pingora_load_balancing::Backend;",
    ] {
        let found = pingora_outside_gateway(&planted("admission/chain.rs", line));
        assert_eq!(found, ["admission/chain.rs"], "{line}");
    }
    for line in [
        "// use pingora::Error;",
        "/* pingora::x */",
        "#[cfg(test)]\nuse pingora::Error;",
    ] {
        let found = pingora_outside_gateway(&planted("admission/chain.rs", line));
        assert_eq!(found, [""; 0], "{line}");
    }
}

#[test]
fn one_line_finds_another_way_to_a_terminal() {
    for line in [
        "fn f() { println!(\"x\"); }",
        "fn f() { std::eprint !(\"x\"); }",
        "use std::io::stdout; fn f() { stdout().lock(); }",
    ] {
        let files = planted("admission/name.rs", line);
        assert_eq!(
            other_ways_to_a_terminal(&files),
            ["admission/name.rs"],
            "{line}"
        );
    }
    let harmless = "fn f(child: Child) { child.stdout.take(); } // println!()";
    assert_eq!(
        other_ways_to_a_terminal(&planted("admission/name.rs", harmless)),
        [""; 0]
    );
}

#[test]
fn one_line_makes_a_circle() {
    let found = |file: &str, line: &str| {
        circles(&planted(file, line))
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found("admission/name.rs", "use super::chain::Chain;"),
        ["admission/chain.rs admission/name.rs"]
    );
    // A re-exported name leads to the file that defines it.
    assert_eq!(
        found("admission/name.rs", "use super::Chain;"),
        ["admission/chain.rs admission/name.rs"]
    );
    assert_eq!(
        found("admission/name.rs", "use crate::admission::Chain as C;"),
        ["admission/chain.rs admission/name.rs"]
    );
    assert_eq!(
        found("admission/chain.rs", "use super::Own;"),
        ["admission/chain.rs admission/mod.rs"],
        "a folder's file that uses one of its own files, and is used by that"
    );
    assert_eq!(
        found("admission/name.rs", "use crate::gateway::X;"),
        [
            "admission/chain.rs admission/name.rs gateway/mod.rs",
            "admission/chain.rs admission/name.rs gateway/mod.rs admission/mod.rs"
        ]
    );
    assert_eq!(found("admission/name.rs", "pub(super) fn f() {}"), [""; 0]);
    let line = "pub(in crate::admission) fn f() {}";
    assert_eq!(
        found("admission/chain.rs", line),
        [""; 0],
        "it imports nothing"
    );
    assert_eq!(
        found("admission/name.rs", "fn f() -> impl Sized + use<'_> {}"),
        [""; 0]
    );
}

#[test]
fn one_line_makes_a_file_too_long() {
    let lines = |count: usize| "// x\n".repeat(count);
    let full = planted("admission/name.rs", &lines(MAX_LINES - 1));
    assert_eq!(long_files(&full), BTreeSet::new());
    let tests = format!(
        "#[cfg(test)]\nmod tests {{\n{}}}\n",
        "    // x\n".repeat(50)
    );
    let with_tests = planted("admission/name.rs", &(lines(MAX_LINES - 1) + &tests));
    assert_eq!(long_files(&with_tests), BTreeSet::new());
    let over = planted("admission/name.rs", &(lines(MAX_LINES) + &tests));
    assert_eq!(long_files(&over), ["admission/name.rs".to_owned()].into());
}
