//! TLS to the core: files that change under load (FWD-3).

use super::until;
use crate::harness::{Call, Connection, Gate, Upstream, check_error, pki, write_private};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};
use time::macros::datetime;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::TlsAcceptor;

/// A server with TLS in front of a recording upstream. It requires a client certificate.
struct Front {
    address: SocketAddr,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

struct Shared {
    config: Mutex<Arc<ServerConfig>>,
    /// The client certificate of the last connection.
    last: Mutex<Vec<u8>>,
}

impl Front {
    fn start(config: Arc<ServerConfig>, core: SocketAddr) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            config: Mutex::new(config),
            last: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(Arc::clone(&serving).serve(stream, core));
            }
        });
        Self {
            address,
            shared,
            _runtime: runtime,
        }
    }

    fn serve_with(&self, config: Arc<ServerConfig>) {
        *self.shared.config.lock().unwrap() = config;
    }

    fn last(&self) -> Vec<u8> {
        self.shared.last.lock().unwrap().clone()
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, stream: TcpStream, core: SocketAddr) {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.config.lock().unwrap()));
        let Ok(mut stream) = acceptor.accept(stream).await else {
            return;
        };
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        *self.last.lock().unwrap() = shown;
        let mut core = TcpStream::connect(core).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut core).await;
    }
}

fn ca(name: &str) -> pki::Ca {
    let spec = pki::CaSpec {
        common_name: name.into(),
        key: pki::Key::EcP256,
        ..pki::CaSpec::development_root()
    };
    pki::Ca::root(&spec).unwrap()
}

/// A server whose certificate is of `own`, for clients of `clients`.
fn server(own: &pki::Ca, clients: &pki::Ca) -> Arc<ServerConfig> {
    let (from, until) = (
        datetime!(2020-01-01 0:00 UTC),
        datetime!(2040-01-01 0:00 UTC),
    );
    let issued = own.issue_server(&pki::Key::EcP256, from, until).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(der(&clients.pem()).remove(0)).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_client_cert_verifier(verifier.build().unwrap());
    let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
    Arc::new(builder.with_single_cert(der(&issued.pem), key).unwrap())
}

fn der(pem: &str) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes());
    all.map(Result::unwrap).collect()
}

fn client(ca: &pki::Ca) -> pki::Issued {
    let spec = pki::LeafSpec {
        key: pki::Key::EcP256,
        not_before: datetime!(2020-01-01 0:00 UTC),
        not_after: datetime!(2040-01-01 0:00 UTC),
        extended_key_usages: vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth],
        ..pki::LeafSpec::default()
    };
    ca.issue(&spec).unwrap()
}

/// The faults of a reload; none if it succeeded.
fn reload(gate: &Gate) -> Value {
    let answer = gate.tell("/reload", &json!({}));
    match answer.status {
        200 => Value::Null,
        _ => answer.json(),
    }
}

/// Every file of TLS to the core is replaced, each by one reload, while requests run: the CA of the core, the client certificate with its
/// key, and the key alone, which is refused and noticed.
//= FWD-3 accepted
//= FWD-3 refused
#[test]
fn files_of_tls_to_the_core_are_reloaded_under_load() {
    let core = Upstream::start();
    let [old, new, clients] = ["The old CA", "The new CA", "Clients"].map(ca);
    let front = Front::start(server(&old, &clients), core.address());
    let first = client(&clients);
    let gate = Gate::builder()
        .groups(&format!(
            "{{core: {{endpoints: [{{address: '{}'}}], tls: {{ca: core.pem, name: localhost, certificate: client.pem, key: client.key}}}}}}",
            front.address
        ))
        .file("core.pem", old.pem())
        .file("client.pem", first.pem.clone())
        .private_file("client.key", first.key_pem.clone())
        .with_a_file()
        .start();
    let write = |name: &str, text: &str| write_private(&gate.folder().join(name), text);
    let (over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let more = |count: usize| {
        let goal = sent.load(Ordering::Relaxed) + count;
        until("requests go on", || sent.load(Ordering::Relaxed) >= goal);
    };
    thread::scope(|scope| {
        for call in [Call::accounts(), Call::payment()] {
            let (gate, over, sent) = (&gate, &over, &sent);
            scope.spawn(move || {
                let mut connection = Connection::open(gate);
                while !over.load(Ordering::Relaxed) {
                    let answer = connection.exchange(&gate.seal(&call)).unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.reason());
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        more(10);
        assert_eq!(front.last(), first.der);
        let mut shown = first;
        for round in 0..10 {
            // The key alone: the reload names it, and the old pair stays in use.
            let next = client(&clients);
            write("client.key", &next.key_pem);
            let faults = reload(&gate).to_string();
            assert!(
                faults.contains("tls.key") && faults.contains("not that of the certificate"),
                "{faults}"
            );
            more(4);
            assert_eq!(front.last(), shown.der, "{round}");
            write("client.pem", &next.pem);
            assert_eq!(reload(&gate), Value::Null);
            until("the new certificate is shown", || front.last() == next.der);
            more(4);
            shown = next;
            // Both CAs, then the core's new certificate, then the new CA alone; and back.
            let [from, to] = if round % 2 == 0 {
                [&old, &new]
            } else {
                [&new, &old]
            };
            write("core.pem", &(from.pem() + &to.pem()));
            assert_eq!(reload(&gate), Value::Null);
            more(4);
            front.serve_with(server(to, &clients));
            write("core.pem", &to.pem());
            assert_eq!(reload(&gate), Value::Null);
            more(4);
        }
        over.store(true, Ordering::Relaxed);
    });
    // A CA that did not issue the core's certificate: nothing is sent.
    core.take();
    write("core.pem", &clients.pem());
    assert_eq!(reload(&gate), Value::Null);
    let answer = super::get(&gate);
    crate::harness::check_error(
        "another CA",
        &answer,
        502,
        "SYSTEM_ERROR",
        "upstream-unreachable",
    );
    assert!(core.take().is_empty());
}

/// With TLS 1.3 the core's refusal comes after the gateway's part of the handshake, when the request may already be on its way.
//= FWD-3 accepted
//= FWD-3 refused
//= ERR-4 refused
#[test]
fn a_core_that_refuses_the_client_certificate_has_taken_no_request() {
    let core = Upstream::start();
    let [own, clients, others] = ["The CA", "Clients", "Others"].map(ca);
    let front = Front::start(server(&own, &clients), core.address());
    let good = Front::start(server(&own, &others), core.address());
    let [wrong, shown] = [", certificate: client.pem, key: client.key", ""].map(|keys| {
        let shown = client(&others);
        let gate = |endpoints: &str| {
            Gate::builder()
                .groups(&format!(
                    "{{core: {{endpoints: [{endpoints}], ejection: off, retry_percent: 100, \
                     tls: {{ca: core.pem, name: localhost{keys}}}}}}}"
                ))
                .file("core.pem", own.pem())
                .file("client.pem", shown.pem.clone())
                .private_file("client.key", shown.key_pem.clone())
                .start()
        };
        let bad = format!("{{address: '{}'}}", front.address);
        let both = format!("{bad}, {{address: '{}'}}", good.address);
        [gate(&bad), gate(&both)]
    });
    for gate in [&wrong[0], &shown[0]] {
        for _ in 0..8 {
            let answers = [super::get(gate), super::pay(gate)];
            for answer in answers {
                check_error(
                    "refused",
                    &answer,
                    502,
                    "SYSTEM_ERROR",
                    "upstream-unreachable",
                );
            }
        }
        let failures = gate.metric("portvakt_upstream_failures_total", &["kind=\"tls\""]);
        assert!(failures > 15.9, "{failures}");
    }
    assert!(core.take().is_empty());
    // The other endpoint takes the certificate: no request was made at the first one, so a payment goes there.
    for _ in 0..8 {
        assert_eq!(super::pay(&wrong[1]).status, 200);
        assert_eq!(super::get(&wrong[1]).status, 200);
    }
    assert_eq!(core.take().len(), 16);
}
