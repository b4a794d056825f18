//! What a `bundle.yaml` may say; whole bundles are in the tests of the gateway's configuration.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

// What contradicts itself.
mod contradictions;

use super::*;
use crate::qualification::{Assert, Criteria, Qualification};
use portvakt_base::clock::Timestamp;
use proptest::prelude::*;

/// A document as `portvakt-lists` writes it, with a list that is closed and an anchor for both uses.
const WHOLE: &str = "\
# Trust anchors from the EU's trusted lists, and where each comes from.
format: 2
made: 2026-07-16T08:00:00Z
as_of: 2026-07-16T08:00:00Z
list_of_lists:
  territory: EU
  operator: European Commission
  version: 6
  sequence: 388
  issued: 2026-07-01T07:00:00Z
  next_update: 2026-12-31T00:00:00Z
  sha256: 00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff
  signer: CN=one
  signer_sha256: 00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff
pivots:
- eu-lotl-pivot-341.xml
lists:
- territory: 'NO'
  operator: Nkom
  version: 6
  sequence: 60
  issued: 2026-07-01T07:00:00Z
  next_update: 2026-11-30T12:00:00Z
  sha256: 00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff
  signer: CN=two
  signer_sha256: 00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff
  services:
  - type: CA/QC
    state: granted
    count: 3
- territory: UK
  operator: closed
  version: 5
  sequence: 9
  issued: 2020-07-01T07:00:00Z
  next_update: null
  sha256: 00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff
  signer: CN=three
  signer_sha256: 00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff
missing:
- ES
anchors:
- sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  subject: CN=both
  not_after: 2030-01-01T00:00:00Z
  file: NO-aa.pem
  for:
  - seals
  - websites
  services:
  - territory: 'NO'
    provider: a provider
    service: a service
    granted_since: 2020-01-01T00:00:00Z
    for:
    - seals
    - websites
    qualifications:
    - qualifiers:
      - QCForESeal
      criteria:
        assert: all
- sha256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
  subject: CN=seal
  not_after: 2030-01-01T00:00:00Z
  file: NO-bb.pem
  for:
  - seals
  services:
  - territory: 'NO'
    provider: another provider
    service: another service
    granted_since: 2021-01-01T00:00:00Z
    for:
    - seals
named: []
left_out:
- territory: 'NO'
  provider: p
  service: s
  reason: r
end: true
";

/// What the lists withdrew stands at the end of the file: a document that was cut off there would trust it again.
//= CRT-13 refused
#[test]
fn a_document_that_is_cut_off() {
    assert!(BundleDocument::read(WHOLE).is_ok());
    let last = WHOLE.len() - "end: true\n".len();
    for (at, _) in WHOLE.match_indices('\n').filter(|(at, _)| *at < last) {
        assert!(BundleDocument::read(&WHOLE[..=at]).is_err(), "{at}");
    }
    let fault = BundleDocument::read(&WHOLE[..last])
        .unwrap_err()
        .to_string();
    assert!(fault.contains("missing field `end`"), "{fault}");
    let other = WHOLE.replace("end: true", "end: false");
    let fault = BundleDocument::read(&other).unwrap_err().to_string();
    assert!(fault.contains("expected end: true"), "{fault}");
}

//= CRT-8 accepted
#[test]
fn a_whole_document() {
    let read = BundleDocument::read(WHOLE).unwrap();
    assert_eq!(read.made.to_string(), "2026-07-16T08:00:00Z");
    assert_eq!(read.as_of, read.made);
    let names = |of| {
        let files = read.files(of);
        files.into_keys().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(Use::Seals), ["NO-aa.pem", "NO-bb.pem"]);
    assert_eq!(names(Use::Websites), ["NO-aa.pem"]);
    assert_eq!(read.files(Use::Seals)["NO-bb.pem"], "bb".repeat(32));
    let granted = ServiceEntry {
        territory: "NO".to_owned(),
        provider: "a provider".to_owned(),
        service: "a service".to_owned(),
        granted_since: Timestamp::from_unix(1_577_836_800),
        uses: Use::ALL.to_vec(),
        qualifications: vec![Qualification {
            qualifiers: vec!["QCForESeal".to_owned()],
            criteria: Criteria {
                assert: Assert::All,
                key_usages: Vec::new(),
                policies: Vec::new(),
                others: Vec::new(),
                nested: Vec::new(),
            },
        }],
    };
    assert_eq!(read.anchors[0].services, [granted]);
    assert_eq!(read.anchors[1].services.len(), 1);
    let least = "format: 2\nend: true\nnamed: []\nmade: 2026-07-16T08:00:00Z\nas_of: 2026-07-15T08:00:00Z\n\
        list_of_lists: {territory: EU, operator: o, version: 6, sequence: 1, issued: 2026-07-15T08:00:00Z, sha256: @, signer: x, signer_sha256: @}\n";
    let read = BundleDocument::read(&least.replace('@', &"0".repeat(64))).unwrap();
    assert_eq!(
        (read.list_of_lists.next_update, read.count(Use::Seals)),
        (None, 0)
    );
}

/// A later format may say the same things in another form: its fault has its line nevertheless.
//= CRT-8 refused
#[test]
fn another_format_has_its_line_whatever_follows() {
    let fault =
        BundleDocument::read("# of tomorrow\nformat: 3\nlists: 7\nanchors: x\n").unwrap_err();
    assert!(
        fault.to_string().contains("line 2: it has the format 3"),
        "{fault}"
    );
}

//= CRT-8 refused
#[test]
fn what_no_document_says() {
    for (from, to, expected) in [
        (
            "format: 2",
            "format: 3\nnews: x",
            "it has the format 3, and this version reads 2; import anew",
        ),
        (
            "format: 2",
            "format: 1",
            "it has the format 1, and this version reads 2; import anew",
        ),
        ("named: []\n", "", "named"),
        (
            "file: NO-bb.pem",
            "file: ../seals/NO-bb.pem",
            "it lists the file \"../seals/NO-bb.pem\", which is no name",
        ),
        (
            "- seals\n  - websites\n  services",
            "- seals\n  - seals\n  services",
            "it lists \"NO-aa.pem\" twice",
        ),
        ("format: 2\n", "", "format"),
        ("pivots:", "pivot:", "pivot"),
        ("  subject: CN=both\n", "", "subject"),
        ("for:\n  - seals\n  - websites", "for: [stamps]", "stamps"),
        ("    service: a service\n", "", "service"),
        (
            "granted_since: 2020",
            "granted_since: in 2020",
            "expected a time in UTC",
        ),
        ("provider: a provider", "provider: a\n    owner: b", "owner"),
        (
            "made: 2026-07-16T08:00:00Z",
            "made: today",
            "expected a time in UTC",
        ),
        (
            "next_update: 2026-12-31T00:00:00Z",
            "next_update: soon",
            "expected a time in UTC",
        ),
        ("NO-bb.pem", "NO-aa.pem", "it lists \"NO-aa.pem\" twice"),
        (
            "- territory: UK",
            "- territory: 'NO'",
            "it names the list of NO twice; an import names each list once",
        ),
        (
            "- territory: UK",
            "- territory: EU",
            "it names the list of EU twice",
        ),
        (
            "as_of: 2026-07-16T08:00:00Z",
            "as_of: 2026-07-16T08:00:01Z",
            "judged as of 2026-07-16T08:00:01Z, which is after it was made, at 2026-07-16T08:00:00Z",
        ),
        (
            "signer: CN=two",
            "signer: CN=two\n  signer: CN=four",
            "line 26: the key \"signer\" stands twice in one mapping",
        ),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        let fault = BundleDocument::read(&WHOLE.replacen(from, to, 1));
        let fault = fault.unwrap_err().to_string();
        assert!(fault.contains(expected), "{from}: {fault}");
    }
}

/// Values that no import writes are refused where they stand.
//= CRT-8 refused
#[test]
fn a_value_of_another_form_has_its_line() {
    let least = "expected the sequence number of a list, which is 1 or more";
    let territory = "expected a territory of two capital letters";
    let sha256 = "expected a SHA-256 of 64 hexadecimal digits";
    let other = WHOLE.replacen("territory: EU", "territory: DE", 1);
    let fault = BundleDocument::read(&other).unwrap_err().to_string();
    let expected = "line 6: its list of lists is that of DE; expected that of EU";
    assert_eq!(fault, expected);
    for (from, to, line, expected) in [
        ("sequence: 388", "sequence: 0", 9, least),
        ("sequence: 9", "sequence: -9", 34, "invalid u64"),
        (
            "version: 6",
            "version: 7",
            8,
            "expected the list version 5 or 6",
        ),
        ("territory: EU", "territory: EUROPA", 6, territory),
        ("- territory: UK", "- territory: uk", 31, territory),
        ("- ES\n", "- ESP\n", 41, territory),
        ("- sha256: aa", "- sha256: AA", 43, sha256),
        ("  signer_sha256: 00", "  signer_sha256: 0", 14, sha256),
        (
            "  - territory: 'NO'\n    provider: a p",
            "  - territory: N\n    provider: a p",
            51,
            territory,
        ),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        let fault = BundleDocument::read(&WHOLE.replacen(from, to, 1)).unwrap_err();
        let fault = fault.to_string();
        assert!(fault.contains(expected), "{from}: {fault}");
        assert!(fault.contains(&format!("line {line}")), "{from}: {fault}");
    }
}

//= CRT-8 refused
#[test]
fn what_is_no_document() {
    let inner = "{assert: all, nested: [".repeat(30) + &"]}".repeat(30);
    let deep = format!("        assert: all\n        nested: [{inner}]");
    let fault = BundleDocument::read(&WHOLE.replacen("        assert: all", &deep, 1));
    assert_eq!(
        fault.unwrap_err().to_string(),
        "line 63: mappings and lists are nested more than 64 deep, the most that is read; an import writes at most 8 levels of criteria"
    );
    for text in [
        "",
        "-",
        "[",
        "a\0b",
        "format: 2\n---\nformat: 2\n",
        "&a [*a, *a]",
    ] {
        let fault = BundleDocument::read(text).unwrap_err().to_string();
        assert!(fault.contains("line "), "{text:?}: {fault}");
    }
    let fault = BundleDocument::from_bytes(b"format: 2\n# \xff\n").unwrap_err();
    assert_eq!(fault.to_string(), "line 2: it is not UTF-8");
    assert!(BundleDocument::from_bytes(WHOLE.as_bytes()).is_ok());
}

/// Keys that the parser takes for different, though they are one field.
//= CRT-8 refused
#[test]
fn a_key_twice_under_other_tags_has_its_line() {
    for (from, to, line) in [
        ("format: 2", "!a format: 2\n!b format: 2", 2),
        ("format: 2", "format: 2\n!!binary Zm9ybWF0: 2", 3),
        ("format: 2", "format: 2\n? !a\n  format\n: 2", 4),
        ("named: []", "named: []\n!a named: []", 77),
        (
            "  signer: CN=two",
            "  signer: CN=two\n  !a signer: CN=four",
            26,
        ),
        (
            "  - territory: 'NO'\n",
            "  - !<a> territory: 'NO'\n    territory: 'NO'\n",
            51,
        ),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        let fault = BundleDocument::read(&WHOLE.replacen(from, to, 1)).unwrap_err();
        let fault = fault.to_string();
        assert!(
            fault.starts_with(&format!("line {line}: something has the tag")),
            "{to}: {fault}"
        );
    }
}

//= CRT-8 refused
#[test]
fn more_anchors_than_are_read() {
    let anchor = "- {sha256: #, subject: a, not_after: 2030-01-01T00:00:00Z, file: '@', for: [seals], services: []}\n";
    let (head, _) = WHOLE.split_once("anchors:\n").unwrap();
    let anchor = anchor.replace('#', &"a".repeat(64));
    let many = (0..=10_000).map(|number| anchor.replace('@', &number.to_string()));
    let many = format!(
        "{head}end: true\nnamed: []\nanchors:\n{}",
        many.collect::<String>()
    );
    let fault = BundleDocument::read(&many).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "line 10045: it lists 10001 anchors; at most 10000 are read"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the file holds is an answer.
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}", at in 0..WHOLE.len(), byte in any::<char>()) {
        drop(BundleDocument::read(&text));
        if WHOLE.is_char_boundary(at) {
            let mut altered = WHOLE.to_owned();
            altered.insert(at, byte);
            drop(BundleDocument::read(&altered));
            drop(BundleDocument::read(&WHOLE[..at]));
        }
    }
}
