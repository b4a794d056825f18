//! Loopback addresses for programs that must be told where to listen.
//!
//! Invariant: no two processes of this machine get the same port, so that several suites may run at once.

use std::{
    net::SocketAddr,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr as UnixAddress, UnixDatagram},
    },
    sync::Mutex,
};
use tokio::net::TcpSocket;

/// The first port. The kernel gives ports above 32 767 to outgoing connections, so a connection could take a port that was found by binding
/// port 0 before the gateway binds it. All blocks are below that range.
const FIRST: u16 = 20_000;

/// The ports of a block, and the number of blocks.
const PORTS: u16 = 100;
const BLOCKS: u16 = 120;

/// A block of ports, which this process has reserved until it ends.
struct Block {
    next: u16,
    end: u16,
    /// Its name is the reservation. The kernel keeps such names for each network namespace, as it does ports, and frees them with the process.
    _reservation: UnixDatagram,
}

impl Block {
    /// Reserves the first block that no process has.
    fn reserve() -> Self {
        let mut blocks = (0..BLOCKS).filter_map(|number| {
            let name = format!("portvakt-test-ports-{number}");
            let name = UnixAddress::from_abstract_name(name).unwrap();
            let reservation = UnixDatagram::bind_addr(&name).ok()?;
            let next = FIRST + number * PORTS;
            Some(Self {
                next,
                end: next + PORTS,
                _reservation: reservation,
            })
        });
        blocks.next().expect("other processes have all ports")
    }
}

/// A free loopback address, which no other call returns. The trial does not listen: a child that another thread starts has a copy of the
/// socket until it executes its program, and only a socket that listens would be in the gateway's way.
pub(crate) fn free_address() -> SocketAddr {
    static BLOCKS: Mutex<Vec<Block>> = Mutex::new(Vec::new());
    let mut blocks = BLOCKS.lock().unwrap();
    loop {
        if blocks.last().is_none_or(|block| block.next == block.end) {
            blocks.push(Block::reserve());
        }
        let block = blocks.last_mut().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], block.next));
        block.next += 1;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        if socket.bind(address).is_ok() {
            return address;
        }
    }
}

/// Another process finds the block taken.
#[test]
fn a_port_belongs_to_one_process() {
    let port = free_address().port();
    let number = (port - FIRST) / PORTS;
    let name = UnixAddress::from_abstract_name(format!("portvakt-test-ports-{number}")).unwrap();
    assert!(UnixDatagram::bind_addr(&name).is_err());
    let mut ports: Vec<u16> = (0..2 * PORTS).map(|_| free_address().port()).collect();
    ports.push(port);
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), usize::from(2 * PORTS) + 1);
}
