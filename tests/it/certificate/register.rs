//! Registers: CRT-7. The TPPs are the world's: `PSDNO-FSA-123456` (both roles), `-111111` (PSP_AI), `-222222` (PSP_PI).

use crate::harness::{Call, Crl, Gate, accepted, pki::LeafSpec, refused, world};
use portvakt::clock::{Clock, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

const NOT_REGISTERED: (u16, &str, &str) = (403, "FORBIDDEN", "tpp-not-registered");
const BLOCKED: (u16, &str, &str) = (403, "FORBIDDEN", "tpp-blocked");
const STALE: (u16, &str, &str) = (503, "SYSTEM_ERROR", "register-stale");

const DAY: u64 = 24 * 3_600;

/// A moment before now, in the format of the EBA register.
fn version(days_ago: u64) -> String {
    let at = Timestamp::from_unix(Clock::System.now().unix() - days_ago * DAY);
    let digits: String = at
        .to_string()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    digits + "000"
}

/// An institution in Norway's register, changed so many days ago.
fn institution(id: &str, services: Value, days_ago: u64) -> Value {
    json!({
        "CA_OwnerID": "NO_FSA",
        "EntityCode": format!("NO_FSA!7{id}"),
        "EntityType": "PSD_AISP",
        "Properties": [{"ENT_NAT_REF_COD": id}, {"ENT_AUT": ["2019-01-01"]}],
        "Services": services,
        "__EBA_EntityVersion": version(days_ago),
    })
}

fn both() -> Value {
    json!([{"SE": "PS_080"}, {"NO": ["PS_070", "PS_080"]}])
}

/// A gateway with these register entities, the bank's own list, and additional lines of the section.
fn gate(entities: &[Value], local: &str, lines: &[&str]) -> Gate {
    let eba = json!([[{"__EBA_Disclaimer": ["no legal significance"]}], entities]);
    let mut section =
        String::from("registers:\n  check: on\n  eba: eba.json\n  local: tpps.yaml\n");
    for line in lines {
        section.push_str(&format!("  {line}\n"));
    }
    Gate::builder()
        .file("eba.json", eba.to_string())
        .file("tpps.yaml", local)
        .line(section.trim_end())
        .start()
}

fn stops(gate: &Gate, call: &Call, (status, code, reason): (u16, &str, &str)) {
    refused(gate, call, status, code, reason);
}

/// A TPP with both roles and this identity.
fn identified(identity: &str) -> Call {
    let spec = LeafSpec {
        organization_identifier: Some(identity.into()),
        ..world().leaf()
    };
    Call::accounts().by(&world().issue(&spec))
}

const EMPTY: &str = "allow: []\n";

//= CRT-7 accepted
//= CRT-7 refused
#[test]
fn role_by_role() {
    let entities = [
        institution("123456", json!([{"NO": "PS_080"}]), 0),
        institution("222-222", both(), 0),
    ];
    let gate = gate(&entities, EMPTY, &[]);
    // Account information in the register: what needs it, and what either role may do.
    accepted(&gate, &Call::accounts());
    stops(&gate, &Call::payment(), NOT_REGISTERED);
    accepted(&gate, &Call::payment().by(&world().pisp));
    // The TPP is not in the register.
    stops(&gate, &Call::accounts().by(&world().aisp), NOT_REGISTERED);
}

//= CRT-7 refused
#[test]
fn what_the_register_says_of_a_tpp_decides() {
    let mut withdrawn = institution("123456", both(), 0);
    withdrawn["Properties"][1] = json!({"ENT_AUT": ["2019-01-01", "2024-05-31"]});
    let mut agent = institution("123456", both(), 0);
    agent["EntityType"] = "PSD_AG".into();
    let somebody = institution("999999", both(), 0);
    for (entity, says) in [
        (
            institution("123456", json!([{"SE": ["PS_070", "PS_080"]}]), 0),
            "for other countries, but not for NO",
        ),
        (
            institution("123456", json!([{"NO": "PS_010"}]), 0),
            "without such a service",
        ),
        (
            institution("123456", json!([{"NO": "PS_070"}]), 0),
            "it is registered as PSP_PI in NO",
        ),
        (withdrawn, "its authorisation was withdrawn"),
        (agent, "it is in no register that the bank uses"),
    ] {
        let gate = gate(&[entity, somebody.clone()], EMPTY, &[]);
        let call = Call::accounts();
        let answer = refused(&gate, &call, 403, "FORBIDDEN", "tpp-not-registered");
        let body = answer.json().to_string();
        assert!(body.contains(says), "{says}: {body}");
    }
    let abroad = institution("123456", json!([{"SE": "PS_080"}]), 0);
    accepted(
        &gate(&[abroad], EMPTY, &["host_country: SE"]),
        &Call::accounts(),
    );
}

//= CRT-7 accepted
#[test]
fn ids_in_the_spelling_of_certificates() {
    let mut finnish = institution("2988499-7", both(), 0);
    finnish["CA_OwnerID"] = "FI_FIN-FSA".into();
    let norwegian = institution("987 654 321", both(), 0);
    let gate = gate(&[finnish, norwegian], EMPTY, &[]);
    for identity in [
        "PSDFI-FINFSA-29884997",
        "PSDFI-FINFSA-2988499-7",
        "PSDNO-FSA-987654321",
    ] {
        accepted(&gate, &identified(identity));
    }
    stops(&gate, &identified("PSDSE-FINFSA-29884997"), NOT_REGISTERED);
}

//= CRT-4 accepted
//= CRT-4 refused
#[test]
fn of_two_spellings_exactly_this_one() {
    let entities = [
        institution("98-7654", both(), 0),
        institution("987-654", json!([{"NO": "PS_070"}]), 0),
        institution("55 55", both(), 0),
    ];
    let gate = gate(&entities, EMPTY, &[]);
    let call = |id: &str| {
        let call = identified(&format!("PSDNO-FSA-{id}"));
        call.at("/v1/accounts")
    };
    accepted(&gate, &call("98-7654"));
    stops(&gate, &call("987-654"), NOT_REGISTERED);
    // The entry is ambiguous.
    stops(&gate, &call("987654"), NOT_REGISTERED);
    accepted(&gate, &call("5555"));
    accepted(&gate, &call("5-555"));
}

//= CRT-7 accepted
//= CRT-7 refused
#[test]
fn the_banks_own_list() {
    let local = "\
allow:
- {tpp: PSDNO-FSA-111111, roles: [PSP_AI], note: a bank}
- {tpp: PSDNO-FSA-222222, roles: [PSP_PI]}
block:
- {tpp: PSDNO-FSA-123456, note: until its key is renewed}
- {tpp: PSDNO-FSA-222222}
";
    let gate = gate(&[institution("123456", both(), 0)], local, &[]);
    accepted(&gate, &Call::accounts().by(&world().aisp));
    stops(&gate, &Call::accounts(), BLOCKED);
    stops(&gate, &Call::payment().by(&world().pisp), BLOCKED);
    // A caller without a valid signature learns nothing about the register.
    let unsigned = Call::accounts().altered(|request| request.remove_header("Signature"));
    let missing = (400, "HTTP_HEADER_REQUIRED", "signature-missing");
    stops(&gate, &unsigned, missing);
}

//= CRT-7 accepted
//= CRT-7 refused
#[test]
fn a_register_past_its_maximum_age() {
    let local =
        "allow: [{tpp: PSDNO-FSA-111111, roles: [PSP_AI]}]\nblock: [{tpp: PSDNO-FSA-222222}]\n";
    let old = [institution("123456", both(), 8)];
    let refusing = gate(&old, local, &[]);
    let (status, code, reason) = STALE;
    let answer = refused(&refusing, &Call::accounts(), status, code, reason);
    assert_eq!(answer.header("retry-after"), Some("300"));
    // Entries of the bank's own list do not age.
    accepted(&refusing, &Call::accounts().by(&world().aisp));
    stops(&refusing, &Call::payment().by(&world().pisp), BLOCKED);

    let passing = gate(&old, local, &["stale: pass"]);
    accepted(&passing, &Call::accounts());
    stops(&passing, &identified("PSDNO-FSA-999999"), NOT_REGISTERED);
    assert!(passing.metric_at_rest("portvakt_register_stale_passed_total", &[]) >= 1.0);
    // By the national id and by the authority's own number; the allowed and the blocked TPP.
    for register in ["eba", "local"] {
        let identities = passing.metric_at_rest("portvakt_register_identities", &[register]);
        assert_eq!(identities, 2.0, "{register}");
    }
    let eba = ["eba"];
    let age = passing.metric_at_rest("portvakt_register_age_seconds", &eba);
    let max_age = passing.metric_at_rest("portvakt_register_max_age_seconds", &eba);
    let as_of = passing.metric_at_rest("portvakt_register_as_of_timestamp_seconds", &eba);
    assert!(
        age > max_age && max_age > 1.0 && as_of > 1e9,
        "{age} {max_age} {as_of}"
    );

    let patient = gate(&old, local, &["max_age: 240h"]);
    accepted(&patient, &Call::accounts());
    assert_eq!(
        patient.metric_at_rest("portvakt_register_stale_passed_total", &[]),
        0.0
    );
}

/// CRT-9: production with its strict defaults.
//= CRT-7 accepted
//= CRT-9 accepted
#[test]
fn production_serves_whom_its_registers_have() {
    let now = Clock::System.now();
    let list = Crl::at(now).sign(&world().issuing, &world().issuing_key);
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("issuing.crl"), list).unwrap();
    let gate = Gate::builder()
        .environment("production")
        .file("anchors/root.pem", world().issuing.pem())
        .file(
            "tpps.yaml",
            "allow: [{tpp: PSDNO-FSA-123456, roles: [PSP_AI]}]\n",
        )
        .line(&format!(
            "revocation: {{check: on, crls: '{}'}}",
            folder.path().display()
        ))
        .line("registers: {check: on, local: tpps.yaml}")
        .start();
    for passage in accepted(&gate, &Call::accounts()) {
        assert_eq!(
            passage.seen.header("gateway-environment"),
            Some("production")
        );
        assert_eq!(passage.seen.header("gateway-not-judged"), None);
    }
    stops(&gate, &Call::payment(), NOT_REGISTERED);
}
