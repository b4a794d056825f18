//! Requests that are signed ahead, each to be sent once: signing costs more than everything that is measured here.
//!
//! A pool is good for as long as its one Date is, 60 seconds on either side. What differs between its requests is the path, the
//! request id and the signature; everything else is one text.

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::KeyPair,
    signature::{KeyPair as _, RSA_PKCS1_SHA256},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use portvakt::tools::tpp::TppIdentity;
use sha2::{Digest, Sha256};
use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};
use uuid::Uuid;

/// How far ahead of its signing a pool is dated: it is used from now until 60 seconds after that.
pub const AHEAD: Duration = Duration::from_secs(55);

/// Who signs: a TPP's certificate and key.
pub struct Signer {
    key: KeyPair,
    key_id: String,
    certificate: String,
}

impl Signer {
    /// Of a certificate and an RSA key in PEM.
    pub fn new(certificate: &str, key: &str) -> Self {
        let identity = TppIdentity::from_pem(certificate, key).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(key.as_bytes()).unwrap();
        Self {
            key: KeyPair::from_pkcs8(&pem.contents).unwrap(),
            key_id: identity.key_id().to_owned(),
            certificate: identity.certificate_header(),
        }
    }

    fn sign(&self, text: &str) -> String {
        let mut signature = vec![0; self.key.public_key().modulus_len()];
        let random = SystemRandom::new();
        self.key
            .sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
            .unwrap();
        BASE64_STANDARD.encode(signature)
    }
}

/// What is called.
#[derive(Clone)]
pub struct Call {
    /// GET or POST.
    pub method: &'static str,
    /// The path, in which `{n}` is replaced by a number that four requests share, and `{r}` by one of this pool's own.
    pub path: String,
    /// Headers besides those that signing adds.
    pub headers: Vec<(&'static str, String)>,
    /// The body of a POST.
    pub body: Option<String>,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a request, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It has no Signature.
    Unsigned,
    /// Its Date is an hour old.
    Late,
    /// One bit of its signature is wrong.
    Signature,
    /// Its Digest is that of another body.
    Digest,
    /// It is the same request each time, which was right the first time.
    Replayed,
    /// It is the same request each time, and wrong by itself.
    Once,
}

/// Signed requests.
pub struct Pool {
    /// What stands before the path, between path and request id, between that and the signature, and behind it.
    parts: [String; 4],
    lines: Vec<Line>,
    call: Call,
    shared: Vec<(String, String)>,
    signature: String,
}

struct Line {
    path: String,
    id: String,
    signature: String,
}

/// The headers that are signed, in this order, where a request has them.
const SIGNED: [&str; 5] = [
    "Date",
    "Digest",
    "X-Request-ID",
    "PSU-ID",
    "TPP-Redirect-URI",
];

impl Pool {
    /// Signs so many requests on every core.
    pub fn sign(signer: &Signer, call: &Call, count: usize, date: SystemTime) -> Self {
        let mut shared: Vec<(String, String)> = call
            .headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let date = match call.fault {
            Fault::Late => date - Duration::from_secs(3_600),
            _ => date,
        };
        shared.push(("Date".to_owned(), httpdate::fmt_http_date(date)));
        if let Some(body) = &call.body {
            let signed = if call.fault == Fault::Digest {
                ""
            } else {
                body
            };
            let hash = BASE64_STANDARD.encode(Sha256::digest(signed));
            shared.push(("Digest".to_owned(), format!("SHA-256={hash}")));
        }
        shared.push((
            "TPP-Signature-Certificate".to_owned(),
            signer.certificate.clone(),
        ));
        let has = |name: &str| name == "X-Request-ID" || find(&shared, name).is_some();
        let names: Vec<&str> = SIGNED.into_iter().filter(|name| has(name)).collect();
        let listed = names.join(" ").to_lowercase();
        let signature = format!(
            "keyId=\"{}\",algorithm=\"rsa-sha256\",headers=\"{listed}\",signature=\"",
            signer.key_id
        );
        let own = Uuid::new_v4().as_fields().0.to_string();
        let call = &Call {
            path: call.path.replace("{r}", &own),
            ..call.clone()
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let part = count.div_ceil(threads);
        let lines = std::thread::scope(|scope| {
            let (names, shared) = (&names, &shared);
            let signing: Vec<_> = (0..threads)
                .map(|thread| {
                    let numbers = thread * part..((thread + 1) * part).min(count);
                    scope.spawn(move || {
                        numbers
                            .map(|number| line(signer, call, number, names, shared))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            let signed = signing.into_iter().map(|thread| thread.join().unwrap());
            signed.flatten().collect()
        });
        Self {
            parts: parts(call, &shared, &signature),
            lines,
            call: call.clone(),
            shared,
            signature,
        }
    }

    /// Writes it with the script that makes wrk send it, each connection resting for so many milliseconds on average in between.
    pub fn write(&self, folder: &Path, rest: usize) {
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| [line.path.as_str(), &line.id, &line.signature].concat())
            .collect();
        fs::write(folder.join("pool"), lines.concat()).unwrap();
        let script = include_str!("conf/pool.lua")
            .replace("@DIR@", &folder.display().to_string())
            .replace("@PATH@", &self.lines[0].path.len().to_string())
            .replace("@SIGNATURE@", &self.lines[0].signature.len().to_string())
            .replace("@REST@", &rest.to_string());
        fs::write(folder.join("pool.lua"), script).unwrap();
        fs::write(folder.join("request"), self.parts.join("\x01")).unwrap();
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// One of them, for another client than wrk: method, path, headers, body.
    pub fn request(&self, number: usize) -> (&str, &str, Vec<(String, String)>, Option<&str>) {
        let line = &self.lines[number];
        let mut headers = self.shared.clone();
        headers.push(("X-Request-ID".to_owned(), line.id.clone()));
        headers.push((
            "Signature".to_owned(),
            format!("{}{}\"", self.signature, line.signature),
        ));
        (
            self.call.method,
            &line.path,
            headers,
            self.call.body.as_deref(),
        )
    }
}

fn line(
    signer: &Signer,
    call: &Call,
    number: usize,
    names: &[&str],
    shared: &[(String, String)],
) -> Line {
    let id = Uuid::new_v4().to_string();
    let text: Vec<String> = names
        .iter()
        .map(|name| {
            let value = find(shared, name).unwrap_or(&id);
            format!("{}: {value}", name.to_lowercase())
        })
        .collect();
    let mut signature = match call.fault {
        Fault::Unsigned => String::from("-"),
        _ => signer.sign(&text.join("\n")),
    };
    if call.fault == Fault::Signature {
        let other = if signature.starts_with('A') { "B" } else { "A" };
        signature.replace_range(..1, other);
    }
    Line {
        path: call.path.replace("{n}", &format!("{:07}", number / 4)),
        id,
        signature,
    }
}

/// The text around what differs.
///
/// LuaJIT hashes only a few bytes of a long string, some of them where its first quarter ends: unless these lie in the signature, all
/// requests are one bucket of its table of strings, and wrk does nothing but compare them.
fn parts(call: &Call, shared: &[(String, String)], signature: &str) -> [String; 4] {
    (0..=shared.len())
        .map(|before| ordered(call, shared, signature, before))
        .find(|parts| {
            let begin = parts[..3].concat().len() + call.path.len() + 36;
            let quarter = (begin + 344 + parts[3].len()) / 4;
            (begin + 8..begin + 336).contains(&quarter)
        })
        .unwrap_or_else(|| ordered(call, shared, signature, shared.len()))
}

/// The same with so many headers before the signature.
fn ordered(
    call: &Call,
    shared: &[(String, String)],
    signature: &str,
    before: usize,
) -> [String; 4] {
    let lines = |headers: &[(String, String)]| -> String {
        let lines = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        lines.collect()
    };
    let (first, rest) = shared.split_at(before);
    let body = call.body.as_deref().unwrap_or_default();
    let length = match call.body {
        Some(_) => format!("Content-Length: {}\r\n", body.len()),
        None => String::new(),
    };
    let signature = match call.fault {
        Fault::Unsigned => "X-Unsigned: \"",
        _ => &format!("Signature: {signature}"),
    };
    [
        format!("{} ", call.method),
        format!(
            " HTTP/1.1\r\nHost: 127.0.0.1\r\n{}X-Request-ID: ",
            lines(first)
        ),
        format!("\r\n{signature}"),
        format!("\"\r\n{}{length}\r\n{body}", lines(rest)),
    ]
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a String> {
    let found = headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value)
}
