//! The name that stands where a member is missing and looks like it (ERR-10).
//!
//! Only a body that was read and lacks a member is read again, at most [`MAX_READ`] times. A name is repeated only if it consists of letters
//! and is close to the missing one, so that it contains no personal data.

use super::{
    json::{JsonReader, Malformed},
    payment::is_known,
    violation::Violations,
};
use crate::{operations::Member, similar};

/// The maximum number of objects that are read again.
const MAX_READ: usize = 4;

/// The maximum number of names of one object that are compared.
const MAX_NAMES: usize = 64;

/// Adds to the text about each missing member the name of an unknown member beside it that looks like it.
pub(super) fn name(text: &str, members: &[Member], violations: &mut Violations) {
    let mut read: Vec<(String, Vec<String>)> = Vec::new();
    for (path, said) in violations.all_missing() {
        let (object, missing) = path.rsplit_once('.').unwrap_or(("", path));
        if !read.iter().any(|(known, _)| known == object) {
            if read.len() == MAX_READ {
                return;
            }
            read.push((object.to_owned(), unknown(text, object, members)));
        }
        let names = read.iter().find(|(known, _)| known == object);
        let names = names.map_or(&[][..], |(_, names)| names);
        // An account that has neither number is reported as a whole.
        let meant: &[&str] = match missing {
            "iban" => &["iban", "bban"],
            other => &[other],
        };
        let found = meant.iter().find_map(|known| {
            let found = similar::find(names.iter().map(String::as_str), known)?;
            Some((known, found))
        });
        if let Some((known, found)) = found {
            said.push_str(&format!("; {found} stands there: write {known}"));
        }
    }
}

/// The names of an object of a body that neither the interface nor the product has.
fn unknown(text: &str, object: &str, members: &[Member]) -> Vec<String> {
    let mut names = Vec::new();
    let mut reader = JsonReader::new(text);
    let path: Vec<&str> = object.split('.').filter(|part| !part.is_empty()).collect();
    // The body was read before, so it is JSON.
    let _ = reader
        .start()
        .and_then(|()| collect(&mut reader, &path, &mut names));
    names.retain(|name| !is_known(name) && members.iter().all(|member| member.name != *name));
    names
}

/// Collects the names of the object at a path, such as `payments[1]`, `instructedAmount`.
fn collect(
    reader: &mut JsonReader<'_>,
    path: &[&str],
    names: &mut Vec<String>,
) -> Result<(), Malformed> {
    if reader.peek() != Some(b'{') {
        return reader.skip().map(drop);
    }
    let (first, rest) = match path {
        [] => (None, &[][..]),
        [first, rest @ ..] => (Some(step(first)), rest),
    };
    reader.object(|name, reader| match first {
        None => {
            if names.len() < MAX_NAMES {
                names.push(name.to_owned());
            }
            reader.skip().map(drop)
        }
        Some((sought, None)) if sought == name => collect(reader, rest, names),
        Some((sought, Some(index))) if sought == name && reader.peek() == Some(b'[') => reader
            .array(|at, reader| match at == index {
                true => collect(reader, rest, names),
                false => reader.skip().map(drop),
            }),
        Some(_) => reader.skip().map(drop),
    })
}

/// The name and the index of one part of a path.
fn step(part: &str) -> (&str, Option<usize>) {
    let indexed = part
        .strip_suffix(']')
        .and_then(|part| part.split_once('['))
        .and_then(|(name, index)| Some((name, index.parse().ok()?)));
    match indexed {
        Some((name, index)) => (name, Some(index)),
        None => (part, None),
    }
}
