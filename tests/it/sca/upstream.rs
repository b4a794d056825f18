//! Answers of the core about SCA, and the information that the core gets: SCA-14, SCA-21.

use super::{PSU, accounts, complete, gate};
use crate::harness::{Call, Gate, Protocol, Reply, accepted};
use serde_json::json;

//= SCA-14 accepted
#[test]
fn the_core_may_demand_sca() {
    let gate = Gate::start();
    let call = Call::accounts();
    gate.seal(&call);
    for protocol in Protocol::ALL {
        gate.upstream()
            .reply(Reply::json(401, r#"{"a": 1.50, "_links": {"self": {}}}"#));
        let answer = gate.send(&call, protocol);
        assert_eq!(answer.status, 401);
        let json = answer.json();
        assert_eq!(
            (&json["a"], &json["_links"]["self"]),
            (&json!(1.5), &json!({}))
        );
        complete(&gate, &answer, &gate.world().both.psu());

        // A link without a target is ignored. Headers that describe the bytes of the core's body (ETag) are removed with that body.
        for links in [
            "null",
            "[]",
            r#"{"scaRedirect":null}"#,
            r#"{"scaRedirect":{}}"#,
            r#"{"scaRedirect":{"href":""}}"#,
            r#"{"scaRedirect":{"href":5}}"#,
        ] {
            let body = format!(r#"{{"code":"A","_links":{links}}}"#);
            let reply = Reply::json(401, &body).with("ETag", "\"1\"");
            gate.upstream()
                .reply(reply.with("Content-Digest", "sha-256=:x:"));
            let answer = gate.send(&call, protocol);
            let json = answer.json();
            let href = json["_links"]["scaRedirect"]["href"].as_str();
            assert!(href.is_some_and(|href| href.contains("request=")), "{json}");
            assert_eq!(json.get("code"), None, "{links}");
            assert_eq!(
                answer.header("etag").or(answer.header("content-digest")),
                None
            );
        }

        let theirs = r#"{ "_links": {"scaRedirect": {"href": "https://bank.example/own"}} }"#;
        for body in [theirs, "[]"] {
            gate.upstream().reply(Reply::json(401, body));
            let answer = gate.send(&call, protocol);
            assert_eq!(String::from_utf8(answer.body).unwrap(), body);
        }
        // ERR-6: what only claims to be JSON is replaced.
        gate.upstream().reply(Reply::json(401, "{"));
        let answer = gate.send(&call, protocol);
        assert_eq!(
            (answer.status, answer.reason().as_str()),
            (401, "upstream-error")
        );
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(70_000));
        gate.upstream().reply(Reply::json(401, &long));
        assert_eq!(gate.send(&call, protocol).body, long.as_bytes());
    }
}

//= ERR-2 accepted
#[test]
fn a_401_on_account_information_has_no_code() {
    let gate = Gate::start();
    let theirs = r#""_links": {"scaRedirect": {"href": "https://bank.example/own"}}"#;
    let own_link = format!(r#"{{"code": "SCA_EXPIRED", {theirs}, "amount": 1.50}}"#);
    let no_link = r#"{"a": 1.50, "code": "SCA_EXPIRED", "code": null, "faults": [{"code": "X"}]}"#;
    for protocol in Protocol::ALL {
        let answer = |call: &Call, body: &str| {
            gate.upstream().reply(Reply::json(401, body));
            let answer = gate.send(call, protocol);
            assert_eq!(answer.status, 401);
            String::from_utf8(answer.body).unwrap()
        };
        for call in [Call::accounts(), Call::balances(), Call::details()] {
            let call = call.with("TPP-Redirect-URI", super::REDIRECT);
            let linked = answer(&call, no_link);
            let rest = r#"{"a":1.50,"faults":[{"code": "X"}],"_links":{"scaRedirect":{"#;
            assert!(linked.starts_with(rest), "{linked}");
            // The core's link stays unchanged, with and without TPP-Redirect-URI.
            let expected = format!("{{{},\"amount\":1.50}}", theirs.replacen(": ", ":", 1));
            assert_eq!(answer(&call, &own_link), expected);
        }
        let nowhere = Call::details();
        let expected = format!("{{{},\"amount\":1.50}}", theirs.replacen(": ", ":", 1));
        assert_eq!(answer(&nowhere, &own_link), expected);
        // Without a link, the answer is not a 401 for SCA.
        assert_eq!(answer(&nowhere, no_link), no_link);
        // Other operations keep the core's answer.
        let payment = Call::payment();
        assert_eq!(answer(&payment, &own_link), own_link);
        let linked = answer(&payment, no_link);
        assert!(
            linked.starts_with(r#"{"a":1.50,"code":"SCA_EXPIRED""#),
            "{linked}"
        );
    }
}

//= SCA-21 accepted
#[test]
fn the_core_starts_sca_by_the_gateways_link() {
    let gate = gate();
    gate.introduce(json!({ "tpp": gate.world().both.id(), "psu_id": PSU }));
    let path = "/v1/payments/norwegian-domestic-credit-transfers/7";
    let call = Call::new("POST", &format!("{path}/authorisations"))
        .with("PSU-ID", PSU)
        .with("TPP-Session-ID", "S");
    let seen = accepted(&gate, &call).remove(0).seen;
    let link = seen.header("gateway-sca-redirect").unwrap();
    let token = link.split("request=").nth(1).unwrap();
    let read = gate.tell("/sca/read", &json!({ "request": token })).json();
    assert_eq!(read["resource"], path);
    assert_eq!(read["operation"], "payment-authorise");
    let said = json!({ "request": token, "psu_id": PSU, "context": "PRIVATE" });
    assert_eq!(gate.tell("/sca/complete", &said).status, 200);
    let seen = accepted(&gate, &accounts().with("PSU-ID", PSU))
        .remove(0)
        .seen;
    assert_eq!(seen.header("gateway-sca"), Some("session"));
}
