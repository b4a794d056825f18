//! SCA-*, HDR-14: access to a PSU's data, and links to the bank's page.

/// TPPs that are blocked, and roles that a register took.
mod blocked;
/// PSU-IDs that are learned from the core.
mod learn;
/// Sessions and consents over time.
mod life;
/// A gateway that stood still, and a request that waited.
mod stood;
/// Answers of the core about SCA.
mod upstream;
/// The day of the last use.
mod used;

use crate::harness::{Answer, Call, Gate, Protocol, accepted, needs_sca, refused};
use serde_json::{Value, json};

const REDIRECT: &str = "https://tpp.example/back?mine=1";
const PSU: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const OTHER: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3302";
const FIRM: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c33ff";

/// A gate that knows no PSU.
fn gate() -> Gate {
    Gate::builder().strangers().start()
}

/// The account list with the PSU present, under a session.
fn accounts() -> Call {
    Call::accounts()
        .without("PSU-ID")
        .with("TPP-Redirect-URI", REDIRECT)
        .with("TPP-Session-ID", "S")
        .present()
        .only(Protocol::Http1)
}

/// The token of a link.
fn token(answer: &Answer) -> String {
    let json = answer.json();
    let link = &json["_links"]["scaRedirect"];
    assert_eq!(link["verbs"], json!(["GET"]));
    let href = link["href"].as_str().unwrap();
    let token = href.strip_prefix("https://bank.example/sca?request=");
    token.unwrap_or_else(|| panic!("{href}")).to_owned()
}

/// Completes the SCA of an answer as the PSU; returns the URI that the PSU is sent back to.
fn complete(gate: &Gate, answer: &Answer, psu: &str) -> String {
    complete_with(gate, answer, json!({ "psu_id": psu, "context": "PRIVATE" }))
}

fn complete_with(gate: &Gate, answer: &Answer, mut said: Value) -> String {
    said["request"] = token(answer).into();
    let answer = gate.tell("/sca/complete", &said);
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()["redirect_uri"].as_str().unwrap().to_owned()
}

//= SCA-1 accepted
//= SCA-1 refused
//= SCA-2 accepted
//= SCA-2 refused
//= SCA-10 accepted
#[test]
fn account_access_as_the_interface_tells_it() {
    let gate = gate();
    let answer = needs_sca(&gate, &accounts());
    // The page can show the TPP's name: the name is from the certificate.
    let asked = gate.tell("/sca/read", &json!({ "request": token(&answer) }));
    assert_eq!(asked.json()["tpp_name"], "Eksempel Betaling AS");
    let back = complete(&gate, &answer, PSU);
    assert_eq!(
        back,
        format!("{REDIRECT}&psu-id={PSU}&tpp-session-id=S&context=PRIVATE")
    );
    let seen = accepted(&gate, &accounts().with("PSU-ID", PSU))
        .remove(0)
        .seen;
    assert_eq!(seen.header("psu-id"), Some(PSU));
    assert_eq!(seen.header("gateway-sca"), Some("session"));
    assert!(seen.header("gateway-sca-at").is_some());
}

//= SCA-3 accepted
//= SCA-3 refused
#[test]
fn a_psu_id_belongs_to_one_tpp() {
    let gate = gate();
    let answer = needs_sca(&gate, &accounts());
    complete(&gate, &answer, PSU);
    let call = accounts().with("PSU-ID", PSU);
    accepted(&gate, &call);
    accepted(&gate, &call.clone().with("PSU-ID", &PSU.to_uppercase()));
    let stolen = needs_sca(&gate, &call.clone().by(&gate.world().aisp));
    let unknown = needs_sca(&gate, &call.with("PSU-ID", OTHER));
    assert_eq!(
        stolen.json()["faults"],
        unknown.json()["faults"],
        "nobody learns whose PSU-ID it is"
    );
    // The link does not name the PSU: another PSU may complete the SCA.
    complete(&gate, &stolen, OTHER);
}

//= SCA-8 accepted
//= SCA-8 refused
#[test]
fn what_each_operation_needs() {
    let gate = gate();
    let product = "/v1/payments/norwegian-domestic-credit-transfers";
    let stranger = |call: Call| call.with("PSU-ID", OTHER).only(Protocol::Http1);
    // The core receives nothing: the gateway refuses a PSU-ID of another TPP.
    for path in [
        format!("{product}/1/status"),
        format!("{product}/1"),
        "/v1/signing-baskets/1".into(),
        "/v1/signing-baskets/1/status".into(),
        "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information".into(),
    ] {
        let call = stranger(Call::new("GET", &path)).with("PSU-Corporate-ID", FIRM);
        let seen = accepted(&gate, &call).remove(0).seen;
        assert_eq!(
            (seen.header("psu-id"), seen.header("psu-corporate-id")),
            (None, None)
        );
    }
    for path in [
        format!("{product}/1/authorisations"),
        "/v1/signing-baskets/1/authorisations".into(),
    ] {
        let seen = accepted(&gate, &stranger(Call::new("POST", &path)))
            .remove(0)
            .seen;
        assert_eq!(seen.header("psu-id"), None);
    }
    // A PSU.
    let identified = [
        Call::payment(),
        Call::cross_border(),
        Call::basket(),
        Call::new("GET", "/v1/agreements"),
    ];
    for call in &identified {
        needs_sca(&gate, &stranger(call.clone()));
    }
    needs_sca(&gate, &Call::new("GET", "/v1/agreements").without("PSU-ID"));
    let by_identity = Call::payment()
        .without("PSU-ID")
        .with("X-PSU-IDENTITY", "01010112345")
        .with("PSU-Context", "PRIVATE");
    accepted(&gate, &by_identity);
    // A consent.
    let consent = [
        "/v1/accounts",
        "/v1/accounts/1/balances",
        "/v1/accounts/1/transactions",
        "/v1/accounts/1/transactions/2",
    ];
    for path in consent {
        needs_sca(&gate, &stranger(Call::new("GET", path)));
        needs_sca(&gate, &Call::new("GET", path).without("PSU-ID"));
    }
    gate.introduce(json!({ "tpp": gate.world().both.id(), "psu_id": OTHER }));
    for call in identified {
        let seen = accepted(&gate, &stranger(call)).remove(0).seen;
        assert_eq!(seen.header("psu-id"), Some(OTHER));
    }
    for path in consent {
        accepted(&gate, &stranger(Call::new("GET", path)));
    }
}

//= SCA-9 accepted
//= SCA-9 refused
#[test]
fn where_sca_starts() {
    let gate = gate();
    let details = Call::details().without("PSU-ID");
    refused(
        &gate,
        &details,
        400,
        "HTTP_HEADER_REQUIRED",
        "header-missing",
    );
    let answer = needs_sca(&gate, &details.with("TPP-Redirect-URI", REDIRECT));
    // The TPP named no session, so the gateway creates one.
    let back = complete(&gate, &answer, PSU);
    let session = back.split("tpp-session-id=").nth(1).unwrap();
    let session = session.split('&').next().unwrap();
    assert_eq!(session.len(), 36, "{back}");
    let call = accounts().with("PSU-ID", PSU);
    needs_sca(&gate, &call);
    let seen = accepted(&gate, &call.with("TPP-Session-ID", session))
        .remove(0)
        .seen;
    assert_eq!(seen.header("gateway-sca"), Some("session"));
}

//= SCA-17 accepted
//= SCA-17 refused
#[test]
fn an_agreement_is_given_by_sca() {
    let gate = gate();
    let answer = needs_sca(&gate, &accounts());
    complete(&gate, &answer, PSU);
    let firm = accounts()
        .with("PSU-ID", PSU)
        .with("PSU-Corporate-ID", FIRM)
        .with("PSU-Context", "CORPORATE");
    let answer = needs_sca(&gate, &firm);
    // Another agreement than the chosen one does not suffice.
    let mut said = json!({ "psu_id": PSU, "context": "CORPORATE", "psu_corporate_id": OTHER });
    said["request"] = token(&answer).into();
    assert_eq!(gate.tell("/sca/complete", &said).status / 100, 4);
    let answer = needs_sca(&gate, &firm);
    let back = complete_with(
        &gate,
        &answer,
        json!({ "psu_id": PSU, "context": "CORPORATE", "psu_corporate_id": FIRM }),
    );
    assert!(
        back.contains(&format!("psu-id={PSU}&psu-corporate-id={FIRM}&")),
        "{back}"
    );
    let seen = accepted(&gate, &firm).remove(0).seen;
    assert_eq!(seen.header("psu-corporate-id"), Some(FIRM));
    needs_sca(&gate, &firm.with("PSU-Corporate-ID", OTHER));
}

//= HDR-14 accepted
//= HDR-14 refused
#[test]
fn a_psu_with_corporate_contexts_only_names_one() {
    let gate = gate();
    contexts(&gate);
}

/// HDR-14: what is asked for where a PSU has these contexts.
pub(crate) fn contexts(gate: &Gate) {
    let tpp = gate.world().both.id();
    let firm = json!({ "tpp": tpp, "psu_id": PSU, "psu_corporate_id": FIRM });
    let private = json!({ "tpp": tpp, "psu_id": PSU });
    let withdraw = |what: &Value| {
        let mut what = what.clone();
        what["what"] = "consent".into();
        assert_eq!(gate.tell("/psu/withdraw", &what).status, 200);
    };
    let call = accounts().with("PSU-ID", PSU).without("TPP-Session-ID");
    let payment = || {
        let call = Call::payment().with("PSU-ID", PSU);
        call.only(Protocol::Http1)
    };
    let names_one = |call: &Call| {
        let (code, reason) = ("HTTP_HEADER_REQUIRED", "corporate-id-missing");
        refused(gate, call, 400, code, reason);
    };
    gate.introduce(firm.clone());
    names_one(&call);
    names_one(&payment());
    accepted(gate, &call.clone().with("PSU-Corporate-ID", FIRM));
    needs_sca(gate, &call.clone().with("PSU-Context", "PRIVATE"));
    accepted(gate, &call.clone().at("/v1/agreements"));
    // Other TPPs learn nothing.
    needs_sca(gate, &call.clone().by(&gate.world().aisp));
    // The contexts decide, not their consents.
    withdraw(&firm);
    names_one(&call);
    gate.introduce(firm.clone());
    // Once the PSU has a private context, it is the one that is meant.
    gate.introduce(private.clone());
    accepted(gate, &call);
    withdraw(&private);
    for call in [&call, &call.clone().with("PSU-Context", "PRIVATE")] {
        needs_sca(gate, call);
    }
    accepted(gate, &payment());
    accepted(gate, &call.clone().with("PSU-Corporate-ID", FIRM));
    withdraw(&firm);
    needs_sca(gate, &call);
    gate.introduce(private);
    accepted(gate, &call);
}

/// The national identity number has no agreement: single SCA is for private customers.
//= HDR-13 accepted
//= HDR-13 refused
#[test]
fn single_sca_is_for_private_customers() {
    let gate = Gate::start();
    let single = |context| {
        let call = Call::payment().with("X-PSU-IDENTITY", "01010112345");
        call.without("PSU-ID").with("PSU-Context", context)
    };
    accepted(&gate, &single("PRIVATE"));
    let corporate = single("CORPORATE");
    for call in [
        corporate.clone().with("PSU-Corporate-ID", FIRM),
        corporate
            .clone()
            .at("/v1/payments/instant-norwegian-credit-transfers-straks"),
        corporate,
    ] {
        let (code, reason) = ("HTTP_HEADER_REQUIRED", "corporate-id-missing");
        refused(&gate, &call, 400, code, reason);
    }
    let (code, reason) = ("FORMAT_ERROR", "header-malformed");
    let both = single("PRIVATE").with("PSU-Corporate-ID", FIRM);
    refused(&gate, &both, 400, code, reason);
    for spelling in ["corporate", "BUSINESS"] {
        refused(&gate, &single(spelling), 400, code, reason);
    }
}

//= SCA-20 accepted
#[test]
fn registration_and_consent_are_answered_by_the_gateway() {
    let gate = gate();
    let calls = [
        Call::new("GET", "/v1/users"),
        Call::new("POST", "/v1/consents").json("{\"ignored\":true}"),
        Call::new("POST", "/v1/bank-offered-consents"),
    ];
    for call in calls {
        for protocol in Protocol::ALL {
            let answer = gate.send(&call, protocol);
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            complete(&gate, &answer, PSU);
        }
    }
    assert!(gate.upstream().saw_nothing());
    let gate = Gate::builder().strangers().core_answers().start();
    accepted(&gate, &Call::new("GET", "/v1/users"));
}
