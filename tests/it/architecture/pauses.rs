//! Tests do not guess about time: which files of tests/it may pause, and which may assert an upper bound on a time.
//!
//! A pause of fixed length decides nothing on a slow machine. Waits are `harness::eventually`; the few pauses that are left are
//! `harness::let_pass`, and [`PAUSES`] counts them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The files that may let time pass, and how often. Each place says why in a comment.
const PAUSES: &[(&str, usize)] = &[
    ("audit.rs", 1),
    ("certificate/cold.rs", 1),
    ("certificate/faults.rs", 2),
    ("control/audited.rs", 4),
    ("control/doors.rs", 1),
    ("flood.rs", 1),
    ("harness/postgres/proxy.rs", 1),
    ("harness/revocation.rs", 1),
    ("harness/upstream.rs", 1),
    ("hostile_core/chunks.rs", 1),
    ("hostile_core/crossing.rs", 5),
    ("hostile_core/sizes.rs", 2),
    ("overload.rs", 2),
    ("quota.rs", 1),
    ("reload.rs", 1),
    ("sca/stood.rs", 2),
    ("soak.rs", 2),
    ("soak/client.rs", 2),
    ("state/postgres/failures.rs", 3),
    ("state/postgres/gateways.rs", 2),
    ("state/postgres/replaced.rs", 1),
    ("stopping.rs", 1),
    ("systems/corpus.rs", 1),
    ("systems/edge.rs", 2),
    ("systems/prometheus.rs", 1),
    ("systems/prometheus/faults.rs", 6),
    ("systems/prometheus/traffic.rs", 1),
    ("systems/upstreams.rs", 4),
    ("telemetry/metrics.rs", 1),
    ("transport/cut.rs", 3),
    ("transport/http2.rs", 4),
    ("transport/in_flight.rs", 1),
    ("transport/limits.rs", 4),
    ("transport/memory.rs", 1),
    ("transport/proxies.rs", 1),
    ("transport/slow_callers.rs", 1),
    ("upgrade/load.rs", 1),
    ("upstreams/leaving.rs", 1),
];

/// The one file that calls `sleep`.
const WAITING: &str = "harness/waiting.rs";

#[test]
fn tests_wait_for_conditions() {
    let counted: BTreeMap<String, usize> = sources()
        .into_iter()
        .filter_map(|(file, text)| {
            let count = calls(&text, "sleep(") + calls(&text, "let_pass(");
            (file != WAITING && file != "architecture/pauses.rs" && count > 0)
                .then_some((file, count))
        })
        .collect();
    let allowed: BTreeMap<String, usize> = PAUSES
        .iter()
        .map(|(file, count)| ((*file).to_owned(), *count))
        .collect();
    assert_eq!(
        counted, allowed,
        "a test waits by harness::eventually; a pause that is really needed is counted in PAUSES"
    );
}

/// Upper bounds on a time stand in modules named `bounds`, whose tests run alone.
#[test]
fn only_bounds_assert_upper_bounds() {
    let found: Vec<String> = sources()
        .into_iter()
        .filter(|(file, _)| !file.ends_with("bounds.rs") && file != "architecture/pauses.rs")
        .flat_map(|(file, text)| {
            let lines = text.lines().enumerate();
            let wrong = lines.filter(|(_, line)| is_an_upper_bound(line));
            wrong
                .map(|(at, line)| format!("{file}:{} {}", at + 1, line.trim()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_upper_bound_is_found() {
    for line in [
        "assert!(since.elapsed() < Duration::from_secs(1));",
        "assert!(took.elapsed() <= LIMIT, \"{took:?}\");",
    ] {
        assert!(is_an_upper_bound(line), "{line}");
    }
    for line in [
        "assert!(since.elapsed() >= Duration::from_secs(1));",
        "// elapsed() < limit",
        "while since.elapsed() < time {",
        "assert!(since.elapsed() < LIMIT, \"{RAN_OUT}: the end\");",
    ] {
        assert!(!is_an_upper_bound(line), "{line}");
    }
}

/// Whether a line asserts that a measured time is below something. The limit of a wait is none: its text says so.
fn is_an_upper_bound(line: &str) -> bool {
    let code = line.trim().split("//").next().unwrap_or_default();
    code.starts_with("assert") && code.contains("elapsed() <") && !code.contains("RAN_OUT")
}

/// The calls of a function in a text, without comments.
fn calls(text: &str, call: &str) -> usize {
    let code = text.lines().filter(|line| !line.trim().starts_with("//"));
    code.map(|line| line.matches(call).count()).sum()
}

fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
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
