//! Certificates below the anchors of trusted lists: which service vouches, which of several anchors decides, and what one of the operator's
//! own hides (CRT-3, CRT-13).

use super::{WORLD, cert, faults, qwac};
use crate::{clock::Timestamp, hex, tools::cert::CertFault};
use openssl::rsa::Rsa;
use portvakt_development_pki::{Ca, CaSpec, Key, LeafSpec};
use sha2::{Digest, Sha256};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};
use tempfile::TempDir;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// An anchor of a bundle: its certificate, the folder in which it stands, and its services.
struct ListedCa<'a> {
    ca: &'a Ca,
    of: &'a str,
    services: &'a str,
}

/// Writes a bundle whose only anchor is the issuing CA, for seals, with these services, and a configuration that names it; returns the
/// latter.
fn with_bundle(folder: &Path, services: &str) -> String {
    let of = "seals";
    let ca = &WORLD.issuing;
    with_bundle_of(folder, &[ListedCa { ca, of, services }])
}

/// The same with these anchors.
fn with_bundle_of(folder: &Path, anchors: &[ListedCa<'_>]) -> String {
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let lists = folder.join("lists");
    for path in [
        folder,
        &lists,
        &lists.join("seals"),
        &lists.join("websites"),
    ] {
        fs::create_dir_all(path).unwrap();
        set_mode(path, 0o755);
    }
    let mut document = "format: 2\nend: true\nnamed: []\nmade: 2025-12-01T00:00:00Z\nas_of: 2025-12-01T00:00:00Z\n\
         list_of_lists: {territory: EU, operator: o, version: 6, sequence: 1, issued: 2025-12-01T00:00:00Z, sha256: @, signer: x, signer_sha256: @}\n\
         lists: [{territory: 'NO', operator: o, version: 6, sequence: 1, issued: 2025-12-01T00:00:00Z, sha256: @, signer: x, signer_sha256: @}]\n\
         anchors:\n"
        .replace('@', &"0".repeat(64));
    let write = |name: &str, text: &str| {
        fs::write(lists.join(name), text).unwrap();
        set_mode(&lists.join(name), 0o644);
    };
    for (number, ListedCa { ca, of, services }) in anchors.iter().enumerate() {
        let sha256 = hex::encode(&Sha256::digest(ca.der()));
        let (_, parsed) = X509Certificate::from_der(ca.der()).unwrap();
        let end = parsed.validity().not_after.timestamp();
        let end = Timestamp::from_unix(end.try_into().unwrap());
        let subject = parsed.subject();
        document.push_str(&format!(
            "- {{sha256: {sha256}, subject: '{subject}', not_after: {end}, file: ca-{number}.pem, for: [{of}], services: [{services}]}}\n"
        ));
        write(&format!("{of}/ca-{number}.pem"), &ca.pem());
    }
    write("bundle.yaml", &document);
    let spec = LeafSpec::default();
    let root = Ca::root(&CaSpec::development_root()).unwrap();
    let server = root.issue_server(&Key::EcP256, spec.not_before, spec.not_after);
    let server = server.unwrap();
    fs::write(folder.join("server.pem"), &server.pem).unwrap();
    let key = folder.join("server.key");
    if !key.exists() {
        crate::private_file::make(&key, server.key_pem.as_bytes()).unwrap();
    }
    let config = folder.join("gateway.yaml");
    let yaml = "environment: sandbox\ncertificate_policy: tolerant\n\
        listener: {address: 127.0.0.1:8443, certificate: server.pem, key: server.key}\n\
        upstream: {address: 127.0.0.1:8080}\ntrust: {bundle: lists}\n\
        sca: {page: https://bank.example/sca, token_keys: sca-token.keys}\n";
    fs::write(&config, yaml).unwrap();
    config.to_str().unwrap().to_owned()
}

/// CRT-13: the service of the trusted list that vouches for the issuer.
#[test]
fn the_service_that_vouches() {
    let service = |since: &str, of: &str| {
        format!(
            "{{territory: 'NO', provider: Eksempel Tillit AS, service: Segl G1, granted_since: '{since}-01-01T00:00:00Z', for: [{of}]}}"
        )
    };
    let seal = LeafSpec::default();
    let web = qwac(&[], 0);
    let named =
        "list of NO: Eksempel Tillit AS, Segl G1, granted since Tue, 01 Jan 2019 00:00:00 GMT\n";
    for (services, spec, wanted) in [
        (
            service("2019", "seals"),
            &seal,
            format!("  for seals     {named}"),
        ),
        (
            service("2021", "seals"),
            &seal,
            "01 Jan 2021 00:00:00 GMT, which is after the certificate was issued\n".to_owned(),
        ),
        // The anchors of seals judge no QWAC of a connection.
        (
            service("2019", "seals"),
            &web,
            "  for web sites no service vouches for it: its chain ends at no anchor for this use\n"
                .to_owned(),
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let config = with_bundle(folder.path(), &services);
        let der = WORLD.issuing.issue(spec).unwrap().der;
        let (text, _) = cert("vouched.der", &der, &["--config", &config]).unwrap();
        for wanted in ["qualified       claimed; by the trusted lists in", &wanted] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }
}

/// CRT-3: a qualification of the list refuses, and an anchor of the operator's own does not make the certificate qualified.
#[test]
fn a_certificate_that_its_list_calls_not_qualified() {
    let folder = TempDir::new().unwrap();
    let service = "{territory: 'NO', provider: P, service: S, granted_since: '2019-01-01T00:00:00Z', for: [seals], \
        qualifications: [{qualifiers: [NotQualified], criteria: {assert: all}}]}";
    let config = with_bundle(folder.path(), service);
    let der = WORLD.issuing.issue(&LeafSpec::default()).unwrap().der;
    let judged = || cert("not-qualified.der", &der, &["--config", &config]).unwrap();
    let (text, good) = judged();
    let why = "the trusted list of its issuer says NotQualified of certificates like this one\n";
    for wanted in [
        format!("  for seals     no service vouches for it: {why}"),
        format!("signatures      refused with 403 FORBIDDEN certificate-wrong-type: {why}"),
    ] {
        assert!(!good && text.contains(&wanted), "{wanted}\n{text}");
    }
    assert_eq!(faults(&text)[0], "certificate-wrong-type (CRT-3)", "{text}");
    let own = folder.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("ca.pem"), WORLD.issuing.pem()).unwrap();
    let yaml = fs::read_to_string(&config).unwrap();
    fs::write(
        &config,
        yaml.replace("{bundle: lists}", "{anchors: own, bundle: lists}"),
    )
    .unwrap();
    let (text, good) = judged();
    for wanted in [
        format!("  for seals     no service vouches for it: {why}"),
        "                an anchor of your own vouches for it (trust.anchors)\n".to_owned(),
        "signatures      passes\n".to_owned(),
    ] {
        assert!(good && text.contains(&wanted), "{wanted}\n{text}");
    }
}

/// CRT-9: what a tolerant policy lets pass is a fault all the same.
#[test]
fn a_fault_that_the_policy_tolerates() {
    let folder = TempDir::new().unwrap();
    let service = "{territory: 'NO', provider: P, service: S, granted_since: '2019-01-01T00:00:00Z', for: [seals]}";
    let config = with_bundle(folder.path(), service);
    let spec = LeafSpec {
        roles: Some(Vec::new()),
        ..LeafSpec::default()
    };
    let der = WORLD.issuing.issue(&spec).unwrap().der;
    let (text, good) = cert("tolerated.der", &der, &["--config", &config]).unwrap();
    let wanted = "signatures      passes, since certificate_policy: tolerant accepts roles-empty\n";
    assert!(!good && text.contains(wanted), "{text}");
    assert_eq!(faults(&text)[0], "certificate-not-psd2 (CRT-4)", "{text}");
}

fn service(name: &str, of: &str, more: &str) -> String {
    format!(
        "{{territory: 'NO', provider: P, service: {name}, granted_since: '2019-01-01T00:00:00Z', for: [{of}]{more}}}"
    )
}

/// CRT-3: the service of an anchor that has ended vouches for its key, which another anchor has that is valid.
#[test]
fn an_anchor_that_has_ended_vouches_by_its_key() {
    let key = Rsa::generate(2048).unwrap().private_key_to_pem().unwrap();
    let key = String::from_utf8(key).unwrap();
    let ca = |common_name: &str, days: u64| {
        let spec = CaSpec::default();
        let lasts = Duration::from_secs(days * 86_400);
        let spec = CaSpec {
            common_name: common_name.to_owned(),
            key: Key::RsaPem(key.clone()),
            not_after: spec.not_before + lasts,
            ..spec
        };
        Ca::root(&spec).unwrap()
    };
    // From 2015 on: one has ended in 2025, the other lasts until 2045.
    let (ended, valid) = (ca("Of both", 10 * 365), ca("Of both", 30 * 365));
    let der = valid.issue(&LeafSpec::default()).unwrap().der;
    let folder = TempDir::new().unwrap();
    let (seals, websites) = (
        service("Seals", "seals", ""),
        service("Sites", "websites", ""),
    );
    let anchors = [
        ListedCa {
            ca: &ended,
            of: "seals",
            services: &seals,
        },
        ListedCa {
            ca: &valid,
            of: "websites",
            services: &websites,
        },
    ];
    let config = with_bundle_of(folder.path(), &anchors);
    let judged = || cert("ended.der", &der, &["--config", &config]).unwrap();
    let (text, good) = judged();
    let vouches =
        "  for seals     list of NO: P, Seals, granted since Tue, 01 Jan 2019 00:00:00 GMT\n";
    for wanted in [vouches, "signatures      passes\n"] {
        assert!(good && text.contains(wanted), "{wanted}\n{text}");
    }
    for other in ["no service vouches", "an anchor of your own", "Sites"] {
        assert!(!text.contains(other), "{other}\n{text}");
    }
    // Where certificates for seals alone may sign, no chain ends at the other anchor.
    let yaml = fs::read_to_string(&config).unwrap();
    let yaml = yaml.replace("bundle: lists", "bundle: lists, certificate_types: [eseal]");
    fs::write(&config, yaml).unwrap();
    let (text, good) = judged();
    assert!(!good && text.contains(vouches), "{text}");
    let refused = "signatures      refused with 403 FORBIDDEN certificate-expired";
    assert!(text.contains(refused), "{text}");
}

/// CRT-3: an anchor of the operator's own, below a root of which a list says NotQualified, hides nothing that the list says.
#[test]
fn an_anchor_of_the_operator_below_a_listed_root() {
    let root = Ca::root(&CaSpec::development_root()).unwrap();
    let issuing = root.issue_ca(&CaSpec::default()).unwrap();
    let der = issuing.issue(&LeafSpec::default()).unwrap().der;
    let doubt = ", qualifications: [{qualifiers: [NotQualified], criteria: {assert: all}}]";
    let own_word = "                an anchor of your own vouches for it (trust.anchors)\n";
    for (more, says) in [
        (
            doubt,
            "  for seals     no service vouches for it: the trusted list of its issuer says NotQualified of certificates like this one\n",
        ),
        (
            "",
            "  for seals     list of NO: P, Root, granted since Tue, 01 Jan 2019 00:00:00 GMT\n",
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let services = service("Root", "seals", more);
        let anchor = ListedCa {
            ca: &root,
            of: "seals",
            services: &services,
        };
        let config = with_bundle_of(folder.path(), &[anchor]);
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("ca.pem"), issuing.pem()).unwrap();
        let yaml = fs::read_to_string(&config).unwrap();
        let yaml = yaml.replace("{bundle: lists}", "{anchors: own, bundle: lists}");
        fs::write(&config, yaml).unwrap();
        let (text, good) = cert("own.der", &der, &["--config", &config]).unwrap();
        for wanted in [says, "signatures      passes\n"] {
            assert!(good && text.contains(wanted), "{wanted}\n{text}");
        }
        // The lists alone would let it pass without the doubt.
        assert_eq!(text.contains(own_word), !more.is_empty(), "{text}");
    }
}

/// CRT-3: no decision by an anchor that no service of its type vouches for.
#[test]
fn an_anchor_without_a_service_of_its_type() {
    let der = WORLD.issuing.issue(&LeafSpec::default()).unwrap().der;
    for (services, is_taken) in [
        (String::new(), false),
        (service("S", "websites", ""), false),
        (service("S", "seals", ""), true),
    ] {
        let folder = TempDir::new().unwrap();
        let config = with_bundle(folder.path(), &services);
        match cert("without.der", &der, &["--config", &config]) {
            Ok((text, good)) => assert!(is_taken && good && faults(&text).is_empty(), "{text}"),
            Err(CertFault::Config(found)) => {
                let text = found.to_string();
                let expected =
                    "ca-0.pem: it is listed for seals, and none of its services is for seals";
                assert!(!is_taken && text.contains(expected), "{text}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}
