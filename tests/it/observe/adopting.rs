//! docs/adopting.md, followed word for word: its configuration, its commands and what they print, in front of a stand-in core.
//!
//! The page has the blocks of each week: `yaml` is put into the configuration, `sh` is run, and `text` is what the commands print. The traffic
//! of a week is sent before its report. Only times differ, and the dates of learning, which must include today.

use super::{Breach, breach};
use crate::harness::{
    Call, Connection, Gate, Program, Protocol, Reply, Seen, eventually, missing, world,
};
use portvakt::clock::{Clock, Timestamp};
use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

/// A PSU-ID that the core does not know.
const STRANGE: &str = "0192f0c1-5a5b-7def-8000-00000000dead";

/// A PSU-ID of the bank's export, who does not come while the gateway learns.
const EXPORTED: &str = "0192f0c1-5a5b-7def-8000-00000000beef";

/// The times that the page shows, by week.
const TIMES: [[&str; 2]; 4] = [
    ["2027-01-04T00:00:12Z", "2027-01-10T23:59:31Z"],
    ["2027-01-11T00:00:08Z", "2027-01-17T23:59:47Z"],
    ["2027-01-18T00:00:25Z", "2027-01-24T23:59:52Z"],
    ["2027-01-25T00:00:02Z", "2027-01-31T23:59:19Z"],
];

/// The days between which the page learns.
const LEARNING: [&str; 2] = ["2027-01-04", "2027-02-28"];

fn page() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/adopting.md"))
}

/// A block of the page.
struct Block {
    /// The number of the week; 0 before the first.
    week: usize,
    kind: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut week) = (Vec::new(), 0);
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => {
                open = Some(Block {
                    week,
                    kind: kind.to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.push_str(&format!("{line}\n")),
            (None, None) if line.starts_with("## Week ") => week += 1,
            (None, None) => {}
        }
    }
    blocks
}

/// The stand-in core, which knows its PSUs (SCA-19).
fn core(seen: &Seen) -> Reply {
    if seen.header("psu-id") == Some(STRANGE) {
        return Reply::json(404, r#"{"code":"RESOURCE_UNKNOWN"}"#);
    }
    let answer = Reply::json(200, "{}");
    if seen.header("gateway-psu-bound") != Some("no") {
        return answer;
    }
    let lately = Timestamp::from_unix(Clock::System.now().unix() - 86_400).to_string();
    answer
        .with("Gateway-Psu-Bound", "yes")
        .with("Gateway-Sca-At", &lately)
        .with("Gateway-Consent-At", &lately)
}

/// The traffic of a week: TPP 111111 has an old Date, TPP 222222 a wrong amount, and somebody has no certificate that counts.
fn traffic(week: usize) -> Vec<Call> {
    let of = |check| {
        let breaches = breach::all().into_iter();
        let mut found = breaches.filter(|breach: &Breach| breach.check == check);
        found.next().unwrap().call
    };
    use portvakt::admission::ObservableCheck as Check;
    let old = || Call::accounts().by(&world().aisp).off_by(-300);
    let wrong = || of(Check::Payload).by(&world().pisp);
    let mut calls = vec![
        Call::accounts(),
        Call::accounts(),
        Call::accounts().by(&world().aisp),
        Call::payment().by(&world().pisp),
        of(Check::Certificate),
        old(),
        Call::accounts().with("PSU-ID", STRANGE),
    ];
    match week {
        1 => calls.extend([old(), wrong(), wrong(), of(Check::Signature)]),
        2 => calls.extend([wrong(), of(Check::Signature)]),
        3 => calls.push(wrong()),
        _ => calls.extend([wrong(), Call::accounts().with("PSU-ID", EXPORTED)]),
    }
    calls
}

/// Replaces every time of the output by those that the page shows, one after the other.
fn with_times(text: &str, times: [&str; 2]) -> String {
    let mut times = times.into_iter().cycle();
    let words = text.split_inclusive([' ', '\n', ';']);
    let shown = words.map(|word| {
        let (bare, end) = word.split_at(word.trim_end_matches([' ', '\n', ';']).len());
        let is_time = bare.len() == 20 && bare.ends_with('Z') && bare.starts_with("20");
        if is_time {
            format!("{}{end}", times.next().unwrap())
        } else {
            word.to_owned()
        }
    });
    shown.collect()
}

/// The configuration with the sections of a block.
fn configuration(base: &str, block: &str) -> String {
    let now = Clock::System.now().unix();
    let days = [now - 86_400, now + 30 * 86_400].map(|at| {
        let moment = Timestamp::from_unix(at).to_string();
        moment[..10].to_owned()
    });
    let block = block
        .replace(LEARNING[0], &days[0])
        .replace(LEARNING[1], &days[1]);
    let (observe, sca) = block.split_once("sca:\n").unwrap_or((&block, ""));
    format!(
        "{}{observe}",
        base.replace("sca:\n", &format!("sca:\n{sca}"))
    )
}

struct Site {
    gate: Gate,
    _program: Program,
    access: File,
}

impl Site {
    fn start(first: &str) -> (Self, String) {
        let gate = breach::checking_everything()
            .environment("production")
            .core_answers()
            .strangers()
            .for_program();
        gate.upstream().reply(Reply::Suited(core));
        let base = gate.yaml().to_owned();
        let configured = configuration(&base, first);
        fs::write(gate.folder().join("gateway.yaml"), configured).unwrap();
        let mut appending = File::options();
        let appending = appending.append(true).create(true);
        let access = appending.open(gate.folder().join("access.log")).unwrap();
        let mut program = gate.program();
        let output = access.try_clone().unwrap();
        let program = program.stdout(output).stderr(Stdio::null()).spawn();
        let mut program = Program(program.unwrap());
        assert!(gate.is_up(&mut program.0), "it does not start");
        let site = Self {
            gate,
            _program: program,
            access,
        };
        (site, base)
    }

    /// Sends the traffic of a week, and waits for its lines.
    fn send(&self, week: usize) {
        self.access.set_len(0).unwrap();
        let calls = traffic(week);
        for call in &calls {
            let sealed = self.gate.seal(call);
            let answer = match call.protocols()[0] {
                Protocol::Http1 => Connection::open(&self.gate).exchange(&sealed).unwrap(),
                Protocol::Http2 => self.gate.send_sealed(&sealed, Protocol::Http2).unwrap(),
            };
            assert!(answer.status < 500, "{}", answer.status);
        }
        eventually("the lines are written", || {
            let log = fs::read_to_string(self.gate.folder().join("access.log")).unwrap();
            log.lines().count() == calls.len()
        });
    }

    /// Runs the commands of a block in the folder of the configuration; returns what they print.
    fn run(&self, commands: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_portvakt")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let token = fs::read_to_string(self.gate.folder().join("control.token")).unwrap();
        let control = format!("http://{}", self.gate.control_address());
        let output = Command::new("bash")
            .args(["-c", commands])
            .current_dir(self.gate.folder())
            .env("PATH", format!("{}:{path}", program.display()))
            .env("CONFIG", "gateway.yaml")
            .env("CONTROL", control)
            .env("TOKEN", token.trim())
            .env("ACCESS", "access.log")
            .output()
            .unwrap();
        // `check` warns of what production loses while checks are only observed.
        let errors = String::from_utf8_lossy(&output.stderr);
        let mut errors = errors.lines().filter(|line| !line.starts_with("warning: "));
        assert_eq!(errors.next(), None, "{commands}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The bank's export, and the mapping of docs/sca.md.
fn export(site: &Site) {
    let sca = include_str!("../../../docs/sca.md");
    let (_, mapping) = sca.split_once("```yaml\ncolumns:").unwrap();
    let (mapping, _) = mapping.split_once("```").unwrap();
    let folder = site.gate.folder();
    fs::write(folder.join("mapping.yaml"), format!("columns:{mapping}")).unwrap();
    let learned = world().both.psu();
    let row = |psu: &str| format!("{psu};01.10.2026 12:30;01.10.2026 12:30;*\n");
    let rows = [EXPORTED, &learned].map(row).concat();
    let header = "PSU_REF;LAST_LOGIN;CONSENT_DATE;ACCOUNTS\n";
    fs::write(folder.join("export.csv"), format!("{header}{rows}")).unwrap();
}

//= FWD-6 accepted
//= FWD-6 refused
//= SCA-19 accepted
#[test]
fn the_page_is_followed_word_for_word() {
    for tool in ["curl", "jq"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return missing(&format!(
                "docs/adopting.md is not followed: {tool} is missing"
            ));
        }
    }
    let text = fs::read_to_string(page()).unwrap();
    let blocks = blocks(&text);
    let first = blocks.iter().find(|block| block.kind == "yaml").unwrap();
    let (site, base) = Site::start(&first.text);
    export(&site);
    let (mut sent, mut printed, mut shown) = (0, String::new(), text.clone());
    let mut weeks = 0;
    for block in &blocks {
        match &*block.kind {
            "yaml" => {
                let configured = configuration(&base, &block.text);
                fs::write(site.gate.folder().join("gateway.yaml.next"), configured).unwrap();
                weeks += 1;
            }
            "sh" => {
                if block.text.contains("observe report") && sent < block.week {
                    site.send(block.week);
                    sent = block.week;
                }
                printed = with_times(&site.run(&block.text), TIMES[block.week - 1]);
            }
            "text" if std::env::var_os("PORTVAKT_BLESS").is_some() => {
                shown = shown.replacen(
                    &format!("```text\n{}```", block.text),
                    &format!("```text\n{printed}```"),
                    1,
                );
            }
            "text" => assert_eq!(printed, block.text, "week {}", block.week),
            other => panic!("a block of {other}"),
        }
    }
    assert_eq!((weeks, sent), (4, 4), "the weeks of the page");
    if shown != text {
        fs::write(page(), shown).unwrap();
    }
    // The end: everything is refused that fails a check, and the PSUs of the bank and of the weeks before are known.
    let status = |call: Call| {
        let call = call.only(Protocol::Http1);
        site.gate.upstream().take();
        let answer = site.gate.send(&call, Protocol::Http1);
        let forwarded = !site.gate.upstream().take().is_empty();
        (answer.status, forwarded)
    };
    assert_eq!(status(Call::accounts()), (200, true));
    assert_eq!(
        status(Call::accounts().with("PSU-ID", EXPORTED)),
        (200, true)
    );
    for breach in breach::all() {
        breach.prepare(&site.gate);
        let (found, forwarded) = status(breach.call);
        assert!(found >= 400 && !forwarded, "{:?}: {found}", breach.check);
    }
}
