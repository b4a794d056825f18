//! `portvakt-sandbox tail`: asks the bank for the latest requests of one TPP, and prints those that are new.
//!
//! Invariant: the token is sent over TLS, or within this machine, and is never printed. Deliberately not here: anything that the bank does
//! not say.

use super::recent::{ShownRequest, ShownTail};
use super::seen::{NewRequests, Seen};
use portvakt::tools::tpp::{CallOptions, SignedRequest, TppFault, call};
use portvakt_base::private_file;
use portvakt_base::terminal::{Terminal, complain};
use reqwest::Url;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The interval at which the bank is asked.
const ASK: Duration = Duration::from_secs(1);

/// The most bytes of a token's file: far more than a token has.
const TOKEN_LIMIT: usize = 1_024;

/// The command line of the client.
#[derive(Debug, clap::Args)]
pub(crate) struct TailArgs {
    /// The simulated bank: scheme and authority. http:// is for this machine only.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// The file with the token, as `portvakt-sandbox token` printed it. Only its owner may read it.
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// A PEM file of the trusted certificates; without it, those of the system.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Print the latest requests, and end.
    #[arg(long)]
    once: bool,
}

/// Why the requests cannot be shown.
#[derive(Debug, thiserror::Error)]
enum TailFault {
    /// The token would cross a network in clear text.
    #[error("--url {0}: use https://; the token would be sent in clear text")]
    ClearText(String),
    /// The file cannot be read, or others may read it.
    #[error("--token-file: {}: {}", .0.display(), .1)]
    File(PathBuf, private_file::FileFault),
    /// The file holds something else.
    #[error("--token-file: {}: it is no token of `portvakt-sandbox token`", .0.display())]
    NoToken(PathBuf),
    /// The bank made no such token.
    #[error("the bank does not accept the token: it was made with another key, or altered")]
    Refused,
    /// Any other status.
    #[error(
        "the bank answers with {0}; it shows requests only if it was started with --tail and --tail-key"
    )]
    Status(u16),
    /// The request cannot be made, or the bank does not answer.
    #[error("{0}")]
    Call(#[from] TppFault),
    /// The answer is no list of requests.
    #[error("the answer is no list of requests: {0}")]
    Body(#[from] serde_json::Error),
}

impl TailFault {
    /// Whether a later question to the bank cannot succeed either.
    fn is_lasting(&self) -> bool {
        match self {
            Self::Status(status) => *status == 403,
            // The certificates of --cacert cannot be used.
            Self::Call(TppFault::Client(fault)) => fault.is_builder(),
            Self::Call(fault) => !matches!(fault, TppFault::AnswerTooLarge { .. }),
            Self::Body(_) => false,
            Self::ClearText(_) | Self::File(..) | Self::NoToken(_) | Self::Refused => true,
        }
    }
}

/// Prints the latest requests, and then each new one until it is interrupted.
pub(crate) fn run(args: &TailArgs) -> Result<(), Box<dyn std::error::Error>> {
    if !keeps_secrets(&args.url) {
        return Err(TailFault::ClearText(args.url.clone()).into());
    }
    let token = read_token(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(follow(args, &token))
}

async fn follow(args: &TailArgs, token: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = Terminal::output();
    let mut seen = Seen::default();
    let mut absence = Absence::default();
    loop {
        let asked = ask(args, token).await;
        if let Some(text) = absence.note(asked.as_ref().err(), args.once) {
            complain("portvakt-sandbox", text);
        }
        match asked {
            Err(fault) if args.once || fault.is_lasting() => return Err(fault.into()),
            Err(_) => {}
            Ok(shown) => write_new(&seen.take_new(shown), &mut out)?,
        }
        if args.once {
            return Ok(());
        }
        tokio::time::sleep(ASK).await;
    }
}

/// Writes new requests, and on standard error the number of those that the bank no longer shows.
fn write_new(new: &NewRequests, out: &mut Terminal<impl Write>) -> io::Result<()> {
    if new.passed_over > 0 {
        let count = new.passed_over;
        complain(
            "portvakt-sandbox",
            format_args!("requests passed over: {count}; the bank shows only the latest"),
        );
    }
    for request in &new.requests {
        write_request(request, out)?;
    }
    out.flush()
}

/// Whether nobody on a network reads what is sent to this address.
fn keeps_secrets(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url.scheme() == "https" || (url.scheme() == "http" && is_local)
}

fn read_token(args: &TailArgs) -> Result<String, TailFault> {
    let path = || args.token_file.clone();
    let content = private_file::read(&args.token_file, TOKEN_LIMIT)
        .map_err(|fault| TailFault::File(path(), fault))?;
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let token = content.trim_ascii();
    if token.is_empty() || token.len() > TOKEN_LIMIT || !token.iter().all(is_of_token) {
        return Err(TailFault::NoToken(path()));
    }
    Ok(String::from_utf8_lossy(token).into_owned())
}

async fn ask(args: &TailArgs, token: &str) -> Result<ShownTail, TailFault> {
    let request = SignedRequest {
        method: "GET".into(),
        target: "/tail".into(),
        headers: vec![("Authorization".to_owned(), format!("Bearer {token}"))],
        body: None,
        signing_string: String::new(),
    };
    let options = CallOptions {
        cacert: args.cacert.clone(),
        http2: false,
    };
    let answer = call(&request, &args.url, &options).await?;
    match answer.status {
        200 => Ok(serde_json::from_slice(&answer.body)?),
        401 => Err(TailFault::Refused),
        other => Err(TailFault::Status(other)),
    }
}

/// Whether the bank gives no answer.
#[derive(Debug, Default)]
struct Absence(bool);

impl Absence {
    /// The text that tells a change: once when the answers cease, and once when they come again. A fault that ends the command is told
    /// by the command.
    fn note(&mut self, fault: Option<&TailFault>, ends: bool) -> Option<String> {
        if fault.is_some_and(|fault| ends || fault.is_lasting()) {
            return None;
        }
        let was_absent = std::mem::replace(&mut self.0, fault.is_some());
        match fault {
            Some(fault) if !was_absent => {
                let text = fault.to_string();
                // A fault of the connection begins so itself.
                let cause = text.strip_prefix("no answer: ").unwrap_or(&text);
                Some(format!("no answer: {cause}; asking again"))
            }
            None if was_absent => Some("the bank answers again".to_owned()),
            _ => None,
        }
    }
}

/// One line for the request, and one for its correction. The terminal escapes control characters of both.
fn write_request(request: &ShownRequest, out: &mut Terminal<impl Write>) -> io::Result<()> {
    let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let status = request.status.map_or("-".to_owned(), |s| s.to_string());
    let reason = match (&request.reason, &request.outcome) {
        (None, outcome) => word(outcome),
        (Some(reason), _) => reason.clone(),
    };
    out.line(format_args!(
        "{} {} {} {status} {reason} {}",
        request.time,
        word(&request.method),
        word(&request.operation),
        word(&request.request_id),
    ))?;
    match &request.remedy {
        Some(remedy) => out.line(format_args!("    {remedy}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn request(number: u64) -> ShownRequest {
        ShownRequest {
            number,
            time: "2026-01-01T00:00:00.000Z".to_owned(),
            method: Some("GET".to_owned()),
            operation: None,
            status: Some(403),
            outcome: Some("refused".to_owned()),
            reason: Some("role-missing".to_owned()),
            request_id: Some("a-1".to_owned()),
            remedy: Some("Use another certificate.".to_owned()),
        }
    }

    #[test]
    fn an_absence_of_the_bank_is_told_once_and_a_refusal_ends_the_command() {
        let mut absence = Absence::default();
        let fault = TailFault::Status(502);
        assert!(!fault.is_lasting());
        assert_eq!(absence.note(None, false), None);
        let text = absence.note(Some(&fault), false).unwrap();
        assert!(text.starts_with("no answer: "), "{text}");
        assert!(text.ends_with("; asking again"), "{text}");
        assert_eq!(absence.note(Some(&fault), false), None);
        assert!(absence.note(None, false).is_some());
        assert_eq!(absence.note(None, false), None);
        assert_eq!(absence.note(Some(&fault), true), None, "--once");
        for fault in [TailFault::Refused, TailFault::Status(403)] {
            assert!(fault.is_lasting());
            assert_eq!(absence.note(Some(&fault), false), None);
        }
    }

    #[test]
    fn nothing_that_the_bank_says_acts_on_the_terminal() {
        let mut out = Vec::new();
        let mut terminal = Terminal::new(&mut out);
        write_request(&request(1), &mut terminal).unwrap();
        let hostile = ShownRequest {
            request_id: Some("a\n\u{1b}[2J".to_owned()),
            reason: None,
            remedy: None,
            status: None,
            ..request(2)
        };
        write_request(&hostile, &mut terminal).unwrap();
        drop(terminal);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2026-01-01T00:00:00.000Z GET - 403 role-missing a-1\n    Use another certificate.\n\
             2026-01-01T00:00:00.000Z GET - - refused a\\n\\u{1b}[2J\n"
        );
    }

    #[test]
    fn a_token_is_not_sent_in_clear_text() {
        for (url, is_safe) in [
            ("https://bank.example", true),
            ("http://127.0.0.1:8080", true),
            ("http://localhost:8080", true),
            ("http://[::1]:8080", true),
            ("http://bank.example", false),
            ("http://localhost@bank.example", false),
            ("http://127.0.0.1.example", false),
            ("ftp://localhost", false),
            ("bank.example", false),
        ] {
            assert_eq!(keeps_secrets(url), is_safe, "{url}");
        }
    }

    #[test]
    fn a_file_that_is_no_token_or_that_others_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let args = TailArgs {
            url: String::new(),
            token_file: folder.path().join("token"),
            cacert: None,
            once: true,
        };
        for (content, mode, fits) in [
            ("YQ.-_0\n", 0o600, true),
            ("YQ.-_0\n", 0o644, false),
            ("\n", 0o600, false),
            ("a b", 0o600, false),
            ("a\r\nX: b", 0o600, false),
        ] {
            std::fs::write(&args.token_file, content).unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&args.token_file, mode).unwrap();
            assert_eq!(read_token(&args).is_ok(), fits, "{content:?}");
        }
        std::fs::write(&args.token_file, "a".repeat(TOKEN_LIMIT + 1)).unwrap();
        assert!(read_token(&args).is_err());
    }
}
