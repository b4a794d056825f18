//! The doors to the upstream, with a proxy whose filter forgets to judge: even so nothing gets through (SIG-11).

use crate::harness::{Upstream, world};
use async_trait::async_trait;
use bytes::Bytes;
use openssl::x509::X509;
use pingora::{
    Result,
    http::RequestHeader,
    proxy::{FailToProxy, ProxyHttp, Session, http_proxy_service},
    server::{
        RunArgs, Server, ShutdownSignal, ShutdownSignalWatch,
        configuration::{Opt, ServerConf},
    },
    upstreams::peer::HttpPeer,
};
use portvakt::{
    admission::{Policy, Snapshot},
    clock::Clock,
    config,
    gateway::{Exchange, Gate, GateSettings, World},
    interface::operations::{Catalogue, Environment, builtin},
    signing::{AnswerSigner, AnswerSigning},
    state::{Kept, StateSettings},
    telemetry::Telemetry,
    trust::{Anchors, Trust},
};
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;

/// A proxy that lets every request go on, admitted or not.
struct Careless {
    gate: Gate,
    /// Where it sends requests without asking the gate, if it goes that far.
    own_peer: Option<SocketAddr>,
}

#[async_trait]
impl ProxyHttp for Careless {
    type CTX = Exchange;

    fn new_ctx(&self) -> Exchange {
        self.gate.new_ctx()
    }

    async fn request_filter(&self, _: &mut Session, _: &mut Exchange) -> Result<bool> {
        Ok(false)
    }

    async fn upstream_peer(
        &self,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<Box<HttpPeer>> {
        match self.own_peer {
            Some(address) => Ok(Box::new(HttpPeer::new(address, false, String::new()))),
            None => self.gate.upstream_peer(session, exchange).await,
        }
    }

    async fn proxy_upstream_filter(
        &self,
        session: &mut Session,
        exchange: &mut Exchange,
    ) -> Result<bool> {
        self.gate.proxy_upstream_filter(session, exchange).await
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        head: &mut RequestHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        self.gate
            .upstream_request_filter(session, head, exchange)
            .await
    }

    async fn request_body_filter(
        &self,
        session: &mut Session,
        body: &mut Option<Bytes>,
        end: bool,
        exchange: &mut Exchange,
    ) -> Result<()> {
        self.gate
            .request_body_filter(session, body, end, exchange)
            .await
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &pingora::Error,
        exchange: &mut Exchange,
    ) -> FailToProxy {
        self.gate.fail_to_proxy(session, error, exchange).await
    }
}

//= SIG-11 refused
#[test]
fn an_unadmitted_request_opens_no_connection() {
    let upstream = Upstream::start();
    let answer = send_through(
        |gate| Careless {
            gate,
            own_peer: None,
        },
        &upstream,
    );
    assert!(
        answer.starts_with("HTTP/1.1 500 ") && answer.contains("\"reason\":\"internal\""),
        "{answer}"
    );
    assert_eq!(upstream.connections(), 0);
}

/// Even where a connection is there, the second door holds: no byte of the request is written to it.
#[test]
fn an_unadmitted_request_is_not_written_to_a_connection() {
    let upstream = Upstream::start();
    let own_peer = Some(upstream.address());
    let answer = send_through(|gate| Careless { gate, own_peer }, &upstream);
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(upstream.take().is_empty());
}

fn send_through(careless: impl FnOnce(Gate) -> Careless, upstream: &Upstream) -> String {
    serve(careless(gate(upstream.address(), None)))
}

fn serve(careless: Careless) -> String {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let conf = ServerConf {
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(Some(Opt::default()), conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, careless);
    service.add_tcp(&address.to_string());
    server.add_service(service);
    let (stop, stopped) = watch::channel(false);
    let thread = std::thread::spawn(move || {
        server.run(RunArgs {
            shutdown_signal: Box::new(Told(stopped)),
        })
    });
    let mut client = loop {
        match TcpStream::connect(address) {
            Ok(client) => break client,
            Err(_) => std::thread::yield_now(),
        }
    };
    client.write_all(b"POST /v1/payments/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    stop.send(true).unwrap();
    thread.join().unwrap();
    answer
}

/// Nor where answers are signed, and the gate itself calls the upstream (SIG-12).
#[test]
fn an_unadmitted_request_opens_no_connection_for_a_signed_answer() {
    let upstream = Upstream::start();
    let identity = &world().both.issued;
    let certificate = CertificateDer::from(identity.der.clone());
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let identity = CertifiedKey::from_der(vec![certificate], key, &provider).unwrap();
    let signing = AnswerSigning {
        signer: AnswerSigner::new(&identity).unwrap(),
        body_limit: 1,
    };
    let answer = serve(Careless {
        gate: gate(upstream.address(), Some(signing)),
        own_peer: None,
    });
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(
        answer.contains("\r\nsignature: keyId=") || answer.contains("\r\nSignature: keyId="),
        "{answer}"
    );
    assert_eq!(upstream.connections(), 0);
}

fn gate(upstream: SocketAddr, response_signing: Option<AnswerSigning>) -> Gate {
    let anchors = Anchors::new(
        vec![X509::from_der(world().root.der()).unwrap()],
        Vec::new(),
    )
    .unwrap();
    let snapshot = Snapshot::new(
        Policy::new(Environment::Sandbox),
        Catalogue::new(Environment::Sandbox, builtin()).unwrap(),
        Trust::new(anchors),
    );
    let telemetry = Arc::new(Telemetry::new(false));
    let settings = GateSettings {
        system: "portvakt".into(),
        keepalive: Duration::from_secs(5),
        body_timeout: Duration::from_secs(5),
        upstream: config::Upstream {
            address: upstream,
            connect_timeout: Duration::from_secs(1),
            read_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(5),
        },
        asserter: None,
        response_signing,
    };
    Gate::new(
        World::new(snapshot, &telemetry),
        kept(),
        Clock::System,
        telemetry,
        settings,
    )
}

/// A state that nobody needs: nothing is admitted.
fn kept() -> Arc<Kept> {
    let folder = tempfile::tempdir().unwrap();
    let settings = StateSettings::new(
        folder.path().join("state.db"),
        folder.path().join("state.key"),
    );
    Arc::new(Kept::open(&settings).unwrap())
}

struct Told(watch::Receiver<bool>);

#[async_trait]
impl ShutdownSignalWatch for Told {
    async fn recv(&self) -> ShutdownSignal {
        let _ = self.0.clone().wait_for(|stop| *stop).await;
        ShutdownSignal::FastShutdown
    }
}
