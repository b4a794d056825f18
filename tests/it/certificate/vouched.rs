//! Signers of revocation data other than the key of the issuing CA: CRT-6.

use super::{
    revocation::{
        GOOD, REVOKED, UNAVAILABLE, delegate, fetched, gate, issuing, naming, now, serial_of,
        signed, stops,
    },
    shared_key,
};
use crate::harness::{
    Crl, Gate, Protocol, Said, Source, accepted, eventually, issuing_spec, ocsp_answer,
    pki::{Ca, CaSpec, Issued},
    world,
};

/// The serial number of the responder's own certificate.
const RESPONDER: &[u8] = &[0x43, 1];

/// A responder that may be revoked, whose CA publishes at these addresses.
fn responder(crls: &[String]) -> Issued {
    delegate(|spec| {
        spec.serial = Some(RESPONDER.to_vec());
        spec.crl_urls = crls.to_vec();
        spec.extra_extensions.clear();
    })
}

/// Its answer: this serial number is good, or revoked.
fn saying(signer: Issued, good: &'static [&[u8]], revoked: &'static [&[u8]]) -> Source {
    Source::saying(move |request| {
        let ca = world().issuing.pem();
        Said::ok(ocsp_answer(request, &ca, &signer, good, revoked))
    })
}

/// RFC 6960, 4.2.2.2.1: a responder's certificate without id-pkix-ocsp-nocheck is checked for revocation.
//= CRT-6 accepted
//= CRT-6 refused
#[test]
fn a_responder_may_be_revoked_itself() {
    let at = Crl::at(now());
    let lists = [
        (signed(&at), None),
        (signed(&at.clone().revoking(RESPONDER)), Some(UNAVAILABLE)),
        // An invalid list, and none at all.
        (
            at.sign(&world().issuing, &world().tpp_key),
            Some(UNAVAILABLE),
        ),
        (Vec::new(), Some(UNAVAILABLE)),
    ];
    for (index, (list, expected)) in lists.into_iter().enumerate() {
        println!("{index}");
        let list = Source::serving(list);
        let source = saying(responder(&[list.url()]), &[GOOD], &[]);
        let (gate, call) = (gate(), naming(GOOD, &[source.url()], &[]));
        match expected {
            None => {
                accepted(&gate, &call);
                // The result is cached, and another certificate needs no second list.
                accepted(&gate, &call);
            }
            Some(expected) => stops(&gate, &call, expected),
        }
        assert_eq!((source.asked(), list.asked()), (1, 1), "{index}");
    }
    // No source publishes its revocation status: its answers do not count.
    let source = saying(responder(&[]), &[GOOD], &[]);
    let gate = gate();
    stops(&gate, &naming(GOOD, &[source.url()], &[]), UNAVAILABLE);
    assert_eq!(fetched(&gate, "invalid"), 1);
}

/// Until the responder is known to be revoked, its answer that a certificate is revoked counts.
//= CRT-6 refused
#[test]
fn what_a_doubtful_responder_says_is_revoked_is_refused() {
    let list = Source::serving(Vec::new());
    let source = saying(responder(&[list.url()]), &[], &[GOOD]);
    stops(&gate(), &naming(GOOD, &[source.url()], &[]), REVOKED);
    let list = Source::serving(signed(&Crl::at(now()).revoking(RESPONDER)));
    let source = saying(responder(&[list.url()]), &[], &[GOOD]);
    let gate = gate();
    let call = naming(GOOD, &[source.url()], &[]);
    gate.send(&call, Protocol::Http1);
    eventually("the list is read", || fetched(&gate, "ok") == 2);
    stops(&gate, &call, UNAVAILABLE);
    // The answer of the CA itself needs no such check.
    let own = saying(issuing(), &[GOOD], &[]);
    accepted(&gate, &naming(GOOD, &[own.url()], &[]));
}

/// A CA with the name of the issuing CA and another key, as after a key rollover.
fn renewed(issuer: &Ca, crls: &[String]) -> Ca {
    let spec = CaSpec {
        key: shared_key(),
        crl_urls: crls.to_vec(),
        ..issuing_spec(&world().issuing_key)
    };
    issuer.issue_ca(&spec).unwrap()
}

fn gate_with(files: &[(&str, String)]) -> Gate {
    let mut builder = Gate::builder()
        .line("revocation: {check: on, unreachable: closed, private_addresses: [127.0.0.1]}");
    for (name, pem) in files {
        builder = builder.file(name, pem.clone());
    }
    builder.start()
}

/// RFC 5280, 6.3.3 (f): the same CA with another certificate, which leads to the same anchor.
//= CRT-6 accepted
//= CRT-6 refused
#[test]
fn a_list_by_another_key_of_the_same_ca() {
    let stranger = Ca::root(&CaSpec {
        common_name: "Somebody Else".into(),
        key: shared_key(),
        ..CaSpec::development_root()
    })
    .unwrap();
    let by_root = |list: Crl| list.sign(&world().root, &world().root_key);
    let root_list = Source::serving(by_root(Crl::at(now())));
    let issuing = {
        let spec = CaSpec {
            crl_urls: vec![root_list.url()],
            ..issuing_spec(&world().issuing_key)
        };
        world().root.issue_ca(&spec).unwrap()
    };
    let other = renewed(&world().root, &[root_list.url()]);
    let silent = renewed(&world().root, &[]);
    let telling = Source::serving(Vec::new());
    let revoked = renewed(&world().root, &[telling.url()]);
    let list = by_root(Crl::at(now()).revoking(&serial_of(&revoked)));
    telling.say(move |_| Said::ok(list.clone()));
    let foreign = renewed(&stranger, &[root_list.url()]);
    type Case<'a> = (&'a str, Vec<(&'a str, String)>, bool);
    let cases: [Case<'_>; 7] = [
        (
            "it stands beside the old one, under the same root",
            vec![("intermediates/other.pem", other.pem())],
            true,
        ),
        ("it is not known here", Vec::new(), false),
        (
            "it is revoked",
            vec![("intermediates/other.pem", revoked.pem())],
            false,
        ),
        (
            "no CRL shows whether it is revoked",
            vec![("intermediates/other.pem", silent.pem())],
            false,
        ),
        (
            "it leads to no anchor",
            vec![("intermediates/other.pem", foreign.pem())],
            false,
        ),
        (
            "it leads to another anchor",
            vec![
                ("intermediates/other.pem", foreign.pem()),
                ("anchors/stranger.pem", stranger.pem()),
            ],
            false,
        ),
        (
            "both are anchors",
            vec![
                ("anchors/root.pem", issuing.pem()),
                ("anchors/other.pem", silent.pem()),
            ],
            true,
        ),
    ];
    for (what, files, counts) in cases {
        println!("{what}");
        let list = Crl::at(now()).sign(&other, &world().tpp_key);
        let list = Source::serving(list);
        let call = naming(GOOD, &[], &[list.url()]);
        // Replaces the certificate that the harness writes, which names no list for itself.
        let mut all = vec![("intermediates/issuing.pem", issuing.pem())];
        all.extend(files);
        let gate = gate_with(&all);
        if counts {
            accepted(&gate, &call);
        } else {
            stops(&gate, &call, UNAVAILABLE);
        }
        let list_of_it = Crl::at(now()).revoking(GOOD).sign(&other, &world().tpp_key);
        list.say(move |_| Said::ok(list_of_it.clone()));
        if counts {
            stops(&gate_with(&all), &call, REVOKED);
        }
    }
}
