//! Revocation: CRT-6, CRT-11 and CRT-12. The issuing CA is the anchor, unless a test is about the CA.

use super::shared_key;
use crate::harness::{
    Call, Crl, Gate, LIMIT, Protocol, Responder, Said, Source, Tpp, accepted, eventually,
    eventually_is, ocsp_answer,
    pki::{Ca, CaSpec, ExtendedKeyUsagePurpose, Extension, Issued, LeafSpec, der, der_sequence},
    refused, world,
};
use portvakt::{
    clock::{Clock, Stopwatch, Timestamp},
    config::Settings,
    expiring::{Expiring, Level},
};
use std::{sync::Arc, time::Duration};

pub(super) const UNAVAILABLE: (u16, &str, &str) = (503, "SYSTEM_ERROR", "revocation-unavailable");
pub(super) const REVOKED: (u16, &str, &str) = (403, "FORBIDDEN", "certificate-revoked");

/// The machine's time: OpenSSL's responder uses no other.
pub(super) fn now() -> Timestamp {
    Clock::System.now()
}

/// A gateway that checks revocation with `unreachable: closed`, and with additional lines in the section.
pub(super) fn gate_by(clock: &Clock, lines: &[&str]) -> Gate {
    let mut section = String::from("revocation:\n  check: on\n");
    for line in ["unreachable: closed"].iter().chain(lines) {
        section.push_str(&format!("  {line}\n"));
    }
    Gate::builder()
        .clock(clock)
        .file("anchors/root.pem", world().issuing.pem())
        .line(section.trim_end())
        .start()
}

/// The same, with leave to call addresses of this machine.
pub(super) fn gate() -> Gate {
    gate_by(&Clock::System, &["private_addresses: [127.0.0.1]"])
}

/// A call by a TPP with this serial number, whose certificate names these sources.
pub(super) fn naming(serial: &[u8], ocsp: &[String], crls: &[String]) -> Call {
    let spec = LeafSpec {
        serial: Some(serial.to_vec()),
        ocsp_urls: ocsp.to_vec(),
        crl_urls: crls.to_vec(),
        ..world().leaf()
    };
    Call::accounts().by(&world().issue(&spec))
}

pub(super) fn stops(gate: &Gate, call: &Call, (status, code, reason): (u16, &str, &str)) {
    refused(gate, call, status, code, reason);
}

/// The issuing CA as a signer of OCSP answers.
pub(super) fn issuing() -> Issued {
    Issued {
        der: world().issuing.der().to_vec(),
        pem: world().issuing.pem(),
        key_pem: world().issuing_key.clone(),
    }
}

/// The serial number of a CA's certificate, in the format of CRLs.
pub(super) fn serial_of(ca: &Ca) -> Vec<u8> {
    let certificate = openssl::x509::X509::from_der(ca.der()).unwrap();
    let mut serial = certificate.serial_number().to_bn().unwrap().to_vec();
    if serial[0] >= 0x80 {
        serial.insert(0, 0);
    }
    serial
}

/// A certificate of the issuing CA for a responder, with id-pkix-ocsp-nocheck.
pub(super) fn delegate(change: impl FnOnce(&mut LeafSpec)) -> Issued {
    let mut spec = LeafSpec {
        extended_key_usages: vec![ExtendedKeyUsagePurpose::OcspSigning],
        extra_extensions: vec![Extension {
            oid: vec![1, 3, 6, 1, 5, 5, 7, 48, 1, 5],
            critical: false,
            content: vec![5, 0],
        }],
        ..world().leaf()
    };
    change(&mut spec);
    world().issuing.issue(&spec).unwrap()
}

pub(super) fn signed(crl: &Crl) -> Vec<u8> {
    crl.sign(&world().issuing, &world().issuing_key)
}

pub(super) fn fetched(gate: &Gate, result: &str) -> usize {
    let label = format!("result=\"{result}\"");
    gate.metric_now("portvakt_revocation_fetches_total", &[&label]) as usize
}

pub(super) const GOOD: &[u8] = &[0x41, 1];
pub(super) const BAD: &[u8] = &[0x41, 2];
const NOBODY: &[u8] = &[0x41, 3];

//= CRT-6 accepted
//= CRT-6 refused
//= CRT-11 accepted
#[test]
fn a_responder_says_what_is_revoked() {
    for signer in [issuing(), delegate(|_| {})] {
        let responder = Responder::start(&world().issuing.pem(), &signer, &[GOOD], &[BAD]);
        let gate = gate();
        let by = |serial| naming(serial, &[responder.url()], &[]);
        let good = by(GOOD);
        accepted(&gate, &good);
        accepted(&gate, &good);
        // The gateway asks once and then uses its cache.
        assert_eq!(fetched(&gate, "ok"), 1);
        stops(&gate, &by(BAD), REVOKED);
        stops(&gate, &by(NOBODY), UNAVAILABLE);
    }
}

//= CRT-6 refused
//= CRT-11 refused
#[test]
fn an_answer_that_does_not_count() {
    let foreign = Ca::root(&CaSpec {
        key: shared_key(),
        common_name: "Portvakt Test CA G1".into(),
        organization: "Portvakt Test CA, AS".into(),
        ..CaSpec::default()
    })
    .unwrap();
    let foreign = Issued {
        der: foreign.der().to_vec(),
        pem: foreign.pem(),
        key_pem: world().tpp_key.clone(),
    };
    let past = time::macros::datetime!(2021-01-01 0:00 UTC);
    let signers = [
        ("a stranger of the same name", foreign),
        (
            "no delegate",
            delegate(|spec| spec.extended_key_usages.clear()),
        ),
        (
            "an expired delegate",
            delegate(|spec| spec.not_after = past),
        ),
    ];
    for (what, signer) in signers {
        println!("{what}");
        let says = move |request: &[u8]| {
            Said::ok(ocsp_answer(
                request,
                &world().issuing.pem(),
                &signer,
                &[GOOD],
                &[],
            ))
        };
        let source = Source::saying(says);
        stops(&gate(), &naming(GOOD, &[source.url()], &[]), UNAVAILABLE);
        assert_eq!(source.asked(), 1, "{what}");
    }
    // The authorised signer answers about another certificate: a replayed answer.
    let kept = Arc::new(std::sync::Mutex::new(None::<Vec<u8>>));
    let says = move |request: &[u8]| {
        let mut kept = kept.lock().unwrap();
        let made = || ocsp_answer(request, &world().issuing.pem(), &issuing(), &[GOOD], &[]);
        Said::ok(kept.get_or_insert_with(made).clone())
    };
    let (source, gate) = (Source::saying(says), gate());
    accepted(&gate, &naming(GOOD, &[source.url()], &[]));
    stops(&gate, &naming(BAD, &[source.url()], &[]), UNAVAILABLE);
    assert_eq!((fetched(&gate, "ok"), fetched(&gate, "invalid")), (1, 1));
    // One byte of the signature is changed; the signature ends before the certificates.
    let says = |request: &[u8]| {
        let mut answer = ocsp_answer(request, &world().issuing.pem(), &issuing(), &[GOOD], &[]);
        let at = answer.len() / 3;
        answer[at] ^= 1;
        Said::ok(answer)
    };
    let source = Source::saying(says);
    stops(
        &gate_by(&Clock::System, &["private_addresses: [127.0.0.0/8]"]),
        &naming(GOOD, &[source.url()], &[]),
        UNAVAILABLE,
    );
    // The answer is expired (nextUpdate an hour ago), or not valid yet.
    for offset in [3_600_i64, -3_600] {
        let clock = Clock::standing(Timestamp::from_unix(
            now().unix().saturating_add_signed(offset),
        ));
        let gate = gate_by(&clock, &["private_addresses: [127.0.0.1]"]);
        let says = |request: &[u8]| {
            Said::ok(ocsp_answer(
                request,
                &world().issuing.pem(),
                &issuing(),
                &[GOOD],
                &[],
            ))
        };
        let source = Source::saying(says);
        stops(&gate, &naming(GOOD, &[source.url()], &[]), UNAVAILABLE);
        assert_eq!(fetched(&gate, "invalid"), 1, "{offset}");
    }
}

//= CRT-11 refused
#[test]
fn a_server_that_misbehaves() {
    let good = signed(&Crl::at(now()));
    let elsewhere = Source::serving(good.clone());
    let answers = [
        ("invalid", Said::ok(b"<html>not found</html>".to_vec())),
        ("invalid", Said::ok(Vec::new())),
        (
            "too-large",
            Said::ok([good.clone(), vec![0; 5 * 1024 * 1024]].concat()),
        ),
        (
            "status",
            Said {
                head: "404 Not Found".into(),
                ..Said::ok(good.clone())
            },
        ),
        (
            "status",
            Said {
                head: format!("302 Found\r\nLocation: {}", elsewhere.url()),
                ..Said::ok(Vec::new())
            },
        ),
        (
            "slow",
            Said {
                after: 2 * LIMIT,
                ..Said::ok(good)
            },
        ),
    ];
    for (result, said) in answers {
        let is_slow = result == "slow";
        let source = Source::saying(move |_| said.clone());
        let (gate, begun) = (gate(), Stopwatch::start());
        let call = naming(GOOD, &[], &[source.url()]);
        let answer = gate.send(&call, Protocol::Http1);
        assert_eq!(
            (answer.status, answer.reason()),
            (503, "revocation-unavailable".into())
        );
        assert!(answer.header("retry-after").is_some());
        if is_slow {
            // A request waits for two seconds, and the fetch for five: neither waits for the source's minute.
            assert!(begun.elapsed() >= Duration::from_secs(2));
            eventually("the fetch ends", || fetched(&gate, "slow") == 1);
        }
        eventually_is("the fetches", 1, || fetched(&gate, result));
        // The source failed a moment ago: the gateway does not ask again yet, and no request waits.
        stops(&gate, &call, UNAVAILABLE);
        assert_eq!(source.asked(), 1, "{result}");
    }
    assert_eq!(elsewhere.asked(), 0, "a redirect was followed");
}

//= CRT-11 refused
//= CRT-11 accepted
#[test]
fn addresses_that_are_not_public() {
    let source = Source::serving(signed(&Crl::at(now())));
    let by_number = naming(GOOD, &[], &[source.url()]);
    let by_name = naming(GOOD, &[], &[source.url_by_name()]);
    let closed = gate_by(&Clock::System, &[]);
    for call in [&by_number, &by_name] {
        stops(&closed, call, UNAVAILABLE);
    }
    assert_eq!(fetched(&closed, "address-refused"), 2);
    assert_eq!(source.asked(), 0, "a private address was connected to");
    // URIs with other schemes are ignored.
    let odd = [
        "ldap://127.0.0.1/cn=x",
        "file:///etc/passwd",
        "http://user:x@127.0.0.1/",
    ];
    let odd: Vec<String> = odd.iter().map(|url| (*url).to_owned()).collect();
    stops(&closed, &naming(GOOD, &odd[2..], &odd), UNAVAILABLE);
    // Both are called if the operator allows the network, or configures the address.
    let open = gate_by(&Clock::System, &["private_addresses: [127.0.0.0/8, '::1']"]);
    accepted(&open, &by_number);
    accepted(&open, &by_name);
    let own = format!(
        "addresses: [{{issuer: anchors/root.pem, crl: '{}'}}]",
        source.url_by_name()
    );
    accepted(&gate_by(&Clock::System, &[&own]), &naming(GOOD, &[], &[]));
}

//= CRT-11 refused
#[test]
fn nobody_is_called_for_a_stranger() {
    let source = Source::serving(signed(&Crl::at(now())));
    let foreign = Ca::root(&CaSpec {
        key: shared_key(),
        common_name: "Somebody Else".into(),
        ..CaSpec::development_root()
    })
    .unwrap();
    let spec = LeafSpec {
        crl_urls: vec![source.url()],
        ..world().leaf()
    };
    let stranger = Call::accounts().by(&Tpp::of(foreign.issue(&spec).unwrap()));
    let gate = gate();
    refused(&gate, &stranger, 403, "FORBIDDEN", "certificate-untrusted");
    // Nor for a caller who presents a certificate and cannot sign.
    let unsigned = naming(GOOD, &[], &[source.url()])
        .altered(|request| request.set_header("TPP-Session-ID", "another"))
        .altered(|request| request.set_header("X-Request-ID", "another"));
    refused(&gate, &unsigned, 400, "FORMAT_ERROR", "signature-mismatch");
    assert_eq!(source.asked(), 0);
}

/// Extensions that lists have.
const DELTA: &[u64] = &[2, 5, 29, 27];
const POINT: &[u64] = &[2, 5, 29, 28];
const CERTIFICATE_ISSUER: &[u64] = &[2, 5, 29, 29];

//= CRT-6 accepted
//= CRT-6 refused
//= CRT-10 refused
#[test]
fn what_a_list_says() {
    let at = Crl::at(now());
    let gate_with = |list: Vec<u8>| {
        let source = Source::serving(list);
        (gate(), naming(GOOD, &[], &[source.url()]))
    };
    for list in [at.clone(), at.clone().revoking(BAD).revoking(&[0x41])] {
        let (gate, call) = gate_with(signed(&list));
        accepted(&gate, &call);
    }
    let (gate, call) = gate_with(signed(&at.clone().revoking(BAD).revoking(GOOD)));
    stops(&gate, &call, REVOKED);

    let with = |oid: &[u64], critical: bool, content: Vec<u8>| Crl {
        extensions: vec![(oid.to_vec(), critical, content)],
        ..at.clone()
    };
    let point = |parts: &[Vec<u8>]| with(POINT, true, der_sequence(parts));
    let name = der(0x86, b"http://elsewhere.example/x.crl");
    let earlier = Timestamp::from_unix(now().unix() - 7_200);
    let flaws = [
        ("delta", with(DELTA, true, vec![2, 1, 1])),
        ("delta, not critical", with(DELTA, false, vec![2, 1, 1])),
        ("indirect", point(&[der(0x84, &[0xff])])),
        ("some reasons", point(&[der(0x83, &[6, 0x40])])),
        ("CAs only", point(&[der(0x82, &[0xff])])),
        ("attribute certificates", point(&[der(0x85, &[0xff])])),
        ("another point", point(&[der(0xa0, &der(0xa0, &name))])),
        (
            "unknown and critical",
            with(&[1, 2, 3, 4], true, vec![5, 0]),
        ),
        (
            "entries of other issuers",
            Crl {
                entry_extensions: vec![(CERTIFICATE_ISSUER.to_vec(), true, vec![0x30, 0])],
                ..at.clone().revoking(BAD)
            },
        ),
        (
            "an unknown critical extension of an entry",
            Crl {
                entry_extensions: vec![(vec![1, 2, 3, 4], true, vec![5, 0])],
                ..at.clone().revoking(BAD)
            },
        ),
        (
            "no nextUpdate",
            Crl {
                to: None,
                ..at.clone()
            },
        ),
        (
            "of the past",
            Crl {
                from: earlier,
                to: Some(Timestamp::from_unix(now().unix() - 3_600)),
                ..at.clone()
            },
        ),
        (
            "of the future",
            Crl {
                from: Timestamp::from_unix(now().unix() + 3_600),
                ..at.clone()
            },
        ),
        (
            "SHA-1",
            Crl {
                algorithm: 5,
                ..at.clone()
            },
        ),
    ];
    for (what, list) in flaws {
        println!("{what}");
        let (gate, call) = gate_with(signed(&list));
        stops(&gate, &call, UNAVAILABLE);
        assert_eq!(fetched(&gate, "invalid"), 1, "{what}");
    }
    let forged = [
        at.sign(&world().issuing, &world().tpp_key),
        at.sign(&world().root, &world().root_key),
        [signed(&at), vec![0]].concat(),
    ];
    for list in forged {
        let (gate, call) = gate_with(list);
        stops(&gate, &call, UNAVAILABLE);
    }
    // For its own kind of certificate, a partial list counts like a complete one.
    let (gate, call) = gate_with(signed(&point(&[der(0x81, &[0xff])])));
    accepted(&gate, &call);
}

//= CRT-6 refused
//= CRT-12 refused
#[test]
fn a_ca_above_it_is_revoked() {
    let clean = Source::serving(Vec::new());
    let between = |root_list: &Source| {
        let spec = CaSpec {
            common_name: "Between".into(),
            key: shared_key(),
            crl_urls: vec![root_list.url()],
            ..CaSpec::default()
        };
        world().root.issue_ca(&spec).unwrap()
    };
    let root_list = Source::serving(Vec::new());
    let ca = between(&root_list);
    let serial = serial_of(&ca);
    let list = Crl::at(now()).sign(&ca, &world().tpp_key);
    clean.say(move |_| Said::ok(list.clone()));
    let leaf = LeafSpec {
        crl_urls: vec![clean.url()],
        ..world().leaf()
    };
    let call = Call::accounts().by(&Tpp::of(ca.issue(&leaf).unwrap()));
    for (list, expected) in [
        (Crl::at(now()), None),
        (Crl::at(now()).revoking(&serial), Some(REVOKED)),
    ] {
        let list = list.sign(&world().root, &world().root_key);
        root_list.say(move |_| Said::ok(list.clone()));
        let gate = Gate::builder()
            .file("intermediates/between.pem", ca.pem())
            .line("revocation: {check: on, unreachable: closed, private_addresses: [127.0.0.1]}")
            .start();
        match expected {
            None => drop(accepted(&gate, &call)),
            Some(expected) => stops(&gate, &call, expected),
        }
    }
    root_list.say(|_| Said::ok(Vec::new()));
    let gate = Gate::builder()
        .file("intermediates/between.pem", ca.pem())
        .line("revocation: {check: on, unreachable: closed, private_addresses: [127.0.0.1]}")
        .start();
    stops(&gate, &call, UNAVAILABLE);
}

//= CRT-6 accepted
//= CRT-6 refused
#[test]
fn open_or_closed_where_nobody_can_say() {
    let nobody = naming(GOOD, &[], &["http://127.0.0.1:9/x".into()]);
    let open = Gate::builder()
        .file("anchors/root.pem", world().issuing.pem())
        .line("revocation: {check: on, private_addresses: [127.0.0.1]}")
        .start();
    // The sandbox is open by default.
    accepted(&open, &nobody);
    assert!(open.metric_at_rest("portvakt_revocation_let_pass_total", &[]) > 1.5);
    let by_group = gate_by(&Clock::System, &["by_group: {accounts: open}"]);
    accepted(&by_group, &nobody);
    let by_group = gate_by(&Clock::System, &["by_group: {payments: open}"]);
    stops(&by_group, &nobody, UNAVAILABLE);
    // A certificate without sources is as unknown as one with unavailable sources.
    stops(&by_group, &Call::accounts(), UNAVAILABLE);
    let off = Gate::builder().line("revocation: {check: off}").start();
    accepted(&off, &nobody);
    accepted(&off, &Call::accounts());
}

//= CRT-6 accepted
//= CRT-6 refused
//= CRT-12 accepted
//= CRT-12 refused
#[test]
fn what_is_known_is_refreshed_and_runs_out() {
    let start = 1_800_000_000;
    let at = Timestamp::from_unix;
    let clock = Clock::standing(at(start));
    let gate = gate_by(&clock, &["private_addresses: [127.0.0.1]", "stale: 30m"]);
    let list = |from: u64| signed(&Crl::at(at(from)));
    let first = list(start);
    let source = Source::saying(move |_| Said::ok(first.clone()));
    let call = naming(GOOD, &[], &[source.url()]);
    accepted(&gate, &call);
    assert_eq!(source.asked(), 1);
    // After half of its two hours the list is fetched again, without a request.
    let second = list(start + 3_600);
    source.say(move |_| Said::ok(second.clone()));
    clock.set(at(start + 3_600));
    eventually("it is refreshed", || fetched(&gate, "ok") == 2);
    // An older list does not replace the list, and an unavailable responder changes nothing while the last list holds.
    let older = signed(&Crl::at(at(start)).revoking(GOOD));
    source.say(move |_| Said::ok(older.clone()));
    clock.set(at(start + 7_300));
    eventually("the older one is refused", || {
        fetched(&gate, "invalid") >= 1
    });
    source.say(|_| Said {
        head: "500 Oops".into(),
        ..Said::ok(Vec::new())
    });
    accepted(&gate, &call);
    // Until nextUpdate and half an hour more.
    let until = start + 3_600 + 7_200;
    clock.set(at(until + 1_800));
    accepted(&gate, &call);
    assert!(gate.metric_at_rest("portvakt_revocation_fetches_total", &["status"]) < 9.5);
    let overdue = |name: &str| gate.metric_at_rest(&format!("portvakt_revocation_{name}"), &[]);
    assert_eq!(overdue("max_overdue_seconds"), 1_800.0);
    gate.eventually_metric("portvakt_expiring", &["of=\"revocation\""], 1.0);
    clock.set(at(until + 1_801));
    stops(&gate, &call, UNAVAILABLE);
    // The source is available again, and says that the certificate is revoked.
    let revoking = signed(&Crl::at(at(until + 3_600)).revoking(GOOD));
    source.say(move |_| Said::ok(revoking.clone()));
    clock.set(at(until + 3_600));
    eventually("it is asked again", || fetched(&gate, "ok") == 3);
    stops(&gate, &call, REVOKED);
    // The certificate stays revoked after the list has expired and no source answers.
    source.say(|_| Said {
        head: "500 Oops".into(),
        ..Said::ok(Vec::new())
    });
    clock.set(at(until + 86_400));
    stops(&gate, &call, REVOKED);
}

//= CRT-11 accepted
#[test]
fn many_who_ask_at_once_share_one_fetch() {
    let list = signed(&Crl::at(now()));
    let source = Source::saying(move |_| Said {
        after: Duration::from_millis(300),
        ..Said::ok(list.clone())
    });
    let gate = gate();
    let calls: Vec<_> = (0..8)
        .map(|number| naming(&[0x42, number], &[], &[source.url()]))
        .collect();
    std::thread::scope(|scope| {
        for call in &calls {
            scope.spawn(|| assert_eq!(gate.send(call, Protocol::Http1).status, 200));
        }
    });
    assert_eq!(source.asked(), 1);
}

//= CRT-6 accepted
//= CRT-6 refused
#[test]
fn lists_from_files() {
    let at = Crl::at(now());
    let start = |list: Vec<u8>| {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join("list.crl"), list).unwrap();
        let line = format!(
            "revocation: {{check: on, unreachable: closed, crls: '{}'}}",
            folder.path().display()
        );
        Gate::builder()
            .file("anchors/root.pem", world().issuing.pem())
            .line(&line)
            .try_start()
    };
    let call = naming(GOOD, &[], &[]);
    accepted(&start(signed(&at)).unwrap(), &call);
    stops(
        &start(signed(&at.clone().revoking(GOOD))).unwrap(),
        &call,
        REVOKED,
    );
    stops(
        &start(at.sign(&world().issuing, &world().tpp_key)).unwrap(),
        &call,
        UNAVAILABLE,
    );
    let delta = Crl {
        extensions: vec![(DELTA.to_vec(), true, vec![2, 1, 1])],
        ..at
    };
    let fault = start(signed(&delta)).err().unwrap();
    assert!(
        fault.contains("it is a delta CRL, which is not supported"),
        "{fault}"
    );
}

/// CRT-6: a CRL in a file, which nobody but the operator replaces, is spoken of before its nextUpdate, and so is a folder without one.
#[test]
fn a_list_in_a_file_does_not_end_unseen() {
    const HOUR: u64 = 3_600;
    let folder = tempfile::TempDir::new().unwrap();
    let list = folder.path().join("list.crl");
    let start = now();
    let crl = Crl {
        to: Some(Timestamp::from_unix(start.unix() + 24 * HOUR)),
        ..Crl::at(start)
    };
    std::fs::write(&list, signed(&crl)).unwrap();
    let crls = folder.path().display();
    let gate = Gate::builder()
        .with_a_file()
        .file("anchors/root.pem", world().issuing.pem())
        .line(&format!(
            "revocation: {{check: on, unreachable: closed, crls: '{crls}'}}"
        ))
        .start();
    let levels = |hours: u64| {
        let settings = Settings::load(&gate.folder().join("gateway.yaml")).unwrap();
        let at = Timestamp::from_unix(start.unix() + hours * HOUR);
        let warnings = settings.reloadable.warnings.iter();
        let found = warnings.filter_map(|warning| warning.finding(at));
        let found = found.filter(|finding| finding.of == Expiring::Crl);
        found
            .map(|finding| (finding.level, finding.text))
            .collect::<Vec<_>>()
    };
    assert_eq!(levels(17), []);
    let soon = &levels(19)[..];
    assert!(
        matches!(soon, [(Level::Soon, text)] if text.contains("list.crl is to be replaced by")),
        "{soon:?}"
    );
    let over = &levels(25)[..];
    assert!(
        matches!(over, [(Level::Over, text)] if text.contains("revocation.crls: the CRL ") && text.contains("503")),
        "{over:?}"
    );
    // No request has used it yet.
    let next = gate.metric_at_rest(
        "portvakt_crl_next_update_timestamp_seconds",
        &["from=\"file\""],
    );
    assert_eq!(next as u64, start.unix() + 24 * HOUR);
    let expiring = |of: &str| gate.metric_at_rest("portvakt_expiring", &[&format!("of=\"{of}\"")]);
    assert_eq!(expiring("crl"), 0.0);
    std::fs::remove_file(&list).unwrap();
    assert_eq!(gate.tell("/reload", &serde_json::json!({})).status, 200);
    let none = &levels(0)[..];
    assert!(
        matches!(none, [(Level::Soon, text)] if text.contains("holds no CRL")),
        "{none:?}"
    );
    assert_eq!(expiring("crl"), 1.0);
    // The requests that rest on it are refused, and that is seen too.
    assert_eq!(expiring("revocation"), 0.0);
    stops(&gate, &naming(GOOD, &[], &[]), UNAVAILABLE);
    assert_eq!(expiring("revocation"), 2.0);
}

/// The threads that fetch run at a lower priority than those that serve.
#[cfg(target_os = "linux")]
#[test]
fn what_asks_steps_back() {
    let _gate = gate();
    let nice = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok())
            .find(|stat| stat.contains("(revocation)"))
            .map(|stat| {
                stat.rsplit(')')
                    .next()
                    .unwrap()
                    .split_whitespace()
                    .nth(16)
                    .unwrap()
                    .to_owned()
            })
    };
    eventually_is("the nice value", Some("10".to_owned()), nice);
}
