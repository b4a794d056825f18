//! Registers by a mapping: CSV and JSON, and what is refused.

use super::*;
use crate::register::{RegisterSettings, Registers};

const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);

fn column(name: &str) -> Origin {
    Origin::Column(name.to_owned())
}

fn constant(text: &str) -> Origin {
    Origin::Constant(text.to_owned())
}

/// The mapping of a national register.
fn national(format: MappedFormat) -> Mapping {
    Mapping {
        format,
        origins: vec![
            (Member::Country, constant("no")),
            (Member::Authority, constant("FSA")),
            (Member::Id, column("ORGNR")),
            (Member::Roles, column("ROLES")),
            (Member::Countries, column("WHERE")),
            (Member::Status, column("STATUS")),
            (Member::Changed, column("CHANGED")),
        ],
        list_separator: "|".to_owned(),
        authorised: vec!["Active".to_owned()],
        everywhere: vec!["EEA".to_owned()],
        roles: vec![("PIS".to_owned(), 2), ("AIS".to_owned(), 3)],
        date: "%d.%m.%Y".to_owned(),
        max_age: None,
        withdrawn: WhenWithdrawn::Refuse,
    }
}

fn csv() -> Mapping {
    national(MappedFormat::Csv { separator: b';' })
}

fn json() -> Mapping {
    national(MappedFormat::Json {
        records: Some("institutions".to_owned()),
    })
}

fn read(mapping: &Mapping, text: &str) -> Result<Registers, String> {
    let mut registers = Registers::new(RegisterSettings::default());
    let name = crate::register::RegisterName::new("national");
    let taken = registers.take_mapped(name, mapping, text.as_bytes(), NOW);
    taken.map_err(|fault| fault.to_string())?;
    Ok(registers)
}

fn listed(registers: &Registers, id: &str) -> Option<Listing> {
    registers.each()[0].find(&TppId::parse(id).unwrap())
}

const ROWS: &str = "\u{feff}NAME;ORGNR;ROLES;WHERE;STATUS;CHANGED\r\n\
    \"A; B AS\";123 456;PIS|AIS|XX;NO|SE;active;01.02.2026\r\n\
    C;222;AIS;EEA;Active;15.03.2026\r\n\
    D;333;PIS;SE;Active;\r\n\
    E;444;PIS;NO;Withdrawn;01.01.2020\r\n\
    F;;PIS;NO;Active;01.01.2020\r\n";

const RECORDS: &str = r#"{"made": "x", "institutions": [
    {"ORGNR": "123 456", "ROLES": ["PIS", "AIS", "XX"], "WHERE": "NO|SE", "STATUS": "active", "CHANGED": "01.02.2026"},
    {"ORGNR": 222, "ROLES": "AIS", "WHERE": ["EEA"], "STATUS": "Active", "CHANGED": "15.03.2026"},
    {"ORGNR": "333", "ROLES": "PIS", "WHERE": "SE", "STATUS": "Active", "CHANGED": null},
    {"ORGNR": "444", "ROLES": "PIS", "WHERE": "NO", "STATUS": "Withdrawn"},
    {"ROLES": "PIS", "WHERE": "NO", "STATUS": "Active"}]}"#;

#[test]
fn csv_and_json_say_the_same() {
    let (ai, pi, none) = (
        Roles::default().with(3),
        Roles::default().with(2),
        Roles::default(),
    );
    let entry = |here, elsewhere, authorised| {
        Some(Listing {
            here,
            elsewhere,
            authorised,
        })
    };
    for (registers, dated) in [(read(&csv(), ROWS), 4), (read(&json(), RECORDS), 2)] {
        let registers = registers.unwrap();
        let of = |id: &str| listed(&registers, &format!("PSDNO-FSA-{id}"));
        assert_eq!(of("123456"), entry(ai.or(pi), none, true));
        assert_eq!(of("222"), entry(ai, none, true));
        assert_eq!(of("333"), entry(none, pi, true));
        assert_eq!(of("444"), entry(none, none, false));
        assert_eq!(of("999"), None);
        let register = &registers.each()[0];
        assert_eq!(register.as_of().to_string(), "2026-03-15T00:00:00Z");
        let counts = FileCounts {
            institutions: 5,
            agents: 0,
            without_identity: 1,
            authorised: 3,
            with_role: 2,
            dated,
        };
        assert_eq!(register.counts(), counts);
        assert_eq!(register.unknown_roles(), ["XX"]);
        assert_eq!(register.len(), 4);
    }
}

#[test]
fn the_whole_identity_and_constants() {
    let mapping = Mapping {
        origins: vec![
            (Member::Tpp, column("entity.code")),
            (Member::Roles, constant("PIS|AIS")),
        ],
        ..national(MappedFormat::Json { records: None })
    };
    let registers = read(
        &mapping,
        r#"[{"entity": {"code": "psdno-fsa-1"}}, {"entity": null}]"#,
    );
    let registers = registers.unwrap();
    let found = listed(&registers, "PSDNO-FSA-1").unwrap();
    assert!(found.authorised && found.here.payment_initiation());
    assert_eq!(registers.each()[0].as_of(), NOW);
}

#[test]
fn what_is_not_the_register_is_refused() {
    let header = "ORGNR;ROLES;WHERE;STATUS;CHANGED\n";
    let long = format!("{header}1;{}", "x".repeat(70_000));
    for (text, expected) in [
        ("", "it is empty"),
        ("PK\u{3}\u{4}", "it is a zip archive"),
        ("<html>", "it is a page of HTML"),
        (
            "ORGNR;ROLES\n1;PIS\n",
            "there is no column \"WHERE\"; the columns are ORGNR, ROLES",
        ),
        (
            "ORGNR;ORGNR;ROLES;WHERE;STATUS;CHANGED\n",
            "the column \"ORGNR\" stands twice",
        ),
        (
            &format!("{header}1;PIS;NO\n"),
            "line 2: it has 3 fields, and the first line has 5: compare separator",
        ),
        (
            &format!("{header};PIS;NO;Active;\n"),
            "none of its 1 rows has an identity",
        ),
        (
            &format!("{header}1;PIS;NO;Active;2026-03-15\n"),
            "no row has a date of the form \"%d.%m.%Y\"; one is \"2026-03-15\"",
        ),
        (&long, "line 2: it is longer than 65536 bytes"),
        // A quote that does not end would take a withdrawal with it.
        (
            &format!("{header}9;\"PIS;NO;Active;\n1;PIS;NO;Withdrawn;\n8;\"PIS\";NO;Active;\n"),
            "line 2: a quoted field does not end in its line",
        ),
        (
            &format!("{header}9;\"PIS\"x;NO;Active;\n"),
            "line 2: text follows the closing quote of a field",
        ),
    ] {
        let fault = read(&csv(), text).unwrap_err();
        assert!(fault.starts_with(expected), "{fault}");
    }
    for (text, expected) in [
        (
            "[]",
            "it is not a list of objects as the mapping says: invalid type",
        ),
        (
            "{}",
            "it is not a list of objects as the mapping says: there is no member \"institutions\"",
        ),
        (
            r#"{"institutions": [], "institutions": []}"#,
            "it is not a list of objects as the mapping says: the member \"institutions\" stands twice",
        ),
        (r#"{"institutions": [1]}"#, "it is not a list of objects"),
        (
            r#"{"institutions": [{"ORGNR": "1", "ROLES": "PIS", "WHERE": "NO", "CHANGED": ""}]}"#,
            "no record has the member \"STATUS\": compare columns",
        ),
    ] {
        let fault = read(&json(), text).unwrap_err();
        assert!(fault.starts_with(expected), "{fault}");
    }
}

#[test]
fn a_gzip_archive_is_to_be_unpacked() {
    for mapping in [csv(), json()] {
        let mut registers = Registers::new(RegisterSettings::default());
        let name = crate::register::RegisterName::new("national");
        let gzip: &[u8] = &[0x1f, 0x8b, 8, 0];
        let fault = registers.take_mapped(name, &mapping, gzip, NOW);
        let text = fault.unwrap_err().to_string();
        assert_eq!(text, "it is a gzip archive: unpack the file in it");
    }
}

/// What has another shape than the mapping says must not read as an empty text, which can mean an authorisation.
#[test]
fn another_shape_is_no_empty_text() {
    let mapping = |path: &str| Mapping {
        origins: vec![
            (Member::Tpp, column("tpp")),
            (Member::Status, column(path)),
            (Member::Roles, constant("AIS")),
        ],
        authorised: vec![String::new()],
        ..national(MappedFormat::Json { records: None })
    };
    let read_one = |path: &str, status: &str| {
        let good = r#"{"tpp": "PSDNO-FSA-2", "s": null, "s.date": ""}"#;
        let text = format!(r#"[{good}, {{"tpp": "PSDNO-FSA-1", "s": {status}}}]"#);
        read(&mapping(path), &text)
    };
    for (path, status, expected) in [
        (
            "s",
            r#"{"date": "x"}"#,
            "\"s\" is an object; a text is expected",
        ),
        (
            "s",
            r#"[{"date": "x"}]"#,
            "\"s\" is a list; one text is expected",
        ),
        (
            "s",
            r#"["", "Withdrawn"]"#,
            "\"s\" is a list; one text is expected",
        ),
        (
            "s.date",
            "\"x\"",
            "\"s.date\": what stands before \"date\" is no object",
        ),
        (
            "s.date",
            r#"[{"date": "x"}]"#,
            "\"s.date\": what stands before \"date\" is no object",
        ),
        (
            "s.date",
            "7",
            "\"s.date\": what stands before \"date\" is no object",
        ),
        (
            "s",
            r#""Withdrawn", "s": """#,
            "the member \"s\" stands twice",
        ),
        (
            "s.date",
            r#"{"date": "2026-01-31", "date": null}"#,
            "the member \"date\" stands twice",
        ),
    ] {
        let fault = read_one(path, status).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
    for (status, authorised) in [("null", true), ("\"\"", true), ("\"2026-01-31\"", false)] {
        let registers = read_one("s", status).unwrap();
        let found = listed(&registers, "PSDNO-FSA-1").unwrap();
        assert_eq!(found.authorised, authorised, "{status}");
    }
}
