//! Bundles that no import writes: refused as the gateway refuses them, in the same words (CRT-8, CRT-13).

use super::{Lists, NOW, later, page, write};
use crate::{
    Refusal,
    bundle::{BundleFolder, BundleTrust, CURRENT, GatewayConfig, read},
};
use portvakt_base::way::OwnUsers;
use portvakt_trust::bundle::MAX_DOCUMENT_BYTES;
use portvakt_trust::bundle::load;
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, lchown, symlink},
    path::PathBuf,
};
use tempfile::TempDir;

/// A bundle in use whose document is altered.
struct Written {
    _out: TempDir,
    current: PathBuf,
}

impl Written {
    fn new() -> Self {
        let out = tempfile::tempdir().unwrap();
        write(out.path(), &Lists::new(1).import(1, 7), NOW);
        let current = out.path().join(CURRENT);
        Self { _out: out, current }
    }

    fn text(&self) -> String {
        fs::read_to_string(self.current.join("bundle.yaml")).unwrap()
    }

    fn put(&self, text: &str) {
        fs::write(self.current.join("bundle.yaml"), text).unwrap();
    }

    fn trust(&self) -> Result<(), Refusal> {
        BundleTrust::read(&self.current, GatewayConfig::default()).map(drop)
    }
}

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

/// A link on the way counts by its own owner, as the gateway judges it: in a folder with the sticky bit, others could lead it elsewhere.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn a_link_of_another_user_is_judged_as_the_gateway_judges_it() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root gives a link to another user");
        return;
    }
    let lists = Lists::new(1);
    let out = tempfile::tempdir().unwrap();
    let bundles = out.path().join("bundles");
    write(&bundles, &lists.import(1, 7), NOW);
    let shared = out.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let link = shared.join("link");
    symlink(&bundles, &link).unwrap();
    let current = bundles.join(CURRENT);
    let refused = "the gateway refuses this bundle: ";
    for (owned, named, expected) in [
        (
            &link,
            link.clone(),
            "everybody makes entries in this folder",
        ),
        (
            &link,
            link.join(CURRENT),
            "everybody makes entries in this folder",
        ),
        (
            &link,
            link.join("2026-07-01T000000Z"),
            "everybody makes entries in this folder",
        ),
        (&link, bundles.clone(), ""),
    ] {
        for (owner, is_other) in [(4711, true), (0, false)] {
            lchown(owned, Some(owner), None).unwrap();
            let lines = page(&named);
            let gateway = load(&named, OwnUsers::default());
            let is_refused = is_other && !expected.is_empty();
            assert_eq!(lines.contains(refused), is_refused, "{named:?}: {lines}");
            assert_eq!(lines.contains(expected), is_refused || expected.is_empty());
            if named.join("bundle.yaml").exists() {
                assert_eq!(gateway.is_err(), is_refused, "{named:?}");
            }
        }
    }
    // The link to the bundle in use, in a folder of bundles that everybody makes entries in.
    fs::set_permissions(&bundles, fs::Permissions::from_mode(0o1777)).unwrap();
    lchown(&current, Some(4711), None).unwrap();
    for named in [
        bundles.clone(),
        bundles.join("2026-07-01T000000Z"),
        current.clone(),
    ] {
        let lines = page(&named);
        assert!(lines.contains(refused), "{named:?}: {lines}");
        lchown(&current, Some(0), None).unwrap();
        let lines = page(&named);
        assert!(!lines.contains(refused), "{named:?}: {lines}");
        lchown(&current, Some(4711), None).unwrap();
    }
}

/// What `bundle.yaml` says of an anchor is what its certificate says.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn an_anchor_that_is_described_otherwise() {
    let bundle = Written::new();
    assert_eq!(bundle.trust(), Ok(()));
    let text = bundle.text();
    for (from, to, expected) in [
        (
            "subject: 'CN=Seals: \"A\"'",
            "subject: CN=Other",
            "another subject of it",
        ),
        (
            "  not_after: 2040-01-01T00:00:00Z\n  file",
            "  not_after: 2050-01-01T00:00:00Z\n  file",
            "another not_after of it",
        ),
    ] {
        assert!(text.contains(from), "{text}");
        bundle.put(&text.replacen(from, to, 1));
        let fault = bundle.trust().unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
        assert!(
            fault.contains(" (line ") && fault.ends_with(" of bundle.yaml)"),
            "{fault}"
        );
        assert!(!fault.contains("Other"), "{fault}");
    }
}

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn an_anchor_without_a_service_of_its_type() {
    let bundle = Written::new();
    assert_eq!(bundle.trust(), Ok(()));
    let text = bundle.text();
    let (before, after) = text.rsplit_once("- seals").unwrap();
    bundle.put(&format!("{before}- websites{after}"));
    let fault = bundle.trust().unwrap_err().to_string();
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
