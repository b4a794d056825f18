//! Valid entries of the catalogue file, and the line of each fault.

// Keys that an operation cannot carry.
mod carried;
// Payment products.
mod products;

use http::Method;
use jiff::civil::Date;

use super::read;
use crate::config::inspection::Inspection;
use crate::interface::operations::{
    self, About, AnsweredBy, Body, Catalogue, Deprecated, Environment, Lookup, Operation,
    Parameter, ParameterKind, Quota, Role, Sca, Schema, Signs, Takes,
};
use crate::interface::path::Target;

fn load(environment: Environment, text: &str) -> Result<Catalogue, String> {
    let inspection = Inspection::new();
    let catalogue = read("o.yaml", text, environment, &inspection);
    inspection
        .conclude("o.yaml", catalogue)
        .map_err(|faults| faults.to_string())
}

fn find(catalogue: &Catalogue, method: &str, path: &str) -> Option<Operation> {
    let target = Target::parse(path.as_bytes()).unwrap();
    match catalogue.find(&method.parse().unwrap(), &target) {
        Lookup::Found(operation) => Some(Operation::clone(operation)),
        _ => None,
    }
}

//= FWD-5 accepted
#[test]
fn deprecated_operations() {
    let text = "operations:
- {name: consent-create, deprecated: {sunset: 2030-01-01}}
- {name: card-list, method: GET, path: /v1/cards, role: PSP_AI, deprecated: {since: 2027-01-31}}
";
    let catalogue = load(Environment::Production, text).unwrap();
    let deprecated = find(&catalogue, "POST", "/v1/consents").unwrap().deprecated;
    let known = Deprecated {
        since: Date::constant(2024, 2, 5),
        sunset: Some(Date::constant(2030, 1, 1)),
        successor: Some("bank-offered-consent-create".into()),
    };
    assert_eq!(deprecated, Some(known));
    let later = "operations: [{name: consent-create, deprecated: {since: 2030-01-01}}]";
    let moved = load(Environment::Production, later).unwrap();
    let deprecated = find(&moved, "POST", "/v1/consents").unwrap().deprecated;
    let sunset = deprecated.and_then(|deprecated| deprecated.sunset);
    assert_eq!(sunset, Some(Date::constant(2030, 1, 1)));
    let deprecated = find(&catalogue, "GET", "/v1/cards").unwrap().deprecated;
    assert_eq!(deprecated.unwrap().successor, None);
    for (written, fault) in [
        ("since: 2027-13-01", "a day such as 2027-01-31"),
        ("sunset: 2027-01-31", "missing key: the day since when"),
        (
            "since: 2027-01-31, sunset: 2027-01-30",
            "before the day of deprecation",
        ),
        (
            "since: 2027-01-31, successor: nowhere",
            "the successor of card-list is nowhere",
        ),
        (
            "since: 2027-01-31, successor: payment-read",
            "has no parameter",
        ),
        ("since: 2027-01-31, until: 2027-01-30", "unknown key"),
    ] {
        let text = format!(
            "operations:\n- {{name: card-list, method: GET, path: /v1/cards, role: PSP_AI, deprecated: {{{written}}}}}\n"
        );
        let faults = load(Environment::Sandbox, &text).unwrap_err();
        assert!(faults.contains(fault), "{written}: {faults}");
    }
}

#[test]
fn an_empty_file_keeps_the_interface() {
    for text in ["operations: []\n", "operations:\n# - name: x\n"] {
        let catalogue = load(Environment::Sandbox, text).unwrap();
        assert_eq!(catalogue.operations().len(), operations::builtin().len());
    }
}

/// HTTP-11, HDR-5, SIG-1.
#[test]
fn operations_are_moved_and_added() {
    let text = "
operations:
  - {name: card-list, method: GET, path: /v1/cards, role: PSP_AI}
  - {name: agreement-list, path: /v1/corporate/agreements, group: corporate, answered_by: upstream}
  - name: card-block
    method: PUT
    path: /v1/cards/{account-id}/block/{payment-id}
    role: PSP_PI
    group: cards
    sca: consent
    query: [{name: validFrom, kind: date-from}, {name: kind, kind: text, required: true}]
    body: json
    schema: payment
    quota: four-in-a-day
    answered_by: upstream
    environments: sandbox
  # The old place of a moved operation is free for another.
  - {name: agreement-summary, method: GET, path: /v1/agreements, role: either}
";
    let sandbox = load(Environment::Sandbox, text).unwrap();
    let cards = find(&sandbox, "GET", "/v1/cards").unwrap();
    let plain = Operation::added(
        "card-list",
        Method::GET,
        "/v1/cards",
        "other",
        Role::AccountInformation,
    );
    assert_eq!(format!("{cards:?}"), format!("{plain:?}"));
    assert_eq!(cards.required.len(), 2);
    let block = find(&sandbox, "PUT", "/v1/cards/7/block/8").unwrap();
    assert_eq!(
        (block.sca, block.body, block.schema, block.quota),
        (Sca::Consent, Body::Json, Schema::Payment, Quota::FourInADay)
    );
    assert_eq!(
        block.query,
        [
            Parameter::new("validFrom", ParameterKind::DateFrom),
            Parameter::new("kind", ParameterKind::Text).required()
        ]
    );
    assert_eq!(
        (block.group.as_str(), block.takes, block.required.len()),
        ("cards", Takes::Whole, 2)
    );
    let agreements = find(&sandbox, "GET", "/v1/corporate/agreements").unwrap();
    assert_eq!(
        (agreements.name.as_str(), agreements.group.as_str()),
        ("agreement-list", "corporate")
    );
    assert_eq!(
        (agreements.answered_by, agreements.sca),
        (AnsweredBy::Upstream, Sca::Identified)
    );
    assert_eq!(
        find(&sandbox, "GET", "/v1/agreements").unwrap().name,
        "agreement-summary"
    );
    let production = load(Environment::Production, text).unwrap();
    assert!(find(&production, "PUT", "/v1/cards/7/block/8").is_none());
    assert!(find(&production, "GET", "/v1/cards").is_some());
}

/// HDR-5, SCA-8: an operation that initiates a payment is one in any group.
#[test]
fn the_subject_of_an_added_operation() {
    let load = |method: &str, keys: &str| {
        let text = format!(
            "operations: [{{name: x, method: {method}, path: '/v2/x/{{payment-id}}/{{basket-id}}', role: PSP_PI{keys}}}]"
        );
        let catalogue = load(Environment::Production, &text)?;
        Ok::<_, String>(find(&catalogue, method, "/v2/x/p/b").unwrap())
    };
    for (method, keys, about) in [
        ("POST", "", About::Payment),
        ("POST", ", schema: payment", About::Initiation),
        ("POST", ", schema: cross-border-payment", About::Initiation),
        (
            "POST",
            ", body: json, about: payment-initiation",
            About::Initiation,
        ),
        ("PUT", ", schema: payment", About::Payment),
        ("POST", ", schema: basket", About::Basket),
        ("POST", ", about: payment", About::Payment),
    ] {
        let operation = load(method, keys).unwrap();
        let initiates = about == About::Initiation;
        assert_eq!(operation.initiates, initiates, "{method}{keys}");
        let signs = match about {
            About::Other => Signs::Nothing,
            About::Payment | About::Initiation => Signs::Payment,
            About::Basket => Signs::Basket,
        };
        let is_other = about == About::Other;
        assert_eq!(
            (operation.signs, operation.tpp_messages),
            (signs, !is_other)
        );
        assert_eq!(operation.required.len(), if initiates { 4 } else { 2 });
        assert_eq!(operation.sca == Sca::Identified, initiates);
    }
    for (keys, fault) in [
        (
            ", schema: payment, about: other",
            "about: a POST whose body",
        ),
        (
            ", schema: payment, sca: none",
            "sca: the PSU that initiates a payment",
        ),
    ] {
        let faults = load("POST", keys).unwrap_err();
        assert!(faults.contains(fault), "{faults}");
    }
}

//= CRT-5 refused
#[test]
fn payments_require_psp_pi_and_paths_of_the_interface_are_its_own() {
    let load = |keys: &str| {
        let text =
            format!("operations: [{{name: x, {keys}}}]\npayment_products: [{{name: sepa}}]\n");
        load(Environment::Production, &text)
            .err()
            .unwrap_or_default()
    };
    for role in ["PSP_AI", "either"] {
        for keys in [
            "method: POST, path: '/v1/alt/{payment-product}', schema: payment",
            "method: POST, path: /v1/alt, schema: cross-border-payment",
            "method: POST, path: /v1/alt, body: json, about: payment-initiation",
            "method: GET, path: '/v1/alt/{payment-id}', about: payment",
            "method: POST, path: /v1/alt, schema: basket",
            "method: POST, path: /v1/alt, schema: basket, about: other",
            "method: POST, path: '/v1/alt/{payment-product}', body: json, about: other",
        ] {
            let fault = load(&format!("role: {role}, {keys}"));
            assert!(
                fault.contains(
                    "role: an operation about payments or baskets requires PSP_PI (CRT-5)"
                ),
                "{keys}: {fault}"
            );
            assert_eq!(load(&format!("role: PSP_PI, {keys}")), "");
        }
    }
    for (keys, other) in [
        (
            "POST, path: '/v1/payments/{anything}'",
            "cross-border-payment-create",
        ),
        ("POST, path: /v1/payments/sepa", "payment-create"),
        ("GET, path: '/v1/{a}/{b}'", "basket-read"),
        ("GET, path: '/v1/{a}/{b}/status'", "payment-read"),
        ("GET, path: '/v1/accounts/{id}/{list}'", "balance-list"),
        ("GET, path: /v1/signing-baskets/all", "basket-read"),
    ] {
        for role in ["PSP_PI", "PSP_AI"] {
            let fault = load(&format!("role: {role}, method: {keys}"));
            assert!(
                fault.contains("o.yaml:1:")
                    && fault.contains(&format!("overlaps with {other}, /v1/")),
                "{keys}: {fault}"
            );
        }
    }
    for keys in [
        "PUT, path: '/v1/payments/{anything}'",
        "GET, sca: consent, path: '/v1/accounts/{id}/cards'",
        "POST, path: /v1/payments/bulk",
    ] {
        assert_eq!(load(&format!("role: PSP_PI, method: {keys}")), "");
    }
}

#[test]
fn every_wrong_entry_is_reported_at_its_line() {
    let text = "\
operations:
  - {name: Card List, method: get, path: /v1/cards, role: AISP}
  - {name: card-read, path: '/v1/cards/{id}'}
  - {name: a, method: GET, path: /v1/a, role: either, signed: false, required: [], quotas: none}
  - {name: account-list, method: POST, path: /v1/my-accounts}
  - {name: account-list, path: /v1/other}
  - {name: taken, method: GET, path: /v1/users, role: either}
  - {name: b, method: GET, path: /v1/b/, role: either}
  - {name: agreement-list, path: '/v1/agreements/{'}
  - {name: c, method: GET, path: /v1/sandbox/c, role: either}
  - {name: d, method: TRACE, path: [], role: either, sca: maybe}
  - card
  - {name: e, method: GET, path: /v1/e, role: either, query: [{name: a b, kind: date}, {name: x, kind: offset}, {name: X, kind: text}, {name: y, kind: offset}, {kind: int, required: maybe}]}
  - {name: f, method: PUT, path: '/v1/f/{basket-id}', role: PSP_PI, body: none, schema: basket}
oprations: []
";
    let faults = load(Environment::Production, text).unwrap_err();
    let expected = [
        "o.yaml:2:12: operations[0].name: found \"Card List\"; expected a name of at most 64 lower-case letters, digits and hyphens, such as card-list",
        "o.yaml:2:31: operations[0].method: found \"get\"; expected one of \"GET\", \"POST\", \"PUT\", \"DELETE\"; did you mean \"GET\"?",
        "o.yaml:2:59: operations[0].role: found \"AISP\"; expected one of \"PSP_AI\", \"PSP_PI\", \"either\"",
        "o.yaml:3:5: operations[1].method: missing key",
        "o.yaml:3:5: operations[1].role: missing key",
        "o.yaml:4:55: operations[2].signed: unknown key: which headers an operation requires, and that it is signed, cannot be changed (HDR-5, SIG-1)",
        "o.yaml:4:70: operations[2].required: unknown key: which headers an operation requires, and that it is signed, cannot be changed (HDR-5, SIG-1)",
        "o.yaml:4:84: operations[2].quotas: unknown key; did you mean \"quota\"?",
        "o.yaml:5:26: operations[3].method: account-list is an operation of the interface: only its path, group, answered_by, deprecated and answer can be changed",
        "o.yaml:6:12: operations[4].name: the file already contains an operation of this name",
        "o.yaml:7:38: operations[5].path: GET /v1/users stands in the catalogue already",
        "o.yaml:8:34: operations[6].path: the path /v1/b/ is not one that a request could have: the path has an empty segment: a slash at its end",
        "o.yaml:9:34: operations[7].path: the path /v1/agreements/{ is not one that a request could have: a parameter is a whole segment, as in /v1/accounts/{id}",
        "o.yaml:10:34: operations[8].path: c exists in production, where paths below /v1/sandbox are not allowed (HTTP-1)",
        "o.yaml:11:23: operations[9].method: found \"TRACE\"; expected one of \"GET\", \"POST\", \"PUT\", \"DELETE\"",
        "o.yaml:11:36: operations[9].path: found a list; expected text",
        "o.yaml:11:59: operations[9].sca: found \"maybe\"; expected one of \"none\", \"identified\", \"consent\"",
        "o.yaml:12:5: operations[10]: found \"card\"; expected a mapping of keys",
        "o.yaml:13:70: operations[11].query[0].name: found \"a b\"; expected a name of at most 64 letters, digits, hyphens, underscores and dots, such as dateFrom",
        "o.yaml:13:114: operations[11].query[2].name: this list already contains this parameter, perhaps in another letter case",
        "o.yaml:13:146: operations[11].query[3].kind: another parameter is this operation's offset",
        "o.yaml:13:161: operations[11].query[4].name: missing key",
        "o.yaml:13:168: operations[11].query[4].kind: found \"int\"; expected one of \"date\", \"date-from\", \"date-to\", \"offset\", \"limit\", \"boolean\", \"booking-status\", \"text\"",
        "o.yaml:13:183: operations[11].query[4].required: found \"maybe\"; expected true or false",
        "o.yaml:14:81: operations[12].schema: a schema requires a body of JSON",
        "o.yaml:15:1: oprations: unknown key; did you mean \"operations\"?",
    ];
    assert_eq!(faults.lines().collect::<Vec<_>>(), expected);
}

/// The fault is at the path in the file, at any line: a built-in operation with only a changed group is not at fault.
#[test]
fn a_collision_is_reported_at_the_written_path() {
    let text = "operations:\n- {name: x, method: GET, path: /v1/users, role: either}\n- {name: user-register, group: other}\n";
    assert!(
        load(Environment::Sandbox, text)
            .unwrap_err()
            .starts_with("o.yaml:2:32: operations[0].path: ")
    );
    let text = "operations:\n- {name: agreement-list, path: /v1/users}\n";
    assert!(
        load(Environment::Sandbox, text)
            .unwrap_err()
            .starts_with("o.yaml:2:32: operations[0].path: ")
    );
}
