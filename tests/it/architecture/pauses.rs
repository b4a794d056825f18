//! Tests do not guess about time: which files may pause, and which may assert an upper bound on a time.
//!
//! A pause of fixed length decides nothing on a slow machine. Waits are `harness::eventually`; the few pauses that are left are
//! `harness::let_pass`, and [`PAUSES`] counts them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The files that may let time pass, and how often. Each place says why in a comment.
const PAUSES: &[(&str, usize)] = &[
    ("audit.rs", 1),
    ("blocks.rs", 1),
    ("certificate/cold.rs", 1),
    ("certificate/faults.rs", 2),
    ("control/audited.rs", 4),
    ("control/doors.rs", 1),
    ("evidence.rs", 2),
    ("flood.rs", 1),
    ("harness/postgres/proxy.rs", 1),
    ("harness/revocation.rs", 1),
    ("harness/upstream.rs", 1),
    ("hostile_core/chunks.rs", 1),
    ("hostile_core/crossing.rs", 5),
    ("hostile_core/sizes.rs", 2),
    ("overload.rs", 3),
    ("quota.rs", 1),
    ("reload.rs", 3),
    ("sca/stood.rs", 2),
    ("soak.rs", 2),
    ("soak/client.rs", 3),
    ("state/postgres/failures.rs", 4),
    ("state/postgres/gateways.rs", 2),
    ("state/postgres/replaced.rs", 1),
    ("stopping.rs", 1),
    ("systems/corpus.rs", 1),
    ("systems/edge.rs", 2),
    ("systems/prometheus.rs", 1),
    ("systems/prometheus/faults.rs", 6),
    ("systems/prometheus/traffic.rs", 1),
    ("systems/registers.rs", 2),
    ("systems/rotation.rs", 1),
    ("systems/upstreams.rs", 4),
    ("telemetry/metrics.rs", 1),
    ("transport/cut.rs", 3),
    ("transport/http2.rs", 4),
    ("transport/idle.rs", 1),
    ("transport/limits.rs", 6),
    ("transport/memory.rs", 1),
    ("transport/proxies.rs", 1),
    ("transport/slow_callers.rs", 1),
    ("upgrade/load.rs", 1),
    ("upstreams/leaving.rs", 1),
];

/// The same of the unit tests, which call `sleep` themselves: in loops with an end, under a paused clock, or to be late on purpose. Their
/// upper bounds are not looked for: those that there are, are of a paused clock.
const OF_UNITS: &[(&str, usize)] = &[
    ("audit/writer.rs", 2),
    ("control/reload.rs", 2),
    ("gateway/drain.rs", 2),
    ("gateway/request_body.rs", 1),
    ("sandbox/core/model_tests/killed.rs", 1),
    ("state/postgres/dispatch.rs", 1),
    ("upstreams/connection.rs", 1),
    ("upstreams/group.rs", 1),
    ("upstreams/pool.rs", 1),
];

/// The one file that calls `sleep`.
const WAITING: &str = "harness/waiting.rs";

#[test]
fn tests_wait_for_conditions() {
    let of_it = sources("tests/it").into_iter();
    let of_it = of_it.filter(|(file, _)| file != WAITING && file != "architecture/pauses.rs");
    assert_eq!(
        pauses(of_it),
        owned(PAUSES),
        "a test waits by harness::eventually; a pause that is really needed is counted in PAUSES"
    );
    assert_eq!(
        pauses(unit_tests(sources("src")).into_iter()),
        owned(OF_UNITS),
        "a pause of a unit test that is really needed is counted in OF_UNITS"
    );
}

/// The part of each file that is built for tests only: all of it, or its modules that are.
fn unit_tests(files: Vec<(String, String)>) -> Vec<(String, String)> {
    let modules: Vec<PathBuf> = files
        .iter()
        .flat_map(|(file, text)| {
            let folder = folder_of_modules(Path::new(file));
            let named = test_modules(text).filter_map(|(name, _)| name.strip_suffix(';'));
            named.map(|name| folder.join(name)).collect::<Vec<_>>()
        })
        .collect();
    let part = |(file, text): (String, String)| {
        let path = Path::new(&file).with_extension("");
        if modules.iter().any(|module| path.starts_with(module)) {
            return (file, text);
        }
        let inline = test_modules(&text).map(|(_, body)| body);
        let inline = inline.collect();
        (file, inline)
    };
    files.into_iter().map(part).collect()
}

/// The modules with a `cfg` of tests: the name with what follows it, and the body if it is in this file.
fn test_modules(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let items = text.split("\n#[cfg(").skip(1);
    let items = items.filter(|item| item.starts_with("test)]") || item.starts_with("all(test"));
    items.filter_map(|item| {
        // Other attributes may follow.
        let mut lines = item.match_indices('\n').map(|(at, _)| &item[at + 1..]);
        let item = lines.find(|item| !item.starts_with("#["))?;
        let (name, rest) = item.split_once('\n').unwrap_or((item, ""));
        let (_, name) = name.split_once("mod ")?;
        let body = rest.split("\n}\n").next()?;
        let is_inline = name.ends_with(" {");
        Some((name, if is_inline { body } else { "" }))
    })
}

/// Where the files of a file's modules are.
fn folder_of_modules(file: &Path) -> PathBuf {
    let stem = file.with_extension("");
    if ["mod", "lib", "main"]
        .iter()
        .any(|name| stem.ends_with(name))
    {
        return file.parent().unwrap().to_owned();
    }
    stem
}

fn owned(pauses: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let pauses = pauses.iter();
    pauses
        .map(|(file, count)| ((*file).to_owned(), *count))
        .collect()
}

/// The number of pauses in each file that has any.
fn pauses(files: impl Iterator<Item = (String, String)>) -> BTreeMap<String, usize> {
    let counted =
        files.map(|(file, text)| (file, calls(&text, "sleep(") + calls(&text, "let_pass(")));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// Upper bounds on a time stand in modules named `bounds`, whose tests run alone.
#[test]
fn only_bounds_assert_upper_bounds() {
    let found: Vec<String> = sources("tests/it")
        .into_iter()
        .filter(|(file, _)| !file.ends_with("bounds.rs") && file != "architecture/pauses.rs")
        .flat_map(|(file, text)| {
            let found = upper_bounds(&text).into_iter();
            let named = found.map(|assertion| format!("{file}: {assertion}"));
            named.collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_upper_bound_is_found() {
    for text in [
        "assert!(since.elapsed() < Duration::from_secs(1));",
        "assert!(took.elapsed() <= LIMIT, \"{took:?}\");",
        "assert!(\n    is_over || since.elapsed() < LIMIT,\n    \"late\"\n);",
        "let took = since.elapsed();\nassert!(took < LIMIT);",
        "let took = since\n    .elapsed()\n    .as_millis();\nassert!(\n    1 < 2 && took <= 100\n);",
        "let mut took: Duration = since.elapsed();\nassert!((LEAST..MOST).contains(&took), \"late\");",
        "let took = since.elapsed();\nassert!(LIMIT > took);",
    ] {
        assert_eq!(upper_bounds(text).len(), 1, "{text}");
    }
    for text in [
        "assert!(since.elapsed() >= Duration::from_secs(1));",
        "// assert!(since.elapsed() < limit);",
        "while since.elapsed() < time {",
        "assert!(since.elapsed() < LIMIT, \"{RAN_OUT}: the end\");",
        "assert!(\n    since.elapsed() < LIMIT,\n    \"{RAN_OUT}: the end\"\n);",
        "let took = since.elapsed();\nassert!(took >= LEAST);\nassert!(count < 3, \"{took:?}\");",
        "let is_in_time = since.elapsed() < LIMIT;\nassert!(!is_in_time || status == 200);",
    ] {
        assert_eq!(upper_bounds(text), [""; 0], "{text}");
    }
}

/// The assertions that a measured time, or a variable that holds one, is below something. The limit of a wait is none: its text says so.
fn upper_bounds(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    let code = lines.collect::<Vec<_>>().join(" ");
    let statements = code.split([';', '{', '}']).map(squeezed);
    let measured: BTreeSet<String> = statements.filter_map(|one| measured_by(&one)).collect();
    let assertions = code.match_indices("assert!(").map(|(at, _)| &code[at..]);
    assertions
        .map(|rest| squeezed(rest.split(");").next().unwrap()))
        .filter(|assertion| !assertion.contains("RAN_OUT") && is_bounded(assertion, &measured))
        .collect()
}

/// The variable that a statement sets to a measured time; not one that tells whether a time is over.
fn measured_by(statement: &str) -> Option<String> {
    let (name, value) = statement.split_once("let ")?.1.split_once('=')?;
    let is_time = value.contains("elapsed()") && !value.contains(['<', '>']);
    let name = name.trim().trim_start_matches("mut ").split(':').next()?;
    is_time.then(|| name.trim().to_owned())
}

/// Whether the condition of an assertion compares a measured time with something greater.
fn is_bounded(assertion: &str, measured: &BTreeSet<String>) -> bool {
    let condition = assertion.split(", \"").next().unwrap();
    let words = |text: &str| -> Vec<String> {
        let is_part = |c: char| c.is_alphanumeric() || "_.()".contains(c);
        let words = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let is_time = |word: Option<&String>| {
        word.is_some_and(|word| {
            let name = word.trim_matches(['(', ')']).split('.').next();
            word.contains("elapsed()") || name.is_some_and(|name| measured.contains(name))
        })
    };
    let of_parts = |sign: char, is_left: bool| {
        let parts: Vec<_> = condition.split(sign).collect();
        parts.windows(2).any(|pair| {
            let (left, right) = (words(pair[0]), words(pair[1]));
            is_time(if is_left { left.last() } else { right.first() })
        })
    };
    let is_in_range = condition
        .split("contains(&")
        .skip(1)
        .any(|rest| is_time(words(rest).first()));
    of_parts('<', true) || of_parts('>', false) || is_in_range
}

/// A text with one space for each run of them, and none before a dot, where a long chain of calls is broken.
fn squeezed(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace(" .", ".")
}

/// The calls of a function in a text, without comments.
fn calls(text: &str, call: &str) -> usize {
    let code = text.lines().filter(|line| !line.trim().starts_with("//"));
    code.map(|line| line.matches(call).count()).sum()
}

fn sources(below: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(below);
    let mut folders = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy();
                files.push((name.into_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}
