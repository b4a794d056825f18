//! The TCP connection of a client, below TLS.
//!
//! rustls reads at most 4 KiB at once. Here, one system call reads a whole request with its certificate, and bytes that do not fit are kept
//! until rustls asks again. Invariant: a connection that waits for its client keeps no buffer, because most connections wait.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// The most bytes of one read: enough for a request with its certificate and a body of 1 KiB.
const PIECE: usize = 8 * 1024;

/// A client's TCP connection.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    /// Bytes that were read, and the number of those that are taken.
    kept: Vec<u8>,
    taken: usize,
}

impl Socket {
    /// Wraps an accepted connection.
    pub(super) const fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            kept: Vec::new(),
            taken: 0,
        }
    }

    /// The TCP connection.
    pub(super) const fn get_ref(&self) -> &TcpStream {
        &self.stream
    }

    /// Waits for the first byte; returns false if the connection ends without one. The byte stays.
    pub(super) async fn has_begun(&mut self) -> bool {
        if self.kept.is_empty() {
            let mut nothing = ReadBuf::new(&mut []);
            let polled = poll_fn(|context| self.poll_piece(context, &mut nothing)).await;
            return polled.is_ok() && !self.kept.is_empty();
        }
        true
    }

    /// Reads a piece into the buffer, and keeps bytes that do not fit.
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut piece = [const { MaybeUninit::uninit() }; PIECE];
        let mut piece = ReadBuf::uninit(&mut piece);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece))?;
        let fitting = buffer.remaining().min(piece.filled().len());
        let (now, later) = piece.filled().split_at_checked(fitting).unwrap_or_default();
        buffer.put_slice(now);
        if !later.is_empty() {
            self.kept = later.to_vec();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = &mut *self;
        if socket.kept.is_empty() {
            return socket.poll_piece(context, buffer);
        }
        let kept = socket.kept.get(socket.taken..).unwrap_or_default();
        let fitting = buffer.remaining().min(kept.len());
        buffer.put_slice(kept.get(..fitting).unwrap_or_default());
        socket.taken = socket.taken.saturating_add(fitting);
        if socket.taken == socket.kept.len() {
            socket.kept = Vec::new();
            socket.taken = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        match slices {
            // rustls asks like this for one record too, and send costs the kernel less than writev.
            [only] => stream.poll_write(context, only),
            _ => stream.poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    async fn pair() -> (TcpStream, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (server, _) = listener.accept().await.unwrap();
        (client.unwrap(), Socket::new(server))
    }

    #[tokio::test]
    async fn bytes_arrive_in_order_and_leave_no_buffer() {
        let (mut client, mut socket) = pair().await;
        let sent: Vec<u8> = (0..20_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        client.write_all(&sent).await.unwrap();
        assert!(socket.has_begun().await && socket.has_begun().await);
        let mut read = Vec::new();
        for size in [1, 12, 4_096, 5, 10_000].into_iter().cycle() {
            if read.len() == sent.len() {
                break;
            }
            let mut part = vec![0; size];
            let count = socket.read(&mut part).await.unwrap();
            read.extend_from_slice(&part[..count]);
        }
        assert_eq!(read, sent);
        assert_eq!((socket.kept.capacity(), socket.taken), (0, 0));
    }

    #[tokio::test]
    async fn a_connection_without_a_byte() {
        let (client, mut socket) = pair().await;
        drop(client);
        assert!(!socket.has_begun().await);
    }
}
