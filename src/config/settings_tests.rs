//! Whole configurations: a folder with a PKI made on the spot, and a file that names what is in it.

use std::path::Path;
use std::time::Duration;

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::{X509, X509Name};
use tempfile::TempDir;

use super::settings::Settings;
use crate::admission::{Policy, Unbuilt, WhenUnknown};
use crate::clock::Timestamp;
use crate::interface::headers::identity::IdentityForm;
use crate::interface::operations::{Environment, builtin};
use crate::sca::{PsuPresent, UnknownPsu};
use crate::trust::register::{RegisterSettings, WhenStale};

const GATEWAY: &str = include_str!("../../config/gateway.yaml");
const OPERATIONS: &str = include_str!("../../config/operations.yaml");

/// What must be there, and nothing else.
const LEAST: &str = "\
environment: sandbox
listener: {address: '0.0.0.0:8443', certificate: ../certs/server.pem, key: ../certs/server.key}
upstream: {address: '10.0.0.7:8080'}
trust: {anchors: ../certs/anchors}
sca: {page: 'https://bank.example/sca'}
";

/// A self-signed certificate and its key, both PEM.
fn certificate(name: &str) -> (Vec<u8>, Vec<u8>) {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut subject = X509Name::builder().unwrap();
    subject.append_entry_by_nid(Nid::COMMONNAME, name).unwrap();
    let subject = subject.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    let serial = BigNum::from_u32(1).unwrap().to_asn1_integer().unwrap();
    builder.set_serial_number(&serial).unwrap();
    builder.set_subject_name(&subject).unwrap();
    builder.set_issuer_name(&subject).unwrap();
    builder
        .set_not_before(&Asn1Time::from_unix(0).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::from_unix(4_000_000_000).unwrap())
        .unwrap();
    builder.set_pubkey(&key).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    let pem = builder.build().to_pem().unwrap();
    (pem, key.private_key_to_pem_pkcs8().unwrap())
}

/// The folders `config` and `certs` as a deployment has them.
struct Site(TempDir);

impl Site {
    fn new() -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        for folder in ["config", "certs", "certs/anchors", "certs/intermediates"] {
            std::fs::create_dir(site.path().join(folder)).unwrap();
        }
        let (server, key) = certificate("gateway");
        site.write("certs/server.pem", &server);
        site.write("certs/server.key", &key);
        site.write("certs/anchors/root.pem", &certificate("root").0);
        site.write("certs/intermediates/issuing.pem", &certificate("issuing").0);
        site.write("config/operations.yaml", OPERATIONS);
        site
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(file), content).unwrap();
    }

    fn read(&self, text: &str) -> Result<Settings, Vec<String>> {
        let here = format!("{}/config/", self.path().display());
        let file = format!("{here}gateway.yaml");
        Settings::parse(&file, text, Path::new(&here)).map_err(|faults| {
            let faults = faults.to_string().replace(&here, "");
            faults.lines().map(str::to_owned).collect()
        })
    }
}

/// Takes away the `#` of every key that is commented out; sentences have a space behind theirs.
fn uncommented(text: &str) -> String {
    let uncomment = |line: &str| {
        let rest = line.trim_start();
        let indent = " ".repeat(line.len() - rest.len());
        match rest.strip_prefix('#').filter(|key| is_key(key)) {
            Some(key) => format!("{indent}{key}\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(uncomment).collect()
}

/// `key: value`, `- key: value`, or what stands below such an item, two columns further in.
fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase() || c == '-') || text.starts_with("  ")
}

#[test]
fn what_is_left_out_has_its_default() {
    let settings = Site::new().read(LEAST).unwrap();
    assert_eq!(settings.system, "portvakt");
    let listener = &settings.listener;
    assert_eq!(listener.address.to_string(), "0.0.0.0:8443");
    assert_eq!(listener.identity.cert.len(), 1);
    assert!(listener.threads >= 1);
    assert_eq!(listener.max_connections, 10_000);
    assert_eq!(listener.body_timeout, Duration::from_secs(10));
    assert_eq!(listener.keepalive, Duration::from_secs(60));
    assert_eq!(settings.control.address.to_string(), "127.0.0.1:9100");
    let upstream = &settings.upstream;
    assert_eq!(upstream.address.to_string(), "10.0.0.7:8080");
    assert_eq!(upstream.connect_timeout, Duration::from_secs(1));
    assert_eq!(upstream.read_timeout, Duration::from_secs(30));
    assert_eq!(upstream.idle_timeout, Duration::from_secs(60));
    let sca = &settings.sca;
    assert_eq!(sca.page, "https://bank.example/sca");
    assert!(sca.token_keys.ends_with("../state/sca-token.keys"));
    assert_eq!(sca.token_lifetime, Duration::from_secs(900));
    assert_eq!(sca.psu_present, PsuPresent::SessionWhenSent);
    assert_eq!(sca.unknown_psu, UnknownPsu::Refuse);
    assert!(settings.control.token.is_none() && settings.control.tls.is_none());
    assert!(settings.assertion.is_none() && settings.response_signing.is_none());
    let world = &settings.snapshot;
    assert_eq!(world.policy.environment, Environment::Sandbox);
    assert_eq!(world.policy.body_limit, Policy::MAX_BODY);
    assert!(world.policy.also_signed.is_empty());
    assert_eq!(world.policy.identity, IdentityForm::NORWEGIAN);
    let zone = world.policy.time_zone.iana_name();
    assert_eq!(zone, Some(Policy::TIME_ZONE));
    assert!(world.policy.redirect_hosts.is_empty());
    assert_eq!(world.catalogue.operations().len(), builtin().len());
    assert!(settings.trust.anchors.ends_with("../certs/anchors"));
    assert_eq!(settings.trust.intermediates, None);
    assert_eq!(settings.operations, None);
    assert!(settings.state.file.ends_with("config/../state/portvakt.db"));
    assert!(
        settings
            .state
            .hash_key
            .ends_with("config/../state/hash.key")
    );
    assert_eq!(settings.state.psus_in_memory, 100_000);
    assert_eq!(settings.state.request_ids_in_memory, 2_000_000);
    assert_eq!(settings.state.refusals_in_memory, 100_000);
    assert!(settings.log.access);
    assert_eq!(settings.log.level, tracing::Level::INFO);
}

#[test]
#[allow(
    clippy::too_many_lines,
    reason = "a configuration is as long as its keys"
)]
fn what_is_written_is_what_runs() {
    let text = "
environment: sandbox
system: my-bank
body_limit: 16KiB
signing: {require: [(request-target), tpp-session-id]}
psu_identity: {digits: 12}
bank: {time_zone: Europe/Helsinki}
redirect_hosts: {psdno-fsa-123: [tpp.example, '[2001:db8::7]']}
listener:
  address: '[::1]:8443'
  certificate: ../certs/server.pem
  key: ../certs/server.key
  threads: 3
  max_connections: 20
  body_timeout: 250ms
  keepalive: 15m
control: {address: '[::1]:9200'}
upstream: {address: '[fd00::7]:8080', connect_timeout: 20ms, read_timeout: 2s, idle_timeout: 3s}
trust: {anchors: ../certs/anchors, intermediates: ../certs/intermediates}
sca:
  page: http://localhost:8080/sca?lang=nb
  token_keys: keys/sca
  token_lifetime: 5m
  psu_present: consent
  unknown_psu: learn
  learn_since: 2027-01-01
  learn_until: 2027-01-31
operations: own.yaml
assertion: {key: keys/assertion, audience: my-core}
state: {file: /srv/s.db, hash_key: k, psus_in_memory: 0, request_ids_in_memory: 1000, refusals_in_memory: 7}
log: {access: false, level: warn}
";
    let site = Site::new();
    site.write(
        "config/own.yaml",
        "operations:\n- {name: card-list, method: GET, path: /v1/cards, role: PSP_AI}\n",
    );
    let settings = site.read(text).unwrap();
    assert_eq!(settings.system, "my-bank");
    let listener = &settings.listener;
    assert_eq!((listener.threads, listener.max_connections), (3, 20));
    assert_eq!(listener.body_timeout, Duration::from_millis(250));
    assert_eq!(listener.keepalive, Duration::from_secs(900));
    assert_eq!(settings.control.address.to_string(), "[::1]:9200");
    let sca = &settings.sca;
    assert_eq!(sca.page, "http://localhost:8080/sca?lang=nb");
    assert!(sca.token_keys.ends_with("config/keys/sca"));
    assert_eq!(sca.token_lifetime, Duration::from_secs(300));
    assert_eq!(sca.psu_present, PsuPresent::Consent);
    // 2027-01-01T00:00:00Z, and the end of the last day.
    let [since, until] = [1_798_761_600, 1_801_440_000].map(Timestamp::from_unix);
    assert_eq!(sca.unknown_psu, UnknownPsu::Learn { since, until });
    let assertion = settings.assertion.unwrap();
    assert!(assertion.key.ends_with("config/keys/assertion"));
    assert_eq!(assertion.audience, "my-core");
    assert!(assertion.previous.is_none());
    let upstream = &settings.upstream;
    let timeouts = [
        upstream.connect_timeout,
        upstream.read_timeout,
        upstream.idle_timeout,
    ];
    assert_eq!(
        timeouts.map(|timeout| timeout.as_millis()),
        [20, 2_000, 3_000]
    );
    let world = &settings.snapshot;
    assert_eq!(world.policy.body_limit, 16 * 1024);
    assert_eq!(
        world.policy.also_signed,
        ["(request-target)", "tpp-session-id"]
    );
    assert_eq!(world.policy.identity.digits(), 12);
    let zone = world.policy.time_zone.iana_name();
    assert_eq!(zone, Some("Europe/Helsinki"));
    assert_eq!(
        world.policy.redirect_hosts["PSDNO-FSA-123"],
        ["tpp.example", "[2001:db8::7]"]
    );
    assert_eq!(world.catalogue.operations().len(), builtin().len() + 1);
    assert!(format!("{:?}", world.trust).contains("anchors: 1, intermediates: 1"));
    assert!(settings.operations.unwrap().ends_with("own.yaml"));
    let state = &settings.state;
    assert_eq!(state.file, Path::new("/srv/s.db"));
    assert_eq!(state.hash_key, site.path().join("config/k"));
    assert_eq!((state.psus_in_memory, state.refusals_in_memory), (0, 7));
    assert_eq!(state.request_ids_in_memory, 1_000);
    assert!(!settings.log.access);
    assert_eq!(settings.log.level, tracing::Level::WARN);
}

#[test]
fn the_example_runs_and_shows_the_true_defaults() {
    /// Everything but what differs from one load to the next: the cache of known TPPs.
    fn shown(settings: &Settings) -> String {
        let Settings {
            system,
            listener,
            control,
            upstream,
            state,
            sca,
            assertion,
            response_signing,
            snapshot,
            trust,
            operations,
            log,
            watch,
            source: _,
            files: _,
        } = settings;
        format!(
            "{system} {listener:?} {control:?} {upstream:?} {state:?} {sca:?} {assertion:?} {response_signing:?} {:?} {trust:?} {operations:?} {log:?} {watch:?}",
            snapshot.policy
        )
    }
    let site = Site::new();
    site.write("config/gateway.yaml", GATEWAY);
    let written = Settings::load(&site.path().join("config/gateway.yaml")).unwrap();
    let all = uncommented(GATEWAY);
    let spelled_out = site.read(&all).unwrap();
    assert_eq!(shown(&written), shown(&spelled_out));
    assert_eq!(written.listener.address.to_string(), "127.0.0.1:8443");
    assert_eq!(written.upstream.address.to_string(), "127.0.0.1:8080");
    let keys = |text: &str| {
        text.lines()
            .filter(|line| is_key(line.trim_start()))
            .count()
    };
    let commented_out = keys(&all) - keys(GATEWAY);
    assert_eq!(
        commented_out, 46,
        "every optional key whose default is shown"
    );
}

#[test]
fn what_signs_is_there_and_fits() {
    let site = Site::new();
    site.write("config/open.key", "x");
    let table = [
        (
            "assertion: {previous: a}",
            "assertion.previous: it says nothing without key",
        ),
        ("assertion: {key: a, previous: b}", "b: No such file"),
        ("assertion: {key: open.key}", "set it to 0600"),
        (
            "assertion: {key: a, audience: 'a b'}",
            "visible ASCII characters",
        ),
        (
            "response_signing: {key: ../certs/server.key}",
            "response_signing.certificate: missing key",
        ),
        (
            "response_signing: {certificate: ../certs/server.pem, key: ../certs/server.key}",
            "this is no RSA key (SIG-5)",
        ),
        ("response_signing: {body_limit: 65KiB}", "body_limit"),
    ];
    for (section, expected) in table {
        let faults = site.read(&format!("{LEAST}{section}\n")).unwrap_err();
        assert_eq!(faults.len(), 1, "{section}: {faults:?}");
        assert!(faults[0].contains(expected), "{section}: {faults:?}");
    }
}

#[test]
fn the_examples_of_the_catalogue_file_are_right() {
    let site = Site::new();
    site.write("config/operations.yaml", uncommented(OPERATIONS));
    let settings = site.read(GATEWAY).unwrap();
    let operations = settings.snapshot.catalogue.operations();
    assert_eq!(operations.len(), builtin().len() + 1);
    assert!(
        operations
            .iter()
            .any(|operation| operation.path == "/v1/corporate/agreements")
    );
}

/// CRT-9: production starts with every check, and with its strict defaults.
#[test]
fn production_starts_with_every_check() {
    assert_eq!(Unbuilt::ALL, [], "no stub fails open");
    let production = LEAST.replace("sandbox", "production");
    let site = Site::new();
    site.write("config/tpps.yaml", TPPS);
    let text = format!(
        "{production}revocation: {{check: on}}\nregisters: {{check: on, local: tpps.yaml}}\n"
    );
    let world = site.read(&text).unwrap().snapshot;
    assert_eq!(world.policy.environment, Environment::Production);
    assert_eq!(world.policy.revocation_unknown, WhenUnknown::Closed);
    let registers = world.registers.unwrap();
    assert_eq!(*registers.settings(), RegisterSettings::default());
    assert_eq!(registers.settings().stale, WhenStale::Refuse);
    assert!(world.trust.revocation().is_some());
}

/// What the bank allows and blocks.
const TPPS: &str = "\
allow: [{tpp: psdno-fsa-12 34-56, roles: [PSP_AI], note: a bank}]
block: [{tpp: PSDNO-FSA-654321}]
";

#[test]
fn registers_are_on_in_production() {
    let production = LEAST.replace("sandbox", "production");
    for (section, expected) in [
        ("", "registers: production checks registers"),
        (
            "registers: {check: off}\n",
            "registers.check: production checks registers",
        ),
        (
            "registers: {local: tpps.yaml}\n",
            "registers.check: production checks registers",
        ),
        (
            "registers: {check: on}\n",
            "registers.check: without a register nobody is registered",
        ),
    ] {
        let faults = Site::new().read(&format!("{production}revocation: {{check: on}}\n{section}"));
        let faults = faults.unwrap_err();
        assert!(
            faults.len() == 1 && faults[0].contains(expected),
            "{faults:?}"
        );
    }
    assert!(
        Site::new()
            .read(LEAST)
            .unwrap()
            .snapshot
            .registers
            .is_none()
    );
}

#[test]
fn every_fault_of_the_registers_is_reported_at_once() {
    let site = Site::new();
    let text = format!(
        "{LEAST}registers: {{check: on, host_country: no, max_age: 7d, stale: open, eba: eba.json, local: tpps.yaml}}\n"
    );
    site.write("config/eba.json", "[[],\n[{]]");
    site.write(
        "config/tpps.yaml",
        "allow:\n- {tpp: NTRNO-1, roles: [PSP_AS]}\n- {tpp: PSDNO-FSA-1, roles: []}\n- {tpp: PSDNO-FSA-1, roles: [PSP_AI]}\nblock: [{note: x, til: y}]\n",
    );
    let expected = [
        "gateway.yaml:6:38: registers.host_country: found \"no\"; expected a country in two capitals, such as NO",
        "gateway.yaml:6:51: registers.max_age: found \"7d\"; expected a duration with its unit (ms, s, m, h), from 24h to 8784h",
        "gateway.yaml:6:62: registers.stale: found \"open\"; expected one of \"refuse\", \"pass\"",
        "gateway.yaml:6:73: registers.eba: eba.json: it is not the EBA's export: key must be a string at line 2 column 3",
        "tpps.yaml:2:9: allow[0].tpp: found \"NTRNO-1\"; expected an identity as in certificates, such as PSDNO-FSA-123456",
        "tpps.yaml:2:26: allow[0].roles[0]: found \"PSP_AS\"; expected one of \"PSP_PI\", \"PSP_AI\"; did you mean \"PSP_AI\"?",
        "tpps.yaml:3:22: allow[1].roles: expected at least one role: PSP_AI, PSP_PI",
        "tpps.yaml:4:9: allow[2].tpp: this TPP stands in this list already",
        "tpps.yaml:5:9: block[0].tpp: missing key",
        "tpps.yaml:5:19: block[0].til: unknown key",
    ];
    assert_eq!(site.read(&text).unwrap_err(), expected);
}

#[test]
fn hosts_and_forms_are_judged_where_they_are_written() {
    let text = format!(
        "{LEAST}\
psu_identity: {{digits: 5, pattern: x}}
redirect_hosts:
  PSDNO-FSA-1: []
  PSDNO-FSA-2: tpp.example
  PSDNO-FSA-3: [tpp.example, 'https://tpp.example', tpp.example:443, '::1', '*.tpp.example']
  psdno-fsa-3: [tpp.example]
bank: {{time_zone: CET+1, name: x}}
"
    );
    let host =
        "expected a host as a URI names it, without scheme, port and path, such as tpp.example";
    let hosts = "gateway.yaml:10:";
    let expected = [
        "gateway.yaml:6:24: psu_identity.digits: found 5; expected a whole number from 6 to 20".to_owned(),
        "gateway.yaml:6:27: psu_identity.pattern: unknown key".to_owned(),
        "gateway.yaml:8:16: redirect_hosts.PSDNO-FSA-1: expected at least one host; leave the TPP out to let it name any".to_owned(),
        "gateway.yaml:9:16: redirect_hosts.PSDNO-FSA-2: found \"tpp.example\"; expected a list".to_owned(),
        format!("{hosts}30: redirect_hosts.PSDNO-FSA-3[1]: found \"https://tpp.example\"; {host}"),
        format!("{hosts}53: redirect_hosts.PSDNO-FSA-3[2]: found \"tpp.example:443\"; {host}"),
        format!("{hosts}70: redirect_hosts.PSDNO-FSA-3[3]: found \"::1\"; {host}"),
        format!("{hosts}77: redirect_hosts.PSDNO-FSA-3[4]: found \"*.tpp.example\"; {host}"),
        "gateway.yaml:11:3: redirect_hosts.psdno-fsa-3: this TPP stands here already, in other letters".to_owned(),
        "gateway.yaml:12:19: bank.time_zone: found \"CET+1\"; expected the name of a time zone, such as Europe/Oslo".to_owned(),
        "gateway.yaml:12:26: bank.name: unknown key".to_owned(),
    ];
    assert_eq!(Site::new().read(&text).unwrap_err(), expected);
}

#[test]
fn every_fault_of_every_file_is_reported_at_once() {
    let text = "\
environment: sandbox
system: my bank
body_limit: 65KiB
signing: {require: [Digest, signature]}
listener:
  address: localhost:8443
  certificate: ../certs/server.pem
  key: ../certs/other.key
  threads: many
  body_timeout: 10
control: {address: '0.0.0.0:9100'}
upstream: {address: 'core:8080', pool: 9}
trust: {anchors: ../certs/nowhere, intermediates: ../certs/intermediates}
operations: operations.yaml
log: {level: loud}
sca: {page: 'http://bank.example', token_lifetime: 2h, learn_until: 2027-01-31}
";
    let site = Site::new();
    site.write("certs/other.key", certificate("other").1);
    site.write("certs/intermediates/notes.txt", "to be renewed in May");
    site.write(
        "config/operations.yaml",
        "operations:\n- {name: x, method: GET, path: /v1/users, role: either}\n- {name: user-register, rolle: either}\n",
    );
    let expected = [
        "gateway.yaml:2:9: system: found \"my bank\"; expected a name of at most 64 visible ASCII characters",
        "gateway.yaml:3:13: body_limit: found \"65KiB\"; expected a size in bytes, KiB, MiB or GiB, from 1 to 64KiB",
        "gateway.yaml:4:21: signing.require[0]: found \"Digest\"; expected a header's name in lower case, or \"(request-target)\"",
        "gateway.yaml:4:29: signing.require[1]: a signature cannot sign itself: every request would be refused",
        "gateway.yaml:6:12: listener.address: found \"localhost:8443\"; expected an IP address and a port, such as 0.0.0.0:8443 (invalid socket address syntax)",
        "gateway.yaml:8:8: listener.key: the key is not that of the certificate",
        "gateway.yaml:9:12: listener.threads: found \"many\"; expected a whole number from 1 to 1024",
        "gateway.yaml:10:17: listener.body_timeout: found 10; expected a duration with its unit (ms, s, m, h), from 100ms to 1m",
        "gateway.yaml:11:11: control.address: 0.0.0.0:9100 can be reached from other machines, and whoever reaches this listener is answered; use 127.0.0.1 or [::1], or set token_file, or certificate, key and client_ca",
        "gateway.yaml:12:21: upstream.address: found \"core:8080\"; expected an IP address and a port, such as 127.0.0.1:8080; a host name would be looked up for every request (invalid socket address syntax)",
        "gateway.yaml:12:34: upstream.pool: unknown key",
        "gateway.yaml:13:18: trust.anchors: ../certs/nowhere is no folder that can be read: No such file or directory (os error 2)",
        "gateway.yaml:13:51: trust.intermediates: ../certs/intermediates/notes.txt holds no certificate; expected PEM, -----BEGIN CERTIFICATE-----",
        "gateway.yaml:15:14: log.level: found \"loud\"; expected one of \"error\", \"warn\", \"info\", \"debug\", \"trace\"",
        "gateway.yaml:16:13: sca.page: found \"http://bank.example\"; it must be an absolute URI that starts with https://, such as https://bank.example/sca (http for a loopback host only)",
        "gateway.yaml:16:52: sca.token_lifetime: found \"2h\"; expected a duration with its unit (ms, s, m, h), from 1m to 1h",
        "gateway.yaml:16:69: sca.learn_until: it says nothing without unknown_psu: learn",
        "operations.yaml:2:32: operations[0].path: GET /v1/users stands in the catalogue already",
        "operations.yaml:3:25: operations[1].rolle: unknown key; did you mean \"role\"?",
    ];
    assert_eq!(site.read(text).unwrap_err(), expected);
}

/// A file of the site, what stands in it instead, and the beginning of the only fault.
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
        certificate(vec![], "holds no certificate"),
        certificate(broken.clone(), "holds a certificate that cannot be read ("),
        certificate(half, "holds a certificate that cannot be read ("),
        certificate(vec![b'x'; 1_048_577], "is longer than 1048576 bytes"),
        private_key(vec![], "cannot be read: the file is empty"),
        private_key(server, "holds no private key in PEM without a passphrase"),
        private_key(NO_KEY.to_vec(), "holds a key that TLS does not take"),
        anchor(key, "holds no certificate"),
        anchor(broken, "holds a certificate that cannot be read ("),
    ]
}

#[test]
fn files_that_are_named_are_judged_where_they_are_named() {
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
fn a_folder_of_anchors_holds_certificates_only() {
    let site = Site::new();
    // As a mounted secret has it.
    std::fs::create_dir(site.path().join("certs/anchors/..data")).unwrap();
    let pair = [certificate("a").0, certificate("b").0].concat();
    site.write("certs/anchors/pair.crt", pair);
    let settings = site.read(LEAST).unwrap();
    assert!(format!("{:?}", settings.snapshot.trust).contains("anchors: 3"));
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
            "gateway.yaml:4:18: trust.anchors: ../certs/anchors holds no certificate: without a trust anchor no TPP is known"
        ]
    );
    // Intermediates may be none.
    let site = Site::new();
    std::fs::remove_file(site.path().join("certs/intermediates/issuing.pem")).unwrap();
    assert!(site.read(GATEWAY).is_ok());
}

#[test]
fn addresses_do_not_meet() {
    let site = Site::new();
    let cases = [
        (
            "0.0.0.0:9100",
            "10.0.0.7:8080",
            "1:1: control: 127.0.0.1:9100 is taken by the listener (0.0.0.0:9100)",
        ),
        (
            "127.0.0.1:9100",
            "10.0.0.7:8080",
            "1:1: control: 127.0.0.1:9100 is taken by the listener (127.0.0.1:9100)",
        ),
        (
            "0.0.0.0:8443",
            "127.0.0.1:8443",
            "3:21: upstream.address: 127.0.0.1:8443 is the gateway's own",
        ),
        (
            "0.0.0.0:8443",
            "127.0.0.1:9100",
            "3:21: upstream.address: 127.0.0.1:9100 is the gateway's own",
        ),
        (
            "0.0.0.0:8443",
            "0.0.0.0:80",
            "3:21: upstream.address: 0.0.0.0:80 is no address that can be called",
        ),
        (
            "0.0.0.0:8443",
            "127.0.0.1:0",
            "3:21: upstream.address: 127.0.0.1:0 is no address that can be called",
        ),
    ];
    for (listener, upstream, expected) in cases {
        let text = LEAST
            .replace("0.0.0.0:8443", listener)
            .replace("10.0.0.7:8080", upstream);
        assert_eq!(
            site.read(&text).unwrap_err(),
            [format!("gateway.yaml:{expected}")]
        );
    }
    let text = LEAST.replace("10.0.0.7:8080", "10.0.0.7:8443");
    assert!(
        site.read(&text).is_ok(),
        "another machine's port is its own"
    );
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let site = Site::new();
    let faults = Settings::load(Path::new("nowhere.yaml")).unwrap_err();
    assert_eq!(
        faults.to_string(),
        "nowhere.yaml:1:1: nowhere.yaml cannot be read: No such file or directory (os error 2)"
    );
    let text = format!("{LEAST}operations: nowhere.yaml\n");
    assert_eq!(
        site.read(&text).unwrap_err(),
        [
            "gateway.yaml:6:13: operations: nowhere.yaml cannot be read: No such file or directory (os error 2)"
        ]
    );
    site.write("config/latin1.yaml", b"# \xe6\noperations: []\n");
    let text = format!("{LEAST}operations: latin1.yaml\n");
    assert_eq!(
        site.read(&text).unwrap_err(),
        ["gateway.yaml:6:13: operations: latin1.yaml is not UTF-8"]
    );
    site.write("config/torn.yaml", "operations: [\n");
    let text = format!("{LEAST}operations: torn.yaml\nlogs: {{}}\n");
    let faults = site.read(&text).unwrap_err();
    assert_eq!(
        faults[0],
        "gateway.yaml:7:1: logs: unknown key; did you mean \"log\"?"
    );
    assert!(faults[1].starts_with("torn.yaml:1:13: "), "{faults:?}");
}

#[test]
fn the_state_and_its_key_are_two_files() {
    let text = format!("{LEAST}state: {{file: a, hash_key: a, request_ids_in_memory: 999}}\n");
    assert_eq!(
        Site::new().read(&text).unwrap_err(),
        [
            "gateway.yaml:6:18: state.hash_key: the key cannot stand in the state's own file",
            "gateway.yaml:6:54: state.request_ids_in_memory: found 999; expected a whole number from 1000 to 100000000"
        ]
    );
}

#[test]
fn no_key_is_shown() {
    let site = Site::new();
    let settings = site.read(LEAST).unwrap();
    let shown = format!("{settings:?}");
    let pem = std::fs::read_to_string(site.path().join("certs/server.key")).unwrap();
    let der = PKey::private_key_from_pem(pem.as_bytes()).unwrap();
    let secret = der.ec_key().unwrap().private_key().to_vec();
    let as_list = format!("{secret:?}");
    assert!(!shown.contains(as_list.trim_matches(['[', ']'])));
    let as_hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(!shown.to_lowercase().contains(&as_hex));
    assert!(pem.lines().all(|line| !shown.contains(line)));
}

#[test]
fn who_reaches_the_control_listener_from_elsewhere_shows_who_it_is() {
    let site = Site::new();
    site.write("config/token", "0123456789abcdef0123456789abcdef\n");
    site.write("config/short", "hunter2");
    site.write("config/phrase", "correct horse battery staple, twice over");
    let (ca, _) = certificate("callers");
    site.write("config/ca.pem", ca);
    let tls = "certificate: ../certs/server.pem, key: ../certs/server.key";
    let good = [
        "token_file: token".to_owned(),
        "socket: control.sock".to_owned(),
        "socket: control.sock, token_file: token".to_owned(),
        "address: '0.0.0.0:9100', token_file: token".to_owned(),
        format!("address: '0.0.0.0:9100', {tls}, client_ca: ca.pem"),
        format!("address: '0.0.0.0:9100', {tls}, token_file: token"),
        tls.to_owned(),
    ];
    for keys in good {
        let settings = site.read(&format!("{LEAST}control: {{{keys}}}\n")).unwrap();
        let shown = format!("{settings:?}");
        assert!(!shown.contains("0123456789abcdef"), "{shown}");
    }
    let no_token = |file: &str| {
        format!(
            "token_file: {file} holds no bearer token; expected one line of at least 32 letters, digits and -._~+/, as \"openssl rand -hex 32\" gives it"
        )
    };
    let open = "address: 0.0.0.0:9100 can be reached from other machines, and whoever reaches this listener is answered; use 127.0.0.1 or [::1], or set token_file, or certificate, key and client_ca".to_owned();
    let bad = [
        (
            format!("address: '0.0.0.0:9100', {tls}"),
            open.clone(),
        ),
        (
            "address: '[::]:9100'".to_owned(),
            open.replace("0.0.0.0", "[::]"),
        ),
        ("token_file: short".to_owned(), no_token("short")),
        ("token_file: phrase".to_owned(), no_token("phrase")),
        (
            "token_file: nowhere".to_owned(),
            "token_file: nowhere cannot be read: No such file or directory (os error 2)".to_owned(),
        ),
        (
            "socket: c.sock, address: '127.0.0.1:9100'".to_owned(),
            "socket: the listener is at an address or at a socket; leave one of them out".to_owned(),
        ),
        (
            format!("socket: c.sock, {tls}"),
            "certificate: a Unix socket has no TLS: nobody stands between; leave out certificate, key and client_ca".to_owned(),
        ),
        (
            "client_ca: ca.pem, certificate: ../certs/server.pem".to_owned(),
            "key: missing key".to_owned(),
        ),
        (
            format!("{tls}, client_ca: token"),
            "client_ca: token holds no certificate; expected PEM, -----BEGIN CERTIFICATE-----".to_owned(),
        ),
    ];
    for (keys, expected) in bad {
        let faults = site
            .read(&format!("{LEAST}control: {{{keys}}}\n"))
            .unwrap_err();
        assert_eq!(faults.len(), 1, "{keys}: {faults:?}");
        assert!(
            faults[0].ends_with(&format!(": control.{expected}")),
            "{keys}: {faults:?}"
        );
    }
}

#[test]
fn pages_keys_and_days_of_sca() {
    let site = Site::new();
    site.write("config/bad.keys", "x");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(site.path().join("config/bad.keys"), mode).unwrap();
    let learn = "unknown_psu: learn, ";
    let bad = [
        (
            "page: /sca",
            "page: found \"/sca\"; it must be an absolute URI",
        ),
        (
            "page: https://bank.example/sca#x",
            "page: found \"https://bank.example/sca#x\"; it may not have a fragment",
        ),
        (
            "page: https://u@bank.example",
            "page: found \"https://u@bank.example\"; it may not name a user",
        ),
        (
            "page: https://bank.example/?request=1",
            "page: its query may not have a parameter request",
        ),
        (
            "token_keys: bad.keys",
            "token_keys: bad.keys: line 1 is no key",
        ),
        (
            "token_lifetime: 59s",
            "token_lifetime: found \"59s\"; expected a duration",
        ),
        (
            "psu_present: always",
            "psu_present: found \"always\"; expected one of",
        ),
        (
            &format!("{learn}learn_since: 2027-01-01"),
            "learn_until: missing key",
        ),
        (
            &format!("{learn}learn_since: 2027-01-02, learn_until: 2027-01-01"),
            "learn_until: the last day of learning is before its first",
        ),
        (
            &format!("{learn}learn_since: 2027-01-02, learn_until: soon"),
            "learn_until: found \"soon\"; expected a day",
        ),
        (
            "learn_since: 2027-01-01",
            "learn_since: it says nothing without unknown_psu: learn",
        ),
    ];
    for (keys, expected) in bad {
        let key = keys.split(':').next().unwrap();
        let rest = [
            ("page", "page: 'https://bank.example'"),
            ("token_keys", "token_keys: good.keys"),
        ];
        let rest: Vec<_> = rest
            .iter()
            .filter(|(name, _)| *name != key)
            .map(|(_, text)| *text)
            .collect();
        let sca = format!("sca: {{{}, {keys}}}", rest.join(", "));
        let least = LEAST.lines().filter(|line| !line.starts_with("sca"));
        let text = least.chain([sca.as_str()]).collect::<Vec<_>>().join("\n");
        let faults = site.read(&text).unwrap_err();
        assert_eq!(faults.len(), 1, "{keys}: {faults:?}");
        assert!(
            faults[0].contains(&format!(": sca.{expected}")),
            "{keys}: {faults:?}"
        );
    }
}

/// CRT-9: a malformed certificate never passes in production.
#[test]
fn tolerance_is_for_the_sandbox_only() {
    let text = format!("{LEAST}certificate_policy: tolerant\n");
    assert!(Site::new().read(&text).is_ok());
    let faults = Site::new()
        .read(&text.replace("sandbox", "production"))
        .unwrap_err();
    assert!(
        faults
            .iter()
            .any(|fault| fault.contains("certificate_policy: production is strict")),
        "{faults:?}"
    );
}

/// CRT-6, CRT-9: what production may not leave out, and what nobody can mean.
#[test]
fn revocation_is_on_in_production() {
    let production = LEAST.replace("sandbox", "production");
    for (section, expected) in [
        ("", "revocation: production checks revocation"),
        (
            "revocation: {check: off}\n",
            "revocation.check: production checks revocation",
        ),
        (
            "revocation: {unreachable: closed}\n",
            "revocation.check: production checks revocation",
        ),
    ] {
        let faults = Site::new()
            .read(&format!("{production}{section}"))
            .unwrap_err();
        assert!(
            faults.iter().any(|fault| fault.contains(expected)),
            "{faults:?}"
        );
    }
    let on = format!("{production}revocation: {{check: on}}\n");
    let faults = Site::new().read(&on).err().unwrap_or_default();
    assert!(
        !faults
            .iter()
            .any(|fault| fault.contains("revocation.check")),
        "{faults:?}"
    );
    let odd = format!(
        "{LEAST}\
revocation:
  check: on
  by_group: {{nothing: open}}
  stale: 8000h
  private_addresses: [10.0.0.0/40]
  addresses: [{{issuer: none.pem, ocsp: 'ldap://a'}}]
  crls: nowhere
"
    );
    let faults = Site::new().read(&odd).unwrap_err().join("\n");
    for expected in [
        "revocation.stale: found \"8000h\"",
        "revocation.private_addresses[0]: found \"10.0.0.0/40\"; expected an IP address or a network",
        "revocation.addresses[0].ocsp: found \"ldap://a\"; expected an http or https URL",
        "none.pem cannot be read",
        "nowhere is no folder that can be read",
    ] {
        assert!(faults.contains(expected), "{expected}: {faults}");
    }
    let group = format!("{LEAST}revocation: {{check: on, by_group: {{nothing: open}}}}\n");
    let faults = Site::new().read(&group).unwrap_err().join("\n");
    assert!(
        faults.contains("revocation.by_group.nothing: no operation is of the group"),
        "{faults}"
    );
}
