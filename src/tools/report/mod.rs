//! `portvakt report`: the quarterly figures of a dedicated interface, by day, from access logs.
//!
//! The figures are those of Article 32(4) RTS and of the EBA guidelines on the contingency mechanism (EBA/GL/2018/07), guidelines 2 and
//! 3: uptime and downtime, the mean response times of AIS and PIS, and the rate of errors that the bank has to answer for. Deliberately
//! not here: times in which no gateway ran, of which no line tells.

// The sums of a day.
mod day;
// Why there is no report.
mod fault;
// Downtime by five requests that are not replied to within 30 seconds.
mod downtime;
// The chart.
mod chart;

pub use fault::ReportFault;

use clap::{Args, ValueEnum};
use day::{Day, Days};
use jiff::civil::Date;
use serde_json::{Value, json};
use std::{
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

/// Reads the logs, and writes the report to `out`. Says on `notes` how many lines were no lines of an access log.
///
/// # Errors
/// The reason why there is no report.
pub fn run(
    args: &ReportArgs,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> Result<(), ReportFault> {
    let mut days = Days::default();
    let mut skipped = 0_u64;
    for path in &args.files {
        let fault = |error| ReportFault::File(path.clone(), error);
        for line in open(path).map_err(fault)?.split(b'\n') {
            let line = line.map_err(fault)?;
            if !line.is_empty() && days.add(&line).is_none() {
                skipped = skipped.saturating_add(1);
            }
        }
    }
    if skipped > 0 {
        let _ = writeln!(notes, "{skipped} lines are no lines of an access log");
    }
    let rows = days.rows(args.from, args.to)?;
    let text = match args.format {
        Form::Csv => csv(&rows),
        Form::Json => format!("{:#}\n", Value::from_iter(rows.iter().map(object))),
        Form::Svg => chart::draw(&rows),
    };
    out.write_all(text.as_bytes()).map_err(ReportFault::Output)
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

const COLUMNS: &str = "date,availability_percent,downtime_seconds,requests,requests_ais,requests_pis,mean_ms_ais,mean_ms_pis,errors,error_rate_percent";

fn csv(rows: &[Day]) -> String {
    let mut text = format!("{COLUMNS}\n");
    for day in rows {
        let mean = |mean: Option<f64>| mean.map(|mean| format!("{mean:.1}")).unwrap_or_default();
        text += &format!(
            "{},{:.3},{},{},{},{},{},{},{},{:.4}\n",
            day.date,
            day.availability(),
            day.downtime_seconds(),
            day.requests,
            day.ais.requests,
            day.pis.requests,
            mean(day.ais.mean()),
            mean(day.pis.mean()),
            day.errors,
            day.error_rate(),
        );
    }
    text
}

fn object(day: &Day) -> Value {
    json!({
        "date": day.date.to_string(),
        "availability_percent": day.availability(),
        "downtime_seconds": day.downtime_seconds(),
        "requests": day.requests,
        "requests_ais": day.ais.requests,
        "requests_pis": day.pis.requests,
        "mean_ms_ais": day.ais.mean(),
        "mean_ms_pis": day.pis.mean(),
        "errors": day.errors,
        "error_rate_percent": day.error_rate(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        };
        let mut text = Vec::new();
        run(&args, &mut text, &mut io::sink()).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// FWD-8: such a line stands in the access log, and counts no request.
    #[test]
    fn a_line_says_what_was_left_out() {
        let mut days = Days::default();
        let added = days.add(b"{\"kind\":\"left-out\",\"of\":\"samples\",\"omitted\":7}");
        assert_eq!(added, Some(()));
        assert_eq!(days.add(b"{\"kind\":\"event\"}"), None);
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
