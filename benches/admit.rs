//! What `admit` costs for a warm request: the whole, and the RSA verification alone beside it in the same run.
//!
//! `make bench` runs it. Before the figures it prints the heap allocations of one warm request. The GET is judged with the
//! PSU present, a session and a store, and gives its request id back each time, since one is used once. The POST is judged
//! without a store: its request id would cost a write, which `state` measures.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "a benchmark fails by panicking, and prints what it found"
)]

#[path = "../src/sandbox/pki.rs"]
mod pki;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use openssl::x509::X509;
use portvakt::{
    admission::{self, Admission, Framing, Head, Policy, Record, Snapshot},
    clock::{Clock, Timestamp},
    interface::operations::{Catalogue, Environment, builtin},
    sca::{Links, TokenKeys},
    signing::{Asserter, AssertionKey},
    state::{Completion, Finish, Hash, Kept, PsuRef, StateSettings, Store},
    tools::tpp::{SignOptions, SignedRequest, TppIdentity, Unsigned, sign},
    trust::{Anchors, Slot, Trust},
};
use serde_json::{Map, Value, json};
use std::{hint::black_box, sync::Arc, time::Duration};
use tempfile::TempDir;

/// Every request is judged as of this second: 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

const PSU: &str = "7a3d5112-3e37-4b8f-8b8b-601a8122ea32";
const SESSION: &str = "5f0c3f8e-session";

/// A request as `admit` sees it, with everything that it is judged by.
struct Warm {
    world: Snapshot,
    store: Store,
    slot: Slot,
    clock: Clock,
    method: Method,
    target: String,
    headers: HeaderMap,
    raw: Vec<u8>,
    body: Bytes,
    runtime: tokio::runtime::Runtime,
}

impl Warm {
    fn new(identity: &TppIdentity, issuing: &pki::Ca, request: Unsigned, store: Store) -> Self {
        let signed = sign(identity, request, &SignOptions::at(NOW.system_time())).unwrap();
        let anchors =
            Anchors::new(vec![X509::from_der(issuing.der()).unwrap()], Vec::new()).unwrap();
        let keys = TempDir::new().unwrap();
        let keys = TokenKeys::read_or_make(&keys.path().join("keys"), NOW).unwrap();
        let page = "https://bank.example/sca";
        let lifetime = Duration::from_secs(900);
        let links = Links::new(page, lifetime, Environment::Sandbox, keys);
        let world = Snapshot::new(
            Policy::new(Environment::Sandbox),
            Catalogue::new(Environment::Sandbox, builtin()).unwrap(),
            Trust::new(anchors),
        );
        let warm = Self {
            world: Snapshot {
                links: Some(Arc::new(links)),
                ..world
            },
            store,
            slot: Slot::default(),
            clock: Clock::standing(NOW),
            method: signed.method.parse().unwrap(),
            headers: headers(&signed),
            raw: raw(&signed),
            body: signed.body.clone().unwrap_or_default().into(),
            target: signed.target,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap(),
        };
        warm.admit();
        warm
    }

    fn admit(&self) {
        let head = Head {
            method: &self.method,
            target: self.target.as_bytes(),
            headers: &self.headers,
            authority: None,
            framing: Framing::Lines {
                raw: &self.raw,
                target_rewritten: false,
            },
            peer: None,
            slot: Some(&self.slot),
            client: None,
        };
        let mut record = Record::open(&self.clock);
        let mut body = self.body.clone();
        self.runtime.block_on(async {
            let admission =
                admission::admit(&head, &mut body, &self.world, &self.store, &mut record).await;
            let Ok(Admission::Forward(admitted)) = black_box(admission) else {
                panic!("a good request");
            };
            if let (Store::Kept(kept), Some(claim)) = (&self.store, admitted.claim()) {
                kept.give_back(claim.taken(), false).await.unwrap();
            }
        });
    }
}

/// A store that knows the PSU of [`request`], with a session.
fn store(folder: &TempDir) -> Store {
    let file = folder.path().join("state.db");
    let kept = Kept::open(&StateSettings::new(file, folder.path().join("hash.key"))).unwrap();
    let finish = Finish {
        token: Hash::from_bytes([1; 16]),
        expires: NOW,
        said: Hash::from_bytes([2; 16]),
        completion: Some(Completion {
            who: PsuRef {
                tpp: "PSDNO-FSA-123456",
                psu: uuid::Uuid::parse_str(PSU).unwrap().as_u128(),
            },
            corporate: None,
            session: SESSION.as_bytes(),
            consent: Some(None),
        }),
        now: NOW,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(kept.finish(finish)).unwrap();
    Store::Kept(Arc::new(kept))
}

fn headers(signed: &SignedRequest) -> HeaderMap {
    let pairs = signed.headers.iter();
    pairs
        .map(|(name, value)| {
            (
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect()
}

fn raw(signed: &SignedRequest) -> Vec<u8> {
    let lines: String = signed
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "{} {} HTTP/1.1\r\n{lines}\r\n",
        signed.method, signed.target
    )
    .into_bytes()
}

fn request(method: &str, target: &str, extra: &[(&str, &str)], body: Option<Vec<u8>>) -> Unsigned {
    let common = [
        ("Host", "bank.example"),
        ("Accept", "application/json"),
        ("TPP-Redirect-URI", "https://tpp.example/callback"),
        ("TPP-Session-ID", SESSION),
        ("PSU-ID", PSU),
        ("PSU-IP-Address", "192.0.2.10"),
    ];
    let headers = common
        .iter()
        .chain(extra)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Unsigned {
        method: method.into(),
        target: target.into(),
        headers,
        body,
    }
}

fn bench(criterion: &mut Criterion) {
    let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let issuing = root.issue_ca(&pki::CaSpec::default()).unwrap();
    let tpp = issuing.issue(&pki::LeafSpec::default()).unwrap();
    let identity = TppIdentity::from_pem(&tpp.pem, &tpp.key_pem).unwrap();
    let folder = TempDir::new().unwrap();
    let get = Warm::new(
        &identity,
        &issuing,
        request(
            "GET",
            "/v1/accounts/4711/transactions?bookingStatus=both",
            &[],
            None,
        ),
        store(&folder),
    );
    let json = [
        ("Content-Type", "application/json"),
        ("x-accept-fix", "amount-as-string"),
    ];
    let payment = format!(
        concat!(
            r#"{{"instructedAmount":{{"amount":"1.00","currency":"EUR"}},"creditorName":"Muster GmbH","#,
            r#""creditorAccount":{{"iban":"DE89370400440532013000","currency":"EUR"}},"#,
            r#""debtorAccount":{{"iban":"NO9386011117947","currency":"NOK"}},"note":"{}"}}"#,
        ),
        "x".repeat(780)
    )
    .into_bytes();
    let post = Warm::new(
        &identity,
        &issuing,
        request(
            "POST",
            "/v1/payments/norwegian-cross-border-credit-transfers",
            &json,
            Some(payment),
        ),
        Store::Stateless,
    );

    for (name, warm) in [("signed GET", &get), ("POST of 1 KB", &post)] {
        let counted = allocation_counter::measure(|| warm.admit());
        println!(
            "{name}: {} allocations, {} bytes",
            counted.count_total, counted.bytes_total
        );
    }
    let mut group = criterion.benchmark_group("admit");
    group.bench_function("signed GET, warm", |bencher| bencher.iter(|| get.admit()));
    group.bench_function("POST of 1 KB, warm", |bencher| {
        bencher.iter(|| post.admit())
    });
    group.bench_function("RSA-2048 verification alone", |bencher| {
        let certificate = get
            .world
            .trust
            .identify(tpp_header(&get), None, NOW)
            .unwrap();
        let message = vec![b'x'; 300];
        let signature = signature_over(&tpp.key_pem, &message);
        bencher.iter(|| {
            certificate
                .key()
                .verify_sig(black_box(&message), black_box(&signature))
                .unwrap()
        });
    });
    group.finish();
    assertion(criterion);
}

/// FWD-1: one assertion, with as many claims as a request without the PSU has.
fn assertion(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let key = AssertionKey::read_or_make(&folder.path().join("key")).unwrap();
    let asserter = Asserter::new(key, None, "portvakt", "core");
    let facts: Map<String, Value> = (0..14)
        .map(|number| (format!("gateway-claim-{number}"), json!("x".repeat(20))))
        .collect();
    criterion.bench_function("assertion", |bencher| {
        bencher.iter(|| asserter.assert("id", black_box(facts.clone()), NOW));
    });
}

fn tpp_header(warm: &Warm) -> &[u8] {
    warm.headers
        .get("tpp-signature-certificate")
        .unwrap()
        .as_bytes()
}

fn signature_over(key_pem: &str, message: &[u8]) -> Vec<u8> {
    let key = openssl::pkey::PKey::private_key_from_pem(key_pem.as_bytes()).unwrap();
    let mut signer =
        openssl::sign::Signer::new(openssl::hash::MessageDigest::sha256(), &key).unwrap();
    signer.sign_oneshot_to_vec(message).unwrap()
}

criterion_group!(benches, bench);
criterion_main!(benches);
