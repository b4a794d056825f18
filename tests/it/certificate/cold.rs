//! Revocation before every source has answered (CRT-6, CRT-11), and after a restart.

use super::revocation::{
    BAD, GOOD, REVOKED, UNAVAILABLE, fetched, gate, gate_by, issuing, naming, now, signed, stops,
};
use crate::harness::{
    Call, Crl, Gate, LIMIT, Protocol, Said, Source, accepted, eventually, let_pass, ocsp_answer,
    ocsp_answer_for, received, world,
};
use portvakt::clock::{Clock, Timestamp};
use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::mpsc::{Sender, channel},
    time::Duration,
};

const PRIVATE: &str = "private_addresses: [127.0.0.1]";

/// A responder that knows these serial numbers to be good.
fn responder(good: &'static [&[u8]]) -> Source {
    Source::saying(move |request| {
        let ca = world().issuing.pem();
        Said::ok(ocsp_answer(request, &ca, &issuing(), good, &[]))
    })
}

/// A source that answers when the test says so. The gateway gives up after five seconds.
fn held(said: Said) -> (Source, Sender<()>) {
    let (release, released) = channel();
    let source = Source::saying(move |_| {
        let _ = released.recv_timeout(2 * LIMIT);
        said.clone()
    });
    (source, release)
}

fn oops() -> Said {
    Said {
        head: "500 Oops".into(),
        ..Said::ok(Vec::new())
    }
}

/// Revocation policy `unreachable: open`, the default of the sandbox.
fn open() -> Gate {
    Gate::builder()
        .file("anchors/root.pem", world().issuing.pem())
        .line(&format!("revocation: {{check: on, {PRIVATE}}}"))
        .start()
}

/// Requests of several callers until each is told that the certificate is revoked: status, reason and Retry-After of each answer. The list
/// is released when each caller has an answer.
fn hammer(gate: &Gate, call: &Call, list: &Sender<()>) -> Vec<(u16, String, bool)> {
    let (answer, first_answers) = channel();
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..6)
            .map(|_| {
                let first = answer.clone();
                scope.spawn(move || {
                    let mut answers = Vec::new();
                    eventually("it is revoked", || {
                        let answer = gate.send(call, Protocol::Http1);
                        let again = answer.header("retry-after").is_some();
                        answers.push((answer.status, answer.reason(), again));
                        first.send(()).unwrap();
                        answer.status != 503
                    });
                    answers
                })
            })
            .collect();
        for _ in 0..6 {
            received("six answers before the list", &first_answers);
        }
        list.send(()).unwrap();
        let answers = callers
            .into_iter()
            .flat_map(|caller| caller.join().unwrap());
        answers.collect()
    })
}

//= CRT-6 refused
//= CRT-11 refused
#[test]
fn a_good_answer_does_not_outrun_a_list() {
    let revoking = signed(&Crl::at(now()).revoking(GOOD));
    for gate in [gate(), open()] {
        let (ocsp, (list, release)) = (responder(&[GOOD]), held(Said::ok(revoking.clone())));
        let call = naming(GOOD, &[ocsp.url()], &[list.url()]);
        let answers = hammer(&gate, &call, &release);
        let (mut waited, mut refused) = (0, 0);
        for answer in &answers {
            match (answer.0, answer.1.as_str(), answer.2) {
                (503, "revocation-unavailable", true) => waited += 1,
                (403, "certificate-revoked", _) => refused += 1,
                other => panic!("{other:?} of {}", answers.len()),
            }
        }
        assert!(waited >= 6 && refused >= 1, "{waited} {refused}");
        assert!(gate.upstream().take().is_empty(), "the upstream saw one");
        stops(&gate, &call, REVOKED);
        assert_eq!((ocsp.asked(), list.asked()), (1, 1));
    }
}

//= CRT-6 accepted
//= CRT-11 accepted
#[test]
fn a_request_waits_for_the_slower_source() {
    let (list, release) = held(Said::ok(signed(&Crl::at(now()))));
    let ocsp = responder(&[GOOD]);
    let gate = gate();
    let call = naming(GOOD, &[ocsp.url()], &[list.url()]);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| accepted(&gate, &call));
        eventually("one of two sources has answered", || {
            fetched(&gate, "ok") == 1 && list.asked() == 1
        });
        // Time for an answer that did not wait.
        let_pass(Duration::from_millis(300));
        assert!(!waiting.is_finished());
        release.send(()).unwrap();
    });
    assert_eq!((ocsp.asked(), list.asked()), (1, 1));
}

//= CRT-6 accepted
//= CRT-6 refused
//= CRT-11 refused
#[test]
fn once_a_fetch_has_failed_the_policy_decides() {
    for (gate, is_open) in [(gate(), false), (open(), true)] {
        let (ocsp, (list, release)) = (responder(&[GOOD]), held(oops()));
        let call = naming(GOOD, &[ocsp.url()], &[list.url()]);
        // `open` applies to sources that failed, not to sources that have not answered yet.
        stops(&gate, &call.clone().only(Protocol::Http1), UNAVAILABLE);
        release.send(()).unwrap();
        eventually("the fetch fails", || fetched(&gate, "status") == 1);
        if is_open {
            accepted(&gate, &call);
            assert!(gate.metric_at_rest("portvakt_revocation_let_pass_total", &[]) > 1.5);
        } else {
            stops(&gate, &call, UNAVAILABLE);
        }
    }
    // One of two addresses of the same list is enough.
    let (down, list) = (
        Source::saying(|_| oops()),
        Source::serving(signed(&Crl::at(now()))),
    );
    let gate = gate();
    accepted(&gate, &naming(GOOD, &[], &[down.url(), list.url()]));
    assert_eq!((down.asked(), list.asked()), (1, 1));
}

/// The operator can configure that an unavailable list is left out.
//= CRT-6 accepted
//= CRT-6 refused
#[test]
fn a_list_that_is_not_to_be_asked() {
    let (ocsp, list) = (responder(&[GOOD]), Source::saying(|_| oops()));
    let call = naming(GOOD, &[ocsp.url()], &[list.url()]);
    stops(&gate(), &call, UNAVAILABLE);
    assert_eq!(list.asked(), 1);
    let line = "addresses: [{issuer: anchors/root.pem, crl: none}]";
    let gate = gate_by(&Clock::System, &[PRIVATE, line]);
    accepted(&gate, &call);
    stops(&gate, &naming(GOOD, &[], &[list.url()]), UNAVAILABLE);
    assert_eq!(list.asked(), 1);
}

//= CRT-6 accepted
//= CRT-6 refused
#[test]
fn an_answer_of_unknown_is_not_good() {
    let clean = Source::serving(signed(&Crl::at(now())));
    let ocsp = responder(&[BAD]);
    let call = naming(GOOD, &[ocsp.url()], &[clean.url()]);
    stops(&gate(), &call, UNAVAILABLE);
    let open = open();
    accepted(&open, &call);
    assert!(open.metric_at_rest("portvakt_revocation_let_pass_total", &[]) > 1.5);
    let revoking = Source::serving(signed(&Crl::at(now()).revoking(GOOD)));
    stops(
        &open,
        &naming(GOOD, &[ocsp.url()], &[revoking.url()]),
        REVOKED,
    );
    // An earlier good answer is not valid any more.
    let clock = Clock::standing(now());
    let gate = gate_by(&clock, &[PRIVATE]);
    let ocsp = responder(&[GOOD]);
    let call = naming(GOOD, &[ocsp.url()], &[clean.url()]);
    accepted(&gate, &call);
    ocsp.say(|request| {
        let ca = world().issuing.pem();
        Said::ok(ocsp_answer(request, &ca, &issuing(), &[BAD], &[]))
    });
    clock.set(Timestamp::from_unix(clock.now().unix() + 400));
    eventually("it is asked again", || fetched(&gate, "invalid") >= 1);
    stops(&gate, &call, UNAVAILABLE);
}

//= CRT-6 accepted
//= CRT-6 refused
#[test]
fn an_answer_is_used_for_seven_days() {
    let day = 86_400;
    for (line, seconds) in [("stale: 1h", 7 * day), ("ocsp_max_age: 24h", day)] {
        let clock = Clock::standing(now());
        let gate = gate_by(&clock, &[PRIVATE, line]);
        let ocsp = Source::saying(|request| {
            let (time, ca) = (["-ndays", "30"], world().issuing.pem());
            Said::ok(ocsp_answer_for(
                time,
                request,
                &ca,
                &issuing(),
                &[GOOD],
                &[],
            ))
        });
        let call = naming(GOOD, &[ocsp.url()], &[]);
        accepted(&gate, &call);
        ocsp.say(|_| oops());
        let start = clock.now().unix();
        clock.set(Timestamp::from_unix(start + seconds - 10));
        accepted(&gate, &call);
        clock.set(Timestamp::from_unix(start + seconds + 60));
        stops(&gate, &call, UNAVAILABLE);
    }
}

/// The revocation files of a gate.
fn copies(gate: &Gate) -> Vec<PathBuf> {
    let folder = gate.folder().join("state/revocation");
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A gate that has a responder's answer and a list on disk, both with GOOD as good.
struct StateStore {
    gate: Gate,
    clock: Clock,
    ocsp: Source,
    list: Source,
    call: Call,
}

impl StateStore {
    fn new() -> Self {
        let clock = Clock::standing(now());
        let gate = gate_by(&clock, &[PRIVATE]);
        let (ocsp, list) = (responder(&[GOOD]), Source::serving(signed(&Crl::at(now()))));
        let call = naming(GOOD, &[ocsp.url()], &[list.url()]);
        accepted(&gate, &call);
        eventually("both are on disk", || copies(&gate).len() == 2);
        let kept = Self {
            gate,
            clock,
            ocsp,
            list,
            call,
        };
        kept.fail();
        kept
    }

    /// Stops both sources.
    fn fail(&self) {
        self.ocsp.say(|_| oops());
        self.list.say(|_| oops());
    }

    /// Changes the files on disk while the gate is stopped.
    fn restart_with(&mut self, change: impl Fn(&PathBuf)) {
        self.gate.stop();
        copies(&self.gate).iter().for_each(change);
        self.gate.restart();
    }
}

//= CRT-6 accepted
//= CRT-11 accepted
#[test]
fn a_restart_does_not_begin_cold() {
    let mut kept = StateStore::new();
    kept.restart_with(|_| {});
    accepted(&kept.gate, &kept.call);
    // Both sources are fetched at once, and both fetches failed.
    eventually("both are asked again", || {
        fetched(&kept.gate, "status") >= 2
    });
    accepted(&kept.gate, &kept.call);
    assert_eq!(
        (fetched(&kept.gate, "ok"), copies(&kept.gate).len()),
        (0, 2)
    );
    // The files on disk count for no other certificate.
    let other = naming(BAD, &[kept.ocsp.url()], &[kept.list.url()]);
    stops(&kept.gate, &other, UNAVAILABLE);
}

//= CRT-6 refused
#[test]
fn what_is_fetched_after_a_restart_outranks_what_was_kept() {
    let mut kept = StateStore::new();
    let revoking = signed(&Crl::at(now()).revoking(GOOD));
    kept.list.say(move |_| Said::ok(revoking.clone()));
    kept.restart_with(|_| {});
    kept.gate.send(&kept.call, Protocol::Http1);
    eventually("the list is fetched", || fetched(&kept.gate, "ok") == 1);
    stops(&kept.gate, &kept.call, REVOKED);
    // The new files are kept, too.
    kept.fail();
    kept.restart_with(|_| {});
    stops(&kept.gate, &kept.call, REVOKED);
}

//= CRT-6 refused
#[test]
fn a_copy_that_was_tampered_with_is_ignored() {
    let foreign = Crl::at(now()).sign(&world().issuing, &world().tpp_key);
    type Change<'a> = (&'a str, Box<dyn Fn(&PathBuf) + 'a>);
    let flip = |path: &PathBuf| {
        let mut bytes = fs::read(path).unwrap();
        let at = bytes.len() / 3;
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let of_lists = |path: &PathBuf, change: &dyn Fn(&PathBuf)| {
        if path.extension().unwrap() == "crl" {
            change(path);
        }
    };
    let changes: [Change<'_>; 5] = [
        ("one bit of each", Box::new(flip)),
        (
            "one bit of the list",
            Box::new(|path| of_lists(path, &flip)),
        ),
        (
            "half of the list",
            Box::new(|path| {
                of_lists(path, &|path| {
                    let bytes = fs::read(path).unwrap();
                    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
                });
            }),
        ),
        (
            "a list that another signed",
            Box::new(|path| of_lists(path, &|path| fs::write(path, &foreign).unwrap())),
        ),
        ("nothing", Box::new(|path| fs::write(path, "").unwrap())),
    ];
    for (what, change) in changes {
        println!("{what}");
        let mut kept = StateStore::new();
        kept.restart_with(change);
        stops(&kept.gate, &kept.call, UNAVAILABLE);
        let is_list = |path: &PathBuf| path.extension().unwrap() == "crl";
        eventually("it is removed", || !copies(&kept.gate).iter().any(is_list));
        // A new answer is used normally.
        let list = signed(&Crl::at(now()));
        kept.list.say(move |_| Said::ok(list.clone()));
        kept.ocsp.say(|request| {
            let ca = world().issuing.pem();
            Said::ok(ocsp_answer(request, &ca, &issuing(), &[GOOD], &[]))
        });
        kept.restart_with(|_| {});
        accepted(&kept.gate, &kept.call);
    }
}

//= CRT-6 refused
#[test]
fn a_copy_that_has_run_out_is_ignored() {
    // By the machine's clock, the answer holds for ten minutes and the list for two hours. A gate without a restart would use both for
    // an hour more.
    for (seconds, left) in [(540, 2), (660, 1), (7_260, 0)] {
        let mut kept = StateStore::new();
        let later = Timestamp::from_unix(kept.clock.now().unix() + seconds);
        kept.gate.stop();
        kept.clock.set(later);
        kept.gate.restart();
        if left == 2 {
            accepted(&kept.gate, &kept.call);
        } else {
            stops(&kept.gate, &kept.call, UNAVAILABLE);
        }
        eventually("the others are removed", || {
            copies(&kept.gate).len() == left
        });
    }
}

/// A hanging disk loses only the files on disk: each is replaced by a pipe that has no writer.
//= CRT-6 accepted
#[test]
fn a_disk_that_hangs() {
    let mut kept = StateStore::new();
    let list = signed(&Crl::at(now()));
    kept.list.say(move |_| Said::ok(list.clone()));
    kept.ocsp.say(|request| {
        let ca = world().issuing.pem();
        Said::ok(ocsp_answer(request, &ca, &issuing(), &[GOOD], &[]))
    });
    kept.restart_with(|path| {
        fs::remove_file(path).unwrap();
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    });
    accepted(&kept.gate, &kept.call);
    assert_eq!(fetched(&kept.gate, "ok"), 2);
}

/// A read-only disk loses only the files on disk.
//= CRT-6 accepted
#[test]
fn no_copies_where_there_is_no_folder() {
    let (ocsp, list) = (responder(&[GOOD]), Source::serving(signed(&Crl::at(now()))));
    let gate = gate_by(&Clock::System, &[PRIVATE, "copies: gateway.pem/folder"]);
    fs::write(gate.folder().join("gateway.pem"), "no folder").unwrap();
    accepted(&gate, &naming(GOOD, &[ocsp.url()], &[list.url()]));
    assert_eq!(fetched(&gate, "ok"), 2);
}
