//! Who would lose trust: minted lists, bundles of them, and certificates below their CAs.

// What cannot be read, and days that lie ahead.
mod damage;
// The rules by which the gateway judges.
mod forecast;
// The options that say what the gateway is, and which files are believed.
mod options;

use super::SeenCertificates;
use crate::{
    Certificate,
    bundle::{BundleFolder, CURRENT, GatewayConfig, dated, describe_import},
    for_tests::mint::{List, Scheme, Service, Signer},
    import::{Imported, Request, import, lists_in},
    show::Shown,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use portvakt_base::{clock::Timestamp, hex};
use portvakt_development_pki::{Ca, CaSpec, LeafSpec, QcType};
use portvakt_trust::CertificateTypes;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// 2026-07-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_unix(1_782_864_000);

fn ca(name: &str) -> Ca {
    let spec = CaSpec {
        common_name: name.into(),
        path_length: None,
        ..CaSpec::default()
    };
    Ca::root(&spec).unwrap()
}

fn leaf(ca: &Ca) -> Certificate {
    Certificate::from_der(ca.issue(&LeafSpec::default()).unwrap().der).unwrap()
}

fn qwac(ca: &Ca) -> Certificate {
    let spec = LeafSpec {
        qc_type: Some(QcType::Web),
        ..LeafSpec::default()
    };
    Certificate::from_der(ca.issue(&spec).unwrap().der).unwrap()
}

fn service(name: &'static str, ca: &Ca, uses: &[&'static str]) -> Service {
    Service {
        certificate: Some(Certificate::from_der(ca.der().to_vec()).unwrap()),
        additional: uses.to_vec(),
        ..Service::for_seals(name)
    }
}

fn imported(services: Vec<Service>) -> Imported {
    let folder = tempfile::tempdir().unwrap();
    let commission = Signer::new("Commission", Scheme::Ecdsa);
    let norway = Signer::new("Norway", Scheme::Ecdsa);
    let of_lists = folder.path().join("eu.xml");
    let text = List::of_lists(&[("NO", &norway.certificate)]).sign(&commission);
    fs::write(&of_lists, text).unwrap();
    let list = List::national("NO", services).sign(&norway);
    fs::write(folder.path().join("NO.xml"), list).unwrap();
    let request = Request {
        list_of_lists: of_lists,
        pins: vec![commission.certificate.clone()],
        lists: lists_in(folder.path()).unwrap(),
        leave_out: BTreeSet::new(),
        at: NOW,
        verifiers: crate::second::Verifiers::default(),
    };
    import(&request, &mut |_| {}).unwrap()
}

/// Writes a bundle, made so many seconds after [`NOW`].
fn write(out: &Path, services: Vec<Service>, seconds: u64, is_held: bool) {
    let imported = imported(services);
    let made = Timestamp::from_unix(NOW.unix() + seconds);
    let bundle = describe_import(&imported, &[], made);
    let folder = BundleFolder::open(out).unwrap();
    let written = match is_held {
        true => folder.hold(&bundle, &imported.anchors),
        false => folder.write(&bundle, &imported.anchors),
    };
    written.unwrap();
}

/// A line as a gateway writes it.
fn line(tpp: &str, day: &str, certificate: &Certificate, pool: &[&[u8]]) -> String {
    let pool: Vec<_> = pool.iter().map(|der| STANDARD.encode(der)).collect();
    let line = serde_json::json!({
        "tpp": tpp,
        "lastSeen": day,
        "certificate": STANDARD.encode(certificate.der()),
        "intermediates": pool,
    });
    format!("{line}\n")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

struct Place {
    folder: tempfile::TempDir,
    bundles: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bundles = folder.path().join("bundles");
        Self { folder, bundles }
    }

    fn seen(&self, name: &str, lines: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, lines).unwrap();
        set_mode(&path, 0o644);
        path
    }

    fn losses(&self, seen: &[PathBuf], intermediates: &[Certificate]) -> String {
        let types = CertificateTypes::default();
        let config = GatewayConfig {
            intermediates,
            types,
            ..GatewayConfig::default()
        };
        self.losses_by(seen, config)
    }

    fn losses_by(&self, seen: &[PathBuf], config: GatewayConfig<'_>) -> String {
        let seen = SeenCertificates::read(seen, NOW).unwrap();
        let shown = Shown::open(&self.bundles, NOW).unwrap();
        shown.losses(&seen, config, NOW).unwrap().join("\n")
    }
}

//= CRT-13 accepted
#[test]
fn who_would_lose_trust_by_a_bundle_that_is_held() {
    let (stays, goes, own) = (ca("Stays"), ca("Goes"), ca("The bank's own"));
    let web = ca("Websites only");
    let place = Place::new();
    let kept = || service("Kept", &stays, &["ForeSeals"]);
    let services = vec![
        kept(),
        service("Withdrawn", &goes, &["ForeSeals"]),
        service("Web", &web, &["ForWebSiteAuthentication"]),
    ];
    write(&place.bundles, services, 0, false);
    write(&place.bundles, vec![kept()], 1, true);
    let bundles = dated(&place.bundles).unwrap();
    let current = fs::read_link(place.bundles.join(CURRENT)).unwrap();
    let held = "the other is held";
    assert_eq!(current, bundles[0].file_name().unwrap(), "{held}");

    let lost = leaf(&goes);
    let lines = [
        line("PSDNO-FSA-1", "2026-06-30", &lost, &[]),
        line("PSDNO-FSA-2", "2026-06-30", &leaf(&stays), &[]),
        line("PSDNO-FSA-3", "2026-06-30", &leaf(&own), &[]),
        line("PSDNO-FSA-4", "2026-06-01", &qwac(&web), &[]),
        // 31 days ago.
        line("PSDNO-FSA-5", "2026-05-31", &leaf(&goes), &[]),
        "{\"tpp\":\"PSDNO-FSA-6\"}\n".to_owned(),
    ];
    let one = place.seen("one", &lines.concat());
    // Another gateway saw it later.
    let two = place.seen("two", &line("PSDNO-FSA-1", "2026-07-01", &lost, &[]));
    let text = place.losses(&[one.clone(), two], &[]);
    assert!(
        text.contains(
            "TPPs that would lose trust, of 4 seen within 30 days:\n  PSDNO-FSA-1: certificate "
        ),
        "{text}"
    );
    let serial = hex::encode(lost.parse().unwrap().raw_serial());
    let serial = serial.to_ascii_uppercase();
    assert!(text.contains(serial.trim_start_matches("00")), "{text}");
    assert!(text.contains("CN=Goes"), "{text}");
    assert!(text.contains("last seen 2026-07-01: NO "), "{text}");
    assert!(text.contains("for seals: Withdrawn\n"), "{text}");
    assert!(text.contains("\n  PSDNO-FSA-4: certificate "), "{text}");
    assert!(text.contains("for websites: Web\n"), "{text}");
    let counts = "certificates judged: 4; 2 would lose trust, 1 are trusted, 1 are trusted by neither bundle, 0 have ended";
    assert!(text.contains(counts), "{text}");
    let damaged = format!(
        "no certificate: 1\n  {}, line 6, of PSDNO-FSA-6",
        one.display()
    );
    assert!(text.contains(&damaged), "{text}");

    // The rest of the page is about the same two bundles.
    let shown = Shown::open(&place.bundles, NOW).unwrap();
    let page = shown.lines(&[], NOW).join("\n");
    let name = current.display().to_string();
    assert!(
        page.contains(&format!("\nnot in use: current leads to {name}\n")),
        "{page}"
    );
    assert!(
        page.contains(&format!("\nchanges since {name}:\n  - NO ")),
        "{page}"
    );
    let withdrawn = format!(
        "services that are granted no more, or under another name, since {name}:\n  NO Web (Provider of NO), for websites\n  NO Withdrawn (Provider of NO), for seals"
    );
    assert!(page.contains(&withdrawn), "{page}");
    // The bundle in use has none before it.
    let shown = Shown::open(&place.bundles.join(CURRENT), NOW).unwrap();
    assert!(shown.before.is_none() && shown.in_use.is_none());

    // Once it is in use, it is compared with the one before.
    write(&place.bundles, vec![kept()], 2, false);
    let text = place.losses(std::slice::from_ref(&one), &[]);
    assert!(text.contains("of 4 seen within 30 days:\n  none"), "{text}");
    assert!(text.contains("3 are trusted by neither bundle"), "{text}");
}

/// The issuer keeps its service, and the list says of the TPP's certificate that it is not qualified; or it keeps that for the other type.
//= CRT-3 refused
#[test]
fn a_service_that_vouches_no_more() {
    let ca = ca("Vouches");
    let granted = |uses: &[&'static str]| service("Granted", &ca, uses);
    let mut unqualified = granted(&["ForeSeals"]);
    unqualified.extensions = "<Extension Critical=\"true\"><sie:Qualifications xmlns:sie=\"http://uri.etsi.org/TrstSvc/SvcInfoExt/eSigDir-1999-93-EC-TrustedList/#\"><sie:QualificationElement><sie:Qualifiers><sie:Qualifier uri=\"http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/NotQualified\"></sie:Qualifier></sie:Qualifiers><sie:CriteriaList assert=\"atLeastOne\"><sie:KeyUsage><sie:KeyUsageBit name=\"nonRepudiation\">true</sie:KeyUsageBit></sie:KeyUsage></sie:CriteriaList></sie:QualificationElement></sie:Qualifications></Extension>".to_owned();
    for (after, is_lost) in [
        (granted(&["ForeSeals", "ForWebSiteAuthentication"]), false),
        (granted(&["ForWebSiteAuthentication"]), true),
        (unqualified, true),
    ] {
        let place = Place::new();
        write(&place.bundles, vec![granted(&["ForeSeals"])], 0, false);
        write(&place.bundles, vec![after], 1, true);
        let seen = place.seen("one", &line("PSDNO-FSA-1", "2026-06-30", &leaf(&ca), &[]));
        let text = place.losses(&[seen], &[]);
        assert_eq!(
            text.contains("  PSDNO-FSA-1: certificate "),
            is_lost,
            "{text}"
        );
    }
    // A gateway of an earlier version took it: neither bundle vouches for a QWAC.
    let place = Place::new();
    write(&place.bundles, vec![granted(&["ForeSeals"])], 0, false);
    let seen = place.seen("one", &line("PSDNO-FSA-2", "2026-06-30", &qwac(&ca), &[]));
    let text = place.losses(&[seen], &[]);
    assert!(text.contains("seen within 30 days:\n  none\n"), "{text}");
    let (_, refused) = text
        .split_once("\ntrusted by neither bundle, and refused by this one ")
        .unwrap();
    assert!(refused.contains("\n  PSDNO-FSA-2: certificate "), "{text}");
    let why = ": the trusted lists grant its issuer no service for web sites (QcType web)";
    assert!(refused.contains(why), "{text}");
}

//= CRT-13 accepted
#[test]
fn intermediates_and_ends() {
    let root = ca("Root");
    let below = CaSpec {
        common_name: "Below".into(),
        ..CaSpec::default()
    };
    let below = root.issue_ca(&below).unwrap();
    let place = Place::new();
    let services = vec![
        service("A root", &root, &["ForeSeals"]),
        service("Another", &ca("Another"), &["ForeSeals"]),
    ];
    write(&place.bundles, services.clone(), 0, false);
    write(&place.bundles, services[1..].to_vec(), 1, false);
    let ended = LeafSpec {
        not_after: LeafSpec::default().not_before + time::Duration::days(1),
        ..LeafSpec::default()
    };
    let ended = Certificate::from_der(root.issue(&ended).unwrap().der).unwrap();
    let lines = [
        line("PSDNO-FSA-1", "2026-07-01", &leaf(&below), &[below.der()]),
        line("PSDNO-FSA-2", "2026-07-01", &leaf(&below), &[]),
        line("PSDNO-FSA-3", "2026-07-01", &ended, &[]),
    ];
    let seen = place.seen("seen", &lines.concat());
    let text = place.losses(std::slice::from_ref(&seen), &[]);
    let counts =
        "3; 1 would lose trust, 0 are trusted, 1 are trusted by neither bundle, 1 have ended";
    assert!(text.contains(counts), "{text}");
    assert!(text.contains("  PSDNO-FSA-1: "), "{text}");
    let at_hand = Certificate::from_der(below.der().to_vec()).unwrap();
    let text = place.losses(&[seen], &[at_hand]);
    assert!(text.contains("  PSDNO-FSA-2: "), "{text}");
    assert!(text.contains("3; 2 would lose trust"), "{text}");
}

/// A TPP whose own certificate is listed does not vouch for itself: the gateway has no such anchor either.
//= CRT-13 refused
#[test]
fn what_is_no_cas_is_no_anchor() {
    let place = Place::new();
    let listed = leaf(&ca("Not listed"));
    let of_leaf = Service {
        certificate: Some(listed.clone()),
        ..Service::for_seals("Of a leaf")
    };
    let one = ca("One");
    let services = vec![of_leaf, service("Of a CA", &one, &["ForeSeals"])];
    write(&place.bundles, services, 0, false);
    let lines = [
        line("PSDNO-FSA-1", "2026-06-30", &listed, &[]),
        line("PSDNO-FSA-2", "2026-06-30", &leaf(&one), &[]),
    ];
    let text = place.losses(&[place.seen("seen", &lines.concat())], &[]);
    let counts = "2; 0 would lose trust, 1 are trusted, 1 are trusted by neither bundle, 0 have";
    assert!(text.contains(counts), "{text}");
}

//= CRT-13 refused
#[test]
fn a_file_of_something_else_is_refused() {
    let place = Place::new();
    for text in [
        "root:x:0:0:root:/root:/bin/sh\n",
        "{}\n",
        "[]",
        "null",
        "\n\0",
    ] {
        let path = place.seen("other", text);
        let fault = SeenCertificates::read(&[path], NOW);
        let fault = fault.unwrap_err().to_string();
        let expected = "other: no line of it is a certificate that a gateway has seen; name the file seen-certificates.jsonl";
        assert!(fault.contains(expected), "{text:?}: {fault}");
    }
    for text in ["", "\n", "\n \r\n"] {
        let path = place.seen("none", text);
        let seen = SeenCertificates::read(&[path], NOW).unwrap();
        assert!(seen.found.is_empty() && seen.damaged.count == 0, "{text:?}");
    }
}

//= CRT-13 refused
#[test]
fn what_cannot_be_read_is_named() {
    let place = Place::new();
    let one = ca("One");
    let services = vec![service("One", &one, &["ForeSeals"])];
    write(&place.bundles, services, 0, false);
    let missing = place.folder.path().join("none");
    let fault = SeenCertificates::read(&[missing], NOW);
    let fault = fault.unwrap_err().to_string();
    assert!(fault.contains("none: it cannot be read"), "{fault}");
    // An anchor that is not the one that was imported.
    let shown = Shown::open(&place.bundles, NOW).unwrap();
    let file = &shown.bundle.anchors[0].file;
    fs::write(shown.folder.join("seals").join(file), ca("Other").pem()).unwrap();
    let seen = SeenCertificates::default();
    let fault = shown.losses(&seen, GatewayConfig::default(), NOW);
    let fault = fault.unwrap_err().to_string();
    assert!(
        fault.contains("is not the certificate that bundle.yaml lists"),
        "{fault}"
    );
}
