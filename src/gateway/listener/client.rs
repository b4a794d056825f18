//! What is known of one connection of a client, for as long as it is open.
//!
//! The stream writes it and the request reads it: it travels with the connection as pingora's user data. Deliberately not here:
//! what a certificate means.

use crate::trust::{CertificateSlot, ClientChain};
use http::StatusCode;
use pingora::{
    http::ResponseHeader,
    protocols::{Digest, raw_connect::ProxyDigest},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering},
};

/// What is known of one connection.
#[derive(Debug, Default)]
pub(in crate::gateway) struct ClientConnection {
    /// It is one too many (ERR-4).
    is_excess: bool,
    /// The certificate that it showed last.
    pub(in crate::gateway) slot: CertificateSlot,
    /// The certificate that its handshake showed, or that of the session that it resumes (TLS-3).
    pub(in crate::gateway) client: Option<ClientChain>,
    /// A request's head was read and its answer is not finished.
    busy: AtomicBool,
    /// The heads that were read.
    requests: AtomicU32,
    /// A request's head is arriving: some of it came.
    arriving: AtomicBool,
    /// The request line that was read last held bytes that the HTTP layer encodes.
    target_rewritten: AtomicBool,
    /// Why no more of a head is read: a [`HeadFault`], or 0.
    head_fault: AtomicU8,
}

/// Why a head is not read to its end (HTTP-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum HeadFault {
    /// It is larger than heads may be.
    TooLarge,
    /// It did not come in time.
    TooSlow,
}

impl ClientConnection {
    /// A connection whose handshake showed this.
    pub(super) fn new(client: Option<ClientChain>, is_excess: bool) -> Self {
        Self {
            is_excess,
            client,
            ..Self::default()
        }
    }

    /// As pingora carries it.
    pub(super) fn into_digest(self) -> Option<Arc<ProxyDigest>> {
        // An answer that nobody reads belongs to it.
        let answer = ResponseHeader::build_no_case(StatusCode::OK, Some(0)).ok()?;
        let digest = ProxyDigest::new(Box::new(answer), Some(Box::new(self)));
        Some(Arc::new(digest))
    }

    /// The one that a session's connection carries.
    pub(in crate::gateway) fn of(digest: &Digest) -> Option<&Self> {
        Self::in_digest(digest.proxy_digest.as_deref()?)
    }

    /// The one that this carries.
    pub(in crate::gateway) fn in_digest(digest: &ProxyDigest) -> Option<&Self> {
        digest.user_data.as_ref()?.downcast_ref()
    }

    /// A head was read: what is written from now on answers it. Says whether its target was rewritten.
    pub(in crate::gateway) fn begin_request(&self) -> bool {
        self.busy.store(true, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.arriving.store(false, Ordering::Relaxed);
        self.target_rewritten.swap(false, Ordering::Relaxed)
    }

    /// The answer is finished.
    pub(in crate::gateway) fn end_request(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Whether it is one too many.
    pub(in crate::gateway) const fn is_excess(&self) -> bool {
        self.is_excess
    }

    /// Whether a part of a request's head has come.
    pub(in crate::gateway) fn is_arriving(&self) -> bool {
        self.arriving.load(Ordering::Relaxed)
    }

    /// Whether a request's head was read and its answer is not finished.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// The heads that were read.
    pub(super) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// A part of a head came, with bytes of its target that the HTTP layer encodes or without.
    pub(super) fn head_arrives(&self, is_odd: bool) {
        self.arriving.store(true, Ordering::Relaxed);
        if is_odd {
            self.target_rewritten.store(true, Ordering::Relaxed);
        }
    }

    /// No more of a head is read.
    pub(super) fn give_up(&self, fault: HeadFault) {
        let code = match fault {
            HeadFault::TooLarge => 1,
            HeadFault::TooSlow => 2,
        };
        self.head_fault.store(code, Ordering::Relaxed);
    }

    /// Why no more of a head is read, where that is so.
    pub(in crate::gateway) fn head_fault(&self) -> Option<HeadFault> {
        match self.head_fault.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(HeadFault::TooLarge),
            _ => Some(HeadFault::TooSlow),
        }
    }
}
