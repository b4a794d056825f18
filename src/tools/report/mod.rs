//! `portvakt report`: the quarterly figures of a dedicated interface, by day, from access logs.
//!
//! The figures are those of Article 32(4) RTS and of the EBA guidelines on the contingency mechanism (EBA/GL/2018/07), guidelines 2 and
//! 3: uptime and downtime, the mean response times of AIS and PIS, and the rate of errors that the bank has to answer for. Files add those
//! of the bank's own channel, and SCAs; the audit adds the reasons of failed SCAs, and the state the live consents, both by TPP.
//! Deliberately not here: times in which no gateway ran, of which no line tells.

// The lines of a log, those that are odd or were read before, and the sums of a day.
mod access;
mod day;
mod foreign;
mod lines;
mod seen;
// Why there is no report.
mod fault;
// Downtime by five requests that are not replied to within 30 seconds.
mod downtime;

// The own channel's figures, SCAs, live consents, and all of them beside the days.
mod beside;
mod consents;
mod ends;
mod own;
mod sca;

// The report: a table, that of TPPs, a chart, or a page to publish and its two files.
mod by_tpp;
mod chart;
mod html;
mod page;
mod status;
mod table;

pub use fault::ReportFault;

use crate::{clock::Timestamp, terminal::tame};
use access::LogLine;
use beside::Beside;
use clap::{Args, ValueEnum};
use day::Days;
use foreign::{Foreign, Oddity};
use jiff::civil::Date;
use lines::{Line, Lines};
use seen::SeenLines;
use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

/// The arguments of `portvakt report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Access logs, of all replicas; - for standard input. Compressed ones must be expanded first.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The first day (UTC); by default that of the first line.
    #[arg(long, value_name = "DATE")]
    from: Option<Date>,
    /// The last day (UTC); by default that of the last line.
    #[arg(long, value_name = "DATE")]
    to: Option<Date>,
    /// The form of the report.
    #[arg(long, value_enum, default_value_t = Form::Csv)]
    format: Form,
    /// The figures of the bank's own channel by day, which stand beside those of the interface: CSV, as docs/operations.md describes it.
    #[arg(long, value_name = "FILE")]
    own_channel: Option<PathBuf>,
    /// SCAs by day: a saved answer of Prometheus, as docs/operations.md describes it.
    #[arg(long, value_name = "FILE", conflicts_with = "page")]
    sca: Option<PathBuf>,
    /// Completed and failed SCAs by day and by TPP, with the codes of the failed ones: the folder of an audit (`audit.folder`). Once for each
    /// gateway.
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    audit: Vec<PathBuf>,
    /// The live consents of each TPP now, by the state of this configuration of the gateway. The state is only read; the gateway may run.
    #[arg(long, value_name = "FILE", conflicts_with = "page")]
    config: Option<PathBuf>,
    /// Instead of printing a report, write a status page to publish, index.html and status.json, to this folder; it is created if it is
    /// missing. Files of another origin are never replaced.
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    page: Option<PathBuf>,
    /// The bank's name, on the status page.
    #[arg(long, value_name = "NAME", requires = "page", conflicts_with_all = ["format", "sca"], value_parser = bank_name)]
    bank: Option<String>,
}

/// A name for a heading: no control character changes what stands around it.
fn bank_name(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() || text.chars().count() > 100 || tame(text) != text {
        return Err("expected 1 to 100 characters without control characters");
    }
    Ok(text.to_owned())
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A line for each day, separated by commas.
    Csv,
    /// An object for each day.
    Json,
    /// A chart.
    Svg,
}

/// Reads the logs, and writes the report to `out`, or the status page to its folder. Says on `notes` which lines were not counted as they
/// stand, which days a file of figures lacks, and what is wrong in one. Consents are those that live at `now`.
///
/// # Errors
/// The reason why there is no report.
pub fn run(
    args: &ReportArgs,
    now: Timestamp,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> Result<(), ReportFault> {
    let of_tpps = args.config.is_some() || !args.audit.is_empty();
    if of_tpps && args.format == Form::Svg {
        return Err(ReportFault::NoChart);
    }
    // A wrong file or folder is known before the logs are read, which may take minutes.
    let own = args.own_channel.as_deref();
    let mut beside = Beside::read(own, args.sca.as_deref(), notes)?;
    if let Some(config) = &args.config {
        beside.consents = Some(consents::read(config, now)?);
    }
    if !args.audit.is_empty() {
        let moves = beside.consents.as_ref().map(|consents| &consents.moves);
        beside.ends = Some(ends::read(&args.audit, moves, notes)?);
    }
    if let Some(folder) = &args.page {
        page::check(folder)?;
    }
    let days = read_logs(args, notes)?.rows()?;
    beside.note_gaps(&days, notes);
    if let Some(folder) = &args.page {
        beside::note_quiet_days(&days, notes);
        let (own, bank) = (beside.own.as_ref(), args.bank.as_deref());
        let status = status::render(&days, own, bank);
        let html = html::render(&days, own, bank, &status);
        return page::write(folder, &status, &html);
    }
    let text = match args.format {
        Form::Csv => table::csv(&days, &beside),
        Form::Json => table::objects(&days, &beside),
        Form::Svg => chart::draw(&days, &beside),
    };
    out.write_all(text.as_bytes()).map_err(ReportFault::Output)
}

fn read_logs(args: &ReportArgs, notes: &mut impl Write) -> Result<Days, ReportFault> {
    let mut days = Days::new(args.from, args.to);
    let mut foreign = Foreign::default();
    let mut seen = SeenLines::new();
    let firsts = first_lines(&args.files)?;
    for path in &args.files {
        let fault = |error| ReportFault::File(path.clone(), error);
        for (number, line) in (1..).zip(Lines::of(open(path).map_err(fault)?)) {
            let Line::Whole(line) = line.map_err(fault)? else {
                foreign.note(Oddity::TooLong, path, number);
                continue;
            };
            if let Some(other) = firsts.get(&line).filter(|other| *other != path) {
                return Err(ReportFault::Twice(other.clone(), path.clone()));
            }
            if !line.is_empty() {
                for oddity in count(&line, &mut days, &mut seen, (path, number)) {
                    foreign.note(oddity, path, number);
                }
            }
            if days.are_too_many() {
                foreign.write("access log", notes);
                return Err(ReportFault::TooManyDays(path.clone(), number));
            }
        }
    }
    foreign.write("access log", notes);
    if seen.has_forgotten() {
        let kept = seen::KEPT;
        let _ = writeln!(
            notes,
            "access log: a line was compared with the {kept} requests before it; one that is repeated after more of them counts twice"
        );
    }
    days.note_gaps(notes);
    Ok(days)
}

/// Counts a line; returns what is odd about it.
fn count(
    line: &[u8],
    days: &mut Days,
    seen: &mut SeenLines,
    (file, number): (&Path, u64),
) -> Vec<Oddity> {
    let mut odd = Vec::new();
    match access::read(line, &mut odd) {
        LogLine::NoRequest => {}
        LogLine::Foreign(oddity) => odd.push(oddity),
        LogLine::Request(_) if !seen.add(line) => odd = vec![Oddity::Repeated],
        LogLine::Request(request) => odd.extend(days.add(&request, file, number).err()),
    }
    odd
}

/// The first line of each file that can be read twice, which no other file may have: a log is written in one piece, so of two that have lines
/// in common one has the first line of the other.
fn first_lines(files: &[PathBuf]) -> Result<HashMap<Vec<u8>, PathBuf>, ReportFault> {
    let mut firsts = HashMap::new();
    for path in files {
        let fault = |error| ReportFault::File(path.clone(), error);
        if !path.metadata().is_ok_and(|file| file.is_file()) {
            continue;
        }
        let lines = Lines::of(open(path).map_err(fault)?);
        let mut lines = lines.filter_map(|line| match line {
            Ok(Line::Whole(line)) => (!line.is_empty()).then_some(Ok(line)),
            Ok(Line::TooLong) => None,
            Err(error) => Some(Err(error)),
        });
        let Some(first) = lines.next().transpose().map_err(fault)? else {
            continue;
        };
        if let Some(other) = firsts.insert(first, path.clone()) {
            return Err(ReportFault::Twice(other, path.clone()));
        }
    }
    Ok(firsts)
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    Ok(Box::new(BufReader::with_capacity(
        1 << 20,
        File::open(path)?,
    )))
}

#[cfg(test)]
mod beside_tests;

#[cfg(test)]
mod tests {
    use super::{table::COLUMNS, *};
    use serde_json::{Value, json};

    const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

    /// A line that ended at this second of 1 January 2026.
    fn line(second: u64, service: &str, status: u64, whole_ms: u64) -> String {
        let at = jiff::Timestamp::from_second(1_767_225_600 + i64::try_from(second).unwrap());
        let outcome = if status < 500 { "forwarded" } else { "failed" };
        json!({
            "time": format!("{:.3}", at.unwrap()), "kind": "access", "service": service, "tpp": "PSDNO-FSA-1",
            "outcome": outcome, "status": status, "whole_us": whole_ms * 1_000,
        })
        .to_string()
    }

    fn report(lines: &[String], format: Form) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, lines.join("\n")).unwrap();
        let args = ReportArgs {
            files: vec![path],
            from: None,
            to: None,
            format,
            own_channel: None,
            sca: None,
            audit: Vec::new(),
            config: None,
            page: None,
            bank: None,
        };
        let mut text = Vec::new();
        run(&args, NOW, &mut text, &mut io::sink()).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// FWD-8: such a line stands in the access log, and counts no request.
    #[test]
    fn a_line_says_what_was_left_out() {
        let mut odd = Vec::new();
        let line = b"{\"kind\":\"left-out\",\"of\":\"samples\",\"omitted\":7}";
        assert_eq!(access::read(line, &mut odd), LogLine::NoRequest);
        assert!(odd.is_empty());
    }

    #[test]
    fn figures_of_a_day() {
        let lines = [
            line(10, "ais", 200, 10),
            line(11, "ais", 403, 30),
            line(12, "pis", 200, 100),
            line(13, "both", 200, 999),
            "{\"kind\":\"event\"}".to_owned(),
            // Five without a reply in a row: from the beginning of the first to the next reply.
            line(100, "ais", 502, 0),
            line(101, "pis", 504, 0),
            line(102, "ais", 502, 0),
            line(103, "ais", 502, 0),
            line(104, "ais", 502, 0),
            line(160, "ais", 200, 20),
            // Four are none, and neither are five with a reply between them, nor five in more than 30 s.
            line(200, "ais", 502, 0),
            line(201, "ais", 502, 0),
            line(202, "ais", 502, 0),
            line(203, "ais", 502, 0),
            line(204, "ais", 200, 20),
            line(205, "ais", 502, 0),
            line(212, "ais", 502, 0),
            line(220, "ais", 502, 0),
            line(228, "ais", 502, 0),
            line(236, "ais", 502, 0),
            line(86_400 + 7, "pis", 201, 40),
        ];
        let csv = report(&lines, Form::Csv);
        let rows: Vec<_> = csv.lines().collect();
        assert_eq!(rows[0], COLUMNS);
        // 60 of 86 400 seconds; 14 of 20 requests. The mean leaves out what the core denied.
        assert_eq!(
            rows[1],
            "2026-01-01,99.931,60,20,17,2,16.7,100.0,14,70.0000"
        );
        assert_eq!(rows[2], "2026-01-02,100.000,0,1,0,1,,40.0,0,0.0000");
        let json: Value = serde_json::from_str(&report(&lines, Form::Json)).unwrap();
        assert_eq!(json[0]["downtime_seconds"], 60);
        assert_eq!(json[1]["mean_ms_ais"], Value::Null);
        let svg = report(&lines, Form::Svg);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("2026-01-01") && !svg.contains("NaN"));
    }

    /// A line of an AIS request that the gateway refused for this reason, with these members in place of `tpp`.
    fn refused(second: u64, reason: &str, status: u64, sender: &Value) -> String {
        let mut line: Value = serde_json::from_str(&line(second, "ais", status, 1)).unwrap();
        let members = line.as_object_mut().unwrap();
        members.remove("tpp");
        members.insert("outcome".into(), "refused".into());
        members.insert("reason".into(), reason.into());
        members.extend(sender.as_object().unwrap().clone());
        line.to_string()
    }

    /// The row of the only day.
    fn row(lines: impl Iterator<Item = String>) -> String {
        let csv = report(&lines.collect::<Vec<_>>(), Form::Csv);
        assert_eq!(csv.lines().count(), 2);
        csv.lines().nth(1).unwrap().to_owned()
    }

    /// The 503 of a TPP with too many requests at once is its own fault, and so is a 400. They are no errors of the bank, no replies of the
    /// core, and they do not make the mean better.
    #[test]
    fn refusals_tell_nothing_about_the_bank() {
        // The gateway refuses a known TPP without room before the first check.
        let known =
            json!({"tpp": null, "shown_tpp": "PSDNO-FSA-1", "checks_us": {"address-rate": 1}});
        let proven = json!({"tpp": "PSDNO-FSA-1", "checks_us": {"signature": 1}});
        let greedy = |second| refused(second, "too-many-at-once", 503, &known);
        let wrong = (9..12).map(|second| refused(second, "digest-mismatch", 400, &proven));
        let lines = (0..9).map(greedy).chain(wrong);
        assert_eq!(
            row(lines.chain([line(20, "ais", 200, 10)])),
            "2026-01-01,100.000,0,13,13,0,10.0,,0,0.0000"
        );
        // Between failures of the core, they do not end the downtime.
        let mixed = (0..10).map(|second| match second % 2 {
            0 => line(second, "ais", 502, 0),
            _ => greedy(second),
        });
        assert_eq!(
            row(mixed.chain([line(60, "ais", 200, 10)])),
            "2026-01-01,99.931,60,11,11,0,10.0,,5,45.4545"
        );
    }

    /// A caller who leaves is no failure of the bank, even while the core owes the answer; after 30 s there was no reply in time.
    #[test]
    fn callers_who_leave_are_no_downtime() {
        let left = |second, fault: &str, whole_ms: u64| {
            let mut line: Value =
                serde_json::from_str(&line(second, "ais", 200, whole_ms)).unwrap();
            line["outcome"] = "abandoned".into();
            line["status"] = Value::Null;
            line["fault"] = fault.into();
            line.to_string()
        };
        let rows = [
            ("core", 1_000),
            ("core", 29_999),
            ("caller", 1_000),
            ("caller", 31_000),
            ("core", 30_000),
        ]
        .map(|(fault, whole)| {
            let lines = (41..47).map(|second| left(second, fault, whole));
            row(lines.chain([line(71, "ais", 200, 10)]))
        });
        let (others, [late]) = rows.split_at(4) else {
            unreachable!()
        };
        for row in others {
            assert_eq!(row, "2026-01-01,100.000,0,7,7,0,10.0,,0,0.0000");
        }
        // They came from second 11 on.
        assert_eq!(late, "2026-01-01,99.931,60,7,7,0,10.0,,6,85.7143");
    }

    /// While the audit cannot be written, no signature is verified, and every request fails: that is downtime, and so is a core without room
    /// for known TPPs. Strangers that overload the gateway are not.
    #[test]
    fn a_gateway_that_refuses_everybody_is_down() {
        let stranger = json!({"tpp": null, "checks_us": {}});
        let claimed = json!({"tpp": null, "shown_tpp": "PSDNO-FSA-1", "checks_us": {"match": 1}});
        let known = json!({"tpp": null, "shown_tpp": "PSDNO-FSA-1", "checks_us": {}});
        for (reason, sender, counted) in [
            ("state-unavailable", &stranger, true),
            ("overloaded", &known, true),
            ("overloaded", &stranger, false),
            ("overloaded", &claimed, false),
        ] {
            let lines = (0..6).map(|second| refused(second, reason, 503, sender));
            let row = row(lines.chain([line(60, "pis", 201, 10)]));
            let expected = match counted {
                true => "2026-01-01,99.931,60,7,6,1,,10.0,6,85.7143",
                false => "2026-01-01,100.000,0,1,0,1,,10.0,0,0.0000",
            };
            assert_eq!(row, expected, "{reason} {sender}");
        }
    }

    /// A line that stands for ten requests counts ten times.
    #[test]
    fn samples_count_for_those_they_stand_for() {
        let mut sampled: Value = serde_json::from_str(&line(1, "ais", 200, 10)).unwrap();
        sampled["sample"] = 10.into();
        let csv = report(&[sampled.to_string(), line(2, "ais", 502, 0)], Form::Csv);
        assert_eq!(
            csv.lines().nth(1).unwrap(),
            "2026-01-01,100.000,0,11,11,0,10.0,,1,9.0909"
        );
    }
}
