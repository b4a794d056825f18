//! Requests that fail one check each, and a gateway that makes every check.

use crate::harness::{
    Call, Crl, Gate, GateBuilder, Protocol, Seen, Tpp, World, pki::LeafSpec, world,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use portvakt::{admission::ObservableCheck, clock::Clock};
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// A serial number that the CRL names.
pub(crate) const REVOKED: &[u8] = &[0x66, 6];
/// A TPP that no register names.
pub(crate) const UNREGISTERED: &str = "PSDNO-FSA-999999";
/// A TPP that the bank blocks.
pub(crate) const BLOCKED: &str = "PSDNO-FSA-666666";
/// A TPP that may name `tpp.example` only.
pub(crate) const RESTRICTED: &str = "PSDNO-FSA-777777";

/// A request that fails one check.
pub(crate) struct Breach {
    pub(crate) check: ObservableCheck,
    pub(crate) reason: &'static str,
    pub(crate) call: Call,
}

impl Breach {
    fn new(check: ObservableCheck, reason: &'static str, call: Call) -> Self {
        let call = call.only(Protocol::Http1);
        Self {
            check,
            reason,
            call,
        }
    }

    /// Makes the requests before the one that fails: the first use of its id, or the calls of its quota.
    pub(crate) fn prepare(&self, gate: &Gate) {
        let before = match self.check {
            ObservableCheck::Replay => 1,
            ObservableCheck::Quota => 4,
            _ => 0,
        };
        for _ in 0..before {
            gate.send(&self.call, Protocol::Http1);
        }
    }
}

/// A TPP with both roles and this identity.
pub(crate) fn issue(identity: &str) -> Arc<Tpp> {
    world().issue(&LeafSpec {
        organization_identifier: Some(identity.into()),
        ..world().leaf()
    })
}

/// A TPP with a revoked certificate.
pub(crate) fn revoked() -> Arc<Tpp> {
    world().issue(&LeafSpec {
        serial: Some(REVOKED.to_vec()),
        ..world().leaf()
    })
}

/// A TPP of a PKI that no gate trusts.
pub(crate) fn untrusted() -> &'static Arc<Tpp> {
    static OTHER: LazyLock<World> = LazyLock::new(World::mint);
    &OTHER.both
}

/// A signature over something else: canonical base64 of the right length.
pub(crate) fn forge(signature: &str) -> String {
    let (before, value) = signature.split_once("signature=\"").unwrap();
    let flipped = if value.starts_with('A') { "B" } else { "A" };
    format!("{before}signature=\"{flipped}{}", &value[1..])
}

/// One request for each check, in their order.
pub(crate) fn all() -> Vec<Breach> {
    use ObservableCheck as Check;
    let other_body = |call: Call| {
        call.altered(|request| {
            let body = r#"{"instructedAmount":{"amount":"2.00","currency":"NOK"}}"#;
            request.body = Some(body.into());
        })
    };
    let query = Call::accounts().at("/v1/accounts?name;value").present();
    let malformed = r#"{"instructedAmount":{"amount":"1","currency":"NOK"}}"#;
    let elsewhere = Call::payment()
        .by(&issue(RESTRICTED))
        .with("TPP-Redirect-URI", "https://elsewhere.example/");
    let counted = Call::balances().at("/v1/accounts/4711/balances");
    let again = Call::accounts().with("X-Request-ID", "used-again");
    vec![
        Breach::new(
            Check::Headers,
            "header-missing",
            Call::accounts().without("TPP-Redirect-URI"),
        ),
        Breach::new(Check::Query, "query-malformed", query),
        Breach::new(Check::Date, "date-skewed", Call::accounts().off_by(-300)),
        Breach::new(
            Check::Certificate,
            "certificate-untrusted",
            Call::accounts().by(untrusted()),
        ),
        Breach::new(
            Check::Role,
            "role-missing",
            Call::accounts().by(&world().pisp),
        ),
        Breach::new(
            Check::Signature,
            "signature-mismatch",
            Call::accounts().signature(forge),
        ),
        Breach::new(
            Check::Register,
            "tpp-not-registered",
            Call::accounts().by(&issue(UNREGISTERED)),
        ),
        Breach::new(
            Check::Revocation,
            "certificate-revoked",
            Call::accounts().by(&revoked()),
        ),
        Breach::new(Check::RedirectHost, "header-malformed", elsewhere),
        Breach::new(
            Check::Digest,
            "digest-mismatch",
            other_body(Call::payment()),
        ),
        Breach::new(
            Check::Payload,
            "payload-invalid",
            Call::payment().json(malformed),
        ),
        Breach::new(
            Check::Sca,
            "sca-required",
            Call::accounts().without("PSU-ID"),
        ),
        Breach::new(Check::Replay, "request-replayed", again),
        Breach::new(Check::Quota, "quota-exceeded", counted),
    ]
}

/// A gateway with a register, a revocation list and redirect hosts.
pub(crate) fn checking_everything() -> GateBuilder {
    let list = Crl::at(Clock::System.now()).revoking(REVOKED);
    let list = list.sign(&world().issuing, &world().issuing_key);
    let known = [
        "PSDNO-FSA-123456",
        "PSDNO-FSA-111111",
        "PSDNO-FSA-222222",
        RESTRICTED,
    ];
    let mut local = "allow:\n".to_owned();
    let served = (0..20).map(|number| format!("PSDNO-FSA-{}", 500_000 + number));
    for tpp in known.into_iter().map(str::to_owned).chain(served) {
        local.push_str(&format!(
            "- {{tpp: {tpp}, roles: [PSP_AI, PSP_PI], note: a test}}\n"
        ));
    }
    local.push_str(&format!("block:\n- {{tpp: {BLOCKED}, note: a test}}\n"));
    Gate::builder()
        .file("anchors/root.pem", world().issuing.pem())
        .file("crls/list.crl", list)
        .file("tpps.yaml", local)
        .line("registers: {check: on, local: tpps.yaml}")
        .line("revocation: {check: on, unreachable: closed, crls: crls}")
        .line(&format!("redirect_hosts: {{{RESTRICTED}: [tpp.example]}}"))
}

/// The claims of the assertion.
pub(crate) fn claims(seen: &Seen) -> Value {
    let assertion = seen.header("gateway-assertion").unwrap();
    let claims = assertion.split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}
