//! A saved HTTP/1.1 request in place of a client's connection, for `portvakt explain`.
//!
//! Invariant: the bytes pass the inspection of heads and bodies that a client's bytes pass ([`Http1Head`]). Deliberately not here: a
//! socket, deadlines, and answers, which are dropped.

use super::{
    client::{ClientConnection, HeadFault},
    head::Http1Head,
    origin::ConnectionPeer,
};
use async_trait::async_trait;
use bytes::Bytes;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType, http::ServerSession as Session, raw_connect::ProxyDigest,
};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A session that reads these bytes, and then the end of the connection. `head_size`: the limit of a head (HTTP-9).
pub(in crate::gateway) fn saved_session(bytes: Bytes, head_size: usize) -> Option<Session> {
    let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let origin = ConnectionPeer::new(nowhere, &Arc::default()).origin(None);
    let client = ClientConnection::new(origin, None, None, None).into_digest()?;
    Some(Session::new_http1(Box::new(SavedStream {
        left: bytes,
        head: Http1Head::default(),
        head_size,
        client,
    })))
}

#[derive(Debug)]
struct SavedStream {
    left: Bytes,
    head: Http1Head,
    head_size: usize,
    /// Holds the [`ClientConnection`].
    client: Arc<ProxyDigest>,
}

impl AsyncRead for SavedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &mut *self;
        let Some(client) = ClientConnection::in_digest(&stream.client) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let length = stream.left.len().min(buffer.remaining());
        let part = stream.left.split_to(length);
        buffer.put_slice(&part);
        if client.is_busy() {
            stream.head.take_body(&part);
        } else if !part.is_empty() {
            stream.head.begin(client.requests());
            match stream.head.take(&part, stream.head_size) {
                Ok(is_odd) => client.head_arrives(is_odd),
                Err(_) => {
                    client.give_up(HeadFault::TooLarge);
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
            }
        }
        client.body_arrives(stream.head.body());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SavedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[async_trait]
impl Shutdown for SavedStream {
    async fn shutdown(&mut self) {}
}

impl UniqueID for SavedStream {
    fn id(&self) -> UniqueIDType {
        0
    }
}

impl Ssl for SavedStream {}

impl Peek for SavedStream {}

impl GetTimingDigest for SavedStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for SavedStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        Some(Arc::clone(&self.client))
    }
}

impl GetSocketDigest for SavedStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        None
    }
}
