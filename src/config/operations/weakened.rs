//! Entries that would weaken what the interface requires: the line of each fault, and warnings.

use super::read;
use crate::config::inspection::Inspection;
use crate::interface::operations::{
    Catalogue, Environment, Lookup, Operation, Schema, Signs, builtin,
};
use crate::interface::path::Target;

/// The catalogue of entries, or its faults; and the warnings.
fn load(entries: &str) -> (Result<Catalogue, String>, Vec<String>) {
    let inspection = Inspection::new();
    let text = format!("operations:\n{entries}");
    let catalogue = read("o.yaml", &text, Environment::Production, &inspection);
    let now = crate::clock::Timestamp::from_unix(0);
    let warnings = inspection.warnings().into_iter();
    let warnings = warnings.filter_map(|warning| Some(warning.at(now)?.to_string()));
    let warnings = warnings.collect();
    let read = inspection.conclude("o.yaml", catalogue);
    (read.map_err(|faults| faults.to_string()), warnings)
}

fn find(catalogue: &Catalogue, method: &str, path: &str) -> Operation {
    let target = Target::parse(path.as_bytes()).unwrap();
    match catalogue.find(&method.parse().unwrap(), &target) {
        Lookup::Found(operation) => Operation::clone(operation),
        other => panic!("{path}: {other:?}"),
    }
}

fn refused(entry: &str, fault: &str) {
    let (read, _) = load(&format!("- {entry}\n"));
    let faults = read.unwrap_err();
    assert!(faults.contains(fault), "{entry}: {faults}");
}

/// PAY-3, HDR-1, HDR-2: wherever an initiation takes the name of a product, the cross-border one keeps its own headers and members.
//= QUO-16 accepted
#[test]
fn the_cross_border_product_keeps_its_shape_at_every_path() {
    let own = builtin();
    let own = own
        .iter()
        .find(|one| one.schema == Schema::CrossBorderPayment);
    let own = own.unwrap();
    let product = "norwegian-cross-border-credit-transfers";
    let check = |entries: &str, path: &str, name: &str| {
        let catalogue = load(entries).0.unwrap();
        let found = find(&catalogue, "POST", path);
        assert_eq!(found.name, name);
        assert_eq!(found.schema, Schema::CrossBorderPayment, "{path}");
        assert_eq!(found.required.len(), own.required.len());
        assert_eq!(found.query, own.query);
        assert!(found.initiates);
        found
    };
    let moved = check(
        "- {name: payment-create, path: '/v2/payments/{payment-product}'}\n",
        &format!("/v2/payments/{product}"),
        "payment-create-cross-border",
    );
    assert_eq!(moved.product_of.as_deref(), Some("payment-create"));
    // The general operation would take what moved away.
    let left = "- {name: cross-border-payment-create, path: /v1/xb}\n";
    check(left, "/v1/xb", "cross-border-payment-create");
    let path = format!("/v1/payments/{product}");
    check(left, &path, "payment-create-cross-border");
    let added = "- {name: bulk, method: POST, path: '/v3/bulk/{payment-product}', role: PSP_PI, schema: payment}\n";
    check(added, &format!("/v3/bulk/{product}"), "bulk-cross-border");
    // Where both move together, nothing is added.
    let both = "- {name: payment-create, path: '/v2/payments/{payment-product}'}
- {name: cross-border-payment-create, path: /v2/payments/norwegian-cross-border-credit-transfers}
";
    let catalogue = load(both).0.unwrap();
    assert!(catalogue.named("payment-create-cross-border").is_none());
    // A bulk with a body of the bank's own has the headers.
    let other = "- {name: bulk, method: POST, path: '/v3/bulk/{payment-product}', role: PSP_PI, body: json, about: payment-initiation}\n";
    let catalogue = load(other).0.unwrap();
    let found = find(&catalogue, "POST", &format!("/v3/bulk/{product}"));
    assert_eq!(found.schema, Schema::Any);
    assert_eq!(found.required.len(), own.required.len());
}

/// CRT-5: the role follows from the path, whatever the file calls it.
//= CRT-5 refused
#[test]
fn what_is_about_payments_needs_their_role() {
    for path in [
        "/v1/payments/sepa-credit-transfers",
        "/v1/payments/norwegian-domestic-credit-transfers/{payment-id}",
        "/v1/signing-baskets/{basket-id}/confirm",
        "/v1/signing-baskets",
        "/v1/payments",
        "/v2/x/{payment-id}",
        "/v2/x/{basket-id}",
        "/v2/norwegian-domestic-credit-transfers",
    ] {
        for role in ["PSP_AI", "either"] {
            let entry =
                format!("{{name: x, method: DELETE, path: '{path}', role: {role}, about: other}}");
            refused(&entry, "PSP_PI");
        }
    }
}

/// SCA-8, HDR-5: what decides about a PSU's data or a payment is written, or follows from the path.
#[test]
fn nothing_that_decides_is_left_out() {
    for path in ["/v1/accounts/{id}/owner", "/v2/{account-id}"] {
        refused(
            &format!("{{name: x, method: GET, path: '{path}', role: PSP_AI}}"),
            "sca: missing key: the path names an account",
        );
        let (read, _) = load(&format!(
            "- {{name: x, method: GET, path: '{path}', role: PSP_AI, sca: none}}\n"
        ));
        read.unwrap();
    }
    let bulk = "name: bulk, method: POST, path: '/v4/bulk/{payment-product}', role: PSP_PI";
    refused(&format!("{{{bulk}, body: json}}"), "about: missing key");
    let (read, _) = load(&format!("- {{{bulk}, body: json, about: other}}\n"));
    read.unwrap();
    // The subject and the group follow from the path.
    let (read, _) = load("- {name: x, method: POST, path: '/v1/payments/{payment-product}/{payment-id}/confirm', role: PSP_PI}
- {name: y, method: POST, path: '/v2/baskets/{basket-id}', role: PSP_PI}
- {name: z, method: GET, path: '/v2/cards/{account-id}', role: PSP_AI, sca: consent}
- {name: w, method: GET, path: /v2/news, role: either}
");
    let catalogue = read.unwrap();
    for (name, group, signs) in [
        ("x", "payments", Signs::Payment),
        ("y", "signing-baskets", Signs::Basket),
        ("z", "accounts", Signs::Nothing),
        ("w", "other", Signs::Nothing),
    ] {
        let operation = catalogue.named(name).unwrap();
        assert_eq!(
            (operation.group.as_str(), operation.signs),
            (group, signs),
            "{name}"
        );
    }
}

/// An operation in the place of another one of the interface is said, in whatever letters and whoever moved.
#[test]
fn a_place_of_the_interface_with_another_operation_is_warned_of() {
    let away = "- {name: balance-list, path: '/v1/saldo/{account-id}'}\n";
    let other = "method: GET, role: PSP_AI, sca: none";
    for (entries, count) in [
        (away.to_owned(), 0),
        (
            format!("{away}- {{name: x, path: '/v1/accounts/{{id}}/balances', {other}}}\n"),
            1,
        ),
        (
            format!("- {{name: x, path: '/v1/Accounts/{{id}}/balances', {other}}}\n"),
            1,
        ),
        (
            "- {name: balance-list, path: '/v1/accounts/{account-id}/transactions'}
- {name: transaction-list, path: '/v1/accounts/{account-id}/balances'}\n"
                .to_owned(),
            2,
        ),
        (
            format!("- {{name: x, path: '/v2/accounts/{{id}}/balances', {other}}}\n"),
            0,
        ),
    ] {
        let (read, warnings) = load(&entries);
        assert_eq!(warnings.len(), count, "{entries}: {warnings:?}");
        read.unwrap();
    }
}

#[test]
fn a_misspelt_move_is_named() {
    refused(
        "{name: balance-lists, path: '/v1/saldo/{account-id}'}",
        "did you mean \"balance-list\"?",
    );
}
