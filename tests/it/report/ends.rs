//! `portvakt report --audit`: SCAs that a running gateway saw end.

use super::report_of;
use crate::{
    audit::ON,
    harness::{Call, Gate, Protocol, eventually, needs_sca},
};
use serde_json::{Value, json};
use std::{fs, sync::Arc};

const PSU: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const FORMER: &str = "PSDNO-FSA-123456";
const NEW: &str = "PSDNO-FSA-111111";

fn link(gate: &Gate, call: &Call) -> String {
    let json = needs_sca(gate, call).json();
    let href = json["_links"]["scaRedirect"]["href"].as_str().unwrap();
    href.split_once("?request=").unwrap().1.to_owned()
}

fn tell(gate: &Gate, path: &str, body: &Value) {
    let answer = gate.tell(path, body);
    assert_eq!(answer.status, 200, "{}", answer.json());
}

#[test]
fn completed_and_failed_scas_of_a_gateway_are_counted_by_tpp_and_code() {
    let gate = Gate::builder()
        .strangers()
        .line("  access_file: access.log")
        .line(ON)
        .for_program();
    let program = gate.run_silently(&mut gate.program());
    let call = Call::accounts().without("PSU-ID").only(Protocol::Http1);
    let by_new = call.clone().by(&Arc::clone(&gate.world().aisp));
    let completion = json!({
        "request": link(&gate, &call), "psu_id": PSU, "context": "PRIVATE",
    });
    // The bank repeats its calls: that is no second SCA.
    for _ in 0..2 {
        tell(&gate, "/sca/complete", &completion);
    }
    for (call, code) in [
        (&call, "PSU_CREDENTIALS_INVALID"),
        (&call, "SCA_INVALID"),
        (&by_new, "PSU_CREDENTIALS_INVALID"),
    ] {
        let failure = json!({
            "request": link(&gate, call), "system": "sca", "status": 400, "code": code, "message": "no",
        });
        for _ in 0..2 {
            tell(&gate, "/sca/fail", &failure);
        }
    }
    let log = gate.folder().join("access.log");
    eventually("every line is written", || {
        fs::read_to_string(&log).is_ok_and(|text| text.lines().count() >= 4)
    });
    let arguments = ["--audit", "state/audit", "--format", "json", "access.log"];
    let (found, notes) = report_of(gate.folder(), &arguments);
    assert_eq!(notes, "");
    let found: Value = serde_json::from_str(&found).unwrap();
    let failed = |codes: Value| {
        let all: u64 = codes
            .as_object()
            .unwrap()
            .values()
            .filter_map(Value::as_u64)
            .sum();
        (all, codes)
    };
    let row = |tpp: Option<&str>, completed: u64, codes: Value| {
        let (all, codes) = failed(codes);
        let mut row = json!({
            "sca_completed": completed, "sca_failed": all, "sca_failed_by_code": codes,
        });
        if let Some(tpp) = tpp {
            row["tpp"] = tpp.into();
        }
        row
    };
    let both = json!({"PSU_CREDENTIALS_INVALID": 1, "SCA_INVALID": 1});
    let one = json!({"PSU_CREDENTIALS_INVALID": 1});
    assert_eq!(
        found["tpps"],
        json!([row(Some(NEW), 0, one), row(Some(FORMER), 1, both)])
    );
    let total = json!({"PSU_CREDENTIALS_INVALID": 2, "SCA_INVALID": 1});
    assert_eq!(found["total"], row(None, 1, total));
    assert_eq!(found["days"][0]["sca_started"], Value::Null);

    // With the state, live consents stand beside, and a former identity's SCAs are the new one's.
    tell(&gate, "/tpp/move", &json!({ "from": FORMER, "to": NEW }));
    let arguments = [
        "--audit",
        "state/audit",
        "--config",
        "gateway.yaml",
        "access.log",
    ];
    let (found, notes) = report_of(gate.folder(), &arguments);
    assert_eq!(notes, "");
    let (days, tpps) = found.split_once("\n\n").unwrap();
    assert!(
        days.lines()
            .next()
            .unwrap()
            .ends_with(",sca_started,sca_completed,sca_failed,sca_failed_by_code")
    );
    let codes = "PSU_CREDENTIALS_INVALID=2 SCA_INVALID=1";
    assert_eq!(
        tpps,
        format!(
            "tpp,live_consents,sca_completed,sca_failed,sca_failed_by_code\n{NEW},1,1,3,{codes}\ntotal,1,1,3,{codes}\n"
        )
    );
    drop(program);
}

/// The page is public, so no TPP stands there; a chart has no place for them.
#[test]
fn a_page_and_a_chart_have_no_tpps() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        ["--audit", "x", "--page", "page"],
        ["--config", "x", "--page", "page"],
        ["--audit", "x", "--format", "svg"],
        ["--config", "x", "--format", "svg"],
    ] {
        let output = super::run(folder.path(), &[&arguments[..], &["access.log"]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
        assert!(!folder.path().join("page").exists());
    }
}
