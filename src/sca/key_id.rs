//! The id of a token key, as tokens and files write it.

/// The bytes of a key's id.
pub(super) const ID_LENGTH: usize = 4;

/// A key's id as files have it: eight hexadecimal digits in lower case.
pub(super) fn parse_id(id: &str) -> Option<u32> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_id = id.len() == 2 * ID_LENGTH && id.bytes().all(is_digit);
    u32::from_str_radix(id, 16).ok().filter(|_| is_id)
}
