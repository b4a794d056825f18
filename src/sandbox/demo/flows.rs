//! The other flows of the interface (SBX-9): registration, a basket, bank-offered consent, the corporate context, and biometric
//! authentication where there is some.

use super::memory::{Memory, keep};
use super::request::{SESSION, get, headers, with};
use super::scene::{Expected, Scene, scene};
use super::story::{
    DOMESTIC, Step, Visit, Visitor, accounts, authorisation, by_pisp, called, domestic_body,
    is_signed, learn_link, learn_payment, status, visited,
};
use portvakt::tools::tpp::Unsigned;
use serde_json::json;

/// All of them.
pub(super) fn all() -> Vec<Step> {
    let mut steps = Vec::from(registration());
    steps.extend(basket());
    steps.extend(offered_consent());
    steps.extend(corporate());
    steps.extend(biometric());
    steps
}

/// §Registering a PSU with a payment-only TPP.
fn registration() -> [Step; 3] {
    [
        Step::Flow("Registration of a PSU by a TPP that may only pay"),
        by_pisp(Scene {
            learn: learn_link,
            ..scene(
                "A TPP that may only pay registers a PSU",
                |_| with(get("/v1/users"), &[("TPP-Session-ID", SESSION)]),
                Expected::Answered(200),
            )
        }),
        visited("The PSU follows the link, and lets the TPP know them"),
    ]
}

/// §Single payment, twice, and §Signing basket.
fn basket() -> Vec<Step> {
    let payment = |title, learn| {
        by_pisp(Scene {
            learn,
            ..scene(title, payment_of_the_psu, Expected::Forwarded(201))
        })
    };
    vec![
        Step::Flow("Signing basket"),
        payment("A payment by PSU-ID", |answered, memory| {
            keep(&mut memory.payments[0], answered.text("paymentId"))
        }),
        payment("Another one", |answered, memory| {
            keep(&mut memory.payments[1], answered.text("paymentId"))
        }),
        by_pisp(Scene {
            learn: learn_payment,
            ..scene(
                "Both in a signing basket",
                new_basket,
                Expected::Forwarded(201),
            )
        }),
        by_pisp(authorisation()),
        visited("The PSU follows the link, and signs both payments"),
        by_pisp(status("The basket's status, once it is signed", is_signed)),
    ]
}

/// §Bank-offered consent.
fn offered_consent() -> [Step; 4] {
    [
        Step::Flow("Bank-offered consent"),
        called(Scene {
            learn: learn_link,
            ..scene(
                "The TPP asks for consent that the bank offers",
                |_| Unsigned {
                    method: "POST".into(),
                    ..with(
                        get("/v1/bank-offered-consents"),
                        &[("TPP-Session-ID", SESSION)],
                    )
                },
                Expected::Answered(200),
            )
        }),
        visited("The PSU follows the link, and ticks the accounts"),
        called(scene(
            "The accounts, with that consent",
            accounts,
            Expected::Forwarded(200),
        )),
    ]
}

/// §Corporate context.
fn corporate() -> [Step; 5] {
    [
        Step::Flow("Corporate context"),
        called(Scene {
            learn: learn_link,
            ..scene(
                "Accounts of a corporation, of nobody yet",
                |_| {
                    with(
                        get("/v1/accounts"),
                        &[("PSU-Context", "CORPORATE"), ("TPP-Session-ID", SESSION)],
                    )
                },
                Expected::Refused(401, "sca-required"),
            )
        }),
        Step::Visit(Visit {
            title: "A representative follows the link, and ticks the corporation's accounts",
            visitor: Visitor::Representative,
        }),
        called(Scene {
            learn: |answered, memory| {
                let agreements = answered
                    .body
                    .get("agreements")
                    .and_then(|all| all.as_array());
                let mut agreements = agreements.into_iter().flatten();
                agreements
                    .any(|one| one.get("id").and_then(|id| id.as_str()) == Some(&memory.corporate))
            },
            ..scene(
                "The agreements of that representative",
                |memory| with(get("/v1/agreements"), &[("PSU-ID", &memory.psu)]),
                Expected::Forwarded(200),
            )
        }),
        called(Scene {
            learn: |answered, _| {
                let first = || answered.body.get("accounts")?.get(0)?.get("name")?.as_str();
                first() == Some("Driftskonto")
            },
            ..scene(
                "The corporation's accounts",
                |memory| {
                    let corporate = [
                        ("PSU-ID", memory.psu.as_str()),
                        ("PSU-Corporate-ID", &memory.corporate),
                        ("PSU-Context", "CORPORATE"),
                        ("TPP-Session-ID", SESSION),
                    ];
                    with(get("/v1/accounts"), &corporate)
                },
                Expected::Forwarded(200),
            )
        }),
    ]
}

/// §Optimised biometric flow: it differs only in where the bank authenticates.
fn biometric() -> [Step; 3] {
    [
        Step::Flow("Authentication in the bank's app"),
        called(Scene {
            learn: learn_link,
            ..scene(
                "Accounts, and the TPP would rather not be redirected",
                |_| {
                    let preferred = [
                        ("TPP-Redirect-Preferred", "false"),
                        ("TPP-Session-ID", SESSION),
                    ];
                    with(get("/v1/accounts"), &preferred)
                },
                Expected::Refused(401, "sca-required"),
            )
        }),
        visited("The PSU follows the link all the same"),
    ]
}

fn payment_of_the_psu(memory: &Memory) -> Unsigned {
    Unsigned {
        method: "POST".into(),
        target: DOMESTIC.into(),
        headers: headers(&[
            ("Content-Type", "application/json"),
            ("TPP-Session-ID", SESSION),
            ("PSU-ID", &memory.psu),
        ]),
        body: Some(domestic_body(memory)),
    }
}

/// §A.
fn new_basket(memory: &Memory) -> Unsigned {
    Unsigned {
        method: "POST".into(),
        target: "/v1/signing-baskets".into(),
        headers: headers(&[
            ("Content-Type", "application/json"),
            ("x-accept-fix", "amount-as-string"),
            ("TPP-Session-ID", SESSION),
            ("PSU-ID", &memory.psu),
        ]),
        body: Some(json!({"paymentIds": memory.payments}).to_string().into()),
    }
}
