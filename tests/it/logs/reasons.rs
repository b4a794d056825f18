//! An answer of each reason: its `id` is in exactly one line of the access log.

use super::lines;
use crate::{
    harness::{
        Answer, Call, Connection, Gate, GateBuilder, Program, Protocol, Reply, Tpp,
        pki::{LeafSpec, QcType},
        render, rsa_key, world,
    },
    observe::breach,
    transport::client_auth,
};
use portvakt::interface::Reason;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    process::Stdio,
    sync::Arc,
};
use time::macros::datetime;

/// Reasons that no request can cause: a fault of the gateway itself.
const WITHOUT_CASE: [Reason; 1] = [Reason::Internal];

/// PSUs whom the bank has reported: with every account, with one account, and for a company only.
const PSUS: [&str; 3] = [
    "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "3f2504e0-4f89-41d3-9a0c-0305e82c3302",
    "3f2504e0-4f89-41d3-9a0c-0305e82c3303",
];

/// An error answer: its `id`, its status, and its reason.
pub(super) type Noted = (String, u64, String);

pub(super) fn note(answer: &Answer) -> Noted {
    let body = answer.json();
    let id = body["id"].as_str().unwrap().to_owned();
    (id, u64::from(answer.status), answer.reason())
}

/// The `id` of each answer is in exactly one line, with its status and its reason. Returns the reasons.
pub(super) fn are_found(noted: &[Noted], lines: &[Value]) -> BTreeSet<String> {
    for (id, status, reason) in noted {
        let found: Vec<_> = lines.iter().filter(|line| line["id"] == **id).collect();
        assert_eq!(found.len(), 1, "{reason}: {id}");
        assert_eq!(
            (&found[0]["status"], &found[0]["reason"]),
            (&(*status).into(), &reason.as_str().into())
        );
        assert!(found[0]["trace_id"].is_string(), "{reason}");
    }
    noted.iter().map(|(_, _, reason)| reason.clone()).collect()
}

/// A gateway with an access log, and its error answers.
struct Noting {
    gate: Gate,
    program: Program,
    noted: Vec<Noted>,
}

impl Noting {
    fn start(builder: GateBuilder) -> Self {
        let gate = builder.for_program();
        let log = File::create(gate.folder().join("access.log")).unwrap();
        let program = gate.run(gate.program().stdout(log).stderr(Stdio::null()));
        Self {
            gate,
            program,
            noted: Vec::new(),
        }
    }

    fn note(&mut self, answer: &Answer) {
        if answer.status >= 400 {
            self.noted.push(note(answer));
        }
    }

    fn send(&mut self, call: &Call) {
        let answer = self.gate.send(call, Protocol::Http1);
        self.note(&answer);
    }

    /// Stops the gateway, and looks for the answers in its log.
    fn found(mut self) -> BTreeSet<String> {
        super::signal(&self.program, "-TERM");
        assert!(self.program.0.wait().unwrap().success());
        are_found(&self.noted, &lines(&self.gate.folder().join("access.log")))
    }
}

/// Refusals that a request alone causes, and those of certificates.
fn of_requests() -> BTreeSet<String> {
    let operation = "{name: cards, method: GET, path: /v1/cards, role: PSP_AI, query: [{name: kind, kind: text, required: true}]}";
    let mut noting = Noting::start(
        Gate::builder()
            .strangers()
            .file("operations.yaml", format!("operations: [{operation}]"))
            .line("operations: operations.yaml"),
    );
    let tpp = noting.gate.world().both.id();
    for (psu, more) in PSUS.iter().zip([
        json!({}),
        json!({ "accounts": ["1"] }),
        json!({ "psu_corporate_id": "c56a4180-65aa-42ec-a945-5fd21dec0538" }),
    ]) {
        let mut who = json!({ "tpp": tpp, "psu_id": psu });
        who.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        noting.gate.introduce(who);
    }
    let of = |psu: usize, path: &str| Call::accounts().at(path).with("PSU-ID", PSUS[psu]);
    let twice = |request: &mut portvakt::tools::tpp::SignedRequest| {
        request
            .headers
            .push(("psu-context".into(), "PRIVATE".into()));
        request
            .headers
            .push(("psu-context".into(), "PRIVATE".into()));
    };
    let unsigned = |request: &mut portvakt::tools::tpp::SignedRequest| {
        let is_signature = |name: &str| name.eq_ignore_ascii_case("signature");
        request.headers.retain(|(name, _)| !is_signature(name));
    };
    let mut calls = vec![
        Call::payment().at("/v1/payments/gold-bars"),
        Call::payment().with("Content-Type", "text/plain"),
        Call::accounts().with("Accept", "text/html"),
        Call::payment().json(&" ".repeat(70_000)),
        Call::accounts().json(r#"{"a":1}"#),
        Call::accounts().altered(twice),
        Call::accounts().altered(unsigned),
        Call::accounts().signature(|_| "x".to_owned()),
        Call::accounts().key_id("SN=1,CA=CN=Nobody"),
        Call::accounts().signature(|signature| signature.replace("rsa-sha256", "hs2019")),
        Call::accounts().signing(&["Date"]),
        Call::payment().with("Digest", "MD5=x"),
        Call::accounts().by(&world().pisp),
        Call::accounts(),
        of(
            0,
            "/v1/accounts/1/transactions?dateFrom=2026-01-02&dateTo=2026-01-01",
        )
        .present(),
        of(0, "/v1/accounts/1/transactions?dateFrom=2020-01-01"),
        Call::new("GET", "/v1/cards"),
        of(1, "/v1/accounts/2/balances"),
        of(2, "/v1/accounts"),
    ];
    calls.extend((0..5).map(|_| of(0, "/v1/accounts/1/balances")));
    calls.extend(certificates().iter().map(|tpp| Call::accounts().by(tpp)));
    for call in &calls {
        noting.send(call);
    }
    noting.found()
}

/// TPPs with a certificate that is refused.
fn certificates() -> Vec<Arc<Tpp>> {
    let issued = |change: fn(&mut LeafSpec)| {
        let mut spec = world().leaf();
        change(&mut spec);
        world().issue(&spec)
    };
    vec![
        issued(|spec| spec.not_after = datetime!(2020-01-01 0:00 UTC)),
        issued(|spec| spec.not_before = datetime!(2040-01-01 0:00 UTC)),
        issued(|spec| spec.qc_type = Some(QcType::Esign)),
        issued(|spec| (spec.qc_type, spec.roles) = (Some(QcType::Web), None)),
        issued(|spec| spec.key = portvakt_development_pki::Key::RsaPem(rsa_key(1024))),
        Arc::clone(breach::untrusted()),
    ]
}

/// Refusals by registers, revocation, redirect hosts and earlier requests.
fn of_senders() -> BTreeSet<String> {
    let mut noting = Noting::start(breach::checking_everything());
    for breach in breach::all() {
        breach.prepare(&noting.gate);
        noting.send(&breach.call);
    }
    noting.send(&Call::accounts().by(&breach::issue(breach::BLOCKED)));
    noting.found()
}

/// A register that is too old, a revocation status that nobody knows, and a QWAC of another TPP.
fn of_trust() -> BTreeSet<String> {
    let entity = json!({
        "CA_OwnerID": "NO_FSA", "EntityCode": "NO_FSA!7123456", "EntityType": "PSD_PI",
        "Properties": [{"ENT_NAT_REF_COD": "123456"}, {"ENT_AUT": ["2019-01-01"]}],
        "Services": [{"NO": ["PS_070", "PS_080"]}], "__EBA_EntityVersion": "20200101000000000",
    });
    let eba = json!([[{"__EBA_Disclaimer": ["no legal significance"]}], [entity]]);
    let stale = Gate::builder()
        .file("eba.json", eba.to_string())
        .line("registers: {check: on, eba: eba.json, max_age: 168h}");
    let unknown = Gate::builder()
        .file("anchors/root.pem", world().issuing.pem())
        .line("revocation: {check: on, unreachable: closed}");
    let mut found = BTreeSet::new();
    for builder in [stale, unknown] {
        let mut noting = Noting::start(builder);
        noting.send(&Call::accounts());
        found.extend(noting.found());
    }
    let mut noting = Noting::start(Gate::builder().listener("client_auth: optional"));
    let qwac = client_auth::issue(&LeafSpec {
        organization_identifier: Some("PSDNO-FSA-111111".into()),
        ..client_auth::qwac()
    });
    let client = client_auth::client(client_auth::VERSIONS[1], Some(&qwac), b"http/1.1");
    let (answer, _) = client_auth::call(&noting.gate, &client, &Call::accounts()).unwrap();
    noting.note(&answer);
    found.extend(noting.found());
    found
}

/// Rates, requests in flight, an answer that is lost, and a state that is missing.
fn of_limits() -> BTreeSet<String> {
    let mut noting = Noting::start(
        Gate::builder()
            .line("rates: {per_tpp: 1, per_address: off, chains: off, chains_per_address: off}"),
    );
    let limited = noting.gate.exceed(Call::plain);
    noting.note(&limited);
    let mut found = noting.found();

    let mut noting = Noting::start(
        Gate::builder()
            .upstream("max_in_flight: 2")
            .upstream("max_in_flight_per_tpp: 1"),
    );
    noting.gate.upstream().reply(Reply::Close);
    noting.send(&Call::payment());
    let (slow, core) = Reply::json(200, "{}").held();
    noting.gate.upstream().reply(slow);
    let mut held = Vec::new();
    for (tpp, count, other) in [
        (&world().both, 1, &world().both),
        (&world().aisp, 2, &world().pisp),
    ] {
        let mut connection = Connection::open(&noting.gate);
        let sealed = noting.gate.seal(&Call::plain().by(tpp));
        connection.send(&render(&sealed)).unwrap();
        held.push(connection);
        core.arrived(count);
        noting.send(&Call::plain().by(other));
    }
    core.release();
    for mut connection in held {
        assert_eq!(connection.answer("GET").unwrap().status, 200);
    }
    let state = noting.gate.folder().join("state/portvakt.db");
    fs::rename(&state, state.with_extension("away")).unwrap();
    let payment = Call::payment().with("PSU-ID", PSUS[0]);
    let answer = noting
        .gate
        .send_sealed(&payment.seal(noting.gate.now()), Protocol::Http1);
    noting.note(&answer.unwrap());
    fs::rename(state.with_extension("away"), &state).unwrap();
    found.extend(noting.found());
    found
}

/// Every reason but those of [`WITHOUT_CASE`]: a new one without a request that causes it fails here.
#[test]
fn the_id_of_every_reason_is_in_exactly_one_line() {
    let mut found = super::of_http();
    for stage in [of_requests, of_senders, of_trust, of_limits] {
        found.extend(stage());
    }
    let missing: Vec<_> = Reason::ALL
        .iter()
        .filter(|reason| !found.contains(reason.slug()) && !WITHOUT_CASE.contains(reason))
        .collect();
    assert!(missing.is_empty(), "no request causes {missing:?}");
}
