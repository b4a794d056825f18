//! Registers other than the EBA's: CSV or JSON, whose columns a mapping names (CRT-14).
//!
//! Credit institutions and national registers have no common form. The mapping says which column of a row has which [`Member`] of an entry.
//! Invariants: the file is read as a stream, one row at a time; a row that no certificate can name is counted and skipped; whatever the
//! mapping does not name as good authorises nothing. Deliberately not here: the configuration's keys (config/registers).

// What a row can say, and where it comes from.
mod member;
// Why a file is refused.
mod fault;
// The rows of a CSV file.
mod csv;
// The records of a JSON file, in which no member stands twice.
mod json;
mod once;

pub use fault::MappedFault;
pub use member::{Member, Origin};

use super::{FileCounts, Listing, WhenWithdrawn, begin, eba, listing::Entry};
use crate::Roles;
use jiff::{civil, tz::TimeZone};
use member::Texts;
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;
use std::{collections::HashMap, io::BufRead, time::Duration};

/// The form of a register's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappedFormat {
    /// CSV in UTF-8 whose first line names the columns.
    Csv {
        /// Between fields.
        separator: u8,
    },
    /// A list of objects.
    Json {
        /// The member of the outer object that has the list; `None` if the file is the list.
        records: Option<String>,
    },
}

/// How to read a register.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The form of the file.
    pub format: MappedFormat,
    /// The origin of each member that is mapped, once.
    pub origins: Vec<(Member, Origin)>,
    /// Between several roles or countries in one text.
    pub list_separator: String,
    /// The texts of `status` that mean an authorisation that stands, in any case. An empty text is one too.
    pub authorised: Vec<String>,
    /// The texts of `countries` that mean every country.
    pub everywhere: Vec<String>,
    /// The texts of `roles`, with the number of the role (ETSI TS 119 495, 4.2).
    pub roles: Vec<(String, u8)>,
    /// The form of `changed`, as of strftime.
    pub date: String,
    /// The register's own maximum age.
    pub max_age: Option<Duration>,
    /// The effect of a withdrawn authorisation.
    pub withdrawn: WhenWithdrawn,
}

/// The stored content of a file.
#[derive(Debug, Default)]
pub(super) struct MappedRead {
    pub(super) entries: HashMap<TppId, Entry>,
    pub(super) latest: Option<Timestamp>,
    pub(super) counts: FileCounts,
    pub(super) unknown_roles: Vec<String>,
    /// A date that could not be read.
    odd_date: Option<String>,
}

/// At most so many unknown words for roles are kept, each cut to so many characters.
const UNKNOWN: (usize, usize) = (5, 40);

impl Mapping {
    /// Reads a file as a stream.
    pub(super) fn read(
        &self,
        mut reader: impl BufRead,
        host_country: &str,
    ) -> Result<MappedRead, MappedFault> {
        let begin = reader.fill_buf()?;
        if begin.starts_with(b"PK\x03\x04") {
            return Err(MappedFault::Packed);
        }
        // A byte order mark is what spreadsheets write before CSV.
        let is_mark = begin.starts_with(b"\xef\xbb\xbf");
        if let Some(what) = begin::other(begin).filter(|_| !is_mark) {
            return Err(MappedFault::Other(what));
        }
        if is_mark {
            reader.consume(3);
        }
        let mut read = MappedRead::default();
        let mut take = |texts: &Texts| self.take(texts, host_country, &mut read);
        match &self.format {
            MappedFormat::Csv { separator } => {
                csv::each(reader, *separator, &self.origins, &mut take)?;
            }
            MappedFormat::Json { records } => {
                json::each(reader, records.as_deref(), &self.origins, &mut take)?;
            }
        }
        if read.entries.is_empty() {
            return Err(MappedFault::Empty {
                rows: read.counts.institutions,
            });
        }
        match (read.latest, read.odd_date.take()) {
            (None, Some(found)) => Err(MappedFault::NoDate {
                form: self.date.clone(),
                found,
            }),
            _ => Ok(read),
        }
    }

    fn take(&self, texts: &Texts, host_country: &str, read: &mut MappedRead) {
        if let Some(text) = self
            .text(Member::Changed, texts)
            .filter(|text| !text.is_empty())
        {
            match self.moment(text) {
                Some(at) => {
                    read.latest = read.latest.max(Some(at));
                    read.counts.add_date();
                }
                None => read.odd_date = Some(cut(text)),
            }
        }
        let Some(identity) = self.identity(texts) else {
            read.counts.add(None);
            return;
        };
        let mut listing = Listing::default();
        if self.is_authorised(texts) {
            listing.authorised = true;
            let roles = self.roles(texts, &mut read.unknown_roles);
            if self.is_here(texts, host_country) {
                listing.here = roles;
            } else {
                listing.elsewhere = roles;
            }
        }
        read.counts.add(Some(listing));
        let name = self.text(Member::Name, texts);
        let entry = read.entries.entry(identity).or_default();
        entry.merge(listing, name);
    }

    fn identity(&self, texts: &Texts) -> Option<TppId> {
        if self.place(Member::Tpp).is_some() {
            return TppId::parse(self.text(Member::Tpp, texts)?);
        }
        let country = self.text(Member::Country, texts)?.to_ascii_uppercase();
        let authority = self.text(Member::Authority, texts)?.to_ascii_uppercase();
        eba::identity(&country, &authority, self.text(Member::Id, texts)?)
    }

    fn is_authorised(&self, texts: &Texts) -> bool {
        if self.place(Member::Status).is_none() {
            return true;
        }
        let status = self.text(Member::Status, texts).unwrap_or_default();
        let is = |word: &String| word.eq_ignore_ascii_case(status);
        self.authorised.iter().any(is)
    }

    fn is_here(&self, texts: &Texts, host_country: &str) -> bool {
        if self.place(Member::Countries).is_none() {
            return true;
        }
        let mut countries = self.parts(Member::Countries, texts);
        countries.any(|country| {
            let is_all = |word: &String| word.eq_ignore_ascii_case(country);
            country.eq_ignore_ascii_case(host_country) || self.everywhere.iter().any(is_all)
        })
    }

    fn roles(&self, texts: &Texts, unknown: &mut Vec<String>) -> Roles {
        let mut roles = Roles::default();
        for part in self.parts(Member::Roles, texts) {
            let known = self.roles.iter().find(|(word, _)| word == part);
            match known {
                Some((_, number)) => roles = roles.with(*number),
                None => {
                    let word = cut(part);
                    if unknown.len() < UNKNOWN.0 && !unknown.contains(&word) {
                        unknown.push(word);
                    }
                }
            }
        }
        roles
    }

    /// The parts of a member's texts that are not empty.
    fn parts<'a>(&'a self, member: Member, texts: &'a Texts) -> impl Iterator<Item = &'a str> {
        let texts = self.place(member).and_then(|place| texts.get(place));
        let texts = texts.map_or(&[][..], Vec::as_slice);
        let parts = texts
            .iter()
            .flat_map(|text| text.split(self.list_separator.as_str()));
        parts.map(str::trim).filter(|part| !part.is_empty())
    }

    /// The first text of a member, trimmed; `None` if the row has none.
    fn text<'a>(&self, member: Member, texts: &'a Texts) -> Option<&'a str> {
        let texts = texts.get(self.place(member)?)?;
        texts.first().map(|text| text.trim())
    }

    fn place(&self, member: Member) -> Option<usize> {
        let mut origins = self.origins.iter();
        origins.position(|(mapped, _)| *mapped == member)
    }

    /// The midnight, in UTC, with which a day begins.
    fn moment(&self, text: &str) -> Option<Timestamp> {
        let date = civil::Date::strptime(&self.date, text).ok()?;
        let zoned = date.at(0, 0, 0, 0).to_zoned_datetime(TimeZone::UTC).ok()?;
        u64::try_from(zoned.timestamp().as_second())
            .ok()
            .map(Timestamp::from_unix)
    }
}

/// The beginning of a text of the file, for a message.
fn cut(text: &str) -> String {
    text.chars().take(UNKNOWN.1).collect()
}

#[cfg(test)]
mod tests;
