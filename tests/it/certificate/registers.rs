//! Registers beside the EBA's, by a mapping: CRT-14. The TPPs are the world's: `PSDNO-FSA-123456` (both roles), `-111111` (PSP_AI),
//! `-222222` (PSP_PI).

use crate::harness::{Call, Gate, GateBuilder, accepted, refused, world};
use serde_json::{Value, json};
use std::process::Command;

const NOT_REGISTERED: (u16, &str, &str) = (403, "FORBIDDEN", "tpp-not-registered");

/// What the two registers of these tests are, and the EBA's.
const SECTION: &str = "registers:
  check: on
  eba: eba.json
  lists:
    banks:
      file: banks.csv
      source: minted by a test
      format: csv
      separator: ';'
      columns: {country: HOME, authority: NCA, id: ID, status: ENDED}
      values: {roles: 'PSP_AI,PSP_PI'}
      authorised: ['-']
      withdrawn: ignore
    national:
      file: national.json
      format: json
      records: institutions
      columns: {tpp: code, roles: licence.services, status: state}
      authorised: [Active]
      roles: {AISP: PSP_AI, PISP: PSP_PI, Loans: none}";

/// A gateway with these rows of banks, these entries of the national register, and the EBA's register with `123456` as PSP_AI.
fn gate(banks: &str, national: Value) -> Gate {
    gate_of(banks, &national).start()
}

fn gate_of(banks: &str, national: &Value) -> GateBuilder {
    let eba = json!([[{"__EBA_Disclaimer": ["x"]}], [{
        "CA_OwnerID": "NO_FSA", "EntityCode": "NO_FSA!9", "EntityType": "PSD_AISP",
        "Properties": [{"ENT_NAT_REF_COD": "123456"}, {"ENT_AUT": ["2019-01-01"]}],
        "Services": [{"NO": "PS_080"}],
    }]]);
    Gate::builder()
        .file("eba.json", eba.to_string())
        .file("banks.csv", format!("HOME;NCA;ID;ENDED\n{banks}"))
        .file(
            "national.json",
            json!({"institutions": national}).to_string(),
        )
        .line(SECTION)
}

fn active(code: &str, services: &[&str]) -> Value {
    json!({"code": code, "licence": {"services": services}, "state": "active"})
}

fn stops(gate: &Gate, call: &Call, says: &str) {
    let (status, code, reason) = NOT_REGISTERED;
    let answer = refused(gate, call, status, code, reason);
    let body = answer.json().to_string();
    assert!(body.contains(says), "{says}: {body}");
}

//= CRT-14 accepted
//= CRT-14 refused
#[test]
fn each_register_adds_what_it_authorises() {
    let nobody = json!([active("PSDNO-FSA-999999", &["AISP", "Loans"])]);
    let eba = gate("NO;FSA;777777;\n", nobody.clone());
    accepted(&eba, &Call::accounts());
    stops(&eba, &Call::payment(), "it is registered as PSP_AI in NO");
    stops(
        &eba,
        &Call::accounts().by(&world().aisp),
        "it is in no register that the bank uses",
    );
    // A credit institution has both roles by its licence.
    let bank = gate("NO;FSA;123 456;\nno;fsa;111111;\n", nobody);
    accepted(&bank, &Call::payment());
    accepted(&bank, &Call::accounts().by(&world().aisp));
    // The national register has the role that the EBA's does not have.
    let national = json!([active("PSDNO-FSA-123456", &["PISP"])]);
    accepted(&gate("NO;FSA;777777;\n", national), &Call::payment());
}

//= CRT-14 accepted
//= CRT-14 refused
#[test]
fn what_wins_where_registers_differ() {
    let mut withdrawn = active("PSDNO-FSA-123456", &["AISP", "PISP"]);
    withdrawn["state"] = "Withdrawn".into();
    // The national register's withdrawal outweighs the EBA's entry and the list of banks; that of the list of banks does not, as configured.
    let differing = gate("NO;FSA;123456;\n", json!([withdrawn]));
    stops(
        &differing,
        &Call::accounts(),
        "its authorisation was withdrawn, by the register national",
    );
    let somebody = json!([active("PSDNO-FSA-999999", &["AISP"])]);
    let ended = gate("NO;FSA;123456;2026-01-31\n", somebody);
    accepted(&ended, &Call::accounts());
    stops(&ended, &Call::payment(), "it is registered as PSP_AI in NO");
}

/// A reload that takes a role from a TPP that calls, and one that takes the authorisation, are counted; of a TPP that has not called not.
//= CRT-14 accepted
//= CRT-14 refused
#[test]
fn what_a_reload_takes_from_a_tpp_is_an_event() {
    let idle = || active("PSDNO-FSA-222222", &["PISP"]);
    let both = json!([active("PSDNO-FSA-111111", &["AISP", "PISP"]), idle()]);
    let gate = gate_of("NO;FSA;777777;\n", &both).with_a_file().start();
    let of = |event: &str| gate.metric_at_rest("portvakt_tpp_registration_total", &[event]);
    let call = Call::accounts().by(&world().aisp);
    accepted(&gate, &call);
    gate.eventually_metric("portvakt_tpp_registration_total", &["first_seen"], 1.0);
    let reload = |national: &Value| {
        let text = json!({ "institutions": national }).to_string();
        std::fs::write(gate.folder().join("national.json"), text).unwrap();
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    };
    reload(&json!([active("PSDNO-FSA-111111", &["AISP"]), idle()]));
    assert_eq!((of("role_lost"), of("authorisation_lost")), (1.0, 0.0));
    accepted(&gate, &call);
    let mut withdrawn = active("PSDNO-FSA-111111", &["AISP"]);
    withdrawn["state"] = "Withdrawn".into();
    reload(&json!([withdrawn]));
    assert_eq!((of("role_lost"), of("authorisation_lost")), (1.0, 1.0));
    stops(
        &gate,
        &call,
        "its authorisation was withdrawn, by the register national",
    );
    assert_eq!(of("first_seen"), 1.0);
}

/// What `portvakt register show` prints of a TPP at this gateway, and its status.
fn shown(gate: &Gate, tpp: &str, more: &[&str]) -> (Option<i32>, String) {
    let config = gate.folder().join("shown.yaml");
    std::fs::write(&config, gate.yaml()).unwrap();
    let mut show = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    show.args(["register", "show", tpp, "--config"])
        .arg(&config);
    let output = show.args(more).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// CRT-14: what each register says, and what follows.
#[test]
fn an_operator_sees_what_each_register_says() {
    let national = json!([active("PSDNO-FSA-123456", &["PISP"])]);
    let gate = gate("NO;FSA;123456;2026-01-31\n", national);
    let (status, text) = shown(&gate, "psdno-fsa-123 456", &[]);
    assert_eq!(status, Some(0), "{text}");
    for line in [
        ": PSP_AI in NO\n",
        ": its authorisation was withdrawn\n",
        ": PSP_PI in NO\n",
        "the bank's own list: has no entry\n",
        "PSP_AI: registered\n",
        "PSP_PI: registered\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (status, text) = shown(&gate, "PSDNO-FSA-1", &[]);
    assert_eq!(status, Some(1), "{text}");
    let refused =
        "PSP_PI: refused with 403 tpp-not-registered: it is in no register that the bank uses";
    assert!(text.contains(refused), "{text}");
    // Years later every register is too old.
    let (status, text) = shown(&gate, "PSDNO-FSA-123456", &["--at", "2099-01-01T00:00:00Z"]);
    assert_eq!(status, Some(1), "{text}");
    let stale = "PSP_AI: refused with 503 register-stale: the EBA's register is of ";
    assert!(text.contains(stale), "{text}");
    let (status, text) = shown(&gate, "123456", &[]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("it does not begin with PSD"), "{text}");
}
