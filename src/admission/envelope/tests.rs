//! Complete heads against the envelope: the faults of one answer, and their order.

use super::*;
use crate::{
    admission::Framing,
    interface::{
        FaultPlace,
        operations::{Catalogue, Environment, Lookup, builtin},
        path::Target,
    },
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

const PSU: &str = "7a3d5112-3e37-4b8f-8b8b-601a8122ea32";
const CORPORATE: &str = "7A3D5112-3E37-4B8F-8B8B-601A8122EA33";
const NUMBER: &str = "01010112345";
const PAYMENT: &str = "POST /v1/payments/norwegian-domestic-credit-transfers";
const ACCOUNTS: &str = "GET /v1/accounts";
const SANDBOX: &str = "GET /v1/sandbox/customers";

/// The headers of every request in these tests.
const COMMON: [(&str, &str); 8] = [
    ("Host", "bank.example"),
    ("X-Request-ID", "1"),
    ("TPP-Redirect-URI", "https://tpp.example/cb"),
    ("TPP-Signature-Certificate", "MII"),
    ("Signature", "s"),
    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("PSU-IP-Address", "192.0.2.7"),
    ("PSU-ID", PSU),
];

/// The request with `changes` in place of the common headers: an empty value removes a header, `""` in quotation marks makes its value
/// empty, and a header that occurs twice in `changes` occurs twice in the request.
fn headers(changes: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let kept = COMMON.iter().filter(|(name, _)| {
        let same = |(changed, _): &(&str, &str)| changed.eq_ignore_ascii_case(name);
        !changes.iter().any(same)
    });
    for (name, value) in kept.chain(changes) {
        let value = match *value {
            "" => continue,
            "\"\"" => "",
            value => value,
        };
        headers.append(
            name.parse::<HeaderName>().unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    headers
}

fn judge(operation: &str, changes: &[(&str, &str)]) -> Result<Fixes, Vec<(String, String)>> {
    let (method, path) = operation.split_once(' ').unwrap();
    let method: Method = method.parse().unwrap();
    let catalogue = Catalogue::new(Environment::Sandbox, builtin()).unwrap();
    let target = Target::parse(path.as_bytes()).unwrap();
    let Lookup::Found(operation) = catalogue.find(&method, &target) else {
        panic!("{operation} is no operation");
    };
    let headers = headers(changes);
    let framing = Framing::Frames {
        other_scheme: false,
    };
    let head = Head::unconnected(&method, path.as_bytes(), &headers, framing);
    let policy = Policy::new(Environment::Sandbox);
    let (envelope, judged) = check(&head, Announced::Nothing, operation, &policy);
    match judged {
        Ok(_) => Ok(envelope.fixes()),
        Err(refusal) => {
            let faults = refusal.faults().iter();
            Err(faults.map(shown).collect())
        }
    }
}

fn shown(fault: &Fault) -> (String, String) {
    let FaultPlace::Header(header) = fault.place else {
        panic!("{fault:?} is not about a header");
    };
    let personal = [PSU, CORPORATE, NUMBER, "010101"];
    assert!(!personal.iter().any(|value| fault.text.contains(value)));
    let line = format!("{} {header}", fault.reason.slug());
    (line, fault.text.clone())
}

fn check_faults(operation: &str, changes: &[(&str, &str)], expected: &[&str]) {
    let found = judge(operation, changes).err().unwrap_or_default();
    let lines: Vec<_> = found.iter().map(|(line, _)| line.as_str()).collect();
    assert_eq!(lines, expected, "{operation} with {changes:?}: {found:?}");
}

//= HDR-6 accepted
#[test]
fn every_fault_stands_in_one_answer_in_the_order_of_the_rules() {
    let changes = [
        ("X-Request-ID", "a b"),
        ("TPP-Session-ID", "\"\""),
        ("TPP-Redirect-URI", "http://tpp.example/cb"),
        ("TPP-Redirect-Preferred", "no"),
        ("TPP-Signature-Certificate", ""),
        ("Signature", ""),
        ("Date", "today"),
        ("PSU-ID", "p"),
        ("PSU-Corporate-ID", "c"),
        ("PSU-Device-ID", "d"),
        ("PSU-Context", "private"),
        ("PSU-HTTP-Method", "get"),
        ("PSU-IP-Address", "here"),
        ("PSU-IP-Port", "0"),
        ("PSU-Geo-Location", "there"),
        ("X-PSU-IDENTITY", NUMBER),
        ("X-PSU-IDENTITY", NUMBER),
        ("x-accept-fix", "everything"),
        ("Connection", "psu-id"),
        ("Accept", "text/html"),
    ];
    let expected = [
        "not-acceptable Accept",
        "header-missing TPP-Signature-Certificate",
        "header-malformed TPP-Session-ID",
        "header-malformed X-Request-ID",
        "header-malformed TPP-Redirect-URI",
        "header-malformed PSU-ID",
        "header-malformed PSU-Corporate-ID",
        "header-malformed PSU-Device-ID",
        "header-malformed PSU-Context",
        "header-malformed TPP-Redirect-Preferred",
        "header-malformed PSU-HTTP-Method",
        "header-malformed PSU-IP-Address",
        "header-malformed PSU-IP-Port",
        "header-malformed PSU-Geo-Location",
        "header-malformed X-PSU-IDENTITY",
        "header-duplicated X-PSU-IDENTITY",
        "header-malformed x-accept-fix",
        "signature-missing Signature",
        "header-malformed Date",
        "malformed-request Connection",
    ];
    check_faults(ACCOUNTS, &changes, &expected);
}

//= HDR-3 accepted
#[test]
fn what_an_operation_does_not_take_is_not_judged() {
    let changes = [
        ("TPP-Redirect-URI", "\"\""),
        ("PSU-ID", "p"),
        ("PSU-Context", "CORPORATE"),
        ("PSU-IP-Address", "here"),
        ("X-PSU-IDENTITY", "x"),
        ("x-accept-fix", "everything"),
    ];
    check_faults(SANDBOX, &changes, &[]);
    check_faults(
        SANDBOX,
        &[("X-Request-ID", "a b")],
        &["header-malformed X-Request-ID"],
    );
}

/// HDR-15 allows some headers to occur twice.
#[test]
fn a_header_is_judged_in_each_of_its_values() {
    let both = |second| [("PSU-IP-Port", "80"), ("PSU-IP-Port", second)];
    check_faults(ACCOUNTS, &both("81"), &[]);
    let malformed = ["header-malformed PSU-IP-Port"];
    check_faults(ACCOUNTS, &both("0"), &malformed);
    check_faults(ACCOUNTS, &both("\"\""), &malformed);
}

//= HDR-12 accepted
//= HDR-13 accepted
#[test]
fn an_identity_number_initiates_a_payment() {
    let single = [
        ("PSU-ID", ""),
        ("X-PSU-IDENTITY", NUMBER),
        ("PSU-Context", "PRIVATE"),
    ];
    check_faults(PAYMENT, &single, &[]);
    check_faults(PAYMENT, &[("X-PSU-IDENTITY", NUMBER)], &[]);
}

//= HDR-12 refused
#[test]
fn an_identity_number_has_its_form_and_its_place() {
    let malformed = ["header-malformed X-PSU-IDENTITY"];
    check_faults(PAYMENT, &[("X-PSU-IDENTITY", "0101011234x")], &malformed);
    check_faults(PAYMENT, &[("X-PSU-IDENTITY", "\"\"")], &malformed);
    check_faults(ACCOUNTS, &[("X-PSU-IDENTITY", NUMBER)], &malformed);
    check_faults(
        "POST /v1/signing-baskets",
        &[
            ("X-PSU-IDENTITY", NUMBER),
            ("x-accept-fix", "longer-names"),
            ("TPP-Session-ID", "s"),
        ],
        &malformed,
    );
}

//= HDR-13 refused
#[test]
fn single_sca_names_its_context() {
    for context in ["", "\"\""] {
        check_faults(
            PAYMENT,
            &[
                ("PSU-ID", ""),
                ("X-PSU-IDENTITY", NUMBER),
                ("PSU-Context", context),
            ],
            &["header-missing PSU-Context"],
        );
    }
}

//= HDR-13 refused
#[test]
fn single_sca_is_for_private_customers() {
    // Also with an agreement, which without a PSU-ID is nobody's, and with an empty one.
    for agreement in ["", "\"\"", CORPORATE] {
        let changes = [
            ("PSU-ID", ""),
            ("X-PSU-IDENTITY", NUMBER),
            ("PSU-Context", "CORPORATE"),
            ("PSU-Corporate-ID", agreement),
        ];
        let expected = ["corporate-id-missing PSU-Corporate-ID"];
        check_faults(PAYMENT, &changes, &expected);
    }
    let private = [("PSU-ID", ""), ("X-PSU-IDENTITY", NUMBER)];
    let private = [&private[..], &PRIVATE_AGREEMENT].concat();
    let malformed = ["header-malformed PSU-Corporate-ID"];
    check_faults(PAYMENT, &private, &malformed);
    // Beside a PSU-ID the number changes nothing.
    let both = [
        ("X-PSU-IDENTITY", NUMBER),
        ("PSU-Context", "CORPORATE"),
        ("PSU-Corporate-ID", CORPORATE),
    ];
    check_faults(PAYMENT, &both, &[]);
}

/// A request with contradictory headers.
const PRIVATE_AGREEMENT: [(&str, &str); 2] =
    [("PSU-Context", "PRIVATE"), ("PSU-Corporate-ID", CORPORATE)];

//= HDR-14 accepted
#[test]
fn agreements_are_named_where_they_must_be() {
    let corporate = [
        ("PSU-Context", "CORPORATE"),
        ("PSU-Corporate-ID", CORPORATE),
    ];
    check_faults(ACCOUNTS, &corporate, &[]);
    check_faults(ACCOUNTS, &[("PSU-Context", "PRIVATE")], &[]);
    check_faults(ACCOUNTS, &[("PSU-Corporate-ID", CORPORATE)], &[]);
    let first = [("PSU-Context", "CORPORATE"), ("PSU-ID", "")];
    check_faults(ACCOUNTS, &first, &[]);
    let excepted = [
        "GET /v1/agreements",
        "GET /v1/users",
        "POST /v1/consents",
        "POST /v1/bank-offered-consents",
    ];
    for operation in excepted {
        check_faults(operation, &[("PSU-Context", "CORPORATE")], &[]);
        check_faults(operation, &PRIVATE_AGREEMENT, &[]);
    }
}

//= HDR-14 refused
#[test]
fn agreements_are_missing_or_out_of_place() {
    for absent in ["", "\"\""] {
        let changes = [("PSU-Context", "CORPORATE"), ("PSU-Corporate-ID", absent)];
        for operation in [ACCOUNTS, PAYMENT] {
            check_faults(
                operation,
                &changes,
                &["corporate-id-missing PSU-Corporate-ID"],
            );
        }
    }
    let malformed = ["header-malformed PSU-Corporate-ID"];
    check_faults(ACCOUNTS, &PRIVATE_AGREEMENT, &malformed);
}

#[test]
fn fixes() {
    let none = judge(ACCOUNTS, &[]).unwrap();
    assert_eq!(none, Fixes::default());
    let named = judge(ACCOUNTS, &[("x-accept-fix", "longer-names")]).unwrap();
    assert_eq!(named.flags(), &[false, false, true, false]);
    let faults = judge(ACCOUNTS, &[("x-accept-fix", "longer")]).unwrap_err();
    assert_eq!(faults[0].0, "header-malformed x-accept-fix");
    assert!(faults[0].1.contains("longer-names"));
}
