//! Trust: registers, revocation, tolerance, and the requirements of production (CRT-9).

use super::*;
use crate::{
    admission::WhenUnknown,
    interface::operations::Environment,
    trust::register::{RegisterSettings, WhenStale},
};

/// A list of allowed and blocked TPPs.
const TPPS: &str = "\
allow: [{tpp: psdno-fsa-12 34-56, roles: [PSP_AI], note: a bank}]
block: [{tpp: PSDNO-FSA-654321}]
";

/// A minimal production, without registers and revocation.
fn production() -> String {
    LEAST.replace("sandbox", "production") + "control: {socket: control.sock}\n"
}

/// CRT-9: production starts with every check, and with its strict defaults.
#[test]
fn production_starts_with_every_check() {
    let production = production();
    let site = Site::new();
    site.write("config/tpps.yaml", TPPS);
    let text = format!(
        "{production}revocation: {{check: on}}\nregisters: {{check: on, local: tpps.yaml}}\n"
    );
    let snapshot = site.read(&text).unwrap().reloadable.snapshot;
    assert_eq!(snapshot.policy.environment, Environment::Production);
    assert_eq!(snapshot.policy.revocation_unknown, WhenUnknown::Closed);
    let registers = snapshot.registers.unwrap();
    assert_eq!(*registers.settings(), RegisterSettings::default());
    assert_eq!(registers.settings().stale, WhenStale::Refuse);
    assert!(snapshot.trust.revocation().is_some());
}

#[test]
fn registers_are_on_in_production() {
    let production = production();
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
            .reloadable
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
        "tpps.yaml:4:9: allow[2].tpp: this list already contains this TPP",
        "tpps.yaml:5:9: block[0].tpp: missing key",
        "tpps.yaml:5:19: block[0].til: unknown key",
    ];
    assert_eq!(site.read(&text).unwrap_err(), expected);
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

/// CRT-6, CRT-9: the requirements of production, and contradictory settings.
#[test]
fn revocation_is_on_in_production() {
    let production = production();
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
  ocsp_max_age: 30s
  private_addresses: [10.0.0.0/40]
  addresses: [{{issuer: none.pem, ocsp: 'ldap://a'}}]
  crls: nowhere
"
    );
    let faults = Site::new().read(&odd).unwrap_err().join("\n");
    for expected in [
        "revocation.stale: found \"8000h\"",
        "revocation.ocsp_max_age: found \"30s\"; expected a duration",
        "revocation.private_addresses[0]: found \"10.0.0.0/40\"; expected an IP address or a network",
        "revocation.addresses[0].ocsp: found \"ldap://a\"; expected an http or https URL",
        "none.pem cannot be read",
        "nowhere is not a readable folder",
    ] {
        assert!(faults.contains(expected), "{expected}: {faults}");
    }
    let group = format!("{LEAST}revocation: {{check: on, by_group: {{nothing: open}}}}\n");
    let faults = Site::new().read(&group).unwrap_err().join("\n");
    assert!(
        faults.contains("revocation.by_group.nothing: no operation has the group"),
        "{faults}"
    );
}

/// CRT-6: copies are in the state's folder unless another one is named; each issuer has an address.
#[test]
fn copies_and_addresses_of_revocation() {
    // Neither is watched: the gateway itself writes these files.
    for (line, expected) in [
        ("", "../state/revocation"),
        ("state: {file: kept/x.db}\n", "kept/revocation"),
        ("copies: cache", "cache"),
    ] {
        let (state, own) = match line.strip_prefix("copies") {
            Some(_) => ("", format!(", {line}")),
            None => (line, String::new()),
        };
        let site = Site::new();
        let settings = site
            .read(&format!("{LEAST}{state}revocation: {{check: on{own}}}\n"))
            .unwrap();
        let revocation = settings.reloadable.snapshot.trust.revocation().unwrap();
        let folder = revocation.copies().unwrap();
        assert!(folder.ends_with(expected), "{folder:?}");
        assert!(
            settings
                .reloadable
                .files
                .named
                .iter()
                .all(|file| file != folder)
        );
    }
    let nobody = format!(
        "{LEAST}revocation: {{check: on, addresses: [{{issuer: ../certs/server.pem, ocsp: none, crl: none}}]}}\n"
    );
    let faults = Site::new().read(&nobody).unwrap_err().join("\n");
    assert!(
        faults.contains("expected at least one of ocsp and crl"),
        "{faults}"
    );
}

/// CRT-3.
#[test]
fn certificate_types_that_may_sign() {
    let table = [
        ("[]", "expected at least one type: eseal, web or both"),
        ("eseal", "expected a list"),
        ("[eseal, esign]", "certificate_types[1]: found \"esign\""),
    ];
    for (list, expected) in table {
        let text = LEAST.replacen(
            "trust: {",
            &format!("trust: {{certificate_types: {list}, "),
            1,
        );
        assert_ne!(text, LEAST);
        let faults = Site::new().read(&text).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains(expected), "{faults:?}");
    }
}
