//! `portvakt tpp verify`: verifies the signature of a saved request or answer, offline, and who vouches for its key.
//!
//! Invariant: the rules are those for requests, for answers too (SIG-12), and each check is the gateway's own function: the certificate is
//! judged by [`Trust`], the signature by [`admission::verify_signature`], the digest by `digest::check`. Without a certificate or CA to
//! trust there is no verdict, because anybody can sign with a key of his own. Deliberately not here: whether the gateway would admit the
//! request (`portvakt explain`), revocation and registers.

use super::{TppFault, signer::Vouchers};
use crate::{
    admission::{self, Framing, Head, Policy},
    clock::Timestamp,
    interface::{
        FaultPlace, Reason,
        headers::{
            self, Fields, date,
            digest::{self, DigestFault},
        },
        operations::Environment,
    },
    terminal::tame,
    tools::{
        input, moment,
        saved::{self, KeptBody, SavedFault, SavedRequest, Wire},
        visible::visible,
    },
    trust::{IdentifiedCertificate, decode},
};
use http::{HeaderMap, Method};
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The message to verify, and who vouches for its signer.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("message").required(true).args(["request", "response"])),
    group(clap::ArgGroup::new("vouches").required(true).args(["cert", "ca", "config"])),
)]
pub struct VerifyArgs {
    /// The signer's certificate, which you trust: PEM, DER or base64. No other certificate verifies.
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The CAs that you trust, PEM: a file, or a folder of files. The message's certificate must lead to one of them.
    #[arg(long, value_name = "FILE|DIR")]
    ca: Option<PathBuf>,
    /// Trust as this configuration does: its anchors, its policy and its types of certificate.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Judge the certificate as of this moment: '…, 06 Nov 1994 08:49:37 GMT', seconds since 1970, or RFC 3339. Default: now.
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    at: Option<Timestamp>,
    /// A saved request: raw HTTP/1.1, the output of curl --trace or --trace-ascii, a HAR, or flows of mitmproxy; - for standard input.
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// A saved answer: status line, headers, an empty line, body; - for standard input.
    #[arg(long, value_name = "FILE")]
    response: Option<PathBuf>,
}

/// The parts of a message that are signed.
struct Message {
    title: String,
    /// The method and target. An answer has none.
    line: Option<(Method, Vec<u8>)>,
    /// `:authority`, which replaces Host over HTTP/2.
    authority: Option<String>,
    headers: HeaderMap,
    /// The body; `None` if the file has not the one that was sent.
    body: Option<Vec<u8>>,
    notes: Vec<String>,
    /// Lines of the head that are no headers.
    damage: Vec<String>,
    /// Why the format may show other bytes than were sent, if it does so here.
    doubt: Option<&'static str>,
}

impl Message {
    fn head<'a>(&'a self, line: &'a (Method, Vec<u8>)) -> Head<'a> {
        let framing = Framing::Frames {
            other_scheme: false,
        };
        Head {
            authority: self.authority.as_deref(),
            ..Head::unconnected(&line.0, &line.1, &self.headers, framing)
        }
    }
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

    fn fails(&mut self, what: &str, text: impl AsRef<str>, reason: Reason) {
        self.fails = true;
        let text = text.as_ref();
        self.lines
            .push(format!("  {what:<14}FAILS   {text} ({})", reason.slug()));
    }
}

/// Verifies a message, and writes each result to `out`.
///
/// # Errors
/// The input or the certificates cannot be read.
pub(super) fn run(
    args: &VerifyArgs,
    now: Timestamp,
    out: &mut dyn Write,
) -> Result<ExitCode, TppFault> {
    let message = message(args)?;
    let at = args.at.unwrap_or(now);
    let vouchers = Vouchers::of(
        args.cert.as_deref(),
        args.ca.as_deref(),
        args.config.as_deref(),
    )?;
    let policy = match &vouchers.policy {
        Some(policy) => policy,
        None => &Policy::new(Environment::Production),
    };
    let mut found = Findings::default();
    headers(&message, at, &mut found);
    if let Some(certificate) = certificate(&message, &vouchers, at, &mut found) {
        signature(&message, certificate, policy, &mut found);
    }
    body(&message, &mut found);
    writeln!(out, "{}", message.title)?;
    for note in &message.notes {
        writeln!(out, "note: {note}")?;
    }
    // A signature that verifies removes the doubt.
    if let Some(doubt) = message.doubt.filter(|_| found.fails) {
        writeln!(out, "note: {doubt}")?;
    }
    let whose = if args.at.is_some() {
        "as --at says"
    } else {
        "now"
    };
    writeln!(
        out,
        "trusted: {}, as of {} ({whose})\n",
        tame(&vouchers.named),
        date::format(at)
    )?;
    for line in &found.lines {
        writeln!(out, "{}", tame(line))?;
    }
    writeln!(out, "not judged: revocation, registers")?;
    show_signing_string(&message, out)?;
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
            authority: None,
            headers: response.headers,
            body: Some(response.body),
            notes: response.notes,
            damage: Vec::new(),
            doubt: None,
        });
    }
    let path = args.request.as_deref().unwrap_or(Path::new("-"));
    let SavedRequest {
        method,
        target,
        wire,
        headers,
        body,
        kept,
        notes,
        damage,
        doubts,
        ..
    } = saved::request(&input::read(path)?, None).map_err(unreadable(path))?;
    Ok(Message {
        title: format!("{} {}", tame(&method), visible(&target)),
        line: Some((method.parse().unwrap_or_default(), target)),
        authority: match wire {
            Wire::Frames(authority) => authority,
            Wire::Lines(_) => None,
        },
        headers,
        body: (!matches!(kept, KeptBody::Lost(_))).then_some(body),
        notes,
        damage,
        doubt: doubts.any().then_some(doubts.why),
    })
}

fn unreadable(path: &Path) -> impl FnOnce(SavedFault) -> TppFault {
    let path = path.to_owned();
    |fault| TppFault::Saved { path, fault }
}

/// The head itself: HTTP-7, HDR-15, DAT-1, and the headers that a signed answer has (SIG-12).
fn headers(message: &Message, at: Timestamp, found: &mut Findings) {
    for line in &message.damage {
        found.fails("head", line, Reason::MalformedRequest);
    }
    let fields = Fields::of(&message.headers);
    let twice: Vec<_> = fields.duplicated().map(|header| header.written).collect();
    if !twice.is_empty() {
        let text = format!("{} may stand once", twice.join(", "));
        found.fails("head", text, Reason::HeaderDuplicated);
    }
    let Some(value) = headers::DATE.get_filled(&fields) else {
        return found.fails("Date", "there is none", Reason::HeaderMissing);
    };
    match date::parse(headers::trim(value.as_bytes())) {
        Some(date) => {
            let side = if date > at { "after" } else { "before" };
            let distance = date.distance(at);
            found.holds("Date", format!("it is {distance} s {side} that moment"));
        }
        None => found.fails("Date", "it is no IMF-fixdate", Reason::HeaderMalformed),
    }
}

/// The certificate, if somebody vouches for it (CRT-1 to CRT-4, CRT-9, CRT-10).
fn certificate(
    message: &Message,
    vouchers: &Vouchers,
    at: Timestamp,
    found: &mut Findings,
) -> Option<IdentifiedCertificate> {
    let header = &headers::TPP_SIGNATURE_CERTIFICATE;
    let shown = header.get_filled(&Fields::of(&message.headers));
    let shown = shown.map(|value| headers::trim(value.as_bytes()));
    if let Some(shown) = shown.filter(|shown| !vouchers.permits(shown)) {
        let text = match decode::decode(shown).is_ok() {
            true => "the message names another certificate than --cert",
            false => "the message names a certificate that cannot be read",
        };
        found.fails("certificate", text, Reason::CertificateUntrusted);
    }
    let Some(presented) = vouchers.presented.as_deref().or(shown) else {
        let text = "the message names none; name the signer's with --cert";
        found.fails("certificate", text, Reason::HeaderMissing);
        return None;
    };
    match vouchers.trust.identify(presented, None, at) {
        Ok(identified) => {
            let certificate = identified.certificate();
            found.holds(
                "certificate",
                format!(
                    "SN={} of {:?}, {}, issued by {}",
                    certificate.serial_hex(),
                    certificate.tpp_name(),
                    certificate.tpp_id().as_str(),
                    certificate.issuer()
                ),
            );
            Some(identified)
        }
        Err(fault) => {
            let text = admission::said_of_certificate(&fault);
            found.fails("certificate", text, fault.reason());
            let text = "it is not verified with a key for which nobody vouches";
            found.fails("signature", text, fault.reason());
            None
        }
    }
}

/// SIG-1 to SIG-10, SIG-14, and that the signature of an answer covers what SIG-12 promises.
fn signature(
    message: &Message,
    certificate: IdentifiedCertificate,
    policy: &Policy,
    found: &mut Findings,
) {
    let verified = match &message.line {
        Some(line) => admission::verify_signature(&message.head(line), certificate, policy),
        None => admission::verify_answer_signature(&message.headers, certificate, policy),
    };
    match verified {
        Ok(signed) => {
            let covers = match &message.line {
                Some(_) if !signed.covers_request_target() => "; method and path are not signed",
                _ => "",
            };
            found.holds("signature", format!("{}{covers}", signed.headers()));
        }
        Err(refusal) => {
            for fault in refusal.faults() {
                let place = match fault.place {
                    FaultPlace::Header(name) if name != headers::SIGNATURE.written => name,
                    _ => "signature",
                };
                found.fails(place, &fault.text, fault.reason);
            }
        }
    }
}

/// DIG-1, and whether there is a digest at all.
fn body(message: &Message, found: &mut Findings) {
    let Some(body) = &message.body else {
        let text = "the file has not the body that was sent";
        return found.fails("Digest", text, Reason::DigestMismatch);
    };
    let length = body.len();
    let Some(value) = headers::DIGEST.get(&Fields::of(&message.headers)) else {
        let is_answer = message.line.is_none();
        return match (length, is_answer) {
            (0, false) => found.holds("Digest", "there is none, and no body"),
            (0, true) => {
                let text = "there is none: a signed answer has one, of an empty body too";
                found.fails("Digest", text, Reason::HeaderMissing);
            }
            _ => {
                let text =
                    format!("there is none: the {length} bytes of the body are not authenticated");
                found.fails("Digest", text, Reason::HeaderMissing);
            }
        };
    };
    let said = String::from_utf8_lossy(value.as_bytes());
    match digest::check(headers::trim(value.as_bytes()), body) {
        Ok(()) => found.holds(
            "Digest",
            format!("{said} of the {length} bytes of the body"),
        ),
        Err(DigestFault::Unsupported) => {
            let text = format!("{said} names neither SHA-256 nor SHA-512");
            found.fails("Digest", text, Reason::DigestUnsupported);
        }
        Err(DigestFault::Malformed(algorithm)) => {
            let text = format!("{said} holds no base64 of a {}", algorithm.name());
            found.fails("Digest", text, Reason::DigestMismatch);
        }
        Err(DigestFault::Mismatch(algorithm)) => {
            let text = format!(
                "{said} is not the {} of the {length} bytes of the body",
                algorithm.name()
            );
            found.fails("Digest", text, Reason::DigestMismatch);
        }
    }
}

fn show_signing_string(message: &Message, out: &mut dyn Write) -> std::io::Result<()> {
    let none = (Method::GET, Vec::new());
    let head = message.head(message.line.as_ref().unwrap_or(&none));
    let Some(string) = admission::signing_string(&head) else {
        return Ok(());
    };
    writeln!(out, "\nthe signing string ({} bytes):", string.len())?;
    for line in string.split_inclusive(|byte| *byte == b'\n') {
        writeln!(out, "  {}", visible(line))?;
    }
    Ok(())
}
