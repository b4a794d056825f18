//! The facts of one client connection, kept while it is open.
//!
//! The stream writes the facts and the request reads them; pingora carries them as the connection's user data. Deliberately not
//! here: the meaning of a certificate.

use super::{
    origin::ConnectionOrigin,
    unsent::{Delivery, UnsentAnswers},
};
use crate::{
    interface::{Reason, TppId, chunks::ChunkedBody},
    telemetry::{Connected, ConnectionState, CutCause, Subject, TlsVersion},
    trust::{CertificateSlot, ClientChain},
};
use http::{HeaderMap, StatusCode};
use pingora::{
    http::ResponseHeader,
    protocols::{Digest, raw_connect::ProxyDigest},
};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

/// The facts of one client connection.
#[derive(Debug)]
pub(in crate::gateway) struct ClientConnection {
    /// The address that the connection comes from.
    origin: ConnectionOrigin,
    /// The reason for which the connection only gets a refusal (ERR-4).
    excess: Option<Reason>,
    /// The version of TLS.
    tls: Option<TlsVersion>,
    /// The certificate of its latest request.
    pub(in crate::gateway) slot: CertificateSlot,
    /// The client certificate of its handshake, or of the session that it resumes (TLS-3).
    pub(in crate::gateway) client: Option<ClientChain>,
    /// Whether a request's head was read and its answer is not finished.
    busy: AtomicBool,
    /// The number of requests that have begun: their heads were read.
    requests: AtomicU32,
    /// Whether a part of a request's head has arrived.
    arriving: AtomicBool,
    /// Whether the latest request line contained bytes that the HTTP layer encodes.
    target_rewritten: AtomicBool,
    /// HTTP/1.1: the number of bytes after the latest head, and the result of reading them as a chunked body.
    body_length: AtomicUsize,
    chunked_body: AtomicU8,
    /// The reason for not reading the rest of a head: a [`HeadFault`], or 0.
    head_fault: AtomicU8,
    /// The cause for which the gateway ended the connection.
    cut: OnceLock<CutCause>,
    /// HTTP/2: the answers that are not written yet.
    unsent: Arc<UnsentAnswers>,
}

/// The reason for not reading a head to its end (HTTP-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum HeadFault {
    /// The head exceeds the size limit.
    TooLarge,
    /// The head timed out.
    TooSlow,
}

/// The digest holds the facts of the connection.
impl Connected for ProxyDigest {
    fn state(&self) -> ConnectionState {
        let Some(client) = ClientConnection::in_digest(self) else {
            return ConnectionState::Idle;
        };
        if client.is_busy() {
            ConnectionState::UnderWay
        } else if client.arriving.load(Ordering::Relaxed) {
            ConnectionState::HeadArrives
        } else {
            ConnectionState::Idle
        }
    }

    fn requests(&self) -> u32 {
        ClientConnection::in_digest(self).map_or(0, ClientConnection::requests)
    }

    fn caller(&self) -> IpAddr {
        let client = ClientConnection::in_digest(self);
        client.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), ClientConnection::ip)
    }

    fn tpp(&self) -> Option<TppId> {
        ClientConnection::in_digest(self)?.tpp()
    }
}

impl ClientConnection {
    /// Creates the facts of a connection with this client certificate and version of TLS.
    pub(super) fn new(
        origin: ConnectionOrigin,
        client: Option<ClientChain>,
        excess: Option<Reason>,
        tls: Option<TlsVersion>,
    ) -> Self {
        Self {
            origin,
            excess,
            tls,
            slot: CertificateSlot::default(),
            client,
            busy: AtomicBool::default(),
            requests: AtomicU32::default(),
            arriving: AtomicBool::default(),
            target_rewritten: AtomicBool::default(),
            body_length: AtomicUsize::default(),
            chunked_body: AtomicU8::default(),
            head_fault: AtomicU8::default(),
            cut: OnceLock::new(),
            unsent: Arc::default(),
        }
    }

    /// The address that the connection comes from.
    pub(super) const fn ip(&self) -> IpAddr {
        self.origin.ip()
    }

    /// The TPP whose signature has verified on it; `None` for a connection of a proxy, which many share.
    fn tpp(&self) -> Option<TppId> {
        self.slot.tpp().filter(|_| !self.origin.is_proxy())
    }

    /// Whose connection it is (FWD-8): the TPP's whose signature has verified on it, but for a connection of a proxy, which many share.
    pub(super) fn subject(&self) -> Subject {
        self.tpp()
            .map_or_else(|| Subject::network(Some(self.ip())), Subject::Tpp)
    }

    /// Wraps the facts for pingora.
    pub(super) fn into_digest(self) -> Option<Arc<ProxyDigest>> {
        // The digest requires an answer, which nothing reads.
        let answer = ResponseHeader::build_no_case(StatusCode::OK, Some(0)).ok()?;
        let digest = ProxyDigest::new(Box::new(answer), Some(Box::new(self)));
        Some(Arc::new(digest))
    }

    /// The facts of a session's connection.
    pub(in crate::gateway) fn of(digest: &Digest) -> Option<&Self> {
        Self::in_digest(digest.proxy_digest.as_deref()?)
    }

    /// The facts in this digest.
    pub(in crate::gateway) fn in_digest(digest: &ProxyDigest) -> Option<&Self> {
        digest.user_data.as_ref()?.downcast_ref()
    }

    /// Marks a head as read, once for a request: bytes written from now on are its answer, and over HTTP/1.1 the first of them are a head
    /// (`kept_head.rs`). Returns whether its target was rewritten.
    pub(in crate::gateway) fn begin_request(&self) -> bool {
        self.busy.store(true, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.arriving.store(false, Ordering::Relaxed);
        self.target_rewritten.swap(false, Ordering::Relaxed)
    }

    /// Marks the answer as finished.
    pub(in crate::gateway) fn end_request(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// The client's address for a request with these headers.
    pub(in crate::gateway) fn address(&self, headers: &HeaderMap) -> SocketAddr {
        self.origin.client(headers)
    }

    /// Whether the peer is a trusted proxy whose headers count.
    pub(in crate::gateway) const fn is_behind_proxy(&self) -> bool {
        self.origin.is_proxy()
    }

    /// The version of TLS: `1.2` or `1.3`.
    pub(in crate::gateway) const fn tls(&self) -> Option<TlsVersion> {
        self.tls
    }

    /// The reason for refusing its requests, if it exceeds a limit.
    pub(in crate::gateway) const fn excess(&self) -> Option<Reason> {
        self.excess
    }

    /// Whether a part of a request's head has arrived.
    pub(in crate::gateway) fn is_arriving(&self) -> bool {
        self.arriving.load(Ordering::Relaxed)
    }

    /// Whether a request's head was read and its answer is not finished.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// The number of requests that have begun: their heads were read.
    pub(in crate::gateway) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Notes that a part of a head arrived; `is_odd`: its target has bytes that the HTTP layer encodes.
    pub(super) fn head_arrives(&self, is_odd: bool) {
        self.arriving.store(true, Ordering::Relaxed);
        if is_odd {
            self.target_rewritten.store(true, Ordering::Relaxed);
        }
    }

    /// Notes the bytes that have arrived after the latest head.
    pub(super) fn body_arrives(&self, (length, chunked): (usize, ChunkedBody)) {
        self.body_length.store(length, Ordering::Relaxed);
        self.chunked_body.store(chunked.number(), Ordering::Relaxed);
    }

    /// HTTP/1.1: the result of reading the bytes after the latest head as a chunked body.
    pub(in crate::gateway) fn chunked_body(&self) -> ChunkedBody {
        ChunkedBody::of(self.chunked_body.load(Ordering::Relaxed))
    }

    /// HTTP/1.1: whether bytes have arrived after a body of this length.
    pub(in crate::gateway) fn is_followed(&self, length: usize) -> bool {
        self.body_length.load(Ordering::Relaxed) > length
    }

    /// Notes that the gateway ends the connection, for this cause.
    pub(super) fn cut_off(&self, cause: CutCause) {
        // The first cause stays.
        let _ = self.cut.set(cause);
    }

    /// The cause for which the gateway ended the connection, as the metric names it; `None` if it did not.
    pub(in crate::gateway) fn cut(&self) -> Option<CutCause> {
        self.cut.get().copied()
    }

    /// HTTP/2: the answers that are not written yet.
    pub(super) const fn unsent(&self) -> &Arc<UnsentAnswers> {
        &self.unsent
    }

    /// HTTP/2: waits until the answer on this stream, which the library has taken to its end, is written or lost.
    pub(in crate::gateway) fn poll_delivery(
        &self,
        stream: u32,
        context: &mut Context<'_>,
    ) -> Poll<Delivery> {
        self.unsent.poll(stream, context)
    }

    /// HTTP/2: the bytes of the body of an unfinished answer that were written; `None` if its stream has ended.
    pub(in crate::gateway) fn written(&self, stream: u32) -> Option<u64> {
        self.unsent.written(stream)
    }

    /// Stops reading the head, for this reason.
    pub(super) fn give_up(&self, fault: HeadFault) {
        let code = match fault {
            HeadFault::TooLarge => 1,
            HeadFault::TooSlow => 2,
        };
        self.head_fault.store(code, Ordering::Relaxed);
    }

    /// The reason for not reading the rest of a head, if there is one.
    pub(in crate::gateway) fn head_fault(&self) -> Option<HeadFault> {
        match self.head_fault.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(HeadFault::TooLarge),
            _ => Some(HeadFault::TooSlow),
        }
    }
}
