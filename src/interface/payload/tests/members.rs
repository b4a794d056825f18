//! PAY-3 to PAY-13, one table per rule.

use super::*;
use crate::Code;

const B: Schema = Schema::CrossBorderPayment;

/// Each of these values of a member is accepted on B.
fn pass(path: &str, values: &[Value]) {
    for value in values {
        let found = paths(&changed(path, Some(value.clone())), B);
        assert_eq!(found, Vec::<String>::new(), "{path}: {value}");
    }
}

/// Each of these values of a member is the only fault on B.
fn fail(path: &str, values: &[Value]) {
    for value in values {
        let found = paths(&changed(path, Some(value.clone())), B);
        assert_eq!(found, [path.replace('/', ".")], "{value}");
    }
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}

/// Values that are not strings.
fn strangers() -> Vec<Value> {
    vec![
        json!(null),
        json!(1),
        json!(true),
        json!([]),
        json!({}),
        json!(["a"]),
    ]
}

/// Strings of this number of characters, of one, two and four bytes each.
fn long(length: usize) -> Vec<Value> {
    ["x", "ø", "😀"]
        .map(|one| json!(one.repeat(length)))
        .to_vec()
}

#[test]
fn a_whole_payment_and_the_least_one() {
    assert_eq!(paths(&payment(), B), Vec::<String>::new());
    let least = json!({
        "instructedAmount": {"amount": "1.00", "currency": "EUR"},
        "creditorName": "M",
        "creditorAccount": {"bban": "123", "currency": "USD"},
        "creditorAgent": "CHASUS33",
        "debtorAccount": {"bban": "86011117947", "currency": "NOK"},
    });
    assert_eq!(paths(&least, B), Vec::<String>::new());
}

/// PAY-3.
#[test]
fn required_members() {
    for path in [
        "instructedAmount",
        "creditorName",
        "creditorAccount",
        "debtorAccount",
    ] {
        assert_eq!(paths(&changed(path, None), B), [path]);
    }
    let all = [
        "instructedAmount",
        "creditorName",
        "creditorAccount",
        "debtorAccount",
    ];
    assert_eq!(paths(&json!({}), B), all);
    for stranger in [json!([]), json!("x"), json!(1), json!(null)] {
        assert_eq!(paths(&stranger, B), ["$"]);
    }
}

/// PAY-4.
#[test]
fn amounts() {
    let amount = "instructedAmount/amount";
    pass(
        amount,
        &texts(&["0.01", "99999.99", "100000.00", "9999999999999999.99"]),
    );
    let bad = [
        "",
        "0.00",
        "-1.00",
        "+1.00",
        "1e2",
        "01.00",
        "1,00",
        "1.0",
        "1.000",
        "100",
        "1 000.00",
        ".50",
        "1.",
        "NaN",
        "9999999999999999999",
        "99999999999999999.99",
        "0.123456",
    ];
    fail(amount, &texts(&bad));
    fail(amount, &strangers());
    fail(
        "instructedAmount",
        &[json!(null), json!("1.00"), json!([]), json!(1)],
    );
    assert_eq!(
        paths(&changed(amount, None), B),
        ["instructedAmount.amount"]
    );
    let table = [
        ("NOK", "100", "NOK has 2 fraction digits: 100.00"),
        ("JPY", "100.00", "JPY has 0 fraction digits: 100"),
        ("BHD", "100.00", "BHD has 3 fraction digits: 100.000"),
        ("BYR", "1.00", "BYR has 0 fraction digits: 100"),
        ("TVD", "1.000", "TVD has 2 fraction digits: 100.00"),
    ];
    for (currency, amount, text) in table {
        let value = json!({"amount": amount, "currency": currency});
        let body = changed("instructedAmount", Some(value)).to_string();
        assert_eq!(
            wrong(body.as_bytes(), B),
            [format!("instructedAmount.amount: {text}")]
        );
    }
    for (currency, amount) in [
        ("JPY", "1"),
        ("BHD", "0.001"),
        ("XDR", "1"),
        ("XDR", "1.12345"),
        ("CLP", "5"),
    ] {
        pass(
            "instructedAmount",
            &[json!({"amount": amount, "currency": currency})],
        );
    }
}

/// PAY-5.
#[test]
fn currencies() {
    for path in [
        "instructedAmount/currency",
        "creditorAccount/currency",
        "debtorAccount/currency",
    ] {
        pass(path, &texts(&["EUR", "ZMW", "CUC"]));
        fail(
            path,
            &texts(&[
                "", "EEK", "LTL", "LVL", "BYN", "SLE", "VES", "nok", "NO", "NOKK", " NOK", "kr",
            ]),
        );
        fail(path, &strangers());
        assert_eq!(paths(&changed(path, None), B), [path.replace('/', ".")]);
    }
}

/// PAY-6.
#[test]
fn accounts() {
    for path in ["creditorAccount", "debtorAccount"] {
        let iban = format!("{path}/iban");
        pass(
            &iban,
            &texts(&[
                "NO9386011117947",
                "GB82WEST12345698765432",
                "MT84MALT011000012345MTLCAST001S",
            ]),
        );
        let too_long = format!("NO93{}", "8".repeat(31));
        let bad = [
            "",
            "NO9386011117948",
            "NO938601111794",
            "NO93860111179471",
            "no9386011117947",
            "NO93 8601 1117 947",
            "XX9386011117947",
            "86011117947",
            &too_long,
        ];
        fail(&iban, &texts(&bad));
        fail(&iban, &strangers());
        fail(path, &[json!(null), json!("NO9386011117947"), json!([])]);
        fail(path, &[json!({"currency": "NOK"})]);
        fail(
            path,
            &[json!({"currency": "NOK", "iban": "NO9386011117947", "bban": "86011117947"})],
        );
        fail(
            path,
            &[json!({"currency": "NOK", "iban": "NO9386011117947", "bban": null})],
        );
        for (length, expected) in [
            (1, vec![]),
            (30, vec![]),
            (31, vec![format!("{path}.bban")]),
            (0, vec![format!("{path}.bban")]),
        ] {
            for bban in long(length) {
                let account = json!({"currency": "NOK", "bban": bban});
                assert_eq!(paths(&changed(path, Some(account)), B), expected, "{bban}");
            }
        }
    }
}

/// PAY-7.
#[test]
fn agents() {
    let agent = "creditorAgent";
    pass(agent, &texts(&["DNBANOKK", "DNBANOKKXXX"]));
    fail(
        agent,
        &texts(&[
            "",
            "DNBANOK",
            "DNBANOKKX",
            "dnbanokk",
            "DNBANO1K",
            "DNBANOKO",
        ]),
    );
    fail(agent, &strangers());
    let mut payment = changed(agent, None);
    assert_eq!(
        paths(&payment, B),
        Vec::<String>::new(),
        "an IBAN needs none"
    );
    payment["creditorAccount"] = json!({"bban": "1", "currency": "USD"});
    assert_eq!(paths(&payment, B), [agent]);
    payment["debtorAccount"] = json!({"bban": "1", "currency": "USD"});
    payment["creditorAccount"] = json!({"iban": "NO9386011117947", "currency": "USD"});
    assert_eq!(
        paths(&payment, B),
        Vec::<String>::new(),
        "the debtor's needs none"
    );
}

/// PAY-8.
#[test]
fn names_and_addresses() {
    for length in [1, 70] {
        pass("creditorName", &long(length));
        pass("creditorAddress/street", &long(length));
    }
    fail("creditorName", &texts(&[""]));
    fail("creditorName", &long(71));
    fail("creditorName", &strangers());
    pass("creditorAddress/street", &texts(&[""]));
    fail("creditorAddress/street", &long(71));
    for member in ["street", "buildingNumber", "postalCode", "city", "country"] {
        fail(&format!("creditorAddress/{member}"), &strangers());
    }
    pass("creditorAddress/country", &texts(&["NO", "ZW", "AX"]));
    fail(
        "creditorAddress/country",
        &texts(&["", "no", "NOR", "AN", "XK", "N"]),
    );
    assert_eq!(
        paths(&changed("creditorAddress/country", None), B),
        ["creditorAddress.country"]
    );
    pass("creditorAddress", &[json!({"country": "NO"})]);
    fail("creditorAddress", &[json!(null), json!("NO"), json!([])]);
    assert_eq!(
        paths(&changed("creditorAddress", None), B),
        Vec::<String>::new()
    );
}

/// ERR-10.
#[test]
fn an_unknown_code_is_told_what_it_lacks() {
    for (code, text) in [
        ("ZZZ", "ZZZ is not a currency that is accepted"),
        ("nok", "a currency stands in capitals, such as NOK"),
        ("N0K", "its character 2 is "),
        ("NOKK", "it has 4 characters; a currency has 3 capitals"),
        ("nokk", "it has 4 characters; a currency has 3 capitals"),
        ("NO", "it has 2 characters; a currency has 3 capitals"),
    ] {
        let body = changed("instructedAmount/currency", Some(json!(code)));
        let wrong = wrong(body.to_string().as_bytes(), Schema::CrossBorderPayment);
        let begin = format!("instructedAmount.currency: {text}");
        assert!(wrong[0].starts_with(&begin), "{wrong:?}");
    }
}

/// PAY-9, PAY-10.
#[test]
fn information_and_codes() {
    let remittance = "remittanceInformationUnstructured";
    for length in [1, 140] {
        pass(remittance, &long(length));
        pass("regulatoryReportingInformation", &long(length));
    }
    for path in [remittance, "regulatoryReportingInformation"] {
        fail(path, &long(141));
        fail(path, &strangers());
    }
    fail(remittance, &texts(&[""]));
    for code in codes::PURPOSES.split(", ") {
        pass("purposeCode", &texts(&[code]));
    }
    for code in codes::REPORTING.split(", ") {
        pass("regulatoryReportingCode", &texts(&[code]));
    }
    fail(
        "purposeCode",
        &texts(&["", "GDDS", "invs", "INVS ", "INVS, SALA"]),
    );
    fail(
        "regulatoryReportingCode",
        &texts(&["", "15", "014", "1", "14, 26"]),
    );
    fail("purposeCode", &strangers());
    fail("regulatoryReportingCode", &[json!(14), json!(null)]);
}

/// PAY-11.
#[test]
fn large_transfers() {
    let (code, information) = ("regulatoryReportingCode", "regulatoryReportingInformation");
    let without = |amount: &str, currency: &str| {
        let mut payment = changed(
            "instructedAmount",
            Some(json!({"amount": amount, "currency": currency})),
        );
        let members = payment.as_object_mut().unwrap();
        members.shift_remove(code);
        members.shift_remove(information);
        payment
    };
    for (amount, currency) in [
        ("99999.99", "NOK"),
        ("100000.00", "EUR"),
        ("100000", "JPY"),
        ("0.01", "NOK"),
    ] {
        assert_eq!(
            paths(&without(amount, currency), B),
            Vec::<String>::new(),
            "{amount} {currency}"
        );
    }
    for amount in ["100000.00", "100000.01", "9999999999999999.99"] {
        assert_eq!(
            paths(&without(amount, "NOK"), B),
            [code, information],
            "{amount}"
        );
    }
    assert_eq!(paths(&changed(code, None), B), [code]);
    assert_eq!(paths(&changed(information, None), B), [information]);
    fail(code, &texts(&[""]));
    fail(information, &texts(&[""]));
}

/// PAY-12.
#[test]
fn execution_dates() {
    let path = "requestedExecutionDate";
    pass(
        path,
        &texts(&["2026-01-15", "2026-01-16", "2028-02-29", "9999-12-31"]),
    );
    fail(
        path,
        &texts(&[
            "2026-01-14",
            "1999-01-01",
            "",
            "2026-02-30",
            "15.01.2026",
            "2026-01-15T00:00:00+01:00",
            "20260115",
        ]),
    );
    fail(path, &strangers());
    let body = changed(path, Some(json!("2026-01-14"))).to_string();
    let faults = check(body.as_bytes(), B, &[], today(), &Ibans::default()).unwrap_err();
    assert_eq!(
        (faults[0].reason, faults[0].code),
        (Reason::PayloadInvalid, Some(Code::ExecutionDateInvalid))
    );
    assert_eq!(
        faults[0].text,
        "it has passed: today is 2026-01-15 where the bank is"
    );
    assert_eq!(paths(&changed(path, None), B), Vec::<String>::new());
}

/// PAY-13.
#[test]
fn baskets() {
    let basket = |ids: Value| paths(&json!({"paymentIds": ids, "more": [1]}), Schema::Basket);
    let ids = |count: usize| json!((0..count).map(|n| n.to_string()).collect::<Vec<_>>());
    for count in [1, 2, 10] {
        assert_eq!(basket(ids(count)), Vec::<String>::new(), "{count}");
    }
    for count in [0, 11, 5_000] {
        assert_eq!(basket(ids(count)), ["paymentIds"], "{count}");
    }
    assert_eq!(basket(json!(["1", "2", "1"])), ["paymentIds[2]"]);
    assert_eq!(
        basket(json!(["1", "1", "1"])),
        ["paymentIds[1]", "paymentIds[2]"]
    );
    assert_eq!(
        basket(json!(["", "2", 3, null])),
        ["paymentIds[0]", "paymentIds[2]", "paymentIds[3]"]
    );
    for stranger in strangers().into_iter().filter(|value| !value.is_array()) {
        assert_eq!(basket(stranger), ["paymentIds"]);
    }
    assert_eq!(paths(&json!({}), Schema::Basket), ["paymentIds"]);
    assert_eq!(paths(&json!(["1"]), Schema::Basket), ["$"]);
}

/// PAY-14.
#[test]
fn other_products() {
    let other = Schema::Payment;
    let fine = |value: Value| assert_eq!(paths(&value, other), Vec::<String>::new(), "{value}");
    fine(json!({}));
    fine(json!({"creditorAccount": {"bban": "86011117947", "currency": "NOK"}}));
    fine(json!({"instructedAmount": {"amount": "500000.00", "currency": "NOK"}}));
    fine(
        json!({"purposeCode": 7, "requestedExecutionDate": "tomorrow", "creditorAddress": [], "unknown": null}),
    );
    let wrong = json!({
        "instructedAmount": {"amount": "1", "currency": "NOK"},
        "creditorName": "",
        "creditorAgent": "x",
        "creditorAccount": {"iban": "x"},
        "debtorAccount": {"bban": "", "currency": "EEK"},
        "remittanceInformationUnstructured": "",
    });
    let expected = [
        "instructedAmount.amount",
        "creditorAccount.currency",
        "debtorAccount.currency",
        "creditorAccount.iban",
        "debtorAccount.bban",
        "creditorAgent",
        "creditorName",
        "remittanceInformationUnstructured",
    ];
    assert_eq!(paths(&wrong, other), expected);
    let mut payment = payment();
    payment["instructedAmount"]["more"] = json!({"deep": [1, {"x": null}]});
    payment["endToEndIdentification"] = json!("x");
    assert_eq!(paths(&payment, B), Vec::<String>::new());
}

/// PAY-2: the order of the rules decides, texts are bounded, and no value is repeated.
#[test]
fn everything_at_once_and_nothing_personal() {
    let secret = "NO9386011117948";
    let mut payment = payment();
    for member in [
        "creditorName",
        "remittanceInformationUnstructured",
        "regulatoryReportingInformation",
    ] {
        payment[member] = json!(secret.repeat(20));
    }
    for member in [
        "creditorAgent",
        "purposeCode",
        "requestedExecutionDate",
        "regulatoryReportingCode",
    ] {
        payment[member] = json!(secret);
    }
    payment["instructedAmount"] = json!({"amount": secret, "currency": secret});
    payment["creditorAccount"] = json!({"iban": secret, "currency": secret});
    payment["creditorAddress"] = json!({"street": secret.repeat(20), "country": secret});
    payment["debtorAccount"] = json!({"bban": secret.repeat(20), "currency": secret});
    let faults = check(
        payment.to_string().as_bytes(),
        B,
        &[],
        today(),
        &Ibans::default(),
    )
    .unwrap_err();
    assert_eq!(faults.len(), 15);
    assert_eq!(faults[0].code, Some(Code::FormatError));
    assert_eq!(
        faults.last().unwrap().code,
        Some(Code::ExecutionDateInvalid)
    );
    for fault in faults {
        assert!(
            !fault.text.contains("11117948") && fault.text.chars().count() <= 512,
            "{fault:?}"
        );
    }
}
