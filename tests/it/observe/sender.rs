//! Whose request it is, while certificate or signature are only observed: a blocked TPP, and a TPP with its own set.

use super::{
    breach::{self, BLOCKED, checking_everything, forge, issue},
    observing, passes, rests_on_sender,
};
use crate::harness::{Call, Protocol, Tpp, World, pki::LeafSpec, refused, world};
use std::sync::{Arc, LazyLock};
use time::macros::datetime;

/// A PKI that no gate trusts.
static OTHER: LazyLock<World> = LazyLock::new(World::mint);

/// Certificates with this identity that the gateway refuses, with the reason.
fn faulty(identity: &str) -> Vec<(Arc<Tpp>, &'static str)> {
    let leaf = |world: &World| LeafSpec {
        organization_identifier: Some(identity.into()),
        ..world.leaf()
    };
    let issued = |change: fn(&mut LeafSpec)| {
        let mut spec = leaf(world());
        change(&mut spec);
        world().issue(&spec)
    };
    vec![
        (
            issued(|spec| spec.not_after = datetime!(2020-01-01 0:00 UTC)),
            "certificate-expired",
        ),
        (
            issued(|spec| spec.not_before = datetime!(2040-01-01 0:00 UTC)),
            "certificate-not-yet-valid",
        ),
        (
            issued(|spec| spec.qc_compliance = false),
            "certificate-wrong-type",
        ),
        (OTHER.issue(&leaf(&OTHER)), "certificate-untrusted"),
    ]
}

fn unsigned(call: Call) -> Call {
    call.altered(|request| {
        let is_signature = |name: &str| name.eq_ignore_ascii_case("signature");
        request.headers.retain(|(name, _)| !is_signature(name));
    })
}

/// A blocked TPP cannot pass by spoiling its own signature or by showing a certificate that is not valid.
//= FWD-6 accepted
//= FWD-6 refused
//= CRT-7 refused
#[test]
fn a_blocked_tpp_cannot_become_unknown() {
    let blocked = issue(BLOCKED);
    // A set permits exactly its TPP, so each spelling has one here; the block needs one spelling only.
    let alike = BLOCKED.replace("666666", "666-666");
    let spelled = issue(&alike);
    let sets = [BLOCKED, &alike].map(|tpp| format!("{tpp}: [certificate, signature]"));
    let own = format!("PSDNO-FSA-111111: [], {}", sets.join(", "));
    let sections = [
        "checks: all".to_owned(),
        "checks: [certificate, signature]".to_owned(),
        format!("tpps: {{{own}}}"),
    ];
    for section in &sections {
        let gate = checking_everything()
            .line(&format!("observe: {{{section}}}"))
            .start();
        let mut calls = Vec::new();
        for tpp in [&blocked, &spelled] {
            let call = Call::payment().by(tpp);
            calls.extend([call.clone().signature(forge), unsigned(call.clone()), call]);
        }
        let faulty = faulty(BLOCKED).into_iter();
        calls.extend(faulty.map(|(tpp, _)| Call::payment().by(&tpp)));
        for call in &calls {
            refused(&gate, call, 403, "FORBIDDEN", "tpp-blocked");
        }
    }
    // Others become unknown.
    let gate = observing("[certificate, signature]").start();
    let (_, seen) = passes(&gate, &Call::payment().signature(forge));
    assert_eq!(seen.header("gateway-observed"), Some("signature-mismatch"));
    for (tpp, reason) in self::faulty("PSDNO-FSA-123456") {
        let (_, seen) = passes(&gate, &Call::payment().by(&tpp));
        assert_eq!(seen.header("gateway-observed"), Some(reason));
    }
    // Where they refuse, a certificate does not tell others who is blocked.
    let gate = checking_everything().start();
    let forged = Call::payment().by(&blocked).signature(forge);
    refused(&gate, &forged, 400, "FORMAT_ERROR", "signature-mismatch");
}

/// The checks of the certificate and the signature go by the TPP that the certificate names, valid or not; every other check goes by the
/// TPP whose signature verified.
//= FWD-6 accepted
//= FWD-6 refused
#[test]
fn a_tpp_has_its_own_checks_of_certificate_and_signature() {
    let set = |checks: &str| {
        let line = format!("observe: {{tpps: {{PSDNO-FSA-123456: [{checks}]}}}}");
        checking_everything().line(&line).start()
    };
    let gate = set("certificate, signature");
    let call = Call::payment();
    let spoilt = [
        (unsigned(call.clone()), "signature-missing"),
        (call.clone().signature(forge), "signature-mismatch"),
    ];
    let shown = faulty("PSDNO-FSA-123456").into_iter();
    let shown = shown.map(|(tpp, reason)| (call.clone().by(&tpp), reason));
    for (call, reason) in spoilt.into_iter().chain(shown) {
        let (_, seen) = passes(&gate, &call);
        assert_eq!(seen.header("gateway-observed"), Some(reason));
        assert!(rests_on_sender(&seen).is_empty(), "{:?}", seen.names());
        // Its set does not apply to other checks.
        let late = call.off_by(-300).only(Protocol::Http1);
        refused(&gate, &late, 400, "FORMAT_ERROR", "date-skewed");
    }
    // Other TPPs have no such set.
    for (tpp, reason) in faulty("PSDNO-FSA-111111") {
        refused(&gate, &call.clone().by(&tpp), 403, "FORBIDDEN", reason);
    }
    let of_other = || call.clone().by(&world().pisp);
    let missing = unsigned(of_other());
    let code = "HTTP_HEADER_REQUIRED";
    refused(&gate, &missing, 400, code, "signature-missing");
    let forged = of_other().signature(forge);
    refused(&gate, &forged, 400, "FORMAT_ERROR", "signature-mismatch");
    // One of the two does not stand for the other.
    let gate = set("certificate");
    refused(
        &gate,
        &unsigned(call.clone()),
        400,
        code,
        "signature-missing",
    );
    let gate = set("signature");
    for (tpp, reason) in faulty("PSDNO-FSA-123456") {
        refused(&gate, &call.clone().by(&tpp), 403, "FORBIDDEN", reason);
    }
    // The set of everything, for a caller that only names the TPP.
    let all = set("headers, query, date, certificate, role, signature, digest, payload");
    let late = call.by(breach::untrusted()).off_by(-300);
    let late = late.only(Protocol::Http1);
    refused(&all, &late, 400, "FORMAT_ERROR", "date-skewed");
}
