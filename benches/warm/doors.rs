//! What a caller can make the gateway do besides the checks of a request: answer a handshake, build the chain of a client certificate, sign
//! an answer, serve a stream of HTTP/2, claim what is used once.
//!
//! The parts of the gateway that do it are called as the gateway calls them: rustls with its provider, `Trust`, `AnswerSigner`, `h2`.

use super::{NOW, snapshot, store};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use portvakt::{
    interface::Reason,
    signing::AnswerSigner,
    state::{Beside, ClaimRequest, Decision, Hash, QuotaClaim, RequestIdClaim, Retention},
    trust::ClientChain,
};
use portvakt_development_pki as pki;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    hint::black_box,
    sync::Arc,
    task::Poll,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    runtime::{Builder, Runtime},
};

/// The body of a refusal, about as long as they are.
const BODY: &[u8] = &[b'x'; 300];

/// The work of a kind, for this number of calls; `None` for an unknown kind. `rsa` is the key of an RSA kind, `ca` that of the issuing CA.
pub(crate) fn work(
    kind: &str,
    rsa: &pki::Key,
    ca: &pki::Key,
    count: usize,
) -> Option<Box<dyn Fn()>> {
    let (kind, key) = match kind.split_once("-rsa") {
        Some((kind, _)) => (kind, rsa.clone()),
        None => (kind, pki::Key::EcP256),
    };
    match kind {
        "handshake" => Some(handshake(issued(key, ca).0, count)),
        "client-chain" => Some(client_chain(issued(pki::Key::EcP256, ca), count)),
        "signed-answer" => Some(signed_answer(issued(key, ca).0)),
        "http2" => Some(http2()),
        "claim" => Some(claim()),
        _ => None,
    }
}

/// The claims of a call without the PSU and of an id that is stored, in one transaction each, of keys that are new.
fn claim() -> Box<dyn Fn()> {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.unwrap();
    let turn = Cell::new(0_u64);
    let next = move || {
        turn.set(turn.get() + 1);
        // Spread evenly, as keyed hashes are.
        let high = turn.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(high) << 64) | u128::from(turn.get())).to_be_bytes()
    };
    Box::new(move || {
        let _ = &folder;
        let quota = QuotaClaim {
            key: Hash::from_bytes(next()),
            beside: Beside::default(),
            page: None,
        };
        let request = RequestIdClaim {
            id: Hash::from_bytes(next()),
            date: NOW,
            retention: Retention::Day,
        };
        for (request, quota) in [(None, Some(quota)), (Some(request), None)] {
            let now = NOW;
            let asked = ClaimRequest {
                request,
                quota,
                now,
            };
            let decision = runtime.block_on(store.commit(asked)).unwrap();
            assert!(matches!(decision, Decision::Held(_)));
        }
    })
}

fn issued(key: pki::Key, ca: &pki::Key) -> (pki::Issued, pki::Ca) {
    let root = pki::Ca::root(&pki::CaSpec {
        key: pki::Key::EcP256,
        ..pki::CaSpec::development_root()
    });
    let issuing = root.unwrap().issue_ca(&pki::CaSpec {
        key: ca.clone(),
        ..pki::CaSpec::default()
    });
    let issuing = issuing.unwrap();
    let leaf = pki::LeafSpec {
        key,
        ..pki::LeafSpec::default()
    };
    (issuing.issue(&leaf).unwrap(), issuing)
}

fn certified(issued: &pki::Issued) -> CertifiedKey {
    let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
    let key = aws_lc_rs::sign::any_supported_type(&key).unwrap();
    CertifiedKey::new(vec![CertificateDer::from(issued.der.clone())], key)
}

/// The answer to a ClientHello of TLS 1.3: key exchange, certificate, signature. A stranger need not read it.
fn handshake(issued: pki::Issued, count: usize) -> Box<dyn Fn()> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let resolver = rustls::sign::SingleCertAndKey::from(certified(&issued));
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let (server, client) = (Arc::new(server), Arc::new(client));
    let hellos: Vec<_> = (0..count).map(|_| hello(&client)).collect();
    let turn = Cell::new(0);
    Box::new(move || {
        let hello = hellos.iter().cycle().nth(turn.replace(turn.get() + 1));
        let mut connection = ServerConnection::new(Arc::clone(&server)).unwrap();
        connection.read_tls(&mut hello.unwrap().as_slice()).unwrap();
        connection.process_new_packets().unwrap();
        while connection.wants_write() {
            connection.write_tls(&mut std::io::sink()).unwrap();
        }
    })
}

fn hello(client: &Arc<ClientConfig>) -> Vec<u8> {
    let name = "bank.example".try_into().unwrap();
    let mut connection = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}

/// TLS-3: the chain of a client certificate that leads to no anchor, another one each time.
fn client_chain((leaf, issuing): (pki::Issued, pki::Ca), count: usize) -> Box<dyn Fn()> {
    let snapshot = snapshot(issuing.der());
    let chains = (0..count).map(|number| {
        let mut der = leaf.der.clone();
        let last = der.iter_mut().rev().skip(1);
        last.zip((number + 1).to_le_bytes())
            .for_each(|(byte, other)| *byte ^= other);
        ClientChain::new([der.as_slice(), issuing.der()]).unwrap()
    });
    let chains: Vec<_> = chains.collect();
    let turn = Cell::new(0);
    Box::new(move || {
        let chain = chains.iter().cycle().nth(turn.replace(turn.get() + 1));
        let judged = snapshot.trust.qwac(chain.unwrap(), NOW);
        let reason = judged.unwrap_err().reason();
        assert_eq!(reason, Reason::CertificateUntrusted);
    })
}

/// SIG-12: Digest and Signature of an answer.
fn signed_answer(issued: pki::Issued) -> Box<dyn Fn()> {
    let signer = AnswerSigner::new(&certified(&issued)).unwrap();
    let mut headers = HeaderMap::new();
    let date = HeaderValue::from_static("Thu, 01 Jan 2026 00:00:00 GMT");
    headers.insert(header::DATE, date);
    headers.insert(
        "x-request-id",
        HeaderValue::from_static("5f0c3f8e-0000-4b8f-8b8b-601a8122ea32"),
    );
    Box::new(move || {
        black_box(signer.sign(&headers, BODY)).unwrap();
    })
}

/// A connection of HTTP/2 without TLS, at the side of the HTTP/2 library.
struct Stream {
    client: DuplexStream,
    server: h2::server::Connection<DuplexStream, Bytes>,
    id: u32,
}

/// One request of HTTP/2 with the headers of a signed one, and its answer: what the library costs beyond the checks.
fn http2() -> Box<dyn Fn()> {
    let runtime = Builder::new_current_thread().build().unwrap();
    let (mut client, server) = duplex(1 << 20);
    let server = runtime.block_on(async {
        client
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .await
            .unwrap();
        h2::server::handshake(server).await.unwrap()
    });
    let stream = RefCell::new(Stream {
        client,
        server,
        id: 1,
    });
    Box::new(move || serve(&runtime, &mut stream.borrow_mut()))
}

fn serve(runtime: &Runtime, stream: &mut Stream) {
    let id = stream.id;
    stream.id += 2;
    runtime.block_on(async {
        stream.client.write_all(&request(id)).await.unwrap();
        let (asked, mut respond) = stream.server.accept().await.unwrap().unwrap();
        assert!(asked.headers().len() > 5);
        let head = Response::builder().status(400).body(()).unwrap();
        let mut body = respond.send_response(head, false).unwrap();
        body.send_data(Bytes::from_static(BODY), true).unwrap();
        poll_fn(|context| {
            let _ = stream.server.poll_accept(context);
            Poll::Ready(())
        })
        .await;
        let mut written = [0; 4_096];
        assert!(stream.client.read(&mut written).await.unwrap() > BODY.len());
    });
}

/// HEADERS of a GET, every field a literal without index, and WINDOW_UPDATE for its answer.
fn request(id: u32) -> Vec<u8> {
    let certificate = "A".repeat(1_600);
    let signature = "A".repeat(500);
    let mut block = vec![0x82, 0x87];
    literal(&mut block, 4, "/v1/accounts/4711/transactions");
    literal(&mut block, 1, "bank.example");
    for (name, value) in [
        ("date", "Thu, 01 Jan 2026 00:00:00 GMT"),
        (
            "digest",
            "SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        ),
        ("x-request-id", "5f0c3f8e-0000-4b8f-8b8b-601a8122ea32"),
        ("tpp-redirect-uri", "https://tpp.example/callback"),
        ("signature", &signature),
        ("tpp-signature-certificate", &certificate),
    ] {
        block.push(0);
        text(&mut block, name);
        text(&mut block, value);
    }
    let mut frames = Vec::new();
    frame(&mut frames, 1, 5, id, &block);
    frame(&mut frames, 8, 0, 0, &1_000_u32.to_be_bytes());
    frames
}

/// A field whose name has this index in the static table of HPACK.
fn literal(block: &mut Vec<u8>, index: u8, value: &str) {
    block.push(index);
    text(block, value);
}

/// A string of HPACK without Huffman's code: its length in 7 bits and more (RFC 7541, section 5.1).
fn text(block: &mut Vec<u8>, text: &str) {
    if text.len() < 127 {
        block.push(text.len().try_into().unwrap());
    } else {
        block.push(127);
        let mut rest = text.len() - 127;
        while rest >= 128 {
            block.push((rest % 128 + 128).try_into().unwrap());
            rest /= 128;
        }
        block.push(rest.try_into().unwrap());
    }
    block.extend_from_slice(text.as_bytes());
}

fn frame(frames: &mut Vec<u8>, kind: u8, flags: u8, id: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    frames.extend_from_slice(&length[1..]);
    frames.extend_from_slice(&[kind, flags]);
    frames.extend_from_slice(&id.to_be_bytes());
    frames.extend_from_slice(payload);
}
