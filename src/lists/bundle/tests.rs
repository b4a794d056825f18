//! Bundles: written beside the others, put in use in one step, and checked against the last one.

// What no import writes.
mod refused;

// Lists that come back.
mod back;

use super::{
    BundleDocument, BundleFolder, CURRENT, GatewayConfig, Regression, Use, check, dated,
    describe_import, diff, known, read,
};
use crate::{
    for_tests::mint::{List, Scheme, Service, Signer},
    import::{Imported, Request, import, lists_in},
    show::Shown,
};
use portvakt_base::clock::Timestamp;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

/// 2026-07-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_unix(1_782_864_000);

struct Lists {
    commission: Signer,
    spain: Signer,
    services: Vec<Service>,
}

impl Lists {
    fn new(services: usize) -> Self {
        Self {
            commission: Signer::new("Commission", Scheme::Ecdsa),
            spain: Signer::new("Spain\nInjected", Scheme::Ecdsa),
            services: (0..services)
                .map(|_| Service::for_seals("Seals: \"A\""))
                .collect(),
        }
    }

    /// Imports Spain's list with so many of the services.
    fn import(&self, services: usize, sequence: u64) -> Imported {
        let folder = tempfile::tempdir().unwrap();
        let of_lists = folder.path().join("eu.xml");
        let text = List::of_lists(&[("ES", &self.spain.certificate)]).sign(&self.commission);
        fs::write(&of_lists, text).unwrap();
        let mut list = List::national("ES", self.services[..services].to_vec());
        list.sequence = sequence;
        fs::write(folder.path().join("ES.xml"), list.sign(&self.spain)).unwrap();
        let request = Request {
            list_of_lists: of_lists,
            pins: vec![self.commission.certificate.clone()],
            lists: lists_in(folder.path()).unwrap(),
            leave_out: BTreeSet::new(),
            at: NOW,
            verifiers: crate::second::Verifiers::default(),
        };
        import(&request, &mut |_| {}).unwrap()
    }
}

fn later(seconds: u64) -> Timestamp {
    Timestamp::from_unix(NOW.unix() + seconds)
}

fn write(out: &Path, imported: &Imported, made: Timestamp) -> BundleDocument {
    let folder = BundleFolder::open(out).unwrap();
    let bundle = describe_import(imported, &[], made);
    folder.write(&bundle, &imported.anchors).unwrap();
    bundle
}

/// What `show` says of a bundle, or of the newest in a folder.
fn page(path: &Path) -> String {
    let shown = Shown::open(path, NOW).unwrap();
    let faults = shown.faults(GatewayConfig::default());
    shown.lines(&faults, NOW).join("\n")
}

/// What a bundle may not be after the last one. Each import of these tests signs its lists anew, under the same numbers.
fn follow(last: &BundleDocument, next: &BundleDocument, allow_shrink: bool) -> Vec<Regression> {
    let mut faults = check(Some(last), &known([last]), next, allow_shrink);
    faults.retain(|fault| !matches!(fault, Regression::OtherContent { .. }));
    faults
}

//= CRT-13 accepted
#[test]
fn a_bundle_is_what_it_says() {
    let lists = Lists::new(3);
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("bundles");
    let bundle = write(&out, &lists.import(3, 7), NOW);
    let current = out.join(CURRENT);
    assert_eq!(read(&current).unwrap(), bundle);
    assert_eq!(
        fs::read_link(&current).unwrap(),
        Path::new("2026-07-01T000000Z")
    );
    assert_eq!(
        (bundle.count(Use::Seals), bundle.count(Use::Websites)),
        (3, 0)
    );
    let files = fs::read_dir(current.join("seals")).unwrap();
    assert_eq!(files.count(), 3);
    assert_eq!(fs::read_dir(current.join("websites")).unwrap().count(), 0);
    for anchor in &bundle.anchors {
        let path = current.join("seals").join(&anchor.file);
        let text = fs::read_to_string(&path).unwrap();
        let found = crate::Certificate::from_pem(text.as_bytes()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            portvakt_base::hex::encode(&found[0].sha256()),
            anchor.sha256
        );
        assert!(
            text.starts_with("ES: Provider of ES: Seals: \"A\", granted since"),
            "{text}"
        );
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o644);
    }
    let yaml = fs::read_to_string(current.join("bundle.yaml")).unwrap();
    assert!(yaml.contains("granted_since: "), "{yaml}");
    // A signer's name cannot write a line of its own.
    assert!(!yaml.contains("\nInjected"), "{yaml}");
}

/// What a gateway would refuse is not shown as if it could be in use.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn a_bundle_that_a_gateway_refuses_is_shown_as_refused() {
    let out = tempfile::tempdir().unwrap();
    write(out.path(), &Lists::new(3).import(3, 7), NOW);
    let shown = || page(out.path());
    let refused = "\nthe gateway refuses this bundle: ";
    assert!(!shown().contains(refused), "{}", shown());
    let folder = fs::canonicalize(out.path().join(CURRENT)).unwrap();
    for (name, mode, usual) in [
        ("bundle.yaml", 0o664, 0o644),
        ("seals", 0o777, 0o755),
        (".", 0o775, 0o755),
    ] {
        let path = folder.join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let expected =
            format!("its mode 0{mode:o} lets others than its owner change whom the gateway trusts");
        assert!(
            shown().contains(refused) && shown().contains(&expected),
            "{}",
            shown()
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(usual)).unwrap();
    }
    let anchor = fs::read_dir(folder.join("seals")).unwrap().next().unwrap();
    fs::remove_file(anchor.unwrap().path()).unwrap();
    assert!(shown().contains(refused), "{}", shown());
}

#[test]
fn the_next_bundle_and_the_way_back() {
    let lists = Lists::new(3);
    let out = tempfile::tempdir().unwrap();
    let first = write(out.path(), &lists.import(3, 7), NOW);
    let second = write(out.path(), &lists.import(2, 8), later(1));
    let folders = dated(out.path()).unwrap();
    assert_eq!(folders.len(), 2);
    let changes = diff(&first, &second);
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert_eq!(changes[0], "~ list ES: sequence 7 to 8");
    assert!(changes[1].starts_with("- ES "), "{changes:?}");
    assert!(diff(&second, &second).is_empty());
    let lines = page(out.path());
    assert!(
        lines.contains("changes since 2026-07-01T000000Z:\n  ~ list ES: sequence 7 to 8"),
        "{lines}"
    );
    assert!(
        lines.contains("2 anchors for seals, 0 for websites"),
        "{lines}"
    );
    // After its next update a list is shown as past.
    let lines = Shown::open(out.path(), NOW)
        .unwrap()
        .lines(&[], later(200 * 86_400))
        .join("\n");
    assert!(lines.contains("2026-12-01T00:00:00Z (past)"), "{lines}");
    // The certificate of a list's signer ends in 2040.
    let ended = later(14 * 366 * 86_400);
    let shown = Shown::open(out.path(), NOW).unwrap();
    let title = "signers of lists whose certificate has ended; the lists serve on:\n  EU ended 2040-01-01T00:00:00Z: SHA-256 ";
    assert!(shown.lines(&[], ended).join("\n").contains(title));
    assert!(
        !shown
            .lines(&[], NOW)
            .join("\n")
            .contains("signers of lists")
    );
    // The anchors end in 2040 too: soon before, and apart from those that have ended.
    let day = |at: u64| Timestamp::from_unix(at * 86_400);
    let end = shown.bundle.anchors[0].not_after.unix() / 86_400;
    let (soon, over) = (day(end - 30), day(end + 1));
    let (soon, over) = (
        shown.lines(&[], soon).join("\n"),
        shown.lines(&[], over).join("\n"),
    );
    let (title, other) = (
        "\ncertificates that end within 90 days:\n  ends ",
        "\ncertificates that have ended:\n  ended ",
    );
    assert!(
        soon.contains(title) && !soon.contains("have ended:"),
        "{soon}"
    );
    assert!(
        over.contains(other) && !over.contains("within 90 days"),
        "{over}"
    );
    // The way back: `current` leads to the older folder.
    let current = out.path().join(CURRENT);
    fs::remove_file(&current).unwrap();
    symlink(folders[0].file_name().unwrap(), &current).unwrap();
    let folder = BundleFolder::open(out.path()).unwrap();
    assert_eq!(folder.current().unwrap(), Some(first));
}

//= CRT-13 refused
#[test]
fn a_list_never_goes_back() {
    let lists = Lists::new(1);
    let of = |sequence| describe_import(&lists.import(1, sequence), &[], NOW);
    let (old, new) = (of(7), of(8));
    assert!(follow(&old, &new, false).is_empty());
    assert!(follow(&old, &old, false).is_empty());
    for allow_shrink in [false, true] {
        let faults = follow(&new, &old, allow_shrink);
        let [
            Regression::Older {
                territory,
                sequence: 7,
                last_sequence: 8,
                ..
            },
        ] = faults.as_slice()
        else {
            panic!("{faults:?}");
        };
        assert_eq!(territory, "ES");
    }
    // Issued before, under the same number or a higher one; and the list of lists.
    for of in [&old, &new] {
        let mut before = of.clone();
        before.lists[0].issued = Timestamp::from_unix(old.lists[0].issued.unix() - 1);
        assert_eq!(follow(&old, &before, true).len(), 1);
        let mut before = of.clone();
        before.list_of_lists.issued = Timestamp::from_unix(old.list_of_lists.issued.unix() - 1);
        assert_eq!(follow(&old, &before, true).len(), 1);
    }
}

//= CRT-13 refused
#[test]
fn a_bundle_does_not_shrink_by_over_a_tenth() {
    let lists = Lists::new(20);
    let of = |services| describe_import(&lists.import(services, 7), &[], NOW);
    let last = of(20);
    assert!(follow(&last, &of(18), false).is_empty(), "a tenth");
    let faults = follow(&last, &of(17), false);
    assert_eq!(
        faults,
        [Regression::Shrunk {
            of: "seals",
            gone: 3,
            last: 20
        }]
    );
    assert!(follow(&last, &of(17), true).is_empty());
    // As many new ones do not make up for those that go.
    let replaced = describe_import(&Lists::new(20).import(20, 7), &[], NOW);
    let faults = follow(&last, &replaced, false);
    let [fault @ Regression::Shrunk { gone: 20, .. }] = faults.as_slice() else {
        panic!("{faults:?}");
    };
    let expected = "20 of the 20 anchors for seals of the last bundle go: over a tenth; ";
    assert!(fault.to_string().starts_with(expected), "{fault}");
    assert!(follow(&last, &replaced, true).is_empty());
    let mut without = last.clone();
    without.lists.clear();
    let faults = follow(&last, &without, false);
    assert_eq!(faults, [Regression::Gone("ES".to_owned())]);
    assert!(follow(&last, &without, true).is_empty());
}

#[test]
fn who_may_write() {
    let out = tempfile::tempdir().unwrap();
    for (mode, may) in [(0o755, true), (0o700, true), (0o775, false), (0o757, false)] {
        fs::set_permissions(out.path(), fs::Permissions::from_mode(mode)).unwrap();
        let opened = BundleFolder::open(out.path());
        assert_eq!(opened.is_ok(), may, "{mode:o}: {opened:?}");
    }
    fs::set_permissions(out.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let one = BundleFolder::open(out.path()).unwrap();
    let fault = BundleFolder::open(out.path()).unwrap_err().to_string();
    assert!(fault.contains("another import runs"), "{fault}");
    drop(one);
    assert!(BundleFolder::open(out.path()).is_ok());
    // In a folder on the way, and in one that a link leads through.
    let shared = out.path().join("shared");
    fs::create_dir(&shared).unwrap();
    symlink("shared/bundles", out.path().join("link")).unwrap();
    fs::create_dir(shared.join("bundles")).unwrap();
    fs::set_permissions(shared.join("bundles"), fs::Permissions::from_mode(0o755)).unwrap();
    for path in ["shared/bundles", "link"] {
        for (mode, may) in [(0o755, true), (0o1777, true), (0o775, false)] {
            fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
            match BundleFolder::open(&out.path().join(path)) {
                Ok(_) => assert!(may, "{path}: {mode:o}"),
                Err(fault) => {
                    let fault = fault.to_string();
                    assert!(!may && fault.contains("shared: its mode 0775"), "{fault}");
                }
            }
        }
    }
}

#[test]
fn a_write_that_fails_leaves_the_last_bundle() {
    let lists = Lists::new(1);
    let out = tempfile::tempdir().unwrap();
    let first = write(out.path(), &lists.import(1, 7), NOW);
    let folder = BundleFolder::open(out.path()).unwrap();
    let next = lists.import(1, 8);
    let bundle = describe_import(&next, &[], NOW);
    // No name of this second is free.
    for number in 2..100 {
        fs::create_dir(out.path().join(format!("2026-07-01T000000Z-{number:02}"))).unwrap();
    }
    let fault = folder
        .write(&bundle, &next.anchors)
        .unwrap_err()
        .to_string();
    assert!(
        fault.ends_with("2026-07-01T000000Z: 99 bundles of this second exist; import again"),
        "{fault}"
    );
    assert_eq!(folder.current().unwrap(), Some(first));
    // What an import left that was killed.
    fs::create_dir(out.path().join(".unfinished-2026-06-01T000000Z")).unwrap();
    symlink("x", out.path().join(".unfinished-current")).unwrap();
    let bundle = describe_import(&next, &[], later(1));
    folder.write(&bundle, &next.anchors).unwrap();
    assert_eq!(folder.current().unwrap(), Some(bundle));
    let hidden = fs::read_dir(out.path()).unwrap();
    let hidden = hidden.filter(|it| {
        it.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with(".unf")
    });
    assert_eq!(hidden.count(), 0);
}

/// The names of bundles of one second sort in the order in which they were made.
#[test]
fn bundles_of_one_second() {
    let lists = Lists::new(2);
    let out = tempfile::tempdir().unwrap();
    let mut made = vec![write(out.path(), &lists.import(2, 7), NOW)];
    made.push(write(out.path(), &lists.import(1, 8), NOW));
    made.push(write(out.path(), &lists.import(2, 9), NOW));
    made.push(write(out.path(), &lists.import(2, 10), later(1)));
    let folders = dated(out.path()).unwrap();
    let names = folders.iter().map(|path| path.file_name().unwrap());
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "2026-07-01T000000Z",
            "2026-07-01T000000Z-02",
            "2026-07-01T000000Z-03",
            "2026-07-01T000001Z"
        ]
    );
    let found = folders.iter().map(|folder| read(folder).unwrap());
    assert_eq!(found.collect::<Vec<_>>(), made);
    let folder = BundleFolder::open(out.path()).unwrap();
    assert_eq!(folder.current().unwrap().as_ref(), made.last());
}

#[test]
fn a_link_that_leads_nowhere_is_named() {
    let lists = Lists::new(1);
    let out = tempfile::tempdir().unwrap();
    write(out.path(), &lists.import(1, 7), NOW);
    let current = out.path().join(CURRENT);
    fs::remove_file(&current).unwrap();
    symlink("2026-06-01T000000Z", &current).unwrap();
    let folder = BundleFolder::open(out.path()).unwrap();
    let fault = folder.current().unwrap_err().to_string();
    let expected = "/current: it leads to 2026-06-01T000000Z, which is not there";
    assert!(fault.contains(expected), "{fault}");
    assert!(fault.contains("such as 2026-07-01T000000Z, or"), "{fault}");
    fs::remove_dir_all(out.path().join("2026-07-01T000000Z")).unwrap();
    let fault = folder.current().unwrap_err().to_string();
    assert!(fault.contains("; remove it: no bundle is left"), "{fault}");
    // As it says.
    fs::remove_file(&current).unwrap();
    assert_eq!(folder.current().unwrap(), None);
}

#[test]
fn another_format_is_refused() {
    let lists = Lists::new(1);
    let out = tempfile::tempdir().unwrap();
    write(out.path(), &lists.import(1, 7), NOW);
    let path = out.path().join(CURRENT).join("bundle.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let format = format!("format: {}", portvakt_trust::bundle::FORMAT);
    fs::write(&path, text.replacen(&format, "format: 1", 1)).unwrap();
    let folder = BundleFolder::open(out.path()).unwrap();
    let fault = folder.current().unwrap_err().to_string();
    assert!(
        fault.contains("the format 1, and this version reads 2; import anew"),
        "{fault}"
    );
    let alone = "; remove it: no bundle is left in the folder to compare with, and the import is a first one";
    let inner = "{assert: all, nested: [".repeat(30) + &"]}".repeat(30);
    let deep =
        format!("    qualifications: [{{qualifiers: [], criteria: {inner}}}]\n    provider:");
    for (from, to, expected) in [
        (
            "format: 2",
            "format: 2\nother: 1",
            "bundle.yaml: it does not say what a bundle's document says: ",
        ),
        (
            "    provider:",
            deep.as_str(),
            "nested more than 64 deep, the most that is read",
        ),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let fault = folder.current().unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
        assert!(fault.ends_with(alone), "{fault}");
    }
    fs::remove_file(&path).unwrap();
    assert!(
        folder.current().is_err(),
        "no first import where a bundle is in use"
    );
}
