//! The head of an HTTP/1.1 answer, kept until the first part of its body, so that one record and one system call send both.
//!
//! Invariant: after a head pingora writes a body or flushes before it waits for anything, so no head stays here. It flushes a head
//! without a body, with a chunked one and before the end of the request (100): these are sent at once. A kept head counts as written
//! there (`response_written`), also if its client has left.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::AsyncWrite;

/// The head that waits for its body.
#[derive(Debug, Default)]
pub(super) struct KeptHead {
    bytes: Vec<u8>,
    /// The number of the latest request of which a head was kept; 0: none.
    request: u32,
}

impl KeptHead {
    /// Keeps these bytes if they are the first that answer this request. Returns whether they are kept. A second head of the request, after
    /// 100, is not.
    pub(super) fn keep(&mut self, request: u32, bytes: &[u8]) -> bool {
        let begins = request != self.request;
        if begins {
            self.request = request;
            self.bytes = bytes.to_vec();
        }
        begins
    }

    /// Whether no head waits.
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes the head, and as much of these bytes after it as the stream takes. Returns the number of those bytes.
    pub(super) fn write_with(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        while !self.bytes.is_empty() {
            let parts = [IoSlice::new(&self.bytes), IoSlice::new(bytes)];
            let count = ready!(Pin::new(&mut *stream).poll_write_vectored(context, &parts))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            if let Some(beyond) = count.checked_sub(self.bytes.len()) {
                self.bytes = Vec::new();
                // A result of nothing would be an error for whoever writes the body.
                if beyond > 0 || bytes.is_empty() {
                    return Poll::Ready(Ok(beyond));
                }
            } else {
                self.bytes.drain(..count);
            }
        }
        Pin::new(stream).poll_write(context, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// Takes as many bytes at once as each number says; `None`: none for now.
    struct Slow {
        takes: Vec<Option<usize>>,
        writes: Vec<Vec<u8>>,
    }

    impl Slow {
        fn new(takes: &[Option<usize>]) -> Self {
            Self {
                takes: takes.iter().rev().copied().collect(),
                writes: Vec::new(),
            }
        }
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(context, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let Some(most) = self.takes.pop().unwrap_or(Some(usize::MAX)) else {
                return Poll::Pending;
            };
            let mut bytes = slices
                .iter()
                .flat_map(|slice| slice.to_vec())
                .collect::<Vec<_>>();
            bytes.truncate(most);
            let count = bytes.len();
            self.writes.push(bytes);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn write(head: &mut KeptHead, stream: &mut Slow, bytes: &[u8]) -> Poll<Option<usize>> {
        let mut context = Context::from_waker(Waker::noop());
        head.write_with(stream, &mut context, bytes).map(Result::ok)
    }

    fn head() -> KeptHead {
        KeptHead {
            bytes: b"head".to_vec(),
            request: 1,
        }
    }

    #[test]
    fn the_first_bytes_that_answer_a_request_are_kept() {
        let mut head = KeptHead::default();
        // A request that was not read to the end of its head has no number.
        assert!(!head.keep(0, b"refused"));
        assert!(head.keep(1, b"head") && !head.keep(1, b"body"));
        assert_eq!(head.bytes, b"head");
        assert!(head.keep(2, b"next"));
    }

    #[test]
    fn head_and_body_are_one_write() {
        let (mut head, mut stream) = (head(), Slow::new(&[]));
        assert_eq!(write(&mut head, &mut stream, b"body"), Poll::Ready(Some(4)));
        assert_eq!(write(&mut head, &mut stream, b"more"), Poll::Ready(Some(4)));
        assert_eq!(stream.writes, [&b"headbody"[..], b"more"]);
        assert_eq!(head.bytes.capacity(), 0);
    }

    #[test]
    fn every_byte_is_written_once_however_little_the_stream_takes() {
        for first in 1..=9 {
            for second in 1..=9 {
                let takes = [None, Some(first), None, Some(second), None];
                let (mut head, mut stream) = (head(), Slow::new(&takes));
                let mut left = &b"body"[..];
                for _ in 0..99 {
                    if let Poll::Ready(count) = write(&mut head, &mut stream, left) {
                        left = &left[count.unwrap()..];
                    }
                    if left.is_empty() {
                        break;
                    }
                }
                assert_eq!(stream.writes.concat(), b"headbody", "{first} {second}");
            }
        }
    }

    #[test]
    fn a_head_alone() {
        let (mut head, mut stream) = (head(), Slow::new(&[Some(1), None]));
        assert_eq!(write(&mut head, &mut stream, b""), Poll::Pending);
        assert_eq!(write(&mut head, &mut stream, b""), Poll::Ready(Some(0)));
        assert_eq!(stream.writes, [&b"h"[..], b"ead"]);
    }

    #[test]
    fn a_stream_that_takes_nothing_is_a_fault() {
        let (mut head, mut stream) = (head(), Slow::new(&[Some(0)]));
        assert_eq!(write(&mut head, &mut stream, b"body"), Poll::Ready(None));
    }
}
