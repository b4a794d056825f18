//! Reading and ending an HTTP/2 connection: frames are inspected as they pass, and cut or held back where they must be (HTTP-9).

use super::super::{
    client::ClientConnection,
    deadline::Awaited,
    frames::{Cut, FrameInspector, LibraryRefusal, Stop},
};
use super::{ClientStream, Protocol};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The interval at which a connection with too many streams looks whether one has ended.
const PAUSE: Duration = Duration::from_millis(5);

impl ClientStream {
    /// Reads HTTP/2 frames.
    pub(super) fn poll_http2(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(cut) = self.cut {
            return Poll::Ready(self.end(context, cut));
        }
        let is_verified =
            ClientConnection::in_digest(&self.client).is_some_and(|client| !client.slot.is_empty());
        let Protocol::Http2(frames) = &mut self.protocol else {
            return Poll::Ready(Ok(()));
        };
        while frames.is_full(is_verified) {
            // The client is not slow while nothing is read.
            self.reading.clear();
            if !self.pausing.is_over(context, (), PAUSE) {
                return Poll::Pending;
            }
            self.pausing.clear();
        }
        let before = buffer.filled().len();
        if self.waiting.is_empty() {
            let Poll::Ready(read) = Pin::new(&mut self.tls).poll_read(context, buffer) else {
                return self.await_frames(context);
            };
            read?;
        } else {
            let count = self.waiting.len().min(buffer.remaining());
            buffer.put_slice(self.waiting.get(..count).unwrap_or_default());
            self.waiting.drain(..count);
        }
        let bytes = buffer.filled_mut().get_mut(before..).unwrap_or_default();
        let Err((passed, stop)) = frames.inspect(bytes, is_verified) else {
            return Poll::Ready(Ok(()));
        };
        let held = bytes.get(passed..).unwrap_or_default();
        match stop {
            Stop::Full => self.waiting = [held, &self.waiting].concat(),
            Stop::Cut(cut) => self.cut = Some(cut),
        }
        buffer.set_filled(before.saturating_add(passed));
        if passed > 0 {
            return Poll::Ready(Ok(()));
        }
        // To the HTTP layer, a read of nothing would be the end of the input.
        self.poll_http2(context, buffer)
    }

    /// Waits for frames within the deadlines.
    fn await_frames(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Protocol::Http2(frames) = &self.protocol else {
            return Poll::Pending;
        };
        let Some(awaited) = frames.awaited() else {
            self.reading.clear();
            return Poll::Pending;
        };
        let (limit, cut) = match awaited {
            Awaited::FirstByte | Awaited::Request(_) | Awaited::Preface => {
                (self.shared.limits.preface_timeout, Cut::SlowPreface)
            }
            Awaited::Head(_) => (self.shared.limits.head_timeout, Cut::SlowHead),
        };
        if !self.reading.is_over(context, awaited, limit) {
            return Poll::Pending;
        }
        Poll::Ready(self.end(context, cut))
    }

    /// Reports the end of the connection, and sends its reason if possible.
    fn end(&mut self, context: &mut Context<'_>, cut: Cut) -> io::Result<()> {
        self.cut_off(cut);
        self.send_goaway(context, Some(cut));
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Sends GOAWAY if no frame is incomplete. The gateway does not wait for a client that does not accept these few bytes at once.
    pub(super) fn send_goaway(&mut self, context: &mut Context<'_>, cut: Option<Cut>) {
        if let Protocol::Http2(frames) = &mut self.protocol
            && let Some(goaway) = frames.goaway(cut)
            && let Poll::Ready(Ok(count)) = Pin::new(&mut self.tls).poll_write(context, &goaway)
        {
            // This GOAWAY is reported as a cut.
            frames.wrote(goaway.get(..count).unwrap_or_default());
            frames.take_refusals();
            let _ = Pin::new(&mut self.tls).poll_flush(context);
        }
    }

    /// Inspects sent frames: reports the library's refusals, and cuts the connection if the budget is exhausted.
    pub(super) fn inspect_sent(&mut self, inspect: impl FnOnce(&mut FrameInspector) -> bool) {
        let Protocol::Http2(frames) = &mut self.protocol else {
            return;
        };
        if !inspect(frames) {
            self.cut = Some(Cut::Flood);
        }
        for refusal in frames.take_refusals() {
            let client = ClientConnection::in_digest(&self.client);
            self.shared.reports.refused_by_library(refusal, client);
            if refusal == LibraryRefusal::Flood {
                self.permit.flooded();
            }
            if refusal.ends_connection()
                && let Some(client) = client
            {
                client.cut_off(refusal.cause());
            }
        }
    }
}
