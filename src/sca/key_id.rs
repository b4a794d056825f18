//! The id of a token key, in tokens and files.

use crate::hex;

/// The length of a key's id in bytes.
pub(super) const ID_LENGTH: usize = 4;

/// Parses a key's id in the form of files: eight hexadecimal digits in lower case.
pub(super) fn parse_id(id: &str) -> Option<u32> {
    let number = hex::lower_case_number(id.as_bytes()).filter(|_| id.len() == 2 * ID_LENGTH)?;
    u32::try_from(number).ok()
}
