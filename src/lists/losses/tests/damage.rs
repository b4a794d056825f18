//! What cannot be read hides no loss, and a day that lies ahead is not believed.

use super::{NOW, Place, SeenCertificates, ca, leaf, line, service, write};
use portvakt_development_pki::{Ca, CaSpec};
use std::fs::File;

/// One bundle with a CA and another, and one that is held, without the first.
fn withdrawn(place: &Place, goes: &Ca) {
    let stays = || service("Stays", &ca("Stays"), &["ForeSeals"]);
    let services = vec![service("Goes", goes, &["ForeSeals"]), stays()];
    write(&place.bundles, services, 0, false);
    write(&place.bundles, vec![stays()], 1, true);
}

//= CRT-13 refused
#[test]
fn an_intermediate_that_cannot_be_read_hides_no_loss() {
    let goes = ca("Goes");
    let place = Place::new();
    withdrawn(&place, &goes);
    let below = CaSpec {
        common_name: "Below".into(),
        ..CaSpec::default()
    };
    let below = goes.issue_ca(&below).unwrap();
    let cut = &below.der()[..below.der().len() - 3];
    // "AAAA" in base64 is three zeros.
    let damaged: [&[u8]; 2] = [&[0, 0, 0], cut];
    let lines = [
        line("PSDNO-FSA-1", "2026-06-30", &leaf(&goes), &damaged),
        line(
            "PSDNO-FSA-2",
            "2026-06-30",
            &leaf(&below),
            &[below.der(), &[0, 0, 0]],
        ),
        // Whether it would lose trust, only the damaged intermediate says.
        line("PSDNO-FSA-3", "2026-06-30", &leaf(&below), &[cut]),
        line("PSDNO-FSA-4", "2026-06-30", &leaf(&goes), &[])
            .replace("\"intermediates\":[]", "\"intermediates\":[\"?\"]"),
    ];
    let text = place.losses(&[place.seen("seen", &lines.concat())], &[]);
    let (losing, rest) = text.split_once("\ncertificates judged: 3; ").unwrap();
    for number in [1, 2, 4] {
        let own = format!("\n  PSDNO-FSA-{number}: certificate ");
        assert!(losing.contains(&own), "{text}");
    }
    assert!(rest.starts_with("3 would lose trust, "), "{text}");
    assert!(rest.contains("; not judged: 1\nnot judged, "), "{text}");
    let (_, named) = rest.split_once("\n  PSDNO-FSA-3: certificate ").unwrap();
    let why = ": 1 of the certificates that came with it cannot be read";
    assert!(named.contains(why), "{text}");
    // Where only such are there, nobody says that there is no loss.
    let text = place.losses(&[place.seen("one", &lines[2])], &[]);
    let expected = "of 1 seen within 30 days:\n  none of those that could be judged\n";
    assert!(text.contains(expected), "{text}");
}

//= CRT-13 refused
#[test]
fn lines_that_cannot_be_read_are_named() {
    let goes = ca("Goes");
    let place = Place::new();
    withdrawn(&place, &goes);
    let whole = || line("PSDNO-FSA-1", "2026-06-30", &leaf(&goes), &[]);
    let lines = [
        whole(),
        "{\"tpp\":\"PSDNO-FSA-2\",\"lastSeen\":\"2026-06-30\",\"certificate\":\"AAAA\"}\n".into(),
        whole().replace("2026-06-30", "yesterday"),
        whole()[..20].to_owned(),
    ];
    let path = place.seen("seen", &lines.concat());
    let text = place.losses(std::slice::from_ref(&path), &[]);
    assert!(text.contains("judged: 1; 1 would lose trust"), "{text}");
    let path = path.display();
    let expected = format!(
        "lines of the files that are no certificate: 3\n  {path}, line 2, of PSDNO-FSA-2\n  {path}, line 3, of PSDNO-FSA-1\n  {path}, line 4"
    );
    assert!(text.ends_with(&expected), "{text}");
    // Many are counted, and the first are named.
    let many = format!("{}{}", lines[0], "{}\n".repeat(150));
    let text = place.losses(&[place.seen("many", &many)], &[]);
    assert!(text.contains("no certificate: 150\n"), "{text}");
    assert!(text.contains(", line 101\n  and more"), "{text}");
}

/// What lies beyond the longest file would be left out without a word.
//= CRT-13 refused
#[test]
fn a_file_that_is_too_long_is_refused() {
    let place = Place::new();
    let path = place.seen("long", "");
    for (length, is_read) in [(64 << 20, true), ((64 << 20) + 1, false)] {
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(length)
            .unwrap();
        let fault = SeenCertificates::read(std::slice::from_ref(&path), NOW);
        let fault = fault.unwrap_err().to_string();
        let is_too_long = fault.contains("long: it cannot be read: it is longer than 64 MiB");
        assert_eq!(is_too_long, !is_read, "{fault}");
    }
}

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_day_that_lies_ahead_is_not_believed() {
    let goes = ca("Goes");
    let place = Place::new();
    withdrawn(&place, &goes);
    // It is midnight: tomorrow has not begun, by any clock.
    let lines = [
        line("PSDNO-FSA-1", "2026-06-29", &leaf(&goes), &[]),
        line("PSDNO-FSA-2", "2026-07-02", &leaf(&goes), &[]),
        line("PSDNO-FSA-3", "2099-01-01", &leaf(&ca("Own")), &[]),
    ];
    let seen = place.seen("seen", &lines.concat());
    let text = place.losses(std::slice::from_ref(&seen), &[]);
    assert!(
        text.contains(": 1 certificates, the newest of 2026-06-29\n"),
        "{text}"
    );
    let (losing, rest) = text.split_once("\ncertificates judged: 1; ").unwrap();
    let expected = "of 1 seen within 30 days:\n  PSDNO-FSA-1: ";
    assert!(losing.contains(expected), "{text}");
    let (_, ahead) = rest
        .split_once("\nlast seen on a day that lies ahead, so not counted ")
        .unwrap();
    assert!(ahead.contains("\n  PSDNO-FSA-2: certificate "), "{text}");
    let lost = ", last seen 2026-07-02: it would lose trust: NO ";
    assert!(ahead.contains(lost), "{text}");
    assert!(ahead.ends_with(", last seen 2099-01-01"), "{text}");
    // A clock may be ahead by minutes: then the day has begun by it.
    for (minutes, is_believed) in [(16, false), (14, true)] {
        let now = super::Timestamp::from_unix(NOW.unix() + 86_400 - minutes * 60);
        let read = SeenCertificates::read(std::slice::from_ref(&seen), now).unwrap();
        assert_eq!(read.found.len() == 2, is_believed, "{minutes}");
        assert_eq!(read.ahead.len(), 3 - read.found.len());
    }
    // Another gateway's word of the same certificate counts.
    let again = lines[1].replace("2026-07-02", "2026-06-30");
    let text = place.losses(&[seen, place.seen("other", &again)], &[]);
    assert!(text.contains("judged: 2; 2 would lose trust"), "{text}");
}

/// A file counts certificates, not lines.
//= CRT-13 accepted
#[test]
fn a_certificate_counts_once() {
    let goes = ca("Goes");
    let place = Place::new();
    withdrawn(&place, &goes);
    let (one, other) = (leaf(&goes), leaf(&goes));
    let below = goes.issue_ca(&CaSpec::default()).unwrap();
    let of_below = leaf(&below);
    let lines = [
        line("PSDNO-FSA-1", "2026-06-28", &one, &[]),
        line("PSDNO-FSA-1", "2026-06-30", &one, &[]),
        line("PSDNO-FSA-1", "2026-06-29", &one, &[]),
        line("PSDNO-FSA-1", "2026-06-29", &other, &[]),
        // The chain that came on an earlier day, or to another gateway, still helps.
        line("PSDNO-FSA-2", "2026-06-29", &of_below, &[below.der()]),
        line("PSDNO-FSA-2", "2026-06-30", &of_below, &[]),
    ];
    let text = place.losses(&[place.seen("seen", &lines.concat())], &[]);
    assert!(
        text.contains(": 3 certificates, the newest of 2026-06-30\n"),
        "{text}"
    );
    assert!(text.contains("of 2 seen within 30 days:\n"), "{text}");
    assert!(text.contains("judged: 3; 3 would lose trust"), "{text}");
}
