//! The figures of the bank's own channel by day, from a CSV file of the bank (EBA/GL/2018/07, guideline 3).
//!
//! Invariant: each row has every figure, and each day one row. Deliberately not here: the days that a report needs.

use super::{day::percent, fault::PlacedFault};
use crate::csv_row;
use jiff::civil::Date;
use std::collections::{BTreeMap, btree_map::Entry};

/// The columns of the file, in any order.
const COLUMNS: [&str; 5] = [
    "date",
    "availability_percent",
    "mean_ms",
    "requests",
    "errors",
];

/// The longest number: an f64 keeps 15 digits.
const MOST_DIGITS: usize = 15;

/// Spreadsheets write it in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The own channel's figures of a day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OwnDay {
    /// In percent.
    pub(super) availability: f64,
    /// The mean response time in milliseconds; `None` on a day without a request.
    pub(super) mean: Option<f64>,
    pub(super) requests: u64,
    /// The requests with an error that the bank has to answer for.
    pub(super) errors: u64,
}

impl OwnDay {
    /// The part of the requests with an error, in percent.
    pub(super) fn error_rate(&self) -> f64 {
        percent(self.errors, self.requests.max(1))
    }
}

/// Reads the file.
///
/// # Errors
/// All faults of its rows, or those of its first line.
pub(super) fn read(bytes: &[u8]) -> Result<BTreeMap<Date, OwnDay>, Vec<PlacedFault>> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let lines = (1_usize..).zip(bytes.split(|byte| *byte == b'\n'));
    let mut lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let Some((number, first)) = lines.next() else {
        let text = format!("the file is empty; begin with {}", COLUMNS.join(","));
        return Err(vec![PlacedFault::new("line 1", text)]);
    };
    let header = Header::read(number, first)?;
    let mut rows = BTreeMap::new();
    let mut faults = Vec::new();
    for (number, line) in lines {
        match header.row(number, line) {
            Err(more) => faults.extend(more),
            Ok((date, day)) => match rows.entry(date) {
                Entry::Vacant(place) => {
                    place.insert((number, day));
                }
                Entry::Occupied(earlier) => {
                    let (earlier, _) = earlier.get();
                    let text = format!("line {earlier} has the same day; remove one of them");
                    faults.push(at(number, "date", text));
                }
            },
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    if rows.is_empty() {
        let text = "no row follows; add one for each day";
        return Err(vec![PlacedFault::new(format!("line {number}"), text)]);
    }
    let days = rows.into_iter().map(|(date, (_, day))| (date, day));
    Ok(days.collect())
}

/// A fault of a column of a line.
fn at(number: usize, column: &str, text: impl Into<String>) -> PlacedFault {
    PlacedFault::new(format!("line {number}, {column}"), text)
}

/// The first line.
struct Header {
    separator: u8,
    /// The place of each of [`COLUMNS`] in a row.
    places: [usize; COLUMNS.len()],
}

impl Header {
    fn read(number: usize, line: &[u8]) -> Result<Self, Vec<PlacedFault>> {
        let of_line = |text: String| PlacedFault::new(format!("line {number}"), text);
        let separator = if line.contains(&b';') { b';' } else { b',' };
        let names = csv_row::fields(line, separator).map_err(|text| vec![of_line(text)])?;
        let mut faults = Vec::new();
        for (place, name) in (1_usize..).zip(&names) {
            if !COLUMNS.contains(&name.as_str()) {
                let all = COLUMNS.join(", ");
                let text = format!("column {place} is none of {all}; rename or remove it");
                faults.push(of_line(text));
            }
        }
        let mut places = [0; COLUMNS.len()];
        for (column, place) in COLUMNS.into_iter().zip(&mut places) {
            let found = names.iter().enumerate();
            let mut found = found.filter(|(_, name)| name.as_str() == column);
            match (found.next(), found.next()) {
                (Some((found, _)), None) => *place = found,
                (None, _) => faults.push(at(number, column, "the column is missing; add it")),
                (Some(_), Some(_)) => {
                    faults.push(at(number, column, "two columns have this name; remove one"));
                }
            }
        }
        match faults.is_empty() {
            true => Ok(Self { separator, places }),
            false => Err(faults),
        }
    }

    fn row(&self, number: usize, line: &[u8]) -> Result<(Date, OwnDay), Vec<PlacedFault>> {
        let of_line = |text: String| vec![PlacedFault::new(format!("line {number}"), text)];
        let fields = csv_row::fields(line, self.separator).map_err(of_line)?;
        if fields.len() != COLUMNS.len() {
            let (found, expected) = (fields.len(), COLUMNS.len());
            let text = format!(
                "expected {expected} fields, as in the first line, but there are {found}; a number has a point, and no separator of thousands"
            );
            return Err(of_line(text));
        }
        let texts = self.places.map(|place| fields.get(place));
        let [date, availability, mean, requests, errors] =
            texts.map(|text| text.map_or("", String::as_str));
        let mut faults = Vec::new();
        let mut refuse = |column: &str, text: &str| faults.push(at(number, column, text));
        let date = read_day(date);
        if date.is_none() {
            refuse("date", "write the day as 2026-10-31");
        }
        let availability = decimal(availability).filter(|percent| *percent <= 100.0);
        if availability.is_none() {
            refuse(
                "availability_percent",
                "write a number from 0 to 100 with a point, such as 99.95",
            );
        }
        let (requests, errors) = (whole(requests), whole(errors));
        let mean = match mean {
            "" if requests == Some(0) => Some(None),
            text => decimal(text).map(Some),
        };
        if mean.is_none() {
            refuse(
                "mean_ms",
                "write milliseconds with a point, such as 182.5; only a day with 0 requests may have none",
            );
        }
        if requests.is_none() {
            refuse("requests", "write a whole number, such as 48210");
        }
        if errors.is_none() {
            refuse("errors", "write a whole number, such as 12");
        }
        if let (Some(requests), Some(errors)) = (requests, errors)
            && errors > requests
        {
            refuse("errors", "it is larger than requests; correct one of them");
        }
        match (date, availability, mean, requests, errors) {
            (Some(date), Some(availability), Some(mean), Some(requests), Some(errors))
                if faults.is_empty() =>
            {
                let day = OwnDay {
                    availability,
                    mean,
                    requests,
                    errors,
                };
                Ok((date, day))
            }
            _ => Err(faults),
        }
    }
}

/// A day in the one form of a date in CSV: ISO 8601 has others.
fn read_day(text: &str) -> Option<Date> {
    let day: Date = text.parse().ok()?;
    (day.to_string() == text).then_some(day)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn whole(text: &str) -> Option<u64> {
    let is_read = text.len() <= MOST_DIGITS && is_number(text);
    is_read.then(|| text.parse().ok()).flatten()
}

fn decimal(text: &str) -> Option<f64> {
    let (before, after) = text.split_once('.').unwrap_or((text, "0"));
    let is_read = text.len() <= MOST_DIGITS && is_number(before) && is_number(after);
    is_read.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "date,availability_percent,mean_ms,requests,errors\n";

    fn faults(text: &str) -> Vec<String> {
        let faults = read(text.as_bytes()).unwrap_err();
        faults.iter().map(ToString::to_string).collect()
    }

    /// EBA/GL/2018/07, guideline 3: the example of docs/operations.md, and what spreadsheets make of it.
    #[test]
    fn a_file_is_read_in_the_forms_of_spreadsheets() {
        let plain = format!("{HEAD}2026-10-01,99.95,182.5,48210,12\n2026-10-02,100,,0,0\n");
        let spread = "\u{feff}errors;date;mean_ms;requests;availability_percent\r\n12;2026-10-01;\"182.5\";48210;99.95\r\n\r\n0;2026-10-02;;0;100\r\n";
        for text in [plain.as_str(), spread] {
            let days = read(text.as_bytes()).unwrap();
            let days: Vec<_> = days.into_iter().collect();
            let [(first, busy), (second, quiet)] = days[..] else {
                panic!("{days:?}");
            };
            assert_eq!(
                [first, second].map(|day| day.to_string()),
                ["2026-10-01", "2026-10-02"]
            );
            let expected = OwnDay {
                availability: 99.95,
                mean: Some(182.5),
                requests: 48_210,
                errors: 12,
            };
            assert_eq!(busy, expected);
            assert_eq!((quiet.mean, quiet.requests), (None, 0));
            assert!(quiet.error_rate() < 1e-9);
            assert!((busy.error_rate() - 0.024_891).abs() < 1e-6);
        }
    }

    #[test]
    fn a_wrong_first_line_is_refused() {
        assert_eq!(
            faults("\n"),
            [
                "line 1: the file is empty; begin with date,availability_percent,mean_ms,requests,errors"
            ]
        );
        assert_eq!(
            faults(HEAD),
            ["line 1: no row follows; add one for each day"]
        );
        assert_eq!(
            faults("date,uptime,mean_ms,requests,errors,errors\n"),
            [
                "line 1: column 2 is none of date, availability_percent, mean_ms, requests, errors; rename or remove it",
                "line 1, availability_percent: the column is missing; add it",
                "line 1, errors: two columns have this name; remove one",
            ]
        );
        let text = "\"date,availability_percent\n";
        assert_eq!(
            faults(text),
            ["line 1: a quoted field does not end in its line"]
        );
    }

    /// A fault names line, column and correction, and nothing of the file.
    #[test]
    fn a_wrong_row_is_refused() {
        let table = [
            ("01.10.2026,100,1,1,0", "line 2, date: write the day as"),
            ("20261001,100,1,1,0", "line 2, date: write the day as"),
            ("2026-02-30,100,1,1,0", "line 2, date: write the day as"),
            ("2026-10-01,100.1,1,1,0", "line 2, availability_percent: "),
            ("2026-10-01,NaN,1,1,0", "line 2, availability_percent: "),
            ("2026-10-01,1e1,1,1,0", "line 2, availability_percent: "),
            ("2026-10-01,100,,1,0", "line 2, mean_ms: "),
            ("2026-10-01,100,-1,1,0", "line 2, mean_ms: "),
            ("2026-10-01,100,1,1.5,0", "line 2, requests: "),
            ("2026-10-01,100,1,+1,0", "line 2, requests: "),
            ("2026-10-01,100,1,1,", "line 2, errors: "),
            (
                "2026-10-01,100,1,1,2",
                "line 2, errors: it is larger than requests",
            ),
            ("2026-10-01,99,95,1,1,0", "line 2: expected 5 fields"),
            ("2026-10-01,100,\"1\"x,1,0", "line 2: text follows"),
        ];
        for (row, expected) in table {
            let found = faults(&format!("{HEAD}{row}\n"));
            let [fault] = &found[..] else {
                panic!("{row}: {found:?}");
            };
            assert!(fault.starts_with(expected), "{row}: {fault}");
        }
        let secret = faults(&format!("{HEAD}12345678901,secret,x,y,z\n"));
        assert_eq!(secret.len(), 5);
        assert!(!secret.concat().contains("secret") && !secret.concat().contains("1234"));
        let row = "2026-10-01,100,1,1,0\n";
        assert_eq!(
            faults(&format!("{HEAD}{row}\n{row}")),
            ["line 4, date: line 2 has the same day; remove one of them"]
        );
    }
}
