//! The traits that pingora requires of a stream in addition to reading and writing: shutdown, id, protocol and digests.

use super::{ClientStream, Protocol};
use async_trait::async_trait;
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType, raw_connect::ProxyDigest,
};
use std::{os::fd::AsRawFd, sync::Arc, time::Duration};
use tokio::{io::AsyncWriteExt, time::timeout};

/// The time-out of the TLS close_notify.
const GOODBYE: Duration = Duration::from_secs(5);

#[async_trait]
impl Shutdown for ClientStream {
    async fn shutdown(&mut self) {
        // A failure is ignored: the client may have disconnected.
        let _ = timeout(GOODBYE, AsyncWriteExt::shutdown(self)).await;
    }
}

impl UniqueID for ClientStream {
    fn id(&self) -> UniqueIDType {
        self.tls.get_ref().0.get_ref().as_raw_fd()
    }
}

impl Ssl for ClientStream {
    fn selected_alpn_proto(&self) -> Option<ALPN> {
        match self.protocol {
            Protocol::Http1(_) => Some(ALPN::H1),
            Protocol::Http2(_) => Some(ALPN::H2),
        }
    }
}

impl Peek for ClientStream {}

impl GetTimingDigest for ClientStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for ClientStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        Some(Arc::clone(&self.client))
    }
}

impl GetSocketDigest for ClientStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        Some(Arc::clone(&self.socket))
    }
}
