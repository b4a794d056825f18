//! A proxy in front of PostgreSQL that loses commits, delays answers and freezes connections.

use crate::harness::let_pass;
use portvakt::clock::Stopwatch;
use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

/// The part of the next commit that is lost, with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The server commits, and its answer is lost.
    Answer = 1,
    /// COMMIT does not arrive.
    Commit = 2,
}

#[derive(Default)]
struct Faults {
    lost: AtomicU8,
    /// Whether nothing passes, and no connection ends.
    frozen: Mutex<bool>,
    thawed: Condvar,
    /// The delay of the server's answers, in milliseconds.
    delay: AtomicU64,
    open: Mutex<Vec<Weak<TcpStream>>>,
}

/// A running proxy, for one server.
pub(crate) struct Proxy {
    address: SocketAddr,
    faults: Arc<Faults>,
}

impl Proxy {
    /// Starts a proxy in front of a Unix socket.
    pub(crate) fn start(socket: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let faults = Arc::new(Faults::default());
        let (shared, socket) = (Arc::clone(&faults), socket.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let client = Arc::new(client);
                let mut open = shared.open.lock().unwrap();
                open.retain(|open| open.strong_count() > 0);
                open.push(Arc::downgrade(&client));
                drop(open);
                let (faults, socket) = (Arc::clone(&shared), socket.clone());
                std::thread::spawn(move || pass(&client, &socket, &faults));
            }
        });
        Self { address, faults }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loses a part of the next commit.
    pub(crate) fn lose(&self, lost: Lost) {
        self.faults.lost.store(lost as u8, Ordering::SeqCst);
    }

    /// Stops all bytes, or lets them pass again.
    pub(crate) fn freeze(&self, frozen: bool) {
        *self.faults.frozen.lock().unwrap() = frozen;
        self.faults.thawed.notify_all();
    }

    /// Delays the server's answers.
    pub(crate) fn delay(&self, delay: Duration) {
        let delay = u64::try_from(delay.as_millis()).unwrap();
        self.faults.delay.store(delay, Ordering::SeqCst);
    }

    /// Ends all connections.
    pub(crate) fn cut(&self) {
        for open in self.faults.open.lock().unwrap().drain(..) {
            if let Some(open) = open.upgrade() {
                let _ = open.shutdown(Shutdown::Both);
            }
        }
    }
}

fn pass(client: &TcpStream, socket: &PathBuf, faults: &Arc<Faults>) {
    let _ = client.set_nodelay(true);
    let Ok(server) = UnixStream::connect(socket) else {
        return;
    };
    let mute = Arc::new(AtomicBool::new(false));
    let watch = Stopwatch::start();
    let (answers, coming) = mpsc::channel::<(Duration, Vec<u8>)>();
    let reading = {
        let mut server = server.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 16_384];
            while let Ok(read @ 1..) = server.read(&mut buffer) {
                if answers
                    .send((watch.elapsed(), buffer[..read].to_vec()))
                    .is_err()
                {
                    break;
                }
            }
        })
    };
    let writing = {
        let mut client = client.try_clone().unwrap();
        let (faults, mute) = (Arc::clone(faults), Arc::clone(&mute));
        std::thread::spawn(move || {
            let mut lost = Vec::new();
            for (came, bytes) in coming {
                let due = came + Duration::from_millis(faults.delay.load(Ordering::SeqCst));
                // The delay of the line.
                let_pass(due.saturating_sub(watch.elapsed()));
                wait_while_frozen(&faults);
                if mute.load(Ordering::SeqCst) {
                    lost.extend(bytes);
                    if has_ended(&lost) {
                        break;
                    }
                } else if client.write_all(&bytes).is_err() {
                    break;
                }
            }
            let _ = client.shutdown(Shutdown::Both);
        })
    };
    let _ = requests(client, &server, faults, &mute);
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
    let _ = reading.join();
    let _ = writing.join();
}

/// Whether the answers contain the outcome of a COMMIT.
fn has_ended(answers: &[u8]) -> bool {
    let outcomes: [&[u8]; 3] = [b"COMMIT\0", b"ROLLBACK\0", b"SERROR\0"];
    outcomes
        .iter()
        .any(|outcome| answers.windows(outcome.len()).any(|part| part == *outcome))
}

fn wait_while_frozen(faults: &Faults) {
    let frozen = faults.frozen.lock();
    let frozen = frozen.unwrap_or_else(PoisonError::into_inner);
    drop(faults.thawed.wait_while(frozen, |frozen| *frozen));
}

/// Passes the client's messages on, and finds the execution of the prepared COMMIT.
fn requests(
    mut client: &TcpStream,
    mut server: &UnixStream,
    faults: &Faults,
    mute: &AtomicBool,
) -> std::io::Result<()> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut startup)?;
    server.write_all(&length)?;
    server.write_all(&startup)?;
    let mut commit: Option<Vec<u8>> = None;
    loop {
        let mut head = [0; 5];
        client.read_exact(&mut head)?;
        let mut body =
            vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4];
        client.read_exact(&mut body)?;
        wait_while_frozen(faults);
        let mut texts = body.split(|byte| *byte == 0);
        let (first, second) = (
            texts.next().unwrap_or_default(),
            texts.next().unwrap_or_default(),
        );
        if head[0] == b'P' && second == b"COMMIT" {
            commit = Some(first.to_vec());
        }
        if head[0] == b'B' && commit.as_deref() == Some(second) {
            match faults.lost.swap(0, Ordering::SeqCst) {
                // The connection ends once the server has answered.
                1 => mute.store(true, Ordering::SeqCst),
                2 => return Err(ErrorKind::ConnectionAborted.into()),
                _ => {}
            }
        }
        server.write_all(&head)?;
        server.write_all(&body)?;
    }
}
