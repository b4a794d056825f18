//! Answers of a deprecated operation: FWD-5.

use crate::harness::{Answer, Call, Gate, Protocol, Reply};

fn consents() -> Call {
    Call::new("POST", "/v1/consents")
}

fn told<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    let values = answer.headers.iter();
    let values = values.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    values.map(|(_, value)| value.as_str()).collect()
}

const SINCE: [&str; 1] = ["@1707091200"];
const SUCCESSOR: &str = "</v1/bank-offered-consents>; rel=\"successor-version\"";

//= FWD-5 accepted
#[test]
fn who_answers_says_that_it_is_deprecated() {
    let gate = Gate::start();
    for protocol in Protocol::ALL {
        for call in [consents(), consents().without("TPP-Redirect-URI")] {
            let answer = gate.send(&call, protocol);
            assert_eq!(told(&answer, "deprecation"), SINCE, "{}", answer.status);
            assert_eq!(told(&answer, "link"), [SUCCESSOR]);
            // Without a sunset date, the operation may be removed at any time (RFC 8594, section 3).
            assert_eq!(told(&answer, "sunset"), ["Mon, 05 Feb 2024 00:00:00 GMT"]);
        }
        let successor = Call::new("POST", "/v1/bank-offered-consents");
        let answer = gate.send(&successor, protocol);
        assert_eq!(answer.status, 200);
        for name in ["deprecation", "sunset", "link"] {
            assert!(told(&answer, name).is_empty(), "{name}");
        }
    }
}

//= FWD-5 accepted
#[test]
fn the_cores_answers_say_it_too() {
    let operations = "operations:
- {name: consent-create, answered_by: upstream, deprecated: {sunset: 2030-01-01}}
- {name: bank-offered-consent-create, path: /v2/consents}
";
    let gate = Gate::builder()
        .line("operations: operations.yaml")
        .file("operations.yaml", operations)
        .start();
    let reply = |status| {
        let reply = Reply::json(status, "{}").with("Link", "</x>; rel=\"help\"");
        reply.with("Sunset", "Mon, 01 Jan 2029 00:00:00 GMT")
    };
    for protocol in Protocol::ALL {
        for reply in [reply(200), reply(403), Reply::Close] {
            gate.upstream().reply(reply);
            let answer = gate.send(&consents(), protocol);
            assert_eq!(told(&answer, "deprecation"), SINCE, "{}", answer.status);
            let sunset = ["Tue, 01 Jan 2030 00:00:00 GMT"];
            assert_eq!(told(&answer, "sunset"), sunset);
            let links = told(&answer, "link");
            let ours = "</v2/consents>; rel=\"successor-version\"";
            assert_eq!(links.last(), Some(&ours));
            assert_eq!(links.len(), if answer.status == 504 { 1 } else { 2 });
        }
    }
}
