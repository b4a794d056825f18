//! The doors to the upstream, with an application that forgets to judge: even so nothing gets through (SIG-11).

use crate::harness::{self, Upstream, world};
use async_trait::async_trait;
use pingora::{
    apps::{HttpServerApp, ReusedHttpStream},
    protocols::http::ServerSession as Session,
    server::{
        RunArgs, Server, ShutdownSignal, ShutdownSignalWatch, ShutdownWatch,
        configuration::{Opt, ServerConf},
    },
    services::listening::Service,
};
use portvakt::{
    clock::Clock,
    config::{self, Settings},
    gateway::{Gate, GateSettings},
    in_use::{Current, InUse},
    signing::{AnswerSigner, AnswerSigning},
    state::{Kept, StateSettings},
    telemetry::Telemetry,
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

/// An application that lets every request go on, admitted or not.
struct Careless(Gate);

#[async_trait]
impl HttpServerApp for Careless {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: Session,
        _: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        assert!(session.read_request().await.unwrap());
        let mut exchange = self.0.open(&session);
        let error = self
            .0
            .forward(&mut session, &mut exchange)
            .await
            .unwrap_err();
        self.0.fail(&mut session, &error, &mut exchange).await;
        session.finish().await.ok();
        None
    }
}

//= SIG-11 refused
#[test]
fn an_unadmitted_request_opens_no_connection() {
    let upstream = Upstream::start();
    let answer = serve(gate(upstream.address(), None));
    assert!(
        answer.starts_with("HTTP/1.1 500 ") && answer.contains("\"reason\":\"internal\""),
        "{answer}"
    );
    assert_eq!(upstream.connections(), 0);
}

fn serve(gate: Gate) -> String {
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
    let mut service = Service::new("careless".into(), Careless(gate));
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

/// Nor where answers are signed (SIG-12).
#[test]
fn an_unadmitted_request_opens_no_connection_for_a_signed_answer() {
    let upstream = Upstream::start();
    let identity = &world().both.issued;
    let certificate = CertificateDer::from(identity.der.clone());
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let identity = CertifiedKey::from_der(vec![certificate], key, &provider).unwrap();
    let signing = AnswerSigning {
        signer: Arc::new(AnswerSigner::new(&identity).unwrap()),
        body_limit: 1,
    };
    let answer = serve(gate(upstream.address(), Some(signing)));
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(
        answer.contains("\r\nsignature: keyId=") || answer.contains("\r\nSignature: keyId="),
        "{answer}"
    );
    assert_eq!(upstream.connections(), 0);
}

fn gate(upstream: SocketAddr, response_signing: Option<AnswerSigning>) -> Gate {
    let written = harness::Gate::builder().for_program();
    let Settings { fixed, reloadable } =
        Settings::parse("gateway.yaml", written.yaml(), written.folder()).unwrap();
    let (telemetry, now) = (Arc::new(Telemetry::new(false)), Clock::System.now());
    let links = reloadable.sca.links(fixed.environment, now).unwrap();
    let in_use = InUse::new(&fixed, reloadable, links, &telemetry, now);
    let settings = GateSettings {
        system: "portvakt".into(),
        keepalive: Duration::from_secs(5),
        body_timeout: Duration::from_secs(5),
        upstream: config::Upstream {
            address: upstream,
            host: "core".parse().unwrap(),
            connect_timeout: Duration::from_secs(1),
            read_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(5),
            reuse: true,
        },
        asserter: None,
        response_signing,
    };
    Gate::new(
        Arc::new(Current::from_pointee(in_use)),
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
