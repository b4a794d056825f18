//! Keys in an HSM: SoftHSM behind p11-kit's server, in processes of their own that are killed, stopped and started again.

/// What `check` finds.
mod check;
/// A module that misbehaves.
mod faulty;
/// The PIN: attempts are counted.
mod pin;
/// Tokens and servers.
mod token;

/// Upper bounds on times.
mod bounds;

use crate::harness::{
    Answer, Call, Connection, Connector, Gate, Over, Program, Protocol, Tls, TlsFront, Upstream,
    ca, client_certificate, eventually,
    pki::{Issued, Key, LeafSpec},
    rsa_key, tls_server, world,
};
use openssl::{
    hash::MessageDigest,
    pkey::{PKey, Public},
    sign::Verifier,
    ssl::SslVersion,
    x509::X509,
};
use portvakt::clock::Stopwatch;
use serde_json::json;
use std::{
    fs,
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};
use time::macros::datetime;
use token::{Hsm, key, set_certificate, set_listener_key};

/// Load is no flood here.
const RATES: &str = "rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}";

/// A certificate of the listener.
fn server(key: &Key) -> Issued {
    let (from, until) = (
        datetime!(2020-01-01 0:00 UTC),
        datetime!(2040-01-01 0:00 UTC),
    );
    world().tls_ca.issue_server(key, from, until).unwrap()
}

/// The public key of a certificate.
fn public(issued: &Issued) -> PKey<Public> {
    X509::from_der(&issued.der).unwrap().public_key().unwrap()
}

/// The certificate that the listener shows to a client with these versions and algorithms.
fn shown(address: SocketAddr, version: SslVersion, algorithms: &str) -> Result<Vec<u8>, String> {
    let connector = Connector::trusting(|set| {
        set.set_min_proto_version(Some(version)).unwrap();
        set.set_max_proto_version(Some(version)).unwrap();
        set.set_sigalgs_list(algorithms).unwrap();
    });
    let stream = TcpStream::connect(address).map_err(|fault| fault.to_string())?;
    let stream = connector.connect("localhost", stream);
    let stream = stream.map_err(|fault| fault.to_string())?;
    let leaf = stream.ssl().peer_certificate().unwrap();
    Ok(leaf.to_der().unwrap())
}

/// Whether an answer has a signature by this key, over the signing string of the specification (SIG-12).
fn is_signed(answer: &Answer, key: &PKey<Public>) -> bool {
    let Some(header) = answer.header("signature") else {
        return false;
    };
    let (_, signature) = header.split_once("signature=\"").unwrap();
    let signature = openssl::base64::decode_block(signature.trim_end_matches('"')).unwrap();
    let (_, names) = header.split_once("headers=\"").unwrap();
    let (names, _) = names.split_once('"').unwrap();
    let lines = names.split(' ').map(|name| {
        let value = answer.header(name).unwrap().trim();
        format!("{name}: {value}")
    });
    let signed = lines.collect::<Vec<_>>().join("\n");
    let mut verifier = Verifier::new(MessageDigest::sha256(), key).unwrap();
    verifier
        .verify_oneshot(&signature, signed.as_bytes())
        .unwrap()
}

/// Each kind of key, in each version of TLS, with each algorithm that a client may ask for.
//= TLS-1 accepted
#[test]
#[ignore = "make test-systems"]
fn handshakes_with_each_kind_of_key() {
    const RSA: [(SslVersion, &str); 4] = [
        (SslVersion::TLS1_2, "RSA+SHA256"),
        (SslVersion::TLS1_2, "RSA-PSS+SHA512"),
        (SslVersion::TLS1_3, "RSA-PSS+SHA256"),
        (SslVersion::TLS1_3, "RSA-PSS+SHA384"),
    ];
    const EC: [(SslVersion, &str); 2] = [
        (SslVersion::TLS1_2, "ECDSA+SHA256"),
        (SslVersion::TLS1_3, "ECDSA+SHA256"),
    ];
    let hsm = Hsm::start();
    for (id, (kind, clients)) in [
        (Key::Rsa2048, &RSA[..]),
        (Key::Rsa3072, &RSA[..]),
        (Key::EcP256, &EC[..]),
    ]
    .into_iter()
    .enumerate()
    {
        let (issued, label) = (server(&kind), format!("server-{id}"));
        hsm.import(&label, &issued.key_pem, u8::try_from(id).unwrap());
        let gate = Gate::builder().for_program();
        set_certificate(&gate, &issued);
        set_listener_key(&gate, &key(&label, ""));
        let _program = hsm.run(&gate);
        for (version, algorithms) in clients {
            let leaf = shown(gate.address(), *version, algorithms);
            assert_eq!(leaf.as_ref(), Ok(&issued.der), "{label} {algorithms}");
        }
        for only in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
            let tls = Tls {
                only: Some(only),
                ..Tls::default()
            };
            let mut connection = Connection::shake(gate.address(), gate.world(), tls).unwrap();
            let answer = connection.exchange(&gate.seal(&Call::accounts())).unwrap();
            assert_eq!(answer.status, 200, "{label}: {}", answer.reason());
        }
        let signed = gate.metric_now("portvakt_hsm_sign_seconds_count", &["purpose=\"listener\""]);
        assert!(signed > 0.0, "{label}");
    }
}

/// Answers by the QSealC, and the client's key in TLS to the core.
//= SIG-12 accepted
//= FWD-3 accepted
#[test]
#[ignore = "make test-systems"]
fn answers_are_signed_and_the_core_gets_the_clients_certificate() {
    let hsm = Hsm::start();
    let core = Upstream::start();
    let [own, clients] = ["The core's CA", "Clients"].map(ca);
    let front = TlsFront::start(tls_server(&own, &clients), core.address());
    let client = client_certificate(&clients);
    hsm.import("client", &client.key_pem, 1);
    for (id, bits) in [(2, 2048), (3, 3072)] {
        let label = format!("seal-{bits}");
        let bank = world().issue(&LeafSpec {
            key: Key::RsaPem(rsa_key(bits)),
            ..world().leaf()
        });
        hsm.import(&label, &bank.issued.key_pem, id);
        let tls = format!(
            "{{ca: core.pem, name: localhost, certificate: client.pem, key: {}}}",
            key("client", "")
        );
        let gate = Gate::builder()
            .groups(&format!(
                "{{core: {{endpoints: [{{address: '{}'}}], tls: {tls}}}}}",
                front.address()
            ))
            .line(&format!(
                "response_signing: {{certificate: bank.pem, key: {}}}",
                key(&label, "")
            ))
            .file("core.pem", own.pem())
            .file("client.pem", client.pem.clone())
            .file("bank.pem", bank.issued.pem.clone())
            .for_program();
        let _program = hsm.run(&gate);
        for call in [Call::accounts(), Call::payment().json("{")] {
            let answer = gate.send(&call, Protocol::Http1);
            assert!(answer.status < 500, "{} {}", answer.status, answer.reason());
            assert!(is_signed(&answer, &public(&bank.issued)), "{label}");
        }
        assert_eq!(front.last(), client.der);
        assert_eq!(core.take().len(), 1, "only the account list");
    }
}

/// A gate with the listener's key and that of answers in one token, and its program.
struct Stage {
    hsm: Hsm,
    gate: Gate,
    seal: PKey<Public>,
    _program: Program,
}

impl Stage {
    fn start() -> Self {
        let hsm = Hsm::start();
        let (issued, bank) = (server(&Key::EcP256), &world().both.issued);
        hsm.import("server", &issued.key_pem, 1);
        hsm.import("seal", &bank.key_pem, 2);
        let signing = key("seal", ", timeout: 1s");
        let gate = Gate::builder()
            .threads(2)
            .line(RATES)
            .line(&format!(
                "response_signing: {{certificate: bank.pem, key: {signing}}}"
            ))
            .file("bank.pem", bank.pem.clone())
            .for_program();
        set_certificate(&gate, &issued);
        set_listener_key(&gate, &key("server", ", timeout: 1s"));
        let program = hsm.run(&gate);
        Self {
            seal: public(bank),
            hsm,
            gate,
            _program: program,
        }
    }

    /// Whether a call on a new connection gets a signed answer.
    fn serves(&self, connector: &Connector) -> bool {
        let Ok(mut connection) = Connection::over(self.gate.address(), connector) else {
            return false;
        };
        let answer = connection.exchange(&self.gate.seal(&Call::plain()));
        answer.is_ok_and(|answer| answer.status == 200 && is_signed(&answer, &self.seal))
    }

    /// The conditions that are not met, as /readyz shows them.
    fn not_well(&self) -> String {
        self.gate.control("/readyz").json()["notWell"].to_string()
    }

    /// The time from the return of the server until a call on a new connection gets a signed answer.
    fn back(&self) -> Duration {
        let connector = Tls::default().connector(self.gate.world());
        let since = Stopwatch::start();
        eventually("the service is back", || self.serves(&connector));
        let took = since.elapsed();
        eventually("it is ready", || {
            (self.gate.control("/readyz").status == 200)
                .then_some(())
                .ok_or_else(|| self.not_well())
        });
        took
    }
}

/// Calls until it is over, on one connection or on new ones. An answer is signed, or a fault of the gateway: never a refusal.
fn call(gate: &Gate, seal: &PKey<Public>, keep: bool, over: &AtomicBool, served: &AtomicUsize) {
    let connector = Tls::default().connector(gate.world());
    let mut kept = None;
    while !over.load(Ordering::Relaxed) {
        let connection = match kept.take() {
            Some(connection) => Ok(connection),
            None => Connection::over(gate.address(), &connector),
        };
        // No handshake without the key, and no answer that cannot be signed.
        let Ok(mut connection) = connection else {
            continue;
        };
        let Ok(answer) = connection.exchange(&gate.seal(&Call::plain())) else {
            continue;
        };
        if answer.status == 200 {
            assert!(is_signed(&answer, seal), "an answer without a signature");
            served.fetch_add(1, Ordering::Relaxed);
            kept = keep.then_some(connection);
        } else {
            let reason = answer.reason();
            assert!(answer.status >= 500, "{} {reason}", answer.status);
        }
    }
}

/// A way to lose the server, and the way back.
struct Fault {
    name: &'static str,
    begin: fn(&mut Hsm),
    end: fn(&mut Hsm),
}

const FAULTS: [Fault; 2] = [
    Fault {
        name: "killed",
        begin: Hsm::kill,
        end: Hsm::serve,
    },
    Fault {
        name: "stopped",
        begin: |hsm| hsm.signal("-STOP"),
        end: |hsm| hsm.signal("-CONT"),
    },
];

/// The server is killed and stopped, and started again at once, under load: handshakes and answers fail closed, and the service returns
/// without a restart.
//= SIG-12 accepted
//= SIG-12 refused
#[test]
#[ignore = "make test-systems"]
fn the_hsm_is_lost_under_load() {
    let mut stage = Stage::start();
    let connector = Tls::default().connector(stage.gate.world());
    eventually("the service", || stage.serves(&connector));
    let Stage {
        hsm, gate, seal, ..
    } = &mut stage;
    let (gate, seal) = (&*gate, &*seal);
    let (over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    let not_well = || gate.control("/readyz").json()["notWell"].to_string();
    thread::scope(|scope| {
        let ends = Over(&over);
        for keep in [false, false, true, true] {
            let (over, served) = (&over, &served);
            scope.spawn(move || call(gate, seal, keep, over, served));
        }
        let more = |what: &str| {
            let goal = served.load(Ordering::Relaxed) + 20;
            eventually(what, || served.load(Ordering::Relaxed) >= goal);
        };
        for fault in &FAULTS {
            more("calls before the fault");
            (fault.begin)(hsm);
            eventually(fault.name, || {
                let causes = not_well();
                let is_named = causes.contains("the HSM is unavailable: ");
                is_named.then_some(()).ok_or(causes)
            });
            assert_eq!(gate.control("/readyz?local=1").status, 503);
            let shaken = shown(gate.address(), SslVersion::TLS1_3, "ECDSA+SHA256");
            assert!(shaken.is_err(), "{}: no handshake", fault.name);
            let since = Stopwatch::start();
            (fault.end)(hsm);
            more("calls after the fault");
            eventually("it is ready", || gate.control("/readyz").status == 200);
            println!("{}: ready after {:?}", fault.name, since.elapsed());
        }
        // Several times: what a call does whose connection ends depends on what others do then.
        for restart in 1..=10 {
            hsm.kill();
            hsm.serve();
            more(&format!("calls after restart {restart} of the server"));
            eventually("it is ready", || gate.control("/readyz").status == 200);
        }
        drop(ends);
    });
    let failed = gate.metric_now("portvakt_hsm_errors_total", &["purpose=\"listener\""]);
    assert!(failed > 0.0, "handshakes failed");
    let answered = served.load(Ordering::Relaxed);
    println!("{answered} answers, each with its signature; {failed} handshakes without one");
}

/// The listener's key is a file, so that only answers need the HSM: over both protocols one that cannot be signed is 503, and never unsigned.
//= SIG-12 accepted
//= SIG-12 refused
#[test]
#[ignore = "make test-systems"]
fn an_answer_that_cannot_be_signed_is_a_503() {
    let mut hsm = Hsm::start();
    let bank = &world().both.issued;
    hsm.import("seal", &bank.key_pem, 1);
    let gate = Gate::builder()
        .line(&format!(
            "response_signing: {{certificate: bank.pem, key: {}}}",
            key("seal", ", timeout: 1s")
        ))
        .file("bank.pem", bank.pem.clone())
        .for_program();
    let _program = hsm.run(&gate);
    let protocols = [Protocol::Http1, Protocol::Http2];
    let all_signed = || {
        protocols.iter().all(|protocol| {
            let answer = gate.send_sealed(&gate.seal(&Call::plain()), *protocol);
            answer.is_ok_and(|answer| answer.status == 200 && is_signed(&answer, &public(bank)))
        })
    };
    eventually("signed answers", all_signed);
    hsm.kill();
    eventually("the HSM is away", || {
        gate.control("/readyz?local=1").status == 503
    });
    for protocol in protocols {
        for call in [Call::plain(), Call::payment().json("{")] {
            let answer = gate.send(&call, protocol);
            assert_eq!(answer.status, 503, "{protocol:?}");
            assert_eq!(answer.header("signature"), None, "{protocol:?}");
        }
    }
    hsm.serve();
    eventually("signed answers again", all_signed);
}

/// A new key and its certificate take effect by a reload; one that the token lacks is refused, and the keys in use stay.
//= CRT-8 accepted
//= CRT-8 refused
#[test]
#[ignore = "make test-systems"]
fn keys_are_rotated_by_a_reload() {
    let stage = Stage::start();
    let Stage { hsm, gate, .. } = &stage;
    let leaf = || shown(gate.address(), SslVersion::TLS1_3, "ECDSA+SHA256");
    let (before, renewed) = (leaf().unwrap(), server(&Key::EcP256));
    let mut kept = Connection::open(gate);
    let path = gate.folder().join("gateway.yaml");
    let yaml = fs::read_to_string(&path).unwrap();
    fs::write(&path, yaml.replace("label: server,", "label: nobody,")).unwrap();
    assert_ne!(gate.tell("/reload", &json!({})).status, 200);
    assert_eq!(leaf(), Ok(before));
    let bank = world().issue(&LeafSpec {
        key: Key::RsaPem(rsa_key(2048)),
        ..world().leaf()
    });
    hsm.import("server-2", &renewed.key_pem, 3);
    hsm.import("seal-2", &bank.issued.key_pem, 4);
    set_certificate(gate, &renewed);
    fs::write(gate.folder().join("bank.pem"), &bank.issued.pem).unwrap();
    let yaml = yaml.replace("label: server,", "label: server-2,");
    fs::write(&path, yaml.replace("label: seal,", "label: seal-2,")).unwrap();
    let reloaded = gate.tell("/reload", &json!({}));
    assert_eq!(reloaded.status, 200, "{:?}", reloaded.json());
    assert_eq!(leaf(), Ok(renewed.der));
    let answer = kept.exchange(&gate.seal(&Call::plain())).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.reason());
    assert!(is_signed(&answer, &public(&bank.issued)));
}
