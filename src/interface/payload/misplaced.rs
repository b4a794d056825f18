//! The text about a byte that stands where JSON has something else (PAY-1, ERR-10): one cause, which the byte shows.

/// The text where no value begins, at this byte of a body.
pub(super) fn value(body: &str, at: usize) -> &'static str {
    let before = body.get(..at).unwrap_or_default();
    let follows_comma = before.trim_ascii_end().ends_with(',');
    match body.as_bytes().get(at) {
        None => "a JSON value must stand here, and the body ends",
        Some(b']' | b'}') if follows_comma => {
            "a JSON value must stand here; a comma stands before it that separates nothing"
        }
        Some(b'\'') => "a JSON value must stand here; a string has double quotation marks",
        Some(b'+' | b'.') => {
            "a JSON value must stand here; a number begins with a digit or a minus sign"
        }
        Some(b'/' | b'#') => "a JSON value must stand here; JSON has no comments",
        Some(b'a'..=b'z' | b'A'..=b'Z') => {
            "a JSON value must stand here; its only words are true, false and null"
        }
        Some(_) => "a JSON value must stand here",
    }
}

/// The text where an array does not go on.
pub(super) const fn in_array(next: Option<u8>) -> &'static str {
    match next {
        None => "a comma or ] must stand here, and the body ends",
        Some(b'/' | b'#') => "a comma or ] must stand here; JSON has no comments",
        Some(_) => "a comma or ] must stand here",
    }
}

/// The text where an object does not go on.
pub(super) const fn in_object(next: Option<u8>) -> &'static str {
    match next {
        None => "a comma or } must stand here, and the body ends",
        Some(b'/' | b'#') => "a comma or } must stand here; JSON has no comments",
        Some(_) => "a comma or } must stand here",
    }
}

/// The text where no name of a member begins.
pub(super) const fn name(next: Option<u8>) -> &'static str {
    match next {
        None => "the name of a member must stand here, and the body ends",
        Some(b'}') => {
            "the name of a member must stand here; a comma stands before it that separates nothing"
        }
        Some(b'\'') => {
            "the name of a member must stand here, in double quotation marks, not in single ones"
        }
        Some(_) => "the name of a member must stand here, in quotation marks",
    }
}
