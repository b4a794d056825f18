//! From a row of a CSV file to the members of `/psu/bind`.
//!
//! A bank's export has its own columns, separators and times; a YAML file maps them. Invariant: no fault repeats a value, since each row
//! names a PSU.

use crate::config::{ConfigFaults, Document, Inspection, Section};
use crate::csv_row;
use jiff::{
    civil::DateTime,
    fmt::strtime::BrokenDownTime,
    tz::{AmbiguousOffset, TimeZone},
};
use serde_json::{Map, Value};
use std::path::Path;

/// The members of `/psu/bind` that a column or a constant can give.
const MEMBERS: [&str; 7] = [
    "tpp",
    "psu_id",
    "psu_corporate_id",
    "last_sca",
    "consent_at",
    "accounts",
    "customer",
];

/// The members that are times.
const TIMES: [&str; 2] = ["last_sca", "consent_at"];

/// The meaning of a bank's columns.
#[derive(Debug)]
pub struct Mapping {
    separator: u8,
    accounts_separator: String,
    /// The text of a field that means every account; none without it.
    all_accounts: Option<String>,
    columns: Vec<(&'static str, String)>,
    values: Vec<(&'static str, String)>,
    /// The form of a time; RFC 3339 without it.
    time: Option<String>,
    time_zone: TimeZone,
}

/// The columns of a file that its header names.
#[derive(Debug)]
pub(super) struct Columns<'m> {
    mapping: &'m Mapping,
    /// The number of columns.
    count: usize,
    /// The index of each mapped column.
    indices: Vec<(&'static str, usize)>,
}

impl Mapping {
    /// Reads the mapping from a file. `time_zone` is that of times without one, unless the file names another.
    ///
    /// # Errors
    /// Every fault of the file, with line and column.
    pub fn read(file: &Path, text: &str, time_zone: &TimeZone) -> Result<Self, ConfigFaults> {
        let name = file.display().to_string();
        let document = Document::read(&name, text)?;
        let inspection = Inspection::new();
        let mapping = Self::of(document.root(&inspection), time_zone);
        inspection.conclude(&name, Some(mapping))
    }

    fn of(mut root: Section<'_>, time_zone: &TimeZone) -> Self {
        let separator = root.optional("separator").and_then(|value| {
            let text = value.as_str()?;
            match text.as_bytes() {
                [byte] if byte.is_ascii_graphic() && !matches!(byte, b'"') => Some(*byte),
                _ if text == "tab" => Some(b'\t'),
                _ => {
                    value.fault("expected one character, such as \";\", or tab");
                    None
                }
            }
        });
        let separator = separator.unwrap_or(b',');
        let accounts_separator = accounts_separator(&mut root, separator);
        let all_accounts = all_accounts(&mut root, &accounts_separator);
        let time = root.optional("time");
        let time = time.and_then(|value| value.as_str().map(str::to_owned));
        let zone = root.optional("time_zone").and_then(|value| {
            let zone = TimeZone::get(value.as_str()?).ok();
            if zone.is_none() {
                value.fault("expected the name of a time zone, such as Europe/Oslo");
            }
            zone
        });
        let mut columns = root.section("columns");
        let of_columns = members(&mut columns);
        let values = root.optional_section("values");
        let of_values = values.map_or_else(Vec::new, |mut values| {
            let read = members(&mut values);
            for (member, _) in &read {
                if of_columns.iter().any(|(known, _)| known == member) {
                    values.fault(member, "it has a column already");
                }
            }
            values.finish();
            read
        });
        for member in ["tpp", "psu_id", "last_sca"] {
            let mut named = of_columns.iter().chain(&of_values);
            if !named.any(|(known, _)| *known == member) {
                columns.fault(
                    member,
                    "missing key: name a column, or a constant in \"values\"",
                );
            }
        }
        columns.finish();
        let mut named = of_columns.iter().chain(&of_values);
        if all_accounts.is_some() && !named.any(|(member, _)| *member == "accounts") {
            root.fault(
                "all_accounts",
                "it needs a column \"accounts\", whose fields can have it",
            );
        }
        root.finish();
        Self {
            separator,
            accounts_separator,
            all_accounts,
            columns: of_columns,
            values: of_values,
            time,
            time_zone: zone.unwrap_or_else(|| time_zone.clone()),
        }
    }

    /// Finds the columns in the first line of a file.
    ///
    /// # Errors
    /// The line has not all of them.
    pub(super) fn columns(&self, header: &[u8]) -> Result<Columns<'_>, String> {
        let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header);
        let names = csv_row::fields(header, self.separator)?;
        let mut indices = Vec::new();
        for (member, column) in &self.columns {
            let mut found = names.iter().enumerate().filter(|(_, name)| *name == column);
            match (found.next(), found.next()) {
                (Some((index, _)), None) => indices.push((*member, index)),
                (Some(_), Some(_)) => return Err(format!("the column {column} stands twice")),
                (None, _) => {
                    let names = names.join(", ");
                    return Err(format!(
                        "there is no column {column}; the columns are {names}"
                    ));
                }
            }
        }
        Ok(Columns {
            mapping: self,
            count: names.len(),
            indices,
        })
    }
}

impl Columns<'_> {
    /// The members of a row; an empty field is an absent member, except that a consent names its accounts.
    ///
    /// # Errors
    /// The faults of the row.
    pub(super) fn members(&self, line: &[u8]) -> Result<Map<String, Value>, String> {
        let fields = csv_row::fields(line, self.mapping.separator)?;
        if fields.len() != self.count {
            let (found, count) = (fields.len(), self.count);
            return Err(format!(
                "it has {found} fields, and the first line has {count}"
            ));
        }
        let of_columns = self.indices.iter();
        let of_columns =
            of_columns.filter_map(|(member, index)| Some((*member, fields.get(*index)?)));
        let values = self.mapping.values.iter();
        let values = values.map(|(member, value)| (*member, value));
        let mut members = Map::new();
        let mut faults = Vec::new();
        let mut accounts = None;
        for (member, field) in of_columns.chain(values) {
            if member == "accounts" {
                accounts = Some(field);
            }
            if field.is_empty() || member == "accounts" {
                continue;
            }
            match self.mapping.value(member, field) {
                Ok(value) => {
                    members.insert(member.to_owned(), value);
                }
                Err(fault) => faults.push(format!("{member}: {fault}")),
            }
        }
        let accounts = accounts.map(|field| {
            let has_consent = members.contains_key("consent_at");
            self.mapping.accounts(field, has_consent)
        });
        match accounts {
            Some(Ok(Some(named))) => {
                members.insert("accounts".to_owned(), named);
            }
            Some(Err(fault)) => faults.push(format!("accounts: {fault}")),
            None | Some(Ok(None)) => {}
        }
        if faults.is_empty() {
            Ok(members)
        } else {
            Err(faults.join("; "))
        }
    }
}

impl Mapping {
    fn value(&self, member: &str, field: &str) -> Result<Value, String> {
        match &self.time {
            Some(form) if TIMES.contains(&member) => {
                let moment = self.moment(form, field)?;
                Ok(Value::from(moment.to_string()))
            }
            _ => Ok(Value::from(field)),
        }
    }

    /// The accounts of a consent: `None` for every account, which only the word of the mapping says. An empty field may be a fault of the
    /// export, and must not widen the consent.
    fn accounts(&self, field: &str, has_consent: bool) -> Result<Option<Value>, String> {
        if self.all_accounts.as_deref() == Some(field) {
            return if has_consent {
                Ok(None)
            } else {
                Err("accounts require consent_at".to_owned())
            };
        }
        let ids = field.split(&*self.accounts_separator).map(str::trim);
        let ids: Vec<_> = ids.filter(|id| !id.is_empty()).collect();
        if ids.is_empty() {
            return if has_consent {
                Err(self.no_account())
            } else {
                Ok(None)
            };
        }
        match &self.all_accounts {
            Some(word) if ids.contains(&&**word) => Err(format!(
                "{word} means every account: write it alone, or only the ids"
            )),
            _ => Ok(Some(ids.into_iter().map(Value::from).collect())),
        }
    }

    fn no_account(&self) -> String {
        let every = match &self.all_accounts {
            Some(word) => format!("{word} for every account"),
            None => "for every account a word of your own, such as *, which the mapping names: \
                     all_accounts: \"*\""
                .to_owned(),
        };
        format!(
            "it is empty, and the row has consent_at: write the ids of the accounts, or {every}"
        )
    }

    /// A time in the bank's form. A date without a time is midnight, so that no SCA counts as later than it was.
    /// A time that clocks show twice in autumn is the earlier one.
    ///
    /// # Errors
    /// The field is no time, or one that clocks never showed.
    fn moment(&self, form: &str, field: &str) -> Result<jiff::Timestamp, String> {
        let fault = |_| format!("it is not a time in the form {form}");
        let parsed = BrokenDownTime::parse(form, field).map_err(fault)?;
        if let Ok(moment) = parsed.to_timestamp() {
            return Ok(moment);
        }
        let at = if let Ok(at) = parsed.to_datetime() {
            let offset = self.time_zone.to_ambiguous_zoned_datetime(at).offset();
            if matches!(offset, AmbiguousOffset::Gap { .. }) {
                return Err(
                    "clocks never showed this time: the change to summer time skipped it, so the \
                     export's times are in another zone than time_zone"
                        .to_owned(),
                );
            }
            at
        } else {
            parsed.to_date().map(DateTime::from).map_err(fault)?
        };
        let zoned = at
            .to_zoned_datetime(self.time_zone.clone())
            .map_err(fault)?;
        Ok(zoned.timestamp())
    }
}

/// What stands between account ids in one field, without the separator of fields.
fn accounts_separator(root: &mut Section<'_>, separator: u8) -> String {
    let value = root.optional("accounts_separator");
    let text = value.as_ref().and_then(|value| value.as_str());
    let text = text.unwrap_or(" ").to_owned();
    if let Some(value) = value
        && text.as_bytes().contains(&separator)
    {
        value.fault("expected another text than the separator of fields, such as \"|\"");
    }
    text
}

/// The word for every account, if the mapping has one.
fn all_accounts(root: &mut Section<'_>, accounts_separator: &str) -> Option<String> {
    let value = root.optional("all_accounts")?;
    let word = value.as_str()?;
    let is_one = word.trim() == word && !word.contains(accounts_separator);
    if !is_one {
        value.fault("expected one word that is no account id, such as \"*\"");
    }
    Some(word.to_owned())
}

/// The members that a section names, with their texts.
fn members(section: &mut Section<'_>) -> Vec<(&'static str, String)> {
    let read = MEMBERS.into_iter().filter_map(|member| {
        let value = section.optional(member)?;
        Some((member, value.as_str()?.to_owned()))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MAPPING: &str = "\
separator: ';'
time: '%d.%m.%Y %H:%M'
columns: {psu_id: PSU, last_sca: LOGIN, consent_at: CONSENT, accounts: ACCOUNTS}
values: {tpp: PSDNO-FSA-123456}
accounts_separator: '|'\n\
    ";

    fn read(text: &str) -> Result<Mapping, String> {
        let zone = TimeZone::get("Europe/Oslo").unwrap();
        Mapping::read(Path::new("m.yaml"), text, &zone).map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_row_becomes_the_members() {
        let mapping = read(MAPPING).unwrap();
        let header = "\u{feff}PSU;NAME;LOGIN;CONSENT;ACCOUNTS\r\n";
        let columns = mapping.columns(header.as_bytes()).unwrap();
        let row =
            "7a3d5112-3e37-4b8f-8b8b-601a8122ea32 ;\"Nord; Mann\";01.07.2026 12:30;;a-1| a-2\r\n";
        assert_eq!(
            Value::from(columns.members(row.as_bytes()).unwrap()),
            json!({
                "psu_id": "7a3d5112-3e37-4b8f-8b8b-601a8122ea32",
                // 12:30 in Oslo, in summer.
                "last_sca": "2026-07-01T10:30:00Z",
                "accounts": ["a-1", "a-2"],
                "tpp": "PSDNO-FSA-123456",
            })
        );
        let table = [
            ("a;b;c\n", "it has 3 fields, and the first line has 5"),
            (
                "a;b;2026-07-01;c;\n",
                "last_sca: it is not a time in the form %d.%m.%Y %H:%M; consent_at: it is not",
            ),
            ("a;b;c;d;e\ra;b;c;d;e\n", "it is not one row of CSV"),
        ];
        for (row, expected) in table {
            let fault = columns.members(row.as_bytes()).unwrap_err();
            assert!(fault.starts_with(expected), "{row}: {fault}");
        }
        assert!(columns.members(b"a;b;c;d;\xff\n").is_err());
        let fault = mapping.columns(b"PSU;LOGIN;CONSENT\n").unwrap_err();
        assert_eq!(
            fault,
            "there is no column ACCOUNTS; the columns are PSU, LOGIN, CONSENT"
        );
        assert!(mapping.columns(b"PSU;PSU;LOGIN;CONSENT;ACCOUNTS").is_err());
    }

    /// A consent names its accounts: an empty field does not mean every account.
    #[test]
    fn every_account_is_said_by_a_word() {
        let header = b"PSU;LOGIN;CONSENT;ACCOUNTS\n";
        let without = read(MAPPING).unwrap();
        let with = read(&format!("{MAPPING}all_accounts: '*'\n")).unwrap();
        let row = |mapping: &Mapping, consent: &str, accounts: &str| {
            let columns = mapping.columns(header).unwrap();
            let row = format!("a;01.07.2026 12:30;{consent};{accounts}\n");
            let members = columns.members(row.as_bytes())?;
            Ok::<_, String>(members.get("accounts").cloned())
        };
        let consent = "01.07.2026 12:30";
        for empty in ["", "\"\"", "\" \"", " ", "|", "\" | \""] {
            let fault = row(&without, consent, empty).unwrap_err();
            assert!(fault.contains("all_accounts: \"*\""), "{empty}: {fault}");
            let fault = row(&with, consent, empty).unwrap_err();
            assert_eq!(
                fault,
                "accounts: it is empty, and the row has consent_at: write the ids of the accounts, or * for every account"
            );
            // Without a consent there is nothing to widen.
            assert_eq!(row(&with, "", empty), Ok(None), "{empty}");
        }
        for all in ["*", "\"*\"", " * "] {
            assert_eq!(row(&with, consent, all), Ok(None), "{all}");
        }
        // Without the word it is an account id, which the form of account ids refuses.
        assert_eq!(row(&without, consent, "*"), Ok(Some(json!(["*"]))));
        let fault = row(&with, "", "*").unwrap_err();
        assert_eq!(fault, "accounts: accounts require consent_at");
        let fault = row(&with, consent, "a-1|*").unwrap_err();
        assert!(fault.contains("write it alone"), "{fault}");
        assert_eq!(row(&with, consent, "a-1|"), Ok(Some(json!(["a-1"]))));
    }

    #[test]
    fn times_in_many_forms() {
        let at = |form: &str, field: &str| {
            let mapping = read(&MAPPING.replace("%d.%m.%Y %H:%M", form)).unwrap();
            mapping.value("last_sca", field).ok()
        };
        // In Oslo, clocks went from 02:00 to 03:00 on 29 March 2026, and from 03:00 to 02:00 on 25 October.
        let form = "%Y-%m-%d %H:%M";
        assert_eq!(at(form, "2026-03-29 02:30"), None);
        for (local, expected) in [
            ("2026-03-29 01:59", "2026-03-29T00:59:00Z"),
            ("2026-03-29 03:00", "2026-03-29T01:00:00Z"),
            ("2026-10-25 02:30", "2026-10-25T00:30:00Z"),
        ] {
            assert_eq!(at(form, local), Some(json!(expected)), "{local}");
        }
        assert_eq!(
            at("%Y-%m-%d", "2026-01-31"),
            Some(json!("2026-01-30T23:00:00Z"))
        );
        let zoned = at("%Y%m%d%H%M%S%z", "20260131120000+0200");
        assert_eq!(zoned, Some(json!("2026-01-31T10:00:00Z")));
        assert_eq!(at("%d/%m/%Y", "31/02/2026"), None);
    }

    #[test]
    fn faults_of_a_mapping_have_their_place() {
        let table = [
            (
                "separator: ab\ncolumns: {tpp: A, psu_id: B, last_sca: C}\n",
                "m.yaml:1:12: separator: expected one",
            ),
            (
                "columns: {tpp: A, psu_id: B, last_login: C}\n",
                "last_sca: missing key",
            ),
            (
                "columns: {tpp: A, psu_id: B, last_sca: C}\nvalues: {tpp: D}\n",
                "values.tpp: it has a column",
            ),
            (
                "columns: {tpp: A, psu_id: B, last_sca: C}\ntime_zone: Oslo\n",
                "time_zone: expected the name",
            ),
            (
                "columns: {tpp: A, psu_id: B, last_sca: C}\naccounts_separator: ','\n",
                "accounts_separator: expected another text",
            ),
            (
                "separator: tab\naccounts_separator: \"\\t\"\ncolumns: {tpp: A, psu_id: B, last_sca: C}\n",
                "accounts_separator: expected another text",
            ),
            (
                "columns: {tpp: A, psu_id: B, last_sca: C}\nall_accounts: '*'\n",
                "all_accounts: it needs a column",
            ),
            (
                "columns: {tpp: A, psu_id: B, last_sca: C, accounts: D}\nall_accounts: 'a b'\n",
                "all_accounts: expected one word",
            ),
        ];
        for (text, expected) in table {
            let faults = read(text).unwrap_err();
            assert!(faults.contains(expected), "{faults}");
        }
    }
}
