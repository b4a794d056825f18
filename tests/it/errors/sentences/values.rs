//! ERR-10: the sentences about bodies, queries and headers.

use super::{case, check};
use crate::harness::{Call, Gate};

/// A cross-border payment with another value at this place.
fn payment(pointer: &str, value: &str) -> Call {
    let mut body = portvakt::interface::payload::describe::example();
    let members = body.as_object_mut().unwrap();
    members.insert("requestedExecutionDate".into(), "2040-01-01".into());
    *body.pointer_mut(pointer).unwrap() = value.into();
    Call::cross_border().json(&body.to_string())
}

//= ERR-10 refused
#[test]
fn of_a_body() {
    const FORM: &str = "payload-invalid";
    const IBAN: &str = "debtorAccount.iban";
    let iban = |text| payment("/debtorAccount/iban", text);
    let amount = |text| payment("/instructedAmount/amount", text);
    let never: &[&str] = &["11117", "8601"];
    check(
        &Gate::start(),
        vec![
            case(
                iban("XX9386011117947"),
                FORM,
                IBAN,
                &["XX is no country that has IBANs"],
                never,
            ),
            case(
                iban("no9386011117947"),
                FORM,
                IBAN,
                &["country stands in small letters"],
                never,
            ),
            case(
                iban("86011117947"),
                FORM,
                IBAN,
                &["does not begin with a country"],
                never,
            ),
            case(
                iban("NO938601111794"),
                FORM,
                IBAN,
                &["of NO has 15 characters; this one has 14"],
                never,
            ),
            case(
                iban("NO93 8601 1117 947"),
                FORM,
                IBAN,
                &["its character 5 is a blank"],
                &["11117", "8601", "has 15"],
            ),
            case(
                iban("NO9386011117948"),
                FORM,
                IBAN,
                &["its check digits do not fit"],
                never,
            ),
            case(
                iban("NO938601111794\u{f8}"),
                FORM,
                IBAN,
                &["character 15", "U+00F8, which is outside ASCII"],
                never,
            ),
            case(
                payment("/creditorAgent", "COBADEF"),
                FORM,
                "creditorAgent",
                &["8 or 11 characters", "has 7"],
                &["COBADEF"],
            ),
            case(
                payment("/creditorAgent", "COBA1EFFXXX"),
                FORM,
                "creditorAgent",
                &["5 and 6 of a BIC, the country", "character 5 is a digit"],
                &["COBA"],
            ),
            case(
                payment("/creditorAgent", "COBADEF\u{d8}"),
                FORM,
                "creditorAgent",
                &["its character 8 is U+00D8"],
                &["8 or 11"],
            ),
            case(
                amount("1,00"),
                FORM,
                "instructedAmount.amount",
                &["it has a comma"],
                &["exponent"],
            ),
            case(
                amount("-1.00"),
                FORM,
                "instructedAmount.amount",
                &["it has a sign"],
                &["comma"],
            ),
            case(
                amount("01.00"),
                FORM,
                "instructedAmount.amount",
                &["it has a leading zero"],
                &["comma"],
            ),
            case(
                payment("/instructedAmount/currency", "nok"),
                FORM,
                "instructedAmount.currency",
                &["stands in capitals"],
                &[],
            ),
            case(
                payment("/instructedAmount/currency", "XXX"),
                FORM,
                "instructedAmount.currency",
                &["XXX is not a currency"],
                &["capitals"],
            ),
            case(
                payment("/requestedExecutionDate", "2040-13-01"),
                FORM,
                "requestedExecutionDate",
                &["there is no such month"],
                &["yyyy"],
            ),
            case(
                payment("/requestedExecutionDate", "01.01.2040"),
                FORM,
                "requestedExecutionDate",
                &["its character 3 is '.'", "yyyy-mm-dd"],
                &[],
            ),
            case(
                payment("/creditorName", "A\u{202e}B"),
                FORM,
                "creditorName",
                &["it holds U+202E"],
                &["U+2066"],
            ),
            case(
                Call::payment().json(r#"{"a":1,}"#),
                "payload-malformed",
                "",
                &["line 1, column 8", "a comma stands before it"],
                &[],
            ),
            case(
                Call::payment().json(r#"{"a":01}"#),
                "payload-malformed",
                "",
                &["a number has no leading zero"],
                &["a comma"],
            ),
        ],
    );
}

fn list(query: &str) -> Call {
    Call::new("GET", &format!("/v1/accounts/42/transactions?{query}"))
        .with("PSU-IP-Address", "192.0.2.7")
}

//= ERR-10 refused
#[test]
fn of_a_query() {
    const FORM: &str = "query-malformed";
    check(
        &Gate::start(),
        vec![
            case(
                list("dateFrom=2026-02-30"),
                FORM,
                "dateFrom",
                &["no such day in that month"],
                &["yyyy"],
            ),
            case(
                list("dateFrom=2026-1-1"),
                FORM,
                "dateFrom",
                &["its character 7 is '-'"],
                &["no such"],
            ),
            case(
                list("dateFrom=%zz"),
                FORM,
                "dateFrom",
                &["at byte 0 stands a percent sign"],
                &["UTF-8"],
            ),
            case(
                list("dateFrom=%ff"),
                FORM,
                "dateFrom",
                &["are not UTF-8"],
                &["percent sign"],
            ),
            case(
                list("limit=0"),
                FORM,
                "limit",
                &["it is less than 1"],
                &["at byte"],
            ),
            case(
                list("limit=2147483648"),
                FORM,
                "limit",
                &["it is more than 2147483647"],
                &["at byte"],
            ),
            case(
                list("limit=1x"),
                FORM,
                "limit",
                &["at byte 1 stands a small letter"],
                &["less than"],
            ),
            case(
                list("bookingStatus=BOOKED"),
                FORM,
                "bookingStatus",
                &["another letter case"],
                &[],
            ),
            case(
                list("Limit=1"),
                FORM,
                "Limit",
                &["read this name as limit"],
                &["decode"],
            ),
            case(
                list("x=1%26limit=2"),
                FORM,
                "x",
                &["find the parameter limit in it"],
                &["read this name"],
            ),
            case(
                list("a%00=1"),
                FORM,
                "parameter 1",
                &["the control character U+0000"],
                &["UTF-8"],
            ),
        ],
    );
}

//= ERR-10 refused
#[test]
fn of_a_header() {
    const FORM: &str = "header-malformed";
    let digest = |value: &str| Call::payment().with("Digest", value);
    let with = |name: &str, value: &str| Call::accounts().with(name, value);
    check(
        &Gate::start(),
        vec![
            case(
                with("X-Request-ID", "x-request-\u{131}d"),
                FORM,
                "X-Request-ID",
                &["at byte 10 stands U+0131, which is outside ASCII"],
                &["128"],
            ),
            case(
                with("X-Request-ID", &"a".repeat(129)),
                FORM,
                "X-Request-ID",
                &["it has 129 characters"],
                &["ASCII"],
            ),
            case(
                with("PSU-ID", "{3f2504e0-4f89-41d3-9a0c-0305e82c3301}"),
                FORM,
                "PSU-ID",
                &["at byte 0 stands '{'"],
                &["3f2504e0"],
            ),
            case(
                with("PSU-ID", "3f2504e04f8941d39a0c0305e82c3301"),
                FORM,
                "PSU-ID",
                &["it has 32 characters"],
                &["3f2504e0"],
            ),
            case(
                with("PSU-IP-Address", "192.0.2.7:80"),
                FORM,
                "PSU-IP-Address",
                &["it has a port"],
                &["brackets", "192.0"],
            ),
            case(
                with("PSU-IP-Address", "[2001:db8::1]"),
                FORM,
                "PSU-IP-Address",
                &["without brackets"],
                &["has a port", "2001"],
            ),
            case(
                with("PSU-IP-Address", "192.0.2.07"),
                FORM,
                "PSU-IP-Address",
                &["leading zero"],
                &["has a port"],
            ),
            case(
                with("PSU-IP-Port", "65536"),
                FORM,
                "PSU-IP-Port",
                &["larger than 65535"],
                &["zero"],
            ),
            case(
                with("PSU-Context", "private"),
                FORM,
                "PSU-Context",
                &["another letter case"],
                &[],
            ),
            case(
                with("PSU-Geo-Location", "GEO:91,10"),
                FORM,
                "PSU-Geo-Location",
                &["its latitude"],
                &["its longitude"],
            ),
            case(
                with("TPP-Redirect-URI", "https://tpp.example/a b"),
                FORM,
                "TPP-Redirect-URI",
                &["at byte 21 stands a blank"],
                &["tpp.example"],
            ),
            case(
                with("TPP-Redirect-URI", "https://tpp.example/%zz"),
                FORM,
                "TPP-Redirect-URI",
                &["at byte 20 stands '%' without two"],
                &["percent-encode it"],
            ),
            case(
                with("TPP-Redirect-URI", "ftp://tpp.example/"),
                FORM,
                "TPP-Redirect-URI",
                &["its scheme is another one"],
                &[],
            ),
            case(
                with("TPP-Redirect-URI", "https://tpp.256/"),
                FORM,
                "TPP-Redirect-URI",
                &["ends in a number"],
                &[],
            ),
            case(
                with("x-accept-fix", "longer-names, Longer-Names"),
                FORM,
                "x-accept-fix",
                &["element 2 stands in another letter case"],
                &[],
            ),
            case(
                with("Date", "Sunday, 06-Nov-94 08:49:37 GMT"),
                FORM,
                "Date",
                &["the obsolete form of RFC 850"],
                &["weekday"],
            ),
            case(
                with("Date", "Mon, 06 Nov 1994 08:49:37 GMT"),
                FORM,
                "Date",
                &["its weekday is not that of the date"],
                &["obsolete"],
            ),
            case(
                digest("SHA-256=47DEQpj8HBSa-_TImW"),
                "digest-mismatch",
                "Digest",
                &[
                    "the hash after SHA-256=",
                    "at byte 12 stands '-', of base64url",
                ],
                &["bytes that were received"],
            ),
            case(
                digest("SHA-256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
                "digest-mismatch",
                "Digest",
                &["is hexadecimal"],
                &["e3b0"],
            ),
            case(
                digest("SHA-512=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
                "digest-mismatch",
                "Digest",
                &["has 32 bytes; SHA-512 has 64"],
                &[],
            ),
            case(
                digest("MD5=1B2M2Y8AsgTpgAmY7PhCfg=="),
                "digest-unsupported",
                "Digest",
                &["neither SHA-256= nor SHA-512="],
                &[],
            ),
            case(
                Call::payment().with("Content-Type", "application/json charset=utf-8"),
                "media-type-unsupported",
                "Content-Type",
                &["without a semicolon"],
                &[],
            ),
        ],
    );
}
