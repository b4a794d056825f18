//! A pool that gives each transaction another connection of the server, as PgBouncer with `pool_mode = transaction`.

use super::Behind;
use crate::harness::postgres;
use portvakt::state::StateStore;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

/// The code of a request for TLS, in place of a version.
const TLS: [u8; 4] = [4, 210, 22, 47];

/// A pool with one connection of the server, which every client uses in turn.
struct TransactionPool(SocketAddr);

impl TransactionPool {
    fn start(socket: &Path, user: &str) -> Self {
        let mut server = UnixStream::connect(socket).unwrap();
        let hello = format!("\0\x03\0\0user\0{user}\0database\0postgres\0\0");
        let length = u32::try_from(hello.len() + 4).unwrap().to_be_bytes();
        server
            .write_all(&[&length, hello.as_bytes()].concat())
            .unwrap();
        let greeting = until_ready(&mut server).unwrap();
        let server = Arc::new(Mutex::new(server));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, greeting) = (Arc::clone(&server), greeting.clone());
                thread::spawn(move || serve(client, &greeting, &server));
            }
        });
        Self(address)
    }
}

/// Serves a client until it leaves: `None`. The messages up to a Query or a Sync are a transaction, unless one begins in them, which the store
/// does not do before its first check.
fn serve(mut client: TcpStream, greeting: &[u8], server: &Mutex<UnixStream>) -> Option<()> {
    loop {
        let mut length = [0; 4];
        client.read_exact(&mut length).ok()?;
        let mut hello = vec![0; usize::try_from(u32::from_be_bytes(length)).ok()? - 4];
        client.read_exact(&mut hello).ok()?;
        if hello != TLS {
            break;
        }
        client.write_all(b"N").ok()?;
    }
    client.write_all(greeting).ok()?;
    loop {
        let mut batch = Vec::new();
        loop {
            let message = read(&mut client)?;
            let kind = message[0];
            if kind == b'X' {
                return None;
            }
            batch.extend(message);
            if matches!(kind, b'Q' | b'S') {
                break;
            }
        }
        let mut server = server.lock().unwrap();
        server.write_all(&batch).ok()?;
        let answer = until_ready(&mut server)?;
        drop(server);
        client.write_all(&answer).ok()?;
    }
}

/// The messages up to ReadyForQuery.
fn until_ready(server: &mut UnixStream) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let message = read(server)?;
        let is_last = message[0] == b'Z';
        all.extend(message);
        if is_last {
            return Some(all);
        }
    }
}

/// One message: its kind, its length, its content.
fn read(from: &mut impl Read) -> Option<Vec<u8>> {
    let mut head = [0; 5];
    from.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes(head[1..].try_into().unwrap());
    let mut message = head.to_vec();
    message.resize(usize::try_from(length).ok()? + 1, 0);
    from.read_exact(&mut message[5..]).ok()?;
    Some(message)
}

#[test]
fn a_pool_of_transactions_is_refused_at_the_start() {
    let Some(mut behind) = Behind::new() else {
        return;
    };
    // The same database without the pool is good.
    drop(behind.open());
    let user = behind.user().to_owned();
    let pool = TransactionPool::start(&postgres().unwrap().socket(), &user);
    let mut direct = tokio_postgres::Config::new();
    direct
        .host("127.0.0.1")
        .port(pool.0.port())
        .user(user)
        .dbname("postgres");
    behind.postgres().server = direct;
    for fault in [
        StateStore::open(&behind.settings).map(drop),
        StateStore::try_open(&behind.settings),
    ] {
        let fault = fault.unwrap_err().to_string();
        assert!(fault.contains("pool_mode = session"), "{fault}");
    }
}
