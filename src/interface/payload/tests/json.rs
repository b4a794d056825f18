//! PAY-1: texts that are one JSON value, and texts that are not.

use super::*;

fn why(body: &[u8]) -> String {
    wrong(body, Schema::Any).join(" | ")
}

#[test]
fn json() {
    let deepest = format!("{}1{}", "[".repeat(32), "]".repeat(32));
    let digits = format!("[-{0}.{0}e+{0}]", "7".repeat(10_000));
    let names: Vec<_> = (0..3_000).map(|n| format!("\"{n}\":{{}}")).collect();
    let many = format!("{{{}}}", names.join(","));
    for good in [
        "{}",
        "[]",
        "0",
        "-0.0E-1",
        "true",
        " \t\r\n[ null , false ]\n",
        r#"{"a":{"a":[{"a":1},{"a":2}]},"A":1,"":2}"#,
        r#""\"\\\/\u00e6\uD83D\ude00 æ😀""#,
        r#"{"regulatoryReportingInformation":"\n\r\t"}"#,
        "\"\u{a0}\u{2028}\"",
        &deepest,
        &digits,
        &many,
    ] {
        assert_eq!(why(good.as_bytes()), "", "{good:.80}");
    }
}

#[test]
fn what_is_not_json() {
    let nested = "[".repeat(33);
    let objects = "{\"a\":".repeat(33);
    let hostile = "[".repeat(64 * 1024);
    let table = [
        ("", "there is no JSON value"),
        (" \n ", "there is no JSON value"),
        ("\u{feff}{}", "byte order mark"),
        ("{} {}", "behind the JSON value"),
        ("{},", "behind the JSON value"),
        ("01", "no leading zero"),
        ("<a/>", "a JSON value must stand here"),
        ("nul", "a JSON value must stand here"),
        ("True", "a JSON value must stand here"),
        ("NaN", "its only words are true"),
        ("+1", "a number begins with a digit"),
        ("'a'", "double quotation marks"),
        ("[1,]", "a comma stands before it"),
        ("[1 2]", "a comma or ]"),
        ("[1", "a comma or ] must stand here, and the body ends"),
        ("[", "must stand here, and the body ends"),
        ("{", "must stand here, and the body ends"),
        ("{a:1}", "the name of a member"),
        ("{\"a\":1,}", "a comma stands before it"),
        ("{\"a\" 1}", "a colon"),
        (
            "{\"a\":1",
            "a comma or } must stand here, and the body ends",
        ),
        ("{\"a\":/**/1}", "JSON has no comments"),
        ("-", "a digit"),
        ("1.", "a digit"),
        (".5", "a JSON value must stand here"),
        ("1e", "a digit"),
        ("\"a", "a string has no end"),
        ("\"a\\", "no such escape"),
        ("\"\\x41\"", "no such escape"),
        ("\"\\u12g4\"", "four hexadecimal digits"),
        ("\"\\u12", "four hexadecimal digits"),
        ("\"\\u+123\"", "four hexadecimal digits"),
        ("\"a\nb\"", "a control character"),
        ("\"a\0b\"", "a control character"),
        (r#""\ud800""#, "half of a surrogate pair"),
        (r#""\udc00""#, "half of a surrogate pair"),
        (r#""\ud83d\ud83d""#, "half of a surrogate pair"),
        (r#""\ud83d\n""#, "half of a surrogate pair"),
        (r#"{"\ud800":1}"#, "half of a surrogate pair"),
        (r#"{"a":1,"a":1}"#, "of this name"),
        (r#"{"a":1,"\u0061":1}"#, "of this name"),
        (r#"[{"b":{"a":1,"c":2,"a":3}}]"#, "of this name"),
        (&nested, "more than 32"),
        (&objects, "more than 32"),
        (&hostile, "more than 32"),
    ];
    for (bad, expected) in table {
        let why = why(bad.as_bytes());
        assert!(
            why.starts_with("payload-malformed: ") && why.contains(expected),
            "{bad:.80}: {why}"
        );
    }
}

/// A repeated name is found, however many members the object has.
#[test]
fn a_name_that_stands_twice_among_many() {
    for count in [2, 15, 16, 17, 18, 40, 5_000] {
        for repeated in [0, count / 2, count - 1] {
            let mut names: Vec<_> = (0..count)
                .map(|n| format!("\"{n}\":[{{\"0\":1}}]"))
                .collect();
            let good = format!("{{{}}}", names.join(","));
            assert_eq!(why(good.as_bytes()), "");
            names.push(format!("\"{repeated}\":1"));
            let bad = format!("{{{}}}", names.join(","));
            assert!(
                why(bad.as_bytes()).contains("of this name"),
                "{count} {repeated}"
            );
        }
    }
}

/// Two names are the same if their characters are, however they are written.
#[test]
fn an_escape_is_the_character_that_it_writes() {
    let why = |one: &str, other: &str| why(format!(r#"{{"{one}":1,"{other}":2}}"#).as_bytes());
    let escapes = [
        (r"\b", r"\u0008"),
        (r"\f", r"\u000c"),
        (r"\n", r"\u000A"),
        (r"\r", r"\u000d"),
        (r"\t", r"\u0009"),
        (r#"\""#, r"\u0022"),
        (r"\\", r"\u005C"),
        ("/", r"\/"),
        ("æ", r"\u00e6"),
        ("\u{fedc}", r"\uFEdc"),
        ("\u{10000}", r"\ud800\udc00"),
        ("😀", r"\ud83d\ude00"),
        ("\u{10ffff}", r"\uDBFF\uDFFF"),
    ];
    for (index, (one, other)) in escapes.into_iter().enumerate() {
        assert!(why(one, other).contains("of this name"), "{one} {other}");
        for (another, _) in escapes.into_iter().skip(index + 1) {
            let said = why(other, another);
            assert!(!said.contains("of this name"), "{other} {another}");
        }
    }
}

#[test]
fn what_is_not_utf8() {
    let name = b"{\n \"creditorName\": \"B\xe6r\"}";
    assert_eq!(
        why(name),
        "payload-malformed: line 2, column 20: this is not UTF-8"
    );
    for bad in [
        &b"\xff"[..],
        b"\"\xed\xa0\x80\"",
        b"\"\xc0\x80\"",
        b"\"\xf5\x80\x80\x80\"",
        b"\xef\xbb",
    ] {
        assert!(why(bad).contains("not UTF-8"), "{bad:?}");
    }
    for (bad, known) in [
        (&b"\x1f\x8b\x08"[..], "gzip"),
        (b"\xff\xfe{\0}\0", "UTF-16"),
        (b"\xfe\xff\0{\0}", "UTF-16"),
    ] {
        assert!(why(bad).contains(known), "{bad:?}");
    }
}

#[test]
fn a_fault_is_found_by_line_and_column() {
    let why = why(b"{\"a\": 1,\n\n  \"b\" 2}");
    assert_eq!(
        why,
        "payload-malformed: line 3, column 7: a colon must stand here"
    );
}
