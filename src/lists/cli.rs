//! The command line of `portvakt-lists`.
//!
//! Standard output has the result, standard error has progress and faults; all text is escaped, since lists are written by others. Exit
//! status: 0 done; 1 refused, with nothing changed, or a bundle was shown that the gateway refuses or beside which one is damaged; 2 a wrong
//! command line.

use crate::{
    addresses::addresses,
    bundle::{
        BundleFolder, CURRENT, DOCUMENT, GatewayConfig, Regression, Use, check, describe_import,
        diff, known,
    },
    fault::Refusal,
    import::{Imported, ListFile, Request, certificates, import, lists_in, pins},
    losses::SeenCertificates,
    second::Verifiers,
    show::Shown,
};
use clap::{Parser, Subcommand, ValueEnum};
use portvakt_base::{
    clock::{Clock, Timestamp},
    private_file,
    terminal::{Terminal, complain},
};
use portvakt_trust::CertificateTypes;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The name of the program.
const PROGRAM: &str = "portvakt-lists";

/// Trust anchors from the EU's trusted lists.
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, about, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify lists, and write their anchors as a new bundle
    Import(ImportOptions),
    /// Show a bundle: lists, next updates, what ends soon, what changed, which TPPs would lose trust
    Show(ShowOptions),
    /// Print the addresses of pivots and national lists that a list of lists has, as a configuration of curl (`curl -K -`)
    Addresses {
        /// The list of lists
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct ImportOptions {
    /// The list of lists
    #[arg(long, value_name = "FILE")]
    list_of_lists: PathBuf,
    /// Certificates of its signers, as the Official Journal names them: files in PEM or DER, or folders of them
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    pins: Vec<PathBuf>,
    /// The folder of national lists and pivots
    #[arg(long, value_name = "FOLDER")]
    lists: PathBuf,
    /// The folder of bundles
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// The time as of which lists and services are judged (RFC 3339, or a day in UTC); now by default
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,
    /// Leave out the list of a country, such as ES; may be repeated. A country that no list has is refused
    #[arg(long, value_name = "COUNTRY")]
    leave_out: Vec<String>,
    /// The program xmlsec1: it must accept each signature too, and refuse a list that was altered
    #[arg(long, value_name = "PROGRAM")]
    second_verifier: Option<PathBuf>,
    /// Write the bundle, and leave the last one in use
    #[arg(long)]
    hold: bool,
    /// Allow that a list of the last bundle is missing, or that over a tenth of its anchors for seals or for websites go, whatever new ones
    /// come
    #[arg(long)]
    allow_shrink: bool,
}

#[derive(Debug, clap::Args)]
struct ShowOptions {
    /// The folder of bundles, of which the newest is shown, or one bundle in it
    folder: PathBuf,
    /// The time as of which it is shown (RFC 3339, or a day in UTC); now by default
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,
    /// The certificates that a gateway has seen, seen-certificates.jsonl in its folder of state; may be repeated
    #[arg(long, value_name = "FILE")]
    seen: Vec<PathBuf>,
    /// The gateway's own anchors (trust.anchors): files in PEM or DER, or folders of them; may be repeated
    #[arg(long, value_name = "PATH", requires = "seen")]
    anchors: Vec<PathBuf>,
    /// The gateway's intermediates (trust.intermediates): files in PEM or DER, or folders of them; may be repeated
    #[arg(long, value_name = "PATH", requires = "seen")]
    intermediates: Vec<PathBuf>,
    /// The types of certificate that may sign by the gateway's configuration (trust.certificate_types); both by default
    #[arg(
        long,
        value_name = "TYPES",
        value_enum,
        value_delimiter = ',',
        requires = "seen"
    )]
    certificate_types: Vec<SigningType>,
}

/// A type of certificate that may sign, by the words of the gateway's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SigningType {
    /// Certificates for electronic seals (QSealC)
    Eseal,
    /// Certificates for web sites (QWAC)
    Web,
}

impl SigningType {
    /// The types together; both if there is none.
    fn together(all: &[Self]) -> CertificateTypes {
        if all.is_empty() {
            return CertificateTypes::default();
        }
        CertificateTypes {
            eseal: all.contains(&Self::Eseal),
            web: all.contains(&Self::Web),
        }
    }
}

/// Runs the program.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let now = Clock::default().now();
    let done = match cli.command {
        Command::Import(options) => run_import(options, now),
        Command::Show(options) => show(&options, now),
        Command::Addresses { file } => print_addresses(&file),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(faults) => {
            for fault in faults {
                complain(PROGRAM, fault);
            }
            ExitCode::FAILURE
        }
    }
}

/// What was refused, one line each.
type Faults = Vec<String>;

fn one(refusal: Refusal) -> Faults {
    vec![refusal.to_string()]
}

fn run_import(options: ImportOptions, now: Timestamp) -> Result<(), Faults> {
    let at = options.at.unwrap_or(now);
    if at > now {
        return Err(vec![format!(
            "--at {at} lies ahead: lists are judged as of now, or of an earlier time; nothing was imported"
        )]);
    }
    let out = options.out;
    let texts = |faults: Vec<crate::import::Fault>| -> Faults {
        refused(faults.iter().map(ToString::to_string).collect(), &out)
    };
    let request = Request {
        pins: pins(&options.pins).map_err(|fault| texts(vec![fault]))?,
        lists: lists_in(&options.lists).map_err(|fault| texts(vec![fault]))?,
        list_of_lists: options.list_of_lists,
        leave_out: options.leave_out.into_iter().collect(),
        at,
        verifiers: Verifiers::new(options.second_verifier),
    };
    let mut progress = |line: String| {
        let _ = Terminal::errors().line(line);
    };
    let imported = import(&request, &mut progress).map_err(texts)?;
    for (country, address) in &imported.missing {
        progress(format!(
            "{country}: no file of its list, which is at {address}"
        ));
    }
    write_bundle(&imported, &out, options.allow_shrink, options.hold, now)
        .map_err(|faults| refused(faults, &out))
}

/// The faults of an import, and which bundle is in use then.
fn refused(mut faults: Faults, out: &Path) -> Faults {
    let last = match is_any_in_use(out) {
        true => "the last bundle stays in use",
        false => "no bundle is in use",
    };
    faults.push(format!("nothing was imported: {last}"));
    faults
}

/// Whether a bundle is in use, by a path that names the folder of bundles or, by mistake, one of them.
fn is_any_in_use(out: &Path) -> bool {
    let folder = match out.canonicalize() {
        Ok(bundle) if bundle.join(DOCUMENT).is_file() => {
            private_file::folder_of(&bundle).to_owned()
        }
        _ => out.to_owned(),
    };
    folder.join(CURRENT).join(DOCUMENT).is_file()
}

/// Writes the bundle, if it may follow the last one, puts it in use unless it is held, and prints what changed.
fn write_bundle(
    imported: &Imported,
    out: &Path,
    allow_shrink: bool,
    is_held: bool,
    now: Timestamp,
) -> Result<(), Faults> {
    let folder = BundleFolder::open(out).map_err(one)?;
    // Both faults at once: what mends one leaves the other.
    let (last, newest) = match (folder.current(), folder.newest(now)) {
        (Ok(last), Ok(newest)) => (last, newest),
        (last, newest) => {
            let faults = last
                .err()
                .into_iter()
                .chain(newest.err().unwrap_or_default());
            return Err(faults.map(|fault| fault.to_string()).collect());
        }
    };
    let known = known(last.iter().chain(&newest));
    let bundle = describe_import(imported, &known, now);
    bundle.judge().map_err(|fault| vec![fault.to_string()])?;
    let mut output = Terminal::output();
    let mut print = |line: String| {
        let _ = output.line(line);
    };
    if let Some(last) = &last {
        diff(last, &bundle).into_iter().for_each(&mut print);
    }
    for it in &bundle.left_out {
        let _ = Terminal::errors().line(format_args!(
            "{} {} ({}): {}",
            it.territory, it.service, it.provider, it.reason
        ));
    }
    let faults = check(last.as_ref(), &known, &bundle, allow_shrink);
    if !faults.is_empty() {
        return Err(faults.iter().map(Regression::to_string).collect());
    }
    if bundle.anchors.is_empty() {
        let text = "no anchor: are the national lists in the folder of lists?";
        return Err(vec![text.to_owned()]);
    }
    let written = match is_held {
        true => folder.hold(&bundle, &imported.anchors),
        false => folder.write(&bundle, &imported.anchors),
    };
    let written = written.map_err(one)?;
    print(format!(
        "{}: {} anchors for seals, {} for websites, from {} lists",
        written.display(),
        bundle.count(Use::Seals),
        bundle.count(Use::Websites),
        bundle.lists.len()
    ));
    if is_held {
        print(held(out, &written, last.is_some()));
    }
    Ok(())
}

/// What is in use while a bundle is held; where nothing is, how to take the bundle into use.
fn held(out: &Path, written: &Path, has_last: bool) -> String {
    if has_last {
        return "it is held: the last bundle stays in use".to_owned();
    }
    let name = written.file_name().unwrap_or_default();
    format!(
        "it is held, and no bundle is in use yet; this takes it into use: ln -s {} {}",
        name.to_string_lossy(),
        out.join(CURRENT).display()
    )
}

fn show(options: &ShowOptions, now: Timestamp) -> Result<(), Faults> {
    let at = options.at.unwrap_or(now);
    let shown = Shown::open(&options.folder, now).map_err(one)?;
    let read = |paths: &[PathBuf]| certificates(paths).map_err(|fault| vec![fault.to_string()]);
    let (own, intermediates) = (read(&options.anchors)?, read(&options.intermediates)?);
    let config = GatewayConfig {
        own: &own,
        intermediates: &intermediates,
        types: SigningType::together(&options.certificate_types),
    };
    let mut faults = shown.faults(config);
    let mut lines = shown.lines(&faults, at);
    if !options.seen.is_empty() {
        let seen = SeenCertificates::read(&options.seen, now.max(at)).map_err(one)?;
        match shown.losses(&seen, config, at) {
            Ok(losses) => lines.extend(losses),
            // What the gateway refuses it judges nothing by.
            Err(_) if !faults.is_empty() => {}
            Err(refusal) => faults.push(refusal.to_string()),
        }
    }
    let mut output = Terminal::output();
    for line in lines {
        let _ = output.line(line);
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults),
    }
}

fn print_addresses(file: &Path) -> Result<(), Faults> {
    let list = ListFile::read(file).map_err(|fault| vec![fault.to_string()])?;
    let found =
        addresses(&list).map_err(|refusal| vec![format!("{}: {refusal}", file.display())])?;
    let mut output = Terminal::output();
    for address in found {
        let _ = output.line(format_args!("url = \"{}\"", address.url));
        let _ = output.line(format_args!("output = \"{}\"", address.file));
    }
    Ok(())
}

/// A time of the command line: RFC 3339, or a day, which is its midnight in UTC.
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(day) = text.parse::<jiff::civil::Date>()
        && text.len() == "2026-01-31".len()
    {
        return Timestamp::midnight(day).ok_or_else(|| "a day before 1970".to_owned());
    }
    let at: jiff::Timestamp = text
        .parse()
        .map_err(|_| "expected a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31")?;
    let seconds = u64::try_from(at.as_second()).map_err(|_| "a time before 1970")?;
    Ok(Timestamp::from_unix(seconds))
}

#[cfg(test)]
mod tests;
