//! Requests signed in advance, each for one use: signing costs more than all measured work.
//!
//! A pool is valid as long as its single Date, 60 seconds on either side. Only the path, the request id and the signature differ between
//! its requests; the rest is one shared text.

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::KeyPair,
    signature::{KeyPair as _, RSA_PKCS1_SHA256},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use portvakt::{interface::headers, tools::tpp::TppIdentity};
use sha2::{Digest, Sha256};
use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};
use uuid::Uuid;

/// The offset of the pool's Date: the pool is used from now until 60 seconds after that Date.
pub const AHEAD: Duration = Duration::from_secs(55);

/// The signer: a TPP's certificate and key.
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

/// The call of a pool.
#[derive(Clone)]
pub struct Call {
    /// GET or POST.
    pub method: &'static str,
    /// The path. `{n}` is replaced by a number that four requests share, `{r}` by a number of this pool.
    pub path: String,
    /// Headers in addition to those that signing adds.
    pub headers: Vec<(&'static str, String)>,
    /// The body of a POST.
    pub body: Option<String>,
    /// The fault of the request.
    pub fault: Fault,
}

/// A deliberate fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// It has no Signature.
    Unsigned,
    /// Its Date is an hour old.
    Late,
    /// One bit of its signature is wrong.
    Signature,
    /// Its Digest belongs to another body.
    Digest,
    /// The same request each time; only the first one is valid.
    Replayed,
    /// The same faulty request each time.
    Once,
}

/// Signed requests.
pub struct Pool {
    /// The text before the path, between path and request id, between request id and signature, and after the signature.
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

/// The body of a cross-border payment that is valid today.
pub fn payment_body() -> String {
    let day = jiff::ZonedDateTime::now()
        .date()
        .saturating_add(jiff::Span::new().days(7));
    format!(
        r#"{{"instructedAmount":{{"amount":"1500.00","currency":"NOK"}},"creditorName":"Werkzeugbau Müller GmbH","creditorAgent":"COBADEFFXXX","creditorAccount":{{"iban":"DE89370400440532013000","currency":"EUR"}},"creditorAddress":{{"street":"Musterweg","buildingNumber":"1","postalCode":"10115","city":"Berlin","country":"DE"}},"debtorAccount":{{"iban":"NO9386011117947","currency":"NOK"}},"remittanceInformationUnstructured":"Faktura 4711, kundenummer 12345","requestedExecutionDate":"{day}"}}"#
    )
}

impl Pool {
    /// Signs this number of requests on all cores.
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
        let signed = headers::SIGNED.map(|header| header.written);
        let names: Vec<&str> = signed.into_iter().filter(|name| has(name)).collect();
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

    /// Writes the pool with the script for wrk; each connection pauses for this average number of milliseconds between requests.
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

    /// One request, for clients other than wrk: method, path, headers, body.
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

/// The text around the variable parts.
///
/// LuaJIT hashes only a few bytes of a long string, some of them at the end of the first quarter. Unless those bytes are in the
/// signature, all requests are in one bucket of LuaJIT's string table, and wrk spends its time on comparing them.
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

/// The same with this number of headers before the signature.
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
