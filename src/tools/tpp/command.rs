//! The command line of `portvakt tpp`.
//!
//! Invariant: every header that the command adds is shown (`sign`, `--dry-run`), and `--bare` adds only those of signing.
//! Deliberately not here: any state. The user remembers PSU-ID and session.

use super::{
    CallOptions, SignOptions, SignedRequest, TppFault, TppIdentity, Unsigned, VerifyArgs, call,
    sign, verify,
};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

/// The default redirect URI: HDR-5 requires one on nearly every operation.
const REDIRECT_URI: &str = "https://tpp.example/callback";

/// The PSU's address for `--psu-present`, from the documentation range of RFC 5737.
const PSU_ADDRESS: &str = "192.0.2.10";

/// `portvakt tpp`: act as a TPP.
#[derive(Debug, clap::Subcommand)]
pub enum TppCommand {
    /// Sign a request, and print its headers and the signing string.
    Sign(RequestArgs),
    /// Sign a request and send it. Exits with 0 for a 2xx answer, with 1 otherwise.
    Call(CallArgs),
    /// Verify certificate, Signature and Digest of a saved request or answer, by a certificate or CAs that you trust. Exits with 0 if all
    /// checks pass, with 1 otherwise.
    Verify(VerifyArgs),
}

/// The request to sign, and the signing options.
#[derive(Debug, clap::Args)]
pub struct RequestArgs {
    /// The certificate (QSealC), PEM.
    #[arg(long, value_name = "FILE")]
    cert: PathBuf,
    /// Its RSA private key, PEM.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Trust these certificates and no others for TLS, PEM.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// A header, `Name: value`; repeatable. Overrides Date and Digest too, to produce faulty requests.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    headers: Vec<String>,
    /// The body: text, @FILE, or @- for standard input.
    #[arg(short, long, value_name = "TEXT|@FILE|@-")]
    data: Option<String>,
    /// The PSU is present: add PSU-IP-Address.
    #[arg(long)]
    psu_present: bool,
    /// Add no X-Request-ID, TPP-Redirect-URI or Content-Type.
    #[arg(long)]
    bare: bool,
    /// Sign these headers instead of those that the interface requires.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    sign_only: Option<Vec<String>>,
    /// Print a curl command instead.
    #[arg(long)]
    curl: bool,
    /// GET, POST, ...
    #[arg(value_name = "METHOD")]
    method: String,
    /// https://host:port/path?query; path and query are signed and sent unchanged.
    #[arg(value_name = "URL")]
    url: String,
}

/// The request to send, and the connection options.
#[derive(Debug, clap::Args)]
pub struct CallArgs {
    #[command(flatten)]
    request: RequestArgs,
    /// Print the headers and the signing string, send nothing.
    #[arg(long)]
    dry_run: bool,
    /// Offer HTTP/2.
    #[arg(long)]
    http2: bool,
}

/// Runs the command at the time `now` and writes to `out`.
///
/// The exit code is success for `sign`, `--curl`, `--dry-run` and a 2xx answer, failure for any other answer; for `verify` it
/// is success if all checks pass.
pub fn run(
    command: &TppCommand,
    now: SystemTime,
    out: &mut dyn Write,
) -> Result<ExitCode, TppFault> {
    let (args, sends) = match command {
        TppCommand::Sign(args) => (args, None),
        TppCommand::Call(args) => (&args.request, Some(args).filter(|args| !args.dry_run)),
        TppCommand::Verify(args) => return verify::run(args, now.into(), out),
    };
    let (base_url, request) = signed(args, now)?;
    match sends {
        _ if args.curl => writeln!(
            out,
            "{}",
            request.as_curl(&base_url, args.cacert.as_deref())
        )?,
        None => show(&request, out)?,
        Some(call) => return send(&base_url, &request, call, out),
    }
    Ok(ExitCode::SUCCESS)
}

fn signed(args: &RequestArgs, now: SystemTime) -> Result<(String, SignedRequest), TppFault> {
    let identity = TppIdentity::from_pem_files(&args.cert, &args.key)?;
    let (base_url, target) = split_url(&args.url)?;
    let body = args.data.as_deref().map(read_data).transpose()?;
    let request = Unsigned {
        method: args.method.to_ascii_uppercase(),
        target,
        headers: headers(args, &base_url, body.is_some())?,
        body,
    };
    let options = SignOptions {
        headers: args.sign_only.clone(),
        add_request_id: !args.bare,
        ..SignOptions::at(now)
    };
    Ok((base_url, sign(&identity, request, &options)?))
}

/// Splits a URL into scheme with authority, and path with query. No URL parser is used, so the typed target is the signed one.
fn split_url(url: &str) -> Result<(String, String), TppFault> {
    let fault = || TppFault::Target(url.to_owned());
    let (scheme, rest) = url.split_once("://").ok_or_else(fault)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at_checked(end).ok_or_else(fault)?;
    if authority.is_empty() || target.contains('#') {
        return Err(fault());
    }
    let slash = if target.starts_with('/') { "" } else { "/" };
    Ok((
        format!("{scheme}://{authority}"),
        format!("{slash}{target}"),
    ))
}

fn headers(
    args: &RequestArgs,
    base_url: &str,
    has_body: bool,
) -> Result<Vec<(String, String)>, TppFault> {
    let mut headers = Vec::new();
    for line in &args.headers {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| TppFault::Header(line.clone()))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut add = |name: &str, value: &str| {
        if !headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            headers.push((name.to_owned(), value.to_owned()));
        }
    };
    if args.psu_present {
        add("PSU-IP-Address", PSU_ADDRESS);
    }
    if !args.bare {
        add("TPP-Redirect-URI", REDIRECT_URI);
        if has_body {
            add("Content-Type", "application/json");
        }
    }
    // Clients set Host themselves, after the signature that covers it.
    let signs_host = args.sign_only.iter().flatten();
    if signs_host
        .into_iter()
        .any(|name| name.eq_ignore_ascii_case("host"))
        && let Some((_, authority)) = base_url.split_once("://")
    {
        add("Host", authority);
    }
    Ok(headers)
}

fn read_data(data: &str) -> Result<Vec<u8>, TppFault> {
    match data.strip_prefix('@') {
        None => Ok(data.as_bytes().to_vec()),
        Some("-") => {
            let mut body = Vec::new();
            std::io::stdin().lock().read_to_end(&mut body)?;
            Ok(body)
        }
        Some(path) => std::fs::read(path).map_err(|source| TppFault::File {
            path: path.into(),
            source,
        }),
    }
}

fn show(request: &SignedRequest, out: &mut dyn Write) -> Result<(), TppFault> {
    writeln!(out, "{} {}", request.method, request.target)?;
    for (name, value) in &request.headers {
        writeln!(out, "{name}: {value}")?;
    }
    writeln!(out, "\nsigning string:\n{}", request.signing_string)?;
    Ok(())
}

fn send(
    base_url: &str,
    request: &SignedRequest,
    args: &CallArgs,
    out: &mut dyn Write,
) -> Result<ExitCode, TppFault> {
    let options = CallOptions {
        cacert: args.request.cacert.clone(),
        http2: args.http2,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let answer = runtime.block_on(call(request, base_url, &options))?;
    writeln!(out, "{}", answer.status)?;
    for (name, value) in &answer.headers {
        writeln!(out, "{name}: {value}")?;
    }
    writeln!(out)?;
    out.write_all(&answer.body)?;
    if !answer.body.is_empty() && !answer.body.ends_with(b"\n") {
        writeln!(out)?;
    }
    Ok(if answer.is_success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
