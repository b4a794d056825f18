//! The connection and the framing of a request.

use super::listener::ClientConnection;
use crate::{
    admission::{Framing, Head},
    interface::headers::Fields,
};
use bytes::Bytes;
use http::{
    request::Parts,
    uri::{Authority, Scheme},
};
use pingora::protocols::http::ServerSession as Session;

/// The connection and the framing of a request.
pub(super) struct Arrival<'a> {
    raw: Option<Bytes>,
    target_rewritten: bool,
    connection: Option<&'a ClientConnection>,
}

impl<'a> Arrival<'a> {
    /// Takes the facts of a request whose head was read. The connection counts as busy from now on.
    pub(super) fn of(session: &Session, connection: Option<&'a ClientConnection>) -> Self {
        Self {
            raw: session
                .as_http1()
                .map(|http1| http1.get_headers_raw_bytes()),
            target_rewritten: connection.is_some_and(ClientConnection::begin_request),
            connection,
        }
    }

    /// Whether the connection exceeds the connection limit (ERR-4).
    pub(super) fn is_excess(&self) -> bool {
        self.connection.is_some_and(ClientConnection::is_excess)
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
            peer: self
                .connection
                .map(|connection| connection.address(&received.headers)),
            slot: self.connection.map(|connection| &connection.slot),
            client: self
                .connection
                .and_then(|connection| connection.client.as_ref()),
        }
    }
}
