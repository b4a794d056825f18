//! The reason why the list of signed headers cannot be read (SIG-6, ERR-10): one cause, with its byte in the list.

use super::{
    hint,
    parameter::{MAX_LISTED, TIMES},
};
use crate::{character::OddCharacter, token::is_token_byte};

/// The name of the request target in the list.
const REQUEST_TARGET: &[u8] = b"(request-target)";

/// The reason why a list of signed headers cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListFault {
    /// The list of signed headers has no name.
    #[error(
        "headers is empty; it lists the names of the signed headers, separated by single blanks"
    )]
    NoList,
    /// A character that no name of a header has.
    #[error("headers lists names separated by single blanks; {odd}{hint}", odd = .0.within("headers"), hint = hint::list(*.0))]
    ListedCharacter(OddCharacter),
    /// A name that only later drafts have.
    #[error(
        "at byte {at} of headers stands ({name}), of a later draft of HTTP signatures than this interface uses: leave it out, here and in the signing string, and sign Date in its place"
    )]
    ListedTime {
        /// The name, without its parentheses.
        name: &'static str,
        /// The byte in the value of headers.
        at: usize,
    },
    /// A name in parentheses.
    #[error(
        "at byte {0} of headers stands a name in parentheses; the interface has (request-target) alone, in small letters"
    )]
    ListedPseudo(usize),
    /// More names than a request could have.
    #[error("headers lists more than {MAX_LISTED} names")]
    TooMany,
    /// A name that is listed twice.
    #[error("headers lists a name twice, again at its byte {0}")]
    Repeated(usize),
}

/// The fault of a list of signed headers.
pub(super) fn fault(list: &[u8]) -> Option<ListFault> {
    let mut names: Vec<&[u8]> = Vec::new();
    let mut at = 0_usize;
    for name in list.split(|byte| *byte == b' ') {
        let begin = at;
        at = at.saturating_add(name.len()).saturating_add(1);
        if name.is_empty() {
            continue;
        }
        if let Some(fault) = name_fault(name, begin) {
            return Some(fault);
        }
        if names.len() == MAX_LISTED {
            return Some(ListFault::TooMany);
        }
        if names
            .iter()
            .any(|earlier| earlier.eq_ignore_ascii_case(name))
        {
            return Some(ListFault::Repeated(begin));
        }
        names.push(name);
    }
    names.is_empty().then_some(ListFault::NoList)
}

/// The fault of one listed name, which begins at this byte of the list.
fn name_fault(name: &[u8], begin: usize) -> Option<ListFault> {
    let odd = |rest: &[u8], at: usize| {
        let odd = OddCharacter::first(rest, is_token_byte)?;
        Some(ListFault::ListedCharacter(odd.behind(at)))
    };
    if !name.starts_with(b"(") {
        return odd(name, begin);
    }
    let Some(end) = memchr::memchr(b')', name) else {
        return odd(name, begin);
    };
    let (pseudo, rest) = name.split_at_checked(end.saturating_add(1))?;
    let inner = pseudo.get(1..end).unwrap_or_default();
    let is_time = |known: &&str| known.as_bytes().eq_ignore_ascii_case(inner);
    if let Some(name) = TIMES.into_iter().find(is_time) {
        return Some(ListFault::ListedTime { name, at: begin });
    }
    if pseudo != REQUEST_TARGET {
        return match inner.iter().copied().all(is_token_byte) {
            true => Some(ListFault::ListedPseudo(begin)),
            false => odd(name, begin),
        };
    }
    // A character must separate it from the next name: here none that does.
    let at = begin.saturating_add(pseudo.len());
    let first = (!rest.is_empty()).then(|| OddCharacter::at(rest, 0).behind(at));
    first.map(ListFault::ListedCharacter)
}
