//! `portvakt observe`: what the checks that are only observed would refuse (FWD-6).
//!
//! Deliberately not here: the configuration. The report depends on the access log alone, so it can be made on another machine.

// A line of the access log.
mod line;
// The counts of all lines.
mod tally;

use crate::{
    control::import::{TextLine, next_line},
    terminal::tame,
    tools::input,
};
use clap::Subcommand;
use line::{LogLine, UnknownCheck};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};
use tally::Tally;

/// The maximum length of a line, in bytes. The gateway's own have less than 4 KiB.
const MAX_LINE: usize = 64 * 1024;

/// The first bytes of files that log rotation compressed: gzip, zstd, xz and bzip2.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh"];

/// `portvakt observe …`
#[derive(Debug, Subcommand)]
pub enum ObserveCommand {
    /// Read access logs and report the TPPs whose requests would be refused if every check refused, with reasons and counts, and the
    /// checks that can refuse from now on (docs/adopting.md). Exits with 0 if no request would be refused, with 1 if some would, and
    /// with 2 if a log or a line of it is unreadable, no line is a request, or one has a check of a newer gateway.
    Report {
        /// Access logs; - is standard input.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
}

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ObserveFault {
    /// A log cannot be read.
    #[error("{} cannot be read: {}", input::name(.0), .1)]
    File(PathBuf, io::Error),
    /// A log is compressed.
    #[error(
        "{} is compressed: decompress it first, as in: zcat FILE | portvakt observe report -",
        input::name(.0)
    )]
    Compressed(PathBuf),
    /// A request failed a check that this version does not know.
    #[error(
        "{}: a request failed a check that this version does not know: {}; make the report by the version of the gateway that wrote the log",
        input::name(.0), .1
    )]
    UnknownCheck(PathBuf, String),
    /// No line is a request.
    #[error("no line of these logs is a request of an access log")]
    NoRequest,
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Makes the report.
///
/// # Errors
/// [`ObserveFault`].
pub fn run(command: &ObserveCommand, out: &mut impl Write) -> Result<ExitCode, ObserveFault> {
    let ObserveCommand::Report { files } = command;
    let mut tally = Tally::default();
    for file in files {
        count_file(file, &mut tally)?;
    }
    if tally.requests() == 0 {
        return Err(ObserveFault::NoRequest);
    }
    tally.write(out)?;
    Ok(match (tally.is_complete(), tally.is_clean()) {
        (false, _) => ExitCode::from(2),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::FAILURE,
    })
}

fn count_file(path: &Path, tally: &mut Tally) -> Result<(), ObserveFault> {
    if path == Path::new("-") {
        return count(io::stdin().lock(), path, tally);
    }
    let file = File::open(path).map_err(|error| ObserveFault::File(path.to_owned(), error))?;
    count(BufReader::with_capacity(1 << 20, file), path, tally)
}

fn count(mut input: impl BufRead, path: &Path, tally: &mut Tally) -> Result<(), ObserveFault> {
    let unreadable = |error| ObserveFault::File(path.to_owned(), error);
    let begin = input.fill_buf().map_err(unreadable)?;
    if COMPRESSED.iter().any(|magic| begin.starts_with(magic)) {
        return Err(ObserveFault::Compressed(path.to_owned()));
    }
    let mut number = 0_u64;
    while let Some(line) = next_line(&mut input, MAX_LINE).map_err(unreadable)? {
        number = number.saturating_add(1);
        let read = match &line {
            TextLine::Whole(bytes) if bytes.trim_ascii().is_empty() => continue,
            TextLine::Whole(bytes) => line::read(bytes),
            TextLine::TooLong => Ok(LogLine::Unreadable),
        };
        let read = read.map_err(|UnknownCheck(text)| {
            ObserveFault::UnknownCheck(path.to_owned(), tame(&text))
        })?;
        match read {
            LogLine::Request(request) => tally.add(request),
            LogLine::Other => tally.add_other(),
            LogLine::Unreadable => {
                tally.add_unreadable(|| format!("{}:{number}", input::name(path)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(log: &str) -> (String, bool) {
        let mut tally = Tally::default();
        count(log.as_bytes(), Path::new("access.log"), &mut tally).unwrap();
        let mut out = Vec::new();
        tally.write(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), tally.is_clean())
    }

    #[test]
    fn senders_reasons_and_checks() {
        let log = r#"
{"time":1790000000,"operation":"account-list","tpp":"PSDNO-FSA-1","outcome":"forwarded","status":200,"sample":10}
{"time":1790000060,"operation":"account-list","tpp":"PSDNO-FSA-1","outcome":"forwarded","status":200,"observed":[{"check":"date","reason":"date-skewed"},{"check":"payload","reason":"payload-invalid"}]}
{"time":"2026-09-21T14:00:00.123Z","tpp":"PSDNO-FSA-1","outcome":"forwarded","status":404,"observed":[{"check":"date","reason":"date-skewed"}]}
{"time":1790000000,"tpp":null,"shown_tpp":"PSDNO-FSA-2","outcome":"forwarded","status":200,"observed":[{"check":"signature","reason":"signature-mismatch"}]}
{"time":1790000000,"tpp":null,"outcome":"refused","reason":"operation-unknown","status":404}
gateway started
{"time":"2026-09-21T14:00:00.123Z","kind":"event","level":"warn"}
"#;
        let (text, clean) = report(log);
        let expected = "\
14 requests from 2026-09-21T14:00:00Z to 2026-09-21T14:14:20Z; 2 other lines
1 was refused; 3 more would be refused if every check refused

PSDNO-FSA-1: 2 of 12 requests would be refused; the core served 1 of them
  date           date-skewed                         2 failed, 2 first
  payload        payload-invalid                     1 failed, 0 first
PSDNO-FSA-2 (not proven): 1 of 1 requests would be refused; the core served 1 of them
  signature      signature-mismatch                  1 failed, 1 first

headers          safe to enforce
query            safe to enforce
date             would refuse 2 requests that passed: PSDNO-FSA-1
certificate      safe to enforce
role             safe to enforce
signature        would refuse 1 request that passed: PSDNO-FSA-2 (not proven)
register         safe to enforce
revocation       safe to enforce
redirect-host    safe to enforce
digest           safe to enforce
payload          would refuse 1 request that passed: PSDNO-FSA-1
sca              safe to enforce
replay           safe to enforce
quota            safe to enforce

This section refuses none of the requests that passed:
observe:
  checks: []
  tpps:
    PSDNO-FSA-1: [date, payload]
    PSDNO-FSA-2: [signature]
";
        assert_eq!(text, expected);
        assert!(!clean);
    }

    /// A TPP's set has what its own requests need, and is for exactly this spelling (FWD-6).
    #[test]
    fn the_section_is_the_smallest() {
        let line = |sender: &str, check: &str| {
            format!(
                r#"{{{sender},"outcome":"forwarded","status":200,"observed":[{{"check":"{check}","reason":"any"}}]}}"#
            )
        };
        let log = [
            line(r#""tpp":"PSDNO-FSA-1111-11""#, "date"),
            line(r#""tpp":"PSDNO-FSA-111 111""#, "query"),
            line(r#""shown_tpp":"PSDNO-FSA-111111""#, "role"),
            line(r#""shown_tpp":"PSDNO-FSA-222222""#, "signature"),
            line(r#""shown_tpp":"PSDNO-FSA-333333""#, "headers"),
            line(r#""tpp":null"#, "certificate"),
        ];
        let (text, _) = report(&log.join("\n"));
        let expected = "observe:
  checks: [headers, certificate]
  tpps:
    \"PSDNO-FSA-111 111\": [query]
    PSDNO-FSA-1111-11: [date]
    PSDNO-FSA-111111: [role]
    PSDNO-FSA-222222: [signature]
";
        assert!(text.ends_with(expected), "{text}");
    }

    /// A line that cannot be read may hold what would be refused.
    #[test]
    fn unreadable_lines_are_named() {
        let whole = r#"{"time":1790000000,"outcome":"forwarded","status":200}"#;
        let prefixed = format!("Jan 05 host portvakt[7]: {whole}");
        let glued = format!("{whole}{whole}");
        let wrapped = serde_json::json!({ "log": whole }).to_string();
        let long = format!(
            r#"{{"outcome":"forwarded","reason":"{}"}}"#,
            "x".repeat(MAX_LINE)
        );
        let marked = format!("\u{feff}{whole}");
        let holed = format!("\0\0\0{whole}");
        let bad = [
            &*prefixed,
            &glued,
            &wrapped,
            &long,
            &marked,
            &holed,
            &whole[..20],
            &whole[20..],
            "\0\0\0",
            "{}",
            r#"{"kind":"access"}"#,
            r#"{"outcome":1}"#,
            r#"{"outcome":"forwarded","tpp":5}"#,
            r#"{"outcome":"forwarded","sample":1.5}"#,
            r#"{"outcome":"forwarded","sample":-1}"#,
        ];
        for line in bad {
            let (text, _) = report(&format!("{whole}\n\n{line}"));
            let named = "1 line cannot be read (access.log:3).";
            assert!(text.contains(named), "{line}: {text}");
            assert!(!text.contains("safe to enforce"), "{line}: {text}");
            assert!(!text.contains("no section observe"), "{line}: {text}");
        }
        let (text, _) = report(&[bad.join("\n"), whole.to_owned()].join("\n"));
        let named = "15 lines cannot be read (access.log:1, access.log:2, access.log:3, access.log:4, access.log:5 and 10 more).";
        assert!(text.contains(named), "{text}");
        // Plain text of other programs cannot be a part of a request.
        let text = "Started portvakt.service - the gateway.\r\nportvakt: cannot bind";
        let (text, clean) = report(&format!("{whole}\n{text}\n"));
        assert!(clean && text.contains("; 2 other lines\n"), "{text}");
        assert!(text.contains("safe to enforce"), "{text}");
    }

    /// Names that anybody can make up do not displace TPPs.
    #[test]
    fn shown_senders_are_bounded() {
        let shown = (0..12_000).map(|number| {
            format!(r#"{{"shown_tpp":"PSDNO-FSA-{number}","outcome":"forwarded","status":200,"observed":[{{"check":"certificate","reason":"certificate-untrusted"}}]}}"#)
        });
        let proven = r#"{"tpp":"PSDNO-FSA-1","outcome":"forwarded","status":200,"observed":[{"check":"date","reason":"date-skewed"}]}"#;
        let log: Vec<_> = shown.chain([proven.to_owned()]).collect();
        let (text, _) = report(&log.join("\n"));
        assert!(text.contains("PSDNO-FSA-1: 1 of 1"), "{text}");
        assert!(text.contains("other senders: 11000 of 11000"), "{text}");
        assert!(
            text.contains("    PSDNO-FSA-1: [date, certificate]\n"),
            "{text}"
        );
    }

    /// A report must not call safe what it does not know.
    #[test]
    fn a_check_of_a_newer_gateway_is_no_report() {
        let lines = [
            r#""observed":[{"check":"date","reason":"date-skewed"},{"check":"new","reason":"odd"}]"#,
            r#""observed":[{"check":"date"}]"#,
            r#""observed":"new""#,
        ];
        for observed in lines {
            let log = format!(r#"{{"time":1790000000,"outcome":"forwarded",{observed}}}"#);
            let fault = count(log.as_bytes(), Path::new("a.log"), &mut Tally::default());
            let text = fault.unwrap_err().to_string();
            let expected = "a.log: a request failed a check that this version does not know: ";
            assert!(text.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn a_compressed_log_is_named() {
        // What gzip makes of an empty file.
        let gzip =
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00";
        let fault = count(&gzip[..], Path::new("a.log.2.gz"), &mut Tally::default());
        assert_eq!(
            fault.unwrap_err().to_string(),
            "a.log.2.gz is compressed: decompress it first, as in: zcat FILE | portvakt observe report -"
        );
    }

    #[test]
    fn a_log_without_observed_faults() {
        let (text, clean) =
            report(r#"{"time":1790000000,"tpp":"PSDNO-FSA-1","outcome":"forwarded","status":200}"#);
        assert!(clean);
        assert!(text.ends_with("no section observe is needed.\n"), "{text}");
        assert!(text.contains("0 more would be refused"), "{text}");
    }
}
