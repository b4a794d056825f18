//! A second verifier must agree, in time, and be able to refuse. Scripts stand for xmlsec1, which the systems' tests hold beside ours.

// Processes that the program has started.
mod processes;

use super::{Program, Second, Verdict, Verifiers, altered};
use crate::{
    Certificate, Document, Refusal,
    for_tests::{AGREES, script},
    minting::{Mint, Signer},
    signature::{tests::LIST, verify},
};
use std::{fs, path::PathBuf, sync::OnceLock, time::Duration};

/// A list, parsed, and the certificate of its signer.
fn signed() -> (Document, [Certificate; 1]) {
    let signer = Signer::rsa("signer", 2048);
    let document = Document::parse(Mint::new(&signer).sign(LIST)).unwrap();
    (document, [signer.certificate])
}

/// Why a list is refused, or nothing.
fn judge(verifiers: &Verifiers, document: &Document, pins: &[Certificate]) -> String {
    let judged = verifiers.verify(document, pins);
    judged.map_or_else(
        |objection| Refusal::from(objection).to_string(),
        |_| String::new(),
    )
}

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn both_must_accept_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let (document, pins) = signed();
    let program = |name: &str, text: &str| Some(script(folder.path(), name, text));
    let verify = |second: Option<PathBuf>| judge(&Verifiers::new(second), &document, &pins);
    assert_eq!(verify(None), "");
    // It gets the bytes that were verified, and the signer.
    let agrees = format!(
        "for file; do :; done\ngrep -q TrustServiceStatusList \"$file\" && grep -q 'BEGIN CERTIFICATE' \"$5\" || exit 1\n{AGREES}"
    );
    assert_eq!(verify(program("agrees", &agrees)), "");
    let refused = verify(program("refuses", "echo 'FAIL: digest' >&2; exit 1"));
    let expected = "refuses, refuses the signature that this program has verified: FAIL: digest";
    assert!(refused.ends_with(expected), "{refused}");
    let missing = verify(Some(folder.path().join("missing")));
    assert!(missing.contains("cannot be run: No such file"), "{missing}");
    // Ours comes first: the second one alone decides nothing.
    let other = Signer::rsa("other", 2048);
    let second = Verifiers::new(program("second", AGREES));
    let judged = judge(&second, &document, &[other.certificate]);
    assert!(judged.contains("signed by none"), "{judged}");
}

//= CRT-13 refused
#[test]
fn one_that_accepts_everything_verifies_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (document, pins) = signed();
    let second = Verifiers::new(Some(script(folder.path(), "always", "exit 0")));
    for _ in 0..2 {
        let found = judge(&second, &document, &pins);
        let expected = "always, also accepts this list when it was altered, and so verifies nothing; name the program xmlsec1";
        assert!(found.ends_with(expected), "{found}");
    }
}

//= CRT-13 accepted
#[test]
fn it_is_tried_once() {
    let folder = tempfile::tempdir().unwrap();
    let (document, pins) = signed();
    let counts = format!("echo run >> \"$0.runs\"\n{AGREES}");
    let path = script(folder.path(), "counts", &counts);
    let second = Verifiers::new(Some(path.clone()));
    for _ in 0..2 {
        assert_eq!(judge(&second, &document, &pins), "");
    }
    // A copy knows of the trial.
    assert_eq!(judge(&second.clone(), &document, &pins), "");
    let runs = fs::read_to_string(path.with_extension("runs")).unwrap();
    assert_eq!(runs.lines().count(), 4, "three times, and the trial");
}

/// What it is tried by is well-formed, one byte longer, and refused by ours for its digest.
#[test]
fn an_altered_list_is_one_that_was_altered() {
    let (document, pins) = signed();
    let text = altered(&document).unwrap();
    assert_eq!(text.len(), document.source().len() + 1);
    assert!(text.contains("x<ds:Signature "), "{text}");
    let other = Document::parse(text.into_bytes()).unwrap();
    let fault = verify(&other, &pins).unwrap_err().to_string();
    assert!(fault.contains("altered after it was signed"), "{fault}");
}

//= CRT-13 refused
#[test]
fn it_is_stopped_at_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (document, pins) = signed();
    let program = Program {
        path: script(folder.path(), "sleeps", "exec sleep 600"),
        limit: Duration::from_millis(50),
    };
    let second = Verifiers {
        second: Some(Second {
            program,
            can_refuse: OnceLock::new(),
        }),
    };
    let found = judge(&second, &document, &pins);
    let expected = "sleeps, has not ended within 50ms, and was stopped";
    assert!(found.ends_with(expected), "{found}");
    let program = Program::new(PathBuf::from("xmlsec1"));
    assert_eq!(program.limit, Duration::from_secs(60));
}

/// It waits for nobody to read what it says, and its first line is the reason.
#[test]
fn one_that_says_much() {
    let folder = tempfile::tempdir().unwrap();
    let (document, pins) = signed();
    let much = "head -c 1000000 /dev/zero";
    let text = format!("{much}\necho >&2\necho reason >&2\n{much} >&2\nexit 1");
    let program = Program::new(script(folder.path(), "says", &text));
    let verdict = program.ask(document.source().as_bytes(), &pins[0]);
    assert_eq!(verdict.unwrap(), Verdict::Refuses("reason".to_owned()));
    let silent = Program::new(script(folder.path(), "silent", "exit 3"));
    let verdict = silent.ask(document.source().as_bytes(), &pins[0]);
    let expected = Verdict::Refuses("exit status: 3".to_owned());
    assert_eq!(verdict.unwrap(), expected);
}

/// One that was killed has not refused the list, nor the altered one by which it is tried.
//= CRT-13 refused
#[test]
fn one_that_was_killed_gives_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let (document, pins) = signed();
    let falls = format!("({AGREES}) || kill -SEGV $$");
    for (name, text, status) in [
        ("killed", "kill -9 $$", "signal: 9 (SIGKILL)"),
        ("falls", falls.as_str(), "signal: 11 (SIGSEGV)"),
        ("shell", "sh -c 'kill -9 $$'; exit $?", "exit status: 137"),
    ] {
        let second = Verifiers::new(Some(script(folder.path(), name, text)));
        let found = judge(&second, &document, &pins);
        let expected = format!(
            "{name}, ended without a verdict ({status}), so that nothing is known of the signature; import again, and run it by hand if it stays so"
        );
        assert!(found.contains(&expected), "{found}");
    }
}
