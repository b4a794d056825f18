//! `make bench` measures the same gateway that the other tests are about: its configuration disables no check.

use crate::harness::{
    Call, Crl, Gate, Protocol, Tpp, accepted, needs_sca,
    pki::{Ca, CaSpec, LeafSpec},
    refused,
};
use portvakt::clock::Clock;
use serde_json::json;
use std::fs;

/// The template, filled in like in the comparison.
const COMPARED: &str = include_str!("../../benches/peers/conf/gateway.yaml");

/// A certificate with this serial number is revoked.
const REVOKED: &[u8] = &[0x41, 2];

/// A gate whose folder has the files that the configuration names: lists of both CAs, and a register without the TPP `aisp`.
fn gate() -> Gate {
    let gate = Gate::builder().strangers().for_program();
    let (folder, world) = (gate.folder(), gate.world());
    let write = |name: &str, content: &[u8]| fs::write(folder.join(name), content).unwrap();
    fs::create_dir(folder.join("crls")).unwrap();
    let list = |ca: &Ca, key: &str| Crl::at(Clock::System.now()).revoking(REVOKED).sign(ca, key);
    write("crls/root.crl", &list(&world.root, &world.root_key));
    write(
        "crls/issuing.crl",
        &list(&world.issuing, &world.issuing_key),
    );
    write(
        "allowed.yaml",
        b"allow:\n\
          - {tpp: PSDNO-FSA-123456, roles: [PSP_AI, PSP_PI]}\n\
          - {tpp: PSDNO-FSA-222222, roles: [PSP_PI]}\n",
    );
    let at = |name: &str| folder.join(name).display().to_string();
    let parts = [
        ("@PORT@", gate.address().port().to_string()),
        ("@CONTROL@", gate.control_address().port().to_string()),
        (
            "@CORE@",
            format!("upstream: {{address: '{}'}}", gate.upstream().address()),
        ),
        ("@CERTIFICATE@", at("server.pem")),
        ("@KEY@", at("server.key")),
        ("@STATE@", at("state")),
        ("@DIR@", at("")),
        ("@THREADS@", "1".to_owned()),
        ("@LOG@", "false".to_owned()),
    ];
    let fill = |text: String, (name, value): &(&str, String)| text.replace(name, value);
    let yaml = parts.iter().fold(COMPARED.to_owned(), fill);
    write("gateway.yaml", yaml.as_bytes());
    gate
}

#[test]
fn no_check_is_off_in_what_is_compared() {
    let gate = gate();
    let _program = gate.run_silently(&mut gate.program());
    let world = gate.world();
    let accounts = || Call::accounts().present();

    needs_sca(&gate, &accounts());
    for tpp in [&world.both, &world.aisp, &world.pisp] {
        gate.introduce(json!({"tpp": tpp.id(), "psu_id": tpp.psu()}));
    }
    accepted(&gate, &accounts());
    accepted(&gate, &Call::payment());

    let malformed = |call: Call, reason: &str| {
        refused(&gate, &call, 400, "FORMAT_ERROR", reason);
    };
    // The answer contains the difference, and the machine's clock advances between two protocols.
    malformed(accounts().off_by(90).only(Protocol::Http1), "date-skewed");
    malformed(
        accounts().signature(|signature| signature.replace("signature=\"", "signature=\"A")),
        "signature-mismatch",
    );
    malformed(
        Call::payment().altered(|request| request.body = Some(b"{}".into())),
        "digest-mismatch",
    );
    malformed(Call::cross_border().json("{}"), "payload-invalid");
    let unsigned = accounts().altered(|request| request.remove_header("Signature"));
    refused(
        &gate,
        &unsigned,
        400,
        "HTTP_HEADER_REQUIRED",
        "signature-missing",
    );

    let forbidden = |call: Call, reason: &str| {
        refused(&gate, &call, 403, "FORBIDDEN", reason);
    };
    forbidden(accounts().by(&world.pisp), "role-missing");
    forbidden(accounts().by(&world.aisp), "tpp-not-registered");
    let foreign = Ca::root(&CaSpec::development_root()).unwrap();
    let foreign = Tpp::of(foreign.issue(&world.leaf()).unwrap());
    forbidden(accounts().by(&foreign), "certificate-untrusted");
    let revoked = LeafSpec {
        serial: Some(REVOKED.to_vec()),
        ..world.leaf()
    };
    forbidden(accounts().by(&world.issue(&revoked)), "certificate-revoked");

    let once = Call::payment().with("X-Request-ID", "once");
    accepted(&gate, &once.clone().only(Protocol::Http1));
    refused(&gate, &once, 409, "CONFLICT", "request-replayed");

    let without_psu = Call::balances().only(Protocol::Http1);
    for _ in 0..4 {
        accepted(&gate, &without_psu);
    }
    refused(
        &gate,
        &without_psu,
        429,
        "ACCESS_EXCEEDED",
        "quota-exceeded",
    );
}
