//! CRLs, OCSP responders, and HTTP servers with given answers.

use super::{
    address::free_address,
    pki::{Ca, Issued, der, der_oid, der_sequence},
    waiting::{LIMIT, RAN_OUT, let_pass},
};
use openssl::{hash::MessageDigest, pkey::PKey, sign::Signer, x509::X509};
use portvakt::clock::Timestamp;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    time::Duration,
};
use tempfile::TempDir;

/// The content of a CRL, including its faults.
#[derive(Clone)]
pub(crate) struct Crl {
    /// The serial numbers, as in `LeafSpec::serial`.
    pub(crate) revoked: Vec<Vec<u8>>,
    /// thisUpdate.
    pub(crate) from: Timestamp,
    /// nextUpdate, if any.
    pub(crate) to: Option<Timestamp>,
    /// Extensions: OID, critical, content.
    pub(crate) extensions: Vec<(Vec<u64>, bool, Vec<u8>)>,
    /// Extensions of each entry.
    pub(crate) entry_extensions: Vec<(Vec<u64>, bool, Vec<u8>)>,
    /// The last arc of the signature algorithm's OID: 11 SHA-256, 5 SHA-1.
    pub(crate) algorithm: u64,
}

impl Crl {
    /// A CRL without faults, valid for two hours.
    pub(crate) fn at(now: Timestamp) -> Self {
        Self {
            revoked: Vec::new(),
            from: now,
            to: Some(Timestamp::from_unix(now.unix() + 7_200)),
            extensions: Vec::new(),
            entry_extensions: Vec::new(),
            algorithm: 11,
        }
    }

    /// The same CRL with this serial number added.
    pub(crate) fn revoking(mut self, serial: &[u8]) -> Self {
        self.revoked.push(serial.to_vec());
        self
    }

    /// Issues the CRL in the name of a CA, signed with a key.
    pub(crate) fn sign(&self, ca: &Ca, key: &str) -> Vec<u8> {
        let issuer = X509::from_der(ca.der()).unwrap();
        let algorithm = der_sequence(&[
            der_oid(&[1, 2, 840, 113_549, 1, 1, self.algorithm]),
            vec![5, 0],
        ]);
        let mut tbs = vec![
            vec![2, 1, 1],
            algorithm.clone(),
            issuer.subject_name().to_der().unwrap(),
            utc(self.from),
        ];
        tbs.extend(self.to.map(utc));
        if !self.revoked.is_empty() {
            let entries: Vec<_> = self
                .revoked
                .iter()
                .map(|serial| self.entry(serial))
                .collect();
            tbs.push(der_sequence(&entries));
        }
        if !self.extensions.is_empty() {
            tbs.push(der(0xa0, &extensions(&self.extensions)));
        }
        let tbs = der_sequence(&tbs);
        let digest = match self.algorithm {
            11 => MessageDigest::sha256(),
            _ => MessageDigest::sha1(),
        };
        let key = PKey::private_key_from_pem(key.as_bytes()).unwrap();
        let signature = Signer::new(digest, &key)
            .unwrap()
            .sign_oneshot_to_vec(&tbs)
            .unwrap();
        let bits = der(3, &[&[0][..], &signature].concat());
        der_sequence(&[tbs, algorithm, bits])
    }

    fn entry(&self, serial: &[u8]) -> Vec<u8> {
        let mut parts = vec![der(2, serial), utc(self.from)];
        if !self.entry_extensions.is_empty() {
            parts.push(extensions(&self.entry_extensions));
        }
        der_sequence(&parts)
    }
}

fn extensions(all: &[(Vec<u64>, bool, Vec<u8>)]) -> Vec<u8> {
    let each = |(oid, critical, content): &(Vec<u64>, bool, Vec<u8>)| {
        let mut parts = vec![der_oid(oid)];
        if *critical {
            parts.push(vec![1, 1, 0xff]);
        }
        parts.push(der(4, content));
        der_sequence(&parts)
    };
    der_sequence(&all.iter().map(each).collect::<Vec<_>>())
}

fn utc(at: Timestamp) -> Vec<u8> {
    let seconds = i64::try_from(at.unix()).unwrap();
    let at = time::OffsetDateTime::from_unix_timestamp(seconds).unwrap();
    let text = format!(
        "{:02}{:02}{:02}{:02}{:02}{:02}Z",
        at.year() % 100,
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    der(0x17, text.as_bytes())
}

/// An answer of a server.
#[derive(Clone)]
pub(crate) struct Said {
    /// The rest of the status line, and headers: `200 OK\r\nX: y`.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// The delay before the answer.
    pub(crate) after: Duration,
}

impl Said {
    /// 200 without delay.
    pub(crate) fn ok(body: Vec<u8>) -> Self {
        Self {
            head: "200 OK".into(),
            body,
            after: Duration::ZERO,
        }
    }
}

type Says = Box<dyn Fn(&[u8]) -> Said + Send>;

/// An HTTP server that computes each answer from the request's body.
pub(crate) struct Source {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    says: Arc<Mutex<Says>>,
}

impl Source {
    /// A server with one fixed answer.
    pub(crate) fn saying(says: impl Fn(&[u8]) -> Said + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let source = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            says: Arc::new(Mutex::new(Box::new(says))),
        };
        let (asked, says) = (Arc::clone(&source.asked), Arc::clone(&source.says));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, says) = (Arc::clone(&asked), Arc::clone(&says));
                std::thread::spawn(move || {
                    asked.fetch_add(1, Ordering::SeqCst);
                    let Some(request) = read(&stream) else { return };
                    let said = says.lock().unwrap()(&request);
                    let_pass(said.after);
                    let _ = answer(&stream, &said);
                });
            }
        });
        source
    }

    /// A server of these bytes.
    pub(crate) fn serving(body: Vec<u8>) -> Self {
        Self::saying(move |_| Said::ok(body.clone()))
    }

    /// Replaces the answer.
    pub(crate) fn say(&self, says: impl Fn(&[u8]) -> Said + Send + 'static) {
        *self.says.lock().unwrap() = Box::new(says);
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/x", self.address)
    }

    /// Its address with a host name.
    pub(crate) fn url_by_name(&self) -> String {
        format!("http://localhost:{}/x", self.address.port())
    }

    /// The number of connections so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// The body of a request.
fn read(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn answer(mut stream: &TcpStream, said: &Said) -> std::io::Result<()> {
    let Said { head, body, .. } = said;
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}

/// The input of an OCSP answer: the issuing CA (PEM), the signer (PEM certificate and key), and the serial numbers that are good and
/// revoked.
fn write_index(folder: &Path, ca: &str, signer: &Issued, good: &[&[u8]], revoked: &[&[u8]]) {
    let hex = |serial: &[u8]| {
        serial
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect::<String>()
    };
    let good = good
        .iter()
        .map(|serial| hex(serial))
        // Two names must differ.
        .map(|serial| format!("V\t400101000000Z\t\t{serial}\tunknown\t/CN={serial}\n"));
    let revoked = revoked.iter().map(|serial| {
        format!(
            "R\t400101000000Z\t250101000000Z,keyCompromise\t{}\tunknown\t/CN=x\n",
            hex(serial)
        )
    });
    fs::write(
        folder.join("index.txt"),
        good.chain(revoked).collect::<String>(),
    )
    .unwrap();
    fs::write(folder.join("ca.pem"), ca).unwrap();
    fs::write(folder.join("signer.pem"), &signer.pem).unwrap();
    fs::write(folder.join("signer.key"), &signer.key_pem).unwrap();
}

const OPTIONS: [&str; 9] = [
    "ocsp",
    "-index",
    "index.txt",
    "-CA",
    "ca.pem",
    "-rsigner",
    "signer.pem",
    "-rkey",
    "signer.key",
];

/// The answer of OpenSSL's responder to a request, valid for ten minutes by the machine's clock.
pub(crate) fn ocsp_answer(
    request: &[u8],
    ca: &str,
    signer: &Issued,
    good: &[&[u8]],
    revoked: &[&[u8]],
) -> Vec<u8> {
    ocsp_answer_for(["-nmin", "10"], request, ca, signer, good, revoked)
}

/// The same with another validity: `["-ndays", "30"]`.
pub(crate) fn ocsp_answer_for(
    time: [&str; 2],
    request: &[u8],
    ca: &str,
    signer: &Issued,
    good: &[&[u8]],
    revoked: &[&[u8]],
) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    write_index(folder.path(), ca, signer, good, revoked);
    fs::write(folder.path().join("request.der"), request).unwrap();
    let output = Command::new("openssl")
        .args(OPTIONS)
        .args(time)
        .args(["-reqin", "request.der", "-respout", "answer.der"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    fs::read(folder.path().join("answer.der"))
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// `openssl ocsp` as a server.
pub(crate) struct Responder {
    program: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Responder {
    /// A responder of a CA.
    pub(crate) fn start(ca: &str, signer: &Issued, good: &[&[u8]], revoked: &[&[u8]]) -> Self {
        let folder = TempDir::new().unwrap();
        write_index(folder.path(), ca, signer, good, revoked);
        // The program cannot report a port that it chooses itself.
        let address = free_address();
        let mut program = Command::new("openssl")
            .args(OPTIONS)
            .args(["-nmin", "10", "-port", &address.port().to_string()])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The program serves one connection at a time, so a test connection would block it. It prints a line when it is ready.
        let said = BufReader::new(program.stderr.take().unwrap()).lines();
        let (ready, wait) = channel();
        std::thread::spawn(move || {
            for line in said.map_while(Result::ok) {
                if line.contains("waiting") {
                    let _ = ready.send(());
                }
            }
        });
        if wait.recv_timeout(LIMIT).is_err() {
            panic!("{RAN_OUT}: openssl ocsp does not start");
        }
        Self {
            program,
            address,
            _folder: folder,
        }
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
