//! The Date header: DAT-1, DAT-2.

use crate::harness::{Call, Gate, Reply, accepted, refused};
use portvakt::{
    clock::{Clock, Timestamp},
    interface::headers::date,
};

/// Sun, 15 Nov 2026 08:49:37 GMT.
const NOW: Timestamp = Timestamp::from_unix(1_794_732_577);

fn standing() -> Gate {
    Gate::builder().clock(&Clock::standing(NOW)).start()
}

//= DAT-1 accepted
#[test]
fn a_full_date() {
    let gate = standing();
    for passage in accepted(&gate, &Call::accounts()) {
        assert_eq!(
            passage.request.header("date"),
            Some("Sun, 15 Nov 2026 08:49:37 GMT")
        );
        assert_eq!(
            passage.seen.header("date"),
            Some("Sun, 15 Nov 2026 08:49:37 GMT")
        );
    }
}

//= DAT-1 refused
#[test]
fn other_forms_of_a_date() {
    let gate = standing();
    let forms = [
        "Sunday, 15-Nov-26 08:49:37 GMT",
        "Sun Nov 15 08:49:37 2026",
        "Mon, 15 Nov 2026 08:49:37 GMT",
        "Sun, 15 Nov 2026 08:49:37 UTC",
        "Sun, 15 Nov 2026 08:49:37 +0000",
        "Sun, 15 Nov 2026 08:49:37",
        "15 Nov 2026 08:49:37 GMT",
        "sun, 15 nov 2026 08:49:37 gmt",
        "Sun, 15 Nov 2026 8:49:37 GMT",
        "2026-11-15T08:49:37Z",
        "1794732577",
    ];
    for form in forms {
        // The value is signed unchanged: the gateway refuses its form.
        let answer = refused(
            &gate,
            &Call::accounts().with("Date", form),
            400,
            "FORMAT_ERROR",
            "header-malformed",
        );
        assert_eq!(answer.json()["faults"][0]["header"], "Date", "{form}");
    }
}

//= DAT-2 accepted
#[test]
fn sixty_seconds_either_way() {
    let gate = standing();
    for seconds in [-60, -59, -1, 0, 1, 59, 60] {
        accepted(&gate, &Call::accounts().off_by(seconds));
    }
}

//= DAT-2 refused
#[test]
fn sixty_one_seconds_either_way() {
    let gate = standing();
    for seconds in [-61, 61, -3_600, 3_600, -31_536_000, 31_536_000] {
        let answer = refused(
            &gate,
            &Call::accounts().off_by(seconds),
            400,
            "FORMAT_ERROR",
            "date-skewed",
        );
        let text = answer.json()["faults"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        let direction = if seconds < 0 { "behind" } else { "ahead of" };
        let said = format!(
            "it is {} s {direction} the gateway's clock",
            seconds.unsigned_abs()
        );
        assert!(
            text.starts_with(&said),
            "by how much, and which way: {text}"
        );
    }
}

/// Pingora writes Date by the machine's clock, so the test cannot stop that clock.
//= DAT-2 accepted
#[test]
fn the_answer_carries_the_gateways_date() {
    let gate = Gate::builder()
        .clock(&Clock::standing(Clock::System.now()))
        .start();
    gate.upstream()
        .reply(Reply::json(200, "{}").with("Date", "Sun, 06 Nov 1994 08:49:37 GMT"));
    let passed = accepted(&gate, &Call::accounts())
        .into_iter()
        .map(|passage| passage.answer);
    let refused = [refused(
        &gate,
        &Call::accounts().off_by(-600),
        400,
        "FORMAT_ERROR",
        "date-skewed",
    )];
    for answer in passed.chain(refused) {
        let date = date::parse(answer.header("date").unwrap().as_bytes()).unwrap();
        assert!(
            date.distance(gate.now()) < 30,
            "{:?}",
            answer.header("date")
        );
    }
}

/// The clock advances and the request stays the same: it passes at 60 seconds and fails at 61.
//= DAT-2 accepted
//= DAT-2 refused
#[test]
fn the_moment_of_the_request_counts() {
    let clock = Clock::standing(NOW);
    let gate = Gate::builder().clock(&clock).start();
    let call = Call::accounts().with("Date", &date::format(NOW));
    clock.set(Timestamp::from_unix(NOW.unix() + 60));
    accepted(&gate, &call);
    clock.set(Timestamp::from_unix(NOW.unix() + 61));
    refused(&gate, &call, 400, "FORMAT_ERROR", "date-skewed");
}
