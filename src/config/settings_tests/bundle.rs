//! A bundle of trust anchors: what is loaded (CRT-8).

// Where it lies, and who may write there.
mod place;
// What it holds.
mod content;
// How old it is, and what ends.
mod ends;

use super::*;
use crate::{clock::Timestamp, hex};
use sha2::{Digest, Sha256};
use std::os::unix::fs::symlink;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const MADE: &str = "2026-07-16T08:00:00Z";
const NEXT: &str = "2026-11-30T12:00:00Z";

/// A configuration with a bundle and nothing else.
fn only() -> String {
    LEAST.replace("{anchors: ../certs/anchors}", "{bundle: ../lists/current}")
}

fn list(territory: &str, next: &str) -> String {
    format!(
        "{{territory: '{territory}', operator: o, version: 6, sequence: 1, issued: '{MADE}', next_update: {next}, sha256: '{0}', signer: s, signer_sha256: '{0}'}}",
        "0".repeat(64)
    )
}

/// The subject and the end of a certificate, as an import describes them.
fn described(der: &[u8]) -> (String, Timestamp) {
    let (_, parsed) = X509Certificate::from_der(der).unwrap();
    let end = parsed.validity().not_after.timestamp();
    let end = Timestamp::from_unix(end.try_into().unwrap());
    (parsed.subject().to_string(), end)
}

impl Site {
    /// A site with a bundle of two seals and one web site, to which `lists/current` leads.
    fn with_bundle() -> Self {
        let site = Self::new();
        std::fs::create_dir(site.path().join("lists")).unwrap();
        site.set_mode("lists", 0o755);
        site.write_bundle("one", &["a", "b"], &["c"]);
        symlink("one", site.path().join("lists/current")).unwrap();
        site
    }

    /// Writes a bundle. Each anchor has a service of the type that it is listed for.
    fn write_bundle(&self, name: &str, seals: &[&str], websites: &[&str]) {
        let mut text = format!(
            "format: 2\nend: true\nnamed: []\nmade: '{MADE}'\nas_of: '{MADE}'\nlist_of_lists: {}\nlists: [{}]\nanchors:\n",
            list("EU", "'2027-01-31T00:00:00Z'"),
            list("NO", &format!("'{NEXT}'")),
        );
        for folder in ["", "/seals", "/websites"] {
            let folder = format!("lists/{name}{folder}");
            std::fs::create_dir(self.path().join(&folder)).unwrap();
            self.set_mode(&folder, 0o755);
        }
        for (folder, names) in [("seals", seals), ("websites", websites)] {
            for own in names {
                let pem = match own.starts_with("leaf") {
                    true => certificate(own).0,
                    false => authority(own),
                };
                let der = X509::from_pem(&pem).unwrap().to_der().unwrap();
                let (subject, end) = described(&der);
                let digest = hex::encode(&Sha256::digest(der));
                let service = format!(
                    "{{territory: 'NO', provider: a provider, service: a service, granted_since: '{MADE}', for: [{folder}]}}"
                );
                text.push_str(&format!(
                    "- {{sha256: '{digest}', subject: '{subject}', not_after: '{end}', file: {own}.pem, for: [{folder}], services: [{service}]}}\n"
                ));
                let pem = [b"NO: a provider: a service\n".as_slice(), &pem].concat();
                self.write(&format!("lists/{name}/{folder}/{own}.pem"), pem);
            }
        }
        self.write(&format!("lists/{name}/bundle.yaml"), text);
    }

    /// The warnings of a configuration on the day after the import.
    fn warnings(&self, text: &str) -> Vec<String> {
        let settings = self.read(text).unwrap();
        let warnings = settings.reloadable.warnings.iter();
        let warnings = warnings.filter_map(|one| one.at(Timestamp::from_unix(1_784_188_800)));
        warnings.map(|one| one.to_string()).collect()
    }

    /// The faults of the bundle, without their place and the folder of the site.
    fn faults(&self) -> Vec<String> {
        let here = std::fs::canonicalize(self.path()).unwrap();
        let here = format!("{}/", here.display());
        let faults = self.read(&only()).unwrap_err().into_iter();
        let faults = faults.map(|fault| {
            let (place, text) = fault.split_once(": trust.bundle: ").unwrap();
            assert_eq!(place, "gateway.yaml:4:17");
            text.replace(&here, "").replace("../", "")
        });
        faults.collect()
    }
}

/// How many anchors there are of seals, and of clients.
fn anchors(settings: &Settings) -> [Option<usize>; 2] {
    let text = format!("{:?}", settings.reloadable.snapshot.trust);
    let mut counts = text.split("Anchors { anchors: ").skip(1);
    [(); 2].map(|()| {
        let digits = counts.next()?.split(',').next()?;
        Some(digits.parse().unwrap())
    })
}

//= CRT-8 accepted
#[test]
fn a_bundle_beside_folders_and_alone() {
    let site = Site::with_bundle();
    let settings = site.read(&only()).unwrap();
    // Seals and web sites may sign, by default; web sites alone are shown in TLS.
    assert_eq!(anchors(&settings), [Some(3), Some(1)]);
    for (types, expected) in [("eseal", 2), ("web", 1)] {
        let text = only().replace(
            "/current",
            &format!("/current, certificate_types: [{types}]"),
        );
        let settings = site.read(&text).unwrap();
        assert_eq!(anchors(&settings), [Some(expected), Some(1)], "{types}");
    }
    let files = &settings.reloadable.trust;
    assert_eq!((&files.anchors, &files.clients), (&None, &None));
    assert!(files.shown_anchors().ends_with("lists/current"));
    let bundle = files.bundle.clone().unwrap();
    assert_eq!(bundle.imported.to_string(), MADE);
    let next = bundle.next_update.unwrap();
    assert_eq!(
        (next.at.to_string().as_str(), next.territory.as_str()),
        (NEXT, "NO")
    );
    // Each folder that holds anchors is looked at, by the link.
    let named = &settings.reloadable.files.named;
    for path in [
        "lists/current",
        "lists/current/seals",
        "lists/current/websites",
    ] {
        assert!(named.iter().any(|file| file.ends_with(path)), "{path}");
    }
    let beside = |more: &str| LEAST.replace("../certs/anchors", more);
    let both = beside("../certs/anchors, bundle: ../lists/current");
    let settings = site.read(&both).unwrap();
    assert_eq!(
        anchors(&settings),
        [Some(4), Some(2)],
        "the folder serves both"
    );
    let own = both.replace(
        "server.key",
        "server.key, client_anchors: ../certs/intermediates",
    );
    let settings = site.read(&own).unwrap();
    assert_eq!(anchors(&settings), [Some(4), Some(2)]);
    // An anchor of both counts once.
    let same = beside("../lists/one/seals, bundle: ../lists/one");
    assert_eq!(anchors(&site.read(&same).unwrap()), [Some(3), Some(3)]);
    // Without a bundle, clients have the anchors of seals.
    assert_eq!(anchors(&site.read(LEAST).unwrap()), [Some(1), None]);
    let neither = LEAST.replace("anchors: ../certs/anchors", "");
    let faults = site.read(&neither).unwrap_err();
    assert_eq!(faults, ["gateway.yaml:4:1: trust.anchors: missing key"]);
}

/// As many anchors as `bundle.yaml` may list, but for a few. One OpenSSL store of all would take longer than half a minute.
//= CRT-8 accepted
#[test]
fn a_bundle_of_ten_thousand_anchors() {
    let site = Site::with_bundle();
    let names: Vec<_> = (0..9_990).map(|number| format!("n{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    site.write_bundle("large", &names, &["c"]);
    let settings = site.read(&only().replace("current", "large")).unwrap();
    assert_eq!(anchors(&settings), [Some(9_991), Some(1)]);
    let bundle = settings.reloadable.trust.bundle.as_ref().unwrap();
    assert_eq!(bundle.services.len(), 9_991);
}

/// A list may name a certificate that is no CA's: it is no anchor, and `check` counts it.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn only_cas_are_anchors_of_a_bundle() {
    let site = Site::with_bundle();
    site.write_bundle("mixed", &["a", "leaf", "leaf-2"], &["c"]);
    let text = only().replace("current", "mixed");
    let settings = site.read(&text).unwrap();
    assert_eq!(anchors(&settings), [Some(2), Some(1)]);
    let warnings = site.warnings(&text);
    assert!(
        warnings.len() == 1
            && warnings[0].contains("2 of 3 certificates in ")
            && warnings[0].contains("lists/mixed/seals are no CA's, and are left out"),
        "{warnings:?}"
    );
    // Web sites may sign too, unless the configuration says otherwise.
    site.write_bundle("leaves", &["leaf"], &["c"]);
    let leaves = only().replace("current", "leaves");
    assert!(site.read(&leaves).is_ok());
    let seals = leaves.replace("/leaves", "/leaves, certificate_types: [eseal]");
    let faults = site.read(&seals).unwrap_err();
    assert!(
        faults.len() == 1 && faults[0].contains("has no anchor of the certificates that may sign"),
        "{faults:?}"
    );
}

/// What a bundle leaves out is no fault, and `check` keeps saying it.
//= CRT-13 accepted
#[test]
fn services_that_are_left_out_are_a_warning() {
    let site = Site::with_bundle();
    let path = "lists/one/bundle.yaml";
    let text = std::fs::read_to_string(site.path().join(path)).unwrap();
    let warnings = || site.warnings(&only());
    assert!(warnings().is_empty(), "{:?}", warnings());
    let left_out = "left_out: [{territory: 'NO', provider: p, service: s, reason: withdrawn}]\n";
    site.write(
        path,
        text.replace("anchors:\n", &format!("{left_out}anchors:\n")),
    );
    let found = warnings();
    assert!(
        found.len() == 1
            && found[0].contains("names services of the lists under left_out (1 of them)"),
        "{found:?}"
    );
}

/// A newer bundle beside the one in use, whose document is damaged or missing: the next import is refused for it, and `check` tells it.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_newer_bundle_that_is_damaged_is_a_warning() {
    let site = Site::with_bundle();
    let [old, own, newer] = [15, 16, 17].map(|day| format!("2026-07-{day}T080000Z"));
    for name in [&old, &own, &newer] {
        site.write_bundle(name, &["a"], &["c"]);
    }
    let text = only().replace("current", &own);
    assert!(site.warnings(&text).is_empty());
    let document = |name: &str| format!("lists/{name}/bundle.yaml");
    // An older one has nothing that the one in use does not know.
    site.write(&document(&old), "format: [");
    assert!(site.warnings(&text).is_empty());
    for (damage, expected) in [
        (
            Some("format: 1\n"),
            "bundle.yaml: line 1: it has the format 1",
        ),
        (None, "bundle.yaml: No such file"),
    ] {
        match damage {
            Some(content) => site.write(&document(&newer), content),
            None => std::fs::remove_file(site.path().join(document(&newer))).unwrap(),
        }
        let found = site.warnings(&text);
        let [warning] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(
            warning.contains(expected) && warning.contains("the next import is refused until"),
            "{warning}"
        );
    }
}
