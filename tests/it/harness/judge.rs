//! Assertions on the response and on the requests that the upstream received.

use super::{
    call::{Call, Protocol},
    gate::Gate,
    upstream::Seen,
    wire::Answer,
};
use portvakt::{interface::Code, tools::tpp::SignedRequest};
use serde_json::Value;

/// A forwarded request, as the client and the upstream saw it.
pub(crate) struct Passage {
    /// The protocol.
    pub(crate) protocol: Protocol,
    /// The request that the client sent.
    pub(crate) request: SignedRequest,
    /// The request that the upstream received.
    pub(crate) seen: Seen,
    /// The response that the client received.
    pub(crate) answer: Answer,
}

/// Asserts 2xx, and that the upstream received this request exactly once with the same method, target and body.
pub(crate) fn accepted(gate: &Gate, call: &Call) -> Vec<Passage> {
    call.protocols()
        .iter()
        .map(|protocol| passes(gate, call, *protocol))
        .collect()
}

fn passes(gate: &Gate, call: &Call, protocol: Protocol) -> Passage {
    gate.upstream().take();
    let sealed = gate.seal(call);
    let request = sealed.request.clone();
    let answer = gate
        .send_sealed(&sealed, protocol)
        .unwrap_or_else(|fault| panic!("{protocol:?}: {fault}"));
    let what = format!("{} {} over {protocol:?}", request.method, request.target);
    assert!(
        (200..300).contains(&answer.status),
        "{what}: {} {}",
        answer.status,
        String::from_utf8_lossy(&answer.body)
    );
    let mut seen = gate.upstream().take();
    assert_eq!(
        seen.len(),
        1,
        "{what}: the upstream saw {} requests",
        seen.len()
    );
    let seen = seen.remove(0);
    assert_eq!(
        (&seen.method, &seen.target),
        (&request.method, &request.target),
        "{what}"
    );
    assert!(
        seen.whole && seen.body == request.body.clone().unwrap_or_default(),
        "{what}: the body that the upstream saw is another"
    );
    // The recording upstream compares Digest with the hash of the received body.
    let [signed, seen_digest] = [request.header("digest"), seen.header("digest")];
    assert_eq!(seen_digest, signed, "{what}: Digest");
    Passage {
        protocol,
        request,
        seen,
        answer,
    }
}

/// Asserts that the call gets this error, the same over each protocol, and that the upstream received nothing. Returns the first answer.
pub(crate) fn refused(gate: &Gate, call: &Call, status: u16, code: &str, reason: &str) -> Answer {
    let answers: Vec<_> = call
        .protocols()
        .iter()
        .map(|protocol| stops(gate, call, *protocol, (status, code, reason)))
        .collect();
    for answer in &answers[1..] {
        assert_eq!(
            told(answer),
            told(&answers[0]),
            "TLS-2: another answer over another protocol"
        );
    }
    answers[0].clone()
}

/// Asserts that the call gets a 401 that requires SCA (ERR-2), over each protocol, and that the upstream received nothing.
/// Returns the last answer.
pub(crate) fn needs_sca(gate: &Gate, call: &Call) -> Answer {
    let mut answers = call.protocols().iter().map(|protocol| {
        gate.upstream().take();
        let sealed = gate.seal(call);
        let answer = gate.send_sealed(&sealed, *protocol).unwrap();
        let json = answer.json();
        assert_eq!(answer.status, 401, "{json}");
        assert_eq!(json["reason"], "sca-required", "{json}");
        assert_eq!(json.get("code"), None, "{json}");
        assert!(json["_links"]["scaRedirect"]["href"].is_string(), "{json}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(
            gate.upstream().take().is_empty(),
            "the upstream saw the request"
        );
        answer
    });
    answers.next_back().unwrap()
}

fn stops(
    gate: &Gate,
    call: &Call,
    protocol: Protocol,
    (status, code, reason): (u16, &str, &str),
) -> Answer {
    gate.upstream().take();
    let connections = gate.upstream().connections();
    let sealed = gate.seal(call);
    let answer = gate
        .send_sealed(&sealed, protocol)
        .unwrap_or_else(|fault| panic!("{protocol:?}: {fault}"));
    let what = format!(
        "{} {} over {protocol:?}",
        sealed.request.method, sealed.request.target
    );
    check_error(&what, &answer, status, code, reason);
    let id = sealed.request.header("x-request-id").unwrap_or_default();
    if (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) {
        assert_eq!(
            answer.header("x-request-id"),
            Some(id),
            "{what}: X-Request-ID (ERR-5)"
        );
    }
    assert!(
        gate.upstream().take().is_empty(),
        "{what}: the upstream saw the request"
    );
    assert_eq!(
        gate.upstream().connections(),
        connections,
        "{what}: a connection was opened to the upstream"
    );
    answer
}

/// Asserts the form of an error answer of the gateway (ERR-1, ERR-3, ERR-5, ERR-7).
pub(crate) fn check_error(what: &str, answer: &Answer, status: u16, code: &str, reason: &str) {
    let shown = String::from_utf8_lossy(&answer.body).into_owned();
    let json: Value = serde_json::from_slice(&answer.body)
        .unwrap_or_else(|fault| panic!("{what}: {} {fault}: {shown}", answer.status));
    let found = (
        answer.status,
        json["code"].as_str().unwrap_or_default(),
        json["reason"].as_str().unwrap_or_default(),
    );
    assert_eq!(found, (status, code, reason), "{what}: {shown}");
    assert!(
        json["id"].as_str().is_some_and(|id| !id.is_empty()),
        "{what}: id in {shown}"
    );
    assert!(
        json["system"]
            .as_str()
            .is_some_and(|system| !system.is_empty()),
        "{what}: system in {shown}"
    );
    assert!(
        json["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
        "{what}: message in {shown}"
    );
    assert_eq!(json["status"], status, "{what}: status in {shown}");
    assert!(
        Code::ALL.iter().any(|known| known.as_str() == code),
        "{what}: {code} is no code of the interface (ERR-3)"
    );
    if status == 400 {
        let faults = json["faults"]
            .as_array()
            .unwrap_or_else(|| panic!("{what}: faults in {shown}"));
        assert_eq!(
            faults[0]["reason"], reason,
            "{what}: the first fault decides: {shown}"
        );
        assert!(
            faults
                .iter()
                .all(|fault| fault["text"].as_str().is_some_and(|text| !text.is_empty())),
            "{what}: {shown}"
        );
    }
    assert_eq!(
        answer.header("content-type"),
        Some("application/json; charset=utf-8"),
        "{what}: Content-Type"
    );
    assert_eq!(
        answer.header("cache-control"),
        Some("no-store"),
        "{what}: Cache-Control (ERR-7)"
    );
    let date = answer
        .header("date")
        .unwrap_or_else(|| panic!("{what}: Date (ERR-5)"));
    assert!(
        portvakt::interface::headers::date::parse(date.as_bytes()).is_some(),
        "{what}: Date is {date}"
    );
}

/// The content of an error without the values that differ between requests.
fn told(answer: &Answer) -> Value {
    let mut json = answer.json();
    json["id"].take();
    json["signingString"].take();
    json
}
