//! docs/upstream-contract.md is correct: its table of headers lists those that an upstream receives, its operations are those
//! of the catalogue, and its examples verify the assertion (FWD-1).

use crate::{
    harness::{Call, Gate, Passage, Protocol, accepted, missing, world},
    signers::python_with,
};
use portvakt::{
    clock::{Clock, Timestamp},
    interface::{
        headers,
        operations::{AnsweredBy, Body, Environments, Operation, Role, Sca, builtin},
    },
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

// The example of the document.
include!("../../examples/bank_core/verify.rs");

const DOCUMENT: &str = include_str!("../../docs/upstream-contract.md");
const ASSERTION: &str = "gateway-assertion";

fn gate() -> Gate {
    let builder = Gate::builder().line("assertion: {key: state/assertion.key}");
    builder.start()
}

fn keys(gate: &Gate) -> JwkSet {
    let answer = gate.control("/.well-known/jwks.json");
    assert_eq!(
        answer.header("content-type"),
        Some("application/jwk-set+json")
    );
    serde_json::from_slice(&answer.body).unwrap()
}

/// The assertion of a forwarded request, and the result of the example's check.
fn told(passage: &Passage, keys: &JwkSet) -> (String, Option<Value>) {
    let seen = &passage.seen;
    let assertion = seen.header(ASSERTION).unwrap().to_owned();
    let header = |name: &str| seen.header(name).map(str::as_bytes);
    let claims = verify(
        &assertion,
        keys,
        &seen.method,
        &seen.target,
        header,
        &seen.body,
    );
    (assertion, claims)
}

/// A payment whose PSU the TPP does not know yet.
fn single_sca() -> Call {
    Call::payment()
        .without("PSU-ID")
        .with("X-PSU-IDENTITY", "01010112345")
        .with("PSU-Context", "PRIVATE")
}

fn calls() -> [Call; 8] {
    [
        single_sca(),
        Call::accounts(),
        Call::accounts()
            .present()
            .with("PSU-Corporate-ID", "3f2504e0-4f89-41d3-9a0c-0305e82c33ff"),
        Call::accounts().at("/v1/accounts/42/transactions?limit=5"),
        Call::details(),
        Call::payment(),
        Call::cross_border(),
        Call::sandbox_transactions(),
    ]
}

//= FWD-1 accepted
#[test]
fn the_assertion_says_what_the_headers_say_and_of_which_request() {
    let gate = gate();
    let keys = keys(&gate);
    for call in calls() {
        for passage in accepted(&gate, &call) {
            let (_, claims) = told(&passage, &keys);
            let claims = claims.unwrap();
            let seen = &passage.seen;
            let said = |name: &str| claims[name].as_str().map(str::to_owned);
            let names = claims.as_object().unwrap().keys().cloned();
            let claimed: BTreeSet<_> = names.filter(|name| name.starts_with("gateway-")).collect();
            let sent = seen.names().into_iter();
            let sent = sent.filter(|name| name.starts_with("gateway-") && name != ASSERTION);
            assert_eq!(claimed, sent.collect());
            for name in &claimed {
                assert_eq!(said(name).as_deref(), seen.header(name), "{name}");
            }
            let lower = |name: &str| seen.header(name).map(str::to_ascii_lowercase);
            assert_eq!(said("psu_id"), lower("psu-id"));
            assert_eq!(said("psu_corporate_id"), lower("psu-corporate-id"));
            assert_eq!(
                said("gateway-request-id").as_deref(),
                seen.header("x-request-id")
            );
            let id = |text: String| BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(text));
            let [tpp, own] = ["gateway-tpp-id", "gateway-request-id"].map(said);
            let expected = tpp.zip(own).map(|(tpp, own)| id(format!("{tpp}\n{own}")));
            assert!(said("jti").is_some_and(|id| expected.is_none_or(|own| own == id)));
            let (issued, expires) = (claims["iat"].as_u64(), claims["exp"].as_u64());
            assert_eq!(expires, issued.map(|issued| issued + 60));
        }
    }
}

//= FWD-1 refused
#[test]
fn an_assertion_is_good_for_its_request_and_no_other() {
    let gate = gate();
    let keys = keys(&gate);
    let passage = accepted(&gate, &single_sca()).remove(0);
    let seen = &passage.seen;
    let (assertion, claims) = told(&passage, &keys);
    assert!(claims.is_some());
    let (method, target, body) = (seen.method.as_str(), seen.target.as_str(), &seen.body[..]);
    let header = |name: &str| seen.header(name).map(str::as_bytes);
    let holds = |assertion: &str, keys: &JwkSet, method: &str, target: &str, body: &[u8]| {
        verify(assertion, keys, method, target, header, body).is_some()
    };
    assert!(!holds(&assertion, &keys, "PUT", target, body));
    assert!(!holds(&assertion, &keys, method, "/v1/payments", body));
    assert!(!holds(&assertion, &keys, method, target, b"{}"));
    let (rest, _) = assertion.rsplit_once('.').unwrap();
    let forged = format!("{rest}.{}", "A".repeat(86));
    assert!(!holds(&forged, &keys, method, target, body));
    let foreign = self::keys(&self::gate());
    assert!(!holds(&assertion, &foreign, method, target, body));
    // Changes between the gateway and the core: another PSU's number, none, or an additional header.
    for (name, value) in [
        ("x-psu-identity", Some("01010154321")),
        ("x-psu-identity", None),
        ("psu-context", Some("CORPORATE")),
        ("psu-context", None),
        ("signature", Some("keyId=\"another\"")),
        ("signature", None),
    ] {
        let header = |asked: &str| {
            let sent = if asked == name {
                value
            } else {
                seen.header(asked)
            };
            sent.map(str::as_bytes)
        };
        let told = verify(&assertion, &keys, method, target, header, body);
        assert_eq!(told, None, "{name} {value:?}");
    }
    // An expired assertion.
    let then = Clock::standing(Timestamp::from_unix(Clock::System.now().unix() - 300));
    let builder = Gate::builder().line("assertion: {key: assertion.key}");
    let gate = builder.clock(&then).start();
    let passage = accepted(&gate, &Call::accounts()).remove(0);
    assert_eq!(told(&passage, &self::keys(&gate)).1, None);
    // An assertion with another audience.
    let section = "assertion: {key: assertion.key, audience: other-core}";
    let gate = Gate::builder().line(section).start();
    let passage = accepted(&gate, &Call::accounts()).remove(0);
    assert_eq!(told(&passage, &self::keys(&gate)).1, None);
}

/// A core that remembers assertions by `jti` does not confuse requests of two TPPs.
//= FWD-1 accepted
#[test]
fn two_tpps_with_one_request_id_have_two_assertions() {
    let gate = gate();
    let keys = keys(&gate);
    let call = Call::plain().with("X-Request-ID", "chosen-by-both");
    let mut ids = BTreeSet::new();
    for tpp in [&world().both, &world().aisp] {
        let call = call.clone().by(tpp).only(Protocol::Http1);
        let (_, claims) = told(&accepted(&gate, &call).remove(0), &keys);
        let claims = claims.unwrap();
        assert_eq!(claims["gateway-request-id"], "chosen-by-both");
        ids.insert(claims["jti"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 2);
}

//= FWD-1 accepted
#[test]
fn keys_are_published_to_whoever_asks() {
    let gate = Gate::start();
    assert!(keys(&gate).keys.is_empty());
    let passage = accepted(&gate, &Call::accounts()).remove(0);
    assert_eq!(passage.seen.header(ASSERTION), None, "it is off by default");

    let made = || {
        let key = openssl::ec::EcGroup::from_curve_name(openssl::nid::Nid::X9_62_PRIME256V1);
        let key = openssl::ec::EcKey::generate(&key.unwrap()).unwrap();
        let key = openssl::pkey::PKey::from_ec_key(key).unwrap();
        key.private_key_to_pem_pkcs8().unwrap()
    };
    let [first, second] = [made(), made()];
    let gate = |key: &str, previous: &str| {
        let builder = Gate::builder()
            .private_file("a.key", first.clone())
            .private_file("b.key", second.clone());
        builder
            .line(&format!("assertion: {{key: {key}, previous: {previous}}}"))
            .start()
    };
    let (before, after) = (gate("a.key", "b.key"), gate("b.key", "a.key"));
    // With either of the two keys, the core distinguishes the gateways.
    for (signs, knows) in [(&before, &after), (&after, &before)] {
        let passage = accepted(signs, &Call::accounts()).remove(0);
        let keys = keys(knows);
        assert_eq!(keys.keys.len(), 2);
        assert!(told(&passage, &keys).1.is_some());
    }
    let readable = Gate::builder()
        .line("assertion: {key: a.key}")
        .file("a.key", first.clone())
        .try_start();
    assert!(readable.err().unwrap().contains("0600"));
}

//= FWD-1 accepted
#[test]
fn python_verifies_it() {
    let packages = ["PyJWT", "cryptography"];
    let Some(mut python) = python_with("python-jwt", "jwt, cryptography", &packages) else {
        return missing("Python with PyJWT cannot be had on this machine");
    };
    let gate = gate();
    let passage = accepted(&gate, &single_sca()).remove(0);
    let assertion = passage.seen.header(ASSERTION).unwrap();
    let named = passage.seen.headers.iter();
    let headers: Value = named
        .map(|(name, value)| {
            // One character per byte, as a Python server decodes them.
            let latin: String = value.bytes().map(char::from).collect();
            (name.to_lowercase(), latin.into())
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let keys: Value = gate.control("/.well-known/jwks.json").json();
    let body = String::from_utf8(passage.seen.body.clone()).unwrap();
    let asked = |body: &str| {
        json!([
            assertion,
            keys,
            passage.seen.method,
            passage.seen.target,
            headers,
            body
        ])
        .to_string()
    };
    let program = "import json, sys; from verify import verify\n\
                   *rest, body = json.load(sys.stdin); print(json.dumps(verify(*rest, body.encode())))";
    let folder = root().join("tests/it/contract");
    python.args(["-B", "-c", program]).env("PYTHONPATH", folder);
    let answer = said(&mut python, &asked(&body)).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["gateway-tpp-id"], "PSDNO-FSA-123456");
    assert_eq!(said(&mut python, &asked("{}")), None);
}

/// The output of a program for this standard input; `None` if the program fails.
fn said(program: &mut Command, input: &str) -> Option<String> {
    let pipes = program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    output.status.success().then_some(said)
}

#[test]
fn the_examples_of_the_document_are_these() {
    for file in [
        "examples/bank_core/verify.rs",
        "tests/it/contract/verify.py",
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(DOCUMENT.contains(&format!("\n{text}```\n")), "{file}");
    }
}

/// Every header that an upstream ever receives, over a set of requests that covers each case once.
#[test]
fn the_table_of_headers_is_true() {
    let mut seen = BTreeSet::new();
    let gate = gate();
    for call in calls() {
        for passage in accepted(&gate, &call) {
            seen.extend(passage.seen.names());
        }
    }
    let learning = Gate::builder()
        .strangers()
        .clock(&Clock::standing(Timestamp::from_unix(1_790_000_000)))
        .sca("unknown_psu: learn")
        .sca("learn_since: 2026-09-01")
        .sca("learn_until: 2026-10-01")
        .start();
    let firm = "3f2504e0-4f89-41d3-9a0c-0305e82c33ff";
    let unknown = Call::accounts().present().with("PSU-Corporate-ID", firm);
    let unknown = accepted(&learning, &unknown.only(Protocol::Http1)).remove(0);
    assert_eq!(unknown.seen.header("gateway-psu-bound"), Some("no"));
    seen.extend(unknown.seen.names());

    let observing = Gate::builder().line("observe: {checks: [date]}").start();
    let late = accepted(&observing, &Call::plain().off_by(-300)).remove(0);
    seen.extend(late.seen.names());

    let interface: BTreeSet<_> = headers::TABLE
        .iter()
        .map(|header| header.name.to_string())
        .collect();
    let written = rows("Gateway headers");
    let own: BTreeSet<_> = seen.difference(&interface).cloned().collect();
    assert_eq!(own, written, "the table of headers");
    let passed = names(section("Forwarded requests"));
    assert_eq!(passed, interface, "the headers that go through");
}

/// The table of operations matches the catalogue.
#[test]
fn the_table_of_operations_is_true() {
    let mut table = String::from(
        "| operation | request | role | about the PSU | body |\n|---|---|---|---|---|\n",
    );
    for operation in builtin() {
        table.push_str(&row(&operation));
    }
    if std::env::var_os("PORTVAKT_BLESS").is_some() {
        let (before, rest) = DOCUMENT.split_once("| operation |").unwrap();
        let (_, after) = rest.split_once("|\n\n").unwrap();
        let text = format!("{before}{table}\n{after}");
        fs::write(root().join("docs/upstream-contract.md"), text).unwrap();
    } else {
        assert!(
            DOCUMENT.contains(&format!("\n{table}\n")),
            "the table of operations is not the catalogue's: run PORTVAKT_BLESS=1 make test"
        );
    }
}

fn row(operation: &Operation) -> String {
    let role = match operation.role {
        Role::Either => "PSP_AI or PSP_PI",
        role => role.name(),
    };
    let psu = match operation.sca {
        _ if operation.answered_by == AnsweredBy::Gateway => "the gateway answers",
        Sca::None => "nothing",
        Sca::Identified => "known",
        Sca::Consent => "consent",
    };
    let schema = operation.schema.name();
    let body = match operation.body {
        Body::None => "none",
        Body::Ignored => "stays at the gateway",
        Body::Json if schema == "any" => "JSON",
        Body::Json => schema,
    };
    let only = match operation.environments {
        Environments::Both => "",
        Environments::SandboxOnly => " (sandbox)",
    };
    let Operation {
        name, method, path, ..
    } = operation;
    format!("| `{name}` | {method} {path}{only} | {role} | {psu} | {body} |\n")
}

/// The text under a heading of the document.
fn section(heading: &str) -> &'static str {
    let (_, rest) = DOCUMENT.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap()
}

/// The names in the first column of a section's table, in lower case.
fn rows(heading: &str) -> BTreeSet<String> {
    let rows = section(heading)
        .lines()
        .filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| names(row.split('|').nth(1).unwrap()))
        .collect()
}

/// The texts in backticks, in lower case.
fn names(text: &str) -> BTreeSet<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.map(str::to_ascii_lowercase).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
