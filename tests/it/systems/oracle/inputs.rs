//! Generated inputs: mostly valid, with changes that parsers interpret differently.

use super::{
    Kind,
    admitted::{names, paths},
};
use crate::harness::Dice;
use std::fmt::Write;

/// One input.
pub(super) fn make(kind: Kind, dice: &mut Dice) -> Vec<u8> {
    match kind {
        Kind::Body => body(dice),
        Kind::Query => query(dice).into_bytes(),
        Kind::Path => path(dice).into_bytes(),
        Kind::Host => host(dice).into_bytes(),
        Kind::ContentType => content_type(dice),
    }
}

fn pick<'a, T: ?Sized>(dice: &mut Dice, all: &[&'a T]) -> &'a T {
    let at = dice.below(all.len() as u64);
    all[at as usize]
}

/// Characters that fold to letters, or resemble them.
const LIKE: [(char, &str); 14] = [
    ('s', "ſ"),
    ('k', "\u{212a}"),
    ('i', "ı"),
    ('i', "İ"),
    ('i', "ⅰ"),
    ('i', "\u{456}"),
    ('a', "ａ"),
    ('a', "\u{430}"),
    ('a', "ⓐ"),
    ('m', "𝐦"),
    ('n', "ⁿ"),
    ('d', "ｄ"),
    ('o', "º"),
    ('e', "é"),
];

/// Characters that are invisible in a name, or end it.
const UNSEEN: [&str; 14] = [
    "\u{200b}",
    "\u{ad}",
    "\u{feff}",
    "\u{2060}",
    "\u{fe0f}",
    "\u{e0061}",
    "\0",
    "\u{1}",
    "\u{7f}",
    "\u{85}",
    "\u{202e}",
    " ",
    "\u{a0}",
    "\u{301}",
];

/// A name that resembles another one.
fn nearly(dice: &mut Dice, name: &str) -> String {
    let mut letters: Vec<String> = name.chars().map(String::from).collect();
    letters.extend(name.is_empty().then(|| "x".to_owned()));
    for _ in 0..=dice.below(2) {
        let at = dice.below(letters.len() as u64) as usize;
        match dice.below(8) {
            0 | 1 => {
                letters[at] = match letters[at].chars().all(char::is_uppercase) {
                    true => letters[at].to_lowercase(),
                    false => letters[at].to_uppercase(),
                }
            }
            2 => {
                let (plain, like) = LIKE[dice.below(LIKE.len() as u64) as usize];
                if let Some(letter) = letters.iter_mut().find(|one| **one == plain.to_string()) {
                    *letter = like.to_owned();
                }
            }
            3 => letters.insert(at, pick(dice, &UNSEEN).to_owned()),
            4 => letters.push(pick(dice, &UNSEEN).to_owned()),
            5 => letters.insert(
                0,
                pick(dice, &["_", "-", ".", "x.", "!", "$", "[", "x["]).to_owned(),
            ),
            6 => {
                letters.push(pick(dice, &["[]", "]", "[0]", ".x", "_", "s", ".", "\\"]).to_owned())
            }
            _ => letters.insert(at, pick(dice, &["_", "-", ".", " ", "x"]).to_owned()),
        }
    }
    letters.concat()
}

/// A JSON string with unnecessary escapes.
fn quoted(dice: &mut Dice, text: &str) -> String {
    let often = [2, 10, 1_000][dice.below(3) as usize];
    let mut quoted = String::from("\"");
    for character in text.chars() {
        let mut units = [0; 2];
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '/' if dice.one_in(2) => quoted.push_str("\\/"),
            character if character < ' ' || dice.one_in(often) => {
                for unit in character.encode_utf16(&mut units) {
                    let _ = match dice.one_in(2) {
                        true => write!(quoted, "\\u{unit:04x}"),
                        false => write!(quoted, "\\u{unit:04X}"),
                    };
                }
            }
            character => quoted.push(character),
        }
    }
    quoted + "\""
}

const NUMBERS: [&str; 16] = [
    "0",
    "-0",
    "1",
    "-0.0",
    "1e3",
    "1E+3",
    "1.5e-7",
    "123456789012345678901234567890",
    "0.1e1",
    "1.0",
    "9007199254740993",
    "1e-300",
    "01",
    "+1",
    ".5",
    "1.",
];

const ODD: [&str; 8] = [
    "NaN",
    "Infinity",
    "'a'",
    "undefined",
    "True",
    "/**/1",
    "[1,]",
    "0x1",
];

/// Any value, as text.
fn value(dice: &mut Dice, depth: u64) -> String {
    match dice.below(if depth > 3 { 6 } else { 9 }) {
        0 => pick(dice, &["true", "false", "null"]).to_owned(),
        1 | 2 => {
            let most = if dice.one_in(6) { 16 } else { 12 };
            pick(dice, &NUMBERS[..most]).to_owned()
        }
        3 if dice.one_in(12) => pick(dice, &ODD).to_owned(),
        3..=5 => {
            let text = text(dice);
            quoted(dice, &text)
        }
        6 => {
            let values: Vec<_> = (0..dice.below(3)).map(|_| value(dice, depth + 1)).collect();
            format!("[{}]", values.join(","))
        }
        7 if dice.one_in(3) => {
            let levels = 20 + dice.below(16) as usize;
            format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
        }
        _ => {
            let members: Vec<_> = (0..dice.below(3))
                .map(|_| {
                    let path = pick(dice, &paths());
                    let name = path.split('.').next_back().unwrap();
                    format!("{}:{}", quoted(dice, name), value(dice, depth + 1))
                })
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn text(dice: &mut Dice) -> String {
    let parts = [
        "Bær",
        "M",
        " ",
        "😀",
        "\u{e000}",
        "/",
        "\\",
        "\"",
        "é",
        "e\u{301}",
        "\u{2028}",
        "<b>",
        "'",
        "&amp;",
        "\u{fffd}",
        "ﬀ",
        "\u{10ffff}",
        "\u{d7ff}",
    ];
    let mut text: String = (0..=dice.below(4)).map(|_| pick(dice, &parts)).collect();
    if dice.one_in(30) {
        text.push_str(pick(dice, &UNSEEN));
    }
    text
}

/// Members by their names, each value as text.
type Object = Vec<(String, String)>;

fn written(dice: &mut Dice, object: &Object) -> String {
    let members: Vec<_> = object
        .iter()
        .map(|(name, value)| {
            let space = pick(dice, &["", "", "", " ", "\n", "\t\r"]);
            format!("{space}{}{space}:{space}{value}", quoted(dice, name))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn object(dice: &mut Dice, members: &[(&str, &str)]) -> String {
    let quoted =
        |dice: &mut Dice, (name, text): &(&str, &str)| ((*name).to_owned(), quoted(dice, text));
    let mut members: Object = members.iter().map(|member| quoted(dice, member)).collect();
    if dice.one_in(8) {
        spoil(dice, &mut members);
    }
    written(dice, &members)
}

/// One construct that parsers interpret differently.
fn spoil(dice: &mut Dice, members: &mut Object) {
    let known = members[dice.below(members.len() as u64) as usize].0.clone();
    let at = dice.below(members.len() as u64 + 1) as usize;
    let any = value(dice, 0);
    match dice.below(6) {
        0 | 1 => {
            let name = nearly(dice, &known);
            members.insert(at, (name, any));
        }
        2 => {
            let (name, value) = members[dice.below(members.len() as u64) as usize].clone();
            let name = nearly(dice, &name);
            members.insert(at, (name, value));
        }
        3 => {
            let name = if dice.one_in(4) { known } else { text(dice) };
            members.insert(at, (name, any));
        }
        4 => {
            let name = pick(
                dice,
                &[
                    "__proto__",
                    "constructor",
                    "toString",
                    "",
                    "$ref",
                    "@type",
                    "class",
                    "a.b",
                    "instructedAmount.amount",
                ],
            );
            members.insert(at, (name.to_owned(), any));
        }
        _ => {
            let place = dice.below(members.len() as u64) as usize;
            members[place].1 = any;
        }
    }
}

fn body(dice: &mut Dice) -> Vec<u8> {
    let mut members = if dice.one_in(5) {
        basket(dice)
    } else {
        payment(dice)
    };
    for _ in 0..dice.below(3) {
        spoil(dice, &mut members);
    }
    if dice.one_in(2) {
        let turn = dice.below(members.len() as u64) as usize;
        members.rotate_left(turn);
    }
    let mut bytes = written(dice, &members).into_bytes();
    if dice.one_in(12) {
        let odd: [&[u8]; 12] = [
            b"\xef\xbb\xbf",
            b" ",
            b"\n",
            b"\x0c",
            b"\xc2\xa0",
            b"\xff",
            b"\xed\xa0\x80",
            b"\xc0\xaf",
            b"//x\n",
            b",",
            b"\0",
            b"{}",
        ];
        let odd = pick(dice, &odd);
        let at = match dice.below(3) {
            0 => 0,
            1 => bytes.len(),
            _ => dice.below(bytes.len() as u64) as usize,
        };
        bytes.splice(at..at, odd.iter().copied());
    }
    bytes
}

fn payment(dice: &mut Dice) -> Object {
    let amounts = [
        "1.00",
        "100000.00",
        "0.01",
        "99999.99",
        "1",
        "1e2",
        "1.0",
        "1.00\0",
        "１.00",
        " 1.00",
        "1.000",
    ];
    let most = if dice.one_in(8) { 11 } else { 4 };
    let amount = pick(dice, &amounts[..most]);
    let currency = pick(dice, &["EUR", "NOK", "SEK"]);
    let mut members = vec![
        (
            "instructedAmount",
            object(dice, &[("amount", amount), ("currency", currency)]),
        ),
        (
            "creditorAccount",
            object(
                dice,
                &[("iban", "DE89370400440532013000"), ("currency", "EUR")],
            ),
        ),
        (
            "debtorAccount",
            object(dice, &[("bban", "86011117947"), ("currency", "NOK")]),
        ),
    ];
    let name = text(dice);
    members.push(("creditorName", quoted(dice, &name)));
    if dice.one_in(2) {
        let city = text(dice);
        let address = object(dice, &[("country", "NO"), ("city", &city)]);
        members.push(("creditorAddress", address));
    }
    if amount == "100000.00" || dice.one_in(4) {
        members.push(("regulatoryReportingCode", quoted(dice, "14")));
        let information = text(dice) + "\n";
        members.push(("regulatoryReportingInformation", quoted(dice, &information)));
    }
    if dice.one_in(3) {
        let remittance = text(dice);
        members.push((
            "remittanceInformationUnstructured",
            quoted(dice, &remittance),
        ));
    }
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn basket(dice: &mut Dice) -> Object {
    let ids: Vec<_> = (0..=dice.below(4))
        .map(|number| {
            let id = format!("{number}{}", text(dice));
            quoted(dice, &id)
        })
        .collect();
    vec![("paymentIds".to_owned(), format!("[{}]", ids.join(",")))]
}

/// Percent-encodes the necessary characters, and some others.
fn encoded(dice: &mut Dice, text: &str) -> String {
    let often = [3, 20, 1_000][dice.below(3) as usize];
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' if dice.one_in(2) => encoded.push('+'),
            byte if byte.is_ascii_graphic() && byte != b'%' && !dice.one_in(often) => {
                encoded.push(char::from(byte));
            }
            byte => {
                let _ = match dice.one_in(2) {
                    true => write!(encoded, "%{byte:02x}"),
                    false => write!(encoded, "%{byte:02X}"),
                };
            }
        }
    }
    encoded
}

fn query(dice: &mut Dice) -> String {
    let mut query = String::new();
    for _ in 0..=dice.below(4) {
        let piece = piece(dice);
        query.push_str(&piece);
        query.push_str(match dice.below(40) {
            0 => ";",
            1 => "&&",
            2 => "?",
            3 => "&amp;",
            4 => "%26",
            5 => "%3B",
            _ => "&",
        });
    }
    query.pop();
    query
}

fn piece(dice: &mut Dice) -> String {
    let known = pick(dice, &names());
    let value = match dice.below(12) {
        0 => "",
        1 => "x",
        2 => "a&dateFrom=2000-01-01",
        3 => "2026-02-30",
        4 => "a;limit=5",
        5 => "a=b=c",
        6 => "\u{2028}é",
        _ => match known {
            "dateFrom" | "fromDate" => "2026-01-01",
            "dateTo" | "toDate" => "2026-01-31",
            "bookingStatus" => "both",
            "offset" | "limit" => "7",
            _ => "true",
        },
    };
    let name = match dice.below(8) {
        0 | 1 => nearly(dice, known),
        2 => pick(
            dice,
            &["x", "page", "q", "", "&", "a=b", "a b", "é", "%64ateFrom"],
        )
        .to_owned(),
        _ => known.to_owned(),
    };
    let value = encoded(dice, value);
    match dice.below(20) {
        0 => encoded(dice, &name),
        1 => format!("{}%3D{value}", encoded(dice, &name)),
        2 => format!("{}=={value}", encoded(dice, &name)),
        _ => format!("{}={value}", encoded(dice, &name)),
    }
}

fn path(dice: &mut Dice) -> String {
    let id = |dice: &mut Dice| {
        let parts = ["acc-9", "a", "7", ".", "~", ":", "_", "NO93", "-", "x"];
        let mut id: String = (0..=dice.below(4)).map(|_| pick(dice, &parts)).collect();
        if dice.one_in(3) {
            let odd = [
                "@", "+", ",", "=", "!", "$", "&", "'", "(", ")", "*", "\"", "<", "{", "^", "|",
                "`", " ", "%", ";", "?", "#", "/", "\\", "é", "\u{feff}", "\0", "..", "\n", "[",
                "]",
            ];
            id.push_str(pick(dice, &odd));
        }
        encoded(dice, &id)
    };
    let (one, other) = (id(dice), id(dice));
    match dice.below(8) {
        0 => "/v1/accounts".to_owned(),
        1 => format!("/v1/accounts/{one}/balances"),
        2 => format!("/v1/accounts/{one}/transactions"),
        3 => format!("/v1/accounts/{one}/transactions/{other}"),
        4 => format!("/v1/signing-baskets/{one}"),
        5 => format!("/v1/payments/norwegian-domestic-credit-transfers/{one}/status"),
        6 => format!("/v1/sandbox/accounts/{one}/transactions"),
        _ => encoded(dice, "/v1/accounts/acc-9/balances"),
    }
}

fn host(dice: &mut Dice) -> String {
    let hosts = [
        "tpp.example",
        "TPP.example",
        "a-b.tpp.example",
        "localhost",
        "127.0.0.1",
        "192.0.2.7",
        "[2001:db8::7]",
        "[2001:DB8:0:0::7]",
        "[::1]",
        "tpp.example.",
        "xn--bcher-kva.example",
        "1.2.3",
        "0x7f.1",
        "010.0.0.1",
        "a_b.example",
        "bücher.example",
        "a..b",
        "-a.example",
        "256.1.1.1",
        "1.2.3.4.5",
        "[::ffff:192.0.2.7]",
        "[fe80::1%25eth0]",
        "tpp%2eexample",
        "tpp.example%00.evil.example",
        "evil.example\\",
        "user@evil.example",
        "a.1",
        "1e3",
        "tpp。example",
    ];
    let most = if dice.one_in(3) { hosts.len() } else { 9 };
    let host = pick(dice, &hosts[..most]);
    let port = pick(
        dice,
        &[
            "", "", "", ":443", ":8443", ":", ":0", ":65535", ":65536", ":08443", ":+1",
        ],
    );
    // The values of a Host header from which a core would build a link.
    if dice.one_in(3) {
        let before = pick(dice, &["", "", "", "h", "1.", "u@", " ", "a,"]);
        let behind = pick(
            dice,
            &[
                "", "", "", ".", " ", "\t", ",b", ";b", "\\", "?", "#", "%20",
            ],
        );
        let number = dice.below(10_000);
        let name = if dice.one_in(2) {
            format!("n{number}.")
        } else {
            String::new()
        };
        return format!("https://{before}{name}{host}{port}{behind}/");
    }
    let rest = pick(
        dice,
        &[
            "",
            "/",
            "/back",
            "?x=1",
            "/?x=@evil.example",
            "/a/../b",
            "//evil.example",
            "/\\evil.example",
            "#x",
            "/%2e%2e",
            ";x",
        ],
    );
    let scheme = pick(
        dice,
        &[
            "https://",
            "https://",
            "https://",
            "HTTPS://",
            "https:",
            "https:///",
            "https:\\\\",
            " https://",
        ],
    );
    let number = dice.below(100_000);
    format!("{scheme}{host}{port}{rest}").replacen("back", &format!("back{number}"), 1)
}

/// A Content-Type: a type, and up to three parameters, of which some resemble charset.
fn content_type(dice: &mut Dice) -> Vec<u8> {
    let types = [
        "application/json",
        "application/json",
        "Application/JSON",
        "application/vnd.bank+json",
        "application/x charset=utf-7+json",
        "application/json (x)",
        "text/json",
    ];
    let names = [
        "charset",
        "charset",
        "Charset",
        "charset*",
        "charset*0",
        "charset*0*",
        "charset*1",
        "xcharset",
        "version",
        "profile",
        "x-charset",
        "boundary",
        "q",
    ];
    let values = [
        "utf-8",
        "utf-8",
        "UTF-8",
        "utf8",
        "utf-7",
        "utf-8''utf-7",
        "1",
        "x",
        "=?utf-7?Q?x?=",
        "a;charset=utf-7",
        "a, b",
        "utf\\-7",
        "a charset=utf-7",
        "",
    ];
    let mut text = pick(dice, &types).to_owned();
    for _ in 0..dice.below(4) {
        text += pick(dice, &[";", "; ", " ; ", ";;", ";\t", ",", " "]);
        text += pick(dice, &names);
        text += pick(dice, &["=", "=", "=", " = ", ""]);
        let value = pick(dice, &values);
        match dice.below(3) {
            0 => {
                let _ = write!(text, "\"{value}\"");
            }
            _ => text += value,
        }
    }
    if dice.below(8) == 0 {
        let at = dice.below(text.len() as u64) as usize;
        text.insert_str(at, pick(dice, &UNSEEN));
    }
    text.into_bytes()
}
