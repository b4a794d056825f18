//! Settings of production that are weaker than the default: a warning says what is lost.

use super::*;
use crate::clock::Timestamp;

/// The warnings of a configuration of production with these changes, and of the same in the sandbox.
fn warnings(site: &Site, change: impl Fn(String) -> String) -> [Vec<String>; 2] {
    ["production", "sandbox"].map(|environment| {
        let least = LEAST.replace(
            "environment: sandbox",
            &format!("environment: {environment}"),
        );
        let text =
            change(least) + "revocation: {check: on}\nregisters: {check: on, local: tpps.yaml}\n";
        let read = site
            .read(&text)
            .unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
        let now = Timestamp::from_unix(1_800_000_000);
        let warnings = read.reloadable.warnings.iter();
        let warnings = warnings.filter_map(|warning| Some(warning.at(now)?.to_string()));
        warnings.collect()
    })
}

fn site() -> Site {
    let site = Site::new();
    site.write("config/tpps.yaml", "allow: []\n");
    site
}

#[test]
fn what_production_loses_is_said() {
    let site = site();
    let socket = "control: {socket: control.sock}\n";
    let plain = |line: &'static str| move |text: String| format!("{text}{socket}{line}\n");
    let [none, _] = warnings(&site, plain(""));
    assert_eq!(none, [""; 0]);
    for (line, key) in [
        ("audit: {write: off}", "audit.write: "),
        ("audit: {required: false}", "audit.required: "),
        ("rates: {per_address: off}", "rates.per_address: "),
        ("rates: {per_tpp: off}", "rates.per_tpp: "),
        ("rates: {unsafe_per_tpp: off}", "rates.unsafe_per_tpp: "),
        (
            "rates: {chains_per_address: off}",
            "rates.chains_per_address: ",
        ),
        ("rates: {chains: off}", "rates.chains: "),
        ("log: {access: false}", "log.access: "),
        ("observe: {checks: [payload]}", "observe.checks: "),
        (
            "observe: {tpps: {PSDNO-FSA-123456: [sca]}}",
            "observe.checks: ",
        ),
        (
            "observe: {checks: all, danger_observe_identity: true}",
            "observe.checks: ",
        ),
        (
            "observe: {danger_observe_identity: true}",
            "observe.danger_observe_identity: ",
        ),
    ] {
        let [production, sandbox] = warnings(&site, plain(line));
        assert_eq!(production.len(), 1, "{line}: {production:?}");
        assert!(production[0].contains(key), "{production:?}");
        assert_eq!(sandbox, [""; 0], "{line}");
    }
    for key in [
        "max_connections_per_address",
        "overload_delay",
        "min_body_rate",
    ] {
        let [production, sandbox] = warnings(&site, |text| {
            let text = text.replace("listener: {", &format!("listener: {{{key}: off, "));
            text + socket
        });
        assert_eq!(production.len(), 1, "{key}: {production:?}");
        assert!(production[0].contains(&format!("listener.{key}: ")));
        assert_eq!(sandbox, [""; 0], "{key}");
    }
    let [learning, _] = warnings(&site, |text| {
        let learns = "unknown_psu: learn, learn_since: 2026-09-01, learn_until: 2026-10-01, page:";
        text.replace("page:", learns) + socket
    });
    assert!(
        matches!(&learning[..], [one] if one.contains("sca.unknown_psu: ")),
        "{learning:?}"
    );
}

#[test]
fn trust_that_is_weaker_is_said() {
    let site = site();
    let with = |revocation: &str, registers: &str| {
        let text = LEAST.replace("sandbox", "production")
            + "control: {socket: control.sock}\n"
            + &format!("revocation: {{check: on{revocation}}}\n")
            + &format!("registers: {{check: on, local: tpps.yaml{registers}}}\n");
        let now = Timestamp::from_unix(1_800_000_000);
        let read = site.read(&text).unwrap();
        let warnings = read.reloadable.warnings.iter();
        let warnings = warnings.filter_map(|warning| Some(warning.at(now)?.to_string()));
        warnings.collect::<Vec<_>>()
    };
    for (revocation, registers, key) in [
        (", unreachable: open", "", "revocation.unreachable: "),
        (
            ", by_group: {payments: open}",
            "",
            "revocation.by_group.payments: ",
        ),
        ("", ", stale: pass", "registers.stale: "),
    ] {
        let found = with(revocation, registers);
        assert!(
            matches!(&found[..], [one] if one.contains(key)),
            "{key}: {found:?}"
        );
    }
}

#[test]
fn a_state_that_a_typo_would_begin_anew_is_said() {
    let site = site();
    let socket = "control: {socket: control.sock}\n";
    let at = |file: &str| {
        let [production, _] = warnings(&site, |text| {
            format!("{text}{socket}state: {{file: ../state/{file}, hash_key: ../state/hash.key}}\n")
        });
        production
    };
    assert_eq!(at("portvakt.db"), [""; 0], "the first start makes both");
    site.write("state/hash.key", [7; 32]);
    site.write("state/portvakt.db", "");
    assert_eq!(at("portvakt.db"), [""; 0]);
    let found = at("portvakt.bd");
    assert!(
        matches!(&found[..], [one] if one.contains("state.file: ") && one.contains("is the path right?")),
        "{found:?}"
    );
}

#[test]
fn what_has_no_effect_or_a_wrong_one_is_a_fault() {
    let site = site();
    site.write_rsa();
    site.write("config/zeros.key", [0; 32]);
    site.write(
        "config/zeros.keys",
        "00000001 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
    );
    let issuer = "{issuer: ../certs/anchors/root.pem, crl: 'http://crl.example/a'}";
    for (section, expected) in [
        (
            "signing: {require: [request-target]}".to_owned(),
            "signing.require[0]: it is no header: write \"(request-target)\"",
        ),
        (
            format!("revocation: {{check: on, addresses: [{issuer}, {issuer}]}}"),
            "revocation.addresses[1]: the list already contains this issuer",
        ),
        (
            "state: {hash_key: zeros.key}".to_owned(),
            "state.hash_key: ",
        ),
        (
            "state: {events: {customer_key: zeros.key}}".to_owned(),
            "state.events.customer_key: ",
        ),
        (
            "state: {events: {customer_key: none.key}}".to_owned(),
            "state.events.customer_key: none.key: there is no such file",
        ),
        (
            "state: {events: {keep_days: 0}}".to_owned(),
            "state.events.keep_days: found 0; expected a whole number from 1 to 3650",
        ),
    ] {
        let faults = site.read(&format!("{LEAST}{section}\n")).unwrap_err();
        assert!(
            faults.len() == 1 && faults[0].contains(expected),
            "{section}: {faults:?}"
        );
    }
    let text = LEAST.replace("page:", "token_keys: zeros.keys, page:");
    let faults = site.read(&text).unwrap_err();
    assert!(faults[0].contains("sca.token_keys: "), "{faults:?}");
    let two = "upstreams: {a: {endpoints: [{address: '10.0.0.7:80'}]}, b: {endpoints: [{address: '10.0.0.8:80'}], operations: []}}";
    let text = LEAST.replace("upstream: {address: '10.0.0.7:8080'}", two);
    let faults = site.read(&text).unwrap_err();
    assert!(
        faults[0].contains("upstreams.b.operations: the group gets no operation"),
        "{faults:?}"
    );
}

/// Files that decide about trust and that every user can change.
#[test]
fn files_that_every_user_can_change_are_said() {
    let site = site();
    let socket = "control: {socket: control.sock}\n";
    for (path, mode, back) in [
        ("certs/anchors", 0o777, 0o755),
        ("certs/anchors/root.pem", 0o666, 0o644),
        ("config/tpps.yaml", 0o666, 0o644),
        ("config", 0o777, 0o755),
    ] {
        site.set_mode(path, mode);
        let [production, sandbox] = warnings(&site, |text| text + socket);
        site.set_mode(path, back);
        for found in [production, sandbox] {
            assert!(found.concat().contains("chmod o-w"), "{path}: {found:?}");
        }
    }
}
