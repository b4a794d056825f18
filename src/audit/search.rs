//! Finds records of an audit.

use super::{event::Class, files};
use serde_json::{Map, Value};
use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

/// What a record must have; `None` for any value.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The TPP; also the TPP of a certificate without a valid signature.
    pub tpp: Option<String>,
    /// The beginning of the time, as in `2026-01-31T14:03`.
    pub at: Option<String>,
    /// The kind.
    pub kind: Option<String>,
    /// X-Request-ID, the `id` of an answer, or a trace.
    pub id: Option<String>,
    /// The pseudonyms of a PSU: it has another one after a rotation of the hash key.
    pub psu: Option<Vec<String>>,
}

/// A record that was found.
#[derive(Clone, Debug)]
pub struct Found(pub Map<String, Value>);

impl Found {
    /// A member that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }
}

impl Wanted {
    fn is_met(&self, record: &Found) -> bool {
        let is = |wanted: &Option<String>, names: &[&str]| {
            wanted.as_deref().is_none_or(|wanted| {
                let mut values = names.iter().map(|name| record.text(name));
                values.any(|value| value == Some(wanted))
            })
        };
        let starts = |wanted: &str| {
            let time = record.text("time");
            time.is_some_and(|time| time.starts_with(wanted))
        };
        let of_psu = |wanted: &[String]| {
            let found = record.text("psu");
            found.is_some_and(|found| wanted.iter().any(|psu| psu == found))
        };
        self.at.as_deref().is_none_or(starts)
            && is(&self.tpp, &["tpp", "shown_tpp"])
            && is(&self.kind, &["kind"])
            && is(&self.id, &["request_id", "id", "trace_id"])
            && self.psu.as_deref().is_none_or(of_psu)
    }
}

/// The records that are wanted, sorted by time.
///
/// # Errors
/// A file cannot be read.
pub fn search(audit: &Path, wanted: &Wanted) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for folder in files::folders(audit)? {
        for class in Class::ALL {
            for path in files::of_class(&folder, class)? {
                for line in BufReader::new(File::open(path)?).split(b'\n') {
                    let record = files::object(&line?).map(Found);
                    found.extend(record.filter(|record| wanted.is_met(record)));
                }
            }
        }
    }
    found.sort_by(|one, other| one.text("time").cmp(&other.text("time")));
    Ok(found)
}

/// The files of a class in every chain of an audit; those of each chain in their order.
///
/// # Errors
/// The audit, or a folder of it, cannot be read.
pub fn files_of(audit: &Path, class: Class) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in files::folders(audit)? {
        found.extend(files::of_class(&folder, class)?);
    }
    Ok(found)
}
