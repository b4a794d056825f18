//! The one reader of bodies of the simulated bank: an operation names every member that it takes, and gets no other one.
//!
//! Invariant: no member is ignored. One that the operation does not take, and one that is there twice, is refused; so is a body of an
//! operation that takes none. Deliberately not here: the forms of values; forms of pages, which are the bank's own.

use super::answer::{Asked, Stop, refused};
use super::details::named;
use super::distinct::object;
use serde_json::{Map, Value};

impl Asked<'_> {
    /// The body as a JSON object with members of these names only.
    ///
    /// # Errors
    /// 400 with the first member of another name; also if it is no object, or has a member twice.
    pub(super) fn members(
        &self,
        is_taken: impl Fn(&str) -> bool,
    ) -> Result<Map<String, Value>, Stop> {
        let members = object(self.body).ok_or_else(|| {
            let text = "The body is no JSON object, or has a member twice.";
            refused(400, "FORMAT_ERROR", text)
        })?;
        match members.keys().find(|name| !is_taken(name)) {
            Some(name) => Err(no_such_member("", name)),
            None => Ok(members),
        }
    }

    /// Nothing: the operation takes no body, or an empty object.
    ///
    /// # Errors
    /// 400 with the first member; also if the body is no object.
    pub(super) fn nothing(&self) -> Result<(), Stop> {
        match self.body.trim_ascii() {
            b"" => Ok(()),
            _ => self.members(|_| false).map(drop),
        }
    }
}

/// Refuses a member of another name in the object at this path, `""` for the body.
pub(super) fn no_such_member(path: &str, name: &str) -> Stop {
    let name = named(name);
    let text = match path {
        "" => format!("{name}: this operation takes no such member."),
        path => format!("{path}.{name}: there is no such member."),
    };
    refused(400, "FORMAT_ERROR", &text)
}
