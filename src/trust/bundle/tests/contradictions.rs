//! What contradicts itself in a document is refused, with the line at which it stands (CRT-8, CRT-13).

use super::{BundleDocument, WHOLE};

/// The key of a CA, as an entry of `named`.
const NAMED: &str = "\
named:
- key_sha256: cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
  territory: 'NO'
  provider: p
  service: s
  state: withdrawn
  since: 2026-01-01T00:00:00Z
";

/// The whole document, with all that may contradict the rest.
fn document() -> String {
    let digest = "00ff".repeat(16);
    let earlier = format!(
        "earlier:\n- territory: SE\n  sequence: 1\n  issued: 2026-01-01T00:00:00Z\n  sha256: {digest}\n"
    );
    let text = WHOLE.replace("anchors:\n", &format!("{earlier}anchors:\n"));
    text.replace("named: []\n", NAMED)
}

/// The line of a text that stands once in another.
fn line_of(text: &str, mark: &str) -> usize {
    assert_eq!(text.matches(mark).count(), 1, "{mark}");
    text[..text.find(mark).unwrap()].matches('\n').count() + 1
}

/// The first anchor, and its service.
const ANCHOR: &str = "- sha256: aaaa";
const SERVICE: &str = "- territory: 'NO'\n    provider: a provider";

/// What is replaced, by what, where the fault is then, and its text.
const CASES: &[(&str, &str, &str, &str)] = &[
    // Two lists of one country.
    (
        "- territory: UK",
        "- territory: 'NO' # again",
        "'NO' # again",
        "it names the list of NO twice; an import names each list once",
    ),
    (
        "- territory: UK",
        "- territory: EU",
        "- territory: EU",
        "it names the list of EU twice",
    ),
    // A country without a list, or a list that is said to be missing.
    (
        SERVICE,
        "- territory: DE\n    provider: a provider",
        "- territory: DE",
        "it names a service of DE, and has no list of DE in lists",
    ),
    (
        SERVICE,
        "- territory: EU\n    provider: a provider",
        "- territory: EU",
        "it names a service of EU, and has no list of EU in lists",
    ),
    (
        "  territory: 'NO'\n  provider: p\n  service: s\n  state",
        "  territory: DE\n  provider: p\n  service: s\n  state",
        "- key_sha256",
        "it names a CA of DE, and has no list of DE in lists",
    ),
    (
        "- territory: 'NO'\n  provider: p\n  service: s\n  reason",
        "- territory: ES\n  provider: p\n  service: s\n  reason",
        "- territory: ES",
        "it names a service that is left out of ES, and has no list of ES in lists",
    ),
    (
        "- ES\n",
        "- UK\n",
        "- UK\n",
        "it names UK under missing, and has the list of UK in lists",
    ),
    (
        "- territory: SE",
        "- territory: UK # earlier",
        "UK # earlier",
        "it names UK under earlier, and has the list of UK in lists",
    ),
    (
        "- ES\n",
        "- ES\n- ES # again\n",
        "- ES # again",
        "it names ES twice under missing",
    ),
    // Times.
    (
        "as_of: 2026-07-16T08:00:00Z",
        "as_of: 2026-07-16T08:00:01Z",
        "as_of: ",
        "its lists were judged as of 2026-07-16T08:00:01Z, which is after it was made",
    ),
    (
        "granted_since: 2020-01-01T00:00:00Z",
        "granted_since: 2026-07-16T08:00:01Z",
        SERVICE,
        "a service of NO is granted since 2026-07-16T08:00:01Z, which is after the lists were judged, as of 2026-07-16T08:00:00Z",
    ),
    (
        "issued: 2020-07-01T07:00:00Z",
        "issued: 2026-07-16T09:00:01Z",
        "- territory: UK",
        "the list of UK was issued on 2026-07-16T09:00:01Z, which is after the bundle was made",
    ),
    (
        "next_update: 2026-12-31T00:00:00Z",
        "next_update: 2026-06-30T00:00:00Z",
        "territory: EU",
        "the list of EU was issued on 2026-07-01T07:00:00Z, and its next update was due before that",
    ),
    // Anchors.
    (
        "- sha256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n  subject: CN=seal",
        "- sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa # again\n  subject: CN=other",
        "aa # again",
        "it lists the anchor aaaaaaaaaaaa",
    ),
    (
        "for:\n  - seals\n  - websites",
        "for: []",
        ANCHOR,
        "for nothing; expected for: with seals, websites or both",
    ),
    (
        "file: NO-aa.pem",
        "file: .NO-aa.pem",
        ANCHOR,
        "it lists the file \".NO-aa.pem\", which is no name of a visible file",
    ),
];

#[track_caller]
fn check(text: &str, from: &str, to: &str, mark: &str, expected: &str) {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    let altered = text.replace(from, to);
    let fault = BundleDocument::read(&altered).unwrap_err().to_string();
    let line = line_of(&altered, mark);
    let has_line = fault.starts_with(&format!("line {line}: "));
    assert!(has_line && fault.contains(expected), "{line}: {fault}");
}

//= CRT-8 accepted
//= CRT-8 refused
//= CRT-13 refused
#[test]
fn a_contradiction_has_its_line() {
    let text = document();
    assert!(BundleDocument::read(&text).is_ok());
    for (from, to, mark, expected) in CASES {
        check(&text, from, to, mark, expected);
    }
    let again = NAMED
        .replace("named:\n", "")
        .replace("cc\n", "cc # again\n");
    let expected = "it names the CA of NO with the key cccccccccccc";
    check(
        &text,
        NAMED,
        &format!("{NAMED}{again}"),
        "cc # again",
        expected,
    );
}

/// A clock of a list's operator that is an hour ahead, a list that is updated as it is issued, and a list under `earlier` and `missing`.
//= CRT-8 accepted
#[test]
fn what_an_import_may_write() {
    let text = document();
    for (from, to) in [
        (
            "issued: 2020-07-01T07:00:00Z",
            "issued: 2026-07-16T09:00:00Z",
        ),
        (
            "next_update: 2026-12-31T00:00:00Z",
            "next_update: 2026-07-01T07:00:00Z",
        ),
        ("- ES\n", "- ES\n- SE\n"),
        ("as_of: 2026-07-16T08:00:00Z", "as_of: 2026-07-01T08:00:00Z"),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let read = BundleDocument::read(&text.replace(from, to));
        assert!(read.is_ok(), "{to}: {read:?}");
    }
}
