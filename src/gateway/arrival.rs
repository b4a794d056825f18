//! The connection and the framing of a request.

use super::listener::ClientConnection;
use crate::{
    admission::{Framing, Head},
    interface::{
        Reason,
        headers::{Fields, TPP_SIGNATURE_CERTIFICATE, trace::TraceContext, trim},
    },
    trust::Certificate,
};
use bytes::Bytes;
use http::{
    HeaderMap,
    request::Parts,
    uri::{Authority, Scheme},
};
use pingora::protocols::http::ServerSession as Session;
use std::{net::SocketAddr, sync::Arc};

/// The connection and the framing of a request.
pub(super) struct Arrival<'a> {
    raw: Option<Bytes>,
    target_rewritten: bool,
    connection: Option<&'a ClientConnection>,
    trace: TraceContext,
}

impl<'a> Arrival<'a> {
    /// Takes the facts of a request whose head was read. The connection counts as busy from now on.
    pub(super) fn of(
        session: &Session,
        connection: Option<&'a ClientConnection>,
        trace: TraceContext,
    ) -> Self {
        Self {
            raw: session
                .as_http1()
                .map(|http1| http1.get_headers_raw_bytes()),
            target_rewritten: connection.is_some_and(ClientConnection::begin_request),
            connection,
            trace,
        }
    }

    /// The reason for refusing every request of a connection beyond a limit (ERR-4).
    pub(super) fn excess(&self) -> Option<Reason> {
        self.connection?.excess()
    }

    /// The client's address for a request with these headers.
    fn peer(&self, headers: &HeaderMap) -> Option<SocketAddr> {
        Some(self.connection?.address(headers))
    }

    /// Whether bytes have arrived after a head without a body. They are lost.
    pub(super) fn is_followed(&self) -> bool {
        self.connection
            .is_some_and(|connection| connection.is_followed(0))
    }

    /// Whether no signature has been verified on the connection yet. The first request of a connection is no stranger's: its handshake
    /// has been paid for.
    pub(super) fn is_strange(&self) -> bool {
        self.connection
            .is_some_and(|connection| connection.requests() > 1 && connection.slot.is_empty())
    }

    /// The certificate that the request shows, if a signature on the connection has verified last by it: probably this request's too.
    pub(super) fn known(&self, headers: &HeaderMap) -> Option<Arc<Certificate>> {
        let shown = TPP_SIGNATURE_CERTIFICATE.get_filled(&Fields::of(headers))?;
        self.connection?.slot.shown_again(trim(shown.as_bytes()))
    }

    /// The head as admission sees it.
    pub(super) fn head<'h>(&'h self, received: &'h Parts, target: &'h [u8]) -> Head<'h> {
        Head {
            method: &received.method,
            target,
            fields: Fields::of(&received.headers),
            authority: received
                .uri
                .authority()
                .filter(|_| self.raw.is_none())
                .map(Authority::as_str),
            framing: match &self.raw {
                Some(raw) => Framing::Lines {
                    raw,
                    target_rewritten: self.target_rewritten,
                },
                None => Framing::Frames {
                    other_scheme: received
                        .uri
                        .scheme()
                        .is_some_and(|scheme| *scheme != Scheme::HTTPS),
                },
            },
            peer: self.peer(&received.headers),
            slot: self.connection.map(|connection| &connection.slot),
            client: self
                .connection
                .and_then(|connection| connection.client.as_ref()),
            trace: Some(self.trace),
        }
    }
}

/// The client's address for a request whose head was read.
pub(super) fn peer_of(session: &Session) -> Option<SocketAddr> {
    let connection = session.digest().and_then(ClientConnection::of)?;
    Some(connection.address(&session.req_header().headers))
}
