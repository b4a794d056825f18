//! The id of a token key, in tokens and files.

/// The length of a key's id in bytes.
pub(super) const ID_LENGTH: usize = 4;

/// Parses a key's id in the form of files: eight hexadecimal digits in lower case.
pub(super) fn parse_id(id: &str) -> Option<u32> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_id = id.len() == 2 * ID_LENGTH && id.bytes().all(is_digit);
    u32::from_str_radix(id, 16).ok().filter(|_| is_id)
}
