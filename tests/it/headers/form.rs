//! The form of headers, and repeated headers: HDR-5 to HDR-7, HDR-15.

use super::{UUID, named};
use crate::harness::{Call, Gate, Protocol, accepted, refused};

//= HDR-5 refused
#[test]
fn an_empty_value_where_none_is_required() {
    let gate = Gate::start();
    for header in [
        "TPP-Session-ID",
        "PSU-ID",
        "PSU-Context",
        "PSU-IP-Address",
        "PSU-Geo-Location",
        "x-accept-fix",
        "Digest",
        "Content-Language",
    ] {
        let answer = refused(
            &gate,
            &Call::accounts().with(header, ""),
            400,
            "FORMAT_ERROR",
            "header-malformed",
        );
        assert_eq!(named(&answer, "header-malformed"), [header]);
    }
    refused(
        &gate,
        &Call::details().with("X-Request-ID", ""),
        400,
        "FORMAT_ERROR",
        "header-malformed",
    );
}

//= HDR-6 accepted
#[test]
fn everything_that_is_wrong_comes_in_one_answer() {
    let gate = Gate::start();
    let call = Call::cross_border().altered(|request| {
        for header in [
            "X-Request-ID",
            "TPP-Redirect-URI",
            "PSU-ID",
            "Digest",
            "Signature",
        ] {
            request.remove_header(header);
        }
        request.set_header("TPP-Session-ID", "a b");
        request.set_header("Date", "yesterday");
        request.set_header("PSU-Corporate-ID", "");
        request
            .headers
            .push(("PSU-Context".into(), "PRIVATE".into()));
        request
            .headers
            .push(("PSU-Context".into(), "PRIVATE".into()));
    });
    let answer = refused(&gate, &call, 400, "HTTP_HEADER_REQUIRED", "header-missing");
    let mut missing = named(&answer, "header-missing");
    missing.sort();
    assert_eq!(
        missing,
        ["Digest", "PSU-ID", "TPP-Redirect-URI", "X-Request-ID"]
    );
    let mut malformed = named(&answer, "header-malformed");
    malformed.sort();
    assert_eq!(malformed, ["Date", "PSU-Corporate-ID", "TPP-Session-ID"]);
    assert_eq!(named(&answer, "header-duplicated"), ["PSU-Context"]);
    assert_eq!(named(&answer, "signature-missing"), ["Signature"]);
    assert_eq!(answer.json()["faults"].as_array().unwrap().len(), 9);
}

//= HDR-7 accepted
#[test]
fn identifiers() {
    let longest = "~".repeat(128);
    for protocol in Protocol::ALL {
        let gate = Gate::start();
        for id in [
            "1",
            "0192f0c1-5a5b-7def-8000-1234567890ab",
            "{not:a/UUID}",
            &longest,
        ] {
            let call = Call::plain()
                .with("X-Request-ID", id)
                .with("TPP-Session-ID", id);
            for passage in accepted(&gate, &call.only(protocol)) {
                assert_eq!(passage.seen.header("x-request-id"), Some(id));
                assert_eq!(passage.seen.header("tpp-session-id"), Some(id));
            }
        }
    }
}

/// A request id is unique for each TPP; another TPP may use the same id.
//= HDR-7 accepted
#[test]
fn the_identifier_of_another_tpp() {
    let gate = Gate::start();
    for tpp in [&gate.world().both, &gate.world().aisp] {
        for protocol in Protocol::ALL {
            let id = format!("0192f0c1-5a5b-7def-8000-{protocol:?}");
            let call = Call::accounts().by(tpp).with("X-Request-ID", &id);
            accepted(&gate, &call.only(protocol));
        }
    }
}

//= HDR-9 accepted
#[test]
fn uuids_in_either_letter_case_arrive_as_they_were_sent() {
    let gate = Gate::start();
    for id in [UUID.to_owned(), UUID.to_uppercase()] {
        let call = Call::payment()
            .with("PSU-ID", &id)
            .with("PSU-Device-ID", &id);
        for passage in accepted(&gate, &call) {
            for header in ["psu-id", "psu-device-id"] {
                assert_eq!(passage.seen.header(header), Some(&*id), "{header}");
            }
        }
    }
}

//= HDR-7 refused
#[test]
fn what_is_no_identifier() {
    let gate = Gate::start();
    let too_long = "~".repeat(129);
    for id in [too_long.as_str(), "a b", "a\tb", "\u{f8}"] {
        for header in ["X-Request-ID", "TPP-Session-ID"] {
            // The signer cannot sign a tab; the gateway refuses the tab before it looks at the signature.
            let value = id.to_owned();
            let call =
                Call::cross_border().altered(move |request| request.set_header(header, &value));
            let answer = refused(&gate, &call, 400, "FORMAT_ERROR", "header-malformed");
            assert_eq!(named(&answer, "header-malformed"), [header], "{id}");
        }
    }
}

/// The security headers except Host, each with a valid value.
const ONCE: [(&str, &str); 15] = [
    ("Date", ""),
    ("Digest", ""),
    ("Signature", ""),
    ("TPP-Signature-Certificate", ""),
    ("X-Request-ID", ""),
    ("PSU-ID", ""),
    ("PSU-Corporate-ID", UUID),
    ("X-PSU-IDENTITY", "01010112345"),
    ("PSU-Context", "CORPORATE"),
    ("TPP-Session-ID", ""),
    ("TPP-Redirect-URI", ""),
    ("TPP-Redirect-Preferred", "true"),
    ("PSU-IP-Address", ""),
    ("Content-Type", ""),
    ("Content-Encoding", "identity"),
];

//= HDR-15 accepted
#[test]
fn each_security_header_once_and_others_twice() {
    let gate = Gate::start();
    let call = ONCE
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .fold(Call::cross_border(), |call, (name, value)| {
            call.with(name, value)
        });
    for passage in accepted(&gate, &call) {
        for (name, _) in ONCE {
            assert!(passage.seen.header(name).is_some(), "{name}");
        }
    }
    for passage in accepted(
        &gate,
        &Call::accounts()
            .also("PSU-Accept", "a")
            .also("PSU-Accept", "b"),
    ) {
        let both: Vec<_> = passage
            .seen
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("psu-accept"))
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(both, ["a", "b"]);
    }
}

//= HDR-15 refused
#[test]
fn a_security_header_that_stands_twice() {
    let gate = Gate::start();
    for (name, value) in ONCE {
        for same in [true, false] {
            let call = match (name, value) {
                (_, "") => Call::cross_border(),
                // HDR-14 requires the header.
                ("PSU-Context", _) => Call::cross_border()
                    .with(name, value)
                    .with("PSU-Corporate-ID", UUID),
                _ => Call::cross_border().with(name, value),
            };
            let call = call.altered(move |request| {
                let first = request.header(name).unwrap().to_owned();
                let second = if same { first } else { format!("{first}x") };
                request.headers.push((name.to_ascii_lowercase(), second));
            });
            let answer = refused(&gate, &call, 400, "FORMAT_ERROR", "header-duplicated");
            assert_eq!(named(&answer, "header-duplicated"), [name]);
        }
    }
}

/// Two Host headers are ambiguous framing (HTTP-7), which is judged before repeated headers.
//= HDR-15 refused
#[test]
fn host_twice() {
    let gate = Gate::start();
    let twice = Call::accounts()
        .altered(|request| request.headers.push(("host".into(), "localhost".into())));
    assert_eq!(gate.send(&twice, Protocol::Http1).status, 400);
    assert_eq!(
        gate.send(
            &Call::accounts()
                .also_host("localhost")
                .also_host("localhost"),
            Protocol::Http2
        )
        .status,
        400
    );
    assert!(gate.upstream().saw_nothing());
}
