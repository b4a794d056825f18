//! Connections that send nothing, or too slowly: row 1.

use crate::wire::{Dialer, END_STREAM, Offer, PREFACE, drain, frame, tcp};
use std::{io, net::Ipv4Addr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::oneshot::Sender,
    time::sleep,
};

/// A kind of slow connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// TCP only.
    Silent,
    /// TLS with h2, and no preface.
    NoPreface,
    /// A head over HTTP/1.1, byte by byte.
    Http1Head,
    /// A header block over HTTP/2, byte by byte.
    Http2Head,
    /// Empty lines before a head.
    EmptyLines,
}

/// The interval of the bytes.
const EVERY: Duration = Duration::from_secs(2);

impl Slow {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Silent,
        Self::NoPreface,
        Self::Http1Head,
        Self::Http2Head,
        Self::EmptyLines,
    ];

    /// The name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent TCP",
            Self::NoPreface => "TLS without a preface",
            Self::Http1Head => "dripping head, HTTP/1.1",
            Self::Http2Head => "dripping head, HTTP/2",
            Self::EmptyLines => "empty lines before a head",
        }
    }

    /// The time in which the connection must be gone, in seconds: the deadline (HTTP-9) and two seconds.
    pub const fn bar(self) -> f64 {
        match self {
            Self::NoPreface => 7.0,
            _ => 12.0,
        }
    }

    /// The first bytes, and those that follow.
    fn bytes(self) -> (Vec<u8>, &'static [u8]) {
        match self {
            Self::Silent | Self::NoPreface => (Vec::new(), b""),
            Self::Http1Head => (
                b"GET /v1/accounts HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".to_vec(),
                b"x",
            ),
            Self::Http2Head => {
                let head = frame(1, END_STREAM, 1, &[0; 5_000]);
                // An incomplete block: a literal whose value has 4 000 bytes.
                let begun = [&head[..9], b"\0\x01x\x7f\xa1\x1e"].concat();
                ([PREFACE, &frame(4, 0, 0, &[]), &begun].concat(), b"x")
            }
            Self::EmptyLines => (b"\r\n".to_vec(), b"\r\n"),
        }
    }

    /// Opens a connection and keeps it until the peer ends it. `opened` is dropped as soon as the connection is open.
    pub async fn hold(
        self,
        dialer: &Dialer,
        from: Ipv4Addr,
        port: u16,
        opened: Option<Sender<()>>,
    ) -> io::Result<()> {
        if self == Self::Silent {
            let mut stream = tcp(from, port).await?;
            drop(opened);
            drain(&mut stream).await;
            return Ok(());
        }
        let offer = match self {
            Self::NoPreface | Self::Http2Head => Offer::Http2,
            _ => Offer::Http1,
        };
        let mut tls = dialer.tls(from, port, offer).await?;
        let (first, next) = self.bytes();
        tls.write_all(&first).await?;
        tls.flush().await?;
        drop(opened);
        let mut some = [0; 512];
        loop {
            tokio::select! {
                read = tls.read(&mut some) => if !matches!(read, Ok(1..)) { return Ok(()) },
                () = sleep(EVERY) => {
                    tls.write_all(next).await?;
                    tls.flush().await?;
                }
            }
        }
    }
}
