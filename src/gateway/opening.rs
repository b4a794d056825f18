//! The facts of a request at its begin: its ids, its place in a trace, its method and the versions of its protocols.
//!
//! Invariant: `traceparent` counts only behind a trusted proxy that writes headers; a TPP's own is not believed. Such a proxy must
//! replace what its client sent. Deliberately not here: the facts that checks find.

use super::{arrival::peer_of, listener::ClientConnection};
use crate::{
    interface::headers::{
        self, RequestId,
        trace::{TraceContext, TraceParent},
    },
    telemetry::{HttpFacts, HttpVersion},
};
use http::{Method, Version};
use pingora::protocols::http::ServerSession as Session;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// Makes the ids of traces and spans. They are unique and not secret: a random start and a mixed count cost a request less than a
/// random number.
#[derive(Debug)]
pub(super) struct TraceIds {
    seeds: [u64; 3],
    count: AtomicU64,
}

impl Default for TraceIds {
    fn default() -> Self {
        let seeds = [(); 3].map(|()| {
            let (random, _) = Uuid::new_v4().as_u64_pair();
            random
        });
        Self {
            seeds,
            count: AtomicU64::default(),
        }
    }
}

impl TraceIds {
    /// The place of a new request, which continues its parent's trace.
    fn place(&self, parent: Option<TraceParent>) -> TraceContext {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let [high, low, span] = self.seeds.map(|seed| mix(seed.wrapping_add(count)));
        let trace = (u128::from(high) << 64) | u128::from(low);
        TraceContext::new(parent, trace, span)
    }
}

/// A bijection whose results look random (the finaliser of MurmurHash3).
const fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// The facts of a request at its begin.
#[derive(Debug)]
pub(super) struct Opening {
    /// X-Request-ID, if it is well-formed.
    pub(super) request_id: Option<RequestId>,
    /// The place in a trace.
    pub(super) trace: TraceContext,
    /// The facts of HTTP and TLS; no byte of a body is counted yet.
    pub(super) http: HttpFacts,
}

impl Opening {
    /// The facts of a request whose head was read.
    pub(super) fn of(session: &Session, ids: &TraceIds) -> Self {
        let connection = session.digest().and_then(ClientConnection::of);
        let trusted = connection.filter(|connection| connection.is_behind_proxy());
        let traceparent = trusted.and_then(|_| session.get_header(&headers::TRACEPARENT.name));
        let id = session.get_header(&headers::X_REQUEST_ID.name);
        let head = session.req_header();
        Self {
            request_id: id.and_then(RequestId::parse),
            trace: ids.place(traceparent.and_then(TraceParent::parse)),
            http: HttpFacts {
                method: Some(method(&head.method)),
                version: version(head.version),
                tls: connection.and_then(ClientConnection::tls),
                caller: peer_of(session).map(|peer| peer.ip()),
                ..HttpFacts::default()
            },
        }
    }

    /// The facts of a request whose head could not be read, but for this X-Request-ID.
    pub(super) fn unread(session: &Session, ids: &TraceIds, id: Option<RequestId>) -> Self {
        let connection = session.digest().and_then(ClientConnection::of);
        Self {
            request_id: id,
            trace: ids.place(None),
            http: HttpFacts {
                tls: connection.and_then(ClientConnection::tls),
                ..HttpFacts::default()
            },
        }
    }
}

/// The method, if a standard defines it.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        Method::TRACE => "TRACE",
        Method::CONNECT => "CONNECT",
        _ => "other",
    }
}

fn version(version: Version) -> Option<HttpVersion> {
    match version {
        Version::HTTP_10 => Some(HttpVersion::V1_0),
        Version::HTTP_11 => Some(HttpVersion::V1_1),
        Version::HTTP_2 => Some(HttpVersion::V2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_differ() {
        let ids = TraceIds::default();
        let (mut traces, mut spans) = (HashSet::new(), HashSet::new());
        for _ in 0..10_000 {
            let place = ids.place(None);
            assert!(traces.insert(place.trace_id().to_string()));
            assert!(spans.insert(place.span_id().to_string()));
        }
    }
}
