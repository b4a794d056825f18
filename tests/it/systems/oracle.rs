//! Other parsers read every admitted request in the same way: a core that reads another amount, date or account than the
//! gateway would execute an unchecked request.
//!
//! Every body, query, path, Host and Content-Type that the tests admit, and generated ones, are read by other programs: serde_json, Python, Node,
//! Jackson, Gson and Go, each as one process that reads lines. The test compares the values that the gateway's decisions use. A reader
//! may refuse an admitted input, because a refused input is not misread; the test also checks that each reads most inputs.

/// The gateway's reading of an admitted input.
mod admitted;
/// Generated inputs.
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

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Body,
    Query,
    Path,
    Host,
    ContentType,
}

impl Kind {
    pub(super) const ALL: [Self; 5] = [
        Self::Body,
        Self::Query,
        Self::Path,
        Self::Host,
        Self::ContentType,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Query => "query",
            Self::Path => "path",
            Self::Host => "host",
            Self::ContentType => "content-type",
        }
    }

    /// The minimum number of admitted ones: a generator whose inputs are all refused shows nothing. Few spellings of Content-Type pass.
    const fn least(self) -> usize {
        match self {
            Self::ContentType => 200,
            _ => 1_000,
        }
    }
}

/// The number of generated inputs of each kind.
const EACH: usize = 20_000;

/// PORTVAKT_SEED sets another seed for the inputs.
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
        assert!(admitted.len() >= kind.least(), "{}", kind.name());
        all.extend(admitted);
    }
    compare(&all);
}

/// The tests whose admitted requests are compared, by parts of their names.
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

/// The requests at the upstreams of these tests, a line each: they are the admitted ones.
///
/// `make test` keeps them as well. What this build's run left is taken; otherwise the tests run again.
fn admitted_by_tests() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let this = std::env::current_exe().unwrap();
    let written = |path: &Path| fs::metadata(path).and_then(|it| it.modified());
    let kept = folder.join("admitted");
    if written(&kept).is_ok_and(|kept| kept > written(&this).unwrap()) {
        return fs::read_to_string(kept).unwrap();
    }
    let file = folder.join("admitted-again");
    let _ = fs::remove_file(&file);
    let run = Command::new(this)
        .args(TESTS)
        .env("PORTVAKT_ADMITTED", &file)
        .stdout(Stdio::null())
        .status();
    assert!(run.is_ok(), "{run:?}");
    fs::read_to_string(&file).unwrap()
}

#[test]
#[ignore = "make test-systems"]
fn what_the_tests_admit_is_read_the_same_by_others() {
    let lines = admitted_by_tests();
    let mut seen = BTreeSet::new();
    for line in lines.lines() {
        let (test, parts) = line.split_once('\t').unwrap();
        if !TESTS.iter().any(|of| test.contains(of)) {
            continue;
        }
        let parts: Vec<_> = parts
            .split('\t')
            .map(|part| BASE64_STANDARD.decode(part).unwrap())
            .collect();
        let [target, host, body, content_type] = parts.try_into().unwrap();
        let mut halves = target.splitn(2, |byte| *byte == b'?').map(<[u8]>::to_vec);
        seen.insert((Kind::Path, halves.next().unwrap()));
        seen.extend(halves.next().map(|query| (Kind::Query, query)));
        seen.insert((Kind::Host, [b"https://", &host[..], b"/"].concat()));
        if !body.is_empty() {
            seen.insert((Kind::ContentType, content_type));
        }
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

/// The table of src/interface/fold.rs matches Node's Unicode data, except for unassigned characters.
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

/// Asserts that every reader reads every input like the gateway.
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

/// The result of a comparison.
#[derive(Default)]
struct Tally {
    /// By reader and kind: the number of inputs read, the number refused, and the last reason of a refusal.
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
