//! Faults of certificate and key files.

use super::*;

#[test]
fn faults_of_files_are_at_the_keys_that_name_them() {
    for (file, content, expected) in spoilt_files() {
        let site = Site::new();
        site.write(file, content);
        let faults = site.read(LEAST).unwrap_err();
        assert_eq!(faults.len(), 1, "{file}: {faults:?}");
        let expected = format!("gateway.yaml:{expected}");
        assert!(
            faults[0].starts_with(&expected),
            "{} is not {expected}",
            faults[0]
        );
    }
}

#[test]
fn secrets_that_others_can_read_are_refused() {
    let site = Site::new();
    site.write_rsa();
    site.write("config/token", "0123456789abcdef0123456789abcdef\n");
    site.write("config/metrics", "fedcba9876543210fedcba9876543210\n");
    let server_key = std::fs::read(site.path().join("certs/server.key")).unwrap();
    site.write("config/own.key", server_key);
    let text = format!(
        "{LEAST}control: {{token_file: token, metrics_token_file: metrics, certificate: ../certs/server.pem, key: own.key}}\n\
         response_signing: {{certificate: rsa.pem, key: rsa.key}}\n"
    );
    let secrets = [
        ("certs/server.key", "listener.key"),
        ("config/own.key", "control.key"),
        ("config/token", "control.token_file"),
        ("config/metrics", "control.metrics_token_file"),
        ("config/rsa.key", "response_signing.key"),
    ];
    for (file, key) in secrets {
        for mode in [0o400, 0o440, 0o600] {
            site.set_mode(file, mode);
            assert!(site.read(&text).is_ok(), "{file} {mode:o}");
        }
        for mode in [0o640, 0o604, 0o644, 0o444] {
            site.set_mode(file, mode);
            let faults = site.read(&text).unwrap_err();
            assert_eq!(faults.len(), 1, "{faults:?}");
            let expected = format!("its mode {mode:04o} grants access to other users");
            assert!(
                faults[0].contains(&format!(" {key}: ")) && faults[0].contains(&expected),
                "{faults:?}"
            );
        }
        site.set_mode(file, 0o600);
    }
}

#[test]
fn a_folder_of_anchors_contains_certificates_only() {
    let site = Site::new();
    // The layout of a mounted secret.
    std::fs::create_dir(site.path().join("certs/anchors/..data")).unwrap();
    let pair = [certificate("a").0, certificate("b").0].concat();
    site.write("certs/anchors/pair.crt", pair);
    let settings = site.read(LEAST).unwrap();
    assert!(format!("{:?}", settings.reloadable.snapshot.trust).contains("anchors: 3"));
    std::fs::create_dir(site.path().join("certs/anchors/old")).unwrap();
    let faults = site.read(LEAST).unwrap_err();
    assert!(
        faults[0].contains("../certs/anchors/old cannot be read: "),
        "{faults:?}"
    );
    let site = Site::new();
    std::fs::remove_file(site.path().join("certs/anchors/root.pem")).unwrap();
    let faults = site.read(LEAST).unwrap_err();
    assert_eq!(
        faults,
        [
            "gateway.yaml:4:18: trust.anchors: ../certs/anchors contains no certificate; expected at least one trust anchor"
        ]
    );
    // The folder of intermediates may be empty.
    let site = Site::new();
    std::fs::remove_file(site.path().join("certs/intermediates/issuing.pem")).unwrap();
    assert!(site.read(GATEWAY).is_ok());
}

/// A file of the site, its replaced content, and the start of the only fault.
fn spoilt_files() -> Vec<(&'static str, Vec<u8>, String)> {
    const CERTIFICATE: &str = "2:50: listener.certificate: ../certs/server.pem";
    const KEY: &str = "2:76: listener.key: ../certs/server.key";
    const NO_KEY: &[u8] = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    const TORN: &[u8] = b"-----BEGIN CERTIFICATE-----\n";
    let (server, key) = certificate("gateway");
    let broken = String::from_utf8(server.clone()).unwrap();
    let broken = broken.replacen("MI", "!!", 1).into_bytes();
    let half = [server.as_slice(), TORN].concat();
    let spoilt = |file, content, place, why: &str| (file, content, format!("{place} {why}"));
    let certificate = |content, why| spoilt("certs/server.pem", content, CERTIFICATE, why);
    let private_key = |content, why| spoilt("certs/server.key", content, KEY, why);
    let anchor = |content, why| {
        spoilt(
            "certs/anchors/a.pem",
            content,
            "4:18: trust.anchors: ../certs/anchors/a.pem",
            why,
        )
    };
    vec![
        certificate(vec![], "contains no certificate"),
        certificate(broken.clone(), "contains an unreadable certificate ("),
        certificate(half, "contains an unreadable certificate ("),
        certificate(vec![b'x'; 1_048_577], "is longer than 1048576 bytes"),
        private_key(vec![], "cannot be read: the file is empty"),
        private_key(
            server,
            "contains no private key in PEM without a passphrase",
        ),
        private_key(NO_KEY.to_vec(), "contains a key that TLS does not accept"),
        anchor(key, "contains no certificate"),
        anchor(broken, "contains an unreadable certificate ("),
    ]
}
