//! A core as docs/upstream-contract.md wants it, with one fault: this test's program, started anew as a process.
//!
//! It holds one contact address for each TPP, and its payments. It shares no code with the probe.

// The operations, and the bytes of an answer.
mod answers;
mod send;
// Payments: who made them, and their amounts.
mod payments;
// Facts that come from headers, and answers in which little is equal.
mod disguises;
// The keys of a core that believes more than the gateway's.
mod keys;

use crate::harness::{Lines, Program, Wire};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use portvakt::{
    clock::{Clock, Stopwatch},
    signing::AssertionKey,
};
use portvakt_sandbox::http1::Head;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

/// The environment variable with the core's fault, and that with the file of the gateway's key.
const FAULT: &str = "PORTVAKT_FAULTY_CORE";
const KEY: &str = "PORTVAKT_FAULTY_CORE_KEY";

/// The patience of the core that reads each request once: far less than the pause of the probe. A request that is sent at once is there as
/// a whole.
const IMPATIENT: Duration = Duration::from_millis(1);

/// The time in which the core that looks up and then stores waits for a second request at once.
const AT_ONCE: Duration = Duration::from_millis(500);

/// A core as a process.
pub(crate) struct Faulty {
    url: String,
    _program: Program,
}

impl Faulty {
    /// Starts it with the gateway's key in a file.
    pub(crate) fn start(fault: &str, key: &Path) -> Self {
        let program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "probe::core::serve", "--nocapture"])
            .env(FAULT, fault)
            .env(KEY, key)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut program = Program(program);
        let lines = Lines::of(program.0.stdout.take().unwrap());
        let line = lines.find("with the core's address", |line| line.contains("core at "));
        let line = line.unwrap();
        Self {
            url: line.split_once("core at ").unwrap().1.to_owned(),
            _program: program,
        }
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }
}

/// The process: a test that does nothing unless it is started as a core.
#[test]
fn serve() {
    let Ok(fault) = std::env::var(FAULT) else {
        return;
    };
    let key = AssertionKey::read(Path::new(&std::env::var_os(KEY).unwrap())).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("core at http://{}", listener.local_addr().unwrap());
    let is_single = fault == "idle";
    let core = Arc::new(Core {
        fault,
        point: point(&key),
        kid: key.id().to_owned(),
        authority: listener.local_addr().unwrap().to_string(),
        used: Mutex::default(),
        here: Mutex::default(),
        came: Condvar::new(),
        contacts: Mutex::default(),
        payments: Mutex::default(),
    });
    for connection in listener.incoming() {
        let (core, connection) = (Arc::clone(&core), connection.unwrap());
        let handle = thread::spawn(move || core.converse(connection));
        if is_single {
            handle.join().unwrap();
        }
    }
}

/// The public key, without compression.
fn point(key: &AssertionKey) -> Vec<u8> {
    let jwk = key.jwk();
    let coordinate = |name: &str| {
        BASE64_URL_SAFE_NO_PAD
            .decode(jwk[name].as_str().unwrap())
            .unwrap()
    };
    [vec![4], coordinate("x"), coordinate("y")].concat()
}

struct Core {
    fault: String,
    point: Vec<u8>,
    kid: String,
    authority: String,
    used: Mutex<BTreeMap<String, Stopwatch>>,
    /// The requests that looked up, by id, and their arrival.
    here: Mutex<BTreeMap<String, usize>>,
    came: Condvar,
    contacts: Mutex<BTreeMap<String, Value>>,
    /// TPP and body of each payment, by its id.
    payments: Mutex<BTreeMap<String, (String, Value)>>,
}

/// A request as it arrived.
struct Asked {
    method: String,
    target: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    head_size: usize,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&[u8]> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_slice())
    }

    /// All headers of a name, in any spelling.
    fn all(&self, name: &str) -> Vec<&(String, Vec<u8>)> {
        let headers = self.headers.iter();
        headers
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .collect()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.header(name).unwrap_or_default()).into_owned()
    }
}

impl Core {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    /// Answers the requests of a connection.
    fn converse(&self, connection: TcpStream) {
        let mut wire = Wire::new(connection);
        for count in 0.. {
            let asked = match self.read(&mut wire) {
                Ok(Some(asked)) => asked,
                Ok(None) => return,
                Err(_) if self.has("closed") => std::process::exit(1),
                Err(_) => return,
            };
            if self.has("kept") && count > 0
                || self.has("empty-body") && asked.text("content-length") == "0"
            {
                return;
            }
            let (status, body) = self.answer(&asked);
            if self.send(&mut wire.reader.stream, status, &body).is_err() {
                return;
            }
        }
    }

    fn read(&self, wire: &mut Wire<TcpStream>) -> std::io::Result<Option<Asked>> {
        if self.has("slow") {
            // The first byte may take its time.
            wire.reader.stream.set_read_timeout(None)?;
            wire.reader.stream.peek(&mut [0])?;
            wire.reader.stream.set_read_timeout(Some(IMPATIENT))?;
        }
        let head = wire.head()?;
        let Some(head) = head else { return Ok(None) };
        let head = Head::parse(&head).map_err(std::io::Error::other)?;
        let mut words = head.line.split(' ').map(str::to_owned);
        let mut asked = Asked {
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            headers: head.headers,
            body: Vec::new(),
            head_size: head.size,
        };
        let length = asked.text("content-length").parse().unwrap_or(0);
        let is_left = self.has("unread-body") && asked.header("gateway-assertion").is_none();
        if !is_left {
            asked.body = wire.exactly(length)?;
        }
        Ok(Some(asked))
    }

    /// The claims of an assertion for this request, without the check that is the core's fault.
    fn verify(&self, asked: &Asked) -> Option<Value> {
        let trusted = json!({"gateway-tpp-id": asked.text("gateway-tpp-id")});
        let Some(token) = asked.header("gateway-assertion") else {
            let lenient = self.has("missing") || self.has("reads-only") && asked.method == "GET";
            return lenient.then_some(trusted);
        };
        let token = str::from_utf8(token).ok()?;
        let parts: Vec<_> = token.split('.').collect();
        let [header, claims, signature] = parts[..] else {
            return self.has("malformed").then_some(trusted);
        };
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let json = |text: &str| serde_json::from_slice::<Value>(&decode(text)?).ok();
        let (header, claims) = (json(header)?, json(claims)?);
        let signed = token.rsplit_once('.')?.0.as_bytes();
        let is_unsigned = header["alg"] == "none" && self.has("unsigned");
        let is_hmac = header["alg"] == "HS256" && self.has("hmac");
        if is_hmac {
            let secret = keys::pem(&self.point);
            let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
            hmac::verify(&key, signed, &decode(signature)?).ok()?;
        } else if let Some(point) = keys::named(&header, &self.fault) {
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
            key.verify(signed, &decode(signature)?).ok()?;
        } else if !is_unsigned {
            if header["alg"] != "ES256" {
                return None;
            }
            let is_known = header["kid"] == self.kid;
            if !is_known && !self.has("another-key") {
                return None;
            }
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.point);
            let holds = key.verify(signed, &decode(signature)?).is_ok();
            if is_known && !holds && !self.has("signature") {
                return None;
            }
        }
        let is_this = self.is_current(&claims) && self.is_about(&claims, asked);
        (is_this && self.is_first(&claims, asked)).then_some(claims)
    }

    fn is_current(&self, claims: &Value) -> bool {
        let expires = claims["exp"].as_u64().unwrap_or_default();
        (claims["aud"] == "core" || self.has("audience"))
            && (claims["iss"] == "portvakt" || self.has("issuer"))
            && (expires > Clock::System.now().unix() || self.has("expired"))
    }

    fn is_about(&self, claims: &Value, asked: &Asked) -> bool {
        let hash = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        let without_query = |target: &str| target.split('?').next().unwrap().to_owned();
        let claimed = claims["target"].as_str().unwrap_or_default();
        let is_target = match self.fault.as_str() {
            "target" => true,
            "query" => without_query(claimed) == without_query(&asked.target),
            "bytes" => claimed == asked.target.replace("%7E", "~"),
            "target-case" => claimed.eq_ignore_ascii_case(&asked.target),
            "target-encoding" => claimed.replace("%74", "t") == asked.target.replace("%74", "t"),
            "target-slash" => claimed.trim_end_matches('/') == asked.target.trim_end_matches('/'),
            _ => claimed == asked.target,
        };
        let names = ["signature", "x-psu-identity", "psu-context"];
        let names = names
            .iter()
            .filter(|name| !self.has("identity-header") || **name != "x-psu-identity");
        let lines = names
            .filter_map(|name| Some([name.as_bytes(), b": ", asked.header(name)?, b"\n"].concat()));
        let lines: Vec<u8> = lines.flatten().collect();
        let is_body = claims["body_sha256"] == hash(&asked.body)
            || self.has("body")
            || self.has("body-removed") && asked.body.is_empty();
        is_target
            && (claims["method"] == *asked.method || self.has("method"))
            && is_body
            && (claims["headers_sha256"] == hash(&lines) || self.has("headers"))
    }

    fn is_first(&self, claims: &Value, asked: &Asked) -> bool {
        let is_kept = match self.fault.as_str() {
            "replayed" => false,
            "repeated-get" => true,
            _ => asked.method != "GET",
        };
        if !is_kept {
            return true;
        }
        let id = claims["jti"].as_str().unwrap_or_default().to_owned();
        if self.has("replayed-at-once") && !self.used.lock().unwrap().contains_key(&id) {
            let mut here = self.here.lock().unwrap();
            *here.entry(id.clone()).or_default() += 1;
            self.came.notify_all();
            let alone = |here: &mut BTreeMap<String, usize>| here.get(&id) == Some(&1);
            drop(self.came.wait_timeout_while(here, AT_ONCE, alone));
            self.used.lock().unwrap().insert(id, Stopwatch::start());
            return true;
        }
        let mut used = self.used.lock().unwrap();
        if self.has("replayed-later") {
            used.retain(|_, since| since.elapsed() < Duration::from_secs(1));
        }
        if self.has("replayed-after-another") {
            used.retain(|known, _| *known == id);
        }
        used.insert(id, Stopwatch::start()).is_none()
    }
}
