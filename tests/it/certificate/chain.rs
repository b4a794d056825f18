//! Chains to a trust anchor: CRT-2.

use super::{leaf, shared_key, showing};
use crate::harness::{
    Call, Connection, Forged, Gate, Tpp, accepted,
    pki::{Ca, CaSpec, Extension, LeafSpec, der, der_sequence},
    refused, world,
};
use openssl::base64::encode_block;
use portvakt::clock::{Clock, Timestamp};
use std::sync::{Arc, LazyLock};
use time::macros::datetime;

//= CRT-2 accepted
#[test]
fn chains_to_an_anchor() {
    let gate = Gate::start();
    accepted(&gate, &Call::accounts());
    // Issued by the anchor itself.
    let direct = Tpp::of(world().root.issue(&world().leaf()).unwrap());
    accepted(&gate, &Call::accounts().by(&direct));
    // The issuing CA is itself the anchor, as in trusted lists.
    let gate = Gate::builder()
        .file("anchors/root.pem", world().issuing.pem())
        .start();
    accepted(&gate, &Call::accounts());
}

//= CRT-2 refused
#[test]
fn chains_to_somebody_else() {
    let gate = Gate::start();
    let foreign = Ca::root(&CaSpec {
        key: shared_key(),
        common_name: "Somebody Else".into(),
        ..CaSpec::development_root()
    })
    .unwrap();
    let tpp = Tpp::of(foreign.issue(&world().leaf()).unwrap());
    refused(
        &gate,
        &Call::accounts().by(&tpp),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
    // The names of the trusted CA with another key.
    let twin = Ca::root(&CaSpec {
        key: shared_key(),
        common_name: "Portvakt Test CA G1".into(),
        organization: "Portvakt Test CA, AS".into(),
        ..CaSpec::default()
    })
    .unwrap();
    let tpp = Tpp::of(twin.issue(&world().leaf()).unwrap());
    let answer = refused(
        &gate,
        &Call::accounts().by(&tpp),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
    // OpenSSL's reason is for the operator only.
    assert!(
        !String::from_utf8_lossy(&answer.body)
            .to_lowercase()
            .contains("issuer certificate")
    );
    // One byte of the signature is changed.
    let mut der = world().both.issued.der.clone();
    *der.last_mut().unwrap() ^= 1;
    refused(
        &gate,
        &showing(Call::accounts(), &encode_block(&der)),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
    // A gateway without the intermediate CA.
    let gate = Gate::builder()
        .file("intermediates/issuing.pem", world().tls_ca.pem())
        .start();
    refused(
        &gate,
        &Call::accounts(),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
}

//= CRT-2 accepted
//= CRT-2 refused
#[test]
fn validity_is_judged_at_each_request() {
    let at = |time: time::OffsetDateTime| {
        Timestamp::from_unix(u64::try_from(time.unix_timestamp()).unwrap())
    };
    let (first, last) = (
        datetime!(2026-03-01 12:00 UTC),
        datetime!(2026-09-01 12:00 UTC),
    );
    let clock = Clock::standing(at(datetime!(2026-06-01 12:00 UTC)));
    let gate = Gate::builder().clock(&clock).start();
    let call = Call::plain().by(&world().issue(&LeafSpec {
        not_before: first,
        not_after: last,
        ..world().leaf()
    }));
    let second = time::Duration::SECOND;
    let (early, late) = ("certificate-not-yet-valid", "certificate-expired");
    // The gateway knows the chain after the first request; the result stays the same.
    let moments = [
        (first, None),
        (first - second, Some(early)),
        (first, None),
        (last, None),
        (last + second, Some(late)),
        (first - second, Some(early)),
        (last, None),
    ];
    for (moment, reason) in moments {
        clock.set(at(moment));
        match reason {
            Some(reason) => drop(refused(&gate, &call, 403, "FORBIDDEN", reason)),
            None => drop(accepted(&gate, &call)),
        }
    }
}

/// A connection caches its last certificate; the result stays the same.
//= CRT-2 accepted
//= CRT-2 refused
#[test]
fn validity_is_judged_at_each_request_of_a_connection() {
    let last = datetime!(2026-09-01 12:00 UTC);
    let end = u64::try_from(last.unix_timestamp()).unwrap();
    let clock = Clock::standing(Timestamp::from_unix(end));
    let gate = Gate::builder().clock(&clock).start();
    let spec = LeafSpec {
        not_after: last,
        ..world().leaf()
    };
    let call = Call::accounts().by(&world().issue(&spec));
    let mut connection = Connection::open(&gate);
    for (moment, status) in [
        (end, 200),
        (end + 1, 403),
        (end, 200),
        (end, 200),
        (end + 1, 403),
    ] {
        clock.set(Timestamp::from_unix(moment));
        let answer = connection.exchange(&gate.seal(&call)).unwrap();
        assert_eq!(answer.status, status);
    }
    assert_eq!(gate.upstream().take().len(), 3);
}

/// An intermediate CA below the root that the gateway does not know. The request carries its certificate, with a given fault.
static BETWEEN: LazyLock<Ca> = LazyLock::new(|| {
    let spec = CaSpec {
        common_name: "Between".into(),
        key: shared_key(),
        path_length: None,
        ..CaSpec::default()
    };
    world().root.issue_ca(&spec).unwrap()
});

/// A TPP with a certificate of [`BETWEEN`], presented as a PEM chain with this certificate of the CA after its own.
pub(super) fn through(flaw: &Forged) -> Call {
    static TPP: LazyLock<Arc<Tpp>> =
        LazyLock::new(|| Tpp::of(BETWEEN.issue(&world().leaf()).unwrap()));
    let twin = flaw.twin_of(&BETWEEN, &world().root, &world().root_key);
    chain(Call::accounts().by(&TPP), &[&TPP.issued.pem, &twin])
}

pub(super) fn chain(call: Call, pems: &[&str]) -> Call {
    showing(call, &encode_block(pems.concat().as_bytes()))
}

/// An unknown critical extension.
fn unknown() -> (&'static str, bool, Vec<u8>) {
    ("1.2.3.4.5", true, vec![0x05, 0x00])
}

/// nameConstraints: only subjects of this country.
fn only_in(country: &str) -> Option<(&'static str, bool, Vec<u8>)> {
    let attribute = der_sequence(&[
        vec![0x06, 0x03, 0x55, 0x04, 0x06],
        der(0x13, country.as_bytes()),
    ]);
    let name = der_sequence(&[der(0x31, &attribute)]);
    let permitted = der(0xa0, &der_sequence(&[der(0xa4, &name)]));
    Some(("2.5.29.30", true, der_sequence(&[permitted])))
}

//= CRT-2 accepted
//= CRT-10 accepted
#[test]
fn a_ca_that_comes_with_the_request() {
    let gate = Gate::start();
    accepted(&gate, &through(&Forged::default()));
    accepted(
        &gate,
        &through(&Forged {
            path_length: Some(0),
            ..Forged::default()
        }),
    );
    accepted(
        &gate,
        &through(&Forged {
            extension: only_in("NO"),
            ..Forged::default()
        }),
    );
}

//= CRT-2 refused
#[test]
fn a_ca_with_a_flaw() {
    let gate = Gate::start();
    let flaws = [
        (
            "no CA",
            Forged {
                is_ca: false,
                ..Forged::default()
            },
        ),
        (
            "no keyCertSign",
            Forged {
                may_sign: false,
                ..Forged::default()
            },
        ),
        (
            "an unknown critical extension",
            Forged {
                extension: Some(unknown()),
                ..Forged::default()
            },
        ),
        (
            "a name constraint",
            Forged {
                extension: only_in("SE"),
                ..Forged::default()
            },
        ),
    ];
    for (what, flaw) in flaws {
        println!("{what}");
        refused(
            &gate,
            &through(&flaw),
            403,
            "FORBIDDEN",
            "certificate-untrusted",
        );
    }
    let past = Forged {
        validity: ("20150101000000Z", "20200101000000Z"),
        ..Forged::default()
    };
    refused(
        &gate,
        &through(&past),
        403,
        "FORBIDDEN",
        "certificate-expired",
    );
    let future = Forged {
        validity: ("20440101000000Z", "20450101000000Z"),
        ..Forged::default()
    };
    refused(
        &gate,
        &through(&future),
        403,
        "FORBIDDEN",
        "certificate-not-yet-valid",
    );
}

//= CRT-2 refused
#[test]
fn a_chain_that_is_longer_than_it_may_be() {
    // The issuing CA may have no CA below it.
    let below = world()
        .issuing
        .issue_ca(&CaSpec {
            common_name: "Below".into(),
            key: shared_key(),
            ..CaSpec::default()
        })
        .unwrap();
    let tpp = Tpp::of(below.issue(&world().leaf()).unwrap());
    let call = chain(Call::accounts().by(&tpp), &[&tpp.issued.pem, &below.pem()]);
    refused(
        &Gate::start(),
        &call,
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
}

//= CRT-2 refused
#[test]
fn a_leaf_with_an_unknown_critical_extension() {
    let gate = Gate::start();
    let extension = |critical| Extension {
        oid: vec![1, 2, 3, 4, 5],
        critical,
        content: vec![0x05, 0x00],
    };
    accepted(
        &gate,
        &leaf(|spec| spec.extra_extensions = vec![extension(false)]),
    );
    refused(
        &gate,
        &leaf(|spec| spec.extra_extensions = vec![extension(true)]),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
    // The poison of a pre-certificate (RFC 6962, section 3.1).
    let poison = Extension {
        oid: vec![1, 3, 6, 1, 4, 1, 11129, 2, 4, 3],
        critical: true,
        content: vec![0x05, 0x00],
    };
    refused(
        &gate,
        &leaf(|spec| spec.extra_extensions = vec![poison]),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
}

/// Another certificate of a CA, signed with its own key.
fn renewed(ca: &Ca, key: &str, validity: (&'static str, &'static str)) -> String {
    let forged = Forged {
        validity,
        ..Forged::default()
    };
    forged.twin_of(ca, ca, key)
}

const PAST: (&str, &str) = ("20150101000000Z", "20200101000000Z");
const FUTURE: (&str, &str) = ("20440101000000Z", "20450101000000Z");

//= CRT-2 accepted
#[test]
fn an_anchor_of_several_of_one_name_that_is_valid() {
    let (root, key) = (&world().root, &world().root_key);
    let [past, future] = [PAST, FUTURE].map(|validity| renewed(root, key, validity));
    for anchors in [
        [&past, &future, &root.pem()].map(String::as_str).concat(),
        [&future, &root.pem(), &past].map(String::as_str).concat(),
    ] {
        let gate = Gate::builder().file("anchors/root.pem", anchors).start();
        accepted(&gate, &Call::accounts());
    }
    // The issuing CA was an anchor that has expired; its other certificate leads to the root.
    let ended = Forged {
        validity: PAST,
        ..Forged::default()
    };
    let ended = ended.twin_of(&world().issuing, root, key);
    let gate = Gate::builder()
        .file("anchors/root.pem", [ended, root.pem()].concat())
        .start();
    accepted(&gate, &Call::accounts());
}

//= CRT-2 refused
#[test]
fn anchors_of_one_name_of_which_none_is_valid() {
    let (root, key) = (&world().root, &world().root_key);
    let [past, future] = [PAST, FUTURE].map(|validity| renewed(root, key, validity));
    for (anchors, reason) in [
        ([&*past, &*past].concat(), "certificate-expired"),
        (future, "certificate-not-yet-valid"),
    ] {
        let gate = Gate::builder().file("anchors/root.pem", anchors).start();
        refused(&gate, &Call::accounts(), 403, "FORBIDDEN", reason);
    }
}

/// A cached chain is replaced by a valid one in the second in which its anchor expires.
//= CRT-2 accepted
//= CRT-2 refused
//= CRT-12 accepted
#[test]
fn an_anchor_ends_beside_the_one_that_follows() {
    let (root, key) = (&world().root, &world().root_key);
    let at = |time: time::OffsetDateTime| {
        Timestamp::from_unix(u64::try_from(time.unix_timestamp()).unwrap())
    };
    let old = renewed(root, key, ("20150101000000Z", "20260601120000Z"));
    let new = renewed(root, key, ("20260601110000Z", "20260901120000Z"));
    let clock = Clock::standing(at(datetime!(2026-06-01 10:59 UTC)));
    let gate = Gate::builder()
        .clock(&clock)
        .file("anchors/root.pem", [old, new].concat())
        .start();
    let mut connection = Connection::open(&gate);
    for (moment, status) in [
        (datetime!(2026-06-01 10:59 UTC), 200),
        (datetime!(2026-06-01 11:30 UTC), 200),
        (datetime!(2026-06-01 12:00 UTC), 200),
        (datetime!(2026-06-01 12:00:01 UTC), 200),
        (datetime!(2026-06-01 12:00:01 UTC), 200),
        (datetime!(2026-09-01 12:00 UTC), 200),
        (datetime!(2026-09-01 12:00:01 UTC), 403),
        (datetime!(2026-09-01 12:00 UTC), 200),
    ] {
        clock.set(at(moment));
        let answer = connection.exchange(&gate.seal(&Call::accounts())).unwrap();
        assert_eq!(answer.status, status, "{moment}");
    }
}

//= CRT-2 accepted
//= CRT-2 refused
#[test]
fn cas_of_one_name_that_come_with_the_request() {
    let gate = Gate::start();
    let tpp = Tpp::of(BETWEEN.issue(&world().leaf()).unwrap());
    let foreign = Ca::root(&CaSpec {
        common_name: "Between".into(),
        ..CaSpec::default()
    })
    .unwrap();
    let (root, key) = (&world().root, &world().root_key);
    let twin = |ca: &Ca, validity| {
        let forged = Forged {
            validity,
            ..Forged::default()
        };
        forged.twin_of(ca, root, key)
    };
    let lasting = Forged::default().validity;
    let past = twin(&BETWEEN, PAST);
    let [other, good] = [&foreign, &*BETWEEN].map(|ca| twin(ca, lasting));
    // The certificate has the name and the key of the CA, but leads to no anchor.
    let nobodys = Ca::root(&CaSpec {
        common_name: "Nobody".into(),
        key: shared_key(),
        ..CaSpec::development_root()
    })
    .unwrap();
    let nobodys = Forged::default().twin_of(&BETWEEN, &nobodys, key);
    let own = &*tpp.issued.pem;
    let show = |pool: &[&str]| chain(Call::accounts().by(&tpp), &[&[own], pool].concat());
    refused(
        &gate,
        &show(&[&past, &other, &nobodys]),
        403,
        "FORBIDDEN",
        "certificate-expired",
    );
    refused(
        &gate,
        &show(&[&other, &nobodys]),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
    accepted(&Gate::start(), &show(&[&past, &other, &good]));
    accepted(&Gate::start(), &show(&[&nobodys, &other, &good]));
    accepted(&Gate::start(), &show(&[&good, &other]));
}
