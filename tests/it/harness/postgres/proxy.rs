//! A proxy in front of PostgreSQL that loses commits, delays answers and freezes connections.

use portvakt::clock::Stopwatch;
use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, Weak,
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
    frozen: AtomicBool,
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
        self.faults.frozen.store(frozen, Ordering::SeqCst);
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
            for (came, bytes) in coming {
                let due = came + Duration::from_millis(faults.delay.load(Ordering::SeqCst));
                std::thread::sleep(due.saturating_sub(watch.elapsed()));
                wait_while_frozen(&faults);
                if !mute.load(Ordering::SeqCst) && client.write_all(&bytes).is_err() {
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

fn wait_while_frozen(faults: &Faults) {
    while faults.frozen.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
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
                1 => {
                    mute.store(true, Ordering::SeqCst);
                    let client = client.try_clone()?;
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(200));
                        let _ = client.shutdown(Shutdown::Both);
                    });
                }
                2 => return Err(ErrorKind::ConnectionAborted.into()),
                _ => {}
            }
        }
        server.write_all(&head)?;
        server.write_all(&body)?;
    }
}
