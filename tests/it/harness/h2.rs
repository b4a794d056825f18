//! A client that speaks HTTP/2 over TLS with the `h2` crate.

use super::{
    call::{Framing, Sealed},
    gate::Gate,
    waiting::{LIMIT, RAN_OUT, let_pass_async},
    wire::Answer,
    world::World,
};
use ::h2::client::SendRequest;
use bytes::Bytes;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use std::{
    net::SocketAddr,
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::{net::TcpStream, runtime::Runtime, task::JoinHandle};
use tokio_rustls::TlsConnector;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
});

/// Sends a request on a new connection and reads the response.
pub(crate) fn exchange(gate: &Gate, sealed: &Sealed) -> Result<Answer, String> {
    exchange_by(gate, sealed, connector(gate.world()))
}

/// The same, with given handshake parameters.
pub(crate) fn exchange_by(
    gate: &Gate,
    sealed: &Sealed,
    tls: TlsConnector,
) -> Result<Answer, String> {
    within(talk(gate, sealed, tls, Manner::default()))
}

/// Deviations of a client from the normal request.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// `:scheme`.
    pub(crate) scheme: &'static str,
    /// The delay before the second half of the body.
    pub(crate) pause: Duration,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            scheme: "https",
            pause: Duration::ZERO,
        }
    }
}

/// The same, with deviations.
pub(crate) fn exchange_as(gate: &Gate, sealed: &Sealed, manner: Manner) -> Result<Answer, String> {
    within(talk(gate, sealed, connector(gate.world()), manner))
}

fn within(talk: impl Future<Output = Result<Answer, String>>) -> Result<Answer, String> {
    let within = async { tokio::time::timeout(LIMIT, talk).await };
    RUNTIME
        .block_on(within)
        .map_err(|_| format!("{RAN_OUT}: no answer over HTTP/2"))?
}

async fn talk(
    gate: &Gate,
    sealed: &Sealed,
    tls: TlsConnector,
    manner: Manner,
) -> Result<Answer, String> {
    let (sender, driver) = connect(gate.address(), tls).await?;
    let answer = converse(sender, sealed, manner).await;
    driver.abort();
    answer
}

/// A connection, and the task that drives it.
pub(crate) async fn connect(
    address: SocketAddr,
    tls: TlsConnector,
) -> Result<(SendRequest<Bytes>, JoinHandle<()>), String> {
    let say = |fault: &dyn std::fmt::Display| fault.to_string();
    let stream = TcpStream::connect(address)
        .await
        .map_err(|fault| say(&fault))?;
    let name = ServerName::try_from("localhost").unwrap();
    let stream = tls
        .connect(name, stream)
        .await
        .map_err(|fault| say(&fault))?;
    assert_eq!(
        stream.get_ref().1.alpn_protocol(),
        Some(&b"h2"[..]),
        "the gateway chose another protocol than HTTP/2"
    );
    let (sender, connection) = ::h2::client::handshake(stream)
        .await
        .map_err(|fault| say(&fault))?;
    Ok((sender, tokio::spawn(async { _ = connection.await })))
}

/// Sends a request on a connection and reads the response.
pub(crate) async fn converse(
    mut sender: SendRequest<Bytes>,
    sealed: &Sealed,
    manner: Manner,
) -> Result<Answer, String> {
    let say = |fault: &dyn std::fmt::Display| fault.to_string();
    let body = sealed.request.body.clone().unwrap_or_default();
    let (answer, mut stream) = sender
        .send_request(request(sealed, manner.scheme), body.is_empty())
        .map_err(|fault| say(&fault))?;
    if !body.is_empty() {
        let mut body = Bytes::from(body);
        if !manner.pause.is_zero() {
            let _ = stream.send_data(body.split_to(body.len() / 2), false);
            let_pass_async(manner.pause).await;
        }
        // The gateway may have answered and reset the stream before the client sent everything: the response counts.
        let _ = stream.send_data(body, true);
    }
    let answer = answer.await.map_err(|fault| say(&fault))?;
    let (parts, mut incoming) = answer.into_parts();
    let mut body = Vec::new();
    while let Some(bytes) = incoming.data().await {
        let bytes = bytes.map_err(|fault| say(&fault))?;
        let _ = incoming.flow_control().release_capacity(bytes.len());
        body.extend_from_slice(&bytes);
    }
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect();
    Ok(Answer {
        status: parts.status.as_u16(),
        headers,
        body,
    })
}

/// Moves Host to `:authority`, as HTTP/2 clients do.
fn request(sealed: &Sealed, scheme: &str) -> http::Request<()> {
    let request = &sealed.request;
    let authority = request.header("host").unwrap_or("localhost");
    let uri = http::Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(request.target.as_str())
        .build();
    let mut builder = http::Request::builder()
        .method(request.method.as_str())
        .uri(uri.unwrap())
        .version(http::Version::HTTP_2);
    for (name, value) in request
        .headers
        .iter()
        .filter(|(name, _)| !name.eq_ignore_ascii_case("host"))
    {
        builder = builder.header(
            name.as_str(),
            http::HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    if let (Some(body), Framing::Length) = (&request.body, sealed.framing) {
        builder = builder.header("content-length", body.len());
    }
    for value in &sealed.also_host {
        builder = builder.header("host", value.as_str());
    }
    builder.body(()).unwrap()
}

/// The parameters of a handshake that offers HTTP/2 only.
pub(crate) fn connector(world: &World) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(world.tls_ca.der().to_vec()))
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsConnector::from(Arc::new(config))
}
