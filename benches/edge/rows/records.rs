//! Row 5: the CPU time of a head that arrives in records of one byte, by the length of the part before.

use crate::{
    arena::{Arena, Attacked},
    table::{Better, Line, Metric},
    wire::Offer,
};
use rustls::{ClientConnection, StreamOwned};
use std::{
    io::{self, Write},
    net::{Ipv4Addr, TcpStream},
    thread::sleep,
    time::Duration,
};

/// The lengths of a head, in KiB.
const SIZES: [usize; 5] = [1, 4, 8, 16, 31];

/// Records of one byte, and the pause after each, in which the peer reads it.
const RECORDS: u32 = 1_000;
const PAUSE: Duration = Duration::from_micros(150);

/// A line for each length.
pub fn run(arena: &Arena) -> Vec<Line> {
    let mut lines = SIZES.map(|size| {
        let cpu = Metric {
            name: "CPU",
            unit: " µs",
            digits: 1,
            better: Better::Lower,
            bar: Some(20.0),
            slack: Some(1.0),
        };
        Line::new("5", format!("a one-byte record at {size} KiB"), vec![cpu])
    });
    for attacked in arena.each() {
        for (size, line) in SIZES.iter().zip(&mut lines) {
            // A peer that takes no head of this length ends the connection.
            let cpu = cost(arena, &attacked, size * 1024).ok();
            line.values[attacked.column] = vec![cpu];
        }
    }
    lines.into()
}

/// A head without an end, in fields of at most 500 bytes.
pub fn endless_head(length: usize) -> Vec<u8> {
    let mut head = b"GET /v1/accounts HTTP/1.1\r\nHost: localhost\r\n".to_vec();
    for number in 0.. {
        let line = format!("X-Field-{number}: ");
        let value = length.saturating_sub(head.len() + line.len() + 2).min(500);
        if value == 0 {
            break;
        }
        head.extend_from_slice(line.as_bytes());
        head.extend(std::iter::repeat_n(b'x', value));
        head.extend_from_slice(b"\r\n");
    }
    head
}

/// Microseconds of CPU time for each record.
fn cost(arena: &Arena, attacked: &Attacked, length: usize) -> io::Result<f64> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, attacked.running.port))?;
    stream.set_nodelay(true)?;
    let name = "localhost".try_into().unwrap();
    let tls = ClientConnection::new(arena.dialer.config(Offer::Http1), name);
    let mut tls = StreamOwned::new(tls.unwrap(), stream);
    tls.write_all(&endless_head(length))?;
    tls.write_all(b"X-Last: ")?;
    sleep(Duration::from_millis(50));
    let before = attacked.running.cpu();
    for _ in 0..RECORDS {
        tls.write_all(b"x")?;
        sleep(PAUSE);
    }
    let spent = attacked.running.cpu() - before;
    // A write to a closed connection may succeed once.
    tls.sock.set_nonblocking(true)?;
    match tls.sock.peek(&mut [0]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        // TLS 1.3 tickets are unread; an answer or the end is more than those.
        Ok(1..) if !has_ended(&mut tls) => {}
        _ => return Err(io::ErrorKind::ConnectionAborted.into()),
    }
    Ok(spent.as_secs_f64() * 1e6 / f64::from(RECORDS))
}

/// Whether the peer sent an answer or ended the connection.
fn has_ended(tls: &mut StreamOwned<ClientConnection, TcpStream>) -> bool {
    !matches!(io::Read::read(tls, &mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}
