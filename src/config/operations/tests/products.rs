//! Payment products: what they add to an initiation, and the faults of their entries.

use super::{find, load};
use crate::interface::operations::{Environment, Role, Sca, Schema};

#[test]
fn products_add_to_what_an_initiation_requires() {
    let text = "operations:
- {name: payment-create, path: '/v2/pay/{payment-product}', group: money}
payment_products:
- {name: plain}
- {name: sepa, headers: [psu-id, tpp-session-id], members: [{name: a_1, kind: text, min_length: 0, max_length: 3}]}
- {name: abroad, schema: cross-border-payment, members: [{name: creditorAgent, required: true}]}
- {name: instant-norwegian-credit-transfers-straks, answer: {status: 202, schema: '{}'}}
";
    let catalogue = load(Environment::Production, text).unwrap();
    assert_eq!(catalogue.products().len(), 6);
    let general = find(&catalogue, "POST", "/v2/pay/plain").unwrap();
    assert_eq!(
        (&*general.name, &*general.group),
        ("payment-create", "money")
    );
    let named = |name: &str| {
        let own = find(&catalogue, "POST", &format!("/v2/pay/{name}")).unwrap();
        assert_eq!(own.name, format!("payment-create-{name}"));
        assert_eq!(
            (own.role, own.sca),
            (Role::PaymentInitiation, Sca::Identified)
        );
        assert!(own.initiates && own.tpp_messages && own.group == "money");
        assert!(own.required.len() >= general.required.len());
        own
    };
    let sepa = named("sepa");
    assert_eq!(sepa.required.len(), general.required.len() + 2);
    assert_eq!((sepa.schema, sepa.members.len()), (Schema::Payment, 1));
    assert_eq!(named("abroad").schema, Schema::CrossBorderPayment);
    let instant = named("instant-norwegian-credit-transfers-straks");
    assert_eq!(instant.answer.unwrap().status, 202);
    assert!(find(&catalogue, "GET", "/v1/payments/sepa/7/status").is_some());
    assert!(find(&catalogue, "POST", "/v2/pay/other").is_none());
}

/// Each product is refused with a text that contains this fault.
fn products_are_refused(cases: &[(&str, &str)]) {
    for (entry, fault) in cases {
        let text = format!("operations: []\npayment_products:\n- {entry}\n");
        let faults = load(Environment::Production, &text).unwrap_err();
        assert!(faults.contains(fault), "{entry}: {faults}");
    }
}

#[test]
fn faults_of_products() {
    products_are_refused(&[
        ("{}", "payment_products[0].name: missing key"),
        ("{name: Sepa}", "at most 48 lower-case letters"),
        (
            "{name: norwegian-cross-border-credit-transfers}",
            "cannot be changed",
        ),
        (
            "{name: x, schema: basket}",
            "one of \"payment\", \"cross-border-payment\"",
        ),
        ("{name: x, sca: none}", "unknown key"),
        (
            "{name: x, headers: [Digest]}",
            "psu-user-agent, or x-accept-fix",
        ),
        (
            "{name: x, headers: [psu-ip-address]}",
            "requires it already",
        ),
        (
            "{name: x, headers: [digest, digest]}",
            "already contains this header",
        ),
        (
            "{name: x, headers: [host]}",
            "psu-user-agent, or x-accept-fix",
        ),
        (
            "{name: x}\n- {name: x}",
            "o.yaml:4:4: payment_products[1].name: the file already contains a product",
        ),
    ]);
}

#[test]
fn faults_of_members_of_products() {
    products_are_refused(&[
        (
            "{name: x, members: [{name: a}]}",
            "members[0].kind: missing key",
        ),
        (
            "{name: x, members: [{name: a, kind: number}]}",
            "one of \"text\"",
        ),
        (
            "{name: x, members: [{name: a, kind: text}]}",
            "either max_length",
        ),
        (
            "{name: x, members: [{name: a, kind: text, max_length: 3, one_of: [b]}]}",
            "either max_length",
        ),
        (
            "{name: x, members: [{name: a, kind: text, min_length: 4, max_length: 3}]}",
            "less than min_length, which is 4",
        ),
        (
            "{name: x, members: [{name: a, kind: text, one_of: []}]}",
            "at least one text",
        ),
        (
            "{name: x, members: [{name: a, kind: date, max_length: 3}]}",
            "only a text has this key",
        ),
        (
            "{name: x, members: [{name: a-b, kind: date}]}",
            "letters, digits and underscores",
        ),
        (
            "{name: x, members: [{name: a, kind: date}, {name: A, kind: date}]}",
            "already contains this member",
        ),
        (
            "{name: x, members: [{name: CreditorName, required: true}]}",
            "write creditorName",
        ),
        (
            "{name: x, members: [{name: creditorName, kind: text}]}",
            "judged by the interface's rule",
        ),
        (
            "{name: x, schema: cross-border-payment, members: [{name: creditorName}]}",
            "only with required: true",
        ),
    ]);
}

#[test]
fn operations_of_products_need_a_free_place_and_a_short_name() {
    let text = "operations:
- {name: sepa, method: POST, path: /v1/payments/sepa, role: PSP_PI, schema: payment}
payment_products: [{name: sepa, headers: [psu-id]}]
";
    let faults = load(Environment::Production, text).unwrap_err();
    assert!(faults.contains("o.yaml:3:21: payment_products[0].name: POST /v1/payments/sepa stands in the catalogue already"), "{faults}");
    let name = "a".repeat(48);
    let long = "b".repeat(20);
    let text = format!("operations:
- {{name: {long}, method: POST, path: '/v1/{long}/{{payment-product}}', role: PSP_PI, schema: payment}}
payment_products: [{{name: {name}, headers: [psu-id]}}]
");
    let faults = load(Environment::Production, &text).unwrap_err();
    assert!(faults.contains("at most 64 characters"), "{faults}");
}
