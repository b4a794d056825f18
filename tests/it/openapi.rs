//! The OpenAPI description: a validator and a linter accept it, its schemas agree with the gateway, and no request of
//! schemathesis makes the gateway fail or forward a forbidden request.
//!
//! The tools come from PyPI and npm, once, into the target folder; without them the tests are skipped with a message, or fail on CI.
//! PORTVAKT_SCHEMATHESIS_EXAMPLES starts a long run: the maximum number of requests for each operation, with a random seed, and every
//! single fault in every parameter.

use crate::{
    harness::{Connection, Gate, Reply, Upstream, missing, world},
    payload::generated,
    signers::node_modules,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use portvakt::interface::{
    headers::{PSU_USER_AGENT, identity::IdentityForm},
    openapi::{Setting, describe},
    operations::{
        Catalogue, Environment, Member, MemberKind, Operation, Parameter, ParameterKind, Product,
        Required, Role, Schema, builtin,
    },
    payload::{Ibans, check},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

/// The default number of requests that schemathesis generates for each operation.
const EXAMPLES: &str = "5";

/// Python with the installed tools.
static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi-tools");
    let python = folder.join("bin/python");
    if !python.exists() {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let imports = || {
        let modules = "import cryptography, jsonschema, openapi_spec_validator, schemathesis";
        succeeds(Command::new(&python).args(["-c", modules]))
    };
    if imports().is_none() {
        succeeds(Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "openapi-spec-validator==0.9.0",
            "schemathesis==4.32.5",
            "cryptography",
        ]))?;
    }
    imports().map(|()| python)
});

fn succeeds(command: &mut Command) -> Option<()> {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().ok()?.success().then_some(())
}

fn python() -> Option<Command> {
    if PYTHON.is_none() {
        missing("openapi-spec-validator and schemathesis cannot be had on this machine");
    }
    PYTHON.as_ref().map(Command::new)
}

fn script(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/openapi");
    folder.join(name)
}

/// Runs a tool; returns its output if it reports a fault.
fn passes(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
}

/// A description with operations of a deployment's own.
fn description(environment: Environment) -> Value {
    let mut operations = builtin();
    let path = "/v1/cards/{id}/limits/{id}";
    let mut own = Operation::added("limit-read", http::Method::GET, path, "cards", Role::Either);
    let kinds = ParameterKind::NAMES.iter();
    own.query = kinds
        .map(|(name, kind)| Parameter::new(name, *kind).required())
        .collect();
    operations.push(own);
    operations.extend(product().operations(&builtin()));
    let setting = Setting {
        environment,
        system: "portvakt",
        authority: "localhost:8443",
        identity: IdentityForm::NORWEGIAN,
        body_limit: 65_536,
        ibans: &Ibans::default(),
    };
    let catalogue = Catalogue::with_products(environment, operations, &["sepa-credit-transfers"]);
    describe(&catalogue.unwrap(), &setting)
}

/// A product of a bank, with a member of each kind.
fn product() -> Product {
    let text = |one_of: &[&str]| MemberKind::Text {
        least: 1,
        most: 35,
        one_of: one_of.iter().map(|word| (*word).to_owned()).collect(),
    };
    let members = [
        ("creditorAddress", MemberKind::Interface),
        ("endToEndIdentification", text(&[])),
        ("chargeBearer", text(&["SLEV", "SHAR"])),
        ("startDate", MemberKind::Date),
        ("batchBooking", MemberKind::Boolean),
        ("ceiling", MemberKind::Amount),
        ("feeAccount", MemberKind::Account),
        ("payments", MemberKind::Payments),
    ];
    let members = members.map(|(name, kind)| Member {
        name: name.to_owned(),
        required: name == "endToEndIdentification",
        kind,
    });
    Product {
        name: "sepa-credit-transfers".to_owned(),
        schema: Schema::Payment,
        members: members.to_vec(),
        required: vec![Required::One(&PSU_USER_AGENT)],
        answer: None,
    }
}

/// The description of each environment, in files.
fn described(folder: &Path) -> [PathBuf; 2] {
    [Environment::Production, Environment::Sandbox].map(|environment| {
        let file = folder.join(format!("{}.json", environment.name()));
        fs::write(&file, description(environment).to_string()).unwrap();
        file
    })
}

#[test]
fn a_validator_finds_nothing() {
    let Some(mut python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    python.args(["-m", "openapi_spec_validator", "--errors", "all"]);
    passes(python.args(described(folder.path())));
}

/// By every rule that Redocly recommends, warnings included.
#[test]
fn a_linter_finds_nothing() {
    let Some(modules) = node_modules("redocly", "@redocly/cli", "2.77.0") else {
        return missing("@redocly/cli cannot be had on this machine");
    };
    let folder = tempfile::tempdir().unwrap();
    let mut linter = Command::new(modules.join(".bin/redocly"));
    linter
        .arg("lint")
        .args(described(folder.path()))
        .args(["--extends", "recommended-strict"])
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .current_dir(folder.path());
    passes(&mut linter);
}

/// Bodies of the bank's product with the gateway's judgement.
fn of_the_product() -> String {
    let account = json!({"iban": "NO9386011117947", "currency": "NOK"});
    let values = [
        ("endToEndIdentification", json!("æ".repeat(35))),
        ("endToEndIdentification", json!("æ".repeat(36))),
        ("endToEndIdentification", json!(7)),
        ("chargeBearer", json!("SHAR")),
        ("chargeBearer", json!("shar")),
        ("startDate", json!("2027-01-31")),
        ("startDate", json!("31.01.2027")),
        ("batchBooking", json!(true)),
        ("batchBooking", json!("true")),
        ("ceiling", json!({"amount": "1.00", "currency": "NOK"})),
        ("ceiling", json!({"amount": "1.0", "currency": "NOK"})),
        ("feeAccount", account.clone()),
        ("feeAccount", json!({"currency": "NOK"})),
        ("creditorAddress", json!({"country": "NO"})),
        ("creditorAddress", json!({"city": "Oslo"})),
        ("payments", json!([{"debtorAccount": account}, {}])),
        ("payments", json!([{"debtorAccount": {}}])),
        ("payments", json!([])),
        ("creditorName", json!("")),
        ("more", json!(null)),
    ];
    let (product, today) = (product(), jiff::civil::date(2026, 1, 15));
    let mut lines = String::new();
    for (name, value) in values {
        for mut body in [json!({"endToEndIdentification": "E-1"}), json!({})] {
            body[name] = value.clone();
            let text = body.to_string();
            let judged = check(
                text.as_bytes(),
                product.schema,
                &product.members,
                today,
                &Ibans::default(),
            );
            let schema = format!("/v1/payments/{}", product.name);
            let line = json!({"schema": schema, "body": body, "passes": judged.is_ok()});
            lines.push_str(&format!("{line}\n"));
        }
    }
    lines
}

#[test]
fn bodies_are_judged_as_they_are_described() {
    let Some(mut python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [openapi, bodies] = ["openapi.json", "bodies"].map(|name| folder.path().join(name));
    fs::write(&openapi, description(Environment::Sandbox).to_string()).unwrap();
    fs::write(&bodies, generated::judged(500) + &of_the_product()).unwrap();
    python
        .arg(script("judge.py"))
        .arg(openapi)
        .arg("payloads")
        .arg(bodies);
    passes(&mut python);
}

/// Anybody may read it, within a limit, and only where it is on.
#[test]
fn the_public_listener_describes_the_interface() {
    let get = |gate: &Gate, method: &str, path: &str| {
        let mut connection = Connection::open(gate);
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        connection.send(request.as_bytes()).unwrap();
        connection.answer(method).unwrap()
    };
    let gate = Gate::builder().listener("description: on").start();
    let openapi = get(&gate, "GET", "/openapi.json");
    assert_eq!(openapi.status, 200);
    assert_eq!(openapi.json(), gate.control("/openapi.json").json());
    let page = get(&gate, "GET", "/docs");
    assert_eq!(
        page.header("Content-Type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("Content-Security-Policy").unwrap();
    assert!(!policy.contains("unsafe"), "{policy}");
    let text = String::from_utf8(page.body).unwrap();
    for operation in builtin() {
        let article = format!("<article id=\"{}\">", operation.name);
        assert!(text.contains(&article), "{article}");
    }
    assert!(!text.contains("<script"));
    let head = get(&gate, "HEAD", "/docs");
    assert_eq!((head.status, head.body.len()), (200, 0));
    for (method, path) in [
        ("POST", "/docs"),
        ("GET", "/docs/more"),
        ("GET", "/openapi"),
    ] {
        assert_eq!(get(&gate, method, path).status, 404, "{method} {path}");
    }
    let mut connection = Connection::open(&gate);
    let mut busy = (0..300).map(|_| {
        connection
            .send(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        connection.answer("GET").unwrap()
    });
    let refused = busy.find(|answer| answer.status != 200).unwrap();
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("Retry-After"), Some("1"));
    // Whoever reads too often must not look like a failure of the gateway.
    let of_gateway = gate.metric_at_rest("portvakt_answers_total", &["fault=\"gateway\""]);
    assert_eq!(of_gateway, 0.0);
    assert!(gate.upstream().take().is_empty());
    let off = Gate::start();
    assert_eq!(
        get(&off, "GET", "/openapi.json").json()["reason"],
        "operation-unknown"
    );
}

#[test]
fn schemathesis_finds_nothing() {
    let Some(mut judge) = python() else { return };
    let gate = Gate::builder()
        .line("rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}")
        .start();
    // No operation describes an answer with this status, so any form is correct.
    gate.upstream().reply(Reply::json(202, "{}"));
    let tpp = &world().both;
    gate.introduce(json!({ "tpp": tpp.id().unwrap(), "psu_id": tpp.psu() }));
    let folder = tempfile::tempdir().unwrap();
    let examples = std::env::var("PORTVAKT_SCHEMATHESIS_EXAMPLES");
    let extent: &[&str] = match &examples {
        Ok(examples) => &[
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            examples,
        ],
        Err(_) => &[
            "--phases",
            "examples,fuzzing",
            "--max-examples",
            EXAMPLES,
            "--seed",
            "1",
        ],
    };
    schemathesis(&gate, folder.path(), extent, &json!({"psu": tpp.psu()}));
    let openapi = folder.path().join("openapi.json");
    let seen = folder.path().join("forwarded");
    fs::write(&seen, forwarded(gate.upstream())).unwrap();
    judge
        .arg(script("judge.py"))
        .arg(openapi)
        .arg("forwarded")
        .arg(seen);
    passes(&mut judge);
}

/// Runs schemathesis in a folder, against every operation of a gateway; it must find nothing. The requests are signed, and have in
/// place of generated values those of `known`: see signing.py.
pub(crate) fn schemathesis(gate: &Gate, folder: &Path, extent: &[&str], known: &Value) {
    let file = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let tpp = &world().both;
    let openapi = file("openapi.json", &gate.control("/openapi.json").body);
    let authority = file("ca.pem", world().tls_ca.pem().as_bytes());
    let mut tool = python().expect("schemathesis comes from PyPI");
    tool.args(["-m", "schemathesis.cli", "run"])
        .arg(openapi)
        .args(["--url", &format!("https://localhost:{}", gate.address().port())])
        .arg("--tls-verify")
        .arg(authority)
        .args(extent)
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"])
        .args(["--suppress-health-check", "all", "--generation-database", "none", "--no-color"])
        .args(["--warnings", "off"])
        .current_dir(folder)
        .env("PYTHONPATH", script(""))
        .env("SCHEMATHESIS_HOOKS", "signing")
        .env("PORTVAKT_CERTIFICATE", file("tpp.pem", tpp.issued.pem.as_bytes()))
        .env("PORTVAKT_KEY", file("tpp.key", tpp.issued.key_pem.as_bytes()))
        .env("PORTVAKT_KNOWN", known.to_string());
    passes(&mut tool);
}

/// The requests that the core received, one per line.
fn forwarded(upstream: &Upstream) -> String {
    let seen = upstream.take();
    assert!(seen.len() > 20, "only {} were forwarded", seen.len());
    let lines = seen.into_iter().map(|seen| {
        let body = STANDARD.encode(seen.body);
        json!({ "method": seen.method, "target": seen.target, "headers": seen.headers, "body": body })
            .to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}
