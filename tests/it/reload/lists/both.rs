//! A bundle that the gateway refuses is one that `portvakt-lists show` calls refused, and no other (CRT-8).

use super::{GRANTED, Imports, Norway, list_of_norway};
use crate::harness::Gate;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::Command,
};

struct Both {
    imports: Imports,
    gate: Gate,
    /// The folder of the bundle in use.
    bundle: PathBuf,
}

impl Both {
    fn new() -> Option<Self> {
        let imports = Imports::new()?;
        let (is_imported, text) = imports.import(&list_of_norway(7, "granted", GRANTED, ""), &[]);
        assert!(is_imported, "{text}");
        let withdrawn = Norway::new(8, "withdrawn", GRANTED, "").sign();
        let (is_imported, text) = imports.import(&withdrawn, &["--allow-shrink"]);
        assert!(is_imported, "{text}");
        Some(Self {
            gate: imports.gate(),
            bundle: fs::canonicalize(imports.path("bundles/current")).unwrap(),
            imports,
        })
    }

    /// Whether the gateway takes the bundle; `portvakt-lists show` must say the same.
    fn takes(&self, what: &str) -> bool {
        let mut check = Command::new(env!("CARGO_BIN_EXE_portvakt"));
        check.args(["check", "--no-bind", "--config"]);
        let check = check.arg(self.gate.folder().join("gateway.yaml")).output();
        let check = check.unwrap();
        let mut show = Command::new(&self.imports.program);
        let show = show.arg("show").arg(&self.bundle).output().unwrap();
        let text = String::from_utf8_lossy(&show.stdout);
        let is_shown = show.status.success() && !text.contains("the gateway refuses this bundle");
        let takes = check.status.success();
        let said = String::from_utf8_lossy(&check.stderr);
        let faults = String::from_utf8_lossy(&show.stderr);
        assert_eq!(
            takes, is_shown,
            "{what}: check: {said}; show: {text}{faults}"
        );
        takes
    }
}

//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn each_member_of_a_document() {
    let Some(both) = Both::new() else { return };
    let path = both.bundle.join("bundle.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(both.takes("the bundle as it was imported"));
    let (mut seen, mut refused) = (BTreeSet::new(), 0);
    for (at, line) in lines.iter().enumerate() {
        let key = line.split(": ").next().unwrap();
        if !seen.insert(key) {
            continue;
        }
        let value = |value: &str| format!("{}: {value}", key.trim_end_matches(':'));
        for other in [
            String::new(),
            format!("{line}\n{line}"),
            value("0"),
            value("x"),
            value("[]"),
            value("2999-01-01T00:00:00Z"),
        ] {
            let mut lines = lines.clone();
            lines[at] = &other;
            fs::write(&path, lines.join("\n")).unwrap();
            refused += usize::from(!both.takes(&format!("{line} -> {other}")));
        }
    }
    assert!(refused > seen.len(), "{refused} of {}", seen.len());
    for (from, to) in [
        ("file: ", "file: ../seals/"),
        ("  for:\n  - seals\n", "  for:\n  - seals\n  - seals\n"),
        ("anchors:\n", "anchors: []\nold:\n"),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        assert!(!both.takes(to));
    }
}

//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn each_file_of_a_bundle() {
    let Some(both) = Both::new() else { return };
    let seals = both.bundle.join("seals");
    let own = fs::read_dir(&seals)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let bytes = fs::read(&own).unwrap();
    let more = seals.join("more.pem");
    fs::write(&more, &bytes).unwrap();
    assert!(!both.takes("a file that is not listed"));
    fs::remove_file(&more).unwrap();
    fs::write(&own, [&bytes[..], &bytes[..]].concat()).unwrap();
    assert!(!both.takes("two certificates"));
    fs::remove_file(&own).unwrap();
    assert!(!both.takes("a file that is missing"));
    fs::write(both.imports.path("elsewhere"), &bytes).unwrap();
    symlink(both.imports.path("elsewhere"), &own).unwrap();
    assert!(!both.takes("a link"));
    fs::remove_file(&own).unwrap();
    fs::write(&own, &bytes).unwrap();
    for (path, mode) in [(&own, 0o664), (&seals, 0o775), (&both.bundle, 0o775)] {
        let usual = fs::metadata(path).unwrap().permissions();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(!both.takes("a mode"));
        fs::set_permissions(path, usual).unwrap();
    }
    assert!(both.takes("the bundle as it was imported"));
    // Without any anchor.
    let document = both.bundle.join("bundle.yaml");
    let text = fs::read_to_string(&document).unwrap();
    let (before, after) = text.split_once("anchors:\n").unwrap();
    let (_, named) = after.split_once("named:").unwrap();
    fs::write(&document, format!("{before}named:{named}")).unwrap();
    fs::remove_file(&own).unwrap();
    assert!(!both.takes("no anchors"));
}
