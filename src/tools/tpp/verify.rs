//! `portvakt tpp verify`: verifies Digest and Signature of a saved request or answer, offline.
//!
//! The rules are those of §Request signing, for answers too (SIG-12). Header values are parsed with the gateway's own parsers;
//! the signing string is built here independently from the specification, so that it verifies the gateway's. Deliberately not
//! here: whether the certificate is trusted (`portvakt cert`), and whether the gateway would admit the request (`portvakt
//! explain`).

use super::TppFault;
use crate::{
    interface::{
        base64_fault::Base64Fault,
        headers::{
            self,
            digest::{self, DigestFault},
            encoded_word,
            signature::Signature,
        },
    },
    terminal::tame,
    tools::{
        input, presented,
        saved::{self, SavedFault, SavedRequest, Wire},
        visible::visible,
    },
    trust::{CertificateFault, judgement},
};
use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderMap, HeaderValue};
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};
use x509_parser::certificate::X509Certificate;

/// The message to verify, and the certificate.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("message").required(true).args(["request", "response"])))]
pub struct VerifyArgs {
    /// The signer's certificate: PEM, DER or base64. Default: the one in TPP-Signature-Certificate.
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// A saved request: raw HTTP/1.1, the output of curl --trace-ascii, or a HAR; - for standard input.
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// A saved answer: status line, headers, an empty line, body; - for standard input.
    #[arg(long, value_name = "FILE")]
    response: Option<PathBuf>,
}

/// The parts of a message that are signed.
struct Message {
    title: String,
    /// The method and target, and the authority if no header contains it. An answer has none.
    line: Option<(String, Vec<u8>)>,
    host: Option<String>,
    headers: HeaderMap,
    body: Vec<u8>,
    notes: Vec<String>,
}

/// The results, line by line.
#[derive(Default)]
struct Findings {
    lines: Vec<String>,
    fails: bool,
}

impl Findings {
    fn holds(&mut self, what: &str, text: impl AsRef<str>) {
        self.lines
            .push(format!("  {what:<14}holds   {}", text.as_ref()));
    }

    fn fails(&mut self, what: &str, text: impl AsRef<str>) {
        self.fails = true;
        self.lines
            .push(format!("  {what:<14}FAILS   {}", text.as_ref()));
    }

    fn judge(&mut self, what: &str, result: Result<String, String>) {
        match result {
            Ok(text) => self.holds(what, text),
            Err(text) => self.fails(what, text),
        }
    }
}

/// Verifies a message, and writes each result to `out`.
///
/// # Errors
/// The input or the certificate cannot be read.
pub(super) fn run(args: &VerifyArgs, out: &mut dyn Write) -> Result<ExitCode, TppFault> {
    let message = message(args)?;
    let der = certificate(args.cert.as_deref(), &message.headers)?;
    let (certificate, _) =
        judgement::read(&der).map_err(|fault| TppFault::NoCertificate(fault.to_string()))?;
    let mut found = Findings::default();
    let signing_string = signature(&message, &certificate, &mut found);
    body(&message, &mut found);
    writeln!(out, "{}", message.title)?;
    for note in &message.notes {
        writeln!(out, "note: {note}")?;
    }
    writeln!(
        out,
        "verified with the certificate {} of {:?}\n",
        judgement::serial_hex(certificate.raw_serial()),
        judgement::tpp_name(&certificate)
    )?;
    for line in &found.lines {
        writeln!(out, "{}", tame(line))?;
    }
    if let Some(string) = signing_string {
        writeln!(out, "\nthe signing string ({} bytes):", string.len())?;
        for line in string.split_inclusive(|byte| *byte == b'\n') {
            writeln!(out, "  {}", visible(line))?;
        }
    }
    Ok(if found.fails {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn message(args: &VerifyArgs) -> Result<Message, TppFault> {
    if let Some(path) = &args.response {
        let response = saved::response(&input::read(path)?).map_err(unreadable(path))?;
        return Ok(Message {
            title: tame(&response.status),
            line: None,
            host: None,
            headers: response.headers,
            body: response.body,
            notes: response.notes,
        });
    }
    let path = args.request.as_deref().unwrap_or(Path::new("-"));
    let SavedRequest {
        method,
        target,
        wire,
        headers,
        body,
        notes,
        ..
    } = saved::request(&input::read(path)?, None).map_err(unreadable(path))?;
    Ok(Message {
        title: format!("{method} {}", visible(&target)),
        line: Some((method, target)),
        host: match wire {
            Wire::Frames(authority) => authority,
            Wire::Lines(_) => None,
        },
        headers,
        body,
        notes,
    })
}

fn unreadable(path: &Path) -> impl FnOnce(SavedFault) -> TppFault {
    let path = path.to_owned();
    |fault| TppFault::Saved { path, fault }
}

fn certificate(file: Option<&Path>, headers: &HeaderMap) -> Result<Vec<u8>, TppFault> {
    let unreadable = |place: String| {
        move |fault: CertificateFault| TppFault::NoCertificate(format!("{place}: {fault}"))
    };
    if let Some(file) = file {
        let presented = presented::read(&input::read(file)?);
        let (presented, _) = presented.map_err(unreadable(input::name(file)))?;
        return Ok(presented.leaf);
    }
    let value = headers.get(&headers::TPP_SIGNATURE_CERTIFICATE.name);
    let value = value.ok_or_else(|| {
        TppFault::NoCertificate(
            "there is no TPP-Signature-Certificate; name one with --cert".into(),
        )
    })?;
    let (presented, _) = presented::read(value.as_bytes())
        .map_err(unreadable("TPP-Signature-Certificate".into()))?;
    Ok(presented.leaf)
}

/// Verifies SIG-2 to SIG-10. Returns the signing string if the header is well-formed.
fn signature(
    message: &Message,
    certificate: &X509Certificate<'_>,
    found: &mut Findings,
) -> Option<Vec<u8>> {
    let Some(value) = headers::SIGNATURE.get_filled(&headers::Fields::of(&message.headers)) else {
        found.fails("Signature", "there is none (SIG-1)");
        return None;
    };
    let value = match encoded_word::decode(value.as_bytes()) {
        Ok(value) => value,
        Err(fault) => {
            found.fails("Signature", format!("{fault} (SIG-10)"));
            return None;
        }
    };
    let signature = match Signature::parse(&value) {
        Ok(signature) => signature,
        Err(fault) => {
            found.fails("Signature", format!("{fault} (SIG-2)"));
            return None;
        }
    };
    found.judge("keyId", key_id(&signature, certificate));
    let algorithm = String::from_utf8_lossy(signature.algorithm);
    if algorithm.eq_ignore_ascii_case("rsa-sha256") {
        found.holds("algorithm", algorithm);
    } else {
        found.fails(
            "algorithm",
            format!("{algorithm} is not rsa-sha256 (SIG-5)"),
        );
    }
    found.judge("headers", listed(message, &signature));
    let string = signing_string(message, &signature);
    let verified = judgement::signing_key(certificate)
        .map_err(|fault| format!("{fault} (SIG-5)"))
        .and_then(|key| {
            let bytes = BASE64_STANDARD
                .decode(signature.signature)
                .map_err(|_| not_base64(signature.signature))?;
            key.verify_sig(&string, &bytes)
                .map(|()| format!("RSA PKCS#1 v1.5 with SHA-256 over {} bytes", string.len()))
                .map_err(|_| "it does not verify over the signing string below (SIG-9)".to_owned())
        });
    found.judge("signature", verified);
    Some(string)
}

fn not_base64(signature: &[u8]) -> String {
    match Base64Fault::judge(signature) {
        Err(why) => format!("{why} (SIG-9)"),
        Ok(()) => "it is not canonical base64 (SIG-9)".to_owned(),
    }
}

fn key_id(signature: &Signature<'_>, certificate: &X509Certificate<'_>) -> Result<String, String> {
    if !judgement::is_serial(certificate.raw_serial(), signature.serial) {
        let serial = judgement::serial_hex(certificate.raw_serial());
        return Err(format!(
            "the certificate's serial number is {serial} (SIG-3)"
        ));
    }
    let issuer = judgement::issuer(certificate).map_err(|fault| fault.to_string())?;
    match issuer.compare(signature.issuer) {
        Ok(()) => Ok(format!(
            "it names the certificate: SN={}, issuer {issuer}",
            judgement::serial_hex(certificate.raw_serial())
        )),
        Err(mismatch) => Err(format!("{mismatch} (SIG-4)")),
    }
}

/// Verifies SIG-6 and SIG-7.
fn listed(message: &Message, signature: &Signature<'_>) -> Result<String, String> {
    let absent: Vec<_> = signature
        .headers
        .iter()
        .filter(|name| !is_present(message, name))
        .copied()
        .collect();
    if !absent.is_empty() {
        return Err(format!(
            "{} is listed and not there (SIG-6)",
            absent.join(", ")
        ));
    }
    let left_out: Vec<_> = headers::SIGNED
        .iter()
        .map(|header| header.name.as_str())
        .filter(|name| is_present(message, name) && !signature.lists(name))
        .collect();
    if !left_out.is_empty() {
        return Err(format!(
            "{} is there and not listed (SIG-7)",
            left_out.join(", ")
        ));
    }
    let listed = signature.headers.join(" ");
    Ok(match &message.line {
        Some(_) if !signature.lists("(request-target)") => {
            format!("{listed}; method and path are not signed")
        }
        _ => listed,
    })
}

fn is_present(message: &Message, name: &str) -> bool {
    match name {
        "(request-target)" => message.line.is_some(),
        _ => {
            message.headers.contains_key(name)
                || name.eq_ignore_ascii_case("host") && message.host.is_some()
        }
    }
}

/// Builds the signing string (SIG-8).
fn signing_string(message: &Message, signature: &Signature<'_>) -> Vec<u8> {
    let lines = signature.headers.iter().map(|listed| {
        let name = listed.to_ascii_lowercase();
        let value = match (name.as_str(), &message.line, &message.host) {
            ("(request-target)", Some((method, target)), _) => {
                [method.to_ascii_lowercase().as_bytes(), b" ", target].concat()
            }
            ("host", _, Some(host)) => host.clone().into_bytes(),
            _ => {
                let values = message.headers.get_all(&name).iter();
                let values: Vec<_> = values
                    .map(|value| headers::trim(value.as_bytes()))
                    .collect();
                values.join(&b", "[..])
            }
        };
        [name.as_bytes(), b": ", &value].concat()
    });
    lines.collect::<Vec<_>>().join(&b'\n')
}

/// Verifies DIG-1, and whether the signature covers the body.
fn body(message: &Message, found: &mut Findings) {
    let length = message.body.len();
    let Some(value) = headers::DIGEST.get(&headers::Fields::of(&message.headers)) else {
        return if length > 0 {
            found.fails("Digest", format!("there is none: the {length} bytes of the body are not authenticated (HDR-2, DIG-2)"));
        } else {
            found.holds("Digest", "there is none, and no body");
        };
    };
    let result = digest::check(headers::trim(value.as_bytes()), &message.body);
    found.judge("Digest", digest_verdict(result, value, length));
}

fn digest_verdict(
    result: Result<(), DigestFault>,
    value: &HeaderValue,
    length: usize,
) -> Result<String, String> {
    let said = String::from_utf8_lossy(value.as_bytes()).into_owned();
    match result {
        Ok(()) => Ok(format!("{said} of the {length} bytes of the body")),
        Err(DigestFault::Unsupported) => {
            Err(format!("{said} names neither SHA-256 nor SHA-512 (DIG-1)"))
        }
        Err(DigestFault::Malformed(algorithm)) => Err(format!(
            "{} (DIG-1)",
            digest::form_fault(headers::trim(value.as_bytes()), algorithm)
        )),
        Err(DigestFault::Mismatch(algorithm)) => Err(format!(
            "{said} is not the {} of the {length} bytes of the body (DIG-1)",
            algorithm.name()
        )),
    }
}
