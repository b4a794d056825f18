//! The core behind every peer, in this process, because it must count the requests that it has.
//!
//! It answers a GET at once with 700 bytes, a path with "transactions" with 1 MiB, and a POST after [`THINKS`]. A request counts from
//! its head until the last byte of its answer is sent, or until the peer closes the connection.

use portvakt_sandbox::http1::Head;
use std::{
    future::Future,
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::Handle,
    time::sleep,
};

/// The delay of an answer to a POST.
const THINKS: Duration = Duration::from_secs(5);

/// The length of a large answer.
const LARGE: usize = 1024 * 1024;

/// A core. The task ends with its runtime.
#[derive(Clone)]
pub struct Core {
    /// Its port on the loopback address.
    pub port: u16,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Core {
    /// Starts a core.
    pub fn start(runtime: &Handle) -> Self {
        let socket = runtime.block_on(async { listen() }).unwrap();
        let port = socket.local_addr().unwrap().port();
        let counts = Arc::new(Counts::default());
        let counting = Arc::clone(&counts);
        runtime.spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&counting)));
            }
        });
        Self { port, counts }
    }

    /// The number of requests that it has.
    pub fn now(&self) -> usize {
        self.counts.now.load(Ordering::Relaxed)
    }

    /// The highest number so far.
    pub fn most(&self) -> usize {
        self.counts.most.load(Ordering::Relaxed)
    }
}

fn listen() -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    // Otherwise the kernel would take a whole large answer, also if the peer reads nothing of it.
    socket.set_send_buffer_size(64 * 1024)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(4_096)
}

/// A counted request.
struct Request<'a>(&'a Counts);

impl<'a> Request<'a> {
    fn begin(counts: &'a Counts) -> Self {
        let now = counts.now.fetch_add(1, Ordering::Relaxed) + 1;
        counts.most.fetch_max(now, Ordering::Relaxed);
        Self(counts)
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the requests of one connection, one after the other.
async fn serve(stream: TcpStream, counts: Arc<Counts>) {
    let _ = stream.set_nodelay(true);
    let (mut reader, mut writer) = stream.into_split();
    let mut read = Vec::new();
    loop {
        let Some(end) = find(&read, b"\r\n\r\n") else {
            if !matches!(reader.read_buf(&mut read).await, Ok(1..)) {
                return;
            }
            continue;
        };
        let Ok(head) = Head::parse(&read[..end + 4]) else {
            return;
        };
        let request = Request::begin(&counts);
        let whole = head.size + head.length().unwrap_or(0);
        while read.len() < whole {
            if !matches!(reader.read_buf(&mut read).await, Ok(1..)) {
                return;
            }
        }
        read.drain(..whole);
        let answer = async {
            if head.line.starts_with("POST ") {
                sleep(THINKS).await;
            }
            writer.write_all(&answer(&head.line)).await.is_ok()
        };
        if !unless_closed(&mut reader, &mut read, answer).await {
            return;
        }
        drop(request);
    }
}

/// Whether the answer was sent before the peer closed the connection.
async fn unless_closed(
    reader: &mut tokio::net::tcp::OwnedReadHalf,
    read: &mut Vec<u8>,
    answer: impl Future<Output = bool>,
) -> bool {
    tokio::pin!(answer);
    loop {
        tokio::select! {
            sent = &mut answer => return sent,
            more = reader.read_buf(read) => if !matches!(more, Ok(1..)) { return false },
        }
    }
}

fn answer(line: &str) -> Vec<u8> {
    let length = if line.contains("transactions") {
        LARGE
    } else {
        700
    };
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{\"pad\":\""
    )
    .into_bytes();
    answer.extend(std::iter::repeat_n(b'x', length - 10));
    answer.extend_from_slice(b"\"}");
    answer
}

/// The first position of some bytes.
pub fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|some| some == what)
}
