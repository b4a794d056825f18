//! The whole file: defaults, written values, the example, and all faults at once.

use super::super::reference::{is_key, uncommented};
use super::*;
use crate::state::{EngineSettings, EventSettings, StaleReads};
use crate::{
    admission::Policy,
    clock::Timestamp,
    config::{ClientAddress, Ejection, ListenerLimits, Log, LogOutput, Reloadable},
    interface::{
        TppId,
        headers::identity::IdentityForm,
        operations::{Environment, builtin},
        path::AccountIds,
        payload::{IbanCountry, Ibans},
    },
    sca::{PsuPresent, UnknownPsu},
};
use std::net::SocketAddr;
use std::time::Duration;

#[test]
#[allow(
    clippy::too_many_lines,
    reason = "a configuration is as long as its keys"
)]
fn missing_keys_have_defaults() {
    let settings = Site::new().read(LEAST).unwrap();
    assert_eq!(settings.fixed.system, "portvakt");
    let listener = &settings.fixed.listener;
    assert_eq!(listener.address.to_string(), "0.0.0.0:8443");
    assert_eq!(
        settings
            .reloadable
            .certificates
            .find(None, Timestamp::from_unix(0))
            .cert
            .len(),
        1
    );
    assert!(listener.threads >= 1);
    assert_eq!(listener.limits, ListenerLimits::default());
    assert_eq!(listener.body_timeout, Duration::from_secs(10));
    assert_eq!(listener.keepalive, Duration::from_secs(60));
    assert_eq!(settings.fixed.control.to_string(), "127.0.0.1:9100");
    let [upstream] = settings.reloadable.upstreams.groups() else {
        panic!("one group");
    };
    assert_eq!(upstream.name, "core");
    assert_eq!(upstream.endpoints[0].to_string(), "10.0.0.7:8080");
    assert_eq!(upstream.timeout, Duration::from_secs(32));
    assert!(upstream.needed && upstream.health.is_none() && upstream.tls.is_none());
    assert_eq!(upstream.retry_percent, 20);
    assert_eq!(upstream.ejection, Some(Ejection::default()));
    assert_eq!(upstream.connect_timeout, Duration::from_secs(2));
    assert_eq!(upstream.read_timeout, Duration::from_secs(30));
    assert_eq!(upstream.idle_timeout, Duration::from_secs(60));
    assert_eq!(
        (upstream.max_in_flight, upstream.max_in_flight_per_tpp),
        (512, 64)
    );
    assert!(upstream.reuse);
    assert_eq!(upstream.host, "10.0.0.7:8080");
    let sca = &settings.reloadable.sca;
    assert_eq!(sca.page, "https://bank.example/sca");
    assert!(sca.token_keys.ends_with("../state/sca-token.keys"));
    assert_eq!(sca.token_lifetime, Duration::from_secs(900));
    assert_eq!(sca.psu_present, PsuPresent::SessionWhenSent);
    assert_eq!(sca.unknown_psu, UnknownPsu::Refuse);
    assert!(
        settings.reloadable.control.token.is_none() && settings.reloadable.control.tls.is_none()
    );
    let reloadable = &settings.reloadable;
    assert!(reloadable.assertion.is_none() && reloadable.response_signing.is_none());
    let snapshot = &settings.reloadable.snapshot;
    assert_eq!(snapshot.policy.environment, Environment::Sandbox);
    assert_eq!(snapshot.policy.body_limit, Policy::MAX_BODY);
    assert!(snapshot.policy.also_signed.is_empty());
    assert_eq!(snapshot.policy.identity, IdentityForm::NORWEGIAN);
    let zone = snapshot.policy.time_zone.iana_name();
    assert_eq!(zone, Some(Policy::TIME_ZONE));
    assert_eq!(snapshot.policy.account_ids, AccountIds::default());
    assert!(snapshot.policy.redirect_hosts.is_empty());
    assert_eq!(snapshot.catalogue.operations().len(), builtin().len());
    assert!(
        settings
            .reloadable
            .trust
            .anchors
            .as_ref()
            .is_some_and(|path| path.ends_with("../certs/anchors"))
    );
    assert_eq!(settings.reloadable.trust.intermediates, None);
    assert_eq!(settings.reloadable.operations, None);
    assert!(
        settings
            .fixed
            .state
            .file
            .ends_with("config/../state/portvakt.db")
    );
    assert!(
        settings
            .fixed
            .state
            .hash_key
            .ends_with("config/../state/hash.key")
    );
    assert_eq!(settings.fixed.state.psus_in_memory, 100_000);
    assert_eq!(settings.fixed.state.request_ids_in_memory, 2_000_000);
    assert_eq!(settings.fixed.state.refusals_in_memory, 100_000);
    let shutdown = settings.fixed.shutdown;
    let finish = shutdown.finish(
        &settings.fixed.listener,
        settings.reloadable.upstreams.longest(),
    );
    assert_eq!(shutdown.lame_duck, Duration::from_secs(5));
    assert_eq!(finish, Duration::from_secs(172), "as gateway.yaml says");
    assert_eq!(settings.fixed.audit, None);
    assert!(settings.fixed.log.access);
    assert_eq!(settings.fixed.log, Log::default());
    assert_eq!(settings.fixed.log.level, tracing::Level::INFO);
}

#[test]
#[allow(
    clippy::too_many_lines,
    reason = "a configuration is as long as its keys"
)]
fn written_values_are_in_the_settings() {
    let text = "
environment: sandbox
system: my-bank
body_limit: 16KiB
signing: {require: [(request-target), tpp-session-id]}
psu_identity: {digits: 12}
bank: {time_zone: Europe/Helsinki, account_ids: 0-9, ibans: {MA: {length: 28, structure: 24n}}}
redirect_hosts: {psdno-fsa-123: [tpp.example, '[2001:db8::7]']}
listener:
  address: '[::1]:8443'
  certificate: ../certs/server.pem
  key: ../certs/server.key
  threads: 3
  trusted_proxies: [10.1.0.0/16, '2001:db8::7']
  client_address: proxy-protocol
  max_connections: 20
  max_connections_per_address: off
  handshake_timeout: 1s
  first_byte_timeout: 1500ms
  preface_timeout: 2s
  head_timeout: 3s
  write_timeout: 4s
  answer_timeout: 5s
  read_ahead: 3MiB
  min_body_rate: 2KiB
  max_head_size: 8KiB
  max_head_fields: 20
  overload_delay: off
  body_timeout: 250ms
  keepalive: 15m
  hsts: 24h
  description: on
  hosts: [api.bank.example, 'api.bank.example:8443']
control: {address: '[::1]:9200'}
upstream: {address: '[fd00::7]:8080', connect_timeout: 20ms, read_timeout: 2s, idle_timeout: 3s, reuse: off, host: core.bank.internal, max_in_flight: 9, max_in_flight_per_tpp: 3, max_answer_size: 1KiB, max_answer_size_by_group: {payments: 2MiB}}
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
shutdown: {lame_duck: 0s, finish: 3s}
state: {file: /srv/s.db, hash_key: k, psus_in_memory: 0, request_ids_in_memory: 1000, refusals_in_memory: 7, events: {keep_days: 9, customer_key: events.key}}
log: {access: false, level: warn, access_file: a.log, events_file: /var/log/e.log, sample: 100}
audit: {write: on, folder: audited, required: false, file_size: 1MiB, keep_payments_days: 2, keep_psus_days: 3, keep_refusals_days: 4, keep_control_days: 5}
";
    let site = Site::new();
    site.write(
        "config/own.yaml",
        "operations:\n- {name: card-list, method: GET, path: /v1/cards, role: PSP_AI}\n",
    );
    site.write("config/events.key", [7; 32]);
    let settings = site.read(text).unwrap();
    assert_eq!(settings.fixed.system, "my-bank");
    let listener = &settings.fixed.listener;
    let sizes = &settings.reloadable.upstreams.groups()[0].answer_sizes;
    assert_eq!(
        (sizes.of("accounts"), sizes.of("payments")),
        (1024, 2 << 20)
    );
    assert_eq!(listener.threads, 3);
    assert_eq!(listener.hsts, Some(Duration::from_secs(24 * 3_600)));
    assert!(listener.description);
    assert!(listener.proxies.trusts("10.1.255.1".parse().unwrap()));
    assert_eq!(
        listener.proxies.client_address(),
        ClientAddress::ProxyProtocol
    );
    let limits = ListenerLimits {
        connections: 20,
        connections_per_address: None,
        handshake_timeout: Duration::from_secs(1),
        first_byte_timeout: Duration::from_millis(1500),
        preface_timeout: Duration::from_secs(2),
        head_timeout: Duration::from_secs(3),
        write_timeout: Duration::from_secs(4),
        answer_timeout: Duration::from_secs(5),
        read_ahead: 3 << 20,
        body_rate: Some(2 * 1024),
        head_size: 8 * 1024,
        head_fields: 20,
        overload_delay: None,
    };
    assert_eq!(listener.limits, limits);
    assert_eq!(listener.body_timeout, Duration::from_millis(250));
    assert_eq!(listener.keepalive, Duration::from_secs(900));
    assert_eq!(settings.fixed.control.to_string(), "[::1]:9200");
    let sca = &settings.reloadable.sca;
    assert_eq!(sca.page, "http://localhost:8080/sca?lang=nb");
    assert!(sca.token_keys.ends_with("config/keys/sca"));
    assert_eq!(sca.token_lifetime, Duration::from_secs(300));
    assert_eq!(sca.psu_present, PsuPresent::Consent);
    // 2027-01-01T00:00:00Z, and the end of the last day.
    let [since, until] = [1_798_761_600, 1_801_440_000].map(Timestamp::from_unix);
    assert_eq!(sca.unknown_psu, UnknownPsu::Learn { since, until });
    let assertion = settings.reloadable.assertion.unwrap();
    assert!(assertion.key.ends_with("config/keys/assertion"));
    assert_eq!(assertion.audience, "my-core");
    assert!(assertion.previous.is_none());
    let upstream = &settings.reloadable.upstreams.groups()[0];
    let timeouts = [
        upstream.connect_timeout,
        upstream.read_timeout,
        upstream.idle_timeout,
    ];
    assert_eq!(
        timeouts.map(|timeout| timeout.as_millis()),
        [20, 2_000, 3_000]
    );
    assert!(!upstream.reuse);
    assert_eq!(upstream.host, "core.bank.internal");
    let snapshot = &settings.reloadable.snapshot;
    assert_eq!(snapshot.policy.body_limit, 16 * 1024);
    assert_eq!(
        snapshot.policy.hosts,
        ["api.bank.example", "api.bank.example:8443"]
    );
    assert_eq!(
        snapshot.policy.also_signed,
        ["(request-target)", "tpp-session-id"]
    );
    assert_eq!(snapshot.policy.identity.digits(), 12);
    let zone = snapshot.policy.time_zone.iana_name();
    assert_eq!(zone, Some("Europe/Helsinki"));
    assert_eq!(
        snapshot.policy.account_ids,
        AccountIds::parse("0-9").unwrap()
    );
    let added = IbanCountry::new("MA", 28, "24n").unwrap();
    assert_eq!(snapshot.policy.ibans, Ibans::with(vec![added]));
    assert_eq!(
        snapshot
            .policy
            .redirect_hosts
            .get(&TppId::parse("PSDNO-FSA-123").unwrap()),
        Some(&vec!["tpp.example".to_owned(), "[2001:db8::7]".to_owned()])
    );
    assert_eq!(snapshot.catalogue.operations().len(), builtin().len() + 1);
    assert!(format!("{:?}", snapshot.trust).contains("anchors: 1, intermediates: 1"));
    assert!(
        settings
            .reloadable
            .operations
            .unwrap()
            .ends_with("own.yaml")
    );
    let state = &settings.fixed.state;
    assert_eq!(state.file, Path::new("/srv/s.db"));
    assert_eq!(state.hash_key, site.path().join("config/k"));
    assert_eq!((state.psus_in_memory, state.refusals_in_memory), (0, 7));
    assert_eq!(state.request_ids_in_memory, 1_000);
    let customer_key = Some(site.path().join("config/events.key"));
    let keep_days = 9;
    assert_eq!(
        state.events,
        EventSettings {
            customer_key,
            keep_days
        }
    );
    let shutdown = settings.fixed.shutdown;
    let finish = shutdown.finish(
        &settings.fixed.listener,
        settings.reloadable.upstreams.longest(),
    );
    assert_eq!(
        (shutdown.lame_duck, finish),
        (Duration::ZERO, Duration::from_secs(3))
    );
    assert!(!settings.fixed.log.access);
    assert_eq!(settings.fixed.log.level, tracing::Level::WARN);
    assert_eq!(settings.fixed.log.sample.get(), 100);
    let audit = settings.fixed.audit.as_ref().unwrap();
    assert_eq!(audit.folder, site.path().join("config/audited"));
    assert!(!audit.required && audit.file_size == 1 << 20);
    let kept = [
        audit.keep_payments,
        audit.keep_psus,
        audit.keep_refusals,
        audit.keep_control,
    ];
    assert_eq!(kept.map(|kept| kept.as_secs() / 86_400), [2, 3, 4, 5]);
    let outputs = [
        &settings.fixed.log.access_output,
        &settings.fixed.log.events_output,
    ];
    let files = [site.path().join("config/a.log"), "/var/log/e.log".into()];
    assert_eq!(outputs.map(Clone::clone), files.map(LogOutput::File));
}

/// Each connection reads them, and `check` looks at them before the first.
#[test]
fn secrets_of_the_database_are_of_one_user() {
    let site = Site::new();
    let text = format!(
        "{LEAST}state: {{postgres: {{url: 'postgres://u@db1/d', password_file: p, tls: {{ca: ca.pem, certificate: c.pem, key: k.pem}}}}}}\n"
    );
    for (key, file) in [("password_file", "p"), ("tls.key", "k.pem")] {
        let path = format!("config/{file}");
        site.write(&path, "x");
        for (mode, passes) in [(0o600, true), (0o440, true), (0o644, false), (0o660, false)] {
            site.set_mode(&path, mode);
            let faults = site.read(&text).err().unwrap_or_default().join("; ");
            assert_eq!(faults.is_empty(), passes, "{faults}");
            let named = faults.contains(&format!("state.postgres.{key}: "));
            assert_eq!(
                named && faults.contains(&format!("{mode:04o}")),
                !passes,
                "{faults}"
            );
        }
        site.set_mode(&path, 0o600);
    }
}

#[test]
fn a_database_takes_the_place_of_the_state_file() {
    let site = Site::new();
    let read = |postgres: &str| {
        let text = format!("{LEAST}state: {{postgres: {postgres}}}\n");
        site.read(&text)
            .map(|settings| match settings.fixed.state.engine {
                EngineSettings::Postgres(postgres) => postgres,
                EngineSettings::Sqlite => panic!("the state is in a file"),
            })
    };
    let least = read("{url: 'postgres://u@localhost/d'}").unwrap();
    assert_eq!((least.pool, least.require_sync), (4, false));
    assert_eq!(least.reads, StaleReads::Refuse);
    assert!(least.tls.is_none() && least.password.is_none());
    let all = "{url: 'postgres://u@db1,db2:5433/d', password_file: p, tls: {ca: ca.pem, certificate: c.pem, key: k.pem}, \
        pool: 9, require_sync: true, reads: memory}";
    let all = read(all).unwrap();
    assert_eq!((all.server.get_hosts().len(), all.pool), (2, 9));
    assert!(all.require_sync && all.reads == StaleReads::Allow);
    let file = |name: &str| site.path().join("config").join(name);
    assert_eq!(all.password, Some(file("p")));
    let tls = all.tls.unwrap();
    assert_eq!(tls.identity, Some((file("c.pem"), file("k.pem"))));
    let home = std::env::var("HOME").unwrap();
    let held = read("{url: 'postgres://u@localhost/d', password: '${HOME}'}").unwrap();
    assert_eq!(held.server.get_password(), Some(home.as_bytes()));
    assert!(!format!("{held:?}").contains(&home));
    for (postgres, fault) in [
        ("{url: 'postgres://u@db1/d'}", "state.postgres.tls: "),
        (
            "{url: 'postgres://u@db1/d', tls: off}",
            "expected {ca: FILE}",
        ),
        (
            "{url: 'postgres://u:geheim@localhost/d'}",
            "name that in password_file",
        ),
        (
            "{url: 'postgres://u@localhost/d', password: geheim}",
            "state.postgres.password: expected ${NAME}, an environment variable",
        ),
        (
            "{url: 'postgres://u@localhost/d', password: '${HOME}', password_file: p}",
            "password and password_file exclude each other",
        ),
        ("{url: 'postgres://u@localhost/d', pool: 0}", "from 1 to 64"),
        (
            "{url: 'postgres://u@localhost/d', reads: stale}",
            "one of \"fresh\", \"memory\"",
        ),
        ("{pool: 4}", "state.postgres.url: missing key"),
        (
            "{url: 'postgres://u@localhost/d', tls: {ca: c, key: k}}",
            "belong together",
        ),
    ] {
        let faults = read(postgres).unwrap_err().join("; ");
        assert!(
            faults.contains(fault) && !faults.contains("geheim"),
            "{faults}"
        );
    }
}

#[test]
fn the_example_is_valid_and_shows_the_defaults() {
    /// The settings without the cache of known TPPs, which differs between loads.
    fn shown(settings: &Settings) -> String {
        let Settings { fixed, reloadable } = settings;
        let Reloadable {
            certificates,
            ticket_keys,
            control,
            upstreams,
            sca,
            assertion,
            response_signing,
            snapshot,
            trust,
            operations,
            warnings: _,
            files: _,
        } = reloadable;
        let policy = &snapshot.policy;
        format!(
            "{fixed:?} {certificates:?} {ticket_keys:?} {control:?} {upstreams:?} {sca:?} {assertion:?} {response_signing:?} {policy:?} {trust:?} {operations:?}"
        )
    }
    let site = Site::new();
    site.write("config/gateway.yaml", GATEWAY);
    let written = Settings::load(&site.path().join("config/gateway.yaml")).unwrap();
    let all = uncommented(GATEWAY);
    let spelled_out = site.read(&all).unwrap();
    assert_eq!(shown(&written), shown(&spelled_out));
    assert_eq!(written.fixed.listener.address.to_string(), "127.0.0.1:8443");
    let core = written.reloadable.upstreams.first_address();
    assert_eq!(core, Some(SocketAddr::from(([127, 0, 0, 1], 8080))));
    let keys = |text: &str| {
        text.lines()
            .filter(|line| is_key(line.trim_start()))
            .count()
    };
    let commented_out = keys(&all) - keys(GATEWAY);
    assert_eq!(
        commented_out, 98,
        "every optional key whose default is shown"
    );
}

#[test]
fn the_examples_of_the_catalogue_file_are_valid() {
    let site = Site::new();
    site.write("config/operations.yaml", uncommented(OPERATIONS));
    let settings = site.read(GATEWAY).unwrap();
    let operations = settings.reloadable.snapshot.catalogue.operations();
    assert_eq!(operations.len(), builtin().len() + 2);
    assert!(
        operations
            .iter()
            .any(|operation| operation.path == "/v1/corporate/agreements")
    );
    let product = settings
        .reloadable
        .snapshot
        .catalogue
        .named("payment-create-sepa-credit-transfers");
    assert_eq!(product.unwrap().members.len(), 3);
}

#[test]
fn faults_of_hosts_and_forms_name_their_position() {
    let text = format!(
        "{LEAST}\
psu_identity: {{digits: 5, pattern: x}}
redirect_hosts:
  PSDNO-FSA-1: []
  PSDNO-FSA-2: tpp.example
  PSDNO-FSA-3: [tpp.example, 'https://tpp.example', tpp.example:443, '::1', '*.tpp.example']
  psdno-fsa-3: [tpp.example]
bank: {{time_zone: CET+1, account_ids: 'a b', name: x}}
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
        "gateway.yaml:11:3: redirect_hosts.psdno-fsa-3: this TPP is listed already, in another spelling".to_owned(),
        "gateway.yaml:12:19: bank.time_zone: found \"CET+1\"; expected the name of a time zone, such as Europe/Oslo".to_owned(),
        "gateway.yaml:12:39: bank.account_ids: found \"a b\"; expected characters that a path may hold as they are (letters, digits and any of -._~!$&'()*+,=:@), with ranges such as A-Z".to_owned(),
        "gateway.yaml:12:46: bank.name: unknown key".to_owned(),
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
upstream: {address: 'core', pool: 9, host: 'a b', reuse: maybe}
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
        "gateway.yaml:6:12: listener.address: found \"localhost:8443\"; expected an IP address and a port, such as 0.0.0.0:8443 (a host name is not looked up)",
        "gateway.yaml:8:8: listener.key: the key is not that of the certificate",
        "gateway.yaml:9:12: listener.threads: found \"many\"; expected a whole number from 1 to 1024, or \"auto\"",
        "gateway.yaml:10:17: listener.body_timeout: found 10; expected a duration with its unit (ms, s, m, h), from 100ms to 1m",
        "gateway.yaml:11:11: control.address: 0.0.0.0:9100 can be reached from other machines without a credential; use 127.0.0.1 or [::1], or set token_file, or certificate, key and client_ca",
        "gateway.yaml:12:21: upstream.address: found \"core\"; expected a host and a port, such as 127.0.0.1:8080 or core.bank.internal:8080",
        "gateway.yaml:12:29: upstream.pool: unknown key",
        "gateway.yaml:12:44: upstream.host: found \"a b\"; expected a host with or without a port, such as api.bank.example or 10.0.0.7:8080",
        "gateway.yaml:12:58: upstream.reuse: found \"maybe\"; expected one of \"off\", \"on\"",
        "gateway.yaml:13:18: trust.anchors: ../certs/nowhere is not a readable folder: No such file or directory (os error 2)",
        "gateway.yaml:13:51: trust.intermediates: ../certs/intermediates/notes.txt contains no certificate; expected PEM, -----BEGIN CERTIFICATE-----",
        "gateway.yaml:15:14: log.level: found \"loud\"; expected one of \"error\", \"warn\", \"info\", \"debug\", \"trace\"",
        "gateway.yaml:16:13: sca.page: found \"http://bank.example\"; it must be an absolute URI that starts with https://, such as https://bank.example/sca (http for a loopback host only)",
        "gateway.yaml:16:52: sca.token_lifetime: found \"2h\"; expected a duration with its unit (ms, s, m, h), from 1m to 1h",
        "gateway.yaml:16:69: sca.learn_until: it has no effect without unknown_psu: learn",
        "operations.yaml:2:32: operations[0].path: GET /v1/users stands in the catalogue already",
        "operations.yaml:3:25: operations[1].rolle: unknown key; did you mean \"role\"?",
    ];
    assert_eq!(site.read(text).unwrap_err(), expected);
}

#[test]
fn unreadable_files_are_named() {
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
