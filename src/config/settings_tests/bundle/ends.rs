//! How old a bundle is, as of which time it is, and what ends (CRT-8).

use super::{MADE, NEXT, Site, only};
use crate::{
    clock::Timestamp,
    config::Warning,
    expiring::{Expiring, Level},
};

const DAY: u64 = 86_400;

/// A late list is told, and never ends the service.
//= CRT-8 accepted
#[test]
fn the_next_update_of_a_bundle() {
    let site = Site::with_bundle();
    let found = |text: &str, at: u64| {
        let settings = site.read(text).unwrap();
        let warnings = settings.reloadable.warnings.iter();
        let at = Timestamp::from_unix(at);
        let found = warnings.filter_map(|warning| warning.finding(at));
        found
            .filter(|one| one.of == Expiring::Bundle)
            .collect::<Vec<_>>()
    };
    let text = only();
    let (made, next) = (1_784_188_800, 1_796_040_000);
    assert_eq!(found(&text, next - 7 * DAY), []);
    let [soon] = &found(&text, next - 7 * DAY + 1)[..] else {
        panic!("one finding");
    };
    assert_eq!(soon.level, Level::Soon);
    let expected =
        format!("trust.bundle: the list of NO is to be replaced by {NEXT}, within 7 days");
    assert!(soon.text.contains(&expected), "{}", soon.text);
    let [past] = &found(&text, next + 1_000 * DAY)[..] else {
        panic!("one finding");
    };
    assert_eq!(past.level, Level::Soon, "never over");
    let expected = format!("the list of NO was to be replaced by {NEXT}: its anchors still serve");
    assert!(past.text.contains(&expected), "{}", past.text);
    assert_eq!(found(&text, made), []);
    let [ahead] = &found(&text, made - 2 * DAY)[..] else {
        panic!("one finding");
    };
    assert!(ahead.text.contains("which lies ahead"), "{}", ahead.text);
    // Lists that are closed have no next update, and the bundle of them can lie ahead too.
    let path = site.path().join("lists/one/bundle.yaml");
    let closed = std::fs::read_to_string(path).unwrap();
    let closed = closed.replace("'2027-01-31T00:00:00Z'", "null");
    let closed = closed.replace(&format!("next_update: '{NEXT}'"), "next_update: null");
    site.write("lists/one/bundle.yaml", closed);
    assert_eq!(found(&text, next + 1_000 * DAY), []);
    let [ahead] = &found(&text, made - 2 * DAY)[..] else {
        panic!("one finding");
    };
    assert!(ahead.text.contains("which lies ahead"), "{}", ahead.text);
    let settings = site.read(&text).unwrap();
    let mut ends = settings.reloadable.warnings.iter().filter_map(Warning::end);
    assert!(ends.all(|(of, _)| of != Expiring::Bundle));
}

/// A bundle that nobody has replaced for three days, as the alert says.
//= CRT-8 accepted
#[test]
fn an_old_bundle() {
    let site = Site::with_bundle();
    let settings = site.read(&only()).unwrap();
    let old = |at: u64| {
        let warnings = settings.reloadable.warnings.iter();
        let said = warnings.filter_map(|one| one.at(Timestamp::from_unix(at)));
        let said: Vec<_> = said.map(|one| one.to_string()).collect();
        said.iter().any(|text| {
            text.contains(&format!(
                "trust.bundle: the bundle was imported at {MADE}, more than 3 days ago: "
            ))
        })
    };
    let made = 1_784_188_800;
    assert!(!old(made + 3 * DAY));
    assert!(old(made + 3 * DAY + 1));
    let alerts = include_str!("../../../../dashboards/alerts.yml");
    let expression = format!(
        "min by (job) (portvakt_bundle_imported_timestamp_seconds) > {}\n",
        3 * DAY
    );
    assert!(alerts.contains(&expression));
}

/// The end of one anchor of a bundle is nothing to act on; the end of all is.
//= CRT-8 accepted
#[test]
fn ended_anchors_of_a_bundle() {
    let site = Site::with_bundle();
    let settings = site.read(&only()).unwrap();
    let of = |at: u64| {
        let warnings = settings.reloadable.warnings.iter();
        let found = warnings.filter_map(|warning| warning.finding(Timestamp::from_unix(at)));
        found.map(|one| (one.of, one.level)).collect::<Vec<_>>()
    };
    // The certificates of this test end in 2096.
    assert_eq!(of(1_790_000_000), []);
    let over = of(4_100_000_000);
    for of in [Expiring::Anchor, Expiring::ClientAnchor] {
        assert!(over.contains(&(of, Level::Over)), "{over:?}");
    }
    assert!(settings.reloadable.warnings.iter().all(|one| {
        one.end()
            .is_none_or(|(of, _)| !matches!(of, Expiring::Anchor | Expiring::ClientAnchor))
    }));
}

/// A bundle of another time is weaker.
#[test]
fn a_bundle_as_of_another_time() {
    let site = Site::with_bundle();
    let path = site.path().join("lists/one/bundle.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let then = text
        .replace(&format!("as_of: '{MADE}'"), "as_of: '2025-01-31T00:00:00Z'")
        .replace(&format!("since: '{MADE}'"), "since: '2024-01-31T00:00:00Z'");
    site.write("lists/one/bundle.yaml", then);
    site.write("config/tpps.yaml", "allow: []\n");
    let production = only().replace("sandbox", "production")
        + "control: {socket: control.sock}\nrevocation: {check: on}\nregisters: {check: on, local: tpps.yaml}\n";
    let settings = site.read(&production).unwrap();
    let warnings = settings.reloadable.warnings.iter();
    let warnings = warnings.filter_map(|one| one.at(Timestamp::from_unix(1_784_188_800)));
    let warnings: Vec<_> = warnings.map(|one| one.to_string()).collect();
    let expected = "the bundle was imported as of 2025-01-31T00:00:00Z (--at): services that were withdrawn since are trusted";
    assert!(
        warnings.iter().any(|one| one.ends_with(expected)),
        "{warnings:?}"
    );
    let ahead = text.replace(&format!("as_of: '{MADE}'"), "as_of: '2026-07-16T08:00:01Z'");
    site.write("lists/one/bundle.yaml", ahead);
    let faults = site.faults();
    let expected = format!(
        "lists/one/bundle.yaml: line 5: its lists were judged as of 2026-07-16T08:00:01Z, which is after it was made, at {MADE}; no import does that; only portvakt-lists import writes it: import again, or lead the link to an older bundle"
    );
    assert_eq!(faults, [expected]);
}
