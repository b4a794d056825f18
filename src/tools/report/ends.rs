//! SCAs that the bank's service completed or failed, with the codes of the failed ones, by day and by TPP, from an audit.
//!
//! A call that only repeats an earlier one counts nothing, and neither does a record that was written twice (docs/audit.md). Deliberately
//! not here: SCAs that began, of which no record tells, and the proof of the audit.

use super::{
    consents::owner,
    fault::ReportFault,
    foreign::{Foreign, Oddity},
    lines::{Line, Lines},
    seen::{self, SeenLines},
};
use crate::{
    audit::{self, AuditKind, Class},
    interface::Code,
    state::Moves,
};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Write},
    path::PathBuf,
};

/// The key of failed SCAs whose code this version does not know.
const UNKNOWN: &str = "UNKNOWN";

/// SCAs that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) completed: u64,
    /// The failed ones by their codes.
    pub(super) by_code: BTreeMap<&'static str, u64>,
}

impl Ended {
    /// All failed ones.
    pub(super) fn failed(&self) -> u64 {
        self.by_code.values().copied().fold(0, u64::saturating_add)
    }

    fn count(&mut self, end: End) {
        let count = match end {
            End::Completed => &mut self.completed,
            End::Failed(code) => self.by_code.entry(code).or_default(),
        };
        *count = count.saturating_add(1);
    }

    /// Adds those of another sum.
    pub(super) fn add(&mut self, other: &Self) {
        self.completed = self.completed.saturating_add(other.completed);
        for (code, count) in &other.by_code {
            let own = self.by_code.entry(code).or_default();
            *own = own.saturating_add(*count);
        }
    }
}

/// All of an audit: of each day those of each TPP.
#[derive(Debug, Default)]
pub(super) struct ScaEnds(BTreeMap<Date, BTreeMap<String, Ended>>);

impl ScaEnds {
    /// Those of a day.
    pub(super) fn of(&self, date: Date) -> Ended {
        let mut sum = Ended::default();
        for ended in self.0.get(&date).into_iter().flat_map(BTreeMap::values) {
            sum.add(ended);
        }
        sum
    }

    /// Those of each TPP in a period.
    pub(super) fn by_tpp(&self, from: Date, to: Date) -> BTreeMap<&str, Ended> {
        let mut sums: BTreeMap<&str, Ended> = BTreeMap::new();
        for (tpp, ended) in self.0.range(from..=to).flat_map(|(_, tpps)| tpps) {
            sums.entry(tpp).or_default().add(ended);
        }
        sums
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Completed,
    Failed(&'static str),
}

/// Reads the records of PSUs in audits. With moves, a former identity of a TPP is the TPP that has it now.
pub(super) fn read(
    folders: &[PathBuf],
    moves: Option<&Moves>,
    notes: &mut impl Write,
) -> Result<ScaEnds, ReportFault> {
    let mut ends = ScaEnds::default();
    let mut foreign = Foreign::default();
    let mut seen = SeenLines::new();
    for path in files(folders)? {
        let fault = |error| ReportFault::File(path.clone(), error);
        let file = BufReader::with_capacity(1 << 20, File::open(&path).map_err(fault)?);
        for (number, line) in (1..).zip(Lines::of(file)) {
            let mut odd = Vec::new();
            match line.map_err(fault)? {
                Line::TooLong => odd.push(Oddity::TooLong),
                Line::Whole(line) => match record(&line, &mut odd) {
                    Err(oddity) => odd.push(oddity),
                    Ok(Some(record)) if !seen.add(&record.unique) => odd = vec![Oddity::Repeated],
                    Ok(Some(record)) => {
                        let tpp = match moves {
                            Some(moves) => owner(moves, &record.tpp),
                            None => record.tpp,
                        };
                        let day = ends.0.entry(record.date).or_default();
                        day.entry(tpp).or_default().count(record.end);
                    }
                    Ok(None) => {}
                },
            }
            for oddity in odd {
                foreign.note(oddity, &path, number);
            }
        }
    }
    foreign.write("audit", notes);
    if seen.has_forgotten() {
        let kept = seen::KEPT;
        let _ = writeln!(
            notes,
            "audit: a record was compared with the {kept} SCAs before it; one that is repeated after more of them counts twice"
        );
    }
    Ok(ends)
}

/// The files with records of PSUs.
fn files(folders: &[PathBuf]) -> Result<Vec<PathBuf>, ReportFault> {
    let mut files = Vec::new();
    for folder in folders {
        let of = |class| {
            let files = audit::files_of(folder, class);
            files.map_err(|error| ReportFault::File(folder.clone(), error))
        };
        let found = of(Class::Psus)?;
        if found.is_empty() && of(Class::Control)?.is_empty() {
            return Err(ReportFault::NoAudit(folder.clone()));
        }
        files.extend(found);
    }
    Ok(files)
}

/// A record of an SCA that ended.
struct ScaRecord {
    /// What a second record of the same SCA has too.
    unique: Vec<u8>,
    date: Date,
    tpp: String,
    end: End,
}

/// Reads a record; `None` if it is about something else.
fn record(line: &[u8], odd: &mut Vec<Oddity>) -> Result<Option<ScaRecord>, Oddity> {
    let record: Map<String, Value> = serde_json::from_slice(line).map_err(|_| Oddity::NotJson)?;
    let text = |name: &str| record.get(name).and_then(Value::as_str);
    let kind = text("kind");
    let mut kinds = AuditKind::ALL.iter();
    let kind = kinds.find(|known| kind == Some(known.name()));
    let end = match kind.ok_or(Oddity::OtherProgram)? {
        AuditKind::ScaCompleted => End::Completed,
        AuditKind::ScaFailed => {
            let code = text("code").ok_or(Oddity::Incomplete)?;
            let mut codes = Code::ALL.iter().map(|code| code.as_str());
            let known = codes.find(|known| *known == code);
            if known.is_none() {
                odd.push(Oddity::UnknownName);
            }
            End::Failed(known.unwrap_or(UNKNOWN))
        }
        _ => return Ok(None),
    };
    if record.get("repeated") == Some(&Value::Bool(true)) {
        return Ok(None);
    }
    let (Some(time), Some(tpp)) = (text("time"), text("tpp")) else {
        return Err(Oddity::Incomplete);
    };
    let time: Timestamp = time.parse().map_err(|_| Oddity::OutOfRange)?;
    let date = time.to_zoned_datetime(TimeZone::UTC).date();
    let tpp = tpp.to_owned();
    // A disk that failed may have the record of a call twice, with another place in the chain. Without a PSU, two SCAs of one moment may have
    // the same members.
    let unique = match text("psu") {
        None => line.to_vec(),
        Some(_) => {
            let members = record.iter();
            let members = members.filter(|(name, _)| !["seq", "prev"].contains(&name.as_str()));
            let members: Vec<_> = members.collect();
            format!("{members:?}").into_bytes()
        }
    };
    Ok(Some(ScaRecord {
        unique,
        date,
        tpp,
        end,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    fn record_of(kind: &str, more: &Value) -> Value {
        let mut record = json!({
            "time": "2026-10-01T10:00:00.000Z", "kind": kind, "tpp": "PSDNO-FSA-1", "psu": "p1", "operation": "accounts",
        });
        let members = record.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        record
    }

    fn failed(time: &str, tpp: &str, code: &str) -> Value {
        record_of(
            "sca-failed",
            &json!({"time": time, "tpp": tpp, "code": code}),
        )
    }

    /// Reads an audit of these lines.
    fn read_lines(lines: &[String]) -> (ScaEnds, String) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("1")).unwrap();
        let path = folder.path().join("1/psus-00000000000000000001.jsonl");
        fs::write(path, lines.join("\n")).unwrap();
        let mut notes = Vec::new();
        let ends = read(&[folder.path().to_owned()], None, &mut notes).unwrap();
        (ends, String::from_utf8(notes).unwrap())
    }

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn completed_and_failed_scas_are_counted_by_day_tpp_and_code() {
        let completed = |psu: &str| record_of("sca-completed", &json!({"psu": psu}));
        let again = record_of("sca-completed", &json!({"psu": "p2", "repeated": true}));
        let at = "2026-10-02T23:59:59.999Z";
        let records = [
            completed("p1"),
            completed("p2"),
            again,
            record_of("withdrawn", &json!({"what": "consent"})),
            failed(at, "PSDNO-FSA-1", "PSU_CREDENTIALS_INVALID"),
            failed(at, "PSDNO-FSA-2", "PSU_CREDENTIALS_INVALID"),
            failed(at, "PSDNO-FSA-2", "FORBIDDEN"),
        ];
        let chained = (1..).zip(records).map(|(seq, mut record)| {
            record["seq"] = seq.into();
            record["prev"] = format!("{seq:064}").into();
            record.to_string()
        });
        let (ends, notes) = read_lines(&chained.collect::<Vec<_>>());
        assert_eq!(notes, "");
        let (first, second) = (day("2026-10-01"), day("2026-10-02"));
        assert_eq!((ends.of(first).completed, ends.of(first).failed()), (2, 0));
        let expected = [("FORBIDDEN", 1), ("PSU_CREDENTIALS_INVALID", 2)];
        assert_eq!(ends.of(second).by_code, BTreeMap::from(expected));
        let by_tpp = ends.by_tpp(first, second);
        assert_eq!(by_tpp["PSDNO-FSA-1"].completed, 2);
        assert_eq!(by_tpp["PSDNO-FSA-2"].failed(), 2);
        assert_eq!(ends.by_tpp(first, first).len(), 1);
    }

    #[test]
    fn odd_records_are_told() {
        let at = "2026-10-01T10:00:00.000Z";
        let twice = |seq: u32| record_of("sca-completed", &json!({"seq": seq})).to_string();
        let nobody = |seq: u32| {
            let mut record = failed(at, "PSDNO-FSA-1", "FORBIDDEN");
            record.as_object_mut().unwrap().remove("psu");
            record["seq"] = seq.into();
            record.to_string()
        };
        let lines = [
            twice(1),
            twice(2),
            "{\"seq\":3".to_owned(),
            record_of("sca-abandoned", &json!({})).to_string(),
            failed(at, "PSDNO-FSA-1", "NEW_CODE").to_string(),
            failed("yesterday", "PSDNO-FSA-1", "FORBIDDEN").to_string(),
            record_of("sca-failed", &json!({})).to_string(),
            nobody(8),
            nobody(9),
            nobody(9),
        ];
        let (ends, notes) = read_lines(&lines);
        let ended = ends.of(day("2026-10-01"));
        assert_eq!(ended.completed, 1);
        assert_eq!(
            ended.by_code,
            BTreeMap::from([("FORBIDDEN", 2), (UNKNOWN, 1)])
        );
        for (line, kind) in [
            (3, "no JSON"),
            (4, "of a kind that this version does not write"),
            (5, "a value that this version does not know"),
            (6, "out of its range"),
            (7, "without a member"),
        ] {
            let place = format!("line {line})");
            let told = notes.lines().find(|told| told.ends_with(&place));
            assert!(told.is_some_and(|told| told.contains(kind)), "{notes}");
        }
        let repeated = notes.lines().find(|told| told.contains("the same as"));
        assert!(repeated.is_some_and(|told| told.contains(": 2 (") && told.contains("line 2,")));
        assert!(!notes.contains("NEW_CODE") && !notes.contains("yesterday"));
    }

    #[test]
    fn another_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let found = read(&folders, None, &mut std::io::sink());
        assert!(matches!(found, Err(ReportFault::NoAudit(_))));
    }
}
