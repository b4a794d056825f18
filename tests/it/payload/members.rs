//! The members of payments and baskets: PAY-3 to PAY-14.

use super::{
    basket, changed, cross_border,
    generated::faults::{CROSS_BORDER, SHARED, basket_faults, malformed},
    payment, refused_for,
};
use crate::harness::{Call, Gate, accepted, refused};
use portvakt::clock::{Clock, Timestamp};
use serde_json::{Value, json};

/// Each value of a member is accepted.
fn pass(path: &str, values: &[Value]) {
    let gate = Gate::start();
    for value in values {
        accepted(&gate, &cross_border(&changed(path, value.clone())));
    }
}

/// Each value of a member is refused for that member.
fn fail(path: &str, values: &[Value]) {
    let gate = Gate::start();
    for value in values {
        refused_for(
            &gate,
            &cross_border(&changed(path, value.clone())),
            "FORMAT_ERROR",
            &[path],
        );
    }
}

//= PAY-3 accepted
#[test]
fn no_more_than_what_is_required() {
    let gate = Gate::start();
    let least = json!({
        "instructedAmount": {"amount": "1.00", "currency": "EUR"},
        "creditorName": "M",
        "creditorAccount": {"iban": "DE89370400440532013000", "currency": "EUR"},
        "debtorAccount": {"bban": "86011117947", "currency": "NOK"},
    });
    accepted(&gate, &cross_border(&least));
}

//= PAY-3 refused
#[test]
fn what_is_required() {
    for path in [
        "instructedAmount",
        "creditorName",
        "creditorAccount",
        "debtorAccount",
    ] {
        fail(path, &[json!(null)]);
    }
}

//= PAY-4 accepted
#[test]
fn amounts() {
    pass(
        "instructedAmount.amount",
        &[json!("0.01"), json!("9999999999999999.99")],
    );
    let of = |amount: &str, currency: &str| json!({"amount": amount, "currency": currency});
    pass(
        "instructedAmount",
        &[of("100", "JPY"), of("0.001", "BHD"), of("1.12345", "XDR")],
    );
}

//= PAY-4 refused
#[test]
fn what_is_no_amount() {
    let bad = [
        "0.00",
        "-1.00",
        "1e2",
        "01.00",
        "1,00",
        "100",
        "100.000",
        "99999999999999999.99",
    ];
    fail("instructedAmount.amount", &bad.map(|bad| json!(bad)));
    fail("instructedAmount.amount", &[json!(100.00), json!(null)]);
}

//= PAY-5 accepted
#[test]
fn currencies() {
    pass("creditorAccount.currency", &[json!("USD"), json!("ZMW")]);
}

//= PAY-5 refused
#[test]
fn currencies_that_are_not_accepted() {
    for path in [
        "instructedAmount.currency",
        "creditorAccount.currency",
        "debtorAccount.currency",
    ] {
        fail(
            path,
            &[json!("EEK"), json!("BYN"), json!("nok"), json!(null)],
        );
    }
}

//= PAY-6 accepted
#[test]
fn accounts() {
    pass(
        "debtorAccount",
        &[
            json!({"iban": "GB82WEST12345698765432", "currency": "GBP"}),
            json!({"bban": "8".repeat(30), "currency": "NOK"}),
        ],
    );
}

/// A country of the registry that came late, and one that only the bank adds.
//= PAY-6 accepted
//= PAY-6 refused
#[test]
fn countries_of_the_registry_and_of_the_bank() {
    let of = |iban: &str| {
        let account = json!({"iban": iban, "currency": "NOK"});
        cross_border(&changed("debtorAccount", account))
    };
    let (pakistan, morocco) = ("PK68AAAA0000000000000001", "MA64011519000001205000534921");
    let gate = Gate::start();
    accepted(&gate, &of(pakistan));
    let refuses = |gate: &Gate, iban: &str, part: &str| {
        let place = &["debtorAccount.iban"];
        let answer = refused_for(gate, &of(iban), "FORMAT_ERROR", place);
        let text = answer.json()["faults"][0]["text"].to_string();
        assert!(text.contains(part) && !text.contains(&iban[4..]), "{text}");
    };
    refuses(&gate, morocco, "no country that has IBANs");
    let gate = Gate::builder()
        .line("bank: {ibans: {MA: {length: 28, structure: 24n}}}")
        .start();
    accepted(&gate, &of(morocco));
    accepted(&gate, &of(pakistan));
    refuses(&gate, &morocco[..27], "28 characters");
    refuses(&gate, &morocco.replace("64011", "6401A"), "character 7");
    refuses(&gate, &morocco.replace("MA64", "MA65"), "check digits");
}

//= PAY-6 refused
#[test]
fn what_is_no_account() {
    let (iban, bban) = ("NO9386011117947", "86011117947");
    fail(
        "debtorAccount",
        &[
            json!({"currency": "NOK"}),
            json!({"currency": "NOK", "iban": iban, "bban": bban}),
            json!(iban),
        ],
    );
    fail(
        "debtorAccount.iban",
        &[
            json!("NO9386011117948"),
            json!("NO938601111794"),
            json!("no9386011117947"),
        ],
    );
    let gate = Gate::start();
    let too_long = changed(
        "debtorAccount",
        json!({"bban": "8".repeat(31), "currency": "NOK"}),
    );
    refused_for(
        &gate,
        &cross_border(&too_long),
        "FORMAT_ERROR",
        &["debtorAccount.bban"],
    );
}

/// A payment whose creditor has a bban.
fn to_bban(agent: Value) -> Value {
    let mut payment = changed("creditorAgent", agent);
    payment["creditorAccount"] = json!({"bban": "123456789", "currency": "USD"});
    payment
}

//= PAY-7 accepted
#[test]
fn agents() {
    let gate = Gate::start();
    accepted(&gate, &cross_border(&to_bban(json!("CHASUS33"))));
    accepted(&gate, &cross_border(&to_bban(json!("WG11US335AB"))));
    accepted(&gate, &cross_border(&changed("creditorAgent", json!(null))));
}

//= PAY-7 refused
#[test]
fn what_is_no_agent() {
    let gate = Gate::start();
    refused_for(
        &gate,
        &cross_border(&to_bban(json!(null))),
        "FORMAT_ERROR",
        &["creditorAgent"],
    );
    fail(
        "creditorAgent",
        &[json!("CHASUS3"), json!("chasus33"), json!("")],
    );
    let answer = refused_for(
        &gate,
        &cross_border(&to_bban(json!("CHAS1S33"))),
        "FORMAT_ERROR",
        &["creditorAgent"],
    );
    let text = answer.json()["faults"][0]["text"].to_string();
    assert!(text.contains("the country"), "{text}");
}

//= PAY-8 accepted
#[test]
fn names_and_addresses() {
    pass(
        "creditorName",
        &["x", "æ", "😀"].map(|one| json!(one.repeat(70))),
    );
    pass(
        "creditorAddress",
        &[
            json!({"country": "SE", "street": "ø".repeat(70)}),
            json!(null),
        ],
    );
}

//= PAY-8 refused
#[test]
fn names_and_addresses_that_are_too_long_or_nowhere() {
    fail(
        "creditorName",
        &[
            json!(""),
            json!("x".repeat(71)),
            json!("😀".repeat(71)),
            json!(7),
        ],
    );
    fail("creditorAddress.street", &[json!("ø".repeat(71))]);
    fail(
        "creditorAddress.country",
        &[json!(null), json!("XX"), json!("se"), json!("SWE")],
    );
}

//= PAY-9 accepted
#[test]
fn remittance_information() {
    pass(
        "remittanceInformationUnstructured",
        &[json!("x"), json!("å".repeat(140)), json!(null)],
    );
}

//= PAY-9 refused
#[test]
fn remittance_information_of_another_length() {
    fail(
        "remittanceInformationUnstructured",
        &[json!(""), json!("x".repeat(141)), json!("😀".repeat(141))],
    );
}

//= PAY-10 accepted
#[test]
fn codes() {
    pass("purposeCode", &[json!("SALA"), json!("OTHR"), json!(null)]);
    pass("regulatoryReportingCode", &[json!("82")]);
    pass("regulatoryReportingInformation", &[json!("ø".repeat(140))]);
}

//= PAY-10 refused
#[test]
fn codes_that_do_not_exist() {
    fail("purposeCode", &[json!("GIFT"), json!("sala"), json!("")]);
    fail(
        "regulatoryReportingCode",
        &[json!("15"), json!(14), json!("")],
    );
    fail("regulatoryReportingInformation", &[json!("x".repeat(141))]);
}

/// A payment of this amount without tax information.
fn unreported(amount: &str, currency: &str) -> Call {
    let mut payment = changed("regulatoryReportingCode", json!(null));
    payment
        .as_object_mut()
        .unwrap()
        .shift_remove("regulatoryReportingInformation");
    payment["instructedAmount"] = json!({"amount": amount, "currency": currency});
    cross_border(&payment)
}

//= PAY-11 accepted
#[test]
fn transfers_that_need_no_report() {
    let gate = Gate::start();
    accepted(&gate, &unreported("99999.99", "NOK"));
    accepted(&gate, &unreported("100000.00", "EUR"));
    accepted(
        &gate,
        &cross_border(&changed("instructedAmount.amount", json!("100000.00"))),
    );
}

//= PAY-11 refused
#[test]
fn transfers_that_need_a_report() {
    let gate = Gate::start();
    let both = ["regulatoryReportingCode", "regulatoryReportingInformation"];
    refused_for(
        &gate,
        &unreported("100000.00", "NOK"),
        "FORMAT_ERROR",
        &both,
    );
    for path in both {
        fail(path, &[json!(null), json!("")]);
    }
}

/// The start of the day in Oslo: 2026-06-30T22:00:00Z.
const MIDNIGHT: u64 = 1_782_856_800;

fn at(seconds: u64) -> Gate {
    let clock = Clock::standing(Timestamp::from_unix(seconds));
    Gate::builder().clock(&clock).start()
}

fn on(date: &str) -> Call {
    cross_border(&changed("requestedExecutionDate", json!(date)))
}

//= PAY-12 accepted
#[test]
fn execution_dates() {
    for date in ["2026-06-30", "2026-07-01", "2028-02-29"] {
        accepted(&at(MIDNIGHT - 1), &on(date));
    }
    accepted(&at(MIDNIGHT), &on("2026-07-01"));
    let clock = Clock::standing(Timestamp::from_unix(MIDNIGHT));
    let elsewhere = Gate::builder()
        .clock(&clock)
        .line("bank: {time_zone: Atlantic/Reykjavik}");
    accepted(&elsewhere.start(), &on("2026-06-30"));
}

//= PAY-12 refused
#[test]
fn execution_dates_that_have_passed_or_are_none() {
    let gate = at(MIDNIGHT);
    for date in [
        "2026-06-30",
        "1999-12-31",
        "2026-02-30",
        "01.07.2026",
        "2026-07-01T00:00:00+02:00",
        "",
    ] {
        refused_for(
            &gate,
            &on(date),
            "EXECUTION_DATE_INVALID",
            &["requestedExecutionDate"],
        );
    }
}

//= PAY-13 accepted
#[test]
fn baskets() {
    let gate = Gate::start();
    accepted(&gate, &basket(&json!(["1"])));
    accepted(
        &gate,
        &basket(&json!(["1", "2", "3", "4", "5", "6", "7", "8", "9", "æ😀"])),
    );
}

//= PAY-13 refused
#[test]
fn what_is_no_basket() {
    let gate = Gate::start();
    let eleven: Vec<_> = (0..11).map(|n| n.to_string()).collect();
    for ids in [json!([]), json!(eleven), json!("1"), json!(null)] {
        refused_for(&gate, &basket(&ids), "FORMAT_ERROR", &["paymentIds"]);
    }
    for (ids, path) in [
        (json!(["1", "2", "1"]), "paymentIds[2]"),
        (json!([""]), "paymentIds[0]"),
        (json!(["1", 2]), "paymentIds[1]"),
    ] {
        refused_for(&gate, &basket(&ids), "FORMAT_ERROR", &[path]);
    }
    refused_for(
        &gate,
        &Call::basket().json("{}"),
        "FORMAT_ERROR",
        &["paymentIds"],
    );
    refused_for(
        &gate,
        &Call::basket().json("[\"1\"]"),
        "FORMAT_ERROR",
        &["$"],
    );
}

//= PAY-14 accepted
#[test]
fn members_that_no_rule_knows() {
    let gate = Gate::start();
    let mut more = payment();
    more["endToEndIdentification"] = json!("x");
    more["creditorAccount"]["name"] = json!({"deep": [null, 1.50, true]});
    accepted(&gate, &cross_border(&more));
    // The other products require no members, and share some.
    let table = [
        json!({"instructedAmount": {"amount": "500000.00", "currency": "NOK"}, "frequency": "Monthly"}),
        json!({"creditorAccount": {"bban": "86011117947", "currency": "NOK"}}),
        json!({"requestedExecutionDate": "as soon as possible"}),
    ];
    for body in table {
        accepted(&gate, &Call::payment().json(&body.to_string()));
    }
}

/// The payment with an additional first member, verbatim.
fn with_member(member: &str) -> String {
    payment()
        .to_string()
        .replacen('{', &format!("{{{member},"), 1)
}

/// Go's encoding/json ignores letter case and takes the last matching member: such a member must not bypass PAY-11.
//= PAY-14 refused
#[test]
fn names_that_some_core_reads_as_known() {
    let gate = Gate::start();
    let large = r#"{"amount":"150000.00","currency":"NOK"}"#;
    for (name, path) in [
        ("InstructedAmount", "InstructedAmount"),
        ("INSTRUCTEDAMOUNT", "INSTRUCTEDAMOUNT"),
        ("inſtructedAmount", "*"),
        (r"in\u017ftructedAmount", "*"),
        ("ınstructedAmount", "*"),
        ("\u{ff49}nstructedAmount", "*"),
        ("instructed\u{200b}Amount", "*"),
        (r"instructed\u00adAmount", "*"),
        (r"\ufeffinstructedAmount", "*"),
    ] {
        let body = with_member(&format!("\"{name}\":{large}"));
        let answer = refused_for(
            &gate,
            &Call::cross_border().json(&body),
            "FORMAT_ERROR",
            &[path],
        );
        let text = answer.json()["tppMessages"][0]["text"].clone();
        assert!(
            text.as_str().unwrap().contains("instructedAmount"),
            "{text}"
        );
    }
    // A lone surrogate is not a character, and the answer names that.
    let alone = payment()
        .to_string()
        .replacen("instructed", "Instructed", 1);
    let both = ["instructedAmount", "InstructedAmount"];
    refused_for(
        &gate,
        &Call::cross_border().json(&alone),
        "FORMAT_ERROR",
        &both,
    );
    let mut deeper = payment();
    deeper["creditorAccount"]["IBAN"] = json!("NO9386011117947");
    deeper["creditorAddress"]["Country"] = json!("NO");
    deeper["instructedAmount"]["Currency"] = json!("NOK");
    let answer = refused(
        &gate,
        &cross_border(&deeper),
        400,
        "FORMAT_ERROR",
        "payload-invalid",
    );
    let mut paths: Vec<_> = answer.json()["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["path"].as_str().unwrap().to_owned())
        .collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "creditorAccount.IBAN",
            "creditorAddress.Country",
            "instructedAmount.Currency"
        ]
    );
    let basket = Call::basket().json(r#"{"paymentIds":["1"],"PaymentIds":["2"]}"#);
    refused_for(&gate, &basket, "FORMAT_ERROR", &["PaymentIds"]);
    for (product, name) in [
        (Call::payment(), "CreditorName"),
        (Call::payment(), "debtoraccount"),
    ] {
        let call = product.json(&format!("{{\"{name}\":1}}"));
        refused_for(&gate, &call, "FORMAT_ERROR", &[name]);
    }
}

//= PAY-14 refused
//= PAY-17 refused
#[test]
fn names_with_characters_that_nobody_sees() {
    let gate = Gate::start();
    for name in [
        r"instructedAmount\u0000",
        r"x\n",
        "x\u{7f}",
        r"\u0085x",
        "x\u{202e}y",
    ] {
        for body in [
            with_member(&format!("\"{name}\":1")),
            with_member(&format!("\"x\":[1,{{\"{name}\":1}}]")),
        ] {
            let call = Call::cross_border().json(&body);
            let answer = refused(&gate, &call, 400, "FORMAT_ERROR", "payload-invalid");
            let path = answer.json()["faults"][0]["path"].clone();
            assert!(["*", "x[1].*"].contains(&path.as_str().unwrap()), "{path}");
        }
    }
}

//= PAY-17 accepted
#[test]
fn text_in_several_lines() {
    let lines = [json!("one\r\ntwo\tthree")];
    pass("remittanceInformationUnstructured", &lines);
    pass("regulatoryReportingInformation", &lines);
    // Other scripts have combining marks, and right-to-left text needs none of the refused characters.
    pass(
        "creditorName",
        &[json!("שלום \u{200f}(עולם)\u{a0}é\u{200d}😀")],
    );
}

//= PAY-17 refused
#[test]
fn text_that_is_not_what_it_shows_as() {
    let characters = [
        "\0",
        "\u{1}",
        "\u{b}",
        "\u{1b}[2K",
        "\u{7f}",
        "\u{85}",
        "\u{9b}",
        "\u{202a}",
        "\u{202e}",
        "\u{2066}",
        "\u{2069}",
    ];
    let gate = Gate::start();
    let texts = [
        "creditorName",
        "creditorAddress.city",
        "remittanceInformationUnstructured",
        "regulatoryReportingInformation",
        "unknown",
    ];
    for character in characters {
        for path in texts {
            let call = cross_border(&changed(path, json!(format!("a{character}b"))));
            refused_for(&gate, &call, "FORMAT_ERROR", &[path]);
        }
    }
    for line in ["\r", "\n", "\t"] {
        for path in ["creditorName", "unknown"] {
            let call = cross_border(&changed(path, json!(format!("a{line}b"))));
            refused_for(&gate, &call, "FORMAT_ERROR", &[path]);
        }
    }
    let deep = changed("unknown", json!([1, {"a": ["x", "y\u{202e}"], "b": "z\0"}]));
    refused_for(
        &gate,
        &cross_border(&deep),
        "FORMAT_ERROR",
        &["unknown[1].a[1]", "unknown[1].b"],
    );
    refused_for(
        &gate,
        &basket(&json!(["1", "2\n"])),
        "FORMAT_ERROR",
        &["paymentIds[1]"],
    );
    // The answer is short for any number of faults.
    let many = vec!["\0"; 5_000];
    let answer = refused(
        &gate,
        &cross_border(&changed("unknown", json!(many))),
        400,
        "FORMAT_ERROR",
        "payload-invalid",
    );
    assert_eq!(answer.json()["faults"].as_array().unwrap().len(), 16);
}

//= PAY-14 refused
#[test]
fn what_other_products_share() {
    let gate = Gate::start();
    let table = [
        (
            json!({"instructedAmount": {"amount": "1", "currency": "NOK"}}),
            "instructedAmount.amount",
        ),
        (
            json!({"creditorAccount": {"bban": "", "currency": "NOK"}}),
            "creditorAccount.bban",
        ),
        (json!({"creditorName": ""}), "creditorName"),
        (
            json!({"remittanceInformationUnstructured": "x".repeat(141)}),
            "remittanceInformationUnstructured",
        ),
    ];
    for (body, path) in table {
        refused_for(
            &gate,
            &Call::payment().json(&body.to_string()),
            "FORMAT_ERROR",
            &[path],
        );
    }
}

/// Every single fault of the generator, through the listener: correct reason and path, and nothing reaches the core.
#[test]
fn every_single_fault_stops_here() {
    let gate = Gate::start();
    for fault in SHARED.iter().chain(CROSS_BORDER) {
        let mut payment = payment();
        (fault.make)(&mut payment);
        let code = match fault.path {
            "requestedExecutionDate" => "EXECUTION_DATE_INVALID",
            _ => "FORMAT_ERROR",
        };
        refused_for(&gate, &cross_border(&payment), code, &[fault.path]);
    }
    for (fault, path) in basket_faults() {
        let mut basket = json!({"paymentIds": ["1", "2"]});
        fault(&mut basket);
        let call = Call::basket().json(&basket.to_string());
        refused_for(&gate, &call, "FORMAT_ERROR", &[path]);
    }
    for (_, fault, _) in malformed() {
        let mut payment = payment();
        payment["unknown"] = json!(null);
        let body = fault(&payment.to_string());
        let call = Call::cross_border().body(&body);
        refused(&gate, &call, 400, "FORMAT_ERROR", "payload-malformed");
    }
}

/// Lengths count characters, not bytes: each limit is tested with characters of one, two and four bytes.
#[test]
fn lengths_at_their_limits() {
    let gate = Gate::start();
    for one in ["x", "æ", "ø", "å", "😀"] {
        let mut longest = payment();
        longest["creditorName"] = json!(one.repeat(70));
        longest["creditorAddress"]["street"] = json!(one.repeat(70));
        longest["debtorAccount"] = json!({"bban": one.repeat(30), "currency": "NOK"});
        longest["creditorAccount"] = json!({"bban": one.repeat(30), "currency": "NOK"});
        longest["remittanceInformationUnstructured"] = json!(one.repeat(140));
        longest["regulatoryReportingInformation"] = json!(one.repeat(140));
        accepted(&gate, &cross_border(&longest));
        for member in ["creditorAccount.bban", "debtorAccount.bban"] {
            let (account, _) = member.split_once('.').unwrap();
            let mut longer = longest.clone();
            longer[account]["bban"] = json!(one.repeat(31));
            refused_for(&gate, &cross_border(&longer), "FORMAT_ERROR", &[member]);
        }
    }
    // The longest IBAN, and one of each structure.
    for iban in [
        "RU0304452522540817810538091310419",
        "MT84MALT011000012345MTLCAST001S",
    ] {
        let account = json!({"iban": iban, "currency": "EUR"});
        accepted(&gate, &cross_border(&changed("debtorAccount", account)));
    }
}

/// An operation that a bank adds is judged by the schema in its file; it initiates a payment, so the headers of HDR-5 are required.
#[test]
fn an_operators_own_operation_with_a_schema() {
    let cards = "operations:\n- {name: pay, method: POST, path: /v1/pay, role: PSP_PI, group: payments, schema: cross-border-payment}\n";
    let gate = Gate::builder()
        .file("operations.yaml", cards)
        .line("operations: operations.yaml")
        .start();
    let pay = |body: &Value| {
        let call = Call::new("POST", "/v1/pay").of_psu().present();
        call.json(&body.to_string())
    };
    accepted(&gate, &pay(&payment()));
    refused_for(
        &gate,
        &pay(&changed("creditorName", json!(null))),
        "FORMAT_ERROR",
        &["creditorName"],
    );
}
