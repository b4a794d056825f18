//! Certificates of the development PKI that violate one rule, or many.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table is as long as its cases"
)]

// Below the anchors of trusted lists.
mod listed;

use super::{CertArgs, CertFault, run};
use crate::clock::Timestamp;
use clap::Parser;
use portvakt_development_pki::{
    Ca, CaSpec, ExtendedKeyUsagePurpose, Extension, Key, KeyUsagePurpose, LeafSpec, QcType, Role,
};
use std::{fs, process::ExitCode, sync::LazyLock, time::Duration};
use tempfile::TempDir;

/// A time within the default validity of the development PKI.
const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: CertArgs,
}

struct World {
    folder: TempDir,
    issuing: Ca,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let root = Ca::root(&CaSpec::development_root()).unwrap();
    let issuing = root.issue_ca(&CaSpec::default()).unwrap();
    for (name, pem) in [("anchors", root.pem()), ("between", issuing.pem())] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("ca.pem"), pem).unwrap();
    }
    World { folder, issuing }
});

/// Runs the command; returns its output, and whether there was no fault.
fn cert(name: &str, file: &[u8], words: &[&str]) -> Result<(String, bool), CertFault> {
    let path = WORLD.folder.path().join(name);
    fs::write(&path, file).unwrap();
    let words = [&["cert", path.to_str().unwrap()], words].concat();
    let line = Line::try_parse_from(words).unwrap();
    let mut out = Vec::new();
    let status = run(&line.args, NOW, &mut out)?;
    Ok((String::from_utf8(out).unwrap(), status == ExitCode::SUCCESS))
}

fn judged(name: &str, spec: &LeafSpec) -> (String, bool) {
    judged_at(name, spec, "2026-01-01T00:00:00Z")
}

fn judged_at(name: &str, spec: &LeafSpec, at: &str) -> (String, bool) {
    let (anchors, between) = (
        WORLD.folder.path().join("anchors"),
        WORLD.folder.path().join("between"),
    );
    let words = [
        "--anchors",
        anchors.to_str().unwrap(),
        "--intermediates",
        between.to_str().unwrap(),
        "--at",
        at,
    ];
    cert(name, &WORLD.issuing.issue(spec).unwrap().der, &words).unwrap()
}

/// The slugs, rules and clauses of the faults in an output.
fn faults(text: &str) -> Vec<&str> {
    let lines = text
        .lines()
        .skip_while(|line| !line.ends_with("fault:") && !line.ends_with("faults:"));
    lines
        .skip(1)
        .filter(|line| line.starts_with("  "))
        .map(str::trim)
        .collect()
}

#[test]
fn a_valid_certificate_is_shown() {
    let (text, good) = judged(
        "good.der",
        &LeafSpec {
            serial: Some(vec![0xab, 0x12]),
            ..LeafSpec::default()
        },
    );
    assert!(good, "{text}");
    for wanted in [
        "PSDNO-FSA-123456",
        "Eksempel Betaling AS",
        "eseal",
        "PSP_PI,PSP_AI",
        "NO-FSA (Finanstilsynet)",
        "SN=AB12\n",
        "CA=CN=Portvakt Pr\u{f8}ve-CA G1,",
        "CA=CN=Portvakt Pr\\C3\\B8ve-CA G1,",
        "RSA, 2048 bits, exponent 65537",
        "digitalSignature, nonRepudiation",
        "sha256WithRSAEncryption",
        "2  CN=Portvakt Development Root",
        "an anchor of",
        "QcSSCD          no\n",
        "qualified       claimed; nothing at hand vouches for it",
        "  PSP_PI        payment initiation; permits payments, signing-baskets, users,",
        "  PSP_AI        account information; permits accounts, agreements, consents,",
        "extended usage  none\n",
        "signatures      passes\n",
        "mutual TLS      refused with 403 FORBIDDEN certificate-wrong-type: its QcType is not web\n",
        "no fault\nnot judged: revocation, registers\n",
        "the file is DER",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

/// Changes one fact of a valid certificate.
type Bend = fn(&mut LeafSpec);

#[test]
fn one_fault_each_with_its_clause() {
    let table: [(Bend, [&str; 2]); 10] = [
        (
            |spec| spec.not_after = spec.not_before + std::time::Duration::from_secs(1),
            ["certificate-expired (CRT-2)", "RFC 5280 §4.1.2.5"],
        ),
        (
            |spec| spec.not_before = spec.not_after,
            ["certificate-not-yet-valid (CRT-2)", "RFC 5280 §4.1.2.5"],
        ),
        (
            |spec| spec.qc_compliance = false,
            ["certificate-wrong-type (CRT-3)", "ETSI EN 319 412-5 §4.2.1"],
        ),
        (
            |spec| spec.qc_type = Some(QcType::Esign),
            ["certificate-wrong-type (CRT-3)", "ETSI EN 319 412-5 §4.2.3"],
        ),
        (
            |spec| spec.key_usages = vec![KeyUsagePurpose::KeyEncipherment],
            [
                "certificate-wrong-type (CRT-3)",
                "RFC 5280 §4.2.1.3, ETSI EN 319 412-3",
            ],
        ),
        (
            |spec| spec.roles = None,
            ["certificate-not-psd2 (CRT-4)", "ETSI TS 119 495 §5.1"],
        ),
        (
            |spec| spec.roles = Some(Vec::new()),
            ["certificate-not-psd2 (CRT-4)", "ETSI TS 119 495 §5.2.2"],
        ),
        (
            |spec| spec.nca_id = "Germany".into(),
            ["certificate-not-psd2 (CRT-4)", "ETSI TS 119 495 §5.2.3"],
        ),
        (
            |spec| spec.organization_identifier = Some("NTRNO-1".into()),
            [
                "certificate-not-psd2 (CRT-4)",
                "ETSI TS 119 495 §5.2.1, ETSI EN 319 412-1 §5.1.4",
            ],
        ),
        (
            |spec| spec.key = Key::EcP256,
            ["certificate-weak (SIG-5)", "ETSI TS 119 312"],
        ),
    ];
    for (index, (bend, [slug, clause])) in table.into_iter().enumerate() {
        let mut spec = LeafSpec::default();
        bend(&mut spec);
        let (text, good) = judged(&format!("bent-{index}.der"), &spec);
        let found = faults(&text);
        assert!(!good && found.len() == 3, "{text}");
        assert_eq!([found[0], found[2]], [slug, clause], "{text}");
    }
}

#[test]
fn all_faults_are_reported() {
    let spec = LeafSpec {
        organization_identifier: None,
        roles: None,
        qc_compliance: false,
        qc_type: None,
        key_usages: Vec::new(),
        key: Key::EcP256,
        is_ca: true,
        extra_extensions: vec![Extension {
            oid: vec![1, 2, 3, 4],
            critical: true,
            content: vec![5, 0],
        }],
        ..LeafSpec::default()
    };
    let (text, good) = judged("many.der", &spec);
    let found = faults(&text);
    assert!(!good);
    let slugs: Vec<_> = found.iter().step_by(3).copied().collect();
    assert_eq!(
        slugs,
        [
            "certificate-weak (SIG-5)",
            "certificate-untrusted (CRT-10)",
            "certificate-untrusted (CRT-2)",
            "certificate-untrusted (CRT-2, CRT-9)",
            "certificate-wrong-type (CRT-3, CRT-4)",
            "certificate-wrong-type (CRT-3)",
            "certificate-not-psd2 (CRT-4)",
        ],
        "{text}"
    );
    assert!(
        text.contains("1.2.3.4") && text.contains("EC, 256 bits"),
        "{text}"
    );
    assert!(text.contains("no QcStatements"), "{text}");
}

#[test]
fn spellings_trailing_bytes_and_no_anchors() {
    let issued = WORLD.issuing.issue(&LeafSpec::default()).unwrap();
    let (text, good) = cert(
        "plain.pem",
        format!("{}{}", issued.key_pem, issued.pem).as_bytes(),
        &[],
    )
    .unwrap();
    assert!(good, "{text}");
    assert!(
        text.contains("not looked for")
            && text.contains("signatures      not judged: name anchors")
            && text.contains("not judged: the chain, revocation, registers")
    );
    // The key is named, and no part of it is shown.
    let warning = "warning: the file also has a private key, which is not read";
    assert_eq!(text.matches(warning).count(), 1, "{text}");
    let mut parts = issued.key_pem.lines().filter(|line| !line.is_empty());
    assert!(parts.all(|line| !text.contains(line)), "{text}");
    assert!(!text.contains("PRIVATE KEY"));
    let chain = format!("{}{}", issued.pem, WORLD.issuing.pem());
    let (text, _) = cert("chain.pem", chain.as_bytes(), &[]).unwrap();
    assert!(text.contains("1  CN=Portvakt Pr\u{f8}ve-CA G1"), "{text}");
    assert!(!text.contains("private key"), "{text}");
    let (text, good) = cert("longer.der", &[&issued.der[..], &[0]].concat(), &[]).unwrap();
    assert!(!good);
    assert_eq!(faults(&text)[0], "certificate-malformed (CRT-10)");
    let at = ["--at", "2050-01-01T00:00:00Z"];
    let (text, good) = cert("late.pem", issued.pem.as_bytes(), &at).unwrap();
    assert!(!good && text.contains("ended 3653 days ago"), "{text}");
}

#[test]
fn unusable_input() {
    for bad in [&b"hello"[..], b"", b"AAAA", b"-----BEGIN CERTIFICATE-----"] {
        assert!(
            matches!(cert("bad.txt", bad, &[]), Err(CertFault::Unreadable { .. })),
            "{bad:?}"
        );
    }
    let nowhere = ["--anchors", "/nowhere"];
    let issued = WORLD.issuing.issue(&LeafSpec::default()).unwrap();
    assert!(matches!(
        cert("x.der", &issued.der, &nowhere),
        Err(CertFault::Folder(_))
    ));
    assert!(Line::try_parse_from(["cert", "x", "--config", "a", "--anchors", "b"]).is_err());
}

/// CRT-5: a role that no operation needs, beside one that permits some.
#[test]
fn roles_and_what_they_permit() {
    let spec = LeafSpec {
        roles: Some(vec![Role::AccountServicing, Role::CardIssuing]),
        ..LeafSpec::default()
    };
    let (text, good) = judged("issuer.der", &spec);
    assert!(good, "{text}");
    for wanted in [
        "PSP_AS,PSP_IC\n",
        "  PSP_AS        account servicing; permits no operation\n",
        "  PSP_IC        issuing of card-based payment instruments; permits no operation\n",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

/// A QWAC with these usages, issued so many seconds after 2020 began.
fn qwac(usages: &[ExtendedKeyUsagePurpose], seconds: u64) -> LeafSpec {
    let spec = LeafSpec::default();
    LeafSpec {
        qc_type: Some(QcType::Web),
        extended_key_usages: usages.to_vec(),
        not_before: spec.not_before + Duration::from_secs(seconds),
        ..spec
    }
}

/// TLS-3: the gateway judges no extendedKeyUsage, and the text says what that means for a QWAC without clientAuth.
#[test]
fn a_qwac_with_server_auth_alone() {
    use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    // 15 June 2026, and the second before.
    let change = 203_644_800;
    let table: [(&[_], u64, bool, bool, &str); 4] = [
        (&[ServerAuth], change, true, true, "serverAuth\n"),
        (&[ServerAuth], change - 1, true, false, "serverAuth\n"),
        (
            &[ServerAuth, ClientAuth],
            change,
            false,
            false,
            "serverAuth, clientAuth\n",
        ),
        (&[], change, false, false, "none\n"),
    ];
    for (usages, seconds, asks, dated, names) in table {
        let spec = qwac(usages, seconds);
        let (text, good) = judged_at("alone.der", &spec, "2027-01-01T00:00:00Z");
        assert!(good, "{text}");
        for row in ["signatures      passes\n", "mutual TLS      passes\n"] {
            assert!(text.contains(row), "{text}");
        }
        let row = format!("extended usage  {names}");
        assert!(text.contains(&row), "{text}");
        assert_eq!(text.contains("ask the QTSP for"), asks, "{text}");
        assert_eq!(text.contains("issued since 15 June 2026"), dated, "{text}");
    }
    // Nobody asks a certificate for seals whether it is one for clients.
    let seal = LeafSpec {
        qc_type: Some(QcType::Eseal),
        ..qwac(&[ServerAuth], change)
    };
    let (text, _) = judged_at("seal.der", &seal, "2027-01-01T00:00:00Z");
    assert!(!text.contains("ask the QTSP for"), "{text}");
}

/// TLS-3: neither the key nor the key usage of a QWAC is judged, which a signature needs.
#[test]
fn a_qwac_that_cannot_sign() {
    let spec = LeafSpec {
        key: Key::EcP256,
        key_usages: vec![KeyUsagePurpose::KeyEncipherment],
        ..qwac(&[], 0)
    };
    let (text, good) = judged("ec.der", &spec);
    assert!(!good);
    for wanted in [
        "signatures      refused with 403 FORBIDDEN certificate-weak: its key is not an RSA key\n",
        "mutual TLS      passes\n",
        "2 faults:\n",
        "no fault for mutual TLS\n",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    let (text, _) = judged(
        "unqualified.der",
        &LeafSpec {
            qc_compliance: false,
            ..qwac(&[], 0)
        },
    );
    for wanted in [
        "qualified       not claimed",
        "1 fault for mutual TLS:\n  certificate-wrong-type (CRT-3)",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

/// CRT-3: the configuration's types of certificate count, as for a request.
#[test]
fn by_a_configuration() {
    let put = |name: &str, text: &str| fs::write(WORLD.folder.path().join(name), text).unwrap();
    let spec = LeafSpec::default();
    let root = Ca::root(&CaSpec::development_root()).unwrap();
    let server = root
        .issue_server(&Key::EcP256, spec.not_before, spec.not_after)
        .unwrap();
    put("server.pem", &server.pem);
    let key = WORLD.folder.path().join("server.key");
    crate::private_file::make(&key, server.key_pem.as_bytes()).unwrap();
    let issued = WORLD.issuing.issue(&qwac(&[], 0)).unwrap();
    for (types, is_good) in [("[eseal, web]", true), ("[web]", true), ("[eseal]", false)] {
        put(
            "gateway.yaml",
            &format!(
                "environment: sandbox\nlistener:\n  address: 127.0.0.1:8443\n  certificate: server.pem\n  key: server.key\nupstream:\n  address: 127.0.0.1:8080\ntrust:\n  anchors: anchors\n  intermediates: between\n  certificate_types: {types}\nsca:\n  page: https://bank.example/sca\n  token_keys: sca-token.keys\n"
            ),
        );
        let config = WORLD.folder.path().join("gateway.yaml");
        let by = ["--config", config.to_str().unwrap()];
        let (text, good) = cert("web.der", &issued.der, &by).unwrap();
        assert_eq!(good, is_good, "{types}: {text}");
        assert_eq!(
            text.contains("certificate-wrong-type (CRT-3)"),
            !is_good,
            "{text}"
        );
        for wanted in [
            "mutual TLS      passes; this gateway asks for no client certificate (listener.client_auth: off)",
            "qualified       claimed; no trusted list at hand says so",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }
    // A header has 16 KiB.
    let padding = Extension {
        oid: vec![1, 2, 3, 4],
        critical: false,
        content: [&[4, 0x82, 0x32, 0xc8][..], &[0; 13_000]].concat(),
    };
    let long = LeafSpec {
        extra_extensions: vec![padding],
        ..LeafSpec::default()
    };
    let (text, good) = judged("long.der", &long);
    assert!(
        !good && text.contains("headers-too-large (HTTP-9)"),
        "{text}"
    );
}
