//! TLS 1.2: a client that asks for another handshake is told at once that there is none, and its connection stays open.
//!
//! The client is OpenSSL's own program, whose command `R` asks for it; between it and the gateway, the test reads the types of TLS records.

use crate::harness::{Call, Gate, LIMIT, Program, connect_plainly, missing, render};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    process::{ChildStdin, Command, Stdio},
    thread,
};

/// RFC 5246, section 6.2.1.
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// A client behind a wire on which the test reads what the gateway sends.
struct Wired {
    _program: Program,
    input: ChildStdin,
    client: TcpStream,
    gateway: TcpStream,
}

impl Wired {
    /// Connects OpenSSL's client, and passes the handshake on.
    fn connect(gate: &Gate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut program = Command::new("openssl");
        program.args(["s_client", "-connect", &address, "-tls1_2"]);
        program.args(["-servername", "localhost", "-alpn", "http/1.1"]);
        program.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut program = Program(program.stderr(Stdio::null()).spawn().unwrap());
        let input = program.0.stdin.take().unwrap();
        let (client, _) = listener.accept().unwrap();
        let gateway = connect_plainly(gate.address()).unwrap();
        let [mut from, mut to] = [&client, &gateway].map(|stream| stream.try_clone().unwrap());
        thread::spawn(move || io::copy(&mut from, &mut to));
        let mut wired = Self {
            _program: program,
            input,
            client,
            gateway,
        };
        while wired.pass() != CHANGE_CIPHER_SPEC {}
        assert_eq!(wired.pass(), HANDSHAKE, "Finished");
        wired
    }

    /// The next record of the gateway.
    fn record(&mut self) -> Vec<u8> {
        let mut record = vec![0; 5];
        self.gateway.read_exact(&mut record).unwrap();
        let length = u16::from_be_bytes([record[3], record[4]]);
        record.resize(5 + usize::from(length), 0);
        self.gateway.read_exact(&mut record[5..]).unwrap();
        record
    }

    /// Passes the next record of the gateway on to the client; returns its type.
    fn pass(&mut self) -> u8 {
        let record = self.record();
        self.client.write_all(&record).unwrap();
        record[0]
    }

    /// Whether the gateway has sent nothing more, and has not closed the connection.
    fn is_silent_and_open(&self) -> bool {
        self.gateway.set_nonblocking(true).unwrap();
        let peeked = self.gateway.peek(&mut [0]);
        self.gateway.set_nonblocking(false).unwrap();
        peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

/// The alert comes while the connection waits for a request: before the first one, and between two. The end of the connection, which would
/// bring the alert as well, brings another record behind it.
#[test]
fn a_renegotiation_is_declined_at_once() {
    if Command::new("openssl").arg("version").output().is_err() {
        return missing("openssl is not installed");
    }
    let gate = Gate::builder()
        .listener("keepalive: 1h")
        .listener(&format!("first_byte_timeout: {}s", LIMIT.as_secs()))
        .start();
    for is_after_a_request in [false, true] {
        let mut wired = Wired::connect(&gate);
        if is_after_a_request {
            let request = render(&gate.seal(&Call::plain()));
            wired.input.write_all(&request).unwrap();
            assert_eq!(wired.pass(), APPLICATION_DATA);
            assert_eq!(gate.upstream().take().len(), 1);
        }
        wired.input.write_all(b"R\n").unwrap();
        // The client does not get it, because it would close the connection.
        assert_eq!(wired.record()[0], ALERT, "{is_after_a_request}");
        assert!(wired.is_silent_and_open(), "{is_after_a_request}");
        assert_eq!(gate.metric_now("portvakt_open_connections", &[]), 1.0);
        drop(wired);
        gate.eventually_metric("portvakt_open_connections", &[], 0.0);
    }
}
