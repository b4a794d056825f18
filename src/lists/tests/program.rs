//! The program as an operator runs it, on the real lists beside the project; and that nothing else links what reads XML.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the whole crate is a test: a panic is how it fails"
)]

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown},
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The real lists; `None` where there are none.
fn real_lists() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("../../../shared/data/trusted-lists");
    if !folder.join("EU.xml").is_file() {
        println!("skipped: no ../shared/data/trusted-lists beside the project");
        return None;
    }
    Some(folder)
}

/// Writes the certificate that a list's signature names first as a pin.
fn write_pin(list: &Path, folder: &Path) {
    let text = fs::read_to_string(list).unwrap();
    let key_info = text.split("KeyInfo>").nth(1).unwrap();
    let certificate = key_info.split("X509Certificate>").nth(1).unwrap();
    let base64 = certificate.split("</").next().unwrap();
    let base64: String = base64
        .replace("&#13;", "")
        .chars()
        .filter(|it| !it.is_whitespace())
        .collect();
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in base64.as_bytes().chunks(64) {
        pem.push_str(std::str::from_utf8(line).unwrap());
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    let name = list.file_stem().unwrap().to_str().unwrap();
    fs::write(folder.join(format!("{name}.pem")), pem).unwrap();
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portvakt-lists"))
        .args(arguments)
        .output()
        .unwrap()
}

/// What a run wrote to its streams, and its exit status.
fn shown(output: &Output) -> (String, String, i32) {
    (
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
        output.status.code().unwrap(),
    )
}

struct Place {
    folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    /// A folder with the pins of both lists of lists, and none of their lists.
    fn new(root: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("pins")).unwrap();
        fs::create_dir(folder.path().join("lists")).unwrap();
        for list in ["EU.xml", "v6/eu-lotl-seq388.xml"] {
            write_pin(&root.join(list), &folder.path().join("pins"));
        }
        Self { folder, root }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Puts files of the real lists into the folder of lists, in place of those before.
    fn put(&self, names: &[&str]) {
        let lists = self.folder.path().join("lists");
        fs::remove_dir_all(&lists).unwrap();
        fs::create_dir(&lists).unwrap();
        for name in names {
            let from = self.root.join(name);
            fs::write(
                lists.join(from.file_name().unwrap()),
                fs::read(&from).unwrap(),
            )
            .unwrap();
        }
    }

    fn import(&self, list_of_lists: &str, more: &[&str]) -> (String, String, i32) {
        let list = self.root.join(list_of_lists);
        let (pins, lists, out) = (self.path("pins"), self.path("lists"), self.path("out"));
        let mut arguments = vec!["import", "--list-of-lists", list.to_str().unwrap()];
        arguments.extend(["--pins", &pins, "--lists", &lists, "--out", &out]);
        arguments.extend(more);
        shown(&run(&arguments))
    }

    fn current(&self) -> Option<PathBuf> {
        fs::read_link(self.folder.path().join("out/current")).ok()
    }
}

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn import_show_and_what_is_refused() {
    let Some(root) = real_lists() else { return };
    let place = Place::new(root);
    place.put(&["CZ.xml", "SE.xml"]);
    let autumn = ["--at", "2019-10-01"];
    let (out, errors, status) = place.import("EU.xml", &autumn);
    assert_eq!(status, 0, "{errors}");
    assert!(out.contains("anchors for seals"), "{out}");
    assert!(
        errors.contains("CZ.xml: national list of CZ, version 5, sequence 77"),
        "{errors}"
    );
    assert!(errors.contains("DE: no file of its list"), "{errors}");
    let current = place.current().unwrap();

    // Each refusal names the file and the reason, and the bundle stays.
    place.put(&["altered/CZ_broken-sig.xml", "SE.xml"]);
    let (_, errors, status) = place.import("EU.xml", &autumn);
    assert_eq!(status, 1);
    assert!(errors.contains("CZ_broken-sig.xml: line "), "{errors}");
    assert!(errors.contains("the last bundle stays in use"), "{errors}");
    let (_, errors, status) = place.import("EU.xml", &[]);
    assert_eq!(status, 1);
    assert!(errors.contains("out of date"), "{errors}");
    place.put(&["SE.xml"]);
    let (out, errors, status) = place.import("EU.xml", &autumn);
    assert_eq!(status, 1);
    assert!(
        errors.contains("CZ: its list was in the last bundle"),
        "{errors}"
    );
    assert!(out.contains("- list CZ"), "{out}");
    assert_eq!(place.current().unwrap(), current);

    let (out, errors, status) = shown(&run(&["show", &place.path("out"), "--at", "2019-10-01"]));
    assert_eq!(status, 0, "{errors}");
    assert!(
        out.contains("\nCZ          5        77  2019-08-23T08:00:00Z"),
        "{out}"
    );
    assert!(out.contains("no file of: AT, BE"), "{out}");

    // A bundle that the gateway refuses is shown whole, and the exit status says so.
    let bundle = place.folder.path().join("out/current");
    fs::set_permissions(bundle.join("seals"), Permissions::from_mode(0o777)).unwrap();
    let refused = "the gateway refuses this bundle: ";
    let (out, errors, status) = shown(&run(&["show", &place.path("out"), "--at", "2019-10-01"]));
    assert_eq!(status, 1, "{errors}");
    assert!(out.contains(refused) && out.contains("\nCZ "), "{out}");
    assert!(errors.contains(refused), "{errors}");
    fs::set_permissions(bundle.join("seals"), Permissions::from_mode(0o755)).unwrap();
}

/// Where no bundle was imported yet, none stays in use.
//= CRT-13 refused
#[test]
fn a_first_import_that_is_refused() {
    let Some(root) = real_lists() else { return };
    let place = Place::new(root);
    place.put(&["altered/CZ_broken-sig.xml"]);
    let none = "nothing was imported: no bundle is in use\n";
    let autumn = ["--at", "2019-10-01"];
    let (_, errors, status) = place.import("EU.xml", &autumn);
    assert_eq!((status, place.current()), (1, None));
    assert!(errors.ends_with(none), "{errors}");
    // After the lists were verified too, and where the pins cannot be read.
    place.put(&[]);
    let (_, errors, status) = place.import("EU.xml", &autumn);
    assert_eq!(status, 1);
    assert!(errors.ends_with(none), "{errors}");
    fs::write(place.path("pins/note.txt"), "compared on Monday").unwrap();
    let (_, errors, status) = place.import("EU.xml", &autumn);
    assert_eq!(status, 1);
    assert!(
        errors.contains("pins/note.txt: no PEM certificate in the file"),
        "{errors}"
    );
    assert!(errors.ends_with(none), "{errors}");
}

/// Without a bundle in use: a first one that is held, and a link that leads nowhere.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn no_bundle_is_in_use() {
    let Some(root) = real_lists() else { return };
    let place = Place::new(root);
    place.put(&["CZ.xml"]);
    let (out, errors, status) = place.import("EU.xml", &["--at", "2019-10-01", "--hold"]);
    assert_eq!(status, 0, "{errors}");
    assert_eq!(place.current(), None);
    let (_, command) = out.split_once("this takes it into use: ").unwrap();
    let done = Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(done.success(), "{out}");
    let bundle = place.folder.path().join("out/current").canonicalize();
    let bundle = bundle.unwrap();

    let other = place.path("pins/EU.pem");
    let shown_by = |seen: &str| shown(&run(&["show", &place.path("out"), "--seen", seen]));
    let (out, errors, status) = shown_by(&other);
    assert_eq!((out.as_str(), status), ("", 1), "{errors}");
    assert!(
        errors.contains("pins/EU.pem: no line of it is a certificate"),
        "{errors}"
    );
    fs::write(place.path("none"), "").unwrap();
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(place.path("none"), mode).unwrap();
    let (out, errors, status) = shown_by(&place.path("none"));
    assert_eq!(status, 0, "{errors}");
    assert!(out.contains("of 0 seen within 30 days:"), "{out}");
    let (folder, none) = (place.path("out"), place.path("none"));
    for (types, expected) in [("web", 0), ("eseal,web", 0), ("seal", 2)] {
        let arguments = [
            "show",
            &folder,
            "--seen",
            &none,
            "--certificate-types",
            types,
        ];
        let (_, errors, status) = shown(&run(&arguments));
        assert_eq!(status, expected, "{types}: {errors}");
    }

    fs::remove_dir_all(bundle).unwrap();
    let (_, errors, status) = place.import("EU.xml", &["--at", "2019-10-01"]);
    assert_eq!(status, 1);
    assert!(
        errors.contains("which is not there, so that no bundle is in use"),
        "{errors}"
    );
    assert!(errors.contains("nothing was imported"), "{errors}");
}

/// No gateway takes a bundle whose lists were judged as of a time after its import.
//= CRT-13 refused
#[test]
fn a_time_that_lies_ahead_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut import = vec!["import", "--list-of-lists", "none.xml", "--pins", "none"];
    import.extend(["--lists", "none", "--out", out.to_str().unwrap()]);
    import.extend(["--at", "2999-01-01"]);
    let (printed, errors, status) = shown(&run(&import));
    assert_eq!((printed.as_str(), status), ("", 1), "{errors}");
    let expected = "--at 2999-01-01T00:00:00Z lies ahead: ";
    assert!(errors.contains(expected), "{errors}");
    assert!(!out.exists());
}

/// The gateway runs as another user than the import.
#[test]
fn everybody_reads_a_bundle_whatever_the_umask_is() {
    let Some(root) = real_lists() else { return };
    let place = Place::new(root);
    place.put(&["CZ.xml", "SE.xml"]);
    let list = place.root.join("EU.xml");
    let (pins, lists, out) = (
        place.path("pins"),
        place.path("lists"),
        place.path("outer/bundles"),
    );
    let output = Command::new("sh")
        .args(["-c", "umask 077 && exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_portvakt-lists"))
        .args(["import", "--at", "2019-10-01", "--list-of-lists"])
        .arg(list)
        .args(["--pins", &pins, "--lists", &lists, "--out", &out])
        .output()
        .unwrap();
    let (_, errors, status) = shown(&output);
    assert_eq!(status, 0, "{errors}");
    let (mut left, mut files) = (vec![PathBuf::from(place.path("outer"))], 0);
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        let mode = found.permissions().mode() & 0o7777;
        if found.is_dir() {
            assert_eq!(mode, 0o755, "{path:?}");
            let entries = fs::read_dir(&path).unwrap();
            left.extend(entries.map(|entry| entry.unwrap().path()));
        } else if found.is_file() && !path.ends_with(".lock") {
            assert_eq!(mode, 0o644, "{path:?}");
            files += 1;
        }
    }
    assert!(files > 1, "{files}");
}

//= CRT-13 refused
#[test]
fn a_list_of_lists_that_goes_back() {
    let Some(root) = real_lists() else { return };
    let place = Place::new(root);
    // An import without an anchor is none.
    let (_, errors, status) = place.import("v6/eu-lotl-seq388.xml", &["--at", "2026-07-16"]);
    assert_eq!((status, place.current()), (1, None), "{errors}");
    let expected = "no anchor: are the national lists in the folder of lists?\n";
    assert!(errors.contains(expected), "{errors}");
    place.put(&["v6/es-tl-seq187.xml"]);
    let (_, errors, status) = place.import("v6/eu-lotl-seq388.xml", &["--at", "2026-07-16"]);
    assert_eq!(status, 0, "{errors}");
    place.put(&["CZ.xml"]);
    let (_, errors, status) = place.import("EU.xml", &["--at", "2019-10-01", "--allow-shrink"]);
    assert_eq!(status, 1);
    let expected = "EU: sequence 248, issued 2019-09-04T08:00:00Z, is older than the last one that was imported (sequence 388";
    assert!(errors.contains(expected), "{errors}");
}

/// Whoever writes a pin decides whom every gateway trusts.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn pins_that_others_may_write_are_not_believed() {
    let Some(root) = real_lists() else { return };
    let place = Place::new(root);
    place.put(&["v6/es-tl-seq187.xml"]);
    let import = || place.import("v6/eu-lotl-seq388.xml", &["--at", "2026-07-16"]);
    let pins = PathBuf::from(place.path("pins"));
    let pin = fs::read_dir(&pins).unwrap().next().unwrap().unwrap().path();
    let elsewhere = PathBuf::from(place.path("elsewhere"));
    for (at, mode, usual) in [
        (&pin, 0o664, 0o644),
        (&pin, 0o646, 0o644),
        (&pins, 0o777, 0o755),
    ] {
        fs::set_permissions(at, Permissions::from_mode(mode)).unwrap();
        let (_, errors, status) = import();
        assert_eq!(status, 1, "{errors}");
        let expected = format!(
            "its mode 0{mode:o} lets others than its owner say who signs the list of lists; chmod go-w "
        );
        assert!(errors.contains(&expected), "{errors}");
        assert_eq!(place.current(), None);
        fs::set_permissions(at, Permissions::from_mode(usual)).unwrap();
    }
    // A link leads to the file, in a folder that others may write.
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(&pin, elsewhere.join("pin.pem")).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("pin.pem"), &pin).unwrap();
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o775)).unwrap();
    let (_, errors, status) = import();
    assert_eq!(status, 1, "{errors}");
    assert!(
        errors.contains("elsewhere: its mode 0775 lets others"),
        "{errors}"
    );
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o755)).unwrap();
    // The owner of a file, of a folder or of a link writes there too. Only root can try that.
    if fs::metadata(&pins).unwrap().uid() == 0 {
        for at in [&pin, &pins, &elsewhere, &elsewhere.join("pin.pem")] {
            lchown(at, Some(4711), None).unwrap();
            let (_, errors, status) = import();
            assert_eq!((status, place.current()), (1, None), "{at:?}: {errors}");
            let expected = format!(
                "{}: it belongs to another user (uid 4711) than root and the one who runs this, who could say who signs",
                at.display()
            );
            assert!(errors.contains(&expected), "{errors}");
            lchown(at, Some(0), None).unwrap();
        }
    }
    let (_, errors, status) = import();
    assert_eq!(status, 0, "{errors}");
    assert!(place.current().is_some());
}

#[test]
fn addresses_for_curl() {
    let Some(root) = real_lists() else { return };
    let list = root.join("v6/eu-lotl-seq388.xml");
    let (out, errors, status) = shown(&run(&["addresses", list.to_str().unwrap()]));
    assert_eq!(status, 0, "{errors}");
    assert!(
        out.contains("url = \"https://tsl.digital.gob.es/TSL.xml\"\noutput = \"ES.xml\"\n"),
        "{out}"
    );
}

#[test]
fn a_wrong_command_line_and_files_that_are_none() {
    let (_, errors, status) = shown(&run(&["import"]));
    assert_eq!(status, 2, "{errors}");
    let (_, errors, status) = shown(&run(&["addresses", "/no/such/file\x1b[31m"]));
    assert_eq!(status, 1);
    assert!(
        errors.contains("/no/such/file\\u{1b}[31m: it cannot be read"),
        "{errors}"
    );
    let folder = tempfile::tempdir().unwrap();
    let (_, errors, status) = shown(&run(&["show", folder.path().to_str().unwrap()]));
    assert_eq!(status, 1, "{errors}");
}

/// The packages of Cargo.lock, each with the names of its dependencies.
fn locked() -> Vec<(String, Vec<String>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    let text = fs::read_to_string(path).unwrap();
    let packages = text.split("[[package]]").skip(1).map(|package| {
        let quoted = |line: &str| line.split('"').nth(1).map(ToOwned::to_owned);
        let name = package.lines().find(|line| line.starts_with("name = "));
        let dependencies = package.lines().filter(|line| line.starts_with(" \""));
        // "NAME" or "NAME VERSION".
        let dependencies = dependencies
            .filter_map(quoted)
            .map(|it| it.split(' ').next().unwrap_or_default().to_owned());
        (name.and_then(quoted).unwrap(), dependencies.collect())
    });
    packages.collect()
}

/// Everything that needs a package, however far above.
fn above(package: &str) -> BTreeSet<String> {
    let locked = locked();
    let mut found = BTreeSet::new();
    let mut next = vec![package.to_owned()];
    while let Some(wanted) = next.pop() {
        for (name, dependencies) in &locked {
            if dependencies.contains(&wanted) && found.insert(name.clone()) {
                next.push(name.clone());
            }
        }
    }
    found
}

//= CRT-13 refused
#[test]
fn the_gateway_never_links_what_reads_xml() {
    assert_eq!(above("portvakt-lists"), BTreeSet::new());
    assert_eq!(
        above("quick-xml"),
        BTreeSet::from(["portvakt-lists".to_owned()])
    );
    assert!(
        above("portvakt-gateway").contains("portvakt"),
        "the lock file was read"
    );
}
