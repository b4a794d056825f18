//! Whatever is admitted is read the same by others: a core that reads another amount, date or account than the one that was
//! judged would do what nobody checked.
//!
//! Every body, query, path and Host that the tests admit, and generated ones, go through other readers: serde_json, Python,
//! Node, Jackson, Gson, Go, each one process that reads lines. What is compared is what the gateway decides by. A reader
//! may refuse what the gateway admits, for what is refused is not misread; that it reads most is checked too.

/// What the gateway reads in an input, where it admits it.
mod admitted;
/// Inputs, generated.
mod inputs;
/// The other readers.
mod readers;

use crate::harness::Dice;
use admitted::{Input, admit};
use base64::{Engine, prelude::BASE64_STANDARD};
use portvakt::interface::fold;
use readers::{Reader, Reading};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Body,
    Query,
    Path,
    Host,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Body, Self::Query, Self::Path, Self::Host];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Query => "query",
            Self::Path => "path",
            Self::Host => "host",
        }
    }
}

/// How many inputs are generated of each kind.
const EACH: usize = 20_000;

/// The fewest of them that are admitted: a generator whose inputs are all refused shows nothing.
const LEAST: usize = 1_000;

/// Another seed makes other inputs: PORTVAKT_SEED.
const SEED: u64 = 16;

#[test]
#[ignore = "make test-systems"]
fn generated_inputs_are_read_the_same_by_others() {
    let seed = std::env::var("PORTVAKT_SEED");
    let mut dice = Dice(seed.map_or(SEED, |seed| seed.parse().unwrap()));
    let mut all = Vec::new();
    for kind in Kind::ALL {
        let made = (0..EACH).map(|_| inputs::make(kind, &mut dice));
        let made: BTreeSet<Vec<u8>> = made.collect();
        let admitted: Vec<_> = made.iter().flat_map(|raw| admit(kind, raw)).collect();
        println!(
            "{}: {} differing ones, {} of them admitted",
            kind.name(),
            made.len(),
            admitted.len()
        );
        assert!(admitted.len() >= LEAST, "{}", kind.name());
        all.extend(admitted);
    }
    compare(&all);
}

/// The tests whose admitted requests are compared.
const TESTS: [&str; 10] = [
    "query::",
    "payload::",
    "transport::",
    "headers",
    "signing::",
    "quota::",
    "sca::",
    "forwarding::",
    "replay::",
    "control::",
];

#[test]
#[ignore = "make test-systems"]
fn what_the_tests_admit_is_read_the_same_by_others() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("admitted");
    let _ = fs::remove_file(&file);
    // The tests themselves, once more: what their upstreams see is what was admitted.
    let run = Command::new(std::env::current_exe().unwrap())
        .args(TESTS)
        .env("PORTVAKT_ADMITTED", &file)
        .stdout(Stdio::null())
        .status();
    assert!(run.is_ok(), "{run:?}");
    let lines = fs::read_to_string(&file).unwrap();
    let mut seen = BTreeSet::new();
    for line in lines.lines() {
        let parts: Vec<_> = line
            .split('\t')
            .map(|part| BASE64_STANDARD.decode(part).unwrap())
            .collect();
        let [target, host, body] = parts.try_into().unwrap();
        let mut halves = target.splitn(2, |byte| *byte == b'?').map(<[u8]>::to_vec);
        seen.insert((Kind::Path, halves.next().unwrap()));
        seen.extend(halves.next().map(|query| (Kind::Query, query)));
        seen.insert((Kind::Host, [b"https://", &host[..], b"/"].concat()));
        seen.insert((Kind::Body, body));
    }
    let mut all = Vec::new();
    for kind in Kind::ALL {
        let before = all.len();
        let inputs = seen.iter().filter(|(of, _)| *of == kind);
        all.extend(inputs.flat_map(|(kind, raw)| admit(*kind, raw)));
        println!("{}: {} differing ones", kind.name(), all.len() - before);
        assert!(all.len() > before, "the tests admitted no {}", kind.name());
    }
    compare(&all);
}

/// The table of src/interface/fold.rs is what Node's Unicode says, but for what is not assigned there yet.
#[test]
#[ignore = "make test-systems"]
fn what_folds_to_ascii_is_what_unicode_says() {
    let answers = Reader::node().ask(&["fold\t".to_owned()]);
    let (_, theirs) = &answers[0][0];
    let unassigned: BTreeSet<u32> = theirs["unassigned"]
        .iter()
        .map(|point| point.parse().unwrap())
        .collect();
    for point in 0x80..=0x10_ffff_u32 {
        let Some(character) = char::from_u32(point) else {
            continue;
        };
        let ours = fold::fold(&character.to_string());
        let said = theirs.get(&point.to_string()).map(|folded| &folded[0]);
        if !unassigned.contains(&point) {
            assert_eq!(ours.as_ref(), said, "U+{point:04X}");
        }
    }
}

/// Every reader reads in every input what the gateway did.
fn compare(inputs: &[Input]) {
    let lines: Vec<_> = inputs
        .iter()
        .map(|input| {
            let raw = BASE64_STANDARD.encode(&input.raw);
            format!("{}\t{raw}", input.kind.name())
        })
        .collect();
    let mut tally = Tally::default();
    for (input, readings) in inputs.iter().zip(readers::in_process(inputs)) {
        tally.judge(input, &readings);
    }
    for reader in Reader::all() {
        for (input, readings) in inputs.iter().zip(reader.ask(&lines)) {
            tally.judge(input, &readings);
        }
    }
    tally.finish();
}

/// What came of a comparison.
#[derive(Default)]
struct Tally {
    /// By reader and kind: how many it read, how many it refused, and why it refused the last.
    counts: BTreeMap<(String, Kind), (usize, usize, String)>,
    /// By reader and kind.
    differences: BTreeMap<(String, Kind), Vec<String>>,
}

impl Tally {
    fn judge(&mut self, input: &Input, readings: &[(String, Reading)]) {
        for (reader, reading) in readings {
            let key = (reader.clone(), input.kind);
            let count = self.counts.entry(key).or_default();
            if let Some(fault) = reading.get("fault") {
                count.1 += usize::from(input.is_decided_by());
                count.2 = fault.concat();
                continue;
            }
            count.0 += 1;
            if let Some(difference) = input.difference(reading) {
                let raw = String::from_utf8_lossy(&input.raw).into_owned();
                let key = (reader.clone(), input.kind);
                let differences = self.differences.entry(key).or_default();
                differences.push(format!("{difference}\n    in {raw:?}"));
            }
        }
    }

    fn finish(self) {
        let mut faults = String::new();
        for ((reader, kind), (read, refused, why)) in &self.counts {
            let kind = kind.name();
            println!("{kind}: {reader}: {read} read, {refused} refused {why}");
            if *read < refused * 3 {
                faults += &format!("{kind}: {reader} refuses too much: {why}\n");
            }
        }
        for ((reader, kind), differences) in &self.differences {
            let (kind, count) = (kind.name(), differences.len());
            faults += &format!("{kind}: {reader} differs {count} times from the gateway:\n");
            for difference in differences.iter().take(3) {
                faults += &format!("  {difference}\n");
            }
        }
        assert!(faults.is_empty(), "{faults}");
    }
}
