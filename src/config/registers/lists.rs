//! `registers.lists`: registers other than the EBA's, by a mapping (CRT-14).
//!
//! Invariant: whatever a mapping leaves open authorises nothing, so what would leave every entry without a role is a fault of the
//! configuration. Deliberately not here: how a file is read (trust::register).

use std::path::Path;

use super::super::section::Section;
use super::super::value::Value;
use super::file::{LEAST_AGE, MOST_AGE, take};
use super::rows;
use crate::trust::Registers;
use crate::trust::register::{
    EBA, MappedFormat, Mapping, Member, Origin, RegisterName, WhenWithdrawn,
};

/// The most registers: each has series of metrics.
const MOST: usize = 16;

/// The name of the bank's own list in metrics.
const LOCAL: &str = "local";

/// The names of roles in certificates, from number 1 on (ETSI TS 119 495, 4.2).
const NAMES: [&str; 6] = ["PSP_AS", "PSP_PI", "PSP_AI", "PSP_IC", "PSP_CB", "PSP_PA"];

/// The meanings of a word: a role that an operation can require, or none of them.
const WORDS: [(&str, u8); 3] = [("PSP_PI", 2), ("PSP_AI", 3), ("none", 0)];

/// An empty text among the good states, since the configuration has none: for a column with the date of the withdrawal.
const EMPTY: &str = "-";

/// A register of the configuration.
pub(super) struct List<'a> {
    name: RegisterName,
    file: Value<'a>,
    mapping: Mapping,
}

impl List<'_> {
    /// Reads its file, and warns of what its rows say of the mapping.
    pub(super) fn take(self, base: &Path, registers: &mut Registers) {
        let Self {
            name,
            file,
            mapping,
        } = self;
        let country = registers.settings().host_country.clone();
        let register = take(&file, base, registers, |registers, reader, modified| {
            let taken = registers.take_mapped(name, &mapping, reader, modified);
            taken.map_err(|fault| fault.to_string())
        });
        if let Some(register) = register {
            rows::warn(&file, register, &mapping, &country);
        }
    }
}

/// Reads all mappings.
pub(super) fn read<'a>(mut section: Section<'a>) -> Vec<List<'a>> {
    let mut lists = Vec::new();
    for (key, value) in section.entries() {
        let Some(name) = name(&key) else { continue };
        if lists.len() == MOST {
            key.fault(format!("at most {MOST} registers are read"));
            break;
        }
        if let Some(list) = list(name, value.as_section()) {
            lists.push(list);
        }
    }
    section.finish();
    lists
}

fn name(key: &Value<'_>) -> Option<RegisterName> {
    let text = key.as_str()?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if text.is_empty() || text.len() > 32 || !text.bytes().all(is_plain) {
        return key.refuse("a name of up to 32 small letters, digits and underscores");
    }
    if text == EBA || text == LOCAL {
        key.fault(format!("{text} is another register: choose another name"));
        return None;
    }
    Some(RegisterName::new(text))
}

fn list<'a>(name: RegisterName, mut section: Section<'a>) -> Option<List<'a>> {
    let file = section.required("file");
    if let Some(source) = section.optional("source") {
        // For readers of the configuration only.
        source.as_str();
    }
    let format = format(&mut section);
    let list_separator = text(&mut section, "list_separator", ",");
    let date = text(&mut section, "date", "%Y-%m-%d");
    let max_age = section
        .optional("max_age")
        .and_then(|value| value.duration(LEAST_AGE..=MOST_AGE));
    let withdrawn = section.optional("withdrawn").and_then(|value| {
        value.one_of(&[
            ("refuse", WhenWithdrawn::Refuse),
            ("ignore", WhenWithdrawn::Ignore),
        ])
    });
    let mut authorised = texts(&mut section, "authorised");
    if authorised.iter().any(|text| text == EMPTY) {
        authorised.push(String::new());
    }
    let everywhere = texts(&mut section, "everywhere");
    let roles = roles(&mut section);
    let origins = origins(&mut section);
    let has = |member: Member| origins.iter().any(|(mapped, _)| *mapped == member);
    needs(&section, has, !authorised.is_empty());
    section.finish();
    Some(List {
        name,
        file: file?,
        mapping: Mapping {
            format: format?,
            origins,
            list_separator,
            authorised,
            everywhere,
            roles,
            date,
            max_age,
            withdrawn: withdrawn.unwrap_or_default(),
        },
    })
}

/// The members without which no entry would authorise anybody.
fn needs(section: &Section<'_>, has: impl Fn(Member) -> bool, has_authorised: bool) {
    let parts = [Member::Country, Member::Authority, Member::Id];
    if has(Member::Tpp) == parts.into_iter().any(&has) {
        let text = "expected tpp (the whole identity), or country, authority and id";
        section.fault("columns", text);
    } else if !has(Member::Tpp) {
        for part in parts.into_iter().filter(|part| !has(*part)) {
            let text = format!(
                "missing key: name a column for {}, or a constant in \"values\"",
                part.name()
            );
            section.fault("columns", text);
        }
    }
    if !has(Member::Roles) {
        let text = "missing key: name a column for roles, or a constant in \"values\", such as {roles: \"PSP_AI,PSP_PI\"}";
        section.fault("columns", text);
    }
    if has(Member::Status) != has_authorised {
        let text = "status and authorised need each other: which texts of status mean an authorisation that stands";
        section.fault("authorised", text);
    }
}

fn format(section: &mut Section<'_>) -> Option<MappedFormat> {
    let is_csv = section.required("format");
    let is_csv = is_csv.and_then(|value| value.one_of(&[("csv", true), ("json", false)]))?;
    if is_csv {
        let separator = section.optional("separator");
        let separator = separator.map_or(Some(b','), |value| separator_of(&value));
        return Some(MappedFormat::Csv {
            separator: separator?,
        });
    }
    let records = section.optional("records");
    let records = records.and_then(|value| value.as_str().map(str::to_owned));
    Some(MappedFormat::Json { records })
}

fn separator_of(value: &Value<'_>) -> Option<u8> {
    match value.as_str()?.as_bytes() {
        [byte] if byte.is_ascii_graphic() && *byte != b'"' => Some(*byte),
        b"tab" => Some(b'\t'),
        _ => {
            value.fault("expected one character, such as \";\", or tab");
            None
        }
    }
}

/// The mapped members: columns, and constants for what has none.
fn origins(section: &mut Section<'_>) -> Vec<(Member, Origin)> {
    let mut origins: Vec<(Member, Origin)> = Vec::new();
    let mut columns = section.section("columns");
    for member in Member::ALL.iter().copied() {
        let column = columns.optional(member.name());
        if let Some(column) = column.and_then(|value| value.as_str().map(str::to_owned)) {
            origins.push((member, Origin::Column(column)));
        }
    }
    columns.finish();
    let Some(mut values) = section.optional_section("values") else {
        return origins;
    };
    for member in Member::ALL.iter().copied() {
        let Some(value) = values.optional(member.name()) else {
            continue;
        };
        if origins.iter().any(|(known, _)| *known == member) {
            value.fault("it has a column already");
        } else if let Some(text) = value.as_str() {
            if matches!(member, Member::Tpp | Member::Id) {
                value.fault("every row would be the same TPP: name a column for it in \"columns\"");
            }
            origins.push((member, Origin::Constant(text.to_owned())));
        }
    }
    values.finish();
    origins
}

/// The words for roles: their names in certificates, and those of the register.
fn roles(section: &mut Section<'_>) -> Vec<(String, u8)> {
    let mut roles = Vec::new();
    if let Some(mut words) = section.optional_section("roles") {
        for (word, role) in words.entries() {
            if let (Some(word), Some(number)) = (word.as_str(), role.one_of(&WORDS)) {
                roles.push((word.to_owned(), number));
            }
        }
        words.finish();
    }
    // Behind the operator's own words, the first of which counts.
    let named = NAMES.into_iter().zip(1_u8..);
    roles.extend(named.map(|(name, number)| (name.to_owned(), number)));
    roles
}

fn text(section: &mut Section<'_>, key: &'static str, default: &str) -> String {
    let value = section.optional(key);
    let text = value.and_then(|value| value.as_str().map(str::to_owned));
    text.unwrap_or_else(|| default.to_owned())
}

fn texts(section: &mut Section<'_>, key: &'static str) -> Vec<String> {
    let values = section.optional_list(key).unwrap_or_default();
    let texts = values.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
