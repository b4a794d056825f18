//! pkilint's ETSI linter beside `portvakt cert`: about QcStatements, the PSD2 statement, organizationIdentifier and extendedKeyUsage both find
//! faults in the same certificates, but for the differences in `pkilint/explained.txt`.
//!
//! pkilint also judges what the gateway does not: policies, alternative names, the addresses of CRLs. These findings are left out.

use crate::harness::{
    pki::{
        ExtendedKeyUsagePurpose, Extension, KeyUsagePurpose, LeafSpec, QC_STATEMENTS, QcType,
        der_oid, der_sequence, der_utf8,
    },
    world,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// The differences that are explained.
const EXPLAINED: &str = include_str!("pkilint/explained.txt");

/// The version, which decides what is found.
const PACKAGE: &str = "pkilint==0.13.3";

/// pkilint's types of certificate: it has none for QSealCs, and one for QWACs of TPPs that no browser sees.
const SEAL: &str = "NCP-LEGAL-PERSON-CERTIFICATE";
const WEB: &str = "QEVCP-W-PSD2-EIDAS-NON-BROWSER-FINAL-CERTIFICATE";

/// Python with pkilint, in a folder of its own.
fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pkilint-0.13.3");
    let python = folder.join("bin/python");
    if !folder.join("bin/lint_etsi_cert").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]));
    }
    python
}

/// The output of a command that succeeds.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let fault = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {fault}");
    String::from_utf8(output.stdout).unwrap()
}

/// Changes one fact of a certificate.
type Bend = fn(&mut LeafSpec);

/// Changes of a QSealC and of a QWAC.
const BOTH: &[(&str, Bend)] = &[
    ("good", |_| {}),
    ("no-compliance", |spec| spec.qc_compliance = false),
    ("no-type", |spec| spec.qc_type = None),
    ("no-psd2", |spec| spec.roles = None),
    ("no-roles", |spec| spec.roles = Some(Vec::new())),
    ("authority-without-country", |spec| {
        spec.nca_id = "Germany".into();
    }),
    ("authority-in-lower-case", |spec| {
        spec.nca_id = "no-fsa".into();
    }),
    ("authority-with-a-digit", |spec| {
        spec.nca_id = "NO-FSA1".into();
    }),
    ("authority-of-the-union", |spec| {
        spec.nca_id = "EU-NCA".into();
    }),
    ("identifier-of-nobody", |spec| {
        spec.organization_identifier = Some("NTRNO-1".into());
    }),
    ("identifier-in-lower-case", |spec| {
        spec.organization_identifier = Some("psdno-fsa-123456".into());
    }),
];

/// Changes of a QSealC alone.
const OF_SEALS: &[(&str, Bend)] = &[
    ("esign", |spec| spec.qc_type = Some(QcType::Esign)),
    ("no-statements", |spec| {
        spec.qc_compliance = false;
        spec.qc_type = None;
        spec.roles = None;
    }),
    ("no-identifier", |spec| spec.organization_identifier = None),
    ("no-key-usage", |spec| spec.key_usages = Vec::new()),
    ("key-encipherment", |spec| {
        spec.key_usages = vec![KeyUsagePurpose::KeyEncipherment];
    }),
    ("name-of-authority", |spec| {
        spec.nca_name = "Tilsynet på Østlandet".into();
    }),
    ("name-of-role", |spec| state(spec, &[sequence(3, "PSP_PI")])),
    ("role-5", |spec| state(spec, &[sequence(5, "PSP_CB")])),
    ("role-9", |spec| state(spec, &[sequence(9, "PSP_XX")])),
    ("roles-flattened", |spec| {
        state(spec, &[identifier(3), der_utf8("PSP_AI")]);
    }),
];

/// Changes of a QWAC alone.
const OF_WEBSITES: &[(&str, Bend)] = &[
    ("eseal", |spec| spec.qc_type = Some(QcType::Eseal)),
    ("server-auth-alone", |spec| {
        spec.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    }),
    ("client-auth-alone", |spec| {
        spec.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    }),
    ("no-extended-usage", |spec| {
        spec.extended_key_usages = Vec::new();
    }),
];

/// The object identifier of a role.
fn identifier(role: u64) -> Vec<u8> {
    der_oid(&[0, 4, 0, 19495, 1, role])
}

/// A role with a name.
fn sequence(role: u64, name: &str) -> Vec<u8> {
    der_sequence(&[identifier(role), der_utf8(name)])
}

/// Lets the certificate have a PSD2 statement with these roles, beside QcCompliance and QcType eseal.
fn state(spec: &mut LeafSpec, roles: &[Vec<u8>]) {
    let types = der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 6, 2])]);
    let authority = [der_utf8("Finanstilsynet"), der_utf8("NO-FSA")];
    let info = der_sequence(&[&[der_sequence(roles)][..], &authority].concat());
    let statements = [
        der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 1])]),
        der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 6]), types]),
        der_sequence(&[der_oid(&[0, 4, 0, 19495, 2]), info]),
    ];
    spec.qc_compliance = false;
    spec.qc_type = None;
    spec.roles = None;
    spec.extra_extensions = vec![Extension {
        oid: QC_STATEMENTS.to_vec(),
        critical: false,
        content: der_sequence(&statements),
    }];
}

/// Each certificate by its name: pkilint's type, and the specification.
fn certificates() -> BTreeMap<String, (&'static str, LeafSpec)> {
    let seal = world().leaf();
    let web = LeafSpec {
        qc_type: Some(QcType::Web),
        extended_key_usages: vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ],
        ..world().leaf()
    };
    let mut all = BTreeMap::new();
    for (of, kind, good, own) in [
        ("seal", SEAL, seal, OF_SEALS),
        ("web", WEB, web, OF_WEBSITES),
    ] {
        for (name, bend) in BOTH.iter().chain(own) {
            let mut spec = good.clone();
            bend(&mut spec);
            all.insert(format!("{of}-{name}"), (kind, spec));
        }
    }
    all
}

/// The gateway's reason for a finding of pkilint's, or the name of what no rule judges; `None` if the finding is about something else.
fn matter(code: &str) -> Option<&'static str> {
    if code.contains("extended_key_usage") || code.contains("_eku_") {
        Some("extended-key-usage")
    } else if code.starts_with("etsi.ts_119_495.")
        || code.contains(".organization_identifier_attribute")
        || code == "itu.invalid_asn1_syntax"
    {
        Some("certificate-not-psd2")
    } else if code.starts_with("etsi.en_319_412_5.")
        || code.ends_with(".key_usage_extension_absent")
    {
        Some("certificate-wrong-type")
    } else {
        None
    }
}

/// What pkilint finds in each file, by the file's stem.
fn linted(files: &BTreeMap<String, (&str, PathBuf)>) -> BTreeMap<String, BTreeSet<&'static str>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/systems/pkilint/lint.py");
    let mut lint = Command::new(python());
    lint.arg(script);
    for (kind, path) in files.values() {
        lint.arg(kind).arg(path);
    }
    let said = run(&mut lint);
    // Each certificate lacks something that the linter wants: without any finding it has not run.
    assert!(said.lines().count() >= files.len(), "{said}");
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for line in said.lines() {
        let (path, code) = line.split_once('\t').unwrap();
        let name = Path::new(path).file_stem().unwrap().to_str().unwrap();
        let matters = found.entry(name.to_owned()).or_default();
        matters.extend(matter(code));
    }
    found
}

/// The reason in the decision of `portvakt cert` on the certificate's own use; `None` if it passes.
fn decided(name: &str, file: &Path, anchors: &[PathBuf; 2]) -> Option<String> {
    let [anchors, intermediates] = anchors;
    let output = Command::new(env!("CARGO_BIN_EXE_portvakt"))
        .arg("cert")
        .arg(file)
        .arg("--anchors")
        .arg(anchors)
        .arg("--intermediates")
        .arg(intermediates)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let of = match name.starts_with("seal-") {
        true => "signatures ",
        false => "mutual TLS ",
    };
    let row = said.lines().find(|line| line.starts_with(of)).unwrap();
    if row.ends_with(" passes") {
        return None;
    }
    let mut words = row.split([' ', ':']);
    let reason = words.find(|word| word.starts_with("certificate-")).unwrap();
    Some(reason.to_owned())
}

#[test]
#[ignore = "make test-systems"]
fn pkilint_and_cert_differ_only_where_it_is_explained() {
    let folder = TempDir::new().unwrap();
    let anchors = [
        ("anchors", &world().root),
        ("intermediates", &world().issuing),
    ];
    let anchors = anchors.map(|(name, ca)| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("ca.pem"), ca.pem()).unwrap();
        path
    });
    let mut files = BTreeMap::new();
    for (name, (kind, spec)) in certificates() {
        let path = folder.path().join(format!("{name}.pem"));
        fs::write(&path, world().issuing.issue(&spec).unwrap().pem).unwrap();
        files.insert(name, (kind, path));
    }
    let linted = linted(&files);
    let mut differences = BTreeSet::new();
    for (name, (_, path)) in &files {
        let own: BTreeSet<_> = decided(name, path, &anchors).into_iter().collect();
        let other = linted.get(name).cloned().unwrap_or_default();
        let other: BTreeSet<_> = other.into_iter().map(str::to_owned).collect();
        let only = |who, one: &BTreeSet<String>, two: &BTreeSet<String>| {
            let only = one.difference(two);
            only.map(|matter| format!("{name} {who} {matter}"))
                .collect::<Vec<_>>()
        };
        differences.extend(only("portvakt", &own, &other));
        differences.extend(only("pkilint", &other, &own));
    }
    let mut explained = BTreeSet::new();
    for line in EXPLAINED.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        assert_eq!(words.len(), 4, "no reason: {line}");
        explained.insert(words[..3].join(" "));
    }
    assert_eq!(differences, explained);
}
