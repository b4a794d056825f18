//! The signature and encoding of a certificate, and text around it: CRT-10.

use super::{
    chain::{chain, through},
    leaf, shared_key, showing,
};
use crate::harness::{
    Call, Forged, Gate, Tpp, accepted,
    pki::{Ca, CaSpec},
    refused, resigned, world,
};
use openssl::{base64::encode_block, hash::MessageDigest};

/// The valid leaf with given algorithms, signed again.
fn relabelled(inner: u8, outer: u8) -> Call {
    let der = resigned(&world().both.issued.der, &world().issuing_key, inner, outer);
    showing(Call::accounts(), &encode_block(&der))
}

const SHA256: u8 = 11;
const SHA1: u8 = 5;
const MD5: u8 = 4;

//= CRT-10 accepted
//= CRT-10 refused
#[test]
fn weak_signatures_below_the_anchor() {
    let gate = Gate::start();
    accepted(&gate, &relabelled(SHA256, SHA256));
    refused(
        &gate,
        &relabelled(SHA1, SHA1),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
    refused(
        &gate,
        &relabelled(MD5, MD5),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
    for digest in [MessageDigest::sha1(), MessageDigest::md5()] {
        refused(
            &gate,
            &through(&Forged {
                digest,
                ..Forged::default()
            }),
            403,
            "FORBIDDEN",
            "certificate-untrusted",
        );
    }
    // The signature of the anchor itself is not verified.
    let anchor = resigned(world().root.der(), &world().root_key, SHA1, SHA1);
    let pem = openssl::x509::X509::from_der(&anchor)
        .unwrap()
        .to_pem()
        .unwrap();
    accepted(
        &Gate::builder().file("anchors/root.pem", pem).start(),
        &Call::accounts(),
    );
}

//= CRT-10 refused
#[test]
fn two_signature_algorithms() {
    let gate = Gate::start();
    refused(
        &gate,
        &relabelled(SHA1, SHA256),
        400,
        "FORMAT_ERROR",
        "certificate-malformed",
    );
    refused(
        &gate,
        &relabelled(SHA256, SHA1),
        400,
        "FORMAT_ERROR",
        "certificate-malformed",
    );
}

//= CRT-10 refused
#[test]
fn a_leaf_that_is_a_ca() {
    let gate = Gate::start();
    refused(
        &gate,
        &leaf(|spec| spec.is_ca = true),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
}

//= CRT-10 refused
#[test]
fn what_follows_a_certificate() {
    let gate = Gate::start();
    let der = &world().both.issued.der;
    for rest in [&b"\0"[..], b"\n", der] {
        let call = showing(Call::accounts(), &encode_block(&[der, rest].concat()));
        refused(&gate, &call, 400, "FORMAT_ERROR", "certificate-malformed");
    }
}

//= CRT-10 accepted
//= CRT-10 refused
#[test]
fn a_pem_chain() {
    let gate = Gate::start();
    let (aisp, both) = (&world().aisp.issued.pem, &world().both.issued.pem);
    // The gateway judges the first certificate.
    for passage in accepted(
        &gate,
        &chain(
            Call::accounts().by(&world().aisp),
            &[aisp, both, &world().issuing.pem()],
        ),
    ) {
        assert_eq!(
            passage.seen.header("gateway-tpp-id"),
            Some("PSDNO-FSA-111111")
        );
    }
    refused(
        &gate,
        &chain(Call::accounts(), &[&world().issuing.pem(), both]),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
    // The other certificates are not used as anchors.
    let foreign = Ca::root(&CaSpec {
        key: shared_key(),
        common_name: "Somebody Else".into(),
        ..CaSpec::development_root()
    })
    .unwrap();
    let tpp = Tpp::of(foreign.issue(&world().leaf()).unwrap());
    let call = chain(
        Call::accounts().by(&tpp),
        &[&tpp.issued.pem, &foreign.pem(), &world().root.pem()],
    );
    refused(&gate, &call, 403, "FORBIDDEN", "certificate-untrusted");
}
