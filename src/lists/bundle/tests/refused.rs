//! Bundles that no import writes: refused as the gateway refuses them, in the same words (CRT-8, CRT-13).

use super::{Lists, NOW, later, write};
use crate::bundle::{BundleFolder, BundleTrust, CURRENT, GatewayConfig, read};
use portvakt_trust::bundle::MAX_DOCUMENT_BYTES;
use std::{fs, os::unix::fs::symlink};

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_document_that_contradicts_itself_or_is_too_long() {
    let lists = Lists::new(1);
    let out = tempfile::tempdir().unwrap();
    write(out.path(), &lists.import(1, 7), NOW);
    let current = out.path().join(CURRENT);
    let good = read(&current).unwrap();
    assert_eq!(good.judge(), Ok(()));
    let mut twice = good;
    twice.lists.push(twice.lists[0].clone());
    assert_eq!(
        twice.judge().unwrap_err().to_string(),
        "it names the list of ES twice; an import names each list once"
    );
    let path = current.join("bundle.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let (head, tail) = text.split_once("as_of: ").unwrap();
    let tail = tail.replacen("00:00:00Z", "00:00:01Z", 1);
    let most = usize::try_from(MAX_DOCUMENT_BYTES).unwrap();
    for (altered, expected) in [
        (
            format!("{head}as_of: {tail}"),
            "as of 2026-07-01T00:00:01Z, which is after it was made, at 2026-07-01T00:00:00Z",
        ),
        (
            text.clone() + &"#".repeat(most),
            "bundle.yaml is longer than 16777216 bytes",
        ),
    ] {
        fs::write(&path, altered).unwrap();
        let fault = read(&current).unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
    }
}

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn an_anchor_without_a_service_of_its_type() {
    let lists = Lists::new(1);
    let out = tempfile::tempdir().unwrap();
    write(out.path(), &lists.import(1, 7), NOW);
    let current = out.path().join(CURRENT);
    let trust = || BundleTrust::read(&current, GatewayConfig::default()).map(drop);
    assert_eq!(trust(), Ok(()));
    let path = current.join("bundle.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let (before, after) = text.rsplit_once("- seals").unwrap();
    fs::write(&path, format!("{before}- websites{after}")).unwrap();
    let fault = trust().unwrap_err().to_string();
    let expected = "it is listed for seals, and none of its services is for seals, so that";
    assert!(fault.contains(expected), "{fault}");
}

/// Another import would be refused as well: the reason names the newest bundle that can be read, or says to remove the link.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn what_to_do_where_the_bundle_in_use_is_none() {
    let lists = Lists::new(1);
    let out = tempfile::tempdir().unwrap();
    let first = write(out.path(), &lists.import(1, 7), NOW);
    write(out.path(), &lists.import(1, 8), later(1));
    let folder = BundleFolder::open(out.path()).unwrap();
    let current = out.path().join(CURRENT);
    let document = current.join("bundle.yaml");
    let fault = || folder.current().unwrap_err().to_string();
    let advice = "/current leads to no bundle that can be compared with; let it lead to a bundle that is there, such as 2026-07-01T000000Z, or remove it: ";
    fs::write(&document, "format: [").unwrap();
    let damaged = fault();
    assert!(damaged.contains(advice), "{damaged}");
    assert!(!damaged.contains("import again"), "{damaged}");
    fs::remove_file(&document).unwrap();
    let missing = fault();
    assert!(missing.contains("bundle.yaml: No such file"), "{missing}");
    assert!(missing.contains(advice), "{missing}");
    fs::remove_file(&current).unwrap();
    fs::write(out.path().join("other"), "").unwrap();
    symlink("other", &current).unwrap();
    let other = fault();
    assert!(other.contains(advice), "{other}");
    // As it says.
    fs::remove_file(&current).unwrap();
    assert_eq!(folder.current().unwrap(), None);
    symlink("2026-07-01T000000Z", &current).unwrap();
    assert_eq!(folder.current().unwrap(), Some(first));
}
