//! Does the core answer as the contract says? ("Answers of the core")
//!
//! A few more requests make the core answer with errors; then each answer of the whole probe is judged.

use super::amounts;
use super::report::{ANSWERS as AREA, Check, NAMED};
use super::request::Example;
use super::session::{Session, listed};
use super::wire::Answer;
use axum::http::Method;
use uuid::Uuid;

/// The most fields and bytes of a head, and the most informational answers before it (FWD-7).
const MOST_FIELDS: usize = 100;
const MOST_HEAD: usize = 64 * 1024;
const MOST_INFORMATIONAL: usize = 8;

/// The most bytes of an error's body (ERR-6).
const MOST_ERROR: usize = 256 * 1024;

/// The headers of a core that a TPP gets (FWD-7), without those that begin with ASPSP-.
const KEPT: [&str; 21] = [
    "accept-ranges",
    "allow",
    "content-digest",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "deprecation",
    "etag",
    "last-modified",
    "link",
    "location",
    "repr-digest",
    "retry-after",
    "sunset",
    "vary",
    "x-content-type-options",
    "content-length",
];

/// A property of every answer.
struct Property {
    name: &'static str,
    /// What is wrong with an answer of the core with this authority.
    fault: fn(&Answer, &str) -> Option<String>,
    mend: &'static str,
}

const PROPERTIES: &[Property] = &[
    Property {
        name: "status",
        fault: |answer, _| {
            let passes = (200..=599).contains(&answer.status);
            (!passes).then(|| format!("status {}", answer.status))
        },
        mend: "answer with a status from 200 to 599: the caller gets 502 or 504 in place of others",
    },
    Property {
        name: "no-failure",
        fault: |answer, _| {
            (500..600)
                .contains(&answer.status)
                .then(|| format!("status {}", answer.status))
        },
        mend: "answer what the gateway forwards without failing: a fault of the request is 4xx",
    },
    Property {
        name: "framing",
        fault: |answer, _| framing(answer),
        mend: "frame an answer in one way: one Content-Length, or Transfer-Encoding: chunked alone. The caller gets 502 otherwise",
    },
    Property {
        name: "surplus",
        fault: |answer, _| {
            answer
                .has_surplus
                .then(|| "bytes behind its end".to_owned())
        },
        mend: "send nothing behind the end of an answer, and no body with 204 and 304: it would be read as the next answer",
    },
    Property {
        name: "head",
        fault: |answer, _| head(answer),
        mend: "send at most 100 fields, 64 KiB and eight informational answers: the caller gets 502 otherwise",
    },
    Property {
        name: "content-type",
        fault: |answer, _| match answer.body.is_empty() {
            true => None,
            false => answer
                .head
                .text("content-type")
                .is_none()
                .then(|| "a body without Content-Type".to_owned()),
        },
        mend: "name the form of each body",
    },
    Property {
        name: "errors",
        fault: |answer, _| error(answer),
        mend: "answer errors in JSON of at most 256 KiB without Content-Encoding: the gateway replaces other ones (ERR-6)",
    },
    Property {
        name: "hop-by-hop",
        fault: |answer, _| nominated(answer),
        mend: "name in Connection only what is for the gateway: it removes every header that Connection names",
    },
    Property {
        name: "amounts",
        fault: |answer, _| amounts::fault(answer),
        mend: "show each amount as a decimal in a string with the fraction digits of its currency (PAY-4), in parts of a bulk too",
    },
    Property {
        name: "own-address",
        fault: own_address,
        mend: "write links relative, or with the host that Forwarded names: TPPs see this one, or get none",
    },
];

/// All checks of answers; those of the other areas have been made before.
pub(super) fn checks(session: &Session) -> Vec<Check> {
    let mut checks = vec![unknown(session), faulty(session), amounts::bulk(session)];
    let answers = session.answers.borrow();
    checks.extend(PROPERTIES.iter().map(|property| {
        let faults = answers.iter().filter_map(|(what, answer)| {
            let fault = (property.fault)(answer, &session.core.authority)?;
            Some(format!("{what}: {fault}"))
        });
        let mut faults: Vec<_> = faults.collect();
        let passed = faults.is_empty();
        let count = faults.len();
        faults.truncate(NAMED);
        let found = match passed {
            true => format!("{} answers", answers.len()),
            false => format!(
                "{count} of {} answers: {}",
                answers.len(),
                faults.join("; ")
            ),
        };
        Check::new(AREA, property.name, found, passed, property.mend)
    }));
    checks
}

/// A payment that nobody made.
fn unknown(session: &Session) -> Check {
    let example = Example {
        operation: "payment-status".into(),
        method: Method::GET,
        target: format!(
            "/v1/payments/norwegian-domestic-credit-transfers/{}/status",
            Uuid::new_v4()
        ),
        body: Vec::new(),
    };
    let request = session.gateway.vouched(&example);
    let outcome = session.ask("status of an unknown payment", &request);
    let passed = outcome
        .answer
        .as_ref()
        .is_ok_and(|answer| (400..500).contains(&answer.status));
    let mend = "answer 404 for a payment that does not exist, or is another TPP's";
    Check::new(AREA, "unknown-payment", outcome.to_string(), passed, mend)
}

/// A JSON document of another form than the operation's.
fn faulty(session: &Session) -> Check {
    let request = session.gateway.forwarded(&session.write);
    let request = session.gateway.vouch(request.with_body(b"[7]".to_vec()));
    let outcome = session.ask(&format!("{} of another form", request.method), &request);
    let passed = outcome
        .answer
        .as_ref()
        .is_ok_and(|answer| (400..500).contains(&answer.status));
    let mend = "answer 400 to a body that does not have the operation's form";
    Check::new(AREA, "faulty-body", listed(&[outcome]), passed, mend)
}

fn framing(answer: &Answer) -> Option<String> {
    let lengths = answer.head.values("content-length");
    let codings = answer.head.codings();
    if lengths.len() > 1 || lengths.iter().any(|length| length.contains(&b',')) {
        return Some(format!("Content-Length {} times", lengths.len().max(2)));
    }
    match (lengths.is_empty(), codings.as_slice()) {
        (_, []) => None,
        (true, [coding]) if coding == "chunked" => None,
        (true, codings) => Some(format!("Transfer-Encoding: {}", codings.join(", "))),
        (false, _) => Some("Content-Length beside Transfer-Encoding".to_owned()),
    }
}

fn head(answer: &Answer) -> Option<String> {
    let fields = answer.head.headers.len();
    if fields > MOST_FIELDS {
        return Some(format!("{fields} fields"));
    }
    if answer.head.size > MOST_HEAD {
        return Some(format!("a head of {} bytes", answer.head.size));
    }
    let informational = answer.informational;
    (informational > MOST_INFORMATIONAL).then(|| format!("{informational} informational answers"))
}

fn error(answer: &Answer) -> Option<String> {
    if answer.status < 400 {
        return None;
    }
    let kind = answer.head.text("content-type").unwrap_or_default();
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_lowercase();
    if kind != "application/json" && !kind.ends_with("+json") {
        return Some(format!("{} with Content-Type {kind:?}", answer.status));
    }
    if !answer.head.values("content-encoding").is_empty() {
        return Some(format!("{} with Content-Encoding", answer.status));
    }
    if answer.body.len() > MOST_ERROR {
        return Some(format!(
            "{} with {} bytes",
            answer.status,
            answer.body.len()
        ));
    }
    let parsed = serde_json::from_slice::<serde::de::IgnoredAny>(&answer.body);
    parsed
        .is_err()
        .then(|| format!("{} with a body that is no JSON", answer.status))
}

/// A header that a TPP would get if Connection did not name it.
fn nominated(answer: &Answer) -> Option<String> {
    let values = answer.head.values("connection");
    let names = values.iter().flat_map(|value| value.split(|b| *b == b','));
    let mut names = names.map(|name| String::from_utf8_lossy(name.trim_ascii()).to_lowercase());
    let name = names.find(|name| KEPT.contains(&name.as_str()) || name.starts_with("aspsp-"))?;
    Some(format!("Connection: {name}"))
}

fn own_address(answer: &Answer, authority: &str) -> Option<String> {
    let names = |bytes: &[u8]| {
        bytes
            .windows(authority.len())
            .any(|window| window.eq_ignore_ascii_case(authority.as_bytes()))
    };
    let headers = ["location", "content-location", "link"];
    let header = headers
        .into_iter()
        .find(|header| answer.head.values(header).into_iter().any(names));
    match header {
        Some(header) => Some(format!("{header} names {authority}")),
        None => names(&answer.body).then(|| format!("the body names {authority}")),
    }
}
