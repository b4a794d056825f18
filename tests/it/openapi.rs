//! The OpenAPI description: a validator and a linter accept it, its schemas agree with the gateway, and no request of
//! schemathesis makes the gateway fail or forward a forbidden request.
//!
//! The tools come from PyPI and npm, once, into the target folder; without them the tests are skipped with a message, or fail on CI.
//! PORTVAKT_SCHEMATHESIS_EXAMPLES starts a long run: the maximum number of requests for each operation, with a random seed, and every
//! single fault in every parameter.

use crate::{
    harness::{Gate, Reply, Upstream, missing, world},
    payload::generated,
    signers::node_modules,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use portvakt::interface::{
    headers::identity::IdentityForm,
    openapi::{Setting, describe},
    operations::{Catalogue, Environment, Operation, Parameter, ParameterKind, Role, builtin},
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
    let setting = Setting {
        environment,
        system: "portvakt",
        authority: "localhost:8443",
        identity: IdentityForm::NORWEGIAN,
        body_limit: 65_536,
    };
    describe(&Catalogue::new(environment, operations).unwrap(), &setting)
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

#[test]
fn bodies_are_judged_as_they_are_described() {
    let Some(mut python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [openapi, bodies] = ["openapi.json", "bodies"].map(|name| folder.path().join(name));
    fs::write(&openapi, description(Environment::Sandbox).to_string()).unwrap();
    fs::write(&bodies, generated::judged(500)).unwrap();
    python
        .arg(script("judge.py"))
        .arg(openapi)
        .arg("payloads")
        .arg(bodies);
    passes(&mut python);
}

#[test]
fn schemathesis_finds_nothing() {
    let Some(mut judge) = python() else { return };
    let gate = Gate::builder()
        .line("rates: {per_address: off, per_tpp: off, chains_per_address: off, chains: off}")
        .start();
    // No operation describes an answer with this status, so any form is correct.
    gate.upstream().reply(Reply::json(202, "{}"));
    let tpp = &world().both;
    gate.introduce(json!({ "tpp": tpp.id().unwrap(), "psu_id": tpp.psu() }));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let openapi = file("openapi.json", &gate.control("/openapi.json").body);
    let authority = file("ca.pem", world().tls_ca.pem().as_bytes());
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
    let mut tool = python().unwrap();
    tool.args(["-m", "schemathesis.cli", "run"])
        .arg(&openapi)
        .args(["--url", &format!("https://localhost:{}", gate.address().port())])
        .arg("--tls-verify")
        .arg(authority)
        .args(extent)
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"])
        .args(["--suppress-health-check", "all", "--generation-database", "none", "--no-color"])
        .args(["--warnings", "off"])
        .current_dir(folder.path())
        .env("PYTHONPATH", script(""))
        .env("SCHEMATHESIS_HOOKS", "signing")
        .env("PORTVAKT_CERTIFICATE", file("tpp.pem", tpp.issued.pem.as_bytes()))
        .env("PORTVAKT_KEY", file("tpp.key", tpp.issued.key_pem.as_bytes()))
        .env("PORTVAKT_PSU", tpp.psu());
    passes(&mut tool);
    let forwarded = file("forwarded", forwarded(gate.upstream()).as_bytes());
    judge
        .arg(script("judge.py"))
        .arg(openapi)
        .arg("forwarded")
        .arg(forwarded);
    passes(&mut judge);
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
