//! The ends of texts about a Signature header (ERR-10): what to write, where the fault shows what was meant.

use super::parameter::TIMES;
use crate::character::OddCharacter;

pub(super) fn escape(odd: OddCharacter) -> &'static str {
    match odd.character() {
        Some('\\') => ": send the header without backslashes before its quotation marks",
        _ => "",
    }
}

pub(super) fn time(name: &str) -> &'static str {
    match TIMES.contains(&name) {
        true => {
            "; a later draft of HTTP signatures has it: leave it out, and sign Date in its place"
        }
        false => "",
    }
}

pub(super) fn semicolon(odd: OddCharacter) -> &'static str {
    match odd.character() {
        Some(';') => ": separate the parameters by commas, not by semicolons",
        _ => "",
    }
}

pub(super) fn serial(odd: OddCharacter) -> &'static str {
    match odd.character() {
        Some(':') => ": write it without colons",
        Some('x' | 'X') => ": write it without 0x",
        Some('-') => ": write it without a sign or hyphens",
        _ => "",
    }
}

pub(super) fn list(odd: OddCharacter) -> &'static str {
    match odd.character() {
        Some(',') => ": separate the names by blanks, not by commas",
        Some(';') => ": separate the names by blanks, not by semicolons",
        Some('\t') => ": separate the names by blanks, not by tabs",
        Some('(') => ": no parentheses stand around the list",
        Some('@') => {
            ": names with @ are those of RFC 9421, which this interface does not use; it has (request-target)"
        }
        Some(':') => ": the names stand without colons",
        _ => "",
    }
}
